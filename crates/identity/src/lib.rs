//! Who is calling: API keys, tokens, issuers. The only maker of [`Principal`].
//!
//! Plain functions without input, output or clock: the time is passed in, and so are key sets ([`KeySets`]) and API
//! keys ([`KeyDirectory`]). This room does not decide what a caller may do (that is `policy`) and does not fetch a
//! key set (that is the server's keeper, through `egress`).
//! Read first: [`Principal`], the proof; [`Tokens::verify`] and [`verify_key`], its two makers for callers over the
//! network; [`configured`], its maker for stdio; [`Unauthenticated`], every way to fail.

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

mod algorithm;
mod api_key;
mod challenge;
mod claims;
mod issuer;
mod key_set;
mod principal;
mod token;
mod unauthenticated;

pub use algorithm::{Algorithm, AlgorithmFault};
pub use api_key::{
    KeyDirectory, KeyEntry, KeyFault, KeyRecord, Lookup, NewKey, generate_key, looks_like_key, verify_key,
};
pub use challenge::{ResourceMetadata, bearer, challenge};
pub use issuer::{ClaimMap, Issuer};
pub use key_set::{KeySet, KeySetFault, KeySets, SkippedKey};
pub use principal::{
    ConfiguredCaller, Credential, ISSUER_OF_CONFIGURED, ISSUER_OF_KEYS, Principal, configured,
};
pub use token::Tokens;
pub use unauthenticated::Unauthenticated;
