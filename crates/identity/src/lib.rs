//! Who is calling: API keys, tokens, issuers.

#![forbid(unsafe_code)]
