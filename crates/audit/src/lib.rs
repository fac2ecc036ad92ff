//! The ledger: intent before a call, outcome after, chained and verifiable.

#![forbid(unsafe_code)]
