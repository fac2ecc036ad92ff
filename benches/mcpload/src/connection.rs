//! One kept connection of one worker, and its session where the face has sessions.

use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderValue;
use http::response::Parts;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::answer::{Fault, verify};
use crate::script::{Face, SESSION_HEADER, Script};

/// The longest answer that is read.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A worker's connection. It is opened at the first call, and again when the target closed it.
pub(crate) struct Connection {
    sender: Option<SendRequest<Full<Bytes>>>,
    session: Option<HeaderValue>,
    call_timeout: Duration,
    /// How often it was opened: 1 where the target keeps connections.
    opened: u64,
}

impl Connection {
    pub(crate) const fn new(call_timeout: Duration) -> Self {
        Self {
            sender: None,
            session: None,
            call_timeout,
            opened: 0,
        }
    }

    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Connects, and opens a session where the face has sessions. Does nothing where both are there.
    pub(crate) async fn open(&mut self, script: &Script) -> Result<(), Fault> {
        let timeout = self.call_timeout;
        timed(timeout, async {
            self.connect(script).await?;
            self.open_session(script).await
        })
        .await
    }

    /// Makes the n-th call of the script and verifies its answer.
    ///
    /// A call that timed out leaves no late answer to be taken for the next one: hyper closes a connection whose answer
    /// nobody waits for any more, and the next call opens another.
    pub(crate) async fn call(&mut self, script: &Script, n: u64) -> Result<(), Fault> {
        let timeout = self.call_timeout;
        timed(timeout, async {
            let (request, expected) = script.call(n, self.session.as_ref());
            let (parts, body) = self.exchange(script, request).await?;
            verify(parts.status, &parts.headers, &body, &expected)
        })
        .await
    }

    async fn open_session(&mut self, script: &Script) -> Result<(), Fault> {
        if script.face() != Face::McpLegacy || self.session.is_some() {
            return Ok(());
        }
        let (opened, _) = self.exchange(script, script.opening(None)).await?;
        if opened.status != StatusCode::OK {
            return Err(Fault::Status(opened.status.as_u16()));
        }
        let session = opened.headers.get(SESSION_HEADER).cloned();
        let session = session.ok_or_else(|| Fault::Shape("initialize opened no session".to_owned()))?;
        let (noted, _) = self.exchange(script, script.opening(Some(&session))).await?;
        if noted.status != StatusCode::ACCEPTED {
            return Err(Fault::Status(noted.status.as_u16()));
        }
        self.session = Some(session);
        Ok(())
    }

    async fn exchange(
        &mut self,
        script: &Script,
        request: Request<Full<Bytes>>,
    ) -> Result<(Parts, Bytes), Fault> {
        self.connect(script).await?;
        let Some(sender) = self.sender.as_mut() else {
            return Err(Fault::Connection("not connected".to_owned()));
        };
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX)
            .collect()
            .await
            .map_err(|_| Fault::Body)?;
        Ok((parts, body.to_bytes()))
    }

    /// Makes sure that there is a connection that can take a request. Nothing has been sent when this fails.
    async fn connect(&mut self, script: &Script) -> Result<(), Fault> {
        if let Some(sender) = self.sender.as_mut()
            && sender.ready().await.is_ok()
        {
            return Ok(());
        }
        let stream = TcpStream::connect(script.place().address())
            .await
            .map_err(|error| Fault::Connection(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // It ends when the sender is dropped or the target closes; the call in flight learns of its faults.
        tokio::spawn(connection);
        self.sender = Some(sender);
        self.opened += 1;
        Ok(())
    }
}

async fn timed(timeout: Duration, step: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    tokio::time::timeout(timeout, step)
        .await
        .unwrap_or(Err(Fault::Timeout))
}

fn broken(error: hyper::Error) -> Fault {
    Fault::Connection(error.to_string())
}
