//! A server that speaks bytes: for answers that no HTTP library would give, and to count connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does when it has read a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Sends this and waits for the next request.
    Say(Vec<u8>),
    /// Sends this and closes.
    SayAndClose(Vec<u8>),
    /// Sends this, then nothing more, and keeps the connection.
    SayAndHang(Vec<u8>),
    /// Sends this again and again, until nobody takes it.
    SayForEver(Vec<u8>),
    /// Closes without a word, in a way that the client sees as a reset.
    Reset,
}

/// A server on loopback, and what it saw.
#[derive(Debug, Clone)]
pub struct Raw {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    news: Arc<Notify>,
}

impl Raw {
    /// A server that answers each request as `script` says, by the number of the request, from 0.
    pub async fn start(script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
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

    /// A server that takes one connection; whoever comes after it finds nobody.
    pub async fn start_once(script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            heads: Arc::default(),
            news: Arc::default(),
        };
        let seen = server.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            drop(listener);
            seen.connections.fetch_add(1, Ordering::SeqCst);
            seen.serve(stream, &script).await;
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// How many whole requests were read.
    pub fn requests(&self) -> usize {
        self.heads.lock().unwrap().len()
    }

    /// The heads of the requests, as they came.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Waits until this many requests were read.
    pub async fn until(&self, count: usize) {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.requests() >= count {
                return;
            }
            tokio::time::timeout(crate::house::PATIENCE, news)
                .await
                .expect("the request arrives");
        }
    }

    async fn serve(&self, mut stream: TcpStream, script: &(dyn Fn(usize) -> Act + Send + Sync)) {
        while let Some(head) = read_request(&mut stream).await {
            let number = {
                let mut heads = self.heads.lock().unwrap();
                heads.push(head);
                heads.len() - 1
            };
            self.news.notify_waiters();
            // A client that has gone is what some of these scripts are about.
            match script(number) {
                Act::Say(bytes) => drop(stream.write_all(&bytes).await),
                Act::SayAndClose(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                    return;
                }
                Act::SayAndHang(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest).await;
                    return;
                }
                Act::SayForEver(bytes) => {
                    while stream.write_all(&bytes).await.is_ok() {}
                    return;
                }
                Act::Reset => {
                    let _ = stream.set_zero_linger();
                    return;
                }
            }
        }
    }
}

/// Reads the head of a request and throws its body away. `None` at the end of the connection.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}

/// A plain answer of HTTP/1.1.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
