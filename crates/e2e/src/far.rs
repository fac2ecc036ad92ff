//! An MCP server behind the gate that speaks the revisions it is told to, over Streamable HTTP, and says what a test wants.
//!
//! It is written against the specification and shares nothing with the gate but JSON: each message that arrives is held
//! against the schema of the revision that it is in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::client::MODERN;
use crate::schema::assert_message;
use crate::service::{Arrived, Service, json as json_answer};

type Reply = Arc<dyn Fn(&Asked) -> Response + Send + Sync>;

/// The server.
#[derive(Clone)]
pub struct FarServer {
    pub service: Service,
    inner: Arc<Inner>,
}

struct Inner {
    /// The revisions that it speaks.
    revisions: Mutex<Vec<String>>,
    tools: Mutex<Vec<Value>>,
    /// What it has beside tools, by the method that lists it.
    beside: Mutex<BTreeMap<String, Vec<Value>>>,
    replies: Mutex<BTreeMap<String, Reply>>,
    /// What it was asked, in order: method and parameters, and the session.
    asked: Mutex<Vec<Asked>>,
    sessions: Mutex<Vec<String>>,
    /// Those that listen, with the session of each.
    listeners: Mutex<Vec<Listener>>,
    /// Whether it answers everything with 503.
    down: Mutex<bool>,
    /// Whether it refuses to be listened to, and the sessions in which it did.
    deaf: Mutex<(bool, Vec<String>)>,
    /// Whether it says that it logs to its clients.
    logs: Mutex<bool>,
    /// Whether it says that it tells when a resource changes.
    subscribes: Mutex<bool>,
    /// Whether it answers `tools/call` of the legacy era as events.
    streams: Mutex<bool>,
    waiting: Arc<Waiting>,
}

/// A listening stream, and the session that it belongs to; in the stateless era there is none.
type Listener = (Option<String>, mpsc::UnboundedSender<String>);

/// What waits for a response of the gate, by the id of its request as JSON.
pub type Waiting = Mutex<BTreeMap<String, oneshot::Sender<Value>>>;

/// One message that it got.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub params: Value,
    pub id: Value,
    pub session: Option<String>,
    pub revision: String,
    pub headers: http::HeaderMap,
}

/// A tool that repeats its arguments.
pub fn echo() -> Value {
    json!({
        "name": "echo",
        "description": "Repeats a text.",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] },
        "annotations": { "readOnlyHint": true },
        "vendor": { "z": 1, "a": [1.5, null] },
    })
}

impl FarServer {
    /// A server that speaks these revisions and has one tool, `echo`.
    pub async fn start(revisions: &[&str]) -> Self {
        let inner = Arc::new(Inner {
            revisions: Mutex::new(revisions.iter().map(|&revision| revision.to_owned()).collect()),
            tools: Mutex::new(vec![echo()]),
            beside: Mutex::default(),
            replies: Mutex::default(),
            asked: Mutex::default(),
            sessions: Mutex::default(),
            listeners: Mutex::default(),
            down: Mutex::default(),
            deaf: Mutex::default(),
            logs: Mutex::default(),
            subscribes: Mutex::default(),
            streams: Mutex::new(false),
            waiting: Arc::default(),
        });
        let own = Arc::clone(&inner);
        let service = Service::start(move |arrived| own.answer(arrived)).await;
        Self { service, inner }
    }

    /// The configuration of the gate in front of it: the upstream `far`, with `lines` and tables of tools behind them.
    pub fn config(&self, lines: &str) -> String {
        format!(
            "[upstream.far]\nurl = \"{}/mcp\"\nnetwork = {{ allow = [\"127.0.0.0/8\"] }}\n{lines}\n",
            self.service.url()
        )
    }

    /// Has other tools from now on.
    pub fn tools(&self, tools: Vec<Value>) {
        *self.inner.tools.lock().unwrap() = tools;
    }

    /// Has other prompts, resources or templates from now on; `method` lists them. It completes arguments, too.
    pub fn has(&self, method: &str, items: Vec<Value>) {
        self.inner.beside.lock().unwrap().insert(method.to_owned(), items);
    }

    /// Is down, or up again.
    pub fn down(&self, is_down: bool) {
        *self.inner.down.lock().unwrap() = is_down;
    }

    /// Refuses listening streams of sessions from now on, or no more.
    pub fn refuse_listening(&self, refuses: bool) {
        self.inner.deaf.lock().unwrap().0 = refuses;
    }

    /// Logs to its clients, as it says.
    pub fn logs(&self) {
        *self.inner.logs.lock().unwrap() = true;
    }

    /// Tells when a resource changes, as it says; to whom is the test's.
    pub fn subscribes(&self) {
        *self.inner.subscribes.lock().unwrap() = true;
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        let mut listeners = self.inner.listeners.lock().unwrap();
        listeners.retain(|(_, listener)| !listener.is_closed());
        listeners.len()
    }

    /// Whether it is listened to in the conversation in which this method was asked for last: the gate has others of its own.
    pub fn is_heard_by(&self, method: &str) -> bool {
        let Some(session) = self.last_session(method) else {
            return false;
        };
        let listeners = self.inner.listeners.lock().unwrap();
        let mut open = listeners.iter().filter(|(_, listener)| !listener.is_closed());
        open.any(|(own, _)| *own == session)
    }

    /// Whether it refused to be listened to in the conversation in which this method was asked for last.
    pub fn has_refused(&self, method: &str) -> bool {
        let session = self.last_session(method).flatten();
        session.is_some_and(|session| self.inner.deaf.lock().unwrap().1.contains(&session))
    }

    /// The session in which a method was asked for last, once it was.
    fn last_session(&self, method: &str) -> Option<Option<String>> {
        self.asked_for(method).last().map(|asked| asked.session.clone())
    }

    /// Ends every listening stream.
    pub fn hang_up(&self) {
        self.inner.listeners.lock().unwrap().clear();
    }

    /// Answers calls of a tool, or every request with a method like `prompts/get` or `tools/list`, like this.
    pub fn reply(&self, tool: &str, reply: impl Fn(&Asked) -> Response + Send + Sync + 'static) {
        self.inner
            .replies
            .lock()
            .unwrap()
            .insert(tool.to_owned(), Arc::new(reply));
    }

    /// Answers with a stream of events where the revision lets it.
    pub fn streams(&self) {
        *self.inner.streams.lock().unwrap() = true;
    }

    /// What waits for responses.
    pub fn waiting(&self) -> Arc<Waiting> {
        Arc::clone(&self.inner.waiting)
    }

    /// Everything that it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.inner.asked.lock().unwrap().clone()
    }

    /// What it was asked with this method.
    pub fn asked_for(&self, method: &str) -> Vec<Asked> {
        let asked = self.asked().into_iter();
        asked.filter(|asked| asked.method == method).collect()
    }

    /// Forgets what it was asked so far.
    pub fn forget_asked(&self) {
        self.inner.asked.lock().unwrap().clear();
    }

    /// Forgets its sessions: the next message of each is answered 404 (HL-14).
    pub fn forget_sessions(&self) {
        self.inner.sessions.lock().unwrap().clear();
    }

    /// Says something on the listening stream of the conversation in which this method was asked for last.
    pub fn tell_in(&self, method: &str, message: &Value) {
        let session = self.last_session(method).expect("it was asked for");
        let listeners = self.inner.listeners.lock().unwrap();
        let own = listeners.iter().rfind(|(own, _)| *own == session);
        let (_, listener) = own.expect("somebody listens in it");
        listener.send(format!("data: {message}\n\n")).unwrap();
    }

    /// Says something on every listening stream; gives how many there are.
    pub fn tell(&self, message: &Value) -> usize {
        let mut listeners = self.inner.listeners.lock().unwrap();
        listeners.retain(|(_, listener)| listener.send(format!("data: {message}\n\n")).is_ok());
        listeners.len()
    }
}

/// A result, as the answer to a message.
pub fn result(asked: &Asked, mut result: Value) -> Response {
    if asked.revision == MODERN {
        result["resultType"] = json!("complete");
    }
    json_answer(
        200,
        &json!({ "jsonrpc": "2.0", "id": asked.id, "result": result }),
    )
}

/// An error, as the answer to a message.
pub fn error(asked: &Asked, code: i64, message: &str) -> Response {
    let error = json!({ "code": code, "message": message });
    json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }))
}

/// Messages as events, and the end.
pub fn events(messages: &[Value]) -> Response {
    let body: String = messages
        .iter()
        .map(|message| format!("data: {message}\n\n"))
        .collect();
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from(body))
        .unwrap()
}

/// One item on each page.
fn page(member: &str, items: &[Value], params: &Value) -> Value {
    let at: usize = params["cursor"]
        .as_str()
        .map_or(0, |cursor| cursor.parse().unwrap());
    let mut page = json!({ (member): items.iter().skip(at).take(1).collect::<Vec<_>>() });
    if at + 1 < items.len() {
        page["nextCursor"] = json!((at + 1).to_string());
    }
    page
}

impl Inner {
    fn answer(&self, arrived: &Arrived) -> Response {
        if *self.down.lock().unwrap() {
            return empty(503);
        }
        let header = |name: &str| {
            arrived
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let session = header("mcp-session-id");
        match arrived.method.as_str() {
            "GET" => return self.listen(session.as_deref()),
            "DELETE" => {
                self.sessions
                    .lock()
                    .unwrap()
                    .retain(|known| Some(known) != session.as_ref());
                return empty(204);
            }
            _ => {}
        }
        let message: Value = serde_json::from_slice(&arrived.body).unwrap();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let claim = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let revision = claim
            .as_str()
            .map(str::to_owned)
            .or_else(|| header("mcp-protocol-version"))
            .or_else(|| message["params"]["protocolVersion"].as_str().map(str::to_owned))
            .unwrap_or_else(|| "2025-03-26".to_owned());
        let asked = Asked {
            params: message["params"].clone(),
            id: message["id"].clone(),
            session,
            revision,
            headers: arrived.headers.clone(),
            method,
        };
        self.asked.lock().unwrap().push(asked.clone());
        let spoken = self.revisions.lock().unwrap().clone();
        if asked.revision == MODERN {
            self.modern(&asked, &message, &spoken)
        } else {
            self.legacy(&asked, &message, &spoken)
        }
    }

    fn modern(&self, asked: &Asked, message: &Value, spoken: &[String]) -> Response {
        if !spoken.iter().any(|revision| revision == MODERN) {
            // What servers of before the stateless era say to a message that they do not expect.
            return json_answer(
                400,
                &json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "no session" } }),
            );
        }
        assert_message(MODERN, message);
        let header = |name: &str| asked.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("mcp-protocol-version"), Some(MODERN), "HM-05");
        assert_eq!(header("mcp-method"), Some(asked.method.as_str()), "HM-04");
        assert_eq!(header("mcp-session-id"), None, "HM-01");
        match asked.method.as_str() {
            "server/discover" => result(
                asked,
                json!({
                    "supportedVersions": spoken, "capabilities": self.capabilities(json!({})),
                    "ttlMs": 0, "cacheScope": "private",
                    "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "far", "version": "1" } },
                }),
            ),
            "tools/list" if self.has_reply("tools/list") => self.give(asked),
            "tools/list" => {
                let mut list = self.list(&asked.params);
                list["ttlMs"] = json!(0);
                list["cacheScope"] = json!("private");
                result(asked, list)
            }
            "prompts/list" | "resources/list" | "resources/templates/list" => {
                let mut list = self.list_of(asked);
                list["ttlMs"] = json!(0);
                list["cacheScope"] = json!("private");
                result(asked, list)
            }
            "prompts/get" | "resources/read" => {
                let name = wire::header::decode(header("mcp-name").expect("HM-03").as_bytes()).unwrap();
                let named = asked.params.get("name").or_else(|| asked.params.get("uri"));
                assert_eq!(Some(&*name), named.and_then(Value::as_str), "HM-04");
                self.give(asked)
            }
            "completion/complete" => self.give(asked),
            "subscriptions/listen" => self.subscription(asked),
            "tools/call" => {
                let name = wire::header::decode(header("mcp-name").expect("HM-03").as_bytes()).unwrap();
                assert_eq!(Some(&*name), asked.params["name"].as_str(), "HM-04");
                self.call(asked)
            }
            _ => json_answer(
                404,
                &json!({ "jsonrpc": "2.0", "id": asked.id, "error": { "code": -32601, "message": "no such method" } }),
            ),
        }
    }

    fn legacy(&self, asked: &Asked, message: &Value, spoken: &[String]) -> Response {
        if asked.method == "initialize" {
            let legacy: Vec<_> = spoken.iter().filter(|revision| *revision != MODERN).collect();
            let Some(newest) = legacy.last() else {
                return empty(405);
            };
            let revision = if spoken.contains(&asked.revision) {
                &asked.revision
            } else {
                newest
            };
            assert_message(&asked.revision, message);
            let session = format!("session-{}", self.asked.lock().unwrap().len());
            self.sessions.lock().unwrap().push(session.clone());
            let mut response = result(
                asked,
                json!({
                    "protocolVersion": revision, "capabilities": self.capabilities(json!({ "listChanged": true })),
                    "serverInfo": { "name": "far", "version": "1" },
                }),
            );
            response
                .headers_mut()
                .insert("mcp-session-id", session.parse().unwrap());
            return response;
        }
        let Some(session) = &asked.session else {
            return empty(400);
        };
        if !self.sessions.lock().unwrap().contains(session) {
            return empty(404);
        }
        assert_message(&asked.revision, message);
        match asked.method.as_str() {
            "tools/list" if self.has_reply("tools/list") => self.give(asked),
            "tools/list" => result(asked, self.list(&asked.params)),
            "tools/call" => self.call(asked),
            "prompts/list" | "resources/list" | "resources/templates/list" => {
                result(asked, self.list_of(asked))
            }
            "prompts/get" | "resources/read" | "completion/complete" => self.give(asked),
            "ping" => result(asked, json!({})),
            "logging/setLevel" if *self.logs.lock().unwrap() => result(asked, json!({})),
            "resources/subscribe" | "resources/unsubscribe" if *self.subscribes.lock().unwrap() => {
                let reply = self.replies.lock().unwrap().get(&asked.method).cloned();
                reply.map_or_else(|| result(asked, json!({})), |reply| reply(asked))
            }
            method if method.starts_with("notifications/") => empty(202),
            // An answer to a request of ours.
            "" => {
                let waiting = self.waiting.lock().unwrap().remove(&message["id"].to_string());
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message.clone());
                }
                empty(202)
            }
            _ => error(asked, -32601, "no such method"),
        }
    }

    fn capabilities(&self, changes: Value) -> Value {
        let beside = self.beside.lock().unwrap();
        let mut all = json!({ "tools": changes });
        for (method, _) in beside.iter() {
            all[method.split('/').next().unwrap()] = changes.clone();
        }
        if !beside.is_empty() {
            all["completions"] = json!({});
        }
        if *self.logs.lock().unwrap() {
            all["logging"] = json!({});
        }
        if *self.subscribes.lock().unwrap() {
            all["resources"]["subscribe"] = json!(true);
        }
        all
    }

    /// One tool on each page.
    fn list(&self, params: &Value) -> Value {
        page("tools", &self.tools.lock().unwrap(), params)
    }

    fn list_of(&self, asked: &Asked) -> Value {
        let member = match asked.method.as_str() {
            "prompts/list" => "prompts",
            "resources/list" => "resources",
            _ => "resourceTemplates",
        };
        let beside = self.beside.lock().unwrap();
        page(
            member,
            beside.get(&asked.method).map_or(&[][..], Vec::as_slice),
            &asked.params,
        )
    }

    fn has_reply(&self, method: &str) -> bool {
        self.replies.lock().unwrap().contains_key(method)
    }

    /// A prompt, a resource or a completion that repeats what was asked.
    fn give(&self, asked: &Asked) -> Response {
        let reply = self.replies.lock().unwrap().get(&asked.method).cloned();
        if let Some(reply) = reply {
            return reply(asked);
        }
        let params = asked.params.clone();
        result(
            asked,
            match asked.method.as_str() {
                "prompts/get" => json!({
                    "description": "d", "vendor": { "b": 1, "a": 2 },
                    "messages": [{ "role": "user", "content": { "type": "text", "text": params["arguments"].to_string() } }],
                }),
                "resources/read" => {
                    let mut read = json!({
                        "contents": [{ "uri": params["uri"], "text": params["uri"], "vendor": [1.5] }], "vendor": 1,
                    });
                    if asked.revision == MODERN {
                        read["ttlMs"] = json!(700);
                        read["cacheScope"] = json!("public");
                    }
                    read
                }
                _ => {
                    let others = params["context"]["arguments"].to_string();
                    json!({ "completion": { "values": [params["argument"]["value"], others], "hasMore": false } })
                }
            },
        )
    }

    fn call(&self, asked: &Asked) -> Response {
        let name = asked.params["name"].as_str().unwrap();
        let reply = self.replies.lock().unwrap().get(name).cloned();
        if let Some(reply) = reply {
            return reply(asked);
        }
        let said = json!({
            "content": [{ "type": "text", "text": asked.params["arguments"]["text"], "vendor": { "b": 1, "a": 2 } }],
            "vendor": [1, { "deep": null }],
            "_meta": { "com.example/kept": true },
        });
        let streams = *self.streams.lock().unwrap();
        if streams {
            let mut said = said;
            if asked.revision == MODERN {
                said["resultType"] = json!("complete");
            }
            return events(&[json!({ "jsonrpc": "2.0", "id": asked.id, "result": said })]);
        }
        result(asked, said)
    }

    fn listen(&self, session: Option<&str>) -> Response {
        let known =
            session.is_some_and(|session| self.sessions.lock().unwrap().iter().any(|one| one == session));
        if !known {
            return empty(404);
        }
        let mut deaf = self.deaf.lock().unwrap();
        if deaf.0 {
            deaf.1.extend(session.map(str::to_owned));
            return empty(400);
        }
        drop(deaf);
        self.stream(session, None)
    }

    /// A listening request of the stateless era: what it honours, and then whatever there is to tell.
    fn subscription(&self, asked: &Asked) -> Response {
        let reply = self.replies.lock().unwrap().get(&asked.method).cloned();
        if let Some(reply) = reply {
            return reply(asked);
        }
        self.stream(
            None,
            Some(json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {
                    "notifications": asked.params["notifications"],
                    "_meta": { "io.modelcontextprotocol/subscriptionId": asked.id },
                },
            })),
        )
    }

    fn stream(&self, session: Option<&str>, first: Option<Value>) -> Response {
        let (sender, mut receiver) = mpsc::unbounded_channel::<String>();
        if let Some(first) = first {
            sender.send(format!("data: {first}\n\n")).unwrap();
        }
        let session = session.map(str::to_owned);
        self.listeners.lock().unwrap().push((session, sender));
        let stream = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
        let stream = futures_util::StreamExt::map(stream, Ok::<_, std::convert::Infallible>);
        Response::builder()
            .header("content-type", "text/event-stream")
            .body(Body::from_stream(stream))
            .unwrap()
    }
}

fn empty(status: u16) -> Response {
    Response::builder().status(status).body(Body::empty()).unwrap()
}
