//! Why a call got no answer, in the words of a refusal.

use egress::{EgressFault, Phase};
use model::{Refusal, RefusalCode};

use crate::peer::PeerFault;
use crate::token::TokenFault;

/// Why a call got no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SendFault {
    /// The far side, or the way to it.
    #[error("{0}")]
    Egress(#[from] EgressFault),
    /// Requests of this call left before, and the next one could not: a redirect that leads nowhere, a repetition, a look
    /// after running work.
    #[error("{requests} of the requests of this call may have left before: {fault}")]
    Later {
        /// How many may have left.
        requests: u32,
        /// Why the next one did not.
        fault: Box<SendFault>,
    },
    /// There is no token to send the request with. Nothing was sent to the service.
    #[error("{0}")]
    Token(#[from] TokenFault),
    /// The MCP server, or the way to it.
    #[error("{0}")]
    Peer(Box<PeerFault>),
    /// What the MCP server answered has not the form of a result.
    #[error("{0}")]
    Unreadable(String),
    /// The request does not belong to the call, or cannot be put together. A fault of the calling room.
    #[error("the request could not be put together: {0}")]
    Request(String),
}

impl SendFault {
    /// Whether the far side may have acted.
    #[must_use]
    pub const fn sent(&self) -> bool {
        match self {
            Self::Egress(fault) => fault.sent(),
            Self::Peer(fault) => fault.sent(),
            Self::Later { .. } | Self::Unreadable(_) => true,
            Self::Request(_) | Self::Token(_) => false,
        }
    }

    /// The refusal that the caller gets. The full text is for the operator.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        let code = match self {
            Self::Peer(fault) => return fault.refusal(),
            Self::Unreadable(_) => RefusalCode::ResultInvalid,
            Self::Request(_) => RefusalCode::DestinationRefused,
            Self::Token(_) => RefusalCode::CredentialUnavailable,
            Self::Later { fault, .. } => match fault.refusal().code() {
                // That nothing was sent is true of the last request only.
                RefusalCode::UpstreamUnreachable
                | RefusalCode::DestinationRefused
                | RefusalCode::CredentialUnavailable => RefusalCode::UpstreamBroken,
                code => code,
            },
            Self::Egress(fault) => match fault {
                EgressFault::Refused { .. } | EgressFault::Request(_) | EgressFault::Setup(_) => {
                    RefusalCode::DestinationRefused
                }
                EgressFault::Resolve { .. } | EgressFault::Connect { .. } | EgressFault::Tls { .. } => {
                    RefusalCode::UpstreamUnreachable
                }
                EgressFault::Timeout {
                    sent: false,
                    phase: Phase::Connect | Phase::Answer | Phase::Body,
                }
                | EgressFault::Broken { sent: false, .. } => RefusalCode::UpstreamUnreachable,
                EgressFault::Timeout { sent: true, .. } => RefusalCode::UpstreamTimeout,
                EgressFault::Broken { sent: true, .. } => RefusalCode::UpstreamBroken,
                EgressFault::TooLarge { .. } | EgressFault::Redirect { .. } => RefusalCode::ResultInvalid,
            },
        };
        Refusal::new(code, self.to_string())
    }
}
