//! The floor: a reverse proxy that looks at nothing.

fn main() {}
