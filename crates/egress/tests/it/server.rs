//! Servers for the tests: they answer what a script says, and count what they saw.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use egress::{Client, ClientOptions, Network};
use http::Request;
use http_body_util::Full;
use model::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What a server does when it has read a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends this and waits for the next request.
    Say(Vec<u8>),
    /// Sends this and closes.
    SayAndClose(Vec<u8>),
    /// Sends this, then nothing more, and keeps the connection.
    SayAndHang(Vec<u8>),
    /// Closes without a word, in a way that the client sees as a reset.
    Reset,
}

/// A server on loopback, and what it saw.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    news: Arc<Notify>,
}

impl Server {
    /// A server that answers each request as `script` says, by its target.
    pub(crate) async fn start(script: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST.into(), script).await
    }

    pub(crate) async fn start_on(ip: IpAddr, script: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            heads: Arc::default(),
            news: Arc::default(),
        };
        let seen = server.clone();
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.connections.fetch_add(1, Ordering::SeqCst);
                let seen = seen.clone();
                let script = Arc::clone(&script);
                tokio::spawn(async move { seen.serve(stream, &*script).await });
            }
        });
        server
    }

    async fn serve(&self, mut stream: TcpStream, script: &(dyn Fn(&str) -> Act + Send + Sync)) {
        while let Some(head) = read_request(&mut stream).await {
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            self.heads.lock().unwrap().push(head);
            self.news.notify_waiters();
            match script(&target) {
                Act::Say(bytes) => stream.write_all(&bytes).await.unwrap(),
                Act::SayAndClose(bytes) => {
                    stream.write_all(&bytes).await.unwrap();
                    return;
                }
                Act::SayAndHang(bytes) => {
                    stream.write_all(&bytes).await.unwrap();
                    std::future::pending::<()>().await;
                }
                Act::Reset => {
                    reset(stream);
                    return;
                }
            }
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Waits until this many requests have come in.
    pub(crate) async fn has_seen(&self, requests: usize) {
        loop {
            let news = self.news.notified();
            if self.heads.lock().unwrap().len() >= requests {
                return;
            }
            news.await;
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// The head of the next request, its body read and dropped; `None` at the end of the connection.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")
                        .map(str::to_owned)
                })
                .map_or(0, |digits| digits.parse::<usize>().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some(head);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Closes so that the other side gets a reset instead of an end.
pub(crate) fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

/// An answer with this body.
pub(crate) fn answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// Loopback is allowed, with time enough for a slow machine.
pub(crate) fn options() -> ClientOptions {
    ClientOptions::new(loopback(), &Limits::default())
}

pub(crate) fn loopback() -> Network {
    Network::allowing(vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()])
}

pub(crate) fn client() -> Client {
    Client::new(options()).unwrap()
}

pub(crate) fn get(url: &str) -> Request<Full<Bytes>> {
    Request::get(url).body(Full::default()).unwrap()
}

pub(crate) fn post(url: &str, body: &'static str) -> Request<Full<Bytes>> {
    Request::post(url).body(Full::from(body)).unwrap()
}

/// Far enough away that only a hanging test comes to it.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Near enough to wait for; whatever should happen before takes longer than any patience.
pub(crate) fn now_ish() -> Instant {
    Instant::now() + Duration::from_millis(100)
}

/// Near enough to wait for, and far enough for a busy machine to connect and send before.
pub(crate) fn a_while() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

/// Beyond the patience of [`in_time`]: something else must end the waiting.
pub(crate) fn never() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

/// Fails a test that hangs, instead of waiting for whoever runs it.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .unwrap()
}
