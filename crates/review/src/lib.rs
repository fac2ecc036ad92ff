//! The readiness report: what an OpenAPI document offers, what of it is offered to whom, and what is in the way.
//!
//! Values come in, a report goes out, and the report is written down in several forms; this room reads no file, opens no
//! connection and knows no clock. It grants nothing: what is offered is decided by configuration, catalogue and policy, and
//! the report drives the same gateway that serves. Read first: [`Report`], then `survey`.

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

mod access;
mod changes;
mod chart;
mod count;
mod csv;
mod html;
mod markdown;
mod outline;
mod questions;
mod report;
mod sarif;
mod schema;
mod settable;
mod survey;
mod text;
mod verdict;

pub use changes::{Change, ChangeKind, changes};
pub use count::{Count, count};
pub use csv::csv;
pub use html::html;
pub use markdown::markdown;
pub use questions::{key_of, questions};
pub use report::{
    Access, Answered, Block, Budget, CallerView, Classes, Golden, Group, Measure, Place, Reconciliation,
    Report, Row, Severity, Status, Subject, Summary, Verdict,
};
pub use sarif::sarif;
pub use schema::schema;
pub use survey::{Configured, Inputs, survey};
pub use text::{Mark, Marked, visible};
pub use verdict::{listed_bytes, long_list};
