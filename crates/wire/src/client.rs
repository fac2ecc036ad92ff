//! The client's side of MCP: what is said to a server in its revision, and what its messages mean. No I/O.
//!
//! The other half of this room reads clients and answers them; this half asks servers and reads their answers. Ids are
//! ours, integers, and new for each hop (HOP-01); nothing that belongs to one hop is copied to the other (HOP-03).
//! Results are kept as spans of the message that they came in.
//!
//! Read first: [`Say`], what can be asked; [`Heard`], what a message is; [`Opened`], what a server says of itself.

mod called;
mod carried;
mod heard;
mod input;
mod kind;
mod listing;
pub(crate) mod mirror;
mod opening;
mod say;

pub use crate::surface::Surface;
pub use called::{Called, CalledFault, Ended};
pub use carried::{Carried, CarriedFault};
pub use heard::{Heard, HeardFault, ServerError, Told, messages};
pub use input::{InputRequired, InputResponses};
pub use listing::{Listed, ListingFault};
pub use mirror::{mirrored, mirrors, published};
pub use opening::{Answered, Opened, OpeningFault, Probed, probed};
pub use say::{Around, Say, Speaker, answer, cancelled, initialized, refuse};
