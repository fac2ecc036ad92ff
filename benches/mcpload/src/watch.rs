//! What a process and its descendants use: CPU time, memory, descriptors, as `/proc` shows them.
//!
//! Children are counted with their parent, because a gate that starts a process for each server has not saved the
//! memory, it has moved it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::tally::rounded;

/// How often memory is looked at while load runs.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// What a process tree uses at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    cpu_ticks: u64,
    rss_bytes: u64,
    pss_bytes: u64,
    processes: u64,
    descriptors: u64,
}

/// Before, after and at most.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) peak: u64,
}

/// What a watched process used during the measured phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Watched {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) cpu_seconds: f64,
    pub(crate) cpu_us_per_call: f64,
    pub(crate) rss_bytes: Span,
    pub(crate) pss_bytes: Span,
    pub(crate) processes: Span,
    pub(crate) descriptors: Span,
}

/// A process under watch. Watching ends with [`Watch::end`].
pub(crate) struct Watch {
    pid: u32,
    name: String,
    ticks_per_second: u64,
    before: Usage,
    done: Arc<AtomicBool>,
    sampler: JoinHandle<Usage>,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// No such process, or a system without `/proc`.
    pub(crate) fn begin(pid: u32) -> anyhow::Result<Self> {
        let before = usage(pid)?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"))?
            .trim_end()
            .to_owned();
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        let sampler = std::thread::spawn(move || {
            let mut peak = before;
            while !ended.load(Ordering::Relaxed) {
                // A process that has gone is reported at the end.
                if let Ok(now) = usage(pid) {
                    peak = peak.most(now);
                }
                std::thread::park_timeout(SAMPLE_INTERVAL);
            }
            peak
        });
        Ok(Self {
            pid,
            name,
            ticks_per_second: ticks_per_second()?,
            before,
            done,
            sampler,
        })
    }

    /// Ends watching; `calls` is the number of verified calls that the CPU time is divided by.
    ///
    /// # Errors
    /// The process ended meanwhile.
    pub(crate) fn end(self, calls: u64) -> anyhow::Result<Watched> {
        let after = usage(self.pid);
        self.done.store(true, Ordering::Relaxed);
        self.sampler.thread().unpark();
        let peak = self
            .sampler
            .join()
            .map_err(|_| anyhow::anyhow!("the sampler failed"))?;
        let after = after?;
        let peak = peak.most(after);
        let ticks = after.cpu_ticks.saturating_sub(self.before.cpu_ticks);
        let cpu_seconds = ticks as f64 / self.ticks_per_second as f64;
        let span = |part: fn(&Usage) -> u64| Span {
            before: part(&self.before),
            after: part(&after),
            peak: part(&peak),
        };
        Ok(Watched {
            pid: self.pid,
            name: self.name,
            cpu_seconds: rounded(cpu_seconds),
            cpu_us_per_call: rounded(cpu_seconds * 1e6 / calls.max(1) as f64),
            rss_bytes: span(|usage| usage.rss_bytes),
            pss_bytes: span(|usage| usage.pss_bytes),
            processes: span(|usage| usage.processes),
            descriptors: span(|usage| usage.descriptors),
        })
    }
}

impl Usage {
    fn most(self, other: Self) -> Self {
        Self {
            cpu_ticks: self.cpu_ticks.max(other.cpu_ticks),
            rss_bytes: self.rss_bytes.max(other.rss_bytes),
            pss_bytes: self.pss_bytes.max(other.pss_bytes),
            processes: self.processes.max(other.processes),
            descriptors: self.descriptors.max(other.descriptors),
        }
    }
}

/// What a process and all its descendants use now.
fn usage(root: u32) -> anyhow::Result<Usage> {
    let stats = stats()?;
    if !stats.contains_key(&root) {
        anyhow::bail!("there is no process `{root}`");
    }
    let mut total = Usage::default();
    for pid in tree(root, &stats) {
        let Some(stat) = stats.get(&pid) else { continue };
        total.cpu_ticks += stat.ticks;
        total.processes += 1;
        // Between listing and reading a child may end; what cannot be read any more counts as nothing.
        let folder = format!("/proc/{pid}");
        let folder = Path::new(&folder);
        total.rss_bytes += kibibytes(&folder.join("status"), "VmRSS:") * 1_024;
        total.pss_bytes += kibibytes(&folder.join("smaps_rollup"), "Pss:") * 1_024;
        total.descriptors += std::fs::read_dir(folder.join("fd"))
            .map(|entries| u64::try_from(entries.count()).unwrap_or(u64::MAX))
            .unwrap_or(0);
    }
    Ok(total)
}

struct Stat {
    parent: u32,
    /// Own time and that of children which ended and were waited for, in user and kernel mode.
    ticks: u64,
}

fn stats() -> anyhow::Result<BTreeMap<u32, Stat>> {
    let entries = std::fs::read_dir("/proc").context("this system has no /proc; leave out --watch-pid")?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, stat(&text)?))
        })
        .collect())
}

/// Reads `/proc/PID/stat`. The name in parentheses may hold spaces and parentheses, so it is cut off from the right.
fn stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Counted from the state, which is field 3 of proc(5): ppid is 4; utime, stime, cutime, cstime are 14 to 17.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(4)?).ok()?,
        ticks: number(14)? + number(15)? + number(16)? + number(17)?,
    })
}

/// A process and its descendants.
fn tree(root: u32, stats: &BTreeMap<u32, Stat>) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        for (pid, stat) in stats {
            if stat.parent == parent && !found.contains(pid) {
                found.push(*pid);
            }
        }
        at += 1;
    }
    found
}

fn kibibytes(path: &Path, key: &str) -> u64 {
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        })
        .unwrap_or(0)
}

/// The unit of CPU times in `/proc`, which the kernel hands to each process in its auxiliary vector.
fn ticks_per_second() -> anyhow::Result<u64> {
    const AT_CLKTCK: u64 = 17;
    let bytes =
        std::fs::read("/proc/self/auxv").context("this system has no /proc; leave out --watch-pid")?;
    let mut words = bytes
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        if key == AT_CLKTCK && value > 0 {
            return Ok(value);
        }
    }
    anyhow::bail!("the auxiliary vector has no clock tick")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn a_name_with_spaces_and_parentheses_hides_no_field() {
        let text = "42 (a) b (c)) S 7 42 42 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 1 0 5 6 7";
        let stat = stat(text).unwrap();
        assert_eq!((stat.parent, stat.ticks), (7, 110));
        for text in ["", "42 (x", "42 (x) S", "42 (x) S 1 2 3"] {
            assert!(super::stat(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_tree_has_the_children_of_children_and_no_neighbours() {
        let stats = [(1, 0), (2, 1), (3, 2), (4, 3), (5, 1)]
            .into_iter()
            .map(|(pid, parent)| (pid, Stat { parent, ticks: 0 }))
            .collect();
        assert_eq!(tree(2, &stats), [2, 3, 4]);
    }

    #[test]
    fn cpu_time_and_memory_of_a_child_are_seen() {
        // A shell that starts another one, which burns CPU for as long as a file is there. The file goes with its
        // folder, so that a failed test leaves nothing running.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("burn");
        std::fs::write(&file, "").unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'while [ -e \"$BURN\" ]; do :; done' & wait"])
            .env("BURN", &file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let watch = Watch::begin(shell.id()).unwrap();
        let start = Instant::now();
        let ticks = ticks_per_second().unwrap();
        // Until a tenth of a second of CPU was burnt, however busy the machine is.
        loop {
            let now = usage(shell.id()).unwrap();
            if now.processes == 2 && now.cpu_ticks > watch.before.cpu_ticks + ticks / 10 {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{now:?}");
            std::thread::yield_now();
        }
        let id = shell.id();
        let watched = watch.end(10).unwrap();
        drop(folder);
        shell.wait().unwrap();
        assert!(watched.cpu_seconds >= 0.1, "{watched:?}");
        assert!((watched.cpu_us_per_call - watched.cpu_seconds * 1e5).abs() < 1.0);
        assert!(
            watched.rss_bytes.peak > 100_000 && watched.pss_bytes.after > 0,
            "{watched:?}"
        );
        assert_eq!(watched.processes.after, 2);
        assert!(usage(id).is_err());
    }
}
