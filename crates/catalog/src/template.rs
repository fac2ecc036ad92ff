//! A template of URIs (RFC 6570), read backwards: which URIs it can have made, and of which values.
//!
//! A value never leads out of the place in which it stands: no dot segments, no separator hidden in an escape. What cannot
//! be read backwards without doubt is no template here.

use std::borrow::Cow;

use model::Object;
use percent_encoding::percent_decode_str;
use regex::Regex;

/// The longest URI that is looked at, in bytes.
pub(crate) const URI_BYTES_MAX: usize = 8_192;
/// How many variables a template has.
const VARIABLES_MAX: usize = 32;
/// How often a value is decoded to see what is hidden in it.
const DECODINGS_MAX: usize = 4;

/// A template.
#[derive(Debug)]
pub(crate) struct Template {
    form: Regex,
    /// In the order of the groups of `form`.
    parts: Vec<Part>,
    /// How many bytes of it stand in every URI.
    literal: usize,
}

/// What a group of the form holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// The value of a variable; `true`: it may be several segments.
    Value(String, bool),
    /// A query with these names at most.
    Query(Vec<String>),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What in it cannot be read backwards.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut form = String::from("^");
        let mut parts = Vec::new();
        let mut literal = 0;
        let mut rest = text;
        let mut last: Option<bool> = None;
        while let Some((before, behind)) = rest.split_once('{') {
            if before.contains('}') {
                return Err("it has a `}` without a `{`".to_owned());
            }
            form.push_str(&regex::escape(before));
            literal += before.len();
            let (expression, after) = behind.split_once('}').ok_or("it has a `{` without a `}`")?;
            let (pattern, part) = expression_of(expression)?;
            // What separates them must not be part of the first.
            let is_apart = expression.starts_with(['/', '?', '&']) && last == Some(false);
            if before.is_empty() && last.is_some() && !is_apart {
                return Err("two of its variables stand side by side".to_owned());
            }
            last = Some(matches!(part, Part::Value(_, true)));
            form.push_str(pattern);
            parts.push(part);
            rest = after;
        }
        if rest.contains('}') {
            return Err("it has a `}` without a `{`".to_owned());
        }
        form.push_str(&regex::escape(rest));
        form.push('$');
        let template = Self {
            form: Regex::new(&form).map_err(|_| "it is too long".to_owned())?,
            parts,
            literal: literal + rest.len(),
        };
        let mut names = template.variables();
        if names.is_empty() {
            return Err("it has no variable; it is the `uri` of one resource".to_owned());
        }
        if names.len() > VARIABLES_MAX {
            return Err(format!("it has more than {VARIABLES_MAX} variables"));
        }
        if names.contains(&"uri") {
            return Err("it has a variable `uri`, which is the name of the whole here".to_owned());
        }
        names.sort_unstable();
        if let Some([twice, _]) = names
            .windows(2)
            .find(|pair| matches!(pair, [one, other] if one == other))
        {
            return Err(format!("its variable `{twice}` stands twice"));
        }
        Ok(template)
    }

    /// The names of its variables, in order.
    pub(crate) fn variables(&self) -> Vec<&str> {
        let names = self.parts.iter().flat_map(|part| match part {
            Part::Value(name, _) => std::slice::from_ref(name),
            Part::Query(names) => names,
        });
        names.map(String::as_str).collect()
    }

    /// The variables without which there is no URI: all but those of a query.
    pub(crate) fn required(&self) -> Vec<&str> {
        let names = self.parts.iter().filter_map(|part| match part {
            Part::Value(name, _) => Some(name.as_str()),
            Part::Query(_) => None,
        });
        names.collect()
    }

    /// How exact it is: the bytes that stand in each of its URIs.
    pub(crate) const fn literal(&self) -> usize {
        self.literal
    }

    /// The values of which a URI was made. `None`: it was not made of this template, or a value leads out of its place.
    pub(crate) fn values(&self, uri: &str) -> Option<Object> {
        if uri.len() > URI_BYTES_MAX {
            return None;
        }
        let groups = self.form.captures(uri)?;
        let mut values = Object::new();
        for (part, group) in self.parts.iter().zip(groups.iter().skip(1)) {
            match (part, group) {
                (Part::Value(name, is_several), Some(found)) => {
                    values.insert(name.clone(), value(found.as_str(), *is_several)?.into());
                }
                (Part::Value(..), None) => return None,
                (Part::Query(names), found) => {
                    let pairs = found.map_or("", |found| found.as_str());
                    for pair in pairs.split('&').filter(|pair| !pair.is_empty()) {
                        let (name, text) = pair.split_once('=')?;
                        let is_known = names.iter().any(|known| known == name);
                        let is_new = values
                            .insert(name.to_owned(), value(text, true)?.into())
                            .is_none();
                        if !is_known || !is_new {
                            return None;
                        }
                    }
                }
            }
        }
        Some(values)
    }
}

/// What an expression matches, and what it means.
fn expression_of(expression: &str) -> Result<(&'static str, Part), String> {
    let named = |name: &str| {
        let is_plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        is_plain.then(|| name.to_owned()).ok_or_else(|| {
            format!(
                "its expression `{{{}}}` is of a kind that is not read here",
                shown(expression)
            )
        })
    };
    let list = |names: &str| names.split(',').map(named).collect::<Result<Vec<_>, _>>();
    match expression.split_at_checked(1) {
        Some(("+", name)) => Ok(("([^#\\s]+)", Part::Value(named(name)?, true))),
        Some(("/", name)) => Ok(("/([^/?#\\s]+)", Part::Value(named(name)?, false))),
        Some((".", name)) => Ok((".([^/?#\\s]+)", Part::Value(named(name)?, false))),
        Some(("?", names)) => Ok(("(?:\\?([^#\\s]*))?", Part::Query(list(names)?))),
        Some(("&", names)) => Ok(("(?:&([^#\\s]*))?", Part::Query(list(names)?))),
        Some(_) => Ok(("([^/?#\\s]+)", Part::Value(named(expression)?, false))),
        None => Err("it has an expression without a name".to_owned()),
    }
}

/// A value, decoded. `None`: it is no text, or leads out of its place, now or after it is decoded once more by somebody.
fn value(written: &str, is_several: bool) -> Option<String> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8().map(Cow::into_owned).ok();
    let decoded = decode(written)?;
    let mut seen = decoded.clone();
    for _ in 0..DECODINGS_MAX {
        if seen.chars().any(char::is_control) {
            return None;
        }
        let mut segments = seen.split(['/', '\\']);
        if segments.clone().any(|segment| segment == "." || segment == "..") {
            return None;
        }
        if !is_several && segments.nth(1).is_some() {
            return None;
        }
        let further = decode(&seen)?;
        if further == seen {
            return Some(decoded);
        }
        seen = further;
    }
    // Nobody means that.
    None
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use model::Value;
    use serde_json::json;

    use super::*;

    fn values(template: &str, uri: &str) -> Option<Value> {
        Template::parse(template).unwrap().values(uri).map(Value::Object)
    }

    #[test]
    fn a_uri_is_read_back_into_the_values_that_made_it() {
        for (template, uri, read) in [
            ("a://t/{id}/data", "a://t/123/data", json!({ "id": "123" })),
            ("a://t/{id}", "a://t/%C3%A9%20x", json!({ "id": "é x" })),
            ("a://{x}/{y}", "a://1/2", json!({ "x": "1", "y": "2" })),
            ("f:///d/{+path}", "f:///d/a/b.md", json!({ "path": "a/b.md" })),
            ("f:///d{/name}", "f:///d/a", json!({ "name": "a" })),
            ("f:///d{.end}", "f:///d.md", json!({ "end": "md" })),
            (
                "a://s{?q,n}",
                "a://s?q=x%26y&n=2",
                json!({ "q": "x&y", "n": "2" }),
            ),
            ("a://s{?q,n}", "a://s", json!({})),
            (
                "a://t{/x}{/y}{?q}",
                "a://t/1/2?q=3",
                json!({ "x": "1", "y": "2", "q": "3" }),
            ),
            ("a://s?f=1{&q}", "a://s?f=1&q=x", json!({ "q": "x" })),
        ] {
            assert_eq!(values(template, uri), Some(read), "{template} {uri}");
        }
        for (template, uri) in [
            ("a://t/{id}/data", "a://t//data"),
            ("a://t/{id}/data", "a://t/1/data/more"),
            ("a://t/{id}/data", "b://t/1/data"),
            ("a://t/{id}", "a://t/1/2"),
            ("a://t/{id}", "a://t/1?x=1"),
            ("a://t/{id}", "a://t/1#x"),
            ("a.b://t/{id}", "axb://t/1"),
            ("a://s{?q}", "a://s?other=1"),
            ("a://s{?q}", "a://s?q=1&q=2"),
            ("a://s{?q}", "a://s?q"),
        ] {
            assert_eq!(values(template, uri), None, "{template} {uri}");
        }
    }

    #[test]
    fn res_07_no_value_leads_out_of_its_place_however_it_is_written() {
        for segment in [
            "..",
            ".",
            "%2e%2e",
            "%2E.",
            "..%2f..",
            "a%2Fb",
            "a%5Cb",
            "a%252fb",
            "%252e%252e",
            "a%00b",
            "%ff",
            "a%2525252525252fb",
            "..%5c",
            "a%0ab",
        ] {
            assert_eq!(
                values("f:///d/{name}", &format!("f:///d/{segment}")),
                None,
                "{segment}"
            );
        }
        for path in [
            "../x",
            "a/../x",
            "a/%2e%2e/x",
            "a/..%2fx",
            "a%2f..%2fx",
            "a/%252e%252e/x",
            "a\\..\\x",
            "./x",
            "a/.",
        ] {
            assert_eq!(
                values("f:///d/{+path}", &format!("f:///d/{path}")),
                None,
                "{path}"
            );
        }
        // What only looks like it is a value like any other.
        for name in ["..a", "a..", "...", ".hidden"] {
            assert!(
                values("f:///d/{name}", &format!("f:///d/{name}")).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_uri_is_looked_at_up_to_its_limit_and_not_past_it() {
        let of = |length: usize| format!("a:{}", "x".repeat(length - 2));
        assert!(values("a:{x}", &of(URI_BYTES_MAX)).is_some());
        assert!(values("a:{x}", &of(URI_BYTES_MAX + 1)).is_none());
    }

    #[test]
    fn what_cannot_be_read_backwards_is_told() {
        for (template, why) in [
            ("a://b", "no variable"),
            ("a://{x}{y}", "side by side"),
            ("a://{+x}{?q}", "side by side"),
            ("a://{x}/{x}", "stands twice"),
            ("a://{uri}", "variable `uri`"),
            ("a://{x", "without a `}`"),
            ("a://x}", "without a `{`"),
            ("a://}{x}", "without a `{`"),
            ("a://{}", "without a name"),
            ("a://{x*}", "not read here"),
            ("a://{x:3}", "not read here"),
            ("a://{x,y}", "not read here"),
            ("a://{;x}", "not read here"),
            ("a://{#x}", "not read here"),
        ] {
            let fault = Template::parse(template).unwrap_err();
            assert!(fault.contains(why), "{template}: {fault}");
        }
        let many = |count: usize| (0..count).map(|n| format!("/{{v{n}}}")).collect::<String>();
        assert!(Template::parse(&format!("a:{}", many(VARIABLES_MAX))).is_ok());
        assert!(Template::parse(&format!("a:{}", many(VARIABLES_MAX + 1))).is_err());
    }
}
