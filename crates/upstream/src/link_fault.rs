//! Why an exchange with an MCP server over HTTP failed, and whether the server may have acted all the same.

use std::time::Duration;

use egress::{EgressFault, Part, Phase};
use model::{Refusal, RefusalCode};

use crate::challenge::Challenge;
use crate::token::TokenFault;

/// Why an exchange failed.
///
/// The texts are for the operator: they hold nothing that the server said in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// The way to the server, or the server on the way back.
    #[error("{0}")]
    Egress(#[from] EgressFault),
    /// There is no token to send the message with. Nothing was sent to the server.
    #[error("{0}")]
    Token(#[from] TokenFault),
    /// The message cannot be put into a request. Nothing was sent.
    #[error("the message could not be put into a request: {0}")]
    Request(String),
    /// 401.
    #[error("the server does not take the credential (401); check `credential` of this upstream")]
    Unauthorized {
        /// What it asks for.
        challenge: Option<Challenge>,
        /// Whether the next request will carry another token than this one did.
        renews: bool,
    },
    /// 403.
    #[error("the server does not allow this to the credential (403); check what it may do")]
    Forbidden {
        /// What it asks for.
        challenge: Option<Challenge>,
    },
    /// 404 to a message of a session: the session is gone, and a new one begins with `initialize` (HL-14).
    #[error("the session is not known to the server any more")]
    SessionLost,
    /// Another status that says that it did not work, and no message that says why.
    #[error("the server answered {status}{}", hint(*status))]
    Status {
        /// The status.
        status: u16,
        /// The seconds of `Retry-After`.
        retry_after: Option<Duration>,
        /// The beginning of the body as one line of text, for the operator alone. It repeats no credential.
        excerpt: Option<String>,
    },
    /// It answered with something that is no message.
    #[error(
        "the server answered {status} with {}, which is neither JSON nor an event stream; check `url` of this upstream",
        shown(.media.as_deref())
    )]
    NotMcp {
        /// The status.
        status: u16,
        /// The media type, made safe to print.
        media: Option<String>,
    },
    /// It gave a session id that no header can carry back as it is (HL-12).
    #[error("the server gave a session id that is empty, longer than {max} bytes or not visible ASCII")]
    SessionId {
        /// The longest that is taken.
        max: usize,
    },
    /// The stream is no text.
    #[error("the event stream of the server is not UTF-8")]
    Encoding,
    /// The answer was not among what came, and no more will come.
    #[error("the answer of the server ended before the message that was waited for{}", tried(*tries))]
    Cut {
        /// How often it was tried to take the stream up again.
        tries: usize,
    },
    /// The stream was silent for too long.
    #[error("the event stream of the server was silent for {} s; `limits.upstream_idle_timeout` allows no more", .after.as_secs_f32())]
    Idle {
        /// How long.
        after: Duration,
    },
    /// More bytes than are taken.
    #[error("{what} of the server has more than {max} bytes; `limits.{key}` allows no more")]
    TooLarge {
        /// A message or a stream.
        what: &'static str,
        /// The limit.
        max: usize,
        /// Its key in the configuration.
        key: &'static str,
    },
    /// More messages than are taken on one stream.
    #[error(
        "the server sent more than {max} messages on one stream; `limits.upstream_stream_messages_max` allows no more"
    )]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// The old transport: where messages are to be sent, as the server says, is not where the stream came from, or
    /// cannot be read (SSE-06).
    #[error("the server names another place for messages than its own origin, or none that can be read")]
    OtherOrigin,
    /// The old transport: the stream does not begin with where messages are to be sent (SSE-01).
    #[error(
        "the event stream of the server does not begin with an `endpoint`; check `transport` of this upstream"
    )]
    NoEndpoint,
}

impl LinkFault {
    /// Whether the server may have acted on the message: `false` only where provably none of it left.
    pub(crate) const fn sent(&self) -> bool {
        match self {
            Self::Egress(fault) => fault.sent(),
            Self::Token(_) | Self::Request(_) => false,
            Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::SessionLost
            | Self::Status { .. }
            | Self::NotMcp { .. }
            | Self::SessionId { .. }
            | Self::Encoding
            | Self::Cut { .. }
            | Self::Idle { .. }
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::OtherOrigin
            | Self::NoEndpoint => true,
        }
    }

    /// The refusal that the caller gets. The full text is for the operator.
    pub(crate) fn refusal(&self) -> Refusal {
        let code = match self {
            Self::Egress(fault) => return crate::fault::SendFault::Egress(fault.clone()).refusal(),
            Self::Token(_) => RefusalCode::CredentialUnavailable,
            Self::Request(_) => RefusalCode::RequestUnsafe,
            Self::Cut { .. } => RefusalCode::UpstreamBroken,
            Self::Idle { .. } => RefusalCode::UpstreamTimeout,
            Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::SessionLost
            | Self::Status { .. }
            | Self::NotMcp { .. }
            | Self::SessionId { .. }
            | Self::Encoding
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::OtherOrigin
            | Self::NoEndpoint => RefusalCode::ResultInvalid,
        };
        Refusal::new(code, self.to_string())
    }

    /// Whether the stream broke on the way, so that taking it up again may help.
    pub(crate) const fn is_break(&self) -> bool {
        match self {
            Self::Egress(fault) => match fault {
                EgressFault::Broken { .. }
                | EgressFault::Connect { .. }
                | EgressFault::Resolve { .. }
                | EgressFault::Timeout {
                    phase: Phase::Connect,
                    ..
                } => true,
                EgressFault::Timeout {
                    phase: Phase::Answer | Phase::Body,
                    ..
                }
                | EgressFault::Refused { .. }
                | EgressFault::Tls { .. }
                | EgressFault::TooLarge {
                    part: Part::Headers | Part::Body,
                    ..
                }
                | EgressFault::Redirect { .. }
                | EgressFault::Request(_)
                | EgressFault::Setup(_) => false,
            },
            Self::Status { status, .. } => matches!(*status, 429 | 500..=599),
            Self::Cut { .. } | Self::Idle { .. } => true,
            Self::Token(_)
            | Self::Request(_)
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::SessionLost
            | Self::NotMcp { .. }
            | Self::SessionId { .. }
            | Self::Encoding
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::OtherOrigin
            | Self::NoEndpoint => false,
        }
    }
}

const fn hint(status: u16) -> &'static str {
    match status {
        300..=399 => ", a redirect, which is never followed; configure the `url` that it leads to",
        404 | 405 => "; check `url` and `transport` of this upstream",
        429 => "; it is asked too often",
        _ => "",
    }
}

fn shown(media: Option<&str>) -> String {
    media.map_or_else(|| "no media type".to_owned(), |media| format!("`{media}`"))
}

fn tried(tries: usize) -> String {
    match tries {
        0 => String::new(),
        tries => format!(", also after {tries} tries to take it up again"),
    }
}
