//! From files and tools to a policy that can decide: every file read, every rule checked, every fault reported.
//!
//! It orders the steps: reading a rule is in `rule.rs`, checking one in `check.rs`, deciding with all in `policy.rs`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::{Digest, Limits};

use crate::action::Action;
use crate::check::{Placed, place};
use crate::fault::{Finding, Lines, Place, PolicyFault, PolicyFaultKind};
use crate::policy::{Bucket, Table};
use crate::question::{Form, Types};
use crate::rule::{Rule, RuleSummary};
use crate::scan::statements;
use crate::vocabulary::Vocabulary;

/// The text of one policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its path, as messages show it.
    pub path: String,
    /// Its text, in Cedar.
    pub text: String,
}

/// How many rules all files together may have.
pub const RULES_MAX: usize = 10_000;

/// How many faults are reported; of more, only their number.
pub const FAULTS_MAX: usize = 100;

/// The stack on which policies are parsed and validated. Only what is used of it takes memory.
///
/// Cedar's parser, validator and syntax trees are recursive, and in a debug build one level takes up to 60 KB: on 2 MiB,
/// rules of a depth of 61 overflowed it. This is for [`crate::scan::DEPTH_MAX`] four times over.
const STACK_BYTES: usize = 32 << 20;

/// As [`load`], whatever stack the caller has; and a defect in a parser is a fault of the policy, not the end of a thread
/// that serves others.
pub(crate) fn load_on_a_large_stack(
    files: &[PolicyFile],
    actions: &[Action],
    limits: &Limits,
) -> Result<Table, Vec<PolicyFault>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("policy-load".to_owned())
            .stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, || load(files, actions, limits)) {
            Ok(loading) => loading.join().unwrap_or_else(|_| {
                Err(vec![defect(
                    "the policy could not be read: its parser panicked".to_owned(),
                )])
            }),
            Err(error) => Err(vec![PolicyFault {
                place: Place::Whole,
                kind: PolicyFaultKind::Limit,
                text: format!("no thread to read the policy on: {error}"),
                hint: Some("free some memory or raise the limit of threads, then try again".to_owned()),
            }]),
        }
    })
}

/// Loads everything, or says everything that is wrong.
fn load(files: &[PolicyFile], actions: &[Action], limits: &Limits) -> Result<Table, Vec<PolicyFault>> {
    let mut files: Vec<&PolicyFile> = files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));

    let mut found = same_paths(&files);
    let (rules, unread) = read(&files, limits);
    found.extend(unread);
    found.extend(same_ids(&files, &rules));
    match Vocabulary::new(actions) {
        Err(faults) => Err(shown(faults, &files, found)),
        Ok(vocabulary) => {
            let (placed, misplaced) = place(rules, &vocabulary);
            found.extend(misplaced);
            if found.is_empty() {
                build(&files, &vocabulary, placed).map_err(|error| vec![defect(error)])
            } else {
                Err(shown(Vec::new(), &files, found))
            }
        }
    }
}

/// A finding, and the index of its file.
pub(crate) type Filed = (usize, Finding);

/// In the order of places, each place once for each kind, at most [`FAULTS_MAX`].
fn shown(mut faults: Vec<PolicyFault>, files: &[&PolicyFile], mut found: Vec<Filed>) -> Vec<PolicyFault> {
    found.sort_by(|(file, one), (other_file, other)| {
        (file, one.offset, &one.text).cmp(&(other_file, other.offset, &other.text))
    });
    // Cedar tells of the same attribute once for each tool.
    found.dedup_by(|(file, one), (other_file, other)| {
        (*file, one.offset, one.kind) == (*other_file, other.offset, other.kind)
    });
    let total = faults.len() + found.len();
    let lines: Vec<Lines<'_>> = files
        .iter()
        .map(|file| Lines::new(&file.path, &file.text))
        .collect();
    let found = found.into_iter().take(FAULTS_MAX);
    faults.extend(found.filter_map(|(file, finding)| lines.get(file).map(|lines| finding.at(lines))));
    faults.truncate(FAULTS_MAX);
    let more = total - faults.len();
    if more > 0
        && let Some(last) = faults.last_mut()
    {
        last.hint = Some(format!("and {more} more faults"));
    }
    faults
}

/// What can only go wrong if this room is wrong.
fn defect(error: String) -> PolicyFault {
    PolicyFault {
        place: Place::Whole,
        kind: PolicyFaultKind::Tool,
        text: error,
        hint: Some(REPORT.to_owned()),
    }
}

pub(crate) const REPORT: &str = "this is a defect of Tollhouse; please report it with this message";

// === reading ===

fn same_paths(files: &[&PolicyFile]) -> Vec<Filed> {
    let pairs = files.iter().zip(files.iter().skip(1)).enumerate();
    pairs
        .filter(|(_, (one, other))| one.path == other.path)
        .map(|(index, _)| {
            let hint = "messages and rule ids could not tell them apart".to_owned();
            (
                index + 1,
                Finding::new(0, PolicyFaultKind::Path, "two policy files have this path", hint),
            )
        })
        .collect()
}

/// Parses every file into rules, each with the index of its file.
fn read<'a>(files: &[&'a PolicyFile], limits: &Limits) -> (Vec<(usize, Rule<'a>)>, Vec<Filed>) {
    let mut rules = Vec::new();
    let mut found = Vec::new();
    let mut left = RULES_MAX;
    for (index, file) in files.iter().enumerate() {
        if let Some(finding) = too_large(file, limits, &mut left) {
            found.push((index, finding));
            continue;
        }
        found.extend(hidden(&file.text).map(|finding| (index, finding)));
        for (number, statement) in statements(&file.text).enumerate() {
            match Rule::parse(statement, number, &file.path) {
                Ok(rule) => rules.push((index, rule)),
                Err(findings) => found.extend(findings.into_iter().map(|finding| (index, finding))),
            }
        }
    }
    (rules, found)
}

fn too_large(file: &PolicyFile, limits: &Limits, left: &mut usize) -> Option<Finding> {
    let finding = |text| Some(Finding::new(0, PolicyFaultKind::Limit, text, None));
    let (length, max) = (file.text.len(), limits.config_bytes_max);
    if length > max {
        return finding(format!("the file has {length} bytes; at most {max} are read"));
    }
    // Counted before any is parsed: a file of semicolons is quick to write and slow to complain about.
    match left.checked_sub(statements(&file.text).count()) {
        Some(rest) => {
            *left = rest;
            None
        }
        None => finding(format!("with this file there are more than {RULES_MAX} rules")),
    }
}

/// Characters that nobody sees and that change what others see: bidirectional controls and the zero-width family.
/// None of them can be part of a name that the gate compares with. Comments count: reviewers read them.
fn hidden(text: &str) -> impl Iterator<Item = Finding> {
    text.char_indices()
        .filter(|(_, c)| {
            matches!(c, '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
        })
        .take(FAULTS_MAX)
        .map(|(offset, c)| {
            let hint = "remove it; in a quoted text, write it as an escape".to_owned();
            Finding::new(offset, PolicyFaultKind::Hidden, format!("the invisible character `{}`", c.escape_unicode()), hint)
        })
}

fn same_ids(files: &[&PolicyFile], rules: &[(usize, Rule<'_>)]) -> Vec<Filed> {
    let mut first: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut found = Vec::new();
    for (index, rule) in rules {
        let offset = rule.near(&["@", "id", "(", rule.id.as_str()]);
        let Some((earlier, at)) = first.insert(rule.id.as_str(), (*index, offset)) else {
            continue;
        };
        // Working out a place takes time; past what is shown, the first place need not be told.
        let place = files
            .get(earlier)
            .filter(|_| found.len() < FAULTS_MAX)
            .map(|file| Lines::new(&file.path, &file.text).at(at));
        let hint = place.map(|place| format!("the other rule is at {place}"));
        let text = format!("the rule id `{}` stands twice", rule.id);
        found.push((*index, Finding::new(offset, PolicyFaultKind::RuleId, text, hint)));
    }
    found
}

// === building ===

/// Puts each rule into one set, shared by the tools that it can apply to, and each tool in front of its sets.
fn build(files: &[&PolicyFile], vocabulary: &Vocabulary, placed: Vec<Placed<'_>>) -> Result<Table, String> {
    let lines: Vec<Lines<'_>> = files
        .iter()
        .map(|file| Lines::new(&file.path, &file.text))
        .collect();
    let mut idle = Vec::new();
    let mut groups: BTreeMap<Vec<usize>, Bucket> = BTreeMap::new();
    for (order, Placed { rule, scope, file }) in placed.into_iter().enumerate() {
        let lines = lines.get(file).ok_or("a rule without a file")?;
        let summary = RuleSummary {
            line: lines.line(rule.start()),
            id: rule.id.clone(),
            effect: rule.effect,
            file: lines.path().to_owned(),
        };
        if scope.tools.is_empty() {
            idle.push(summary);
        } else {
            groups
                .entry(scope.tools)
                .or_default()
                .add(order, summary, &rule)?;
        }
    }

    let mut buckets: Vec<Vec<Arc<Bucket>>> = vocabulary.tools.iter().map(|_| Vec::new()).collect();
    for (tools, bucket) in groups {
        let bucket = Arc::new(bucket);
        for index in tools {
            if let Some(buckets) = buckets.get_mut(index) {
                buckets.push(Arc::clone(&bucket));
            }
        }
    }
    let schema = vocabulary.schema();
    let types = Types::new().ok_or("the names of our own types are refused")?;
    let mut table = Table::new(version(files, &schema), schema, types, idle);
    for (tool, buckets) in vocabulary.tools.iter().zip(buckets) {
        let reads = buckets.iter().flat_map(|bucket| bucket.reads());
        let form = Form::new(table.types(), tool, reads).ok_or("the type of a resource is refused")?;
        table.seat(tool.name.clone(), form, buckets);
    }
    Ok(table)
}

/// Over each path and text, behind its length, in the order of the paths; then the schema.
fn version(files: &[&PolicyFile], schema: &str) -> Digest {
    let texts = files
        .iter()
        .flat_map(|file| [file.path.as_bytes(), file.text.as_bytes()]);
    let mut bytes = Vec::new();
    for text in texts.chain([schema.as_bytes()]) {
        bytes.extend_from_slice(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        bytes.extend_from_slice(text);
    }
    Digest::of("tollhouse/policy/v1", &[&bytes])
}
