//! SQL behind one door: SQLite by default, PostgreSQL when scaled out. The same SQL text on both.
//!
//! This room keeps rows and gives them back; it knows nothing of what they mean. It hashes nothing, signs nothing and
//! decides nothing: the ledger's rules are in `audit`, those of keys in `identity`. It also opens the operator's own
//! databases of facts, read only.
//! Read first: [`Store`], then [`LedgerWriter`], the one hot path, and [`FactDatabase`].

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::disallowed_methods,
        reason = "tests"
    )
)]

mod commands;
mod fact_query;
mod fact_value;
mod facts;
mod fault;
mod keys;
mod ledger;
mod ledger_file;
mod secrets;
mod store;
mod url;
mod writer;

pub use commands::CommandRow;
pub use fact_query::{FactQuery, FactQueryFault};
pub use fact_value::FactRow;
pub use facts::{FactDatabase, FactFault};
pub use fault::StoreFault;
pub use keys::KeyRow;
pub use ledger::{LedgerFilter, LedgerHead, LedgerOrder, LedgerRow};
pub use store::{Store, StoreOptions, StoreSize};
pub use url::{StoreUrl, UrlFault};
pub use writer::{Durability, LedgerWriter};
