//! What is told of an error of a service: the status, what a problem document says in its known fields, when to try again.
//!
//! Free text of servers, which holds stack traces, stays here; what is told can be read by a model and acted on.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Value;

/// Faults of single fields that are told.
const FIELDS_MAX: usize = 5;

/// What the operator wrote for a status: its own text, or that of its hundred.
pub(crate) fn written(errors: &BTreeMap<String, String>, status: u16) -> Option<&str> {
    let hundred = format!("{}xx", status / 100);
    errors
        .get(&status.to_string())
        .or_else(|| errors.get(&hundred))
        .map(String::as_str)
}

/// Everything that a problem document says and that may be told, sentence by sentence, not yet cut.
pub(crate) fn sentences(problem: &Value) -> Vec<String> {
    let mut said: Vec<String> = problem_text(problem).into_iter().collect();
    for (field, text) in fields(problem).into_iter().take(FIELDS_MAX) {
        let sentence = match field {
            Some(field) => format!("`{field}`: {text}"),
            None => text,
        };
        // What the document says of the whole is often its first fault again.
        if !said.iter().any(|other| sentence.ends_with(other.as_str())) {
            said.push(sentence);
        } else if said.len() == 1 {
            said = vec![sentence];
        }
    }
    said
}

/// When to try again, where the service says so.
pub(crate) fn again(after: Duration) -> String {
    let seconds = after.as_secs();
    let noun = if seconds == 1 { "second" } else { "seconds" };
    format!("; try again in {seconds} {noun}")
}

/// Faults of single fields, in the forms in common use: a list of objects under `errors` or `detail`, each with a text and
/// a place (RFC 9457 section 3, JSON:API, FastAPI), or an object of texts by field (ASP.NET, Rails, Laravel).
fn fields(problem: &Value) -> Vec<(Option<String>, String)> {
    let lists = [
        "/errors",
        "/detail",
        "/invalid_params",
        "/invalid-params",
        "/error/details",
    ];
    let mut found = Vec::new();
    for faults in lists.iter().filter_map(|place| problem.pointer(place)) {
        match faults {
            Value::Array(items) => found.extend(items.iter().take(FIELDS_MAX).filter_map(of_item)),
            Value::Object(by_field) => {
                for (field, faults) in by_field.iter().take(FIELDS_MAX) {
                    let first = match faults {
                        Value::Array(texts) => texts.first().and_then(Value::as_str),
                        other => other.as_str(),
                    };
                    if let Some(text) = first.and_then(clean) {
                        found.push((clean(field), text));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn of_item(item: &Value) -> Option<(Option<String>, String)> {
    if let Some(text) = item.as_str() {
        return Some((None, clean(text)?));
    }
    let text = ["/detail", "/message", "/msg", "/reason", "/title"]
        .iter()
        .find_map(|place| item.pointer(place)?.as_str())?;
    let place = [
        "/field",
        "/pointer",
        "/path",
        "/param",
        "/name",
        "/source/pointer",
        "/source/parameter",
        "/loc",
    ]
    .iter()
    .find_map(|place| of_place(item.pointer(place)?));
    Some((place, clean(text)?))
}

/// The name of a field: as a text, a pointer, or the steps to it.
fn of_place(place: &Value) -> Option<String> {
    let text = match place {
        Value::String(text) => text.trim_start_matches(['#', '/']).to_owned(),
        Value::Array(steps) => steps
            .iter()
            .take(8)
            .map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join("."),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    clean(&text).filter(|text| !text.is_empty())
}

/// The longest text of a problem document that is told.
const PROBLEM_CHARACTERS_MAX: usize = 300;

/// What a problem document says, from the fields where services put a sentence for people (RFC 9457; `error.message`
/// and `message` in common use).
fn problem_text(problem: &Value) -> Option<String> {
    const FIELDS: [&str; 7] = [
        "/detail",
        "/title",
        "/error/message",
        "/message",
        "/error_description",
        "/errors/0/message",
        "/error",
    ];
    let said = FIELDS
        .iter()
        .find_map(|field| problem.pointer(field).and_then(Value::as_str))?;
    clean(said)
}

/// A text without what is not seen. `None` where it is a stack trace.
fn clean(said: &str) -> Option<String> {
    let text = said
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .filter(|c| !matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}'))
        .collect();
    (!looks_like_a_trace(said)).then_some(text)
}

/// The beginning of a text.
pub(crate) fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(PROBLEM_CHARACTERS_MAX) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// A message that carries a stack trace tells of the inside of the service and nothing that a model could act on.
fn looks_like_a_trace(text: &str) -> bool {
    text.contains("\n    at ")
        || text.contains("\n\tat ")
        || text.contains("Traceback (most recent call last)")
        || text.contains("stack backtrace:")
        || text.contains("panicked at ")
}

/// A status with the words that RFC 9110 gives it, for the ones that a model meets.
pub(crate) fn status_text(status: u16) -> String {
    let words = match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        423 => "Locked",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return status.to_string(),
    };
    format!("{status} {words}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_is_told_from_its_known_fields_only() {
        for (problem, said) in [
            (
                json!({"title":"Out of stock","detail":"only 3 left"}),
                Some("only 3 left"),
            ),
            (
                json!({"error":{"code":7,"message":"no such invoice"}}),
                Some("no such invoice"),
            ),
            (json!({"error":"invalid_request"}), Some("invalid_request")),
            (json!({"errors":[{"message":"bad date"}]}), Some("bad date")),
            (json!({"stack":"at main.js:1","debug":"secret"}), None),
            (json!(["x"]), None),
            (json!({"message": 7}), None),
        ] {
            assert_eq!(problem_text(&problem).as_deref(), said, "{problem}");
        }
    }

    #[test]
    fn a_stack_trace_and_hidden_characters_do_not_leave() {
        let trace = "TypeError: x\n    at Object.<anonymous> (/srv/app/index.js:10:5)";
        assert_eq!(problem_text(&json!({ "message": trace })), None);
        assert_eq!(
            problem_text(&json!({ "message": "Traceback (most recent call last):\n File" })),
            None
        );
        assert_eq!(
            problem_text(&json!({"message":"a\u{200B}b\u{202E}c\nd\u{E0041}"})).as_deref(),
            Some("abc d")
        );
    }

    #[test]
    fn a_long_problem_is_cut_at_its_limit() {
        let text = |length: usize| cut("x".repeat(length));
        assert_eq!(text(300), "x".repeat(300));
        assert_eq!(text(301), format!("{}…", "x".repeat(300)));
    }

    #[test]
    fn faults_of_single_fields_are_told_with_their_place_in_every_common_form() {
        for (problem, said) in [
            (
                json!({"title":"Invalid","errors":[{"detail":"must be positive","pointer":"#/amount"}]}),
                vec!["Invalid", "`amount`: must be positive"],
            ),
            (
                json!({"detail":[{"loc":["body","due"],"msg":"not a date","type":"x"}]}),
                vec!["`body.due`: not a date"],
            ),
            (
                json!({"title":"One or more faults","errors":{"Due":["is in the past","x"],"Id":"is missing"}}),
                vec!["One or more faults", "`Due`: is in the past", "`Id`: is missing"],
            ),
            (
                json!({"errors":[{"message":"bad date","field":"due"}]}),
                vec!["`due`: bad date"],
            ),
            (json!({"errors":["first","second"]}), vec!["first", "second"]),
            (
                json!({"errors":[{"detail":"panicked at src/main.rs:1","pointer":"#/x"}]}),
                vec![],
            ),
            (json!({"errors":[{"code":7}], "detail":{"a":{"b":1}}}), vec![]),
        ] {
            assert_eq!(sentences(&problem), said, "{problem}");
        }
        let many: Vec<Value> = (0..20)
            .map(|n| json!({"field": n.to_string(), "message": "m"}))
            .collect();
        assert_eq!(sentences(&json!({ "errors": many })).len(), FIELDS_MAX);
    }

    #[test]
    fn the_operators_words_for_a_status_come_before_those_for_its_hundred() {
        let errors = [("404", "gone"), ("4xx", "wrong")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let errors = BTreeMap::from(errors);
        assert_eq!(written(&errors, 404), Some("gone"));
        assert_eq!(written(&errors, 409), Some("wrong"));
        assert_eq!(written(&errors, 500), None);
    }
}
