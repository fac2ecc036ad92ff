//! A load generator that verifies every answer.

fn main() {}
