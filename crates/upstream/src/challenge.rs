//! What a server asks for when it refuses a credential: `WWW-Authenticate`, as far as an operator needs it.
//!
//! It is words of the far side: shown to operators, never to an agent, and nothing here acts on them.

use http::{HeaderMap, header};

/// The longest value that is kept, in bytes; a longer one is left out.
const VALUE_BYTES_MAX: usize = 2_048;

/// The `Bearer` challenge of an answer.
///
/// Source: RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1; AUTH-02, AUTH-04, AUTH-17.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    /// What is wrong with the token that was sent: `invalid_token`, `insufficient_scope`.
    pub(crate) error: Option<String>,
    /// The scopes that are needed, with spaces between.
    pub(crate) scope: Option<String>,
    /// Where the server says who issues its tokens. Any URL at all: whoever fetches it has to judge it.
    pub(crate) resource_metadata: Option<String>,
}

impl Challenge {
    /// The first `Bearer` challenge of an answer, wherever it stands among others.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        headers
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .find_map(Self::read)
    }

    /// Reads one header. `a=b` belongs to the scheme before it; a word without `=` is a scheme or its `token68`, and
    /// neither says anything that is kept here but that a scheme begins.
    fn read(text: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.is_empty() {
                // The end, or something that is no list of challenges.
                return found;
            }
            let Some(value) = after.trim_start_matches([' ', '\t']).strip_prefix('=') else {
                if found.is_some() {
                    return found;
                }
                found = word.eq_ignore_ascii_case("bearer").then(Self::default);
                rest = after;
                continue;
            };
            let (value, after) = value_of(value.trim_start_matches([' ', '\t']));
            rest = after;
            if let Some(challenge) = &mut found {
                challenge.set(word, value);
            }
        }
    }

    fn set(&mut self, name: &str, value: String) {
        let place = match name.to_ascii_lowercase().as_str() {
            "error" => &mut self.error,
            "scope" => &mut self.scope,
            "resource_metadata" => &mut self.resource_metadata,
            _ => return,
        };
        if value.len() <= VALUE_BYTES_MAX && !value.contains(char::is_control) {
            // The first one holds; a second one would be a guess.
            place.get_or_insert(value);
        }
    }
}

/// A value, quoted or not, and what stands behind it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        // What is left of a `token68` ends here too.
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (value.to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next()),
            other => value.push(other),
        }
    }
    (value, characters.as_str())
}

/// RFC 9110 section 5.6.2.
const fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(
            character,
            '!' | '#' | '$' | '%' | '&' | '\'' | '*' | '+' | '-' | '.' | '^' | '_' | '`' | '|' | '~'
        )
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn words(challenge: &Challenge) -> [Option<&str>; 3] {
        [
            challenge.error.as_deref(),
            challenge.scope.as_deref(),
            challenge.resource_metadata.as_deref(),
        ]
    }

    #[test]
    fn auth_02_auth_04_auth_17_a_bearer_challenge_is_found_among_others() {
        let metadata = "https://h.example/.well-known/oauth-protected-resource/mcp";
        for (header, expected) in [
            ("Bearer", Some([None, None, None])),
            (
                r#"Bearer resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp""#,
                Some([None, None, Some(metadata)]),
            ),
            (
                r#"bearer realm="a, b=\"c\" Bearer x=1", error=invalid_token , scope = "files:read files:write""#,
                Some([Some("invalid_token"), Some("files:read files:write"), None]),
            ),
            (
                r#"Basic realm="x", Bearer scope="a", Digest scope="b""#,
                Some([None, Some("a"), None]),
            ),
            (
                r#"Negotiate YWJj==, Bearer error="insufficient_scope", error="other""#,
                Some([Some("insufficient_scope"), None, None]),
            ),
            (r#"Basic realm="Bearer scope=x""#, None),
            (r#"DPoP scope="a""#, None),
            ("scope=a", None),
            (
                r#"Bearer scope="not closed"#,
                Some([None, Some("not closed"), None]),
            ),
            ("Bearer (", Some([None, None, None])),
            ("", None),
        ] {
            let found = Challenge::read(header);
            assert_eq!(found.as_ref().map(words), expected, "{header}");
        }
        let mut headers = HeaderMap::new();
        headers.append(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=x"),
        );
        headers.append(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer scope=a"),
        );
        assert_eq!(Challenge::of(&headers).unwrap().scope.as_deref(), Some("a"));
        assert_eq!(Challenge::of(&HeaderMap::new()), None);
    }

    #[test]
    fn a_value_that_is_too_long_or_steers_a_terminal_is_left_out() {
        for (length, kept) in [(VALUE_BYTES_MAX, true), (VALUE_BYTES_MAX + 1, false)] {
            let text = format!("Bearer scope=\"{}\"", "s".repeat(length));
            assert_eq!(Challenge::read(&text).unwrap().scope.is_some(), kept, "{length}");
        }
        assert_eq!(Challenge::read("Bearer scope=\"a\tb\"").unwrap().scope, None);
    }
}
