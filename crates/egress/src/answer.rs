//! An answer: its status and headers at once, its body as far as the caller wants it.
//!
//! The bytes are those on the wire: nothing is decompressed, so that a small answer cannot grow in memory.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::fault::{EgressFault, Part, Phase, chain};

/// An answer whose body has not been read yet. Dropping it closes an HTTP/1 connection whose body is not at its end.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers; together at most `headers_bytes_max`.
    pub headers: HeaderMap,
    body: Incoming,
}

impl Answer {
    pub(crate) fn new(response: http::Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    /// Reads the whole body, at most `bytes_max` bytes.
    ///
    /// An answer that announces more is refused before any of it is read; one that turns out longer is given up at the
    /// first byte too many. Dropping the future gives the body up.
    ///
    /// # Errors
    /// [`EgressFault::TooLarge`], [`EgressFault::Timeout`] at the deadline, [`EgressFault::Broken`].
    pub async fn read(mut self, bytes_max: usize, deadline: Instant) -> Result<Bytes, EgressFault> {
        match tokio::time::timeout_at(deadline, self.collect(bytes_max)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(late()),
        }
    }

    /// The next piece of the body, for streams; `None` at its end.
    ///
    /// The size of all pieces together is for the caller to bound. Dropping the future loses nothing: the next call
    /// goes on where this one waited.
    ///
    /// # Errors
    /// [`EgressFault::Timeout`] at the deadline, after which reading may go on; [`EgressFault::Broken`].
    pub async fn chunk(&mut self, deadline: Instant) -> Result<Option<Bytes>, EgressFault> {
        match tokio::time::timeout_at(deadline, self.next()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(late()),
        }
    }

    async fn collect(&mut self, bytes_max: usize) -> Result<Bytes, EgressFault> {
        let too_large = EgressFault::TooLarge {
            part: Part::Body,
            max: bytes_max,
        };
        let announced = self.body.size_hint().lower();
        if announced > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
            return Err(too_large);
        }
        // Most answers come in one piece, which is handed on as it is.
        let Some(first) = self.next().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > bytes_max {
            return Err(too_large);
        }
        let Some(second) = self.next().await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::with_capacity(usize::try_from(announced).unwrap_or(0));
        whole.extend_from_slice(&first);
        let mut piece = second;
        loop {
            if piece.len() > bytes_max - whole.len() {
                return Err(too_large);
            }
            whole.extend_from_slice(&piece);
            match self.next().await? {
                Some(next) => piece = next,
                None => return Ok(whole.freeze()),
            }
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, EgressFault> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| EgressFault::Broken {
                sent: true,
                why: chain(&error),
            })?;
            // Trailers are nothing that anybody here reads.
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

const fn late() -> EgressFault {
    EgressFault::Timeout {
        sent: true,
        phase: Phase::Body,
    }
}
