//! The order of the steps. Sessions, facts, the walk of one call from the door to the far side and back.
//!
//! This room orders and remembers; it opens no socket and writes no page, so that it runs in a unit test. Each step is
//! done by the room that owns it, and the proofs that they hand on ([`identity::Principal`], [`catalog::Admitted`],
//! [`policy::Permitted`], [`audit::Recorded`], [`Released`]) make a skipped step a compile error.
//!
//! Read first: `pipeline.rs`, the road of one call as one function.

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

mod arguments;
mod carried;
mod ended;
mod explain;
mod facts;
mod hearing;
mod house;
mod listing;
mod mount;
mod news;
mod pages;
mod parks;
mod pipeline;
mod posed;
mod problem;
mod release;
mod rows;
mod session;
mod slots;
mod stranger;
mod stream;
mod wanted;

pub use arguments::{SchemaFault, usable_schema};
pub use explain::{Explanation, Step, StepOutcome};
pub use facts::{FactsFault, Sources};
pub use hearing::Hearing;
pub use house::{Clock, Gateway, GatewayFault, Parts};
pub use mount::Mount;
pub use news::Listener;
pub use parks::{Claim, Ending, Ongoing, Parks, Place, Questions};
pub use pipeline::{Asked, Flow};
pub use posed::{Pose, Posed};
pub use release::{Delivery, Released};
pub use session::{Running, RunningRequest, Session, SessionId, Sessions, SessionsFull};
pub use stream::{Cursor, Next, NotResumed, Stream, StreamId};
pub use wanted::Wanted;
// Made by whoever reports it, filled by whoever waits for the work.
pub use upstream::{Inquiries, Progress, Question, Relay, Told, Wish};
