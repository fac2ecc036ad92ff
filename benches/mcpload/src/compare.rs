//! The command `compare`: starts everything once, then measures the subjects in turn, round after round.
//!
//! The order is reversed every other round, and each ratio is taken within its round, so that what the machine does
//! meanwhile falls on all subjects alike. Each measurement is a `mcpload run` in a process of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;
use tokio::process::Command;

use crate::child::{Running, Start, can_pin, interrupted, pinned, sibling};
use crate::plan::{Cell, Plan, Process, Subject, UPSTREAM, default_repeats, replaced};
use crate::run::RunReport;
use crate::script::{Face, argument};
use crate::table::{Row, markdown, rows};
use crate::{Verdict, duration, print, say};

/// The core of the upstream and of the load.
const LOAD_CORE: usize = 0;
/// The core of what is measured.
const SUBJECT_CORE: usize = 1;
/// How long a process may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Read the whole comparison from this JSON file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gate", "gate_env", "gate_face", "cell"])]
    plan: Option<PathBuf>,

    /// The upstream; without it, the `echo-upstream` beside this command
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    echo_upstream: Option<PathBuf>,

    /// The floor; without it, the `bare-proxy` beside this command
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    bare_proxy: Option<PathBuf>,

    /// Measure MCP straight at the upstream as well
    #[arg(long, conflicts_with = "plan")]
    direct_mcp: bool,

    /// Set this in the gate's environment
    #[arg(long, value_name = "NAME=VALUE")]
    gate_env: Vec<String>,

    /// How the gate is spoken to
    #[arg(long, value_enum, value_name = "FACE", value_delimiter = ',', default_values = ["mcp-modern"])]
    gate_face: Vec<Face>,

    /// The path that the gate takes calls at
    #[arg(long, value_name = "PATH", default_value = "/mcp")]
    gate_path: String,

    /// The tool to call through the gate
    #[arg(long, value_name = "NAME", default_value = "bench_echo")]
    gate_tool: String,

    /// Send one more argument with each call through the gate; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    gate_argument: Vec<(String, String)>,

    /// Send the content of this file as bearer token to the gate
    #[arg(long, value_name = "FILE", conflicts_with = "bearer_env")]
    bearer_file: Option<String>,

    /// Send the value of this environment variable as bearer token to the gate
    #[arg(long, value_name = "NAME")]
    bearer_env: Option<String>,

    /// A load, as CONCURRENCYxBYTES or CONCURRENCYxBYTES@RATE; may be given several times
    #[arg(long, value_name = "LOAD", value_parser = cell)]
    cell: Vec<Cell>,

    /// Rounds
    #[arg(long, value_name = "N")]
    repeats: Option<u16>,

    /// How long to warm up before each measurement
    #[arg(long, value_name = "TIME", value_parser = duration)]
    warm_up: Option<Duration>,

    /// How long to measure each time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    measure: Option<Duration>,

    /// Leave the choice of cores to the system
    #[arg(long)]
    no_pin: bool,

    /// Write `bench.json` and `bench.md` into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// The gate's command line; `{upstream}`, `{upstream_address}` and `{folder}` are replaced in it
    #[arg(last = true, value_name = "COMMAND")]
    gate: Vec<String>,
}

/// Everything that was measured, as it is written.
#[derive(Serialize)]
struct Comparison {
    machine: Machine,
    plan: Plan,
    rows: Vec<Row>,
    runs: Vec<Run>,
}

/// Where and when.
#[derive(Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    pinned: bool,
    /// One-minute load average before the first round: above the number of our own processes, somebody else was there.
    load_before: f64,
    unix_seconds: u64,
    commit: Option<String>,
}

/// One measurement.
#[derive(Serialize)]
pub(crate) struct Run {
    pub(crate) round: u16,
    pub(crate) subject: String,
    pub(crate) cell: Cell,
    pub(crate) report: RunReport,
}

pub(crate) async fn compare(options: CompareOptions) -> anyhow::Result<Verdict> {
    let plan = plan(&options)?;
    let pinned = !options.no_pin && can_pin();
    let folder = Folder::new()?;
    let machine = Machine::here(pinned).await;
    let runs = tokio::select! {
        runs = measure(&plan, pinned, folder.path()) => runs?,
        heard = interrupted() => {
            heard?;
            bail!("interrupted; every process that was started is ended")
        }
    };
    let verdict = if runs.iter().all(|run| run.report.verdict() == Verdict::Sound) {
        Verdict::Sound
    } else {
        Verdict::Faulty
    };
    let rows = rows(&plan, &runs);
    let table = markdown(&plan, &rows);
    let comparison = Comparison {
        machine,
        plan,
        rows,
        runs,
    };
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)
            .with_context(|| format!("cannot make the folder `{}`", out.display()))?;
        write(
            &out.join("bench.json"),
            &serde_json::to_string_pretty(&comparison)?,
        )?;
        write(&out.join("bench.md"), &comparison.markdown(&table))?;
    }
    print(&comparison.markdown(&table));
    Ok(verdict)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// A folder for the processes' files, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let path = std::env::temp_dir().join(format!("mcpload-{}-{nanos}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make the folder `{}`", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// --- the plan, from a file or from flags

fn plan(options: &CompareOptions) -> anyhow::Result<Plan> {
    let mut plan = match &options.plan {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the plan `{}`", path.display()))?;
            Plan::parse(&text)?
        }
        None => plan_of_flags(options)?,
    };
    plan.repeats = options.repeats.unwrap_or(plan.repeats);
    plan.warm_up = options.warm_up.unwrap_or(plan.warm_up);
    plan.measure = options.measure.unwrap_or(plan.measure);
    plan.check()?;
    Ok(plan)
}

fn plan_of_flags(options: &CompareOptions) -> anyhow::Result<Plan> {
    let program = |given: &Option<PathBuf>, name: &str| -> anyhow::Result<String> {
        let path = match given {
            Some(path) => path.clone(),
            None => sibling(name)?,
        };
        Ok(path.to_string_lossy().into_owned())
    };
    let subject = |name: &str, process: &str, face: Face, path: &str, tool: &str| Subject {
        name: name.to_owned(),
        process: process.to_owned(),
        face,
        path: path.to_owned(),
        tool: tool.to_owned(),
        arguments: BTreeMap::new(),
        bearer_file: None,
        bearer_env: None,
    };
    let proxy = [
        program(&options.bare_proxy, "bare-proxy")?,
        "--upstream".to_owned(),
        "{upstream_address}".to_owned(),
    ];
    let mut processes = BTreeMap::from([(
        "bare-proxy".to_owned(),
        Process {
            command: proxy.to_vec(),
            environment: BTreeMap::new(),
            prepare: Vec::new(),
        },
    )]);
    let mut subjects = vec![
        subject("direct", UPSTREAM, Face::HttpPlain, "/echo", "echo"),
        subject("bare-proxy", "bare-proxy", Face::HttpPlain, "/echo", "echo"),
    ];
    if options.direct_mcp {
        subjects.push(subject("direct-mcp", UPSTREAM, Face::McpModern, "/mcp", "echo"));
    }
    if !options.gate.is_empty() {
        processes.insert(
            "gate".to_owned(),
            Process {
                command: options.gate.clone(),
                environment: environment(&options.gate_env)?,
                prepare: Vec::new(),
            },
        );
        for face in &options.gate_face {
            let name = format!("gate-{}", face.as_str());
            subjects.push(Subject {
                arguments: options.gate_argument.iter().cloned().collect(),
                bearer_file: options.bearer_file.clone(),
                bearer_env: options.bearer_env.clone(),
                ..subject(&name, "gate", *face, &options.gate_path, &options.gate_tool)
            });
        }
    }
    let text = serde_json::json!({
        "upstream": [program(&options.echo_upstream, "echo-upstream")?],
        "subjects": [],
        "repeats": default_repeats(),
    });
    // The defaults of everything else are those of a plan in a file.
    let mut plan: Plan = serde_json::from_value(text)?;
    plan.processes = processes;
    plan.subjects = subjects;
    if !options.cell.is_empty() {
        plan.cells = options.cell.clone();
    }
    Ok(plan)
}

fn environment(pairs: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    pairs
        .iter()
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .with_context(|| format!("`{pair}` sets nothing; write NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// Parses `8x100` or `8x100@2000`.
fn cell(text: &str) -> Result<Cell, String> {
    let wrong =
        || format!("load `{text}` is none; write CONCURRENCYxBYTES or CONCURRENCYxBYTES@RATE, as 8x100");
    let (size, rate) = match text.split_once('@') {
        None => (text, None),
        Some((size, rate)) => (size, Some(rate.parse().map_err(|_| wrong())?)),
    };
    let (concurrency, bytes) = size.split_once('x').ok_or_else(wrong)?;
    Ok(Cell {
        concurrency: concurrency.parse().map_err(|_| wrong())?,
        bytes: bytes.parse().map_err(|_| wrong())?,
        rate,
    })
}

// --- the measuring

async fn measure(plan: &Plan, pin: bool, folder: &Path) -> anyhow::Result<Vec<Run>> {
    let core = |core: usize| pin.then_some(core);
    let upstream = Running::start(&Start {
        name: UPSTREAM,
        command: &plan.upstream,
        environment: &BTreeMap::new(),
        core: core(LOAD_CORE),
        folder,
        ready_timeout: READY_TIMEOUT,
    })
    .await?;
    let folder_text = folder.to_string_lossy().into_owned();
    let url = upstream.url().to_owned();
    let words = [
        ("{upstream_address}", url.trim_start_matches("http://")),
        ("{upstream}", url.as_str()),
        ("{folder}", folder_text.as_str()),
    ];
    let mut running = BTreeMap::from([(UPSTREAM.to_owned(), upstream)]);
    for (name, process) in &plan.processes {
        let process = process.with(&words);
        process.prepare(name).await?;
        let started = Running::start(&Start {
            name,
            command: &process.command,
            environment: &process.environment,
            core: core(SUBJECT_CORE),
            folder,
            ready_timeout: READY_TIMEOUT,
        })
        .await?;
        running.insert(name.clone(), started);
    }
    let mut runs = Vec::new();
    for round in 1..=plan.repeats {
        for cell in &plan.cells {
            let mut subjects: Vec<&Subject> = plan.subjects.iter().collect();
            if round % 2 == 0 {
                subjects.reverse();
            }
            for subject in subjects {
                let process = running
                    .get(&subject.process)
                    .with_context(|| format!("`{}` is not running", subject.process))?;
                let report = once(plan, subject, *cell, process, core(LOAD_CORE), &words).await?;
                say(&format!(
                    "round {round}/{} {cell} {}: {} calls/s, p50 {} µs, {} errors",
                    plan.repeats, subject.name, report.calls_per_second, report.latency_us.p50, report.errors
                ));
                runs.push(Run {
                    round,
                    subject: subject.name.clone(),
                    cell: *cell,
                    report,
                });
            }
        }
    }
    for (name, process) in running {
        process.stop().await.with_context(|| format!("`{name}`"))?;
    }
    Ok(runs)
}

impl Process {
    fn with(&self, words: &[(&str, &str)]) -> Self {
        let all = |texts: &[String]| texts.iter().map(|text| replaced(text, words)).collect();
        Self {
            command: all(&self.command),
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), replaced(value, words)))
                .collect(),
            prepare: self.prepare.iter().map(|command| all(command)).collect(),
        }
    }

    async fn prepare(&self, name: &str) -> anyhow::Result<()> {
        for command in &self.prepare {
            let Some((program, arguments)) = command.split_first() else {
                continue;
            };
            let output = Command::new(program)
                .args(arguments)
                .envs(&self.environment)
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .output()
                .await
                .with_context(|| format!("cannot start `{program}` to prepare `{name}`"))?;
            if !output.status.success() {
                bail!(
                    "`{program}` failed to prepare `{name}`: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                );
            }
        }
        Ok(())
    }
}

async fn once(
    plan: &Plan,
    subject: &Subject,
    cell: Cell,
    process: &Running,
    core: Option<usize>,
    words: &[(&str, &str)],
) -> anyhow::Result<RunReport> {
    let me = std::env::current_exe()?.to_string_lossy().into_owned();
    let mut command = vec![me, "run".to_owned()];
    let mut flag = |name: &str, value: String| command.extend([format!("--{name}"), value]);
    flag("url", format!("{}{}", process.url(), subject.path));
    flag("face", subject.face.as_str().to_owned());
    flag("tool", subject.tool.clone());
    flag("bytes", cell.bytes.to_string());
    flag("concurrency", cell.concurrency.to_string());
    flag("warm-up", format!("{}ms", plan.warm_up.as_millis()));
    flag("measure", format!("{}ms", plan.measure.as_millis()));
    flag("watch-pid", process.pid().to_string());
    if let Some(rate) = cell.rate {
        flag("rate", rate.to_string());
    }
    for (name, value) in &subject.arguments {
        flag("argument", format!("{name}={value}"));
    }
    if let Some(file) = &subject.bearer_file {
        flag("bearer-file", replaced(file, words));
    }
    if let Some(name) = &subject.bearer_env {
        flag("bearer-env", name.clone());
    }
    let command = pinned(&command, core);
    let (program, arguments) = command.split_first().context("no command")?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    // A faulty run ends with 1 and still prints its report; only a run without a report is an error here.
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "`{}` could not be measured: {}",
            subject.name,
            String::from_utf8_lossy(&output.stderr).trim()
        )
    })
}

// === impl Machine ===

impl Machine {
    async fn here(pinned: bool) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .map_or_else(
                || "unknown".to_owned(),
                |rest| rest.trim_matches([' ', '\t', ':']).to_owned(),
            );
        let load_before = read("/proc/loadavg")
            .split_whitespace()
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(-1.0);
        Self {
            processor,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            pinned,
            load_before,
            unix_seconds: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            commit: commit().await,
        }
    }
}

/// The commit that is checked out here, with a mark where files differ from it.
async fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .stdin(Stdio::null())
        .output()
        .await
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

// === impl Comparison ===

impl Comparison {
    fn markdown(&self, table: &str) -> String {
        let Machine {
            processor,
            cores,
            kernel,
            pinned,
            load_before,
            commit,
            ..
        } = &self.machine;
        let pinned = if *pinned {
            "load and upstream on core 0, what is measured on core 1"
        } else {
            "not pinned to cores"
        };
        format!(
            "Commit {}; {processor}, {cores} cores, Linux {kernel}; {pinned}; load average before: {load_before}; {} rounds \
             of {:?} after {:?} of warm-up.\n\n{table}",
            commit.as_deref().unwrap_or("unknown"),
            self.plan.repeats,
            self.plan.measure,
            self.plan.warm_up,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_written_as_it_is_shown() {
        for text in ["1x100", "8x102400", "32x0@2000"] {
            assert_eq!(cell(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "8",
            "x",
            "8x",
            "x100",
            "8x100@",
            "8x100@fast",
            "-1x5",
            "70000x1",
        ] {
            assert!(cell(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_variable_has_a_name_and_a_value() {
        let set = environment(&["A=b=c".to_owned(), "D=".to_owned()]).unwrap();
        assert_eq!((set["A"].as_str(), set["D"].as_str()), ("b=c", ""));
        assert!(environment(&["A".to_owned()]).is_err());
    }
}
