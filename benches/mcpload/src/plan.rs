//! What a comparison compares: processes, subjects (ways through them), cells (loads), rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::duration;
use crate::script::Face;

/// The name under which subjects reach the upstream without anything in front of it.
pub(crate) const UPSTREAM: &str = "upstream";

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// The upstream's command. It is started first, and its URL takes the place of `{upstream}` elsewhere.
    pub(crate) upstream: Vec<String>,
    /// What stands in front of it.
    #[serde(default)]
    pub(crate) processes: BTreeMap<String, Process>,
    /// What is measured, in this order. The first is the one that the others are compared with.
    pub(crate) subjects: Vec<Subject>,
    /// The loads.
    #[serde(default = "default_cells")]
    pub(crate) cells: Vec<Cell>,
    #[serde(default = "default_repeats")]
    pub(crate) repeats: u16,
    #[serde(default = "default_warm_up", with = "as_text")]
    pub(crate) warm_up: Duration,
    #[serde(default = "default_measure", with = "as_text")]
    pub(crate) measure: Duration,
}

/// A process in front of the upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    /// `{upstream}` becomes the upstream's URL, `{upstream_address}` its ADDRESS:PORT, `{folder}` an empty folder.
    pub(crate) command: Vec<String>,
    /// Added to the environment, with the same words replaced.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Commands that run before, one after the other, in the same environment: to make a key, to fill a store.
    #[serde(default)]
    pub(crate) prepare: Vec<Vec<String>>,
}

/// One way to reach the upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// The process that takes the calls: one of `processes`, or `upstream`.
    pub(crate) process: String,
    pub(crate) face: Face,
    pub(crate) path: String,
    #[serde(default = "default_tool")]
    pub(crate) tool: String,
    /// Arguments of each call beside the text and the nonce.
    #[serde(default)]
    pub(crate) arguments: BTreeMap<String, String>,
    /// The bearer token, as a file (`{folder}` is replaced) or an environment variable of the comparison.
    #[serde(default)]
    pub(crate) bearer_file: Option<String>,
    #[serde(default)]
    pub(crate) bearer_env: Option<String>,
}

/// One load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    pub(crate) concurrency: u16,
    pub(crate) bytes: u32,
    /// Calls per second in the open loop; none is the closed loop.
    #[serde(default)]
    pub(crate) rate: Option<u32>,
}

fn default_cells() -> Vec<Cell> {
    [(1, 100), (8, 100), (1, 102_400), (8, 102_400)]
        .map(|(concurrency, bytes)| Cell {
            concurrency,
            bytes,
            rate: None,
        })
        .to_vec()
}

pub(crate) const fn default_repeats() -> u16 {
    5
}

const fn default_warm_up() -> Duration {
    Duration::from_secs(1)
}

const fn default_measure() -> Duration {
    Duration::from_secs(5)
}

fn default_tool() -> String {
    "echo".to_owned()
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// Not JSON, unknown keys, or what [`Plan::check`] finds.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let plan: Self = serde_json::from_str(text).context("the plan is not what it should be")?;
        plan.check()?;
        Ok(plan)
    }

    /// Subjects have names of their own and go through processes that exist; every number is within its bounds.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.upstream.is_empty() {
            bail!("the plan has no upstream; write the command of one, as [\"echo-upstream\"]");
        }
        if self.subjects.is_empty() || self.cells.is_empty() {
            bail!("the plan has no subjects or no cells; there is nothing to measure");
        }
        if !(1..=100).contains(&self.repeats) {
            bail!("repeats `{}` is out of range; write 1 to 100", self.repeats);
        }
        if self.processes.contains_key(UPSTREAM) {
            bail!("a process is called `{UPSTREAM}`; that is the name of the upstream itself");
        }
        for (name, process) in &self.processes {
            if process.command.is_empty() || process.prepare.iter().any(Vec::is_empty) {
                bail!("process `{name}` has a command without words");
            }
        }
        let mut names = BTreeSet::new();
        for subject in &self.subjects {
            if !names.insert(&subject.name) {
                bail!("two subjects are called `{}`", subject.name);
            }
            if subject.process != UPSTREAM && !self.processes.contains_key(&subject.process) {
                bail!(
                    "subject `{}` goes through `{}`, which is no process",
                    subject.name,
                    subject.process
                );
            }
            if !subject.path.starts_with('/') {
                bail!(
                    "path `{}` of subject `{}` does not begin with a slash",
                    subject.path,
                    subject.name
                );
            }
        }
        Ok(())
    }
}

/// Durations as `250ms`, `5s`, `2m`.
mod as_text {
    use super::{Deserialize as _, Duration, duration};

    pub(super) fn serialize<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ms", time.as_millis()))
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration(&text).map_err(serde::de::Error::custom)
    }
}

/// Puts values in the place of `{name}` words.
pub(crate) fn replaced(text: &str, words: &[(&str, &str)]) -> String {
    words
        .iter()
        .fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_the_benchmarks_is_a_plan() {
        let plan = Plan::parse(include_str!("../../plan.json")).unwrap();
        assert_eq!(plan.subjects.len(), 6);
        let again = Plan::parse(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(again, plan);
    }

    #[test]
    fn a_plan_that_cannot_be_run_is_refused_with_the_reason() {
        let good = r#"{"upstream":["u"],"subjects":[{"name":"a","process":"upstream","face":"http-plain","path":"/echo"}]}"#;
        let plan = Plan::parse(good).unwrap();
        assert_eq!((plan.cells.len(), plan.repeats), (4, 5));
        for (from, to, reason) in [
            (r#"["u"]"#, "[]", "no upstream"),
            (
                r#""process":"upstream""#,
                r#""process":"gate""#,
                "which is no process",
            ),
            (r#""path":"/echo""#, r#""path":"echo""#, "slash"),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"cells":[],"#,
                "no cells",
            ),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"repeats":0,"#,
                "out of range",
            ),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"repeats":101,"#,
                "out of range",
            ),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"rounds":3,"#,
                "not what it should be",
            ),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"measure":"5","#,
                "not what it should be",
            ),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"processes":{"gate":{"command":[]}},"#,
                "without words",
            ),
            (
                r#""upstream":["u"],"#,
                r#""upstream":["u"],"processes":{"upstream":{"command":["x"]}},"#,
                "the upstream itself",
            ),
            (
                "}]}",
                r#"},{"name":"a","process":"upstream","face":"http-plain","path":"/"}]}"#,
                "two subjects",
            ),
        ] {
            let text = good.replace(from, to);
            assert_ne!(text, good, "{from}");
            let error = Plan::parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn words_are_replaced_wherever_they_stand() {
        let words = [("{upstream}", "http://127.0.0.1:1"), ("{folder}", "/f")];
        assert_eq!(replaced("--x={upstream}/a", &words), "--x=http://127.0.0.1:1/a");
        assert_eq!(replaced("sqlite:{folder}/{folder}", &words), "sqlite:/f//f");
        assert_eq!(replaced("{other}", &words), "{other}");
    }
}
