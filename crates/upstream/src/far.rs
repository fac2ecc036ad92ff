//! What is on the far side of a tool: an HTTP service that a document describes, or an MCP server.

use std::sync::Arc;

use catalog::{Source, Tool};
use model::{Call, Fault};
use openapi::BuildFault;

use crate::outgoing::{Outgoing, Trip};
use crate::peer::Peer;
use crate::service::Service;

/// One upstream.
#[derive(Debug)]
pub enum Far {
    /// A service behind an OpenAPI document.
    Service(Box<Service>),
    /// An MCP server.
    Peer(Arc<Peer>),
}

/// What is to be sent for one call.
#[derive(Debug)]
pub enum Errand {
    /// A request to a service.
    Request(Box<Outgoing>),
    /// The call itself, to a server that speaks of calls.
    Call,
}

/// Why nothing can be sent for a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareFault {
    /// The arguments cannot be put into a request safely.
    #[error("{0}")]
    Build(#[from] BuildFault),
    /// The tool does not belong to this upstream. A fault of the calling room.
    #[error("the tool is not one of this upstream")]
    Stranger,
}

impl PrepareFault {
    /// Who can do something about it.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Build(fault) => fault.fault(),
            Self::Stranger => Fault::Gateway,
        }
    }
}

impl Far {
    /// What a call becomes. Nothing is sent.
    ///
    /// # Errors
    /// [`PrepareFault`].
    pub fn prepare(&self, tool: &Tool, call: &Call) -> Result<Errand, PrepareFault> {
        match (self, tool.source()) {
            (Self::Service(_), Source::Operation(operation)) => {
                let outgoing = Service::prepare(tool, operation, call)?;
                Ok(Errand::Request(Box::new(outgoing)))
            }
            (Self::Peer(_), Source::Server(_)) => Ok(Errand::Call),
            (Self::Service(_), Source::Server(_)) | (Self::Peer(_), Source::Operation(_)) => {
                Err(PrepareFault::Stranger)
            }
        }
    }

    /// The service, if that is what it is.
    #[must_use]
    pub fn service(&self) -> Option<&Service> {
        match self {
            Self::Service(service) => Some(service),
            Self::Peer(_) => None,
        }
    }

    /// The MCP server, if that is what it is.
    #[must_use]
    pub const fn peer(&self) -> Option<&Arc<Peer>> {
        match self {
            Self::Service(_) => None,
            Self::Peer(peer) => Some(peer),
        }
    }

    /// How many requests may have left since it was set up.
    #[must_use]
    pub fn requests(&self) -> u64 {
        match self {
            Self::Service(service) => service.requests(),
            Self::Peer(peer) => peer.requests(),
        }
    }

    /// Whether bytes repeat a credential of this upstream.
    #[must_use]
    pub fn reveals(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Service(service) => service.reveals(bytes),
            Self::Peer(peer) => peer.reveals(bytes),
        }
    }

    /// Calls off what was started in the course of a trip and whose end was not seen.
    pub async fn call_off(&self, trip: &Trip) {
        match self {
            Self::Service(service) => service.call_off(trip).await,
            // A call that is given up cancels itself: see `Conversation::call`.
            Self::Peer(_) => {}
        }
    }
}
