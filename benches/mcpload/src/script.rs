//! What is sent: one call after another, each with arguments of its own, and what has to come back for it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::place::Place;

/// The revision that modern calls are made in.
const MODERN: &str = "2026-07-28";
/// The revision that legacy sessions are opened with.
const LEGACY: &str = "2025-11-25";

const REVISION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// How a target is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Face {
    /// `POST {"text":…,"nonce":…}`, answered with the same fields
    HttpPlain,
    /// `tools/call` of revision 2026-07-28: no session, everything in the request
    McpModern,
    /// `tools/call` of revision 2025-11-25, in a session of each worker
    McpLegacy,
}

impl Face {
    /// The name as the command line writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::HttpPlain => "http-plain",
            Self::McpModern => "mcp-modern",
            Self::McpLegacy => "mcp-legacy",
        }
    }
}

/// What to send, as the command line says.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScriptOptions {
    /// How the target is spoken to
    #[arg(long, value_enum, default_value_t = Face::HttpPlain)]
    pub(crate) face: Face,

    /// The tool to call, as the target lists it
    #[arg(long, value_name = "NAME", default_value = "echo")]
    pub(crate) tool: String,

    /// Length of the text in each call
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=16 << 20))]
    pub(crate) bytes: u32,

    /// Ask for progress, and expect so many progress events with each answer
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) events: u32,

    /// Send one more argument with each call of a tool, a text; may be given several times
    #[arg(long = "argument", value_name = "NAME=VALUE", value_parser = argument)]
    pub(crate) arguments: Vec<(String, String)>,

    /// Send the content of this file as bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "bearer_env")]
    pub(crate) bearer_file: Option<PathBuf>,

    /// Send the value of this environment variable as bearer token
    #[arg(long, value_name = "NAME")]
    pub(crate) bearer_env: Option<String>,
}

/// The calls of one run.
pub(crate) struct Script {
    face: Face,
    place: Place,
    tool: String,
    headers: HeaderMap,
    /// As long as a text; the number of the call takes the place of its end.
    padding: String,
    events: u32,
    arguments: BTreeMap<String, String>,
    /// Makes the nonces of this run differ from those of any other.
    run: u32,
}

/// What has to come back for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) face: Face,
    /// The JSON-RPC id, and the progress token, as JSON text.
    pub(crate) id: String,
    pub(crate) nonce: String,
    pub(crate) text: String,
    pub(crate) events: u32,
}

#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta,
    name: &'a str,
    arguments: Arguments<'a>,
}

#[derive(Serialize)]
struct Arguments<'a> {
    text: &'a str,
    nonce: &'a str,
    #[serde(flatten)]
    more: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Meta {
    #[serde(
        rename = "io.modelcontextprotocol/protocolVersion",
        skip_serializing_if = "Option::is_none"
    )]
    revision: Option<&'static str>,
    #[serde(
        rename = "io.modelcontextprotocol/clientInfo",
        skip_serializing_if = "Option::is_none"
    )]
    client: Option<Client>,
    #[serde(
        rename = "io.modelcontextprotocol/clientCapabilities",
        skip_serializing_if = "Option::is_none"
    )]
    capabilities: Option<Nothing>,
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    progress: Option<u64>,
}

#[derive(Serialize, Clone, Copy)]
struct Client {
    name: &'static str,
    version: &'static str,
}

/// `{}`
#[derive(Serialize, Clone, Copy)]
struct Nothing {}

const CLIENT: Client = Client {
    name: "mcpload",
    version: env!("CARGO_PKG_VERSION"),
};
const NOTHING: Nothing = Nothing {};

impl Meta {
    const fn is_empty(&self) -> bool {
        self.revision.is_none() && self.progress.is_none()
    }
}

impl Script {
    /// # Errors
    /// A token that cannot be read or is no header value; a progress count for a face that has no progress.
    pub(crate) fn new(options: &ScriptOptions, place: Place) -> anyhow::Result<Self> {
        if options.face == Face::HttpPlain && options.events > 0 {
            bail!("face `http-plain` has no progress events; leave out --events");
        }
        if options.face == Face::HttpPlain && !options.arguments.is_empty() {
            bail!("face `http-plain` calls no tool; leave out --argument");
        }
        let mut headers = HeaderMap::new();
        headers.insert(HOST, place.host().clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accept);
        if let Some(token) = bearer(options)? {
            headers.insert(AUTHORIZATION, token);
        }
        match options.face {
            Face::HttpPlain => {}
            Face::McpModern => {
                headers.insert(REVISION_HEADER, HeaderValue::from_static(MODERN));
                headers.insert(METHOD_HEADER, HeaderValue::from_static("tools/call"));
                let name = HeaderValue::from_str(&options.tool).with_context(|| {
                    format!("tool `{}` is no header value", options.tool.escape_default())
                })?;
                headers.insert(NAME_HEADER, name);
            }
            Face::McpLegacy => {
                headers.insert(REVISION_HEADER, HeaderValue::from_static(LEGACY));
            }
        }
        Ok(Self {
            face: options.face,
            place,
            tool: options.tool.clone(),
            headers,
            padding: "x".repeat(usize::try_from(options.bytes)?),
            events: options.events,
            arguments: options.arguments.iter().cloned().collect(),
            run: std::process::id(),
        })
    }

    pub(crate) const fn face(&self) -> Face {
        self.face
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// The n-th call and what has to come back for it.
    pub(crate) fn call(&self, n: u64, session: Option<&HeaderValue>) -> (Request<Full<Bytes>>, Expected) {
        let expected = Expected {
            face: self.face,
            id: n.to_string(),
            nonce: format!("{:x}-{n}", self.run),
            text: self.text(n),
            events: self.events,
        };
        let arguments = Arguments {
            text: &expected.text,
            nonce: &expected.nonce,
            more: &self.arguments,
        };
        let modern = self.face == Face::McpModern;
        let meta = Meta {
            revision: modern.then_some(MODERN),
            client: modern.then_some(CLIENT),
            capabilities: modern.then_some(NOTHING),
            progress: (self.events > 0).then_some(n),
        };
        let body = match self.face {
            Face::HttpPlain => serde_json::to_vec(&arguments),
            Face::McpModern | Face::McpLegacy => serde_json::to_vec(&Message {
                jsonrpc: "2.0",
                id: n,
                method: "tools/call",
                params: Params {
                    meta,
                    name: &self.tool,
                    arguments,
                },
            }),
        };
        // Structs of texts and numbers always serialise; an empty body would fail verification, not pass it.
        let body = body.unwrap_or_default();
        (self.request(body, session), expected)
    }

    /// The number stands at the end, so that a server that compares or caches by a prefix is found out.
    fn text(&self, n: u64) -> String {
        let number = n.to_string();
        let padding = self.padding.len().saturating_sub(number.len());
        format!("{}{number}", self.padding.get(..padding).unwrap_or_default())
    }

    /// The two messages that open a legacy session: `initialize`, and the notification that follows it.
    pub(crate) fn opening(&self, session: Option<&HeaderValue>) -> Request<Full<Bytes>> {
        let body = match session {
            None => json!({
                "jsonrpc": "2.0",
                "id": "open",
                "method": "initialize",
                "params": {
                    "protocolVersion": LEGACY,
                    "capabilities": {},
                    "clientInfo": { "name": "mcpload", "version": "0" },
                },
            }),
            Some(_) => json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        };
        let mut request = self.request(body.to_string().into_bytes(), session);
        if session.is_none() {
            // The revision is agreed on by this very message; the header comes with the next one.
            request.headers_mut().remove(REVISION_HEADER);
        }
        request
    }

    fn request(&self, body: Vec<u8>, session: Option<&HeaderValue>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.place.target();
        *request.headers_mut() = self.headers.clone();
        if let Some(session) = session {
            request.headers_mut().insert(SESSION_HEADER, session.clone());
        }
        request
    }
}

/// Parses `account=acc-1`.
pub(crate) fn argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !["", "text", "nonce"].contains(&name) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!(
            "argument `{text}` is none; write NAME=VALUE, as account=acc-1, with a name other than text and nonce"
        )),
    }
}

fn bearer(options: &ScriptOptions) -> anyhow::Result<Option<HeaderValue>> {
    let token = match (&options.bearer_file, &options.bearer_env) {
        (Some(path), _) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the token file `{}`", path.display()))?,
        (None, Some(name)) => {
            std::env::var(name).with_context(|| format!("environment variable `{name}` is not set"))?
        }
        (None, None) => return Ok(None),
    };
    // The token itself stays out of the error.
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim_end()))
        .ok()
        .context("the bearer token has characters that no header may have")?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use serde_json::Value;

    fn options(face: Face) -> ScriptOptions {
        ScriptOptions {
            face,
            tool: "bench_echo".to_owned(),
            bytes: 100,
            events: 0,
            arguments: Vec::new(),
            bearer_file: None,
            bearer_env: None,
        }
    }

    fn script(options: &ScriptOptions) -> Script {
        Script::new(options, "http://127.0.0.1:1/mcp".parse().unwrap()).unwrap()
    }

    async fn body(request: Request<Full<Bytes>>) -> Value {
        let bytes = request.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    #[tokio::test]
    async fn each_call_has_arguments_of_its_own_and_of_the_length_asked_for() {
        for face in [Face::HttpPlain, Face::McpModern, Face::McpLegacy] {
            let script = script(&options(face));
            let (first, one) = script.call(1, None);
            let (_, two) = script.call(2, None);
            assert_ne!(one.nonce, two.nonce);
            assert_ne!(one.text, two.text);
            assert_eq!(one.text.len(), 100);
            let body = body(first).await;
            let arguments = if face == Face::HttpPlain {
                &body
            } else {
                assert_eq!(body["id"].to_string(), one.id);
                assert_eq!(body["params"]["name"], "bench_echo");
                &body["params"]["arguments"]
            };
            assert_eq!(arguments, &json!({ "text": one.text, "nonce": one.nonce }));
        }
    }

    #[tokio::test]
    async fn a_call_has_the_arguments_that_were_asked_for_beside_its_own() {
        let mut options = options(Face::McpModern);
        options.arguments = vec![argument("account=acc-1").unwrap()];
        let (request, expected) = script(&options).call(1, None);
        assert_eq!(
            body(request).await["params"]["arguments"],
            json!({ "text": expected.text, "nonce": expected.nonce, "account": "acc-1" })
        );
        assert_eq!(argument("query=a=b"), Ok(("query".to_owned(), "a=b".to_owned())));
        for wrong in ["account", "=x", "text=x", "nonce=x", ""] {
            assert!(argument(wrong).is_err(), "{wrong}");
        }
        options.face = Face::HttpPlain;
        assert!(Script::new(&options, "http://127.0.0.1:1/".parse().unwrap()).is_err());
    }

    #[tokio::test]
    async fn a_modern_call_says_in_its_headers_what_it_says_in_its_body() {
        let (request, _) = script(&options(Face::McpModern)).call(1, None);
        let headers = request.headers().clone();
        let body = body(request).await;
        assert_eq!(
            headers["mcp-protocol-version"],
            body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
                .as_str()
                .unwrap()
        );
        assert_eq!(headers["mcp-method"], body["method"].as_str().unwrap());
        assert_eq!(headers["mcp-name"], body["params"]["name"].as_str().unwrap());
        assert!(headers.get("mcp-session-id").is_none());
    }

    #[tokio::test]
    async fn a_legacy_call_is_made_in_a_session() {
        let script = script(&options(Face::McpLegacy));
        let open = script.opening(None);
        assert!(open.headers().get("mcp-protocol-version").is_none());
        assert_eq!(body(open).await["method"], "initialize");
        let session = HeaderValue::from_static("s1");
        let (request, _) = script.call(1, Some(&session));
        assert_eq!(request.headers()["mcp-session-id"], "s1");
        assert_eq!(request.headers()["mcp-protocol-version"], LEGACY);
        assert!(request.headers().get("mcp-method").is_none());
    }

    #[tokio::test]
    async fn progress_is_asked_for_where_events_are_expected() {
        for face in [Face::McpModern, Face::McpLegacy] {
            let mut options = options(face);
            let quiet = body(script(&options).call(5, None).0).await;
            assert!(quiet["params"]["_meta"].get("progressToken").is_none());
            options.events = 3;
            let (request, expected) = script(&options).call(5, None);
            assert_eq!(body(request).await["params"]["_meta"]["progressToken"], 5);
            assert_eq!(expected.events, 3);
        }
        let mut plain = options(Face::HttpPlain);
        plain.events = 1;
        assert!(Script::new(&plain, "http://127.0.0.1:1/".parse().unwrap()).is_err());
    }

    #[test]
    fn a_token_comes_from_a_file_without_its_line_end_and_is_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let mut options = options(Face::HttpPlain);
        options.bearer_file = Some(path.clone());
        let place: Place = "http://127.0.0.1:1/".parse().unwrap();
        let missing = Script::new(&options, place.clone()).err().unwrap();
        assert!(missing.to_string().contains("cannot read the token file"));

        std::fs::write(&path, "canary-77\n").unwrap();
        let script = Script::new(&options, place.clone()).unwrap();
        let (request, _) = script.call(1, None);
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer canary-77");
        assert!(!format!("{:?}", request.headers()).contains("canary"));

        std::fs::write(&path, "canary\n77").unwrap();
        let broken = format!("{:#}", Script::new(&options, place).err().unwrap());
        assert!(!broken.contains("canary"), "{broken}");
    }
}
