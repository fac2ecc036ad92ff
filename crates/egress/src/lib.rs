//! The one dialer: resolve, filter addresses, pin, no surprise redirects. Every outbound byte goes through it.
//!
//! Whoever chose a URL (an operator, a document, a redirect), the address behind it is judged here, at the moment of
//! the connection and for the very address that is connected to. This room adds no credentials, retries nothing and
//! knows nothing of what is asked; that is `upstream`.
//! Read first: [`Client::send`], one request; [`Network`], which addresses may be used; [`Destination`], a configured
//! base URL that nothing can leave; [`EgressFault::sent`], whether a failed request may have had an effect.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]

mod answer;
mod client;
mod connector;
mod destination;
mod fault;
mod host;
mod network;
mod outgoing;
mod redirect;
mod resolve;
mod tls;

pub use answer::Answer;
pub use client::{Client, ClientOptions};
pub use destination::{Destination, DestinationFault, UriFault};
pub use fault::{EgressFault, Part, Phase};
pub use host::HostFault;
pub use network::{AddressFault, AddressKind, Network};
pub use redirect::RedirectFault;
pub use resolve::{BoxFuture, Resolve, SystemResolver};
pub use tls::ClientCertificate;
