//! What is verified of an answer: status, type, id, and that the content is that of this call and no other.

use std::borrow::Cow;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::script::{Expected, Face};

/// Why a call does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No connection, or it broke.
    Connection(String),
    /// No answer within the time that a call may take.
    Timeout,
    /// The body is longer than a limit, or broke off.
    Body,
    /// Another status than 200.
    Status(u16),
    /// Neither JSON nor an event stream.
    ContentType,
    /// Not the JSON that was expected.
    Shape(String),
    /// The answer of another call, or of none.
    Id,
    /// A JSON-RPC error.
    Rpc(String),
    /// The tool says that it failed.
    ToolFailed,
    /// The nonce is missing or that of another call.
    Nonce,
    /// The text is missing or was changed.
    Text,
    /// Another number of progress events than asked for, or events of another call.
    Events { expected: u32, found: u32 },
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Progress<'a>>,
    #[serde(borrow)]
    result: Option<CallResult<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Progress<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow, rename = "resultType")]
    kind: Option<Cow<'a, str>>,
    #[serde(rename = "isError", default)]
    is_error: bool,
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<Echoed<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Echoed<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    nonce: Cow<'a, str>,
}

/// Verifies one answer.
///
/// # Errors
/// The first [`Fault`] that is found.
pub(crate) fn verify(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    expected: &Expected,
) -> Result<(), Fault> {
    if status != StatusCode::OK {
        return Err(Fault::Status(status.as_u16()));
    }
    match (media_type(headers), expected.face) {
        ("application/json", Face::HttpPlain) => echoed(body)?.check(expected),
        ("application/json", Face::McpModern | Face::McpLegacy) => {
            if expected.events > 0 {
                return Err(Fault::Events {
                    expected: expected.events,
                    found: 0,
                });
            }
            message(body)?.check(expected)
        }
        ("text/event-stream", Face::McpModern | Face::McpLegacy) => stream(body, expected),
        _ => Err(Fault::ContentType),
    }
}

fn media_type(headers: &HeaderMap) -> &str {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
}

fn message(body: &[u8]) -> Result<Response<'_>, Fault> {
    serde_json::from_slice(body).map_err(|error| Fault::Shape(error.to_string()))
}

fn echoed(body: &[u8]) -> Result<Echoed<'_>, Fault> {
    serde_json::from_slice(body).map_err(|error| Fault::Shape(error.to_string()))
}

/// An event stream: progress of this call, as many events as asked for, and its response last.
fn stream(body: &[u8], expected: &Expected) -> Result<(), Fault> {
    let text = std::str::from_utf8(body).map_err(|error| Fault::Shape(error.to_string()))?;
    let mut found = 0;
    let mut data = String::new();
    let mut answered = None;
    // The empty line at the end closes an event that the server forgot to close; then it is judged like the others.
    for line in text.lines().chain([""]) {
        if let Some(rest) = line.strip_prefix("data:") {
            data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        }
        if !line.is_empty() || data.is_empty() {
            continue;
        }
        let message = message(data.as_bytes())?;
        match message.method.as_deref() {
            Some("notifications/progress") => {
                message.check_progress(expected)?;
                found += 1;
            }
            // Other notifications may ride along; they are none of the call's business.
            Some(_) => {}
            None if answered.is_some() => return Err(Fault::Id),
            None => {
                message.check(expected)?;
                answered = Some(());
            }
        }
        data.clear();
    }
    if answered.is_none() {
        return Err(Fault::Id);
    }
    if found == expected.events {
        Ok(())
    } else {
        Err(Fault::Events {
            expected: expected.events,
            found,
        })
    }
}

// === impl Response ===

impl Response<'_> {
    fn check(&self, expected: &Expected) -> Result<(), Fault> {
        if self.jsonrpc != "2.0" {
            return Err(Fault::Shape("jsonrpc is not 2.0".to_owned()));
        }
        if let Some(error) = self.error {
            return Err(Fault::Rpc(error.get().chars().take(200).collect()));
        }
        if self.id.map(RawValue::get) != Some(expected.id.as_str()) {
            return Err(Fault::Id);
        }
        match &self.result {
            None => Err(Fault::Shape("neither result nor error".to_owned())),
            Some(result) => result.check(expected),
        }
    }

    fn check_progress(&self, expected: &Expected) -> Result<(), Fault> {
        let token = self.params.as_ref().and_then(|params| params.token);
        if token.map(RawValue::get) == Some(expected.id.as_str()) {
            Ok(())
        } else {
            Err(Fault::Events {
                expected: expected.events,
                found: 0,
            })
        }
    }
}

// === impl CallResult ===

impl CallResult<'_> {
    /// The result is complete and not an error; every echo in it is that of this call; and there is at least one.
    fn check(&self, expected: &Expected) -> Result<(), Fault> {
        if self.is_error {
            return Err(Fault::ToolFailed);
        }
        let complete = match expected.face {
            Face::McpModern => self.kind.as_deref() == Some("complete"),
            Face::McpLegacy | Face::HttpPlain => true,
        };
        if !complete {
            return Err(Fault::Shape("resultType is not complete".to_owned()));
        }
        if let Some(structured) = &self.structured {
            structured.check(expected)?;
        }
        let mut texts = 0;
        for text in self.content.iter().filter_map(|block| block.text.as_deref()) {
            echoed(text.as_bytes())?.check(expected)?;
            texts += 1;
        }
        if texts == 0 { Err(Fault::Text) } else { Ok(()) }
    }
}

// === impl Echoed ===

impl Echoed<'_> {
    fn check(&self, expected: &Expected) -> Result<(), Fault> {
        if self.nonce != expected.nonce {
            return Err(Fault::Nonce);
        }
        if self.text != expected.text {
            return Err(Fault::Text);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use serde_json::{Value, json};

    fn expected(face: Face, events: u32) -> Expected {
        Expected {
            face,
            id: "7".to_owned(),
            nonce: "n7".to_owned(),
            text: "t7".to_owned(),
            events,
        }
    }

    fn check(face: Face, events: u32, media: &'static str, body: &str) -> Result<(), Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        verify(StatusCode::OK, &headers, body.as_bytes(), &expected(face, events))
    }

    fn good() -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": 7,
            "result": {
                "resultType": "complete",
                "content": [{ "type": "text", "text": "{\"text\":\"t7\",\"nonce\":\"n7\",\"seq\":3}" }],
                "structuredContent": { "text": "t7", "nonce": "n7", "seq": 3 },
            },
        })
    }

    #[test]
    fn the_right_answer_is_verified() {
        let plain = r#"{"text":"t7","nonce":"n7","seq":0}"#;
        assert_eq!(
            check(Face::HttpPlain, 0, "application/json; charset=utf-8", plain),
            Ok(())
        );
        let body = good().to_string();
        for face in [Face::McpModern, Face::McpLegacy] {
            assert_eq!(check(face, 0, "application/json", &body), Ok(()));
        }
    }

    #[test]
    fn each_way_to_be_wrong_is_a_fault_of_its_own() {
        let text = |text: &str| json!([{ "type": "text", "text": text }]);
        let cases: Vec<(&str, Value, Fault)> = vec![
            ("/id", json!(8), Fault::Id),
            ("/id", json!("7"), Fault::Id),
            ("/id", Value::Null, Fault::Id),
            ("/result/isError", json!(true), Fault::ToolFailed),
            ("/result/structuredContent/nonce", json!("n8"), Fault::Nonce),
            ("/result/structuredContent/text", json!("t8"), Fault::Text),
            (
                "/result/content",
                text(r#"{"text":"t7","nonce":"n8"}"#),
                Fault::Nonce,
            ),
            (
                "/result/content",
                text(r#"{"text":"t","nonce":"n7"}"#),
                Fault::Text,
            ),
            ("/result/content", json!([]), Fault::Text),
            (
                "/result/content",
                json!([{ "type": "image", "data": "" }]),
                Fault::Text,
            ),
            (
                "/error",
                json!({ "code": -1, "message": "no" }),
                Fault::Rpc(r#"{"code":-1,"message":"no"}"#.to_owned()),
            ),
        ];
        for (pointer, value, fault) in cases {
            let mut body = good();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[key] = value.clone();
            let found = check(Face::McpModern, 0, "application/json", &body.to_string());
            assert_eq!(found, Err(fault), "{pointer} = {value}");
        }
        for (pointer, value) in [
            ("/jsonrpc", json!("1.0")),
            ("/result/resultType", json!("input_required")),
            ("/result/resultType", Value::Null),
            ("/result", Value::Null),
            ("/result/content", text("no json")),
            ("/result/structuredContent", json!({ "text": "t7" })),
        ] {
            let mut body = good();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[key] = value.clone();
            let found = check(Face::McpModern, 0, "application/json", &body.to_string());
            assert!(
                matches!(found, Err(Fault::Shape(_))),
                "{pointer} = {value}: {found:?}"
            );
        }
        for body in ["", "{", "[]", "null"] {
            let found = check(Face::McpModern, 0, "application/json", body);
            assert!(found.is_err(), "{body}");
            assert!(
                check(Face::HttpPlain, 0, "application/json", body).is_err(),
                "{body}"
            );
        }
    }

    #[test]
    fn another_status_or_type_is_a_fault_whatever_the_body_says() {
        let body = good().to_string();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for status in [StatusCode::ACCEPTED, StatusCode::BAD_GATEWAY, StatusCode::FOUND] {
            let found = verify(status, &headers, body.as_bytes(), &expected(Face::McpModern, 0));
            assert_eq!(found, Err(Fault::Status(status.as_u16())));
        }
        assert_eq!(
            check(Face::McpModern, 0, "text/html", &body),
            Err(Fault::ContentType)
        );
        let plain = r#"{"text":"t7","nonce":"n7"}"#;
        assert_eq!(
            check(Face::HttpPlain, 0, "text/event-stream", plain),
            Err(Fault::ContentType)
        );
    }

    #[test]
    fn a_stream_has_the_events_asked_for_and_one_answer() {
        let progress = |token: u32| {
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":1}}}}\n\n"
            )
        };
        let answer = format!("event: message\r\ndata: {}\r\n\r\n", good());
        let comment = ": keep-alive\n\n";
        let other = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
        let stream = |parts: &[&str]| check(Face::McpModern, 2, "text/event-stream", &parts.concat());
        let (mine, foreign) = (progress(7), progress(8));
        assert_eq!(stream(&[&mine, comment, other, &mine, &answer]), Ok(()));
        assert_eq!(stream(&[&mine, &mine, answer.trim_end()]), Ok(()));
        for (parts, fault) in [
            (
                vec![&*mine, &*answer],
                Fault::Events {
                    expected: 2,
                    found: 1,
                },
            ),
            (
                vec![&*mine, &*mine, &*mine, &*answer],
                Fault::Events {
                    expected: 2,
                    found: 3,
                },
            ),
            (
                vec![&*mine, &*foreign, &*answer],
                Fault::Events {
                    expected: 2,
                    found: 0,
                },
            ),
            (vec![&*mine, &*mine], Fault::Id),
            (vec![&*mine, &*mine, &*answer, &*answer], Fault::Id),
            (vec![], Fault::Id),
        ] {
            assert_eq!(stream(&parts), Err(fault), "{parts:?}");
        }
        let unasked = check(Face::McpModern, 2, "application/json", &good().to_string());
        assert_eq!(
            unasked,
            Err(Fault::Events {
                expected: 2,
                found: 0
            })
        );
    }
}
