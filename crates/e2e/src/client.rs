//! A plain HTTP client that sends exactly what a test says, and an MCP client of both eras on top of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use wire::sse::{Event, Reader};

use crate::house::PATIENCE;
use crate::schema::{assert_answer, assert_message};

/// The revisions with sessions.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision without.
pub const MODERN: &str = "2026-07-28";

/// An HTTP client.
#[derive(Debug, Clone)]
pub struct Http(Client<HttpConnector, Full<Bytes>>);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body is read event by event.
#[derive(Debug)]
pub struct Events {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    reader: Reader,
}

impl Http {
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    /// A client that speaks HTTP/2 from the first byte, without being asked to.
    pub fn two() -> Self {
        Self(
            Client::builder(TokioExecutor::new())
                .http2_only(true)
                .build(HttpConnector::new()),
        )
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn open(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Events {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = tokio::time::timeout(PATIENCE, self.0.request(request))
            .await
            .expect("an answer")
            .unwrap();
        let (parts, body) = response.into_parts();
        Events {
            status: parts.status,
            headers: parts.headers,
            body,
            reader: Reader::new(16 << 20),
        }
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.open(method, url, headers, body).await.whole().await
    }
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; the last event's data if it is an event stream.
    pub fn json(&self) -> Value {
        let text = self.text();
        if self
            .header("content-type")
            .is_some_and(|media| media.starts_with("text/event-stream"))
        {
            let mut reader = Reader::new(16 << 20);
            reader.feed(self.body.clone());
            let events: Vec<Event> = std::iter::from_fn(|| reader.read().unwrap()).collect();
            let data = &events.last().expect("an event").data;
            return serde_json::from_slice(data).unwrap();
        }
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {} {text:?}", self.status))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The JSON-RPC error code, if the body has one.
    pub fn code(&self) -> Option<i64> {
        self.json()["error"]["code"].as_i64()
    }
}

impl Events {
    /// Reads the body to its end, as bytes. For an answer of which no event was read.
    pub async fn whole(self) -> Answer {
        let body = tokio::time::timeout(PATIENCE, self.body.collect())
            .await
            .expect("a body")
            .unwrap()
            .to_bytes();
        Answer {
            status: self.status,
            headers: self.headers,
            body,
        }
    }

    /// The next bytes of the body as they come, comments and all; `None` at its end.
    pub async fn bytes(&mut self) -> Option<Bytes> {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .expect("the stream goes on")?;
            if let Ok(data) = frame.unwrap().into_data() {
                return Some(data);
            }
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The next event; `None` at the end of the stream. Comments are passed over.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.reader.read().unwrap() {
                return Some(event);
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .expect("the stream goes on")?;
            if let Ok(data) = frame.unwrap().into_data() {
                self.reader.feed(data);
            }
        }
    }

    /// The next event that has data, as JSON.
    pub async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.next().await?;
            if !event.data.is_empty() {
                return Some(serde_json::from_slice(&event.data).unwrap());
            }
        }
    }
}

/// `status code`, of an answer that is held against the newest schema; `status -` for one without a body.
pub fn verdict(answer: &Answer) -> String {
    if answer.body.is_empty() {
        return format!("{} -", answer.status.as_u16());
    }
    let message = answer.json();
    assert_message(MODERN, &message);
    match message["error"]["code"].as_i64() {
        Some(code) => format!("{} {code}", answer.status.as_u16()),
        None => format!("{} result", answer.status.as_u16()),
    }
}

/// Headers to change: a value replaces or adds, none takes away.
pub type Change<'a> = &'a [(&'static str, Option<&'a str>)];

/// An MCP client over HTTP. It holds every answer against the schema of its revision.
#[derive(Debug, Clone)]
pub struct Mcp {
    pub http: Http,
    pub url: String,
    pub token: Option<String>,
    pub revision: String,
    pub session: Option<String>,
}

impl Mcp {
    /// A client of the stateless era.
    pub fn modern(url: &str, token: &str) -> Self {
        Self {
            http: Http::new(),
            url: url.to_owned(),
            token: Some(token.to_owned()),
            revision: MODERN.to_owned(),
            session: None,
        }
    }

    /// A client of the legacy era, with an open session.
    pub async fn legacy(url: &str, token: &str, revision: &str) -> Self {
        Self::able(url, token, revision, json!({})).await
    }

    /// The same, of a client with these capabilities.
    pub async fn able(url: &str, token: &str, revision: &str, capabilities: Value) -> Self {
        let mut client = Self {
            revision: revision.to_owned(),
            ..Self::modern(url, token)
        };
        let mut opening = opening(revision);
        opening["params"]["capabilities"] = capabilities;
        let answer = client.post(&opening).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_answer(revision, "initialize", &answer.json());
        assert_eq!(answer.json()["result"]["protocolVersion"], revision);
        client.session = Some(answer.header("mcp-session-id").expect("a session id").to_owned());
        let initialized = client
            .post(&json!({"jsonrpc":"2.0","method":"notifications/initialized"}))
            .await;
        assert_eq!(initialized.status, 202);
        client
    }

    /// The headers that this client sends with a message.
    pub fn headers(&self, message: &Value) -> BTreeMap<&'static str, String> {
        let mut headers = BTreeMap::new();
        headers.insert("content-type", "application/json".to_owned());
        headers.insert("accept", "application/json, text/event-stream".to_owned());
        if let Some(token) = &self.token {
            headers.insert("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            headers.insert("mcp-session-id", session.clone());
            if self.revision.as_str() >= "2025-06-18" {
                headers.insert("mcp-protocol-version", self.revision.clone());
            }
        }
        if self.revision == MODERN {
            headers.insert("mcp-protocol-version", MODERN.to_owned());
            if let Some(method) = message["method"].as_str() {
                headers.insert("mcp-method", method.to_owned());
            }
            let named = &message["params"]["name"];
            let named = if named.is_null() {
                &message["params"]["uri"]
            } else {
                named
            };
            if let Some(name) = named.as_str() {
                headers.insert("mcp-name", wire::header::encode(name).into_owned());
            }
        }
        headers
    }

    /// Posts a message as it is, with this client's headers.
    pub async fn post(&self, message: &Value) -> Answer {
        self.stream(message).await.whole().await
    }

    /// Posts a message and reads its answer event by event.
    pub async fn stream(&self, message: &Value) -> Events {
        self.send(Method::POST, message, &[], message.to_string()).await
    }

    /// Posts a message with other headers: see [`Mcp::send`].
    pub async fn post_with(&self, message: &Value, change: Change<'_>) -> Answer {
        let sent = self.send(Method::POST, message, change, message.to_string());
        sent.await.whole().await
    }

    /// Posts bytes that need not be a message, with the headers of one that is.
    pub async fn post_bytes(&self, like: &Value, body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, like, &[], body).await.whole().await
    }

    /// Opens the session's own stream, or the rest of one behind an event.
    pub async fn listen(&self, last_event: Option<&str>) -> Events {
        let change = [
            ("content-type", None),
            ("accept", Some("text/event-stream")),
            ("last-event-id", last_event),
        ];
        self.send(Method::GET, &Value::Null, &change, "").await
    }

    /// Ends the session.
    pub async fn end(&self) -> Answer {
        let change = [("content-type", None), ("accept", None)];
        let sent = self.send(Method::DELETE, &Value::Null, &change, "");
        sent.await.whole().await
    }

    /// Sends a request with the headers that this client gives to `message`, changed: a value replaces or adds, none
    /// takes away.
    pub async fn send(
        &self,
        method: Method,
        message: &Value,
        change: Change<'_>,
        body: impl Into<Bytes>,
    ) -> Events {
        let mut headers = self.headers(message);
        for (name, value) in change {
            match value {
                Some(value) => headers.insert(name, (*value).to_owned()),
                None => headers.remove(name),
            };
        }
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.http.open(method, &self.url, &headers, body).await
    }

    /// A request of this client's era.
    pub fn request(&self, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
        if self.revision == MODERN {
            let meta = params
                .as_object_mut()
                .unwrap()
                .entry("_meta")
                .or_insert_with(|| json!({}));
            let meta = meta.as_object_mut().unwrap();
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), json!(MODERN));
            meta.entry("io.modelcontextprotocol/clientCapabilities")
                .or_insert_with(|| json!({}));
        }
        json!({"jsonrpc":"2.0","id":id.into(),"method":method,"params":params})
    }

    /// Makes a request, checks the answer's form, and gives it.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.post(&self.request(1, method, params)).await;
        let message = answer.json();
        assert_answer(&self.revision, method, &message);
        message
    }

    /// Calls a tool and gives its result; an error of the protocol is given as it is.
    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        let message = self
            .ask("tools/call", json!({"name":name,"arguments":arguments}))
            .await;
        message.get("result").cloned().unwrap_or(message)
    }

    /// The names of the tools that this client sees.
    pub async fn tools(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut params = json!({});
        loop {
            let message = self.ask("tools/list", params).await;
            let result = &message["result"];
            names.extend(
                result["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned()),
            );
            match result.get("nextCursor") {
                None => return names,
                Some(cursor) => params = json!({"cursor":cursor}),
            }
        }
    }
}

/// An `initialize` request.
pub fn opening(revision: &str) -> Value {
    json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{
        "protocolVersion":revision,"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}})
}
