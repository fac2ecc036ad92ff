//! A service behind the gate that does what a test tells it to, and counts what arrives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use tokio::sync::Notify;

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub method: Method,
    pub target: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

type Script = Arc<dyn Fn(&Arrived) -> Response + Send + Sync>;

/// A service.
#[derive(Clone)]
pub struct Service {
    pub address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    script: Mutex<Script>,
    arrived: Mutex<Vec<Arrived>>,
    came: Notify,
    /// Requests whose connection closed before they were answered.
    left: tokio::sync::watch::Sender<usize>,
    /// When closed, answers wait.
    gate: tokio::sync::watch::Sender<bool>,
}

impl Service {
    /// Starts a service that answers by a script.
    pub async fn start(script: impl Fn(&Arrived) -> Response + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Mutex::new(Arc::new(script)),
            arrived: Mutex::default(),
            came: Notify::new(),
            left: tokio::sync::watch::Sender::new(0),
            gate: tokio::sync::watch::Sender::new(true),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, inner }
    }

    /// Starts a service that answers everything with this JSON.
    pub async fn json(body: serde_json::Value) -> Self {
        Self::start(move |_| json(200, &body)).await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers by another script from now on.
    pub fn script(&self, script: impl Fn(&Arrived) -> Response + Send + Sync + 'static) {
        *self.inner.script.lock().unwrap() = Arc::new(script);
    }

    /// Everything that arrived so far.
    pub fn arrived(&self) -> Vec<Arrived> {
        self.inner.arrived.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.inner.arrived.lock().unwrap().len()
    }

    /// Forgets what arrived.
    pub fn forget(&self) {
        self.inner.arrived.lock().unwrap().clear();
    }

    /// Lets answers wait until [`Service::let_go`].
    pub fn hold(&self) {
        self.inner.gate.send_replace(false);
    }

    pub fn let_go(&self) {
        self.inner.gate.send_replace(true);
    }

    /// How many requests were given up while they waited for their answer.
    pub fn left(&self) -> usize {
        *self.inner.left.borrow()
    }

    /// Waits until this many requests were given up.
    pub async fn until_left(&self, count: usize) {
        let mut left = self.inner.left.subscribe();
        let waiting = left.wait_for(|left| *left >= count);
        let waited = tokio::time::timeout(crate::house::PATIENCE, waiting).await;
        waited.expect("the request is given up").unwrap();
    }

    /// Waits until this many requests have arrived.
    pub async fn until(&self, count: usize) {
        loop {
            let came = self.inner.came.notified();
            tokio::pin!(came);
            came.as_mut().enable();
            if self.count() >= count {
                return;
            }
            tokio::time::timeout(crate::house::PATIENCE, came)
                .await
                .expect("the request arrives");
        }
    }
}

/// A request that is being answered.
struct Answering {
    inner: Arc<Inner>,
    is_answered: bool,
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.is_answered {
            self.inner.left.send_modify(|left| *left += 1);
        }
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes().to_vec())
        .unwrap_or_default();
    let arrived = Arrived {
        method: parts.method,
        target: parts.uri.to_string(),
        headers: parts.headers,
        body,
    };
    let script = Arc::clone(&inner.script.lock().unwrap());
    inner.arrived.lock().unwrap().push(arrived.clone());
    inner.came.notify_waiters();
    let mut answering = Answering {
        inner: Arc::clone(&inner),
        is_answered: false,
    };
    let mut gate = inner.gate.subscribe();
    let _ = gate.wait_for(|open| *open).await;
    answering.is_answered = true;
    script(&arrived)
}

/// A JSON answer.
pub fn json(status: u16, body: &serde_json::Value) -> Response {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}
