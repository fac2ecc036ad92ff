//! How one value is written into a path, a query, a header or a form: the styles of OpenAPI, without the place.
//!
//! Where a value could be read back as another one (a comma in a list of a header, a blank in a list that blanks
//! separate), it is refused. Sources: OpenAPI 3.1.1 sections 4.8.12.2 and 4.8.12.7, RFC 6570 sections 3.2.2 to 3.2.8.

use model::{Value, canonical};

use crate::template::{encode, encode_reserved, walks};

/// The styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    Space,
    Pipe,
    Deep,
    /// The value as JSON text: a parameter that is described by a media type.
    Json,
}

/// How values inside the values of `deepObject` are written. The standard defines one level and nothing below, so
/// that an API's own way has to be said by who knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nesting {
    /// Not at all: what would need it is not offered.
    #[default]
    Refuse,
    /// `a[b][c]=1`, and items of lists by their index: `a[0][b]=1`.
    Indexed,
    /// `a[b][c]=1`, and items of lists without: `a[][b]=1`.
    Unindexed,
}

/// How one value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serial {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    /// Whether reserved characters may stand as they are, in a query.
    pub(crate) reserved: bool,
    /// Whether the schema says that the value can be an object.
    pub(crate) objects: bool,
    pub(crate) nesting: Nesting,
}

/// Why a value cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SerialFault {
    /// An object, or something inside a list or an object.
    Kind,
    /// A list or an object without anything in it.
    Empty,
    /// A path item that is empty or a step.
    Step,
    /// An item that holds what separates items.
    Delimiter,
    /// What no header can hold.
    Header,
}

/// A value that has one level at most.
enum Flat {
    One(String),
    Many(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl Serial {
    /// Simple style without objects.
    #[cfg(test)]
    pub(crate) const fn plain(style: Style, explode: bool) -> Self {
        Self {
            style,
            explode,
            reserved: false,
            objects: true,
            nesting: Nesting::Refuse,
        }
    }

    /// What stands for a variable of a path, encoded.
    pub(crate) fn path(&self, name: &str, value: &Value) -> Result<String, SerialFault> {
        if self.style == Style::Json {
            return Ok(encode(&json_text(value)));
        }
        let flat = self.flat(value)?;
        let is_step = |item: &String| item.is_empty() || walks(item);
        let steps = match &flat {
            Flat::One(one) => is_step(one),
            Flat::Many(items) => items.iter().any(is_step),
            Flat::Pairs(pairs) => pairs.iter().any(|(key, item)| is_step(key) || is_step(item)),
        };
        if steps {
            return Err(SerialFault::Step);
        }
        let name = encode(name);
        Ok(match self.style {
            Style::Label => {
                // A dot is not encoded, so that it would read as the next item.
                let dots = match &flat {
                    Flat::One(_) => false,
                    Flat::Many(items) => items.iter().any(|item| item.contains('.')),
                    Flat::Pairs(pairs) => pairs
                        .iter()
                        .any(|(key, item)| key.contains('.') || item.contains('.')),
                };
                if self.explode && dots {
                    return Err(SerialFault::Delimiter);
                }
                let separator = if self.explode { "." } else { "," };
                format!(".{}", joined(&flat, self.explode, separator))
            }
            Style::Matrix => match (&flat, self.explode) {
                (Flat::Many(items), true) => items
                    .iter()
                    .map(|item| format!(";{name}={}", encode(item)))
                    .collect(),
                (Flat::Pairs(pairs), true) => pairs
                    .iter()
                    .map(|(key, item)| format!(";{}={}", encode(key), encode(item)))
                    .collect(),
                _ => format!(";{name}={}", joined(&flat, false, ",")),
            },
            Style::Simple | Style::Form | Style::Space | Style::Pipe | Style::Deep | Style::Json => {
                joined(&flat, self.explode, ",")
            }
        })
    }

    /// The `name=value` pairs of a query or a form, encoded. `taken`: names that an exploded object must not use.
    pub(crate) fn query(
        &self,
        name: &str,
        value: &Value,
        taken: &dyn Fn(&str) -> bool,
        out: &mut Vec<String>,
    ) -> Result<(), SerialFault> {
        let key = encode(name);
        match self.style {
            Style::Json => out.push(format!("{key}={}", encode(&json_text(value)))),
            Style::Deep => match value {
                Value::Object(_) | Value::Array(_) => {
                    let before = out.len();
                    self.nested(&key, value, 0, out)?;
                    if out.len() == before {
                        return Err(SerialFault::Empty);
                    }
                }
                single => out.push(format!("{key}={}", encode(&text(single)?))),
            },
            Style::Space | Style::Pipe => {
                let (raw, delimiter) = match self.style {
                    Style::Space => (' ', "%20"),
                    _ => ('|', "%7C"),
                };
                let items = match self.flat(value)? {
                    Flat::One(one) => {
                        out.push(format!("{key}={}", encode(&one)));
                        return Ok(());
                    }
                    Flat::Many(items) => items,
                    Flat::Pairs(pairs) => pairs.into_iter().flat_map(|(key, item)| [key, item]).collect(),
                };
                if items.iter().any(|item| item.contains(raw)) {
                    return Err(SerialFault::Delimiter);
                }
                let items: Vec<String> = items.iter().map(|item| encode(item)).collect();
                out.push(format!("{key}={}", items.join(delimiter)));
            }
            Style::Form | Style::Simple | Style::Label | Style::Matrix => {
                let write = |item: &str| {
                    if self.reserved {
                        encode_reserved(item)
                    } else {
                        encode(item)
                    }
                };
                match self.flat(value)? {
                    Flat::One(one) => out.push(format!("{key}={}", write(&one))),
                    Flat::Many(items) if self.explode => {
                        out.extend(items.iter().map(|item| format!("{key}={}", write(item))));
                    }
                    Flat::Pairs(pairs) if self.explode => {
                        if pairs.iter().any(|(key, _)| key.is_empty() || taken(key)) {
                            return Err(SerialFault::Delimiter);
                        }
                        out.extend(
                            pairs
                                .iter()
                                .map(|(key, item)| format!("{}={}", encode(key), write(item))),
                        );
                    }
                    flat => out.push(format!("{key}={}", joined(&flat, false, ","))),
                }
            }
        }
        Ok(())
    }

    /// The value of a header.
    pub(crate) fn header(&self, value: &Value) -> Result<String, SerialFault> {
        let is_visible = |item: &str| {
            !item.is_empty()
                && item.trim_matches(' ').len() == item.len()
                && item.bytes().all(|b| (b' '..=b'~').contains(&b))
        };
        let is_item = |item: &String| is_visible(item) && !item.contains(',');
        let line = match (self.style, self.flat(value)) {
            (Style::Json, _) => {
                let text = json_text(value);
                return if is_visible(&text) {
                    Ok(text)
                } else {
                    Err(SerialFault::Header)
                };
            }
            (_, Err(fault)) => return Err(fault),
            (_, Ok(Flat::One(one))) => is_visible(&one).then_some(one),
            (_, Ok(Flat::Many(items))) => items.iter().all(is_item).then(|| items.join(",")),
            (_, Ok(Flat::Pairs(pairs))) => {
                let sign = if self.explode { "=" } else { "," };
                let fits = pairs
                    .iter()
                    .all(|(key, item)| is_item(key) && is_item(item) && !(self.explode && key.contains('=')));
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|(key, item)| format!("{key}{sign}{item}"))
                    .collect();
                fits.then(|| pairs.join(","))
            }
        };
        line.ok_or(SerialFault::Header)
    }

    /// The value of a cookie: everything outside the unreserved characters is encoded, so that no value ends it.
    pub(crate) fn cookie(&self, value: &Value) -> Result<String, SerialFault> {
        if self.style == Style::Json {
            return Ok(encode(&json_text(value)));
        }
        Ok(match self.flat(value)? {
            Flat::One(one) => encode(&one),
            flat => joined(&flat, false, "%2C"),
        })
    }

    fn flat(&self, value: &Value) -> Result<Flat, SerialFault> {
        Ok(match value {
            Value::Array(items) if items.is_empty() => return Err(SerialFault::Empty),
            Value::Array(items) => Flat::Many(items.iter().map(text).collect::<Result<_, _>>()?),
            Value::Object(_) if !self.objects => return Err(SerialFault::Kind),
            Value::Object(object) => {
                let pairs = object
                    .iter()
                    // RFC 6570 section 2.3: null is undefined, and what is undefined is left out.
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| Ok((key.clone(), text(value)?)))
                    .collect::<Result<Vec<_>, SerialFault>>()?;
                if pairs.is_empty() {
                    return Err(SerialFault::Empty);
                }
                Flat::Pairs(pairs)
            }
            single => Flat::One(text(single)?),
        })
    }

    /// `prefix`: what stands before the brackets, encoded.
    fn nested(
        &self,
        prefix: &str,
        value: &Value,
        depth: usize,
        out: &mut Vec<String>,
    ) -> Result<(), SerialFault> {
        let may_go_down = depth == 0 && value.is_object() || self.nesting != Nesting::Refuse;
        match value {
            Value::Object(_) | Value::Array(_) if !may_go_down => return Err(SerialFault::Kind),
            Value::Object(object) => {
                for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
                    self.nested(&format!("{prefix}%5B{}%5D", encode(key)), value, depth + 1, out)?;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let prefix = match self.nesting {
                        Nesting::Unindexed => format!("{prefix}%5B%5D"),
                        Nesting::Refuse | Nesting::Indexed => format!("{prefix}%5B{index}%5D"),
                    };
                    self.nested(&prefix, item, depth + 1, out)?;
                }
            }
            single => out.push(format!("{prefix}={}", encode(&text(single)?))),
        }
        Ok(())
    }
}

fn joined(flat: &Flat, explode: bool, separator: &str) -> String {
    match flat {
        Flat::One(one) => encode(one),
        Flat::Many(items) => {
            let items: Vec<String> = items.iter().map(|item| encode(item)).collect();
            items.join(separator)
        }
        Flat::Pairs(pairs) => {
            let sign = if explode { "=" } else { separator };
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, item)| format!("{}{sign}{}", encode(key), encode(item)))
                .collect();
            pairs.join(separator)
        }
    }
}

/// The text of a single value.
pub(crate) fn text(value: &Value) -> Result<String, SerialFault> {
    match value {
        Value::Bool(truth) => Ok(truth.to_string()),
        // `1.0` fits an integer schema; upstreams parse `1`.
        Value::Number(_) => Ok(String::from_utf8_lossy(&canonical(value)).into_owned()),
        Value::String(text) => Ok(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(SerialFault::Kind),
    }
}

fn json_text(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // The table of OpenAPI 3.1.1 section 4.8.12.7, with the names and values of our own that it leaves out.
    #[test]
    fn every_defined_style_writes_what_the_standard_says() {
        let (one, list, object) = (json!("blue"), json!(["a", "b c"]), json!({"r": 1, "g": "x,y"}));
        for (style, explode, expected) in [
            (Style::Simple, false, ["blue", "a,b%20c", "r,1,g,x%2Cy"]),
            (Style::Simple, true, ["blue", "a,b%20c", "r=1,g=x%2Cy"]),
            (Style::Label, false, [".blue", ".a,b%20c", ".r,1,g,x%2Cy"]),
            (Style::Label, true, [".blue", ".a.b%20c", ".r=1.g=x%2Cy"]),
            (Style::Matrix, false, [";c=blue", ";c=a,b%20c", ";c=r,1,g,x%2Cy"]),
            (Style::Matrix, true, [";c=blue", ";c=a;c=b%20c", ";r=1;g=x%2Cy"]),
        ] {
            let serial = Serial::plain(style, explode);
            for (value, expected) in [&one, &list, &object].into_iter().zip(expected) {
                assert_eq!(serial.path("c", value).unwrap(), expected, "{style:?} {explode}");
            }
        }
        for (style, explode, expected) in [
            (Style::Form, true, ["c=blue", "c=a&c=b%20c", "r=1&g=x%2Cy"]),
            (Style::Form, false, ["c=blue", "c=a,b%20c", "c=r,1,g,x%2Cy"]),
            (
                Style::Pipe,
                false,
                ["c=blue", "c=a%7Cb%20c", "c=r%7C1%7Cg%7Cx%2Cy"],
            ),
            (Style::Space, false, ["c=blue", "refused", "c=r%201%20g%20x%2Cy"]),
            (
                Style::Deep,
                true,
                ["c=blue", "refused", "c%5Br%5D=1&c%5Bg%5D=x%2Cy"],
            ),
            (
                Style::Json,
                true,
                [
                    "c=%22blue%22",
                    "c=%5B%22a%22%2C%22b%20c%22%5D",
                    "c=%7B%22r%22%3A1%2C%22g%22%3A%22x%2Cy%22%7D",
                ],
            ),
        ] {
            let serial = Serial::plain(style, explode);
            for (value, expected) in [&one, &list, &object].into_iter().zip(expected) {
                let mut out = Vec::new();
                let written = serial.query("c", value, &|_| false, &mut out);
                let shown = written.map_or_else(|_| "refused".to_owned(), |()| out.join("&"));
                assert_eq!(shown, expected, "{style:?} {explode}");
            }
        }
        for (explode, expected) in [(false, "r,1,g,x"), (true, "r=1,g=x")] {
            let serial = Serial::plain(Style::Simple, explode);
            assert_eq!(serial.header(&json!({"r": 1, "g": "x"})).unwrap(), expected);
        }
    }

    #[test]
    fn what_would_read_back_as_something_else_is_refused() {
        let query =
            |style, value: Value| Serial::plain(style, false).query("c", &value, &|_| false, &mut Vec::new());
        assert_eq!(query(Style::Pipe, json!(["a|b"])), Err(SerialFault::Delimiter));
        assert_eq!(query(Style::Space, json!(["a b"])), Err(SerialFault::Delimiter));
        assert_eq!(query(Style::Deep, json!({"a": {"b": 1}})), Err(SerialFault::Kind));
        assert_eq!(query(Style::Deep, json!({"a": [1]})), Err(SerialFault::Kind));
        assert_eq!(query(Style::Deep, json!({"a": null})), Err(SerialFault::Empty));
        assert_eq!(query(Style::Form, json!({})), Err(SerialFault::Empty));
        assert_eq!(query(Style::Form, json!([null])), Err(SerialFault::Kind));
        let label = Serial::plain(Style::Label, true);
        assert_eq!(label.path("c", &json!(["1.5"])), Err(SerialFault::Delimiter));
        assert_eq!(label.path("c", &json!("1.5")).unwrap(), ".1.5");
        for style in [Style::Simple, Style::Label, Style::Matrix] {
            for value in [
                json!(".."),
                json!(["a", ".."]),
                json!({"a": ".."}),
                json!({"..": "a"}),
                json!(""),
            ] {
                assert_eq!(
                    Serial::plain(style, false).path("c", &value),
                    Err(SerialFault::Step),
                    "{value}"
                );
            }
        }
        let simple = Serial::plain(Style::Simple, true);
        for value in [
            json!({"a=b": "c"}),
            json!({"a": "b,c"}),
            json!({"a": "b\r\nc"}),
            json!(["a,b"]),
        ] {
            assert_eq!(simple.header(&value), Err(SerialFault::Header), "{value}");
        }
        // An exploded object must not name another parameter.
        let form = Serial::plain(Style::Form, true);
        let taken = |name: &str| name == "tenant";
        assert_eq!(
            form.query("c", &json!({"tenant": "other"}), &taken, &mut Vec::new()),
            Err(SerialFault::Delimiter)
        );
    }

    #[test]
    fn deeper_levels_are_written_only_in_the_way_that_was_asked_for() {
        let value = json!({"a": {"b": [1, {"c": "x y"}]}, "n": null});
        for (nesting, expected) in [
            (Nesting::Refuse, None),
            (
                Nesting::Indexed,
                Some("w%5Ba%5D%5Bb%5D%5B0%5D=1&w%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=x%20y"),
            ),
            (
                Nesting::Unindexed,
                Some("w%5Ba%5D%5Bb%5D%5B%5D=1&w%5Ba%5D%5Bb%5D%5B%5D%5Bc%5D=x%20y"),
            ),
        ] {
            let serial = Serial {
                nesting,
                ..Serial::plain(Style::Deep, true)
            };
            let mut out = Vec::new();
            let written = serial.query("w", &value, &|_| false, &mut out).ok();
            assert_eq!(written.map(|()| out.join("&")).as_deref(), expected);
        }
    }

    #[test]
    fn no_value_of_a_cookie_ends_it() {
        let serial = Serial::plain(Style::Form, false);
        assert_eq!(serial.cookie(&json!("a; admin=1")).unwrap(), "a%3B%20admin%3D1");
        assert_eq!(serial.cookie(&json!(["a", "b,c"])).unwrap(), "a%2Cb%2Cc");
    }
}
