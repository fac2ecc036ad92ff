//! A far side on loopback that answers each request with the steps that a test wrote, and keeps what it read.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use config::{CredentialSetting, CredentialSettings, NetworkSettings, TlsSettings, Transport, UrlSettings};
use model::{Limits, SecretText, UpstreamName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::outgoing::Trip;
use crate::streamable::Streamable;

/// How long a test waits for what has to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The credential of every link here.
pub(crate) const SECRET: &str = "canary-7711-abcdef";

/// One thing that the far side does.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends bytes.
    Say(Vec<u8>),
    /// Sends bytes one by one, each in a packet of its own.
    Drip(Vec<u8>),
    /// Sends bytes again and again, until nobody takes them.
    Flood(Vec<u8>),
    /// Goes on when `Far::go_on` was called that often.
    Await(usize),
    /// Waits until the near side has closed.
    Hang,
    /// Closes.
    Close,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
    pub(crate) at: Instant,
}

/// A server, and what it saw.
#[derive(Clone)]
pub(crate) struct Far {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Requests that were read, connections that the near side closed while one was answered, and steps let go.
    counts: Arc<watch::Sender<(usize, usize, usize)>>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "`{name}` stands twice");
        value
    }
}

impl Far {
    /// Answers each request as `script` says, by its number from 0 and what came.
    pub(crate) async fn start(script: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let far = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            counts: Arc::new(watch::Sender::new((0, 0, 0))),
        };
        let (own, script) = (far.clone(), Arc::new(script));
        tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (far, script) = (own.clone(), Arc::clone(&script));
                tokio::spawn(async move { far.serve(stream, connection, &*script).await });
                connection += 1;
            }
        });
        far
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What was read so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until this many requests were read.
    pub(crate) async fn until(&self, count: usize) {
        self.wait(|(requests, _, _)| requests >= count).await;
    }

    /// Waits until the near side has closed this many connections on which it still had to get something.
    pub(crate) async fn until_closed(&self, count: usize) {
        self.wait(|(_, closed, _)| closed >= count).await;
    }

    /// Lets one more `Await` go on.
    pub(crate) fn go_on(&self) {
        self.counts.send_modify(|(_, _, steps)| *steps += 1);
    }

    async fn wait(&self, reached: impl Fn((usize, usize, usize)) -> bool) {
        let mut counts = self.counts.subscribe();
        tokio::time::timeout(PATIENCE, counts.wait_for(|counts| reached(*counts)))
            .await
            .expect("it comes to that")
            .unwrap();
    }

    async fn serve(
        &self,
        mut stream: TcpStream,
        connection: usize,
        script: &(dyn Fn(usize, &Seen) -> Vec<Step> + Send + Sync),
    ) {
        while let Some(seen) = read(&mut stream, connection).await {
            let number = {
                let mut all = self.seen.lock().unwrap();
                all.push(seen.clone());
                all.len() - 1
            };
            self.counts.send_modify(|(requests, _, _)| *requests += 1);
            for step in script(number, &seen) {
                if !self.step(&mut stream, step).await {
                    self.counts.send_modify(|(_, closed, _)| *closed += 1);
                    return;
                }
            }
        }
    }

    /// Does one step; `false` where the connection is over.
    async fn step(&self, stream: &mut TcpStream, step: Step) -> bool {
        match step {
            Step::Say(bytes) => stream.write_all(&bytes).await.is_ok(),
            Step::Drip(bytes) => {
                for byte in bytes {
                    if stream.write_all(&[byte]).await.is_err() || stream.flush().await.is_err() {
                        return false;
                    }
                    // So that the near side reads them one by one.
                    tokio::task::yield_now().await;
                }
                true
            }
            Step::Flood(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {}
                false
            }
            Step::Await(count) => {
                self.wait(|(_, _, steps)| steps >= count).await;
                true
            }
            Step::Hang => {
                let _ = stream.read(&mut [0]).await;
                false
            }
            Step::Close => {
                let _ = stream.shutdown().await;
                false
            }
        }
    }
}

/// Reads one request. `None` at the end of the connection.
async fn read(stream: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ');
    let (method, target) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim_matches(' ').to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen {
        method,
        target,
        headers,
        body,
        connection,
        at: Instant::now(),
    })
}

/// A link to a far side, with a credential, an own header and these limits.
pub(crate) fn link(url: &str, limits: &Limits) -> Streamable {
    let name = UpstreamName::parse("far").unwrap();
    let settings = UrlSettings {
        url: url.to_owned(),
        transport: Transport::Auto,
        network: NetworkSettings {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
        },
        tls: TlsSettings::default(),
        headers: vec![("X-Own".to_owned(), "1".to_owned())],
        credential: CredentialSettings::Every(CredentialSetting::Bearer(SecretText::from(SECRET.to_owned()))),
    };
    Streamable::new(&name, &settings, limits).unwrap()
}

/// A trip with time enough.
pub(crate) fn trip() -> Trip {
    Trip::new(Instant::now() + PATIENCE, None)
}

/// An answer with a length.
pub(crate) fn answer(status: &str, media: &str, body: &str) -> Vec<Step> {
    let media = if media.is_empty() {
        String::new()
    } else {
        format!("content-type: {media}\r\n")
    };
    vec![Step::Say(
        format!(
            "HTTP/1.1 {status}\r\n{media}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    )]
}

/// The head of an event stream that ends with its connection.
pub(crate) fn stream_head() -> Step {
    Step::Say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec())
}

/// The head of an event stream in chunks, on a connection that is kept.
pub(crate) fn chunked_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()
}

/// One chunk of a body; empty, its end.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

pub(crate) fn say(text: &str) -> Step {
    Step::Say(text.as_bytes().to_vec())
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
