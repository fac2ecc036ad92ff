//! What every request shares: the database, the counters, the credential and the options that change behaviour.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqlitePool;

use crate::count::Counts;
use crate::problem::Problem;
use crate::{Options, database, seed};

pub(crate) struct Service {
    pool: SqlitePool,
    database: PathBuf,
    counts: Counts,
    credential: String,
    report_duration: Duration,
    list_ignores_tenant: bool,
}

impl Service {
    /// Opens and fills the database.
    pub(crate) async fn open(options: Options) -> anyhow::Result<Self> {
        let pool = database::open(&options.database).await?;
        seed::fill(&pool).await?;
        Ok(Self {
            pool,
            database: options.database,
            counts: Counts::default(),
            credential: options.credential,
            report_duration: options.report_duration,
            list_ignores_tenant: options.list_ignores_tenant,
        })
    }

    pub(crate) async fn reset(&self) -> Result<(), Problem> {
        seed::fill(&self.pool).await?;
        self.counts.reset();
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) const fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn database_path(&self) -> &Path {
        &self.database
    }

    /// Whether this is the service credential. A plain comparison: the credential guards invented data.
    pub(crate) fn accepts(&self, token: &str) -> bool {
        token == self.credential
    }

    pub(crate) const fn report_duration(&self) -> Duration {
        self.report_duration
    }

    pub(crate) const fn list_ignores_tenant(&self) -> bool {
        self.list_ignores_tenant
    }
}
