//! The report as data: what every form of it is written from, and what `--json` prints. It judges nothing; the numbers and
//! words in it are made in `survey`.

use std::collections::BTreeMap;

use model::{Class, Exclusion, Object};
use openapi::{AccessFlag, Evidence};
use serde::Serialize;

use crate::changes::Change;
use crate::text::Marked;

/// A readiness report.
///
/// As JSON it has the form that `docs/review.schema.json` describes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The form of the report: `tollhouse/review/v1`.
    pub format: &'static str,
    /// Whether what is configured can be released, bound to everything that it was found from.
    pub verdict: Verdict,
    /// What was looked at.
    pub subject: Subject,
    /// The counts.
    pub summary: Summary,
    /// Every operation, in the order of the document.
    pub tools: Vec<Row>,
    /// Everything that is in the way, each defect once.
    pub blockers: Vec<Group>,
    /// The document against the catalogue against what callers see.
    pub reconciliation: Reconciliation,
    /// What the document requires of a caller, for each operation that is configured, else for all.
    pub access: Vec<Access>,
    /// Every place that requests could go to by the document's word.
    pub destinations: Vec<Place>,
    /// Sizes.
    pub budget: Budget,
    /// Texts of the document with something in them that a reviewer should see, at most 200.
    pub texts: Vec<Marked>,
    /// How many such texts there are.
    pub texts_marked: usize,
    /// What changed since another document, where one was given.
    pub changes: Option<Vec<Change>>,
}

/// Whether what is configured can be released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether it can.
    pub ready: bool,
    /// Why not; empty where it can.
    pub reasons: Vec<String>,
    /// The last day on which every approval holds.
    pub until: Option<String>,
    /// A digest over everything below and the verdict: another document, configuration or build has another one.
    pub digest: String,
    /// The digest of the document with its overlays and files.
    pub document: String,
    /// The digest of the configuration's own text.
    pub configuration: Option<String>,
    /// The digest of all pins.
    pub catalogue: Option<String>,
    /// The version of the rules.
    pub policy: Option<String>,
    /// The program that made the report.
    pub build: String,
}

/// What was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The document, as it was named.
    pub path: String,
    /// Its title.
    pub title: Option<String>,
    /// The version of OpenAPI that it speaks.
    pub version: String,
    /// Its own length in bytes.
    pub bytes: usize,
    /// Its other files.
    pub files: Vec<String>,
    /// Actions of overlays that were applied.
    pub overlaid: usize,
    /// The upstream of the configuration that has it.
    pub upstream: Option<String>,
    /// Whom the document names as responsible. Its word, and no approval.
    pub contact: Option<String>,
    /// What could not be looked into, so that operations may be missing.
    pub unreadable: Vec<String>,
}

/// The counts. `exposed + excluded + blocked + unreviewed = operations`, and `operations = counted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Operations that were read.
    pub operations: usize,
    /// Those that are offered by a tool.
    pub exposed: usize,
    /// Those that are left out by default and that no tool names.
    pub excluded: usize,
    /// Those that cannot be a tool, or whose tool is held.
    pub blocked: usize,
    /// The rest: nobody decided anything.
    pub unreviewed: usize,
    /// Operations that a second, dumb counter finds in the bytes; `null` where it cannot tell.
    pub counted: Option<usize>,
    /// Why the second counter cannot tell.
    pub uncounted: Option<String>,
    /// Operations that overlays added (or took away, below zero) after the bytes were counted.
    pub overlays: i64,
    /// Whether the counts fit together.
    pub reconciles: bool,
    /// Operations by declared class; `undeclared` for those that no tool names.
    pub declared: BTreeMap<String, usize>,
    /// Operations by inferred class; `unknown` for those without evidence.
    pub inferred: BTreeMap<String, usize>,
    /// Operations by observed class; `unobserved` for those that nobody probed.
    pub observed: BTreeMap<String, usize>,
    /// Operations for each reason to leave one out by default.
    pub exclusions: BTreeMap<String, usize>,
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A tool offers it.
    Exposed,
    /// It is left out by default.
    Excluded,
    /// It cannot be a tool, or its tool is held.
    Blocked,
    /// Nobody decided anything.
    Unreviewed,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Exposed, Self::Excluded, Self::Blocked, Self::Unreviewed];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exposed => "exposed",
            Self::Excluded => "excluded",
            Self::Blocked => "blocked",
            Self::Unreviewed => "unreviewed",
        }
    }
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The public name of its tool; of an operation that no tool names, the one that it would get.
    pub name: String,
    /// Further tools of the same operation.
    pub also: Vec<String>,
    /// Its `operationId`.
    pub operation_id: Option<String>,
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// Its place in the document.
    pub pointer: String,
    /// What becomes of it.
    pub status: Status,
    /// Its class, by each source.
    pub class: Classes,
    /// Why it is left out by default.
    pub exclusions: Vec<Exclusion>,
    /// What in the document says so.
    pub evidence: Vec<Evidence>,
    /// Who answers for it.
    pub approvals: Vec<Answered>,
    /// The length of its definition as JSON, in bytes.
    pub bytes: usize,
    /// The same in tokens of a model, estimated as a quarter of the bytes.
    pub tokens: usize,
    /// The length of its description, in bytes.
    pub description_bytes: usize,
    /// The length of its schemas, in bytes.
    pub schema_bytes: usize,
    /// What is in its way.
    pub blockers: Vec<Block>,
    /// What a reviewer should know about how it became a tool.
    pub notes: Vec<String>,
    /// A request that its schema suggests, as it would be sent.
    pub request: Option<Golden>,
    /// What the document says about it, with invisible characters made visible. Only of configured tools.
    pub text: Option<String>,
    /// Fields of its body that a caller sets and that services often decide themselves, as `user.role`. At most eight.
    pub decisive: Vec<String>,
    /// Objects of its body that take fields which nobody declared; the body itself is an empty text. At most eight.
    pub undeclared: Vec<String>,
    /// The digest of everything that was approved of its tool.
    pub pin: Option<String>,
    /// Callers of the configuration that see it.
    pub seen_by: Vec<String>,
    /// What is known of real answers.
    pub contract: String,
    /// What a probe observed, and when.
    pub observed: Option<String>,
}

/// The class of an operation, by each source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Classes {
    /// By the reviewer.
    pub declared: Option<Class>,
    /// By the words of the document: at least this.
    pub inferred: Option<Class>,
    /// By a probe.
    pub observed: Option<Class>,
}

/// Who answers for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// For what.
    pub what: String,
    /// Who.
    pub by: String,
    /// Why.
    pub because: String,
    /// Until which day.
    pub until: String,
    /// For whom.
    #[serde(rename = "for")]
    pub audience: Vec<String>,
    /// Whether it holds.
    pub holds: bool,
}

/// How much something is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The operation is no tool until it is cleared.
    Error,
    /// A person should look at it.
    Warning,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One thing in the way of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Block {
    /// What it is; reports group by it.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// The place in the document.
    pub pointer: String,
    /// What is wrong there.
    pub text: String,
    /// What would clear it.
    pub clears: String,
    /// Who has to clear it, as its group says it.
    pub owner: Option<String>,
}

/// The same defect of one or many operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// What it is.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// Who has to clear it: whom the configuration names, else whoever approved last, else whom the document names;
    /// `null` for nobody.
    pub owner: Option<String>,
    /// Until which day, by the configuration.
    pub due: Option<String>,
    /// Whether that day has passed.
    pub overdue: bool,
    /// What is wrong, of the first one.
    pub text: String,
    /// What would clear it.
    pub clears: String,
    /// Operations that it is in the way of.
    pub count: usize,
    /// The first of them, at most 20.
    pub operations: Vec<String>,
    /// The places, at most 20.
    pub pointers: Vec<String>,
}

/// A request that would be sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Golden {
    /// The arguments that it was made of.
    pub arguments: Object,
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The media type of the body.
    pub content_type: Option<String>,
    /// The body, where it is text.
    pub body: Option<String>,
}

/// The document against the catalogue against what callers see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reconciliation {
    /// Operations in the document.
    pub document: usize,
    /// Tools of this document in the catalogue.
    pub catalogue: Vec<String>,
    /// What each caller of the configuration sees of them in `tools/list`.
    pub callers: Vec<CallerView>,
    /// Tools that are offered and that no caller of the configuration sees: the rules, or an approval, refuse everybody.
    pub unseen: Vec<String>,
    /// Names that a caller sees and that should not be there. Never any: a defect.
    pub strays: Vec<String>,
}

/// What one caller sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallerView {
    /// The caller.
    pub caller: String,
    /// The tools.
    pub sees: Vec<String>,
}

/// What is required for one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Method and path.
    pub operation: String,
    /// Whether the operation says it itself.
    pub own: bool,
    /// Any one of these, each all together: the names of schemes with what they are.
    pub alternatives: Vec<Vec<String>>,
    /// Scopes of each alternative, which a delegated token must hold.
    pub scopes: Vec<Vec<String>>,
    /// What a reviewer should look at, by the document.
    pub flags: Vec<AccessFlag>,
    /// What a reviewer should look at, by the configuration.
    pub concerns: Vec<String>,
}

/// A place that requests or tokens could go to by the document's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The URL.
    pub url: String,
    /// What goes there: `operations` or `tokens`.
    pub role: &'static str,
    /// Operations that name it.
    pub operations: usize,
    /// Whether it has the origin of the destination that the operator wrote. Only that one is ever connected to.
    pub approved: bool,
}

/// One measured thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// The tool.
    pub tool: String,
    /// Its bytes.
    pub bytes: usize,
}

/// Sizes of the list of enabled tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Tools that are offered.
    pub tools: usize,
    /// The length of their list, in bytes.
    pub bytes: usize,
    /// The same in tokens, estimated.
    pub tokens: usize,
    /// The length that a list should not pass, in bytes.
    pub bytes_max: usize,
    /// Whether it does not.
    pub fits: bool,
    /// The length of a list of all operations that can be tools, in bytes.
    pub bytes_of_all: usize,
    /// The longest description among the tools that are offered, else among all.
    pub longest_description: Option<Measure>,
    /// The largest schemas, likewise.
    pub largest_schema: Option<Measure>,
}

impl Group {
    /// Who has to clear it, and until when.
    #[must_use]
    pub fn owner_in_words(&self) -> String {
        let owner = self.owner.as_deref().unwrap_or("nobody named");
        match &self.due {
            Some(due) if self.overdue => format!("{owner}, overdue since {due}"),
            Some(due) => format!("{owner}, until {due}"),
            None => owner.to_owned(),
        }
    }
}

impl Report {
    /// Whether something is so wrong that no report of this document can be relied on: nothing was analysed, or the counts
    /// do not fit together.
    #[must_use]
    pub const fn is_void(&self) -> bool {
        self.summary.operations == 0 || !self.summary.reconciles
    }

    /// Tools of the configuration that are held.
    pub fn held(&self) -> impl Iterator<Item = &Row> {
        self.tools
            .iter()
            .filter(|row| row.status == Status::Blocked && row.class.declared.is_some())
    }

    /// Approvals that a change of the document takes away.
    #[must_use]
    pub fn revoked(&self) -> usize {
        let changes = self.changes.iter().flatten();
        changes.map(|change| change.revokes.len()).sum()
    }
}
