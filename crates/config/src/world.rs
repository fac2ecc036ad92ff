//! What the configuration reads of the world: files, folders, variables, the clock. A trait, so that tests own it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// The most entries of a folder that are looked at.
pub(crate) const FOLDER_ENTRIES_MAX: usize = 10_000;

/// What [`crate::load`] may ask.
pub trait World {
    /// The whole content of a regular file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`ReadFault`]; of a longer file nothing is returned.
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, ReadFault>;

    /// The whole content of a regular file inside a folder, reached without following a symbolic link below it.
    ///
    /// `path`: steps with `/` between them; none of them empty, `.` or `..`.
    ///
    /// # Errors
    /// [`ReadFault`]; a link on the way is one.
    fn read_inside(&self, folder: &Path, path: &str, bytes_max: usize) -> Result<Vec<u8>, ReadFault>;

    /// The names of the entries of a folder, in any order.
    ///
    /// # Errors
    /// [`ReadFault`]; a name that is not Unicode is one, so that no rule is left out in silence.
    fn list(&self, folder: &Path) -> Result<Vec<String>, ReadFault>;

    /// The value of an environment variable; `None` where it is not set.
    ///
    /// # Errors
    /// [`NotUnicode`].
    fn variable(&self, name: &str) -> Result<Option<String>, NotUnicode>;

    /// What time it is: a waiver expires.
    fn now(&self) -> Timestamp;
}

/// A variable whose value is not Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("holds a value that is not Unicode")]
pub struct NotUnicode;

/// Why a file or folder was not read. Shown as the end of a sentence: "`a.toml` is not there".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    /// Nothing has this name.
    #[error("is not there")]
    Missing,
    /// The system refuses.
    #[error("may not be read by this user")]
    Denied,
    /// Something else has this name: a folder instead of a file, a pipe, a device.
    #[error("is {0}")]
    Kind(&'static str),
    /// The file is longer than it may be, or the folder has more entries.
    #[error("is longer than {max}")]
    Long {
        /// The limit.
        max: usize,
    },
    /// An entry of a folder has a name that is not Unicode.
    #[error("holds a name that is not Unicode")]
    Name,
    /// Anything else, in the words of the system.
    #[error("cannot be read ({0})")]
    Other(String),
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::NotADirectory => Self::Kind("no folder"),
            _ => Self::Other(error.to_string()),
        }
    }
}

/// The file system, environment and clock of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWorld;

impl World for SystemWorld {
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, ReadFault> {
        // Asked before it is opened: opening a named pipe would wait for a writer.
        let kind = std::fs::metadata(path)?;
        if kind.is_dir() {
            return Err(ReadFault::Kind("a folder, not a file"));
        }
        if !kind.is_file() {
            return Err(ReadFault::Kind("no regular file"));
        }
        let mut bytes = Vec::new();
        let one_more = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(path)?
            .take(one_more)
            .read_to_end(&mut bytes)?;
        if bytes.len() > bytes_max {
            Err(ReadFault::Long { max: bytes_max })
        } else {
            Ok(bytes)
        }
    }

    fn read_inside(&self, folder: &Path, path: &str, bytes_max: usize) -> Result<Vec<u8>, ReadFault> {
        let named = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        // What is not where it says is behind a link. Whoever could put one there in between could write the document
        // itself.
        let whole = std::fs::canonicalize(named)?.join(path);
        if std::fs::canonicalize(&whole)? != whole {
            return Err(ReadFault::Kind("behind a symbolic link, which is not followed"));
        }
        self.read(&whole, bytes_max)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, ReadFault> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            if names.len() == FOLDER_ENTRIES_MAX {
                return Err(ReadFault::Long {
                    max: FOLDER_ENTRIES_MAX,
                });
            }
            names.push(entry?.file_name().into_string().map_err(|_| ReadFault::Name)?);
        }
        Ok(names)
    }

    fn variable(&self, name: &str) -> Result<Option<String>, NotUnicode> {
        std::env::var_os(name)
            .map(|value| value.into_string().map_err(|_| NotUnicode))
            .transpose()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A world in memory: for tests of this room and of others, and for fuzzing.
///
/// Paths are compared as they are written; a folder exists where a file is in it.
#[derive(Debug, Clone, Default)]
pub struct PaperWorld {
    /// Files by path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Paths that cannot be read, and why.
    pub unreadable: BTreeMap<PathBuf, ReadFault>,
    /// Variables; `None` is a value that is not Unicode.
    pub variables: BTreeMap<String, Option<String>>,
    /// What time it is.
    pub now: Timestamp,
}

impl PaperWorld {
    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), Some(value.into()));
        self
    }
}

impl World for PaperWorld {
    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, ReadFault> {
        if let Some(fault) = self.unreadable.get(path) {
            return Err(fault.clone());
        }
        let bytes = self.files.get(path).ok_or(ReadFault::Missing)?;
        if bytes.len() > bytes_max {
            Err(ReadFault::Long { max: bytes_max })
        } else {
            Ok(bytes.clone())
        }
    }

    fn read_inside(&self, folder: &Path, path: &str, bytes_max: usize) -> Result<Vec<u8>, ReadFault> {
        self.read(&folder.join(path), bytes_max)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, ReadFault> {
        if let Some(fault) = self.unreadable.get(folder) {
            return Err(fault.clone());
        }
        let names: Vec<String> = self
            .files
            .keys()
            .filter(|path| path.parent() == Some(folder))
            .filter_map(|path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned))
            .collect();
        if names.is_empty() {
            Err(ReadFault::Missing)
        } else {
            Ok(names)
        }
    }

    fn variable(&self, name: &str) -> Result<Option<String>, NotUnicode> {
        self.variables
            .get(name)
            .map(|value| value.clone().ok_or(NotUnicode))
            .transpose()
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}
