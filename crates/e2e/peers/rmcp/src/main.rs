//! A client and a server on rmcp, the official Rust SDK: the client does the steps of a plan and tells what it sees, a line of
//! JSON each; the server offers what the servers on the other SDKs offer.
//!
//!     peer-rmcp client PLAN
//!     peer-rmcp server
//!
//! A package of its own beside the workspace, so that nothing of it is part of the product. The plan is that of the other
//! drivers: `cells`, each with `url`, `token`, `mode` and `steps`; `answer` is what a form is answered with.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, PeerRequestOptions, RequestContext, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::watch;

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["client", plan] => client(&serde_json::from_str(plan)?).await,
        ["server"] => {
            let server = Server::default()
                .serve((tokio::io::stdin(), tokio::io::stdout()))
                .await?;
            server.waiting().await?;
            Ok(())
        }
        other => Err(format!("{other:?} is nothing that this program does").into()),
    }
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a value of this type")
}

// === the client ===

struct Client {
    answer: Option<Value>,
    progress: watch::Sender<u64>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        if self.answer.is_some() {
            info.capabilities = of(json!({ "elicitation": { "form": {} } }));
        }
        info
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(of(json!({ "action": "accept", "content": self.answer })))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        say(
            "progress",
            &json!({ "progress": told.progress, "message": told.message }),
        );
        self.progress.send_modify(|count| *count += 1);
    }
}

fn say(step: &str, fact: &Value) {
    let mut said = json!({ "step": step });
    for (key, value) in fact.as_object().expect("a fact") {
        said[key] = value.clone();
    }
    println!("{said}");
}

async fn client(plan: &Value) -> Result<(), Failed> {
    for cell in plan["cells"].as_array().ok_or("a plan has cells")? {
        let (progress, mut seen) = watch::channel(0);
        let handler = Client {
            answer: cell.get("answer").cloned(),
            progress,
        };
        let config = StreamableHttpClientTransportConfig::with_uri(cell["url"].as_str().unwrap_or_default())
            .auth_header(cell["token"].as_str().unwrap_or_default());
        let mode = match cell["mode"].as_str() {
            Some("legacy") => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let at = StreamableHttpClientTransport::from_config(config);
        let client = serve_client_with_lifecycle(handler, at, mode).await?;
        say("connect", &json!({}));
        for step in cell["steps"].as_array().ok_or("a cell has steps")? {
            let text = |at: usize| step[at].as_str().unwrap_or_default().to_owned();
            let call = || -> CallToolRequestParams { of(json!({ "name": step[1], "arguments": step[2] })) };
            let outcome = |result: &Value| json!({ "error_of_tool": result["isError"] == true, "text": result["content"][0]["text"] });
            let fact = match text(0).as_str() {
                "tools" => {
                    let tools = client.list_all_tools().await?;
                    json!({ "names": tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>() })
                }
                "call" => outcome(&json!(client.call_tool(call()).await?)),
                // Reports may be handled behind the answer.
                "watch" => {
                    let before = *seen.borrow();
                    let told = outcome(&json!(client.call_tool(call()).await?));
                    let reported = seen.wait_for(|count| *count >= before + 2);
                    let _ = tokio::time::timeout(std::time::Duration::from_secs(10), reported).await;
                    told
                }
                "read" => {
                    let read = client.read_resource(of(json!({ "uri": step[1] }))).await?;
                    json!({ "text": json!(read)["contents"][0]["text"] })
                }
                "prompt" => {
                    let asked = of(json!({ "name": step[1], "arguments": step[2] }));
                    json!({ "text": json!(client.get_prompt(asked).await?)["messages"][0]["content"]["text"] })
                }
                "complete" => {
                    let named = step[1]["name"].as_str().unwrap_or_default();
                    json!({ "values": client.complete_prompt_simple(named, text(2), text(3)).await? })
                }
                // Gives the call up as soon as it is known to run.
                "cancel" => {
                    seen.mark_unchanged();
                    let request = ClientRequest::CallToolRequest(Request::new(call()));
                    let handle = client
                        .send_cancellable_request(request, PeerRequestOptions::no_options())
                        .await?;
                    seen.changed().await?;
                    handle.cancel(None).await?;
                    json!({ "cancelled": true })
                }
                other => return Err(format!("no client does {other}").into()),
            };
            say(&text(0), &fact);
        }
        client.cancel().await?;
        say("close", &json!({}));
    }
    Ok(())
}

// === the server ===

#[derive(Clone)]
struct Server {
    /// Whether a call of `wait` was cancelled, for which `waited` waits.
    cancelled: Arc<watch::Sender<bool>>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            cancelled: Arc::new(watch::Sender::new(false)),
        }
    }
}

fn form() -> Value {
    json!({
        "message": "who is there?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
    })
}

fn said(text: impl std::fmt::Display) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.to_string())]).into()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(of(
            json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} }),
        ))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str, description: &str, properties: Value| json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": properties } });
        let number = json!({ "type": "number" });
        Ok(of(json!({ "tools": [
            tool("echo", "Says it again.", json!({ "text": { "type": "string" } })),
            tool("add", "Adds two numbers.", json!({ "a": number, "b": number })),
            tool("count", "Counts, and reports each number.", json!({ "to": { "type": "integer" } })),
            tool("ask", "Asks for a name.", json!({})),
            tool("wait", "Waits until it is cancelled.", json!({})),
            tool("waited", "Waits until a call was cancelled.", json!({})),
        ] })))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments: HashMap<String, Value> = request.arguments.unwrap_or_default().into_iter().collect();
        let token = context.meta.get_progress_token();
        let report = async |progress: f64| {
            if let Some(token) = &token {
                let told = ProgressNotificationParam::new(token.clone(), progress);
                let _ = context.peer.notify_progress(told).await;
            }
        };
        match &*request.name {
            "echo" => Ok(said(arguments["text"].as_str().unwrap_or_default())),
            "add" => Ok(said(
                arguments["a"].as_f64().unwrap_or_default() + arguments["b"].as_f64().unwrap_or_default(),
            )),
            "count" => {
                let to = arguments["to"].as_u64().unwrap_or_default();
                for number in 1..=to {
                    report(number as f64).await;
                }
                Ok(said(format!("counted to {to}")))
            }
            "ask" => {
                let name = |answer: &Value| answer["content"]["name"].as_str().unwrap_or("nobody").to_owned();
                if let Some(answers) = &request.input_responses {
                    return Ok(said(format!("hello {}", name(&json!(answers.get("name"))))));
                }
                if context.meta.0.keys().any(|key| key.ends_with("/protocolVersion")) {
                    let entry = json!({ "name": { "method": "elicitation/create", "params": form() } });
                    return Ok(InputRequiredResult::new(Some(of(entry)), None).into());
                }
                let answer = context.peer.create_elicitation(of(form())).await;
                let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                Ok(said(format!("hello {}", name(&json!(answer)))))
            }
            "wait" => {
                report(1.0).await;
                context.ct.cancelled().await;
                self.cancelled.send_replace(true);
                Ok(said("cancelled"))
            }
            "waited" => {
                let _ = self.cancelled.subscribe().wait_for(|cancelled| *cancelled).await;
                Ok(said("one was cancelled"))
            }
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(of(
            json!({ "resources": [{ "uri": "note://one", "name": "one", "mimeType": "text/plain" }] }),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read: ReadResourceResult =
            of(json!({ "contents": [{ "uri": request.uri, "text": "the first note" }] }));
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{ "name": "name", "required": true }]);
        Ok(of(
            json!({ "prompts": [{ "name": "greet", "description": "A greeting.", "arguments": arguments }] }),
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = format!(
            "greet {}",
            json!(request.arguments)["name"].as_str().unwrap_or_default()
        );
        let content = json!({ "type": "text", "text": text });
        let got: GetPromptResult = of(json!({ "messages": [{ "role": "user", "content": content }] }));
        Ok(got.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = request.argument.value;
        Ok(of(
            json!({ "completion": { "values": [format!("{begun}1"), format!("{begun}2")] } }),
        ))
    }
}
