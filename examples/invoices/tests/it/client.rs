//! A client that says what it means, and a service to say it to.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use invoices::{Options, Running};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const CREDENTIAL: &str = "synthetic-service-credential";

/// A running service and the folder of its database.
pub(crate) struct Town {
    pub(crate) running: Running,
    pub(crate) folder: TempDir,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Town {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path().join("invoices.db"), CREDENTIAL);
        change(&mut options);
        let running = invoices::start(options).await.unwrap();
        Self { running, folder }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None).await
    }

    /// Sends with the service credential.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let bearer = format!("Bearer {CREDENTIAL}");
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        self.send_bare(method, path, &all, body).await
    }

    pub(crate) async fn pay(&self, id: &str, key: &str, body: &Value) -> Answer {
        let path = format!("/v1/invoices/{id}/payments");
        self.send("POST", &path, &[("idempotency-key", key)], Some(body))
            .await
    }

    pub(crate) async fn send_bare(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.running.url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let bytes = match body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client
            .request(request.body(Full::new(bytes)).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: if bytes.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&bytes).unwrap()
            },
        }
    }
}
