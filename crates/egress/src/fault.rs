//! Why a request got no answer, and whether it may have had an effect all the same.

use std::net::IpAddr;

use crate::network::AddressFault;
use crate::redirect::RedirectFault;

/// Why a request got no answer.
///
/// The texts are for the operator: they name hosts and addresses, never a path, a header or a part of a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressFault {
    /// An address of the host is not one that may be used. Nothing was sent, no connection was tried.
    #[error("the destination `{host}` is refused: {why}")]
    Refused {
        /// The host, as the request names it.
        host: String,
        /// The address that was refused; the host may have others.
        address: IpAddr,
        /// Why.
        why: AddressFault,
    },
    /// The name of the host could not be resolved.
    #[error("the name `{host}` could not be resolved: {why}")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No address of the host took the connection.
    #[error("no connection to `{host}`: {why}")]
    Connect {
        /// The host.
        host: String,
        /// What the last attempt said.
        why: String,
    },
    /// The TLS handshake failed, or there is nothing to judge certificates by.
    #[error("no trusted connection to `{host}`: {why}")]
    Tls {
        /// The host.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The connection broke before the answer was complete.
    #[error("the connection broke {}: {why}", when(*sent))]
    Broken {
        /// Whether bytes of the request may have left.
        sent: bool,
        /// What is known of it.
        why: String,
    },
    /// The deadline passed, or the time for connecting.
    #[error("no answer in time ({phase}); the time ran out {}", when(*sent))]
    Timeout {
        /// Whether bytes of the request may have left.
        sent: bool,
        /// What was waited for.
        phase: Phase,
    },
    /// The answer is larger than may be read.
    #[error("the {part} of the answer is larger than {max} bytes")]
    TooLarge {
        /// Which part of it.
        part: Part,
        /// The limit in bytes.
        max: usize,
    },
    /// The answer points elsewhere and was not followed.
    #[error("the answer is a redirect ({status}) that was not followed: {why}")]
    Redirect {
        /// Its status.
        status: u16,
        /// Why it was not followed.
        why: RedirectFault,
    },
    /// The request is not one that is sent from here. A fault of the calling room.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// The client itself cannot be made from its options.
    #[error("{0}")]
    Setup(String),
}

/// What was waited for when the time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Name, address, connection, TLS: before the request.
    Connect,
    /// The status and headers of the answer.
    Answer,
    /// The body of the answer.
    Body,
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The headers.
    Headers,
    /// The body.
    Body,
}

impl EgressFault {
    /// Whether bytes of the request may have left, so that the far side may have acted on it.
    ///
    /// `false` only where provably none did: then, and only then, the same request may be sent again without asking
    /// what it does.
    #[must_use]
    pub const fn sent(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Request(_)
            | Self::Setup(_) => false,
            Self::Broken { sent, .. } | Self::Timeout { sent, .. } => *sent,
            Self::TooLarge { .. } | Self::Redirect { .. } => true,
        }
    }
}

const fn when(sent: bool) -> &'static str {
    if sent {
        "after the request may have left"
    } else {
        "before anything was sent"
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Answer => "waiting for the answer",
            Self::Body => "reading the answer",
        })
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Headers => "header",
            Self::Body => "body",
        })
    }
}

/// The texts of an error and of what caused it, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let shown = cause.to_string();
        // Many errors print their cause themselves.
        if !text.ends_with(&shown) {
            text.push_str(": ");
            text.push_str(&shown);
        }
        next = cause.source();
    }
    text
}
