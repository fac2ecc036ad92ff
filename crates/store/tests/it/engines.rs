//! The engines that every test runs on.

use std::path::Path;
use std::sync::Once;

use sqlx::{AssertSqlSafe, Connection};
use store::{Store, StoreOptions, StoreUrl};
use tempfile::TempDir;

/// A fresh, empty database of one engine.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    pub(crate) url: StoreUrl,
    /// The URL as text, for a second client.
    pub(crate) text: String,
    pub(crate) folder: TempDir,
}

impl Engine {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("sqlite:{}", folder.path().join("t.db").display());
        Self {
            name: "sqlite",
            url: StoreUrl::parse(&text, Path::new("/")).unwrap(),
            text,
            folder,
        }
    }

    fn memory() -> Self {
        let text = "sqlite::memory:".to_owned();
        Self {
            name: "memory",
            url: StoreUrl::parse(&text, Path::new("/")).unwrap(),
            text,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let Ok(base) = std::env::var("PG_URL") else {
            static SAID: Once = Once::new();
            SAID.call_once(|| eprintln!("PG_URL is not set: the PostgreSQL half of these tests was skipped"));
            return None;
        };
        let schema = format!("t_{}", uuid::Uuid::now_v7().simple());
        let mut admin = sqlx::PgConnection::connect(&base).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(&mut admin)
            .await
            .unwrap();
        let mark = if base.contains('?') { '&' } else { '?' };
        let text = format!("{base}{mark}options=-csearch_path%3D{schema}");
        Some(Self {
            name: "postgres",
            url: StoreUrl::parse(&text, Path::new("/")).unwrap(),
            text,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    /// Every engine that is there.
    pub(crate) async fn all() -> Vec<Self> {
        let mut engines = vec![Self::sqlite(), Self::memory()];
        engines.extend(Self::postgres().await);
        engines
    }

    /// Every engine whose database another process could open.
    pub(crate) async fn shared() -> Vec<Self> {
        let mut engines = vec![Self::sqlite()];
        engines.extend(Self::postgres().await);
        engines
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.url, StoreOptions::default()).await.unwrap()
    }

    /// Runs statements as somebody else would, past the store.
    pub(crate) async fn run(&self, sql: &str) {
        if self.name == "postgres" {
            let mut other = sqlx::PgConnection::connect(&self.text).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
                .execute(&mut other)
                .await
                .unwrap();
            other.close().await.unwrap();
        } else {
            let mut other = sqlx::SqliteConnection::connect(&format!("{}?mode=rwc", self.text))
                .await
                .unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
                .execute(&mut other)
                .await
                .unwrap();
            other.close().await.unwrap();
        }
    }
}
