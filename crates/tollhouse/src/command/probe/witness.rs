//! Witnesses: the state of an environment as a digest, from a query, a reading tool, or the files of a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use catalog::WitnessState;
use config::WitnessSettings;
use model::{Digest, Value, canonical};
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
        WitnessState::Vanished => "something is gone",
        WitnessState::Noisy => "changes by itself",
    }
}

/// What a witness shows at one time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// All of it.
    pub(super) digest: Digest,
    /// What can be told apart in it, by name, and how many rows were counted. Neither is kept.
    things: BTreeSet<Vec<u8>>,
    count: Option<u64>,
}

impl Shown {
    /// Whether something that is here is gone in what came later.
    pub(super) fn lost(&self, later: &Self) -> bool {
        let fewer = self
            .count
            .zip(later.count)
            .is_some_and(|(before, after)| after < before);
        fewer || !self.things.is_subset(&later.things)
    }

    fn of_things(digest: Digest, things: BTreeSet<Vec<u8>>) -> Self {
        Self {
            digest,
            things,
            count: None,
        }
    }
}

impl Probing<'_> {
    /// What all witnesses of a plan show, in its order.
    pub(super) async fn measure(&self, plan: &Plan) -> Result<Vec<Shown>, Failure> {
        let mut all = Vec::new();
        for (name, witness) in &plan.witnesses {
            let shown = match witness {
                WitnessSettings::Sql { source, query } => self.query(source, query).await,
                WitnessSettings::Tool { tool, arguments } => {
                    let answered = self.call(tool, read(self.settings, arguments)?).await;
                    answered.into_answer().map(|value| {
                        let mut things = BTreeSet::new();
                        ids(&value, &mut things);
                        Shown::of_things(Digest::of(TAG, &[&canonical(&value)]), things)
                    })
                }
                WitnessSettings::Folder(folder) => files(Path::new(folder)),
            };
            all.push(
                shown.map_err(|why| {
                    Failure::Unavailable(format!("the witness `{name}` says nothing: {why}"))
                })?,
            );
        }
        Ok(all)
    }

    async fn query(&self, source: &model::SourceName, query: &str) -> Result<Shown, String> {
        // Any other number can fall without a row being gone.
        let counts = query
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("select count(");
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
            FactRow::One(value) => {
                let text = value.to_string();
                Ok(Shown {
                    digest: Digest::of(TAG, &[b"value", text.as_bytes()]),
                    things: BTreeSet::new(),
                    count: text.parse().ok().filter(|_| counts),
                })
            }
            FactRow::None | FactRow::Null => {
                Ok(Shown::of_things(Digest::of(TAG, &[b"nothing"]), BTreeSet::new()))
            }
            FactRow::Many => Err("the query gives more than one row; compare one value, as a sum".to_owned()),
        }
    }
}

/// The values of all members `id` of an answer, each with where it stands but for its place in a list.
fn ids(answer: &Value, things: &mut BTreeSet<Vec<u8>>) {
    let mut open: Vec<(String, &Value)> = vec![(String::new(), answer)];
    while let Some((place, value)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (place.clone(), item))),
            Value::Object(object) => {
                if let Some(id) = object.get("id").filter(|id| id.is_string() || id.is_number()) {
                    things.insert(format!("{place} {id}").into_bytes());
                }
                open.extend(
                    object
                        .iter()
                        .map(|(key, value)| (format!("{place}/{key}"), value)),
                );
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The names and contents of all files below a folder. Links are not followed; what they say is compared.
fn files(folder: &Path) -> Result<Shown, String> {
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
    let names = found
        .iter()
        .map(|path| path.as_os_str().as_encoded_bytes().to_vec())
        .collect();
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
    Ok(Shown::of_things(Digest::of(TAG, &parts), names))
}
