//! What probes observed of tools: the evidence as it is kept in a file, and whether it still speaks of the same tool.
//! It probes nothing; that is the command's.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use model::{Class, Digest};
use serde::{Deserialize, Serialize};

use crate::contract::{Contract, ProbedAnswer};
use crate::tool::Tool;

/// The version of the file.
const VERSION: u32 = 1;

/// The largest file that is read, in bytes.
pub const OBSERVATIONS_BYTES_MAX: usize = 16 << 20;

/// What was observed, by the public names of tools: the content of `probes.json`.
///
/// Shape: `{"version":1,"probes":{"billing_getInvoice":{…}},"contracts":{"billing_getInvoice":{…}}}`; each probe is an
/// [`Observation`], each contract a [`Contract`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observations {
    version: u32,
    probes: BTreeMap<String, Observation>,
    #[serde(default)]
    contracts: BTreeMap<String, Contract>,
}

/// What one probe observed. It holds digests, never a value of an argument, a witness or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The class that the operation showed.
    pub class: Class,
    /// The class that was declared then.
    pub declared: Class,
    /// The digest of everything in the document that the operation depends on.
    pub operation: Digest,
    /// When.
    pub time: Timestamp,
    /// The digest of the synthetic arguments.
    pub arguments: Digest,
    /// Whether the service carried it out. Of a call that failed, a changed witness says something, a quiet one nothing.
    pub succeeded: bool,
    /// What the witnesses showed.
    pub witnesses: Vec<Witnessed>,
    /// What in the answer looked sensitive.
    pub sensitive: Vec<Sensitive>,
}

/// What one witness showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witnessed {
    /// Its name in the configuration.
    pub name: String,
    /// What it showed.
    pub state: WitnessState,
    /// The digest of the state before the call.
    pub before: Digest,
    /// The digest of the state after the call.
    pub after: Digest,
}

/// What a witness showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessState {
    /// The same before and after.
    Unchanged,
    /// Something else after than before.
    Changed,
    /// Something that was there before is gone: a file, a thing with an `id`, rows of a count.
    Vanished,
    /// It changes by itself, so that it says nothing of the call.
    Noisy,
}

/// Something in an answer that looked sensitive. The value itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensitive {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What it looked like: `name`, `email`, `token`, `card`.
    pub what: String,
}

/// A text that is no file of observations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObservationsFault {
    /// It cannot be read.
    #[error("it cannot be read: {0}; delete it, and run `tollhouse probe` again")]
    Syntax(String),
    /// Another version.
    #[error("it has version {0}, and {VERSION} is read; delete it, and run `tollhouse probe` again")]
    Version(u32),
}

// === impl Observations ===

impl Default for Observations {
    fn default() -> Self {
        Self {
            version: VERSION,
            probes: BTreeMap::new(),
            contracts: BTreeMap::new(),
        }
    }
}

impl Observations {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ObservationsFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ObservationsFault> {
        let read: Self =
            serde_json::from_slice(bytes).map_err(|error| ObservationsFault::Syntax(error.to_string()))?;
        if read.version != VERSION {
            return Err(ObservationsFault::Version(read.version));
        }
        Ok(read)
    }

    /// Notes what was observed of a tool, in the place of what was before.
    pub fn note(&mut self, tool: &Tool, observation: Observation) {
        self.probes.insert(tool.name().to_string(), observation);
    }

    /// What was observed of a tool, if it still speaks of it: the operation must not have changed since.
    #[must_use]
    pub fn fresh(&self, tool: &Tool) -> Option<&Observation> {
        let observation = self.probes.get(tool.name().as_str())?;
        (observation.operation == tool.origin_digest()).then_some(observation)
    }

    /// Notes what came of one more call of a tool. Of another operation than before, it is the first.
    pub fn note_answer(&mut self, tool: &Tool, answer: ProbedAnswer) {
        let fresh = Contract::new(tool.origin_digest(), tool.definition().output_schema.is_some());
        let known = self
            .contracts
            .entry(tool.name().to_string())
            .or_insert_with(|| fresh.clone());
        if (known.operation, known.declared) != (fresh.operation, fresh.declared) {
            *known = fresh;
        }
        known.add(answer);
    }

    /// What is known of the answers of a tool, if it still speaks of it.
    #[must_use]
    pub fn contract(&self, tool: &Tool) -> Option<&Contract> {
        let contract = self.contracts.get(tool.name().as_str())?;
        let declared = tool.definition().output_schema.is_some();
        ((contract.operation, contract.declared) == (tool.origin_digest(), declared)).then_some(contract)
    }

    /// The observed classes of these tools, by public name; only what is fresh.
    #[must_use]
    pub fn classes<'t>(&self, tools: impl Iterator<Item = &'t Tool>) -> BTreeMap<String, Class> {
        tools
            .filter_map(|tool| Some((tool.name().to_string(), self.fresh(tool)?.class)))
            .collect()
    }
}

// === impl Observation ===

impl Observation {
    /// What would clear its contradiction to a lower class.
    #[must_use]
    pub fn clears(&self) -> String {
        format!(
            "declare `class = \"{}\"`, or correct the operation and probe it again",
            self.class
        )
    }

    /// A short word for the evidence.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let states: Vec<u8> = self
            .witnesses
            .iter()
            .flat_map(|one| [one.before.as_bytes().as_slice(), one.after.as_bytes().as_slice()].concat())
            .collect();
        Digest::of(
            "tollhouse/observation/v1",
            &[
                self.class.as_str().as_bytes(),
                self.operation.as_bytes().as_slice(),
                self.time.to_string().as_bytes(),
                &states,
            ],
        )
    }
}

/// What was seen and when, for the operator.
impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed: Vec<&str> = self
            .witnesses
            .iter()
            .filter(|one| one.state == WitnessState::Changed)
            .map(|one| one.name.as_str())
            .collect();
        let vanished: Vec<&str> = self
            .witnesses
            .iter()
            .filter(|one| one.state == WitnessState::Vanished)
            .map(|one| one.name.as_str())
            .collect();
        write!(f, "a probe observed class `{}` at {}", self.class, self.time)?;
        if !vanished.is_empty() {
            write!(f, ": something is gone from `{}`", vanished.join("`, `"))?;
        } else if !changed.is_empty() {
            write!(f, ": it changed `{}`", changed.join("`, `"))?;
        } else if let Some(first) = self.sensitive.first() {
            write!(
                f,
                ": `{}` of the answer looks like a {}",
                first.pointer, first.what
            )?;
        }
        write!(f, " (evidence {})", self.digest().short())
    }
}
