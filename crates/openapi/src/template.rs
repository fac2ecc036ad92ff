//! Path templates: `/invoices/{id}/lines.json` as segments of fixed text and variables.
//!
//! This is where it is settled that a value can never leave its segment: everything outside the unreserved
//! characters is encoded, a value that some server could read as `..` is refused, and the built path is counted
//! against the template. Sources: RFC 3986 section 2.3 and 3.3, OpenAPI 3.1.1 section 4.8.8.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but the unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What fixed text of a path may hold as it is: unreserved, sub-delims, `:`, `@`, and escapes that are there already.
const FIXED: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'%');

/// The longest template, in bytes.
const TEMPLATE_BYTES_MAX: usize = 4_096;

/// A value for a URL: every byte outside the unreserved characters as `%XX`.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// What a value of a query may hold besides, where the document says `allowReserved` and the operator agrees: nothing
/// that ends the query or starts another pair (`#`, `&`), nothing that is read as something else (`+`, `%`, `;`), and
/// no bracket, which RFC 3986 does not allow there.
const QUERY_RESERVED: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b'=')
    .remove(b'?')
    .remove(b'@');

/// A value for a query with its reserved characters as they are, as far as they are harmless.
pub(crate) fn encode_reserved(text: &str) -> String {
    utf8_percent_encode(text, QUERY_RESERVED).to_string()
}

/// A query that a document wrote into a path, as `beta=true`: sent with every request as it is.
///
/// Invariant: pairs of a name and a value, encoded, that no other pair and no fragment can begin in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixedQuery {
    pairs: Vec<(String, String)>,
}

impl FixedQuery {
    /// Reads what stands behind the `?`. `None` where a part of it could be read in another way: a variable, a name
    /// without a value, a `+`, an escape that is none, a name that stands twice.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |part: &str| {
            let is_plain =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%');
            let escapes = part
                .split('%')
                .skip(1)
                .all(|part| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2);
            (!part.is_empty() && part.bytes().all(is_plain) && escapes).then(|| part.to_owned())
        };
        let pairs = text
            .split('&')
            .map(|pair| {
                let (name, value) = pair.split_once('=')?;
                Some((plain(name)?, plain(value)?))
            })
            .collect::<Option<Vec<_>>>()?;
        let query = Self { pairs };
        let distinct: BTreeSet<String> = query.names().collect();
        (distinct.len() == query.pairs.len()).then_some(query)
    }

    /// The names, as a service reads them.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.pairs
            .iter()
            .map(|(name, _)| percent_decode_str(name).decode_utf8_lossy().into_owned())
    }

    /// The pairs, as they are sent.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = String> {
        self.pairs.iter().map(|(name, value)| format!("{name}={value}"))
    }
}

/// A path template that was parsed.
///
/// Invariant: at least one segment; no fixed segment is `.` or `..` in any encoding; every variable stands once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    segments: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Text, encoded.
    Fixed(String),
    /// The name of a parameter.
    Variable(String),
}

/// Why a text is no template. The message names what is wrong in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateFault {
    #[error("the path does not start with `/`")]
    Relative,
    #[error("the path is longer than {TEMPLATE_BYTES_MAX} bytes")]
    Long,
    #[error("the path has {0:?}, which ends or splits a path")]
    Character(char),
    #[error("the braces of the path do not match within one segment")]
    Braces,
    #[error("the variable `{{{0}}}` stands twice in the path")]
    Twice(String),
    #[error("the path has a segment that means the same or the parent folder")]
    Dots,
    #[error("the path has a `%` that starts no escape")]
    Escape,
}

impl Template {
    pub(crate) fn parse(path: &str) -> Result<Self, TemplateFault> {
        if path.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateFault::Long);
        }
        let rest = path.strip_prefix('/').ok_or(TemplateFault::Relative)?;
        if let Some(character) = path
            .chars()
            .find(|character| matches!(character, '?' | '#' | '\\') || character.is_control())
        {
            return Err(TemplateFault::Character(character));
        }
        let segments = rest.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
        let template = Self { segments };
        let mut seen = BTreeSet::new();
        for variable in template.variables() {
            if !seen.insert(variable) {
                return Err(TemplateFault::Twice(variable.chars().take(80).collect()));
            }
        }
        Ok(template)
    }

    /// The names of the variables, in order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|part| match part {
            Part::Fixed(_) => None,
            Part::Variable(name) => Some(name.as_str()),
        })
    }

    /// The number of segments of every path that is built.
    pub(crate) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The path with every variable replaced by its encoded value.
    ///
    /// `None` where a variable has no value, or the result is not the path that the template promises: another number
    /// of segments, a segment that is `.` or `..`, or a character that no path has. Callers refuse such values before,
    /// with a better message; this is the second lock.
    pub(crate) fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            let start = path.len();
            for part in segment {
                match part {
                    Part::Fixed(text) => path.push_str(text),
                    Part::Variable(name) => path.push_str(value(name)?),
                }
            }
            let has_variable = segment.iter().any(|part| matches!(part, Part::Variable(_)));
            let built = path.get(start..)?;
            if has_variable && (built.is_empty() || walks(built)) {
                return None;
            }
        }
        let fits = path
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'\\' | b'{' | b'}'));
        (fits && path.split('/').skip(1).count() == self.segment_count()).then_some(path)
    }
}

fn segment(text: &str) -> Result<Vec<Part>, TemplateFault> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (fixed, tail) = rest
            .split_once('{')
            .map_or((rest, None), |(fixed, tail)| (fixed, Some(tail)));
        if fixed.contains('}') {
            return Err(TemplateFault::Braces);
        }
        if !fixed.is_empty() {
            parts.push(Part::Fixed(fixed_text(fixed)?));
        }
        let Some(tail) = tail else { break };
        let (name, after) = tail.split_once('}').ok_or(TemplateFault::Braces)?;
        if name.is_empty() || name.contains('{') {
            return Err(TemplateFault::Braces);
        }
        parts.push(Part::Variable(name.to_owned()));
        rest = after;
    }
    if let [Part::Fixed(text)] = parts.as_slice()
        && walks(text)
    {
        return Err(TemplateFault::Dots);
    }
    Ok(parts)
}

fn fixed_text(text: &str) -> Result<String, TemplateFault> {
    let escapes = text
        .split('%')
        .skip(1)
        .all(|part| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2);
    if !escapes {
        return Err(TemplateFault::Escape);
    }
    Ok(utf8_percent_encode(text, FIXED).to_string())
}

/// Whether some server could read a step to the same or the parent folder out of a segment.
///
/// Servers differ in how often they decode and in what they split at, so every reading counts: decoded up to eight
/// times, split at `/` and `\`, each piece up to `;` and without blanks.
pub(crate) fn walks(segment: &str) -> bool {
    let mut reading = segment.to_owned();
    for _ in 0..8 {
        let steps = reading.split(['/', '\\']).any(|piece| {
            let name = piece.split(';').next().unwrap_or_default();
            let name = name.trim_matches(|c: char| c.is_whitespace() || c.is_control());
            matches!(name, "." | "..")
        });
        if steps {
            return true;
        }
        let decoded = percent_decode_str(&reading).decode_utf8_lossy().into_owned();
        if decoded == reading {
            return false;
        }
        reading = decoded;
    }
    // Encoded more than eight times: no honest value is.
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_template_is_segments_of_text_and_variables() {
        let template = Template::parse("/v1/files/{name}.json/{a}-{b}/").unwrap();
        assert_eq!(template.variables().collect::<Vec<_>>(), ["name", "a", "b"]);
        assert_eq!(template.segment_count(), 5);
        let path = template.fill(|name| Some(if name == "name" { "x%20y" } else { "1" }));
        assert_eq!(path.as_deref(), Some("/v1/files/x%20y.json/1-1/"));
        assert_eq!(Template::parse("/").unwrap().fill(|_| None).as_deref(), Some("/"));
        assert_eq!(
            Template::parse("/ä b/c:d@e").unwrap().fill(|_| None).as_deref(),
            Some("/%C3%A4%20b/c:d@e")
        );
    }

    #[test]
    fn a_text_that_is_no_template_is_refused() {
        for (path, fault) in [
            ("", TemplateFault::Relative),
            ("a/b", TemplateFault::Relative),
            ("/a?b=1", TemplateFault::Character('?')),
            ("/#Action=Delete", TemplateFault::Character('#')),
            ("/a\\b", TemplateFault::Character('\\')),
            ("/a\nb", TemplateFault::Character('\n')),
            ("/{a", TemplateFault::Braces),
            ("/a}", TemplateFault::Braces),
            ("/{}", TemplateFault::Braces),
            ("/{a{b}}", TemplateFault::Braces),
            ("/{a/b}", TemplateFault::Braces),
            ("/{a}/{a}", TemplateFault::Twice("a".to_owned())),
            ("/a/../b", TemplateFault::Dots),
            ("/a/%2e%2E/b", TemplateFault::Dots),
            ("/a/./b", TemplateFault::Dots),
            ("/100%", TemplateFault::Escape),
        ] {
            assert_eq!(Template::parse(path), Err(fault), "{path}");
        }
        assert!(Template::parse(&format!("/{}", "a".repeat(TEMPLATE_BYTES_MAX - 1))).is_ok());
        assert_eq!(
            Template::parse(&format!("/{}", "a".repeat(TEMPLATE_BYTES_MAX))),
            Err(TemplateFault::Long)
        );
    }

    #[test]
    fn a_value_that_some_server_reads_as_a_step_is_found_in_every_disguise() {
        for value in [
            ".",
            "..",
            "%2e",
            "%2e%2e",
            ".%2E",
            "%252e%252e",
            "../../admin",
            "a/../b",
            "..\\x",
            "..;x=1",
            "a/./b",
            " ..",
            "..%2Fadmin",
            "%2e%2e%2fadmin",
            "..\t",
        ] {
            assert!(walks(value), "{value:?}");
            assert!(walks(&encode(value)), "{value:?}");
        }
        for value in [
            "",
            "...",
            "a..b",
            ".hidden",
            "a.",
            "heads/main",
            "1.2.3",
            "100%",
            "a;..b",
            "%41",
        ] {
            assert!(!walks(value), "{value:?}");
        }
        let mut deep = "..".to_owned();
        for _ in 0..9 {
            deep = deep.replace('%', "%25").replace('.', "%2e");
        }
        assert!(walks(&deep));
    }

    #[test]
    fn two_values_cannot_make_a_step_together() {
        let template = Template::parse("/a/{x}{y}/b").unwrap();
        assert_eq!(template.fill(|_| Some(".")), None);
        assert_eq!(template.fill(|_| Some("")), None);
        assert_eq!(
            Template::parse("/a/{x}").unwrap().fill(|_| Some("b/c")),
            None,
            "an unencoded value"
        );
        assert_eq!(
            Template::parse("/a/{x}").unwrap().fill(|_| Some("b?c")),
            None,
            "an unencoded value"
        );
    }

    proptest! {
        #[test]
        fn an_encoded_value_never_leaves_its_segment(value in any::<String>()) {
            let template = Template::parse("/a/{x}/b").unwrap();
            let encoded = encode(&value);
            if let Some(path) = template.fill(|_| Some(&encoded)) {
                prop_assert_eq!(path.split('/').count(), 4);
                prop_assert!(path.starts_with("/a/") && path.ends_with("/b"));
                let middle = path.split('/').nth(2).unwrap();
                prop_assert_eq!(percent_decode_str(middle).decode_utf8().unwrap(), value.as_str());
            }
        }

        #[test]
        fn parsing_never_panics(path in "[/{}a%2e.#?]{0,20}") {
            let _ = Template::parse(&path);
        }
    }
}
