//! The rows of API keys. What a key is and when it is good is for `identity` to say.

use jiff::Timestamp;
use model::{CallerName, Digest, KeyId};

use crate::store::on;
use crate::{Store, StoreFault};

/// One API key as it is kept: never the key itself, only the digest of its secret part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The public half.
    pub id: KeyId,
    /// The digest of the secret half.
    pub hash: Digest,
    /// Who it stands for.
    pub caller: CallerName,
    /// When it was added. Kept to the microsecond, like the other times.
    pub added: Timestamp,
    /// When it ends, if it does.
    pub expires: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked: Option<Timestamp>,
    /// What the operator wrote next to it.
    pub note: Option<String>,
}

type Raw = (
    String,
    Vec<u8>,
    String,
    i64,
    Option<i64>,
    Option<i64>,
    Option<String>,
);

impl Store {
    /// Adds a key.
    ///
    /// # Errors
    /// [`StoreFault::Conflict`] where a key has this id; else of the database.
    pub async fn keys_add(&self, key: &KeyRow) -> Result<(), StoreFault> {
        on!(self, pool => {
            sqlx::query(
                "INSERT INTO api_key (id, hash, caller, added, expires, revoked, note) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(key.id.as_str())
            .bind(key.hash.as_bytes().as_slice())
            .bind(key.caller.as_str())
            .bind(key.added.as_microsecond())
            .bind(key.expires.map(Timestamp::as_microsecond))
            .bind(key.revoked.map(Timestamp::as_microsecond))
            .bind(key.note.as_deref())
            .execute(pool)
            .await?;
        });
        Ok(())
    }

    /// All keys, revoked ones too, oldest first.
    ///
    /// # Errors
    /// [`StoreFault::Corrupt`] where a row is not a key: none is then given, so that no key is lost from a list of
    /// revocations; else of the database.
    pub async fn keys_list(&self) -> Result<Vec<KeyRow>, StoreFault> {
        let rows: Vec<Raw> = on!(self, pool => {
            sqlx::query_as("SELECT id, hash, caller, added, expires, revoked, note FROM api_key ORDER BY added, id")
                .fetch_all(pool)
                .await?
        });
        rows.into_iter().map(read).collect()
    }

    /// Revokes a key as of `time`. Gives whether this changed anything: `false` where there is no such key, or where it was
    /// revoked before (its first time stays).
    ///
    /// # Errors
    /// [`StoreFault`] of the database; the key is then as it was.
    pub async fn keys_revoke(&self, id: &KeyId, time: Timestamp) -> Result<bool, StoreFault> {
        let changed = on!(self, pool => {
            sqlx::query("UPDATE api_key SET revoked = $2 WHERE id = $1 AND revoked IS NULL")
                .bind(id.as_str())
                .bind(time.as_microsecond())
                .execute(pool)
                .await?
                .rows_affected()
        });
        Ok(changed > 0)
    }

    /// A number that is another one whenever a key was added, changed or removed, by whomever: the database counts itself.
    /// Cheap enough to be asked every second.
    ///
    /// # Errors
    /// [`StoreFault`] of the database.
    pub async fn keys_version(&self) -> Result<u64, StoreFault> {
        let version: i64 = on!(self, pool => {
            sqlx::query_scalar("SELECT version FROM api_key_version").fetch_one(pool).await?
        });
        u64::try_from(version)
            .map_err(|_| StoreFault::Corrupt("the version of the keys is negative".to_owned()))
    }
}

fn read((id, hash, caller, added, expires, revoked, note): Raw) -> Result<KeyRow, StoreFault> {
    let corrupt = |what: &str| StoreFault::Corrupt(format!("API key `{}`: bad {what}", id.escape_debug()));
    let time = |micros: i64, what: &str| Timestamp::from_microsecond(micros).map_err(|_| corrupt(what));
    Ok(KeyRow {
        hash: Digest::from_bytes(hash.try_into().map_err(|_| corrupt("hash"))?),
        caller: CallerName::parse(&caller).map_err(|_| corrupt("caller"))?,
        added: time(added, "time of adding")?,
        expires: expires.map(|micros| time(micros, "time of expiry")).transpose()?,
        revoked: revoked
            .map(|micros| time(micros, "time of revocation"))
            .transpose()?,
        id: KeyId::parse(&id).map_err(|_| corrupt("id"))?,
        note,
    })
}
