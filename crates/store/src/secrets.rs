//! The installation's own named secrets: created once, then the same for every process that opens the store.

use model::SecretBytes;
use secrecy::ExposeSecret;

use crate::store::on;
use crate::{Store, StoreFault};

impl Store {
    /// The secret of that name. Where there is none yet, `make` makes one, and it is kept.
    ///
    /// Where several processes do this at once, all get the same bytes: those of the one that came first.
    ///
    /// # Errors
    /// [`StoreFault`] of the database.
    pub async fn secret_get_or_create(
        &self,
        name: &str,
        make: impl FnOnce() -> SecretBytes,
    ) -> Result<SecretBytes, StoreFault> {
        if let Some(secret) = self.secret_get(name).await? {
            return Ok(secret);
        }
        let made = make();
        on!(self, pool => {
            sqlx::query("INSERT INTO named_secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
                .bind(name)
                .bind(made.expose_secret().as_slice())
                .execute(pool)
                .await?;
        });
        self.secret_get(name)
            .await?
            .ok_or_else(|| StoreFault::Corrupt(format!("the secret `{name}` was written and is not there")))
    }

    /// The secret of that name, where there is one.
    ///
    /// # Errors
    /// [`StoreFault`] of the database.
    pub async fn secret_get(&self, name: &str) -> Result<Option<SecretBytes>, StoreFault> {
        let value: Option<Vec<u8>> = on!(self, pool => {
            sqlx::query_scalar("SELECT value FROM named_secret WHERE name = $1").bind(name).fetch_optional(pool).await?
        });
        Ok(value.map(|value| SecretBytes::new(Box::new(value))))
    }
}
