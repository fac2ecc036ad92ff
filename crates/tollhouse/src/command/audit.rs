//! `tollhouse audit`: the ledger, to read, to take away, to check.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use audit::{Entry, ExportFault, PublicKey, Report, Selection, VerifyOptions};
use jiff::Timestamp;
use model::{CallId, Value};
use serde_json::json;
use store::{LedgerFilter, LedgerOrder, Store};
use tokio_util::sync::CancellationToken;

use crate::cli::{Export, Show, Tail, Verify};
use crate::failure::Failure;
use crate::print::{self, counted, say, tell};
use crate::{house, log};

/// How often `--follow` looks for new entries.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// How many faults of an export a person is shown.
const FAULTS_SHOWN_MAX: usize = 20;

pub(crate) async fn tail(args: Tail) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let store = house::store(&settings).await?;
    let mut filter = LedgerFilter {
        limit: args.lines,
        order: LedgerOrder::Newest,
        ..LedgerFilter::default()
    };
    let mut seen = HashSet::new();
    let mut latest = None;
    let mut say = |mut entries: Vec<Entry>, seen: &mut HashSet<String>| {
        entries.reverse();
        for entry in entries {
            if seen.insert(entry.place().to_string()) {
                latest = latest.max(Some(entry.time()));
                show_entry(&entry, args.format.json);
            }
        }
        latest
    };
    let entries = audit::tail(&store, &filter).await.map_err(unreadable)?;
    let mut since = say(entries, &mut seen);
    if !args.follow {
        store.close().await;
        return Ok(());
    }
    let interrupted = CancellationToken::new();
    super::serve::spawn_signals(interrupted.clone());
    loop {
        tokio::select! {
            () = interrupted.cancelled() => break,
            () = tokio::time::sleep(FOLLOW_EVERY) => {}
        }
        // Entries of several processes are not written in the order of their times, hence the overlap.
        let from = since.unwrap_or(Timestamp::UNIX_EPOCH);
        filter.since = Some(from.as_microsecond().saturating_sub(2_000_000));
        filter.limit = 10_000;
        let entries = audit::tail(&store, &filter).await.map_err(unreadable)?;
        since = say(entries, &mut seen);
        if print::lost() {
            break;
        }
    }
    store.close().await;
    Ok(())
}

pub(crate) async fn show(args: Show) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let call: CallId = args
        .call
        .parse()
        .map_err(|_| Failure::Input(format!("`{}` is no id of a call; entries show it", args.call)))?;
    let store = house::store(&settings).await?;
    let entries = audit::show(&store, call).await.map_err(unreadable)?;
    store.close().await;
    if entries.is_empty() {
        return Err(Failure::Input(format!("the ledger has no call `{call}`")));
    }
    if args.format.json {
        let bodies: Vec<Value> = entries
            .iter()
            .map(|entry| Value::Object(entry.body().clone()))
            .collect();
        print::json(&bodies);
    } else {
        for entry in &entries {
            say!("{entry}");
            print::json(entry.body());
        }
    }
    Ok(())
}

pub(crate) async fn export(args: Export) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let store = house::store(&settings).await?;
    let selection = Selection {
        since: args.since,
        ..Selection::default()
    };
    let written = match &args.out {
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let written = audit::export(&store, selection, &mut out).await;
            written.and_then(|count| out.flush().map(|()| count).map_err(ExportFault::from))
        }
        Some(path) => to_file(&store, selection, path).await,
    };
    store.close().await;
    let count = match written {
        Ok(count) => count,
        // Whoever read it had enough.
        Err(ExportFault::Write(error)) if args.out.is_none() && error.kind() == ErrorKind::BrokenPipe => {
            return Ok(());
        }
        Err(fault @ ExportFault::Write(_)) => return Err(Failure::Unavailable(fault.to_string())),
        Err(fault) => return Err(unreadable(fault)),
    };
    tell!(
        "{}",
        counted(count, "entry was exported", "entries were exported")
    );
    Ok(())
}

/// Writes beside the target and moves it there when it is whole, so that nobody finds half an export.
async fn to_file(store: &Store, selection: Selection, path: &Path) -> Result<u64, ExportFault> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let count = {
        let mut out = BufWriter::new(file.as_file_mut());
        let count = audit::export(store, selection, &mut out).await?;
        out.flush()?;
        count
    };
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(count)
}

pub(crate) async fn verify(args: Verify) -> Result<(), Failure> {
    log::start_quiet();
    let pinned_key = args
        .key
        .as_deref()
        .map(|text| text.parse::<PublicKey>())
        .transpose()
        .map_err(|fault| Failure::Input(format!("`--key`: {fault}")))?;
    let options = VerifyOptions {
        pinned_key,
        partial: args.partial,
    };
    let report = match &args.file {
        Some(path) if path.as_os_str() == "-" => audit::verify(std::io::stdin().lock(), options),
        Some(path) => {
            let file = File::open(path)
                .map_err(|error| Failure::Input(format!("`{}` cannot be read: {error}", path.display())))?;
            audit::verify(BufReader::new(file), options)
        }
        None => {
            let settings = super::settings(&args.path)?;
            let store = house::store(&settings).await?;
            let mut file = tempfile::tempfile()
                .map_err(|error| Failure::Unavailable(format!("no temporary file can be made: {error}")))?;
            audit::export(&store, Selection::default(), BufWriter::new(&mut file))
                .await
                .map_err(unreadable)?;
            file.rewind()
                .map_err(|error| Failure::Unavailable(error.to_string()))?;
            let mut report = audit::verify(BufReader::new(file), options);
            if let Ok(report) = &mut report {
                audit::check_filing(&store, report).await.map_err(unreadable)?;
            }
            store.close().await;
            report
        }
    };
    let report = report.map_err(|fault| Failure::Input(format!("the export cannot be read: {fault}")))?;
    if args.format.json {
        print::json(&to_json(&report));
    } else {
        say(&report);
    }
    if report.sound() {
        Ok(())
    } else {
        Err(Failure::Unsound)
    }
}

fn show_entry(entry: &Entry, json: bool) {
    if json {
        print::json_line(&Value::Object(entry.body().clone()));
    } else {
        say!("{entry}");
    }
}

fn to_json(report: &Report) -> Value {
    json!({
        "sound": report.sound(),
        "entries": report.entries,
        "calls": report.calls,
        "refused": report.refused,
        "unknown": report.unknown.iter().map(|call| json!({
            "call": call.call, "tool": call.tool, "time": call.time, "class": call.class,
        })).collect::<Vec<_>>(),
        "unknown_total": report.unknown_total,
        "faults": report.faults.iter().map(|hole| json!({
            "line": hole.line, "chain": hole.chain, "seq": hole.seq, "kind": hole.kind.as_str(), "text": hole.text,
        })).collect::<Vec<_>>(),
        "faults_total": report.faults_total,
        "keys": report.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "chains": report.chains.iter().map(|chain| json!({
            "chain": chain.chain, "first": chain.first, "last": chain.last, "stopped": chain.stopped,
            "after_last_checkpoint": chain.after_last_checkpoint,
        })).collect::<Vec<_>>(),
        "partial": report.partial,
    })
}

fn say(report: &Report) {
    let open: u64 = report
        .chains
        .iter()
        .map(|chain| chain.after_last_checkpoint)
        .sum();
    say!(
        "{} in {}: {}, {}",
        counted(report.entries, "entry", "entries"),
        counted(report.chains.len(), "chain", "chains"),
        counted(report.calls, "call", "calls"),
        counted(report.refused, "refusal", "refusals")
    );
    for key in &report.keys {
        say!("signed with {key}");
    }
    if open > 0 {
        let open = counted(open, "entry stands", "entries stand");
        say!(
            "{open} after the last checkpoint of a chain; if later ones were cut off, this export cannot show it"
        );
    }
    for call in &report.unknown {
        say!(
            "unknown: call {} of {} at {}: it was intended, and how it ended is not recorded",
            call.call,
            call.tool.as_deref().unwrap_or("a tool"),
            call.time
        );
    }
    for hole in report.faults.iter().take(FAULTS_SHOWN_MAX) {
        tell!("line {}: {}: {}", hole.line, hole.kind.as_str(), hole.text);
    }
    if report.faults.len() > FAULTS_SHOWN_MAX {
        tell!("and more; `--json` lists them");
    }
    if report.sound() {
        say!("the ledger is sound");
    } else {
        let faults = counted(report.faults_total, "fault", "faults");
        tell!("the ledger is NOT sound: {faults}");
    }
}

fn unreadable(fault: ExportFault) -> Failure {
    Failure::Unavailable(format!("the ledger cannot be read: {fault}"))
}
