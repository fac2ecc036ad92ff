//! The database file: made, recognised, opened. What is in it is `seed.rs`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};

/// `inv1` in ASCII, kept in the header of the file. It tells our file from another program's, which must not be
/// filled with invented invoices.
const APPLICATION_ID: i64 = 0x696e_7631;

const SCHEMA: &[&str] = &[
    "pragma application_id = 0x696e7631",
    "create table if not exists member (
        tenant text not null,
        subject text not null,
        role text not null,
        primary key (tenant, subject)
    ) strict",
    "create table if not exists invoice (
        id text primary key,
        tenant text not null,
        customer text not null,
        status text not null,
        issued_date text not null,
        due_date text not null,
        currency text not null,
        total_minor integer not null,
        lines text not null,
        iban text not null,
        internal_note text not null,
        customer_note text
    ) strict",
    "create table if not exists payment (
        id text primary key,
        invoice text not null references invoice (id) on delete cascade,
        idempotency_key text not null,
        amount_minor integer not null,
        currency text not null,
        note text,
        owed_minor integer not null,
        invoice_status text not null,
        unique (invoice, idempotency_key)
    ) strict",
    "create table if not exists report (
        id text primary key,
        tenant text not null,
        started_millis integer not null
    ) strict",
];

/// Opens the file and makes its tables.
///
/// The rollback journal is used, not the write-ahead log: the file is then complete by itself, and a gate can read
/// it while the service runs and after it has stopped.
pub(crate) async fn open(path: &Path) -> anyhow::Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Delete)
        .busy_timeout(Duration::from_secs(5));
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await
        .with_context(|| {
            format!(
                "cannot open the database `{}`; its folder must exist",
                path.display()
            )
        })?;
    if let Err(error) = make_tables(&pool, path).await {
        pool.close().await;
        return Err(error);
    }
    Ok(pool)
}

async fn make_tables(pool: &SqlitePool, path: &Path) -> anyhow::Result<()> {
    let application: i64 = sqlx::query_scalar("pragma application_id")
        .fetch_one(pool)
        .await?;
    let tables: i64 = sqlx::query_scalar("select count(*) from sqlite_schema")
        .fetch_one(pool)
        .await?;
    if application != APPLICATION_ID && tables > 0 {
        bail!(
            "`{}` is a database of something else; give the path of a new file",
            path.display()
        );
    }
    for statement in SCHEMA {
        sqlx::query(*statement).execute(pool).await?;
    }
    Ok(())
}
