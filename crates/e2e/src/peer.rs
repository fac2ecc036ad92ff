//! What a machine may lack that some tests need: a database server, a tracer, another language.
//!
//! `TOLLHOUSE_PEERS=required` makes every absence a failure. Without it, a test says that it was skipped.

use std::io::Write as _;

/// Says that a test was skipped, because the machine has no `what`; `how` gets it. Fails where everything is required.
pub fn missing(what: &str, how: &str) {
    assert!(
        std::env::var_os("TOLLHOUSE_PEERS").is_none_or(|value| value != "required"),
        "{what} is required and not there; {how}"
    );
    // Not by the macro: what that prints is kept from the terminal where a test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what} is not there; {how}");
}

/// A program in the path.
pub fn program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
