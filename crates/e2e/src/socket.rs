//! A connection on which a test writes bytes as it likes, for what no well-made HTTP client would send.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::house::PATIENCE;

/// A connection.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    read: Vec<u8>,
}

/// An answer, as far as it was read.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A POST to the endpoint as a browser or a program would write it, with further headers, each on its line.
pub fn post(authority: &str, token: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}\r\n"
    );
    [head.as_bytes(), body].concat()
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }
}

impl Socket {
    /// Connects to `host:port`.
    pub async fn open(authority: &str) -> Self {
        let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(authority))
            .await
            .expect("a connection")
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Writes bytes. A peer that closed meanwhile is no matter here: what it answered is what counts.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
        let _ = self.stream.flush().await;
    }

    /// Reads one answer whole; `None` if the peer closes without one.
    pub async fn response(&mut self) -> Option<Response> {
        let head = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at;
            }
            if !self.more().await {
                assert!(self.read.is_empty(), "half an answer: {:?}", self.read);
                return None;
            }
        };
        let text = String::from_utf8(self.read.drain(..head + 4).take(head).collect()).unwrap();
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_ascii_lowercase(), value.trim().to_owned())
            })
            .collect();
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        if response.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                response.body.extend(chunk);
            }
        } else {
            let length = response
                .header("content-length")
                .map_or(0, |length| length.parse().unwrap());
            while self.read.len() < length {
                assert!(self.more().await, "the body broke off");
            }
            response.body = self.read.drain(..length).collect();
        }
        Some(response)
    }

    /// The next chunk of a body; `None` at its end.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = loop {
            if let Some(at) = find(&self.read, b"\r\n") {
                break at;
            }
            assert!(self.more().await, "the body broke off");
        };
        let length = String::from_utf8(self.read.drain(..line + 2).take(line).collect()).unwrap();
        let length = usize::from_str_radix(&length, 16).unwrap();
        while self.read.len() < length + 2 {
            assert!(self.more().await, "the body broke off");
        }
        let chunk: Vec<u8> = self.read.drain(..length + 2).take(length).collect();
        (length > 0).then_some(chunk)
    }

    /// Waits until the peer closes, and gives what it still said.
    pub async fn end(mut self) -> Vec<u8> {
        while self.more().await {}
        self.read
    }

    /// Whether nothing was said and the connection is open, for this long. For what must not happen.
    pub async fn is_quiet(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.more()).await.is_err() && self.read.is_empty()
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer))
            .await
            .expect("the peer answers or closes");
        // A reset is an end too: it is what a peer does that closes with unread bytes.
        let count = read.unwrap_or(0);
        self.read.extend_from_slice(&buffer[..count]);
        count > 0
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
