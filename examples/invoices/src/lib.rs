//! A synthetic, multi-tenant invoice service on loopback.

#![forbid(unsafe_code)]
