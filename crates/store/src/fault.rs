//! What can go wrong with the store, by cause, whichever engine says it.

use sqlx::migrate::MigrateError;

/// Why the store did not do what was asked.
///
/// The texts come from the database and hold names of tables and files, never a value that was stored or a password.
/// It is `Clone`, because one failed write is reported to everybody who waited for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    /// No space: the disk is full, or the file has reached `store_bytes_max`.
    #[error("the store is full ({0}); free disk space, or raise `store_bytes_max`")]
    Full(String),
    /// Another process holds a lock for longer than we wait.
    #[error("the store is locked by another process ({0}); end that process, or wait for it")]
    Locked(String),
    /// The database cannot be reached, or the connection broke. Whether a write arrived is not known.
    #[error(
        "the store cannot be reached ({0}); check that it runs, its address, its credentials and its TLS settings"
    )]
    Unreachable(String),
    /// The database cannot make sense of its own files, or gives us a row that we did not write.
    #[error("the store is damaged ({0}); restore it from a backup, and keep the damaged copy")]
    Corrupt(String),
    /// The tables are not those of this build.
    #[error("the store has the schema of another build ({0}); run the build that wrote it or a newer one")]
    Schema(String),
    /// The disk or the file refuses.
    #[error("the store cannot be read or written ({0}); check the file, its folder and their permissions")]
    Io(String),
    /// A row with this key exists already.
    #[error("the store has such a row already ({0})")]
    Conflict(String),
    /// Anything else.
    #[error("the store failed ({0})")]
    Other(String),
}

impl From<sqlx::Error> for StoreFault {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        match error {
            E::Database(error) => database(error.as_ref()),
            E::Io(error) => match error.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Self::Full(error.to_string())
                }
                // Of SQLite the driver gives no plain I/O errors: this is a socket.
                _ => Self::Unreachable(error.to_string()),
            },
            E::Tls(error) => Self::Unreachable(format!("TLS: {error}")),
            E::PoolTimedOut => Self::Unreachable("no connection became free in time".to_owned()),
            E::PoolClosed => Self::Unreachable("the store was closed".to_owned()),
            E::WorkerCrashed => Self::Unreachable("the connection's worker ended".to_owned()),
            E::Protocol(text) => Self::Unreachable(text),
            E::ColumnDecode { index, source } => Self::Corrupt(format!("column {index}: {source}")),
            E::Decode(error) => Self::Corrupt(error.to_string()),
            E::Migrate(error) => migrate(*error),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreFault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        /// A second row with one key, and a second row with one value that has to be unique.
        const PRIMARY_KEY: i32 = 1_555;
        const UNIQUE: i32 = 2_067;
        match error {
            E::SqliteFailure(failure, text) => {
                let code = failure.extended_code;
                let text = format!("(code: {code}) {}", text.unwrap_or_else(|| failure.to_string()));
                match code {
                    PRIMARY_KEY | UNIQUE => Self::Conflict(text),
                    _ => sqlite(code, text),
                }
            }
            E::InvalidColumnType(..) | E::FromSqlConversionFailure(..) | E::IntegralValueOutOfRange(..) => {
                Self::Corrupt(error.to_string())
            }
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<MigrateError> for StoreFault {
    fn from(error: MigrateError) -> Self {
        migrate(error)
    }
}

fn migrate(error: MigrateError) -> StoreFault {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        MigrateError::VersionMissing(version) => StoreFault::Schema(format!(
            "it has migration {version}, which this build does not know: it was written by a newer one"
        )),
        MigrateError::VersionMismatch(version) => {
            StoreFault::Schema(format!("its migration {version} differs from ours"))
        }
        other => StoreFault::Schema(other.to_string()),
    }
}

fn database(error: &dyn sqlx::error::DatabaseError) -> StoreFault {
    let text = error.to_string();
    if error.is_unique_violation() {
        return StoreFault::Conflict(text);
    }
    if let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
        return postgres(error.code(), format!("{} {}", error.code(), error.message()));
    }
    // SQLite's extended result code; the low byte is the primary one.
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    code.map_or_else(
        || StoreFault::Other(text.clone()),
        |code| sqlite(code, text.clone()),
    )
}

/// Source: <https://sqlite.org/rescode.html>.
fn sqlite(code: i32, text: String) -> StoreFault {
    /// The write-ahead log's shared memory cannot grow: a full disk, seen from another side.
    const IOERR_SHMSIZE: i32 = 4_874;
    match (code, code & 0xff) {
        (IOERR_SHMSIZE, _) | (_, 13) => StoreFault::Full(text),
        // BUSY, LOCKED.
        (_, 5 | 6) => StoreFault::Locked(text),
        // CORRUPT, NOTADB.
        (_, 11 | 26) => StoreFault::Corrupt(text),
        // PERM, READONLY, IOERR, CANTOPEN.
        (_, 3 | 8 | 10 | 14) => StoreFault::Io(text),
        // ERROR with `no such table`: somebody else's database.
        (_, 1) if text.contains("no such table") || text.contains("no such column") => {
            StoreFault::Schema(text)
        }
        _ => StoreFault::Other(text),
    }
}

/// Source: PostgreSQL 15, appendix A, "PostgreSQL Error Codes".
fn postgres(code: &str, text: String) -> StoreFault {
    match code {
        "53100" => StoreFault::Full(text),
        // Lock not available, deadlock, serialization failure, query cancelled by a timeout.
        "55P03" | "40P01" | "40001" | "57014" => StoreFault::Locked(text),
        "XX001" | "XX002" => StoreFault::Corrupt(text),
        // The table or column is not there.
        "42P01" | "42703" => StoreFault::Schema(text),
        // A read-only server (a standby), a server that fails to read or write its files, no privilege.
        "25006" | "58030" | "42501" => StoreFault::Io(text),
        _ => match code.get(..2) {
            // Connection, authorization, no such database, out of resources, shut down.
            Some("08" | "28" | "3D" | "53" | "57") => StoreFault::Unreachable(text),
            _ => StoreFault::Other(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(fault: &StoreFault) -> &'static str {
        match fault {
            StoreFault::Full(_) => "full",
            StoreFault::Locked(_) => "locked",
            StoreFault::Unreachable(_) => "unreachable",
            StoreFault::Corrupt(_) => "corrupt",
            StoreFault::Schema(_) => "schema",
            StoreFault::Io(_) => "io",
            StoreFault::Conflict(_) => "conflict",
            StoreFault::Other(_) => "other",
        }
    }

    #[test]
    fn sqlite_codes_are_read_with_and_without_their_extension() {
        for (code, expected) in [
            (13, "full"),
            (4_874, "full"),
            (5, "locked"),
            (517, "locked"),
            (262, "locked"),
            (11, "corrupt"),
            (26, "corrupt"),
            (8, "io"),
            (1_032, "io"),
            (778, "io"),
            (14, "io"),
            (3, "io"),
            (1, "other"),
            (21, "other"),
        ] {
            assert_eq!(name(&sqlite(code, String::new())), expected, "{code}");
        }
        assert_eq!(name(&sqlite(1, "no such table: ledger".into())), "schema");
    }

    #[test]
    fn postgres_codes_are_read_by_class_and_by_case() {
        for (code, expected) in [
            ("53100", "full"),
            ("53300", "unreachable"),
            ("55P03", "locked"),
            ("40001", "locked"),
            ("57014", "locked"),
            ("57P01", "unreachable"),
            ("08006", "unreachable"),
            ("28P01", "unreachable"),
            ("3D000", "unreachable"),
            ("XX001", "corrupt"),
            ("42P01", "schema"),
            ("25006", "io"),
            ("XX000", "other"),
            ("22P02", "other"),
            ("", "other"),
        ] {
            assert_eq!(name(&postgres(code, String::new())), expected, "{code}");
        }
    }

    #[test]
    fn both_drivers_of_sqlite_tell_the_same_fault() {
        let failure = |code| {
            StoreFault::from(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(code),
                Some("said".to_owned()),
            ))
        };
        for (code, expected) in [
            (13, "full"),
            (4_874, "full"),
            (5, "locked"),
            (262, "locked"),
            (11, "corrupt"),
            (8, "io"),
            (1_555, "conflict"),
            (2_067, "conflict"),
            (19, "other"),
        ] {
            assert_eq!(name(&failure(code)), expected, "{code}");
        }
        assert!(failure(5).to_string().contains("(code: 5) said"));
        let odd = rusqlite::Error::InvalidColumnType(0, "hash".to_owned(), rusqlite::types::Type::Text);
        assert_eq!(name(&odd.into()), "corrupt");
        assert_eq!(name(&rusqlite::Error::QueryReturnedNoRows.into()), "other");
    }

    #[test]
    fn a_socket_that_breaks_is_not_a_broken_disk() {
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(name(&sqlx::Error::Io(broken).into()), "unreachable");
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(name(&sqlx::Error::Io(full).into()), "full");
        assert_eq!(name(&sqlx::Error::PoolTimedOut.into()), "unreachable");
    }
}
