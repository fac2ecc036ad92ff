//! A tool of a server behind the gate that asks something before it answers, in the legacy era: on the stream of the call.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::far::{Asked, FarServer, Waiting};

/// The server's end of one call.
#[derive(Clone)]
pub struct Talk {
    events: mpsc::UnboundedSender<String>,
    waiting: Arc<Waiting>,
}

impl Talk {
    /// Says something on the stream of the call.
    pub fn tell(&self, message: &Value) {
        // A stream that is closed is a matter of the test.
        let _ = self.events.send(format!("data: {message}\n\n"));
    }

    /// Asks for something under an id of the server, and waits for the whole response.
    pub async fn ask(&self, id: Value, method: &str, params: Value) -> Value {
        let answer = self.waits(&id);
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        answer.await.expect("a response")
    }

    /// Waits for a response with this id.
    pub fn waits(&self, id: &Value) -> oneshot::Receiver<Value> {
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap().insert(id.to_string(), sender);
        answer
    }

    /// Whether the gate has closed the stream.
    pub async fn closed(&self) {
        self.events.closed().await;
    }
}

impl FarServer {
    /// Waits for a response with this id, to a request that was made on another stream.
    pub fn talk_waits(&self, id: &Value) -> oneshot::Receiver<Value> {
        let (sender, answer) = oneshot::channel();
        self.waiting().lock().unwrap().insert(id.to_string(), sender);
        answer
    }

    /// Answers calls of a tool with a stream on which `script` may ask before it gives the result.
    pub fn talk(
        &self,
        tool: &str,
        script: impl Fn(Asked, Talk) -> BoxFuture<'static, Value> + Send + Sync + 'static,
    ) {
        let waiting = self.waiting();
        self.reply(tool, move |asked| {
            let (events, mut receiver) = mpsc::unbounded_channel::<String>();
            let talk = Talk {
                events,
                waiting: Arc::clone(&waiting),
            };
            let id = asked.id.clone();
            let work = script(asked.clone(), talk.clone());
            tokio::spawn(async move {
                let result = work.await;
                talk.tell(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            });
            let stream = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
            let stream = futures_util::StreamExt::map(stream, Ok::<_, std::convert::Infallible>);
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(Body::from_stream(stream))
                .unwrap()
        });
    }
}
