//! What the operations come to: the counts, every defect once, the size of the list, and whether it may be released.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Tool;
use config::BlockerSettings;
use model::{Class, Digest, Limits, Value};
use openapi::{Document, OperationRef, ToolOptions, json_length};
use wire::Revision;

use crate::count::{self, Count};
use crate::report::{Budget, Group, Measure, Reconciliation, Row, Severity, Status, Summary, Verdict};
use crate::survey::{Inputs, contact};

/// Operations and places that a group names.
const NAMED_MAX: usize = 20;

/// The counts, and whether they fit the bytes.
pub(crate) fn summary(inputs: &Inputs<'_>, rows: &[Row]) -> Summary {
    let count = |status: Status| rows.iter().filter(|row| row.status == status).count();
    let by = |word: &dyn Fn(&Row) -> String| {
        let mut counts = BTreeMap::new();
        for row in rows {
            *counts.entry(word(row)).or_insert(0_usize) += 1;
        }
        counts
    };
    let class =
        |class: Option<Class>, none: &str| class.map_or_else(|| none.to_owned(), |class| class.to_string());
    let (counted, uncounted) = match count::count(inputs.bytes, inputs.own_path, inputs.files) {
        Count::Operations(counted) => (Some(counted), None),
        Count::Unknown(why) => (None, Some(why)),
    };
    let mut exclusions = BTreeMap::new();
    for exclusion in rows.iter().flat_map(|row| &row.exclusions) {
        *exclusions.entry(exclusion.to_string()).or_insert(0_usize) += 1;
    }
    let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (exposed, excluded, blocked, unreviewed) = (
        count(Status::Exposed),
        count(Status::Excluded),
        count(Status::Blocked),
        count(Status::Unreviewed),
    );
    Summary {
        operations: rows.len(),
        exposed,
        excluded,
        blocked,
        unreviewed,
        reconciles: exposed + excluded + blocked + unreviewed == rows.len()
            && counted == Some(inputs.before_overlays),
        counted,
        uncounted,
        overlays: signed(rows.len()).saturating_sub(signed(inputs.before_overlays)),
        declared: by(&|row| class(row.class.declared, "undeclared")),
        inferred: by(&|row| class(row.class.inferred, "unknown")),
        observed: by(&|row| class(row.class.observed, "unobserved")),
        exclusions,
    }
}

/// Every defect once, the worst first.
pub(crate) fn groups(inputs: &Inputs<'_>, rows: &mut [Row]) -> Vec<Group> {
    let contact = contact(inputs.document);
    let named: &[BlockerSettings] = match &inputs.configured {
        Some(configured) => &configured.upstream.blockers,
        None => &[],
    };
    let mut groups: BTreeMap<(Severity, String, String), Group> = BTreeMap::new();
    for row in rows {
        let mut of_row = BTreeSet::new();
        let approvals = &row.approvals;
        for block in &mut row.blockers {
            let key = (block.severity, block.code.clone(), block.clears.clone());
            let is_new = of_row.insert(key.clone());
            let approved = block.code.strip_prefix("approval.expired.");
            let answering = BlockerSettings::of(named, &block.code);
            let approver = approvals
                .iter()
                .find(|approval| Some(approval.what.as_str()) == approved)
                .map(|approval| approval.by.clone());
            let group = groups.entry(key).or_insert_with(|| Group {
                code: block.code.clone(),
                severity: block.severity,
                owner: answering
                    .map(|named| named.owner.clone())
                    .or(approver)
                    .or_else(|| contact.clone()),
                due: answering.and_then(|named| named.due).map(|due| due.to_string()),
                overdue: answering.is_some_and(|named| named.is_overdue(inputs.now)),
                text: block.text.clone(),
                clears: block.clears.clone(),
                count: 0,
                operations: Vec::new(),
                pointers: Vec::new(),
            });
            block.owner.clone_from(&group.owner);
            if is_new {
                group.count += 1;
                if group.operations.len() < NAMED_MAX {
                    group.operations.push(format!("{} {}", row.method, row.path));
                }
            }
            if group.pointers.len() < NAMED_MAX && !group.pointers.contains(&block.pointer) {
                group.pointers.push(block.pointer.clone());
            }
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by(|a, b| a.severity.cmp(&b.severity).then(b.count.cmp(&a.count)));
    groups
}

/// How long the list of tools is.
pub(crate) fn budget(inputs: &Inputs<'_>, rows: &[Row]) -> Budget {
    let bytes_max = match &inputs.configured {
        Some(configured) => configured.settings.limits.tools_list_bytes_max,
        None => Limits::default().tools_list_bytes_max,
    };
    let exposed: Vec<&Row> = rows.iter().filter(|row| row.status == Status::Exposed).collect();
    let bytes: usize = 2 + exposed.iter().map(|row| row.bytes + 1).sum::<usize>();
    let all: Vec<&Row> = rows.iter().collect();
    let measured = if exposed.is_empty() { &all } else { &exposed };
    let largest = |bytes: &dyn Fn(&Row) -> usize| {
        measured
            .iter()
            .max_by_key(|row| bytes(row))
            .filter(|row| bytes(row) > 0)
            .map(|row| Measure {
                tool: row.name.clone(),
                bytes: bytes(row),
            })
    };
    Budget {
        tools: exposed.len(),
        tokens: bytes.div_ceil(4),
        bytes_max,
        fits: bytes <= bytes_max,
        bytes_of_all: 2 + rows
            .iter()
            .filter(|row| row.bytes > 0)
            .map(|row| row.bytes + 1)
            .sum::<usize>(),
        longest_description: largest(&|row| row.description_bytes),
        largest_schema: largest(&|row| row.schema_bytes),
        bytes,
    }
}

/// What a list of tools that is too long is told as: its length, the limit, and what would make it fit.
///
/// `operations`: method and path of those that are in it; `bytes`: its length; `bytes_max`: more than which it should not have.
#[must_use]
pub fn long_list(
    document: &Document,
    operations: &BTreeSet<String>,
    bytes: usize,
    bytes_max: usize,
) -> String {
    format!(
        "the list of enabled tools has {bytes} bytes; {bytes_max} is the most that it should have (`limits.tools_list_bytes_max`); {}",
        shorter(document, operations, bytes, bytes_max)
    )
}

/// What would make a list that is too long shorter: budgets for each of its tools, as far as those of the document go.
fn shorter(document: &Document, operations: &BTreeSet<String>, bytes: usize, bytes_max: usize) -> String {
    let operations: Vec<OperationRef> = document
        .operations()
        .filter(|operation| operations.contains(&operation.key().to_string()))
        .collect();
    let options = ToolOptions {
        compile: false,
        ..ToolOptions::default()
    };
    let within = |bytes: usize| document.tools_within(&operations, &options, bytes);
    // What a list has beside words and schemas, as hints and arguments of its own, stays.
    let others = bytes.saturating_sub(within(usize::MAX).bytes);
    let list = within(bytes_max.saturating_sub(others));
    if list.fits {
        format!(
            "`input_bytes_max = {}` and `output_bytes_max = {}` of the upstream would make it fit, about",
            list.options.input_bytes_max, list.options.output_bytes_max
        )
    } else {
        "offer fewer tools, or project answers with `returns`".to_owned()
    }
}

/// The length of the definition of a tool in a list, in bytes of JSON.
#[must_use]
pub fn listed_bytes(tool: &Tool) -> usize {
    json_length(&Value::Object(
        tool.definition().write(Revision::NEWEST_STATELESS),
    ))
}

/// Whether it may be released, why not, and of what exactly that is said.
pub(crate) fn verdict(
    inputs: &Inputs<'_>,
    summary: &Summary,
    rows: &[Row],
    reconciliation: &Reconciliation,
    budget: &Budget,
) -> Verdict {
    let mut reasons = Vec::new();
    let mut say = |holds: bool, reason: String| {
        if holds {
            reasons.push(reason);
        }
    };
    say(
        summary.operations == 0,
        "nothing was analysed: the document has no operation".to_owned(),
    );
    say(
        !summary.reconciles,
        match (summary.counted, &summary.uncounted) {
            (Some(counted), _) => format!(
                "the counts do not fit together: {} operations were read and {counted} are in the bytes",
                inputs.before_overlays
            ),
            (None, why) => format!(
                "the operations in the bytes could not be counted: {}",
                why.as_deref().unwrap_or("no reason is known")
            ),
        },
    );
    say(
        inputs.configured.is_none(),
        "no configuration was given, so nothing is reviewed".to_owned(),
    );
    say(
        inputs.configured.is_some() && summary.exposed == 0,
        "no operation is exposed".to_owned(),
    );
    let held = rows
        .iter()
        .filter(|row| row.status == Status::Blocked && row.class.declared.is_some())
        .count();
    say(held > 0, format!("{held} configured tools are held"));
    say(
        !reconciliation.strays.is_empty(),
        format!(
            "callers see what they should not: {}",
            reconciliation.strays.join(", ")
        ),
    );
    if !budget.fits {
        let exposed = rows.iter().filter(|row| row.status == Status::Exposed);
        let operations = exposed
            .map(|row| format!("{} {}", row.method, row.path))
            .collect();
        say(
            true,
            long_list(inputs.document, &operations, budget.bytes, budget.bytes_max),
        );
    }
    let approvals = rows.iter().filter(|row| row.status == Status::Exposed);
    let until = approvals
        .flat_map(|row| &row.approvals)
        .map(|approval| approval.until.clone())
        .min();
    let document = inputs.document.digest().to_string();
    let configured = inputs.configured.as_ref();
    let configuration = configured.map(|configured| configured.settings.digest.to_string());
    let catalogue = configured.map(|configured| configured.gateway.catalog().root().to_string());
    let policy = configured.map(|configured| configured.gateway.policy().version().to_string());
    let ready = reasons.is_empty();
    let whole = serde_json::json!([
        ready,
        document,
        configuration,
        catalogue,
        policy,
        inputs.build,
        reasons
    ]);
    Verdict {
        ready,
        reasons,
        until,
        digest: Digest::of("tollhouse/review-verdict/v1", &[whole.to_string().as_bytes()]).to_string(),
        document,
        configuration,
        catalogue,
        policy,
        build: inputs.build.to_owned(),
    }
}
