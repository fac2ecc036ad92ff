//! Files that are written whole or not at all, beside the configuration.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::failure::Failure;

/// Puts a text in the place of a file. Half a file is never there, and the permissions of an old one stay.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let fault =
        |error: std::io::Error| Failure::Input(format!("`{}` cannot be written: {error}", path.display()));
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;
    file.write_all(text.as_bytes()).map_err(fault)?;
    file.as_file().sync_all().map_err(fault)?;
    if let Ok(old) = fs::metadata(path) {
        file.as_file().set_permissions(old.permissions()).map_err(fault)?;
    }
    file.persist(path).map_err(|error| fault(error.error))?;
    Ok(())
}
