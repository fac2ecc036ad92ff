//! A porter on loopback: passes every request on to a gate with a bearer token added, and every answer back as it comes.
//!
//! For clients that cannot be given a token. Nothing else is changed: `Host`, `Origin`, the body and the events of a
//! stream arrive as they were sent. To the gate it is the reverse proxy at its public address.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

/// A porter that has an address and does not open yet.
#[derive(Debug)]
pub struct Porter(TcpListener);

#[derive(Clone)]
struct Door {
    gate: String,
    token: HeaderValue,
    client: Client<HttpConnector, Body>,
}

impl Porter {
    pub async fn new() -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self(TcpListener::bind(free).await.unwrap())
    }

    /// Its address without a path, as `http://127.0.0.1:40002`.
    pub fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// Opens the door to a gate at `127.0.0.1:40001`.
    pub fn open(self, gate: &str, token: &str) {
        let door = Door {
            gate: gate.to_owned(),
            token: HeaderValue::from_str(&format!("Bearer {token}")).unwrap(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        };
        let router = Router::new().fallback(pass).with_state(door);
        tokio::spawn(async move { axum::serve(self.0, router).await.unwrap() });
    }
}

async fn pass(State(door): State<Door>, mut request: Request<Body>) -> Response {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    *request.uri_mut() = Uri::builder()
        .scheme("http")
        .authority(door.gate.as_str())
        .path_and_query(target)
        .build()
        .unwrap();
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, door.token.clone());
    match door.client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => {
            let mut response = Response::new(Body::from(error.to_string()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}
