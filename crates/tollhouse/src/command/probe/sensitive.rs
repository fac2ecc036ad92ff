//! What in an answer looks sensitive: key-like names, addresses of people, tokens, numbers of cards. It says where and
//! what, and keeps no value.

use catalog::Sensitive;
use model::Value;

/// Findings of one answer; more would not change the class.
const FINDINGS_MAX: usize = 50;

pub(super) fn in_answer(answer: &Value) -> Vec<Sensitive> {
    let mut found = Vec::new();
    walk(answer, &mut String::new(), &mut found);
    found
}

fn walk(value: &Value, pointer: &mut String, found: &mut Vec<Sensitive>) {
    if found.len() >= FINDINGS_MAX {
        return;
    }
    let mut below = |part: &str, value: &Value, found: &mut Vec<Sensitive>| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
        // A name says something only where there is something behind it.
        if openapi::is_sensitive_name(part) && !matches!(value, Value::Null | Value::Bool(_)) {
            found.push(Sensitive {
                pointer: pointer.clone(),
                what: "name".to_owned(),
            });
        }
        walk(value, pointer, found);
        pointer.truncate(length);
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| below(name, value, found)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(&index.to_string(), item, found);
            }
        }
        Value::String(text) => {
            if let Some(what) = looks_like(text) {
                found.push(Sensitive {
                    pointer: pointer.clone(),
                    what: what.to_owned(),
                });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What a text looks like.
fn looks_like(text: &str) -> Option<&'static str> {
    let words = || text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '<' | '>' | '"'));
    if words().any(is_email) {
        return Some("email");
    }
    if words().any(is_token) {
        return Some("token");
    }
    is_card(text).then_some("card")
}

fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty()
            && host.contains('.')
            && !host.starts_with('.')
            && !host.ends_with('.')
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
    })
}

/// Signed tokens, keys of well-known issuers, and private keys.
fn is_token(word: &str) -> bool {
    const PREFIXES: [&str; 9] = [
        "sk_live_",
        "sk_test_",
        "ghp_",
        "gho_",
        "github_pat_",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "glpat-",
    ];
    let is_signed = word.starts_with("eyJ") && word.matches('.').count() == 2 && word.len() > 40;
    is_signed
        || word.starts_with("-----BEGIN")
        || PREFIXES
            .iter()
            .any(|prefix| word.starts_with(prefix) && word.len() >= prefix.len() + 12)
}

/// A number of 13 to 19 digits, with spaces or hyphens in it, whose last digit is right (ISO/IEC 7812).
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-'));
    if !is_number || !(13..=19).contains(&digits.len()) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match index % 2 {
            0 => *digit,
            _ if *digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_tokens_and_cards_are_found_and_ordinary_texts_are_not() {
        for (text, what) in [
            ("ada@example.com", Some("email")),
            ("write to <ada@example.com>, please", Some("email")),
            ("ghp_0123456789abcdef", Some("token")),
            (
                "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLW9mLXNvbWU",
                Some("token"),
            ),
            ("-----BEGIN PRIVATE KEY-----", Some("token")),
            ("4111 1111 1111 1111", Some("card")),
            ("4111111111111112", None),
            ("1234", None),
            ("user@host", None),
            ("@ada", None),
            ("a@b.", None),
            ("eyJ.a.b", None),
            ("paid on 2026-11-30", None),
        ] {
            assert_eq!(looks_like(text), what, "{text}");
        }
    }

    #[test]
    fn a_finding_says_where_and_keeps_no_value() {
        let answer =
            serde_json::json!({"a/b": [{"mail": "ada@example.com"}], "password": "x", "token": null});
        let found: Vec<(String, String)> = in_answer(&answer)
            .into_iter()
            .map(|one| (one.pointer, one.what))
            .collect();
        assert!(
            found.contains(&("/a~1b/0/mail".to_owned(), "email".to_owned())),
            "{found:?}"
        );
        assert!(
            found.contains(&("/password".to_owned(), "name".to_owned())),
            "{found:?}"
        );
        assert!(!found.iter().any(|(pointer, _)| pointer == "/token"), "{found:?}");
        let many: Value = (0..100).map(|_| Value::from("a@b.example")).collect();
        assert_eq!(in_answer(&many).len(), FINDINGS_MAX);
    }
}
