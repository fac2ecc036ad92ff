//! The rows of approved command lines. What a command line is made of is for others to say; here it is a digest.

use jiff::Timestamp;
use model::{Digest, UpstreamName};

use crate::store::on;
use crate::{Store, StoreFault};

/// One approved command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// The server that it starts.
    pub server: UpstreamName,
    /// What was approved.
    pub digest: Digest,
    /// When. Kept to the microsecond.
    pub approved: Timestamp,
    /// What the operator wrote next to it.
    pub note: Option<String>,
}

impl Store {
    /// Approves a command line. One that is approved already stays as it is. Those that the same server had before stay,
    /// too, so that gates on unlike machines can share a store.
    ///
    /// # Errors
    /// [`StoreFault`] of the database.
    pub async fn command_approve(&self, row: &CommandRow) -> Result<(), StoreFault> {
        on!(self, pool => {
            sqlx::query(
                "INSERT INTO command_approval (server, digest, approved, note) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (server, digest) DO NOTHING",
            )
            .bind(row.server.as_str())
            .bind(row.digest.as_bytes().as_slice())
            .bind(row.approved.as_microsecond())
            .bind(row.note.as_deref())
            .execute(pool)
            .await?;
        });
        Ok(())
    }

    /// The approval of exactly this command line of this server, where there is one.
    ///
    /// # Errors
    /// [`StoreFault::Corrupt`] where the row is none; else of the database.
    pub async fn command_approval(
        &self,
        server: &UpstreamName,
        digest: &Digest,
    ) -> Result<Option<CommandRow>, StoreFault> {
        let row: Option<(i64, Option<String>)> = on!(self, pool => {
            sqlx::query_as("SELECT approved, note FROM command_approval WHERE server = $1 AND digest = $2")
                .bind(server.as_str())
                .bind(digest.as_bytes().as_slice())
                .fetch_optional(pool)
                .await?
        });
        let Some((approved, note)) = row else {
            return Ok(None);
        };
        let approved = Timestamp::from_microsecond(approved)
            .map_err(|_| StoreFault::Corrupt(format!("approval of `{server}`: bad time")))?;
        Ok(Some(CommandRow {
            server: server.clone(),
            digest: *digest,
            approved,
            note,
        }))
    }

    /// Takes back every approval of a server. Gives how many there were.
    ///
    /// # Errors
    /// [`StoreFault`] of the database; all of them then hold as before.
    pub async fn command_revoke(&self, server: &UpstreamName) -> Result<u64, StoreFault> {
        let changed = on!(self, pool => {
            sqlx::query("DELETE FROM command_approval WHERE server = $1")
                .bind(server.as_str())
                .execute(pool)
                .await?
                .rows_affected()
        });
        Ok(changed)
    }
}
