//! A synthetic, multi-tenant invoice service on loopback.

fn main() {}
