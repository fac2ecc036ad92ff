//! Witnesses: the state of an environment as a digest, from a query, a reading tool, or the files of a folder.

use std::path::{Path, PathBuf};

use catalog::WitnessState;
use config::WitnessSettings;
use model::{Digest, canonical};
use store::{FactQuery, FactRow};
use tokio::time::Instant;

use super::{Plan, Probing, read};
use crate::failure::Failure;

/// Files of one folder, and bytes of all of them.
const FILES_MAX: usize = 10_000;
const FILES_BYTES_MAX: u64 = 1 << 30;

const TAG: &str = "tollhouse/witness/v1";

pub(super) const fn word(state: WitnessState) -> &'static str {
    match state {
        WitnessState::Unchanged => "unchanged",
        WitnessState::Changed => "changed",
        WitnessState::Noisy => "changes by itself",
    }
}

impl Probing<'_> {
    /// The digests of all witnesses of a plan, in its order.
    pub(super) async fn measure(&self, plan: &Plan) -> Result<Vec<Digest>, Failure> {
        let mut digests = Vec::new();
        for (name, witness) in &plan.witnesses {
            let digest = match witness {
                WitnessSettings::Sql { source, query } => self.query(source, query).await,
                WitnessSettings::Tool { tool, arguments } => {
                    let answered = self.call(tool, read(self.settings, arguments)?).await;
                    answered.map(|value| Digest::of(TAG, &[&canonical(&value)]))
                }
                WitnessSettings::Folder(folder) => files(Path::new(folder)),
            };
            digests.push(
                digest.map_err(|why| {
                    Failure::Unavailable(format!("the witness `{name}` says nothing: {why}"))
                })?,
            );
        }
        Ok(digests)
    }

    async fn query(&self, source: &model::SourceName, query: &str) -> Result<Digest, String> {
        let database = self
            .sources
            .databases
            .get(source)
            .ok_or_else(|| format!("`{source}` is no source with `sql`"))?;
        let query = FactQuery::parse(query).map_err(|fault| fault.to_string())?;
        let deadline = Instant::now() + self.settings.limits.source_timeout;
        let row = database
            .query(&query, &[], deadline)
            .await
            .map_err(|fault| fault.to_string())?;
        match row {
            FactRow::One(value) => Ok(Digest::of(TAG, &[b"value", value.to_string().as_bytes()])),
            FactRow::None | FactRow::Null => Ok(Digest::of(TAG, &[b"nothing"])),
            FactRow::Many => Err("the query gives more than one row; compare one value, as a sum".to_owned()),
        }
    }
}

/// The names and contents of all files below a folder. Links are not followed; what they say is compared.
fn files(folder: &Path) -> Result<Digest, String> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    let mut waiting: Vec<PathBuf> = vec![folder.to_owned()];
    let mut seen = 0;
    let failed = |path: &Path, error: std::io::Error| format!("`{}` cannot be read: {error}", path.display());
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).map_err(|error| failed(&next, error))? {
            let path = entry.map_err(|error| failed(&next, error))?.path();
            seen += 1;
            if seen > FILES_MAX {
                return Err(format!(
                    "`{}` has more than {FILES_MAX} entries",
                    folder.display()
                ));
            }
            let kind = std::fs::symlink_metadata(&path).map_err(|error| failed(&path, error))?;
            if kind.is_dir() {
                waiting.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    for path in found {
        let data = std::fs::symlink_metadata(&path).map_err(|error| failed(&path, error))?;
        parts.push(path.as_os_str().as_encoded_bytes().to_vec());
        if data.is_file() {
            bytes += data.len();
            if bytes > FILES_BYTES_MAX {
                return Err(format!(
                    "`{}` has more than {FILES_BYTES_MAX} bytes",
                    folder.display()
                ));
            }
            let content = std::fs::read(&path).map_err(|error| failed(&path, error))?;
            parts.push(Digest::of(TAG, &[&content]).as_bytes().to_vec());
        } else if data.is_symlink() {
            let target = std::fs::read_link(&path).map_err(|error| failed(&path, error))?;
            parts.push(target.as_os_str().as_encoded_bytes().to_vec());
        } else {
            parts.push(Vec::new());
        }
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Ok(Digest::of(TAG, &parts))
}
