//! `tollhouse init DOCUMENT`: the operations of a document as questions in a configuration. What a person wrote stays as it
//! is, byte for byte: the file only ever grows at its end, and what is written into it are comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::{Limits, UpstreamName};
use openapi::{Document, DocumentLimits};
use review::{Inputs, Report, Row};
use toml_edit::{DocumentMut, Item};

use crate::cli::Init;
use crate::failure::Failure;
use crate::house::BUILD;
use crate::print::{self, say};

/// The largest configuration that is added to, in bytes; a larger one is not read either.
const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// Where the sample upstream of the template begins.
const SAMPLE: &str = "# A service behind the gate.";

pub(super) fn document(args: &Init) -> Result<(), Failure> {
    let path = &args.target;
    let bytes = super::super::review::read(path, Limits::default().document_bytes_max)?;
    let document = Document::read(&bytes, &DocumentLimits::default())
        .map_err(|fault| Failure::Input(format!("`{}`: {fault}", path.display())))?;
    let report = surveyed(path, &bytes, &document);
    let (before, is_new) = written(&args.config)?;
    let parsed: DocumentMut = before.parse().map_err(|fault| {
        Failure::Input(format!(
            "`{}` is no TOML, so nothing is added to it: {fault}",
            args.config.display()
        ))
    })?;
    let openapi = relative(&args.config, path);
    let known = Known::read(&parsed, &before, &openapi);
    let upstream = upstream(args, &document, &known)?;
    let mut added = String::new();
    if known.upstream.is_none() {
        added.push_str(&table(&upstream, &openapi, &document));
    }
    let is_known = |row: &Row| known.has(row);
    let count = report.tools.iter().filter(|row| !is_known(row)).count();
    added.push_str(&review::questions(&report, upstream.as_str(), &is_known));
    let mut after = before.clone();
    if !after.is_empty() && !after.ends_with('\n') && !added.is_empty() {
        after.push('\n');
    }
    after.push_str(&added);
    // What is about to be written has to be TOML, and everything that was there has to be in front of it.
    if after.parse::<DocumentMut>().is_err() || !after.starts_with(&before) {
        return Err(Failure::Internal(format!(
            "`{}` would not be TOML any more; nothing was written",
            args.config.display()
        )));
    }
    if added.is_empty() && !is_new {
        say!(
            "kept {}, which has every operation of the document",
            args.config.display()
        );
        return Ok(());
    }
    replace(&args.config, &after)?;
    let operations = print::counted(count, "operation", "operations");
    if is_new {
        super::policy_folder(args.config.parent().unwrap_or(Path::new("")))?;
        say!("wrote {}: {operations}, all of them held", args.config.display());
    } else {
        say!(
            "added {operations} to {}, all of them held; nothing else was changed",
            args.config.display()
        );
    }
    say!("");
    say!("next: answer the questions of an operation, take it out of its comment, and run `tollhouse check`");
    say!(
        "what the document offers and what is in the way: `tollhouse review {} --format html --out review.html`",
        path.display()
    );
    Ok(())
}

fn surveyed(path: &Path, bytes: &[u8], document: &Document) -> Report {
    review::survey(&Inputs {
        path: &path.display().to_string(),
        bytes,
        own_path: "",
        files: &BTreeMap::new(),
        document,
        before_overlays: document.operations().count(),
        build: BUILD,
        now: Timestamp::now(),
        configured: None,
        progress: &|_| {},
    })
}

/// The configuration as it stands, or the start of one.
fn written(path: &Path) -> Result<(String, bool), Failure> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > CONFIG_BYTES_MAX => Err(Failure::Input(format!(
            "`{}` has {} bytes; at most {CONFIG_BYTES_MAX} are read",
            path.display(),
            metadata.len()
        ))),
        Ok(_) => fs::read_to_string(path)
            .map(|text| (text, false))
            .map_err(|error| Failure::Input(format!("`{}` cannot be read: {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let template = config::template();
            let start = template.split(SAMPLE).next().unwrap_or(template);
            Ok((start.to_owned(), true))
        }
        Err(error) => Err(Failure::Input(format!(
            "`{}` cannot be read: {error}",
            path.display()
        ))),
    }
}

/// What a configuration already has of the document.
struct Known {
    /// The upstream that has it.
    upstream: Option<String>,
    /// Names of all upstreams.
    upstreams: BTreeSet<String>,
    /// Operations that tools or questions name.
    operations: BTreeSet<String>,
}

impl Known {
    fn read(parsed: &DocumentMut, text: &str, openapi: &str) -> Self {
        let mut known = Self {
            upstream: None,
            upstreams: BTreeSet::new(),
            operations: BTreeSet::new(),
        };
        let upstreams = parsed.get("upstream").and_then(Item::as_table_like);
        for (name, upstream) in upstreams.into_iter().flat_map(|table| table.iter()) {
            known.upstreams.insert(name.to_owned());
            let is_ours = upstream.get("openapi").and_then(Item::as_str) == Some(openapi);
            if !is_ours || known.upstream.is_some() {
                continue;
            }
            known.upstream = Some(name.to_owned());
            let tools = upstream.get("tool").and_then(Item::as_table_like);
            for (_, tool) in tools.into_iter().flat_map(|table| table.iter()) {
                known
                    .operations
                    .extend(tool.get("operation").and_then(Item::as_str).map(str::to_owned));
            }
        }
        // Questions that were asked before, answered or not, and whatever a person made of them.
        for line in text.lines() {
            let Some(value) = line
                .trim_start()
                .strip_prefix('#')
                .map(str::trim_start)
                .and_then(|line| line.strip_prefix("operation"))
                .map(str::trim_start)
                .and_then(|line| line.strip_prefix('='))
            else {
                continue;
            };
            if let Ok(value) = value.trim().parse::<toml_edit::Value>()
                && let Some(operation) = value.as_str()
            {
                known.operations.insert(operation.to_owned());
            }
        }
        known
    }

    fn has(&self, row: &Row) -> bool {
        let by_path = format!("{} {}", row.method, row.path);
        self.operations.contains(&by_path)
            || row
                .operation_id
                .as_ref()
                .is_some_and(|id| self.operations.contains(id))
    }
}

/// The name of the upstream: the one that has the document, the one that was asked for, or one made of the title.
fn upstream(args: &Init, document: &Document, known: &Known) -> Result<UpstreamName, Failure> {
    let parse = |name: &str| {
        UpstreamName::parse(name).map_err(|fault| Failure::Input(format!("{fault}; write `--upstream NAME`")))
    };
    if let Some(name) = &known.upstream {
        return parse(name);
    }
    let name = match &args.upstream {
        Some(name) => parse(name)?,
        None => {
            let title = document.title().unwrap_or("api").to_lowercase();
            let words: Vec<&str> = title
                .split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty() && !["api", "the", "rest"].contains(word))
                .take(2)
                .collect();
            UpstreamName::parse(&words.join("-")).or_else(|_| parse("api"))?
        }
    };
    if known.upstreams.contains(name.as_str()) {
        return Err(Failure::Input(format!(
            "`{}` has an upstream `{name}` with another document; write `--upstream NAME`",
            args.config.display()
        )));
    }
    Ok(name)
}

fn table(upstream: &UpstreamName, openapi: &str, document: &Document) -> String {
    let quoted = |text: &str| toml_edit::Value::from(text).to_string();
    let mut text =
        "\n# A service behind the gate. Where it is, is for you to say and never for the document".to_owned();
    if let Some(server) = document.destinations().first() {
        let url: String = review::visible(&server.url)
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        text.push_str(&format!(", which names {url}"));
    }
    text.push_str(&format!(
        ".\n[upstream.{upstream}]\nopenapi = {}\ndestination = \"https://api.example.com\"\n# network = {{ allow = [\"10.1.2.0/24\"] }}\n# credential = {{ bearer = \"env:API_TOKEN\" }}\n\n# Every operation of the document is held. Below each are the questions that a reviewer has to answer.\n",
        quoted(openapi)
    ));
    text
}

/// The document as the configuration names it: relative to the folder of the configuration where it lies in there.
fn relative(config: &Path, document: &Path) -> String {
    let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty());
    let found: PathBuf = match folder {
        None => document.strip_prefix(".").unwrap_or(document).to_owned(),
        Some(folder) => match document.strip_prefix(folder) {
            Ok(inside) => inside.to_owned(),
            Err(_) => fs::canonicalize(document).unwrap_or_else(|_| document.to_owned()),
        },
    };
    found.display().to_string()
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Input(format!("`{}` cannot be written: {error}", path.display()));
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(metadata) = fs::metadata(path) {
        fs::set_permissions(file.path(), metadata.permissions()).map_err(failed)?;
    }
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
