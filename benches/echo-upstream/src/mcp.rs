//! The MCP face, without a transport: one message in, one reply out. Both eras, told apart by the message itself.
//!
//! Only what a benchmark needs: opening, `ping`, `tools/list`, `tools/call`. Everything else is an unknown method.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::count::Kind;
use crate::echo::{Asked, Echo, Echoed, tool_name};

/// The revision of the modern era.
pub(crate) const MODERN: &str = "2026-07-28";
/// The newest revision of the legacy era, and those before it.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A message, as far as this server reads it.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta", default)]
    meta: Meta<'a>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Asked<'a>>,
    #[serde(borrow, rename = "protocolVersion")]
    revision: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "progressToken")]
    progress: Option<&'a RawValue>,
}

/// What the HTTP transport has to know beside the body.
#[derive(Default)]
pub(crate) struct Headers<'a> {
    pub(crate) revision: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
}

/// The reply to one message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The HTTP status that it rides on.
    pub(crate) status: u16,
    /// The response message; empty for a notification.
    pub(crate) body: Vec<u8>,
    /// A session that was opened.
    pub(crate) session: Option<String>,
    /// The progress token, where the call is to be answered with events first.
    pub(crate) progress: Option<String>,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

#[derive(Serialize)]
struct CallResult<'a> {
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    content: [Text<'a>; 1],
    #[serde(rename = "structuredContent")]
    structured: &'a Echoed<'a>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// A JSON-RPC error and the HTTP status that it rides on.
struct Failure {
    status: u16,
    code: i32,
    message: &'static str,
}

const fn failure(status: u16, code: i32, message: &'static str) -> Failure {
    Failure {
        status,
        code,
        message,
    }
}

/// Answers one message. `headers` is `None` on stdio, where there are none to check.
pub(crate) fn answer(echo: &Echo, bytes: &[u8], headers: Option<&Headers<'_>>) -> Reply {
    let message: Message<'_> = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        Err(_) => {
            echo.counts().add(Kind::Other);
            let failure = failure(400, -32600, "this server does not understand the message");
            return refuse(None, &failure);
        }
    };
    let method = message.method.as_deref().unwrap_or_default();
    echo.counts().add(match method {
        "tools/call" => Kind::ToolCall,
        "tools/list" => Kind::ToolList,
        "initialize" | "server/discover" => Kind::Opening,
        _ => Kind::Other,
    });
    let Some(id) = message.id else {
        return Reply {
            status: 202,
            body: Vec::new(),
            session: None,
            progress: None,
        };
    };
    let answered = if message.jsonrpc == "2.0" {
        dispatch(echo, id, method, &message.params, headers)
    } else {
        Err(failure(400, -32600, "jsonrpc is not 2.0"))
    };
    answered.unwrap_or_else(|failure| refuse(Some(id), &failure))
}

fn dispatch(
    echo: &Echo,
    id: &RawValue,
    method: &str,
    params: &Params<'_>,
    headers: Option<&Headers<'_>>,
) -> Result<Reply, Failure> {
    let modern = params.meta.revision.is_some();
    if let Some(headers) = headers {
        if modern {
            check_modern(method, params, headers)?;
        } else if method != "initialize" {
            check_session(echo, headers)?;
        }
    }
    match (method, modern) {
        ("tools/call", _) => call(echo, id, params, modern),
        ("tools/list", _) => Ok(reply(id, &list(echo, modern))),
        ("server/discover", true) => Ok(reply(id, &discovered())),
        ("initialize", false) => {
            let mut reply = reply(id, &initialized(params.revision.as_deref()));
            reply.session = headers.map(|_| echo.open_session());
            Ok(reply)
        }
        ("ping", false) => Ok(reply(id, &json!({}))),
        _ => Err(failure(404, -32601, "unknown method")),
    }
}

/// A modern server checks that headers and body say the same; leaving that out would flatter whoever sends them wrong.
fn check_modern(method: &str, params: &Params<'_>, headers: &Headers<'_>) -> Result<(), Failure> {
    let revision = params.meta.revision.as_deref();
    if headers.revision != revision {
        return Err(failure(
            400,
            -32020,
            "MCP-Protocol-Version is not that of the body",
        ));
    }
    if revision != Some(MODERN) {
        return Err(failure(400, -32022, "unsupported protocol version"));
    }
    if headers.method != Some(method) {
        return Err(failure(400, -32020, "Mcp-Method is not that of the body"));
    }
    if method == "tools/call" && headers.name != params.name.as_deref() {
        return Err(failure(400, -32020, "Mcp-Name is not that of the body"));
    }
    Ok(())
}

fn check_session(echo: &Echo, headers: &Headers<'_>) -> Result<(), Failure> {
    match headers.session {
        None => Err(failure(400, -32600, "no session")),
        Some(id) if echo.has_session(id) => Ok(()),
        Some(_) => Err(failure(404, -32600, "unknown session")),
    }
}

fn call(echo: &Echo, id: &RawValue, params: &Params<'_>, modern: bool) -> Result<Reply, Failure> {
    if !params.name.as_deref().is_some_and(|name| echo.has_tool(name)) {
        return Err(failure(400, -32602, "unknown tool"));
    }
    let Some(asked) = &params.arguments else {
        return Err(failure(400, -32602, "the arguments are text and nonce"));
    };
    let echoed = echo.answer(asked);
    let text = serde_json::to_string(&echoed).map_err(|_| failure(500, -32603, "no answer"))?;
    let result = CallResult {
        kind: modern.then_some("complete"),
        content: [Text {
            r#type: "text",
            text: &text,
        }],
        structured: &echoed,
    };
    let mut reply = reply(id, &result);
    if echo.shape().events > 0 {
        reply.progress = params.meta.progress.map(|token| token.get().to_owned());
    }
    Ok(reply)
}

fn list(echo: &Echo, modern: bool) -> Value {
    let tools: Vec<Value> = (1..=echo.shape().tools).map(tool).collect();
    if modern {
        json!({ "resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public" })
    } else {
        json!({ "tools": tools })
    }
}

fn tool(n: u16) -> Value {
    json!({
        "name": tool_name(n),
        "description": "Gives the text back, with the nonce of the call and a running number.",
        "inputSchema": {
            "type": "object",
            "properties": { "text": { "type": "string" }, "nonce": { "type": "string" } },
            "required": ["text", "nonce"],
            "additionalProperties": false,
        },
    })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {} },
        "ttlMs": 60_000,
        "cacheScope": "public",
    })
}

fn initialized(asked: Option<&str>) -> Value {
    let revision = LEGACY
        .into_iter()
        .find(|revision| Some(*revision) == asked)
        .unwrap_or("2025-11-25");
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "echo-upstream", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn reply(id: &RawValue, result: &impl Serialize) -> Reply {
    let response = Response {
        jsonrpc: "2.0",
        id,
        result,
    };
    match serde_json::to_vec(&response) {
        Ok(body) => Reply {
            status: 200,
            body,
            session: None,
            progress: None,
        },
        Err(_) => refuse(Some(id), &failure(500, -32603, "no answer")),
    }
}

fn refuse(id: Option<&RawValue>, failure: &Failure) -> Reply {
    let id = id.map_or_else(String::new, |id| format!("\"id\":{},", id.get()));
    let Failure {
        status,
        code,
        message,
    } = failure;
    let error = json!({ "code": code, "message": message });
    Reply {
        status: *status,
        body: format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{error}}}").into_bytes(),
        session: None,
        progress: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::Shape;

    fn echo() -> Echo {
        Echo::new(Shape {
            tools: 2,
            events: 3,
            ..Shape::default()
        })
    }

    fn modern(method: &str, params: &str) -> Vec<u8> {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{method}\",\"params\":{{\"_meta\":{{\
             \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
             \"io.modelcontextprotocol/clientCapabilities\":{{}}}}{params}}}}}"
        )
        .into_bytes()
    }

    const CALL: &str = ",\"name\":\"echo\",\"arguments\":{\"text\":\"a\\\"b\",\"nonce\":\"n1\"}";

    fn json(reply: &Reply) -> Value {
        serde_json::from_slice(&reply.body).unwrap()
    }

    #[test]
    fn a_call_gives_back_its_id_its_text_and_its_nonce() {
        let echo = echo();
        for (bytes, kind) in [
            (modern("tools/call", CALL), json!("complete")),
            (
                br#"{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":{"name":"echo2","arguments":{"text":"a\"b","nonce":"n1"}}}"#.to_vec(),
                Value::Null,
            ),
        ] {
            let reply = answer(&echo, &bytes, None);
            let asked: Value = serde_json::from_slice(&bytes).unwrap();
            let answered = json(&reply);
            assert_eq!(reply.status, 200);
            assert_eq!(answered["id"], asked["id"]);
            let result = &answered["result"];
            assert_eq!(result["resultType"], kind);
            assert_eq!(result["structuredContent"]["text"], "a\"b");
            assert_eq!(result["structuredContent"]["nonce"], "n1");
            let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(text, result["structuredContent"]);
        }
    }

    #[test]
    fn each_call_has_its_own_number() {
        let echo = echo();
        let seq = || {
            json(&answer(&echo, &modern("tools/call", CALL), None))["result"]["structuredContent"]["seq"]
                .clone()
        };
        assert_eq!((seq(), seq()), (json!(0), json!(1)));
    }

    #[test]
    fn headers_that_disagree_with_the_body_are_refused() {
        let echo = echo();
        let good = || Headers {
            revision: Some(MODERN),
            method: Some("tools/call"),
            name: Some("echo"),
            session: None,
        };
        let body = modern("tools/call", CALL);
        assert_eq!(answer(&echo, &body, Some(&good())).status, 200);
        for bad in [
            Headers {
                revision: None,
                ..good()
            },
            Headers {
                revision: Some("2025-11-25"),
                ..good()
            },
            Headers {
                method: Some("tools/list"),
                ..good()
            },
            Headers {
                method: None,
                ..good()
            },
            Headers {
                name: Some("echo2"),
                ..good()
            },
            Headers { name: None, ..good() },
        ] {
            let reply = answer(&echo, &body, Some(&bad));
            assert_eq!(
                (reply.status, json(&reply)["error"]["code"].clone()),
                (400, json!(-32020))
            );
        }
    }

    #[test]
    fn a_legacy_call_needs_a_session_that_was_opened() {
        let echo = echo();
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let with = |session: Option<&str>| {
            answer(
                &echo,
                call,
                Some(&Headers {
                    session,
                    ..Headers::default()
                }),
            )
            .status
        };
        assert_eq!((with(None), with(Some("echo-0"))), (400, 404));
        let open =
            br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
        let opened = answer(&echo, open, Some(&Headers::default()));
        assert_eq!(json(&opened)["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(with(opened.session.as_deref()), 200);
    }

    #[test]
    fn initialize_with_a_revision_it_does_not_speak_offers_the_newest_legacy_one() {
        for asked in ["2026-07-28", "1999-01-01"] {
            let open = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"{asked}\"}}}}"
            );
            let opened = answer(&echo(), open.as_bytes(), None);
            assert_eq!(json(&opened)["result"]["protocolVersion"], "2025-11-25");
        }
    }

    #[test]
    fn what_it_cannot_do_is_an_error_with_the_id_of_the_call() {
        let echo = echo();
        for (body, code) in [
            (modern("resources/list", ""), -32601),
            (modern("initialize", ""), -32601),
            (
                modern(
                    "tools/call",
                    ",\"name\":\"echo3\",\"arguments\":{\"text\":\"\",\"nonce\":\"\"}",
                ),
                -32602,
            ),
            (modern("tools/call", ",\"name\":\"echo\""), -32602),
            (br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#.to_vec(), -32600),
        ] {
            let answered = json(&answer(&echo, &body, None));
            assert_eq!(
                (&answered["error"]["code"], &answered["id"]),
                (&json!(code), &json!(7))
            );
        }
        for body in [
            &b"{"[..],
            b"[]",
            b"",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"params\":3}",
        ] {
            let answered = json(&answer(&echo, body, None));
            assert_eq!(answered["error"]["code"], -32600);
            assert!(answered.get("id").is_none());
        }
    }

    #[test]
    fn a_notification_gets_no_message_back() {
        let reply = answer(
            &echo(),
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            None,
        );
        assert_eq!((reply.status, reply.body.len()), (202, 0));
    }

    #[test]
    fn progress_is_for_calls_that_carry_a_token() {
        let echo = echo();
        assert_eq!(answer(&echo, &modern("tools/call", CALL), None).progress, None);
        let with = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"echo","arguments":{"text":"","nonce":""}}}"#;
        assert_eq!(answer(&echo, with, None).progress.as_deref(), Some("\"p\""));
    }

    #[test]
    fn the_list_has_as_many_tools_as_were_asked_for() {
        let answered = json(&answer(&echo(), &modern("tools/list", ""), None));
        let names: Vec<_> = answered["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["echo", "echo2"]);
    }
}
