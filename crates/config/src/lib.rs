//! Text to settings: every fault at once, with file and line.

#![forbid(unsafe_code)]
