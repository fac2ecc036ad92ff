//! Why an MCP server gave no answer, in the words of a refusal.

use std::time::Duration;

use catalog::Drift;
use model::{Refusal, RefusalCode, UpstreamName};
use wire::Profile;
use wire::client::{ListingFault, OpeningFault, ServerError};

use crate::child::StartFault;
use crate::link_fault::LinkFault;

/// Why an MCP server gave no answer. The texts are for the operator.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PeerFault {
    /// The way over HTTP.
    #[error("{0}")]
    Link(LinkFault),
    /// The child cannot be started, or ended.
    #[error("{text}")]
    Child {
        /// What happened, for the operator.
        text: String,
        /// Whether the message may have reached it.
        sent: bool,
    },
    /// It is not started now: there are as many as there may be, or one has just failed.
    #[error("{0}")]
    Busy(String),
    /// Nobody has approved what would be started.
    #[error(
        "nobody has approved what this server starts, or it has changed since; look at it, and approve it with `tollhouse approve {0}`"
    )]
    Unapproved(UpstreamName),
    /// What it says of itself cannot be used.
    #[error("{0}")]
    Opening(OpeningFault),
    /// It refuses to open a conversation.
    #[error("the server refuses `initialize` with {0}")]
    Refused(ServerError),
    /// What it lists cannot be used.
    #[error("{0}")]
    Listing(ListingFault),
    /// It lists more than is taken, or the same twice.
    #[error("the list of the server {0}")]
    Surface(String),
    /// It refuses to list.
    #[error("the server refuses `{method}` with {error}")]
    NotListed {
        /// The method.
        method: &'static str,
        /// Its error.
        error: ServerError,
    },
    /// It no longer says what was approved of this tool.
    #[error("{0}")]
    Drifted(Drift),
    /// The connection ended.
    #[error("the connection to the server ended before the answer")]
    Ended {
        /// Whether the message may have reached it.
        sent: bool,
    },
    /// Nothing came in time.
    #[error("the server did not answer in time{}", of(*.after))]
    Late {
        /// How long was waited, where that is not the deadline of the call.
        after: Option<Duration>,
        /// Whether the message may have reached it.
        sent: bool,
    },
    /// Too many connections to it are open.
    #[error("{max} connections to this server are open; `limits.upstream_sessions_max` allows no more")]
    Full {
        /// The limit.
        max: usize,
    },
    /// The server says more without being asked than is read.
    #[error(
        "the server sent more than {max} messages that answer nothing; `limits.upstream_stream_messages_max`"
    )]
    Flood {
        /// The limit.
        max: usize,
    },
    /// It asks what it may not, or in another form than there is.
    #[error("the server asks {0}")]
    Asks(String),
    /// It needs something of the client that the client has not declared.
    #[error("the server needs what the client has not declared: {}", model::Value::Object(.0.capabilities()))]
    Lacks(Profile),
    /// It asks for more rounds than are carried.
    #[error("the server asks for more than {max} rounds of input; `limits.ask_rounds_max`")]
    Rounds {
        /// The limit.
        max: usize,
    },
    /// It asked what nobody answered, and there is no word for that (MRTR-09).
    #[error("the server asked for {what}, and got no answer: {why}")]
    Unanswered {
        /// The method.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The gate is closing.
    #[error("the gate is closing")]
    Closing,
}

fn of(after: Option<Duration>) -> String {
    after
        .map(|after| format!(" ({} s)", after.as_secs_f32()))
        .unwrap_or_default()
}

impl PeerFault {
    /// Whether the server may have acted on the message.
    #[must_use]
    pub const fn sent(&self) -> bool {
        match self {
            Self::Link(fault) => fault.sent(),
            Self::Child { sent, .. } | Self::Ended { sent } | Self::Late { sent, .. } => *sent,
            Self::Flood { .. } | Self::Asks(_) | Self::Rounds { .. } | Self::Unanswered { .. } => true,
            Self::Opening(_)
            | Self::Refused(_)
            | Self::Listing(_)
            | Self::Surface(_)
            | Self::NotListed { .. }
            | Self::Drifted(_)
            | Self::Busy(_)
            | Self::Unapproved(_)
            | Self::Full { .. }
            | Self::Lacks(_)
            | Self::Closing => false,
        }
    }

    /// The same for a message that was not sent because of it.
    #[must_use]
    pub(crate) fn unsent(self) -> Self {
        match self {
            Self::Child { text, .. } => Self::Child { text, sent: false },
            Self::Ended { .. } | Self::Flood { .. } => Self::Ended { sent: false },
            Self::Late { after, .. } => Self::Late { after, sent: false },
            Self::Link(fault) if fault.sent() => Self::Ended { sent: false },
            other => other,
        }
    }

    /// The refusal that the caller gets.
    #[must_use]
    pub(crate) fn refusal(&self) -> Refusal {
        let code = match self {
            Self::Link(fault) => return fault.refusal(),
            Self::Lacks(profile) => {
                let refusal = Refusal::new(RefusalCode::CapabilityMissing, self.to_string());
                return refusal.with_needed(profile.capabilities());
            }
            Self::Drifted(_) | Self::Unapproved(_) => RefusalCode::Held,
            Self::Full { .. } | Self::Busy(_) => RefusalCode::TooBusy,
            Self::Closing => RefusalCode::Draining,
            Self::Unanswered { .. } => RefusalCode::AskUnanswered,
            Self::Asks(_) | Self::Rounds { .. } => RefusalCode::UpstreamBroken,
            Self::Late { sent: true, .. } => RefusalCode::UpstreamTimeout,
            Self::Child { sent: true, .. } | Self::Ended { sent: true } | Self::Flood { .. } => {
                RefusalCode::UpstreamBroken
            }
            Self::Child { .. }
            | Self::Ended { .. }
            | Self::Late { .. }
            | Self::Opening(_)
            | Self::Refused(_)
            | Self::Listing(_)
            | Self::Surface(_)
            | Self::NotListed { .. } => RefusalCode::UpstreamUnreachable,
        };
        Refusal::new(code, self.to_string())
    }
}

impl From<StartFault> for PeerFault {
    fn from(fault: StartFault) -> Self {
        match fault {
            StartFault::TooMany(_) | StartFault::Waiting { .. } => Self::Busy(fault.to_string()),
            StartFault::Closing => Self::Closing,
            StartFault::Spawn(_) | StartFault::Refused(_) | StartFault::Ended(_) | StartFault::Late => {
                Self::Child {
                    text: fault.to_string(),
                    sent: false,
                }
            }
        }
    }
}
