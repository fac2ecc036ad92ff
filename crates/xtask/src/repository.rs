//! The repository as files: where it stands, what is tracked, and keeping generated files equal to their source. It
//! asks git and cargo; it judges nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::command::cargo;

/// A file that is made from something else in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Where it stands, relative to the root.
    pub path: String,
    /// What it must hold.
    pub text: String,
    /// The command that writes it.
    pub by: &'static str,
}

/// The folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The paths of all files that git tracks or would track, relative to the root, sorted.
///
/// New files count before they are added, so that the checks speak before the commit and not after it.
///
/// # Errors
/// Where git does not run or this is no repository.
pub fn files() -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .context("git does not run; it is needed to list the files of the repository")?;
    if !output.status.success() {
        bail!(
            "git ls-files failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let listed = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    let mut paths: Vec<String> = listed
        .split_terminator('\0')
        // A file that was removed and not yet committed is listed and not there.
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Reads a file of the repository.
///
/// # Errors
/// Where it is not there or not UTF-8; the path is named.
pub fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| format!("`{path}` cannot be read"))
}

/// What `cargo metadata` knows of the workspace's own packages.
///
/// # Errors
/// Where cargo does not run or answers something else.
pub fn metadata() -> Result<Value> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .context("cargo does not run")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")
}

/// The folder that cargo builds into.
///
/// # Errors
/// Where cargo does not run.
pub fn target_folder() -> Result<PathBuf> {
    let metadata = metadata()?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    Ok(folder.context("cargo metadata names no target folder")?.into())
}

// === impl Made ===

impl Made {
    /// Says what is wrong with the file as it stands, if anything is.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let hint = format!("run `{}`", self.by);
        match std::fs::read_to_string(root().join(&self.path)) {
            Err(error) => Some(format!("`{}` cannot be read ({error}); {hint}", self.path)),
            Ok(found) if found == self.text => None,
            Ok(found) => {
                let line = first_difference(&found, &self.text);
                Some(format!(
                    "`{}` differs from its source at line {line}; {hint}",
                    self.path
                ))
            }
        }
    }

    /// Writes the file, unless it is right already. Says whether it was written.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self) -> Result<bool> {
        if self.fault().is_none() {
            return Ok(false);
        }
        let path = root().join(&self.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("`{}` cannot be made", folder.display()))?;
        }
        std::fs::write(&path, &self.text).with_context(|| format!("`{}` cannot be written", self.path))?;
        Ok(true)
    }
}

/// The number of the first line in which two texts differ.
fn first_difference(left: &str, right: &str) -> usize {
    let same = left
        .lines()
        .zip(right.lines())
        .take_while(|(left, right)| left == right)
        .count();
    same + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_at_the_start_in_the_middle_and_behind_the_end() {
        for (left, right, line) in [("a", "b", 1), ("a\nb\nc", "a\nx\nc", 2), ("a", "a\nb", 2)] {
            assert_eq!(first_difference(left, right), line, "{left:?} {right:?}");
        }
    }
}
