//! One event stream of an MCP server: messages out of an answer's body, within limits of size, number and silence. It
//! takes up nothing that broke; that is for whoever reads it.

use std::time::Duration;

use bytes::Bytes;
use egress::{Answer, EgressFault};
use http::HeaderValue;
use tokio::time::Instant;
use wire::sse::{Event, Reader, SseFault};

use crate::endpoint::Bounds;
use crate::link_fault::LinkFault;

/// The longest event id that is sent back, in bytes. A stream with a longer one cannot be taken up again.
const ID_BYTES_MAX: usize = 1_024;

/// One stream.
#[derive(Debug)]
pub(crate) struct EventStream {
    answer: Answer,
    reader: Reader,
    idle_max: Duration,
    linger: Duration,
    message_bytes_max: usize,
    has_ended: bool,
}

/// What bounds the streams of one exchange together, however often they are taken up again; of a stream that has no end,
/// what comes until there is a message.
#[derive(Debug)]
pub(crate) struct Toll {
    bytes: usize,
    bytes_max: usize,
    messages: usize,
    messages_max: usize,
}

/// Where a stream is taken up again, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mark {
    /// The last event id, as a header carries it back (HL-11).
    pub(crate) last: Option<HeaderValue>,
    /// How long the server asks to wait.
    pub(crate) retry: Option<Duration>,
}

impl EventStream {
    pub(crate) fn new(answer: Answer, bounds: &Bounds) -> Self {
        Self {
            answer,
            reader: Reader::new(bounds.message_bytes_max),
            idle_max: bounds.idle_max,
            linger: bounds.linger,
            message_bytes_max: bounds.message_bytes_max,
            has_ended: false,
        }
    }

    /// The next event, whatever its name; `None` at the end. What it says of ids and times is noted in `mark`, and its
    /// bytes are counted in `toll`.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`LinkFault::Egress`] (broken, or at the deadline), `Idle`, `TooLarge`, `Encoding`.
    pub(crate) async fn next(
        &mut self,
        mark: &mut Mark,
        toll: &mut Toll,
        deadline: Option<Instant>,
    ) -> Result<Option<Event>, LinkFault> {
        loop {
            if let Some(event) = self.reader.read().map_err(|fault| self.fault(fault))? {
                mark.note(&event);
                return Ok(Some(event));
            }
            let silent = Instant::now() + self.idle_max;
            let until = deadline.map_or(silent, |deadline| deadline.min(silent));
            let chunk = match self.answer.chunk(until).await {
                Err(EgressFault::Timeout { .. }) if until == silent => {
                    return Err(LinkFault::Idle { after: self.idle_max });
                }
                outcome => outcome?,
            };
            let Some(chunk) = chunk else {
                self.has_ended = true;
                return Ok(None);
            };
            toll.bytes(chunk.len())?;
            self.reader.feed(chunk);
        }
    }

    /// Waits a moment for the end, so that the connection can be used again. What else comes is thrown away.
    pub(crate) async fn linger(mut self) {
        let until = Instant::now() + self.linger;
        while !self.has_ended {
            match self.answer.chunk(until).await {
                Ok(Some(_)) if Instant::now() < until => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    const fn fault(&self, fault: SseFault) -> LinkFault {
        match fault {
            SseFault::Long { .. } => LinkFault::TooLarge {
                what: "a message",
                max: self.message_bytes_max,
                key: "upstream_body_bytes_max",
            },
            SseFault::Encoding => LinkFault::Encoding,
        }
    }
}

/// The message in an event, if it is one: events of other names and without data are none.
pub(crate) fn message(event: Event) -> Option<Bytes> {
    (event.name.is_empty() && !event.data.is_empty()).then_some(event.data)
}

// === impl Toll ===

impl Toll {
    pub(crate) const fn new(bounds: &Bounds) -> Self {
        Self {
            bytes: 0,
            bytes_max: bounds.stream_bytes_max,
            messages: 0,
            messages_max: bounds.messages_max,
        }
    }

    /// A stream without end had a message: what comes next is counted anew.
    pub(crate) const fn begin(&mut self) {
        self.bytes = 0;
        self.messages = 0;
    }

    fn bytes(&mut self, count: usize) -> Result<(), LinkFault> {
        self.bytes = self.bytes.saturating_add(count);
        if self.bytes > self.bytes_max {
            return Err(LinkFault::TooLarge {
                what: "an event stream",
                max: self.bytes_max,
                key: "upstream_stream_bytes_max",
            });
        }
        Ok(())
    }

    /// Counts one more message.
    pub(crate) const fn message(&mut self) -> Result<(), LinkFault> {
        if self.messages == self.messages_max {
            return Err(LinkFault::TooMany {
                max: self.messages_max,
            });
        }
        self.messages += 1;
        Ok(())
    }
}

// === impl Mark ===

impl Mark {
    fn note(&mut self, event: &Event) {
        if let Some(id) = &event.id {
            // An empty id says that there is none any more. One that no header can hold is as good as none.
            self.last = HeaderValue::from_str(id)
                .ok()
                .filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
        }
        if let Some(retry) = event.retry_ms {
            self.retry = Some(Duration::from_millis(retry));
        }
    }
}
