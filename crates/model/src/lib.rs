//! The words that all rooms share: names, ids, calls, replies, refusals, limits, JSON values.
//!
//! This room parses and holds; it never decides, connects or formats for a wire. Constructors parse, so that
//! a value that exists is valid and nobody checks it again. It uses no other room (floor 0).
//! Read first: [`Call`] and [`Reply`], what goes through the gate; [`Refusal`], what happens instead.

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

mod call;
mod caller;
mod class;
mod digest;
mod exclusion;
mod fact;
mod json;
mod limits;
mod names;
mod refusal;
mod reply;
mod secret;

pub use call::{Aim, Arguments, ArgumentsFault, Call, CallId};
pub use caller::{Caller, CallerKey};
pub use class::{Class, ClassFault};
pub use digest::Digest;
pub use exclusion::{Exclusion, ExclusionFault};
pub use fact::{Fact, FactValue, Target};
pub use json::{
    JsonFault, JsonFaultKind, JsonLimits, Keys, Object, Scan, Value, canonical, check, parse, parse_foreign,
    read_with, shape,
};
pub use limits::{LIMITS, LimitFault, LimitKey, Limits, Unit};
pub use names::{
    CallerName, ClientId, IssuerName, KeyId, NameFault, ResourceType, Role, RuleId, SourceName, Subject,
    TenantId, ToolName, UpstreamName,
};
pub use refusal::{Fault, Refusal, RefusalCode};
pub use reply::{Beside, Content, Media, MediaKind, Reply};
pub use secret::{SecretBytes, SecretText};
