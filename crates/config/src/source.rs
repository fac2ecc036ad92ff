//! Sources of facts, as configured: a database to ask, or a file of owners. The file is read here; nothing is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{JsonLimits, ResourceType, SecretText, SourceName, TenantId, Value};
use secrecy::ExposeSecret;

use crate::address::{self, Database};
use crate::check::excerpt;
use crate::fault::{ConfigFault, FaultKind};
use crate::lookup::SourceKind;
use crate::place::Place;
use crate::reading::{DocumentFile, Reading};
use crate::text::of_name;
use crate::view::View;

/// Where a database is. `Debug` shows no URL, which may hold a password.
#[derive(Debug, Clone)]
pub enum StoreSetting {
    /// A SQLite file: as written, behind the folder of the configuration where it is relative.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL server: `postgres://…`, with a host.
    Postgres(SecretText),
}

impl StoreSetting {
    /// The place as one text: `sqlite:/srv/tollhouse/tollhouse.db` or `postgres://…`.
    #[must_use]
    pub fn url(&self) -> SecretText {
        match self {
            Self::Sqlite(path) => SecretText::from(format!("sqlite:{}", path.display())),
            Self::Postgres(url) => SecretText::from(url.expose_secret().to_owned()),
        }
    }
}

/// `[source.<name>]`.
#[derive(Debug, Clone)]
pub enum SourceSettings {
    /// A database that is asked with prepared queries.
    Sql(StoreSetting),
    /// A file of owners.
    File(Owners),
}

/// The owners of things by type and id, from a file.
///
/// Shape of the file: `{"Invoice": {"inv-1": "north"}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owners {
    /// The path of the file.
    pub path: String,
    owners: BTreeMap<ResourceType, BTreeMap<String, TenantId>>,
}

impl Owners {
    /// Who owns a thing; `None` where the file does not know it.
    #[must_use]
    pub fn owner(&self, kind: &ResourceType, id: &str) -> Option<&TenantId> {
        self.owners.get(kind)?.get(id)
    }

    /// How many things the file knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owners.values().map(BTreeMap::len).sum()
    }

    /// Whether the file knows nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// All sources. Those that cannot be read are left out; their faults are known.
pub(crate) fn read(reading: &mut Reading<'_>, root: &View<'_>) -> BTreeMap<SourceName, SourceSettings> {
    let mut sources = BTreeMap::new();
    for (name, view) in root.named("source") {
        let settings = if view.has("sql") {
            database(reading, &view, "sql").map(SourceSettings::Sql)
        } else {
            owners(reading, &view).map(SourceSettings::File)
        };
        if let (Some(settings), Ok(name)) = (settings, SourceName::parse(name)) {
            sources.insert(name, settings);
        }
    }
    sources
}

/// What each source says it is, whether or not it can be read.
pub(crate) fn kinds(root: &View<'_>) -> BTreeMap<String, Option<SourceKind>> {
    let kind = |view: &View<'_>| match (view.has("sql"), view.has("file")) {
        (true, _) => Some(SourceKind::Sql),
        (false, true) => Some(SourceKind::File),
        (false, false) => None,
    };
    root.named("source")
        .iter()
        .map(|(name, view)| ((*name).to_owned(), kind(view)))
        .collect()
}

/// The database that a key names.
pub(crate) fn database(reading: &mut Reading<'_>, view: &View<'_>, name: &str) -> Option<StoreSetting> {
    let resolved = reading.resolve(view, name)?;
    match address::database(&resolved.text).ok()? {
        Database::Sqlite(path) => Some(StoreSetting::Sqlite(reading.path(&path))),
        Database::Postgres { password } => {
            if password && resolved.from.is_none() && !reading.clear_text {
                let fault = reading.fault_at(
                    view,
                    name,
                    FaultKind::ClearText,
                    "this database URL holds a password in clear",
                );
                reading.faults.push(
                    fault
                        .expected("env:NAME or file:PATH instead")
                        .hint("whoever reads this file could use it"),
                );
                return None;
            }
            Some(StoreSetting::Postgres(resolved.into_secret()))
        }
    }
}

fn owners(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Owners> {
    let path = reading.resolve(view, "file")?.text;
    let max = reading.limits.config_bytes_max;
    let file = reading.file_of(view, "file", &path, max, FaultKind::Unreadable)?;
    match parse(&file, max) {
        Ok(owners) => Some(Owners {
            path: file.path,
            owners,
        }),
        Err(faults) => {
            for fault in faults {
                reading.faults.push(fault.key(&view.key("file")));
            }
            None
        }
    }
}

const SHAPE: &str = "{\"Invoice\": {\"inv-1\": \"north\"}}";

type OwnersByType = BTreeMap<ResourceType, BTreeMap<String, TenantId>>;

fn parse(file: &DocumentFile, bytes_max: usize) -> Result<OwnersByType, Vec<ConfigFault>> {
    let fault = |problem: String| ConfigFault::of_file(&file.path, FaultKind::WrongValue, problem);
    let limits = JsonLimits {
        bytes_max,
        depth_max: 8,
    };
    let value = model::parse(&file.bytes, limits).map_err(|json| {
        let place = Place {
            file: file.path.clone(),
            line: json.line,
            column: json.column.max(1),
        };
        let problem = format!(
            "this is not JSON that may pass: {}",
            excerpt(&json.kind.to_string())
        );
        vec![ConfigFault::of_file(&file.path, FaultKind::Syntax, problem).at(&place)]
    })?;
    let Value::Object(types) = value else {
        return Err(vec![
            fault("this is no table of owners".to_owned()).expected(SHAPE),
        ]);
    };
    let (mut owners, mut faults) = (OwnersByType::new(), Vec::new());
    for (kind, things) in types {
        match (ResourceType::parse(&kind), things) {
            (Err(name), _) => faults.push(fault(format!(
                "the type `{}` {}",
                excerpt(&kind),
                of_name(&name).problem
            ))),
            (Ok(kind), Value::Object(things)) => {
                let ids = owners.entry(kind.clone()).or_default();
                for (id, owner) in things {
                    match tenant(&owner) {
                        Ok(tenant) => drop(ids.insert(id, tenant)),
                        Err(problem) => {
                            faults.push(fault(format!("the owner of {kind} `{}` {problem}", excerpt(&id))))
                        }
                    }
                }
            }
            (Ok(kind), _) => {
                faults.push(
                    fault(format!("the things of type `{kind}` are no table of owners")).expected(SHAPE),
                );
            }
        }
    }
    if faults.is_empty() {
        Ok(owners)
    } else {
        Err(faults)
    }
}

fn tenant(owner: &Value) -> Result<TenantId, String> {
    let Value::String(owner) = owner else {
        return Err("is no text".to_owned());
    };
    TenantId::parse(owner)
        .map_err(|name| format!("is `{}`, which {}", excerpt(owner), of_name(&name).problem))
}
