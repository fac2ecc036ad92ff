//! The reviewed tools: what a person approved, and the proof that a call means one of them.
//!
//! A tool comes from two things that a person wrote or read: an operation of a document, and its bounds in the
//! configuration. Whatever the configuration does not name is *held*: it is not listed and not callable. This room
//! says what a name stands for; whether a caller may use it is decided in `policy`.

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

mod abilities;
mod access;
mod admitted;
mod book;
mod contract;
mod live;
mod lock;
mod observation;
mod offer;
mod operation;
mod pin;
mod server_tool;
mod standing;
mod template;
mod tool;
mod work;

pub use abilities::Abilities;
pub use access::{Access, AccessFault, Needed, SchemeFault, in_words, scheme_faults};
pub use admitted::{Admitted, NotAdmitted};
pub use book::{Catalog, CatalogFault, Held};
pub use contract::{Contract, ProbedAnswer};
pub use live::Drift;
pub use lock::{ApprovedDefinition, LOCK_BYTES_MAX, Lock, LockFault, LockedServer};
pub use observation::{
    OBSERVATIONS_BYTES_MAX, Observation, Observations, ObservationsFault, Sensitive, WitnessState, Witnessed,
};
pub use operation::Operation;
pub use server_tool::ServerTool;
pub use standing::{Hold, HoldState, Need, Objection};
pub use tool::{ReviewFault, Source, Tool};
pub use work::{LongRunning, Stage, Step, WorkFault};
