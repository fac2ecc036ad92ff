//! A duplex link to an MCP server: whole messages out, whole messages in, both in order. It knows framing, sizes and
//! time; what a message says is for whoever sits on it.
//!
//! [`Sender`] and [`Receiver`] are what a conversation uses. Behind them are pipes of lines: [`write_lines`] is fed by the
//! one, the other reads.

mod lines;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub(crate) use lines::{Line, Lines};

/// Messages that wait to be written. The next sender waits, until its deadline.
const WAITING_MAX: usize = 64;

/// How long the cause of an end may come after the end itself.
const CAUSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of a line that says nothing is shown in the log.
const SHOWN_CHARACTERS_MAX: usize = 200;

/// The sending half: cheap to clone, ordered, bounded.
#[derive(Debug, Clone)]
pub struct Sender {
    waiting: mpsc::Sender<Job>,
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver {
    from: Pipe,
    ended: Option<End>,
}

/// What comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// One whole message, without the end of its line: UTF-8, and not empty.
    Message(Bytes),
    /// Something came that is no message. The link goes on.
    Broken(DuplexFault),
    /// Nothing comes any more. From now on this is what every further question gets.
    Ended(End),
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The far side closed it, and nobody knows more.
    #[error("the server closed its output")]
    Closed,
    /// The program ended by itself.
    #[error("the server ended with exit code {0}")]
    Exited(i32),
    /// We stopped it: nobody used it any more, or the gate closes.
    #[error("the server was stopped")]
    Stopped,
    /// It wrote more than `max` lines in a row that are no messages (STDIO-02).
    #[error("the server wrote more than {max} lines in a row that are no messages")]
    Noise {
        /// How many are taken.
        max: usize,
    },
    /// It wrote a line that does not end.
    #[error("the server wrote a line of more than {max} bytes, and did not end it")]
    Endless {
        /// How long a line is waited for.
        max: usize,
    },
    /// It takes nothing: a message could not be written whole in time.
    #[error("the server did not take a message in time")]
    Stuck,
    /// The system refused.
    #[error("the connection to the server broke: {0}")]
    Io(String),
}

/// Why a message was not sent, or could not be heard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DuplexFault {
    /// The link had ended, or ended before the message was written whole.
    #[error("the link to the server has ended")]
    Ended {
        /// Whether bytes of the message may have left.
        sent: bool,
    },
    /// The deadline came.
    #[error("the message was not taken in time")]
    Late {
        /// Whether bytes of the message may have left.
        sent: bool,
    },
    /// A message to be sent has a line break, which would make two of it (STDIO-01).
    #[error("the message has a line break")]
    LineBreak,
    /// A line that came is longer than a message may be. It was skipped.
    #[error("the server wrote a line of more than {max} bytes")]
    TooLong {
        /// How long a message may be.
        max: usize,
    },
    /// A line that came is not UTF-8 (STDIO-01).
    #[error("the server wrote a line that is not UTF-8")]
    NotUtf8,
}

impl DuplexFault {
    /// Whether bytes of the message may have left, so that it must not be sent again.
    #[must_use]
    pub const fn sent(&self) -> bool {
        match self {
            Self::Ended { sent } | Self::Late { sent } => *sent,
            Self::LineBreak | Self::TooLong { .. } | Self::NotUtf8 => false,
        }
    }
}

/// How much a pipe of lines takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineBounds {
    /// The longest line, without its end.
    pub line_bytes_max: usize,
    /// Lines in a row that are no messages.
    pub noise_lines_max: usize,
    /// How long one message may take to be written.
    pub write_timeout: Duration,
}

// === sending ===

const WAITS: u8 = 0;
const BEGUN: u8 = 1;
const ABANDONED: u8 = 2;

/// A message that waits to be written. It is written whole or not at all: whoever waits for it can only take it back
/// before it begins.
#[derive(Debug)]
pub(crate) struct Job {
    message: Bytes,
    state: Arc<AtomicU8>,
    done: oneshot::Sender<Result<(), DuplexFault>>,
}

/// A message whose sender can no longer take it back.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) message: Bytes,
    done: oneshot::Sender<Result<(), DuplexFault>>,
}

/// What waits to be written, in order.
pub(crate) type Jobs = mpsc::Receiver<Job>;

/// A sending half, and what it is fed to.
pub(crate) fn sending() -> (Sender, Jobs) {
    let (waiting, jobs) = mpsc::channel(WAITING_MAX);
    (Sender { waiting }, jobs)
}

impl Sender {
    /// Sends one whole message.
    ///
    /// `message`: without a line break at its end and without one inside. Done once it was handed to the system whole.
    ///
    /// # Errors
    /// [`DuplexFault::sent`] says whether bytes may have left. A message that waits when the deadline comes does not
    /// leave any more; one that is being written then is written to its end, or the link ends.
    ///
    /// # Cancellation
    /// The same as at a deadline.
    ///
    /// Source: MCP, basic/transports, stdio (STDIO-01).
    pub async fn send(&self, message: Bytes, deadline: Instant) -> Result<(), DuplexFault> {
        if memchr::memchr2(b'\n', b'\r', &message).is_some() {
            return Err(DuplexFault::LineBreak);
        }
        let place = match timeout_at(deadline, self.waiting.reserve()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) => return Err(DuplexFault::Ended { sent: false }),
            Err(_) => return Err(DuplexFault::Late { sent: false }),
        };
        let (done, answer) = oneshot::channel();
        let mine = Waiting(Arc::new(AtomicU8::new(WAITS)));
        place.send(Job {
            message,
            state: mine.0.clone(),
            done,
        });
        match timeout_at(deadline, answer).await {
            Ok(Ok(result)) => result,
            // The writer is gone. What it had begun has an answer, unless it was torn away with its runtime.
            Ok(Err(_)) => Err(DuplexFault::Ended {
                sent: !mine.abandon(),
            }),
            Err(_) => Err(DuplexFault::Late {
                sent: !mine.abandon(),
            }),
        }
    }
}

/// The sender's hold on a message that waits. Dropped, it takes the message back.
struct Waiting(Arc<AtomicU8>);

impl Waiting {
    /// Takes the message back; no, where it has begun.
    fn abandon(&self) -> bool {
        self.0
            .compare_exchange(WAITS, ABANDONED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Job {
    /// Begins to write it; `None` where its sender took it back.
    pub(crate) fn begin(self) -> Option<Begun> {
        self.state
            .compare_exchange(WAITS, BEGUN, Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        Some(Begun {
            message: self.message,
            done: self.done,
        })
    }
}

impl Begun {
    /// Tells the sender how it went.
    pub(crate) fn done(self, result: Result<(), DuplexFault>) {
        // A sender that no longer waits has its own answer.
        let _ = self.done.send(result);
    }
}

/// Writes messages as lines until there are no senders, until `closing`, or until one cannot be written whole. The pipe
/// is closed behind it. A message that has begun is written to its end also while closing.
pub(crate) async fn write_lines(
    mut pipe: impl AsyncWrite + Unpin,
    mut jobs: Jobs,
    closing: CancellationToken,
    write_timeout: Duration,
) -> Option<End> {
    loop {
        let job = tokio::select! {
            biased;
            () = closing.cancelled() => return None,
            job = jobs.recv() => job?,
        };
        let Some(begun) = job.begin() else { continue };
        let mut line = BytesMut::with_capacity(begun.message.len() + 1);
        line.extend_from_slice(&begun.message);
        line.extend_from_slice(b"\n");
        let write = async {
            pipe.write_all(&line).await?;
            pipe.flush().await
        };
        let end = match timeout(write_timeout, write).await {
            Ok(Ok(())) => {
                begun.done(Ok(()));
                continue;
            }
            Ok(Err(error)) => End::Io(error.to_string()),
            Err(_) => End::Stuck,
        };
        begun.done(Err(DuplexFault::Ended { sent: true }));
        return Some(end);
    }
}

// === receiving ===

/// A pipe of lines, and what is known of it.
struct Pipe {
    lines: Lines<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    bounds: LineBounds,
    /// Lines in a row that were no messages.
    noise: usize,
    /// Who it is, for the log.
    name: String,
    /// Why the link ended, from whoever knows more than that it did.
    cause: watch::Receiver<Option<End>>,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipe({})", self.name)
    }
}

impl Receiver {
    /// Reads lines from a pipe. `name` is for the log, and `cause` says why the link ended, once it has.
    pub(crate) fn of_lines(
        pipe: impl AsyncRead + Send + Sync + Unpin + 'static,
        bounds: LineBounds,
        name: String,
        cause: watch::Receiver<Option<End>>,
    ) -> Self {
        let pipe: Box<dyn AsyncRead + Send + Sync + Unpin> = Box::new(pipe);
        Self {
            from: Pipe {
                lines: Lines::new(pipe, bounds.line_bytes_max),
                bounds,
                noise: 0,
                name,
                cause,
            },
            ended: None,
        }
    }

    /// What comes next.
    ///
    /// A line that cannot be a message, because it begins with neither `{` nor `[`, is logged and skipped; past a bound
    /// of them in a row the link ends. So it does at a line that does not end.
    ///
    /// # Cancellation
    /// Nothing is lost: what was read so far is kept for the next question.
    ///
    /// Source: MCP, basic/transports, stdio (STDIO-01, STDIO-02).
    pub async fn next(&mut self) -> Heard {
        if let Some(end) = &self.ended {
            return Heard::Ended(end.clone());
        }
        let heard = self.from.next().await;
        if let Heard::Ended(end) = &heard {
            self.ended = Some(end.clone());
        }
        heard
    }
}

impl Pipe {
    async fn next(&mut self) -> Heard {
        let Self {
            lines,
            bounds,
            noise,
            name,
            cause,
        } = self;
        loop {
            let broken = match lines.next().await {
                Line::Whole(line) if std::str::from_utf8(&line).is_err() => DuplexFault::NotUtf8,
                Line::Whole(line) if matches!(line.first(), Some(b'{' | b'[')) => {
                    *noise = 0;
                    return Heard::Message(line);
                }
                Line::Whole(line) => {
                    *noise += 1;
                    if *noise > bounds.noise_lines_max {
                        let max = bounds.noise_lines_max;
                        return Heard::Ended(End::Noise { max });
                    }
                    tracing::debug!(upstream = %name, line = shown(&line), "a line is no message, and was skipped");
                    continue;
                }
                Line::TooLong => DuplexFault::TooLong {
                    max: bounds.line_bytes_max,
                },
                Line::Endless { max } => return Heard::Ended(End::Endless { max }),
                Line::Fault(error) => return Heard::Ended(End::Io(error)),
                Line::End => return Heard::Ended(known(cause).await),
            };
            *noise += 1;
            if *noise > bounds.noise_lines_max {
                let max = bounds.noise_lines_max;
                return Heard::Ended(End::Noise { max });
            }
            return Heard::Broken(broken);
        }
    }
}

/// The cause of an end, from whoever learns it a moment after the pipe closed.
async fn known(cause: &mut watch::Receiver<Option<End>>) -> End {
    match timeout(CAUSE_TIMEOUT, cause.wait_for(Option::is_some)).await {
        Ok(Ok(end)) => end.clone().unwrap_or(End::Closed),
        Ok(Err(_)) | Err(_) => End::Closed,
    }
}

/// The start of a line that came from outside, with nothing in it that a terminal would act on.
pub(crate) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARACTERS_MAX)
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect();
    if text.chars().nth(SHOWN_CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
