//! `tollhouse.lock` beside the configuration: where it is, how it is read and written. What is in it is the catalogue's.

use std::path::{Path, PathBuf};

use catalog::{LOCK_BYTES_MAX, Lock};
use config::{ReadFault, Settings, World};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::whole;

/// The name of the file.
pub(crate) const FILE: &str = "tollhouse.lock";

/// Where the file is.
pub(crate) fn path(settings: &Settings) -> PathBuf {
    // `./tollhouse.lock` reads worse than `tollhouse.lock`, and is the same file.
    if settings.folder == Path::new(".") {
        PathBuf::from(FILE)
    } else {
        settings.folder.join(FILE)
    }
}

/// Reads the file; without one, nothing was approved.
pub(crate) fn read(settings: &Settings, world: &dyn World) -> Result<Lock, Problem> {
    let path = path(settings);
    let fault = |text: String| Problem {
        file: Some(path.display().to_string()),
        line: None,
        column: None,
        key: None,
        kind: "pins",
        text,
    };
    match world.read(&path, LOCK_BYTES_MAX) {
        Ok(bytes) => Lock::parse(&bytes).map_err(|why| fault(why.to_string())),
        Err(ReadFault::Missing) => Ok(Lock::default()),
        Err(other) => Err(fault(format!("this file {other}"))),
    }
}

/// Writes the file, whole or not at all.
pub(crate) fn write(settings: &Settings, lock: &Lock) -> Result<(), Failure> {
    whole::write(&path(settings), &lock.write())
}
