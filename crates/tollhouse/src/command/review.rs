//! `tollhouse review`: the readiness report of a document, alone or with the configuration that has it. What is in the
//! report is found by the room `review`; here it gets its parts, a progress bar, and a place to be written to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use config::{DocumentFile, DocumentRoot, SystemWorld, UpstreamSettings, World as _};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use model::Limits;
use openapi::{Absent, Document, DocumentLimits, Reading, Sources};
use review::{Configured, Inputs, Report};

use super::Looking;
use crate::cli::{ConfigPath, ReportForm, Review};
use crate::failure::Failure;
use crate::house::document::Reach;
use crate::house::{self, BUILD};
use crate::log;
use crate::print::{self, say, tell};

/// Rows that the short table of a terminal has; every other form has more.
const ROWS_MAX: usize = 60;

pub(crate) async fn review(args: Review) -> Result<(), Failure> {
    log::start_quiet();
    let bytes = read(&args.document, Limits::default().document_bytes_max)?;
    let report = match &args.config {
        None => alone(&args, &bytes)?,
        Some(config) => {
            let path = ConfigPath {
                config: config.clone(),
            };
            let looking = Looking::open(&path).await?;
            let report = with_configuration(&args, &bytes, &looking).await;
            looking.close().await;
            report?
        }
    };
    write(&args, &report)?;
    judge(&report)
}

/// A document without a configuration: with the other files of its own folder, and the overlays of the command line. So is
/// an earlier version of it.
fn alone(args: &Review, bytes: &[u8]) -> Result<Report, Failure> {
    let mut overlays = Vec::new();
    for path in &args.overlays {
        overlays.push(read(path, Limits::default().document_bytes_max)?);
    }
    let overlays: Vec<&[u8]> = overlays.iter().map(Vec::as_slice).collect();
    let folder = Folder::of(&args.document)?;
    let document = folder.read(&args.document, bytes, &overlays)?;
    let before_overlays = if overlays.is_empty() {
        document.operations().count()
    } else {
        folder.read(&args.document, bytes, &[])?.operations().count()
    };
    let old = match &args.diff {
        None => None,
        Some(path) => {
            let bytes = read(path, Limits::default().document_bytes_max)?;
            Some(Folder::of(path)?.read(path, &bytes, &overlays)?)
        }
    };
    let subject = Subject {
        bytes,
        own_path: &folder.document,
        files: &folder.files.borrow(),
        document: &document,
        before_overlays,
    };
    Ok(made(args, &subject, None, old.as_ref()))
}

/// The folder that a document lies in, and the files of it that were read. No link is followed, and nothing above it is read.
struct Folder {
    root: PathBuf,
    document: String,
    files: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Folder {
    fn of(document: &Path) -> Result<Self, Failure> {
        let whole = fs::canonicalize(document)
            .map_err(|error| Failure::Input(format!("`{}` cannot be read: {error}", document.display())))?;
        Ok(Self {
            root: whole.parent().unwrap_or(Path::new("/")).to_owned(),
            document: whole
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            files: RefCell::default(),
        })
    }

    /// Reads the document, which was named `path`, with the files of the folder.
    fn read(&self, path: &Path, bytes: &[u8], overlays: &[&[u8]]) -> Result<Document, Failure> {
        let reading = Reading {
            limits: DocumentLimits::default(),
            path: &self.document,
            sources: self,
            overlays,
        };
        Document::read_with(bytes, &reading)
            .map_err(|fault| Failure::Input(format!("`{}`: {fault}", path.display())))
    }
}

impl Sources for Folder {
    fn file(&self, path: &str) -> Result<Vec<u8>, Absent> {
        let absent = |text: String| Absent {
            text,
            clears: format!(
                "put the file into `{}`, or bundle the document",
                self.root.display()
            ),
        };
        let max = Limits::default().document_bytes_max;
        let mut files = self.files.borrow_mut();
        let read_before: usize = files.values().map(Vec::len).sum();
        let bytes = SystemWorld
            .read_inside(&self.root, path, max.saturating_sub(read_before))
            .map_err(|fault| absent(format!("`{path}` {fault}")))?;
        files.insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// What a report is about.
struct Subject<'a> {
    bytes: &'a [u8],
    own_path: &'a str,
    files: &'a BTreeMap<String, Vec<u8>>,
    document: &'a Document,
    before_overlays: usize,
}

async fn with_configuration(args: &Review, bytes: &[u8], looking: &Looking) -> Result<Report, Failure> {
    let settings = &looking.settings;
    let upstream = upstream(settings, &args.document, bytes)?;
    let read = async |upstream: &UpstreamSettings, path: &Path| {
        house::document::read(upstream, &settings.limits, &SystemWorld, Reach::Configured)
            .await
            .map_err(|fault| Failure::Input(format!("`{}`: {fault}", path.display())))
    };
    let document = read(upstream, &args.document).await?;
    let before_overlays = if upstream.overlays.is_empty() {
        document.operations().count()
    } else {
        let bare = UpstreamSettings {
            overlays: Vec::new(),
            ..upstream.clone()
        };
        read(&bare, &args.document).await?.operations().count()
    };
    let old = match &args.diff {
        None => None,
        Some(path) => Some(read(&earlier(upstream, path, settings)?, path).await?),
    };
    // The second counter goes through the same files. One of a server it cannot see, and says so.
    let files = document
        .files()
        .iter()
        .filter_map(|path| {
            let max = settings.limits.document_bytes_max;
            let bytes = SystemWorld.read_inside(&upstream.root.folder, path, max).ok()?;
            Some((path.clone(), bytes))
        })
        .collect();
    let callers = house::callers(settings, identity::ISSUER_OF_CONFIGURED)
        .iter()
        .map(|(name, caller)| (name.to_string(), identity::configured(caller)))
        .collect();
    let configured = Configured {
        settings,
        upstream,
        gateway: &looking.gateway,
        callers,
        names: looking
            .names
            .of(upstream, &document)
            .map_err(|fault| Failure::Input(fault.to_string()))?,
    };
    let subject = Subject {
        bytes,
        own_path: &upstream.root.document,
        files: &files,
        document: &document,
        before_overlays,
    };
    Ok(made(args, &subject, Some(configured), old.as_ref()))
}

/// An upstream whose document is an earlier version: it has the files of its own folder, and all else is the same.
fn earlier(
    upstream: &UpstreamSettings,
    path: &Path,
    settings: &config::Settings,
) -> Result<UpstreamSettings, Failure> {
    let folder = Folder::of(path)?;
    Ok(UpstreamSettings {
        openapi: DocumentFile {
            path: path.display().to_string(),
            bytes: read(path, settings.limits.document_bytes_max)?,
        },
        root: DocumentRoot {
            folder: folder.root,
            document: folder.document,
        },
        ..upstream.clone()
    })
}

/// The upstream of the configuration that has exactly these bytes.
fn upstream<'s>(
    settings: &'s config::Settings,
    path: &Path,
    bytes: &[u8],
) -> Result<&'s UpstreamSettings, Failure> {
    let found = settings
        .upstreams
        .iter()
        .find(|upstream| upstream.openapi.bytes == bytes);
    found.ok_or_else(|| {
        let known: Vec<&str> = settings
            .upstreams
            .iter()
            .map(|upstream| upstream.openapi.path.as_str())
            .collect();
        Failure::Input(format!(
            "no upstream of `{}` has the document `{}`; it has {}",
            settings.path.display(),
            path.display(),
            known.join(", ")
        ))
    })
}

fn made(
    args: &Review,
    subject: &Subject<'_>,
    configured: Option<Configured<'_>>,
    old: Option<&Document>,
) -> Report {
    let document = subject.document;
    let bar = bar(document.operations().count());
    let progress = |done: usize| bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
    let mut report = review::survey(&Inputs {
        path: &args.document.display().to_string(),
        bytes: subject.bytes,
        own_path: subject.own_path,
        files: subject.files,
        document,
        before_overlays: subject.before_overlays,
        build: BUILD,
        now: Timestamp::now(),
        configured,
        progress: &progress,
    });
    bar.finish_and_clear();
    report.changes = old.map(|old| review::changes(old, document, &report.tools));
    report
}

/// A bar on standard error, where a person looks at it; nothing elsewhere.
fn bar(operations: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let length = u64::try_from(operations).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(length), target);
    match ProgressStyle::with_template("{bar:40} {pos} of {len} operations") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A file of at most so many bytes, and one more, so that the reader of documents can say that it is too long.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::Input(format!("`{}` cannot be read: {error}", path.display()));
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

// === what is said ===

fn write(args: &Review, report: &Report) -> Result<(), Failure> {
    let form = if args.json { ReportForm::Json } else { args.format };
    let text = match form {
        ReportForm::Table if args.out.is_none() => {
            table(report);
            return Ok(());
        }
        ReportForm::Table => {
            return Err(Failure::Input(
                "a table is for a terminal and is not written to a file; add `--format html`, markdown, json, sarif or csv"
                    .to_owned(),
            ));
        }
        ReportForm::Html => review::html(report),
        ReportForm::Markdown => review::markdown(report),
        ReportForm::Json => json(report)?,
        ReportForm::Sarif => json(&review::sarif(report))?,
        ReportForm::Csv => review::csv(report),
    };
    match &args.out {
        None => print::bytes(text.as_bytes()),
        Some(path) => {
            fs::write(path, text).map_err(|error| {
                Failure::Input(format!("`{}` cannot be written: {error}", path.display()))
            })?;
            tell!("wrote {}", path.display());
        }
    }
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    print::pretty(value).map_err(|error| Failure::Internal(format!("the report cannot be written: {error}")))
}

fn table(report: &Report) {
    let summary = &report.summary;
    say!(
        "{}: {}, {} exposed, {} excluded, {} blocked, {} unreviewed",
        report.subject.title.as_deref().unwrap_or(&report.subject.path),
        print::counted(summary.operations, "operation", "operations"),
        summary.exposed,
        summary.excluded,
        summary.blocked,
        summary.unreviewed
    );
    match summary.counted {
        Some(counted) => say!("a second counter finds {counted} in the bytes"),
        None => say!(
            "a second counter cannot tell: {}",
            summary.uncounted.as_deref().unwrap_or("no reason is known")
        ),
    }
    say!("");
    let rows = report.tools.iter().take(ROWS_MAX).map(|row| {
        let class = |class: Option<model::Class>| class.map_or("–", model::Class::as_str).to_owned();
        let why: Vec<String> = row
            .blockers
            .iter()
            .map(|block| block.code.clone())
            .chain(row.exclusions.iter().map(ToString::to_string))
            .collect();
        vec![
            row.status.as_str().to_owned(),
            row.method.clone(),
            row.path.clone(),
            row.name.clone(),
            class(row.class.declared),
            class(row.class.inferred),
            class(row.class.observed),
            why.join(", "),
        ]
    });
    print::table(
        &[
            "status", "method", "path", "name", "declared", "inferred", "observed", "why",
        ],
        rows.collect(),
    );
    if let Some(left) = report.tools.len().checked_sub(ROWS_MAX).filter(|left| *left > 0) {
        say!("… and {left} more; `--format html` shows them");
    }
    if !report.blockers.is_empty() {
        say!("");
        let rows = report.blockers.iter().take(ROWS_MAX).map(|group| {
            vec![
                group.severity.as_str().to_owned(),
                group.code.clone(),
                group.count.to_string(),
                group.pointers.first().cloned().unwrap_or_default(),
                group.owner_in_words(),
                group.clears.clone(),
            ]
        });
        print::table(
            &[
                "severity",
                "blocker",
                "operations",
                "place",
                "owner",
                "what clears it",
            ],
            rows.collect(),
        );
    }
    if let Some(changes) = &report.changes {
        say!("");
        let rows = changes.iter().take(ROWS_MAX).map(|change| {
            vec![
                change.kind.as_str().to_owned(),
                change.operation.clone(),
                change.detail.clone(),
                change.revokes.join(", "),
            ]
        });
        print::table(&["change", "operation", "detail", "takes away"], rows.collect());
    }
    let budget = &report.budget;
    say!(
        "\n{} enabled: {} bytes, about {} tokens; {} to look at",
        print::counted(budget.tools, "tool is", "tools are"),
        budget.bytes,
        budget.tokens,
        print::counted(report.texts_marked, "text", "texts")
    );
    for reason in &report.verdict.reasons {
        say!("not ready: {reason}");
    }
    if report.verdict.ready {
        say!("ready, as {}", report.verdict.digest);
    }
}

/// A report that analysed nothing, whose counts do not fit together, whose configured tools are held, or whose changes take
/// approvals away, is a no.
fn judge(report: &Report) -> Result<(), Failure> {
    let held = report.held().count();
    if report.is_void() {
        tell!("tollhouse: {}", report.verdict.reasons.join("; "));
    } else if !report.reconciliation.strays.is_empty() {
        tell!(
            "tollhouse: callers see what they should not: {}",
            report.reconciliation.strays.join(", ")
        );
    } else if held > 0 {
        tell!(
            "tollhouse: {}",
            print::counted(held, "configured tool is held", "configured tools are held")
        );
    } else if report.revoked() > 0 {
        tell!(
            "tollhouse: the changes take away {}",
            print::counted(report.revoked(), "approval", "approvals")
        );
    } else {
        return Ok(());
    }
    Err(Failure::No)
}
