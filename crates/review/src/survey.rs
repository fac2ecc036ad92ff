//! Makes the report: one walk over the operations of a document, beside the catalogue and the gateway of a configuration
//! where there is one. It orders the steps; what each part says is in the files beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use catalog::{Hold, HoldState, Operation, Tool};
use config::{Approved, Given, Settings, UpstreamSettings};
use gateway::{Gateway, Mount};
use identity::Principal;
use jiff::Timestamp;
use model::{Object, Value};
use openapi::{
    Body, Document, Generated, NameLock, OperationRef, Prepared, RequestPlan, ToolNaming, ToolOptions,
    json_length, tool_names,
};

use crate::access::{access, destinations};
use crate::report::{
    Answered, Block, CallerView, Classes, Golden, Reconciliation, Report, Row, Severity, Status, Subject,
};
use crate::settable::settable;
use crate::text::{self, visible};
use crate::verdict::{budget, groups, listed_bytes, summary, verdict};

/// How much of a body a golden request shows, in characters.
const BODY_CHARS_MAX: usize = 2_000;
/// Pages of a list that are asked for.
const PAGES_MAX: usize = 10_000;

/// What a report is made of.
pub struct Inputs<'a> {
    /// The document, as a person named it.
    pub path: &'a str,
    /// Its own bytes.
    pub bytes: &'a [u8],
    /// The path of the document in the folder of its files; empty where it has none.
    pub own_path: &'a str,
    /// Its other files, by their paths in that folder.
    pub files: &'a BTreeMap<String, Vec<u8>>,
    /// What was read of it, with its overlays.
    pub document: &'a Document,
    /// Operations that were read of its bytes before any overlay.
    pub before_overlays: usize,
    /// This program.
    pub build: &'a str,
    /// The time at which approvals have to hold.
    pub now: Timestamp,
    /// The configuration that has the document.
    pub configured: Option<Configured<'a>>,
    /// Told after each operation how many were looked at.
    pub progress: &'a dyn Fn(usize),
}

/// A configuration, put together as `serve` would.
pub struct Configured<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The upstream that has the document.
    pub upstream: &'a UpstreamSettings,
    /// The gateway that would serve.
    pub gateway: &'a Gateway,
    /// The callers of the configuration, by name.
    pub callers: Vec<(String, Principal)>,
    /// The name that each operation has, or would get: what the lock of names says.
    pub names: Vec<ToolNaming>,
}

/// Makes the report.
#[must_use]
pub fn survey(inputs: &Inputs<'_>) -> Report {
    let operations: Vec<OperationRef> = inputs.document.operations().collect();
    let reconciliation = reconcile(inputs, operations.len());
    let names = names(inputs, &operations);
    let tools = tools_by_operation(inputs);
    let mut rows = Vec::with_capacity(operations.len());
    for (index, operation) in operations.iter().enumerate() {
        let key = operation.key().to_string();
        let name = names.get(&key).cloned().unwrap_or_else(|| key.clone());
        let of_operation = tools.get(&key).map(Vec::as_slice).unwrap_or_default();
        rows.push(row(inputs, operation, name, of_operation, &reconciliation));
        (inputs.progress)(index + 1);
    }
    let summary = summary(inputs, &rows);
    let blockers = groups(inputs, &mut rows);
    let budget = budget(inputs, &rows);
    let (texts, texts_marked) = text::of_document(inputs.document);
    let verdict = verdict(inputs, &summary, &rows, &reconciliation, &budget);
    Report {
        format: "tollhouse/review/v1",
        verdict,
        subject: subject(inputs),
        access: access(inputs, &rows, &tools),
        destinations: destinations(inputs),
        summary,
        blockers,
        reconciliation,
        budget,
        texts,
        texts_marked,
        changes: None,
        tools: rows,
    }
}

// === what there is ===

fn subject(inputs: &Inputs<'_>) -> Subject {
    let document = inputs.document;
    Subject {
        path: inputs.path.to_owned(),
        title: document.title().map(visible),
        version: document.version().to_owned(),
        bytes: inputs.bytes.len(),
        files: document.files().to_vec(),
        overlaid: document.overlaid().len(),
        upstream: inputs
            .configured
            .as_ref()
            .map(|configured| configured.upstream.name.to_string()),
        contact: contact(document),
        unreadable: document.unreadable().iter().map(ToString::to_string).collect(),
    }
}

/// Whom the document names as responsible.
pub(crate) fn contact(document: &Document) -> Option<String> {
    let contact = document.raw().get("info")?.get("contact")?;
    let text = |key: &str| contact.get(key).and_then(Value::as_str).map(visible);
    text("name").or_else(|| text("email"))
}

fn names(inputs: &Inputs<'_>, operations: &[OperationRef]) -> HashMap<String, String> {
    let names = match &inputs.configured {
        Some(configured) => configured.names.clone(),
        None => tool_names(operations, "", &NameLock::default()).unwrap_or_default(),
    };
    names
        .into_iter()
        .map(|naming| (naming.operation, naming.name))
        .collect()
}

/// The tools of the configuration, by the operation behind them.
pub(crate) type Tools = BTreeMap<String, Vec<Arc<Tool>>>;

fn tools_by_operation(inputs: &Inputs<'_>) -> Tools {
    let mut tools = Tools::new();
    if let Some(configured) = &inputs.configured {
        for tool in configured.gateway.catalog().tools() {
            if *tool.upstream() == configured.upstream.name {
                tools
                    .entry(tool.origin().to_owned())
                    .or_default()
                    .push(Arc::clone(tool));
            }
        }
    }
    tools
}

fn reconcile(inputs: &Inputs<'_>, document: usize) -> Reconciliation {
    let mut reconciliation = Reconciliation {
        document,
        ..Reconciliation::default()
    };
    let Some(configured) = &inputs.configured else {
        return reconciliation;
    };
    let catalog = configured.gateway.catalog();
    let own: BTreeMap<String, &Arc<Tool>> = catalog
        .tools()
        .filter(|tool| *tool.upstream() == configured.upstream.name)
        .map(|tool| (tool.name().to_string(), tool))
        .collect();
    let all: BTreeSet<String> = catalog.tools().map(|tool| tool.name().to_string()).collect();
    let mut seen = BTreeSet::new();
    for (name, principal) in &configured.callers {
        let listed = listed(configured.gateway, principal);
        let strays = listed.iter().filter(|name| {
            let held = own
                .get(*name)
                .is_some_and(|tool| tool.objection(Some(principal.caller()), inputs.now).is_some());
            held || !all.contains(*name)
        });
        reconciliation.strays.extend(strays.cloned());
        let sees: Vec<String> = listed.into_iter().filter(|name| own.contains_key(name)).collect();
        seen.extend(sees.iter().cloned());
        reconciliation.callers.push(CallerView {
            caller: name.clone(),
            sees,
        });
    }
    reconciliation.unseen = own
        .iter()
        .filter(|(name, tool)| tool.objection(None, inputs.now).is_none() && !seen.contains(*name))
        .map(|(name, _)| name.clone())
        .collect();
    reconciliation.catalogue = own.into_keys().collect();
    reconciliation
}

/// Everything that a caller sees, by the gateway that serves.
fn listed(gateway: &Gateway, principal: &Principal) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let Ok(page) = gateway.list(principal, &Mount::All, cursor.as_deref()) else {
            break;
        };
        names.extend(page.tools.iter().map(|tool| tool.name.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    names
}

// === one operation ===

fn row(
    inputs: &Inputs<'_>,
    operation: &OperationRef,
    proposed: String,
    tools: &[Arc<Tool>],
    reconciliation: &Reconciliation,
) -> Row {
    let document = inputs.document;
    let inference = document.inference(operation);
    let pointer = document.origin(operation.pointer());
    let mut row = Row {
        name: proposed,
        also: Vec::new(),
        operation_id: operation.operation_id().map(str::to_owned),
        method: operation.method().to_owned(),
        path: operation.path().to_owned(),
        status: Status::Unreviewed,
        class: Classes {
            inferred: inference.class(),
            ..Classes::default()
        },
        exclusions: inference.exclusions().into_iter().collect(),
        approvals: Vec::new(),
        bytes: 0,
        tokens: 0,
        description_bytes: 0,
        schema_bytes: 0,
        blockers: Vec::new(),
        notes: Vec::new(),
        request: None,
        text: None,
        decisive: Vec::new(),
        undeclared: Vec::new(),
        pin: None,
        seen_by: Vec::new(),
        contract: "none observed".to_owned(),
        observed: None,
        evidence: inference.evidence,
        pointer,
    };
    match tools.split_first() {
        Some((first, others)) => {
            of_tool(inputs, &mut row, first);
            row.text = words(document, operation);
            for tool in others {
                of_further_tool(inputs, &mut row, tool);
            }
            let is_held = row.blockers.iter().any(|block| block.severity == Severity::Error);
            row.status = if is_held { Status::Blocked } else { Status::Exposed };
            let names: BTreeSet<&str> = std::iter::once(row.name.as_str())
                .chain(row.also.iter().map(String::as_str))
                .collect();
            row.seen_by = reconciliation
                .callers
                .iter()
                .filter(|view| view.sees.iter().any(|name| names.contains(name.as_str())))
                .map(|view| view.caller.clone())
                .collect();
        }
        None => of_operation(document, operation, &mut row),
    }
    row
}

fn of_tool(inputs: &Inputs<'_>, row: &mut Row, tool: &Tool) {
    row.name = tool.name().to_string();
    row.class.declared = Some(tool.class());
    row.pin = Some(tool.pin().to_string());
    let notes = tool.operation().map(Operation::notes).unwrap_or_default();
    row.notes = notes.iter().map(ToString::to_string).collect();
    let definition = tool.definition();
    row.bytes = listed_bytes(tool);
    row.tokens = row.bytes.div_ceil(4);
    row.description_bytes = definition.description.len();
    row.schema_bytes = json_length(&definition.input_schema)
        + definition
            .output_schema
            .as_ref()
            .map_or(0, |schema| json_length(schema));
    if let Some(operation) = tool.operation() {
        row.request = golden(&definition.input_schema, operation.plan(), &injected(tool));
        sets(row, &definition.input_schema, operation.plan());
    }
    answers(inputs, row, tool);
}

/// What the operator adds to a call, as far as it can be known without a caller.
fn injected(tool: &Tool) -> Object {
    let of_caller = || Value::from("the-caller");
    let bounds = tool.bounds();
    let scope = bounds
        .scope_argument
        .iter()
        .map(|name| (name.clone(), of_caller()));
    let given = bounds.arguments.iter().filter_map(|argument| {
        let value = match argument.given.as_ref()? {
            Given::Fixed(value) => value.clone(),
            Given::Tenant | Given::Subject | Given::Client | Given::Issuer | Given::Claim(_) => of_caller(),
            Given::CallId => Value::from("the-call"),
        };
        Some((argument.name.clone(), value))
    });
    scope.chain(given).collect()
}

fn of_further_tool(inputs: &Inputs<'_>, row: &mut Row, tool: &Tool) {
    row.also.push(tool.name().to_string());
    row.class.declared = row.class.declared.max(Some(tool.class()));
    answers(inputs, row, tool);
}

/// Who answers for a tool, and what is in its way.
fn answers(inputs: &Inputs<'_>, row: &mut Row, tool: &Tool) {
    for approval in &tool.bounds().approvals {
        row.approvals.push(Answered {
            what: approval.what.to_string(),
            by: approval.by.clone(),
            because: approval.because.clone(),
            until: approval.until.to_string(),
            audience: approval.audience.iter().map(ToString::to_string).collect(),
            holds: approval.holds(inputs.now),
        });
    }
    for hold in tool.holds(inputs.now) {
        let block = held(&hold, &row.pointer);
        row.blockers.push(block);
    }
    if let Some(contract) = tool.contract() {
        row.contract = contract.to_string();
        if contract.is_broken() {
            row.blockers.push(Block {
                code: "contract.broken".to_owned(),
                severity: Severity::Warning,
                pointer: row.pointer.clone(),
                text: format!("only {contract}"),
                clears:
                    "correct the schema of the answer, or keep with `returns` what it gives, and probe again"
                        .to_owned(),
                owner: None,
            });
        }
    }
    let Some(observed) = tool.observed() else {
        return;
    };
    row.class.observed = row.class.observed.max(Some(observed.class));
    row.observed = Some(observed.to_string());
    if tool.contradiction().is_some() {
        row.blockers.push(Block {
            code: "class.observed".to_owned(),
            severity: Severity::Error,
            pointer: row.pointer.clone(),
            text: observed.to_string(),
            clears: observed.clears(),
            owner: None,
        });
    }
}

fn held(hold: &Hold, pointer: &str) -> Block {
    let what = hold.need.what;
    let code = match (hold.state, what) {
        (HoldState::Missing, Approved::Class) => "class.disagreement".to_owned(),
        (HoldState::Missing | HoldState::NotForCaller, _) => format!("approval.missing.{what}"),
        (HoldState::Expired(_), _) => format!("approval.expired.{what}"),
    };
    Block {
        code,
        severity: Severity::Error,
        pointer: hold
            .need
            .evidence
            .as_ref()
            .map_or_else(|| pointer.to_owned(), |evidence| evidence.pointer.clone()),
        text: hold.need.to_string(),
        clears: hold.clears(),
        owner: None,
    }
}

/// An operation that no tool names.
fn of_operation(document: &Document, operation: &OperationRef, row: &mut Row) {
    // A survey of a whole document need not compile its schemas; what is offered was compiled when it was put together.
    let options = ToolOptions {
        compile: false,
        ..ToolOptions::default()
    };
    match document.tool(operation, &options) {
        Ok(tool) => {
            measure(row, &tool);
            row.request = golden(&tool.input_schema, &tool.plan, &Object::new());
            sets(row, &tool.input_schema, &tool.plan);
            row.notes = tool.notes.iter().map(ToString::to_string).collect();
            if !row.exclusions.is_empty() {
                row.status = Status::Excluded;
            }
        }
        Err(blockers) => {
            row.status = Status::Blocked;
            row.blockers = blockers
                .into_iter()
                .map(|blocker| Block {
                    code: blocker.cause.to_string(),
                    severity: Severity::Error,
                    pointer: blocker.pointer,
                    text: blocker.text,
                    clears: blocker.clears,
                    owner: None,
                })
                .collect();
        }
    }
}

fn measure(row: &mut Row, tool: &Generated) {
    row.description_bytes = tool.description.len();
    row.schema_bytes = tool.schema_bytes;
    let frame =
        "{\"name\":\"\",\"title\":\"\",\"description\":\"\",\"inputSchema\":,\"outputSchema\":}".len();
    row.bytes = frame
        + row.name.len()
        + tool.title.as_ref().map_or(0, String::len)
        + row.description_bytes
        + row.schema_bytes;
    row.tokens = row.bytes.div_ceil(4);
}

/// What a caller can set that a service may mean to decide.
fn sets(row: &mut Row, schema: &Value, plan: &RequestPlan) {
    let found = settable(schema, plan);
    row.decisive = found.decisive.iter().map(|place| visible(place)).collect();
    row.undeclared = found.undeclared.iter().map(|place| visible(place)).collect();
}

/// A request of arguments that the schema suggests.
fn golden(schema: &Value, plan: &RequestPlan, injected: &Object) -> Option<Golden> {
    let suggested = openapi::arguments_for(schema, 0);
    let (arguments, request) = match plan.build(&suggested, injected) {
        Ok(request) => (suggested, request),
        // What fits the schema is found by a longer search, which most tools do not need.
        Err(_) => {
            let builds = |arguments: &Object| plan.build(arguments, injected).is_ok();
            let arguments = openapi::valid_arguments(schema, &mut |arguments| builds(arguments))?;
            let request = plan.build(&arguments, injected).ok()?;
            (arguments, request)
        }
    };
    let Prepared {
        method,
        path_and_query,
        headers,
        body,
    } = request;
    Some(Golden {
        arguments,
        method: method.to_owned(),
        target: path_and_query,
        headers,
        content_type: body.as_ref().map(|body| body.content_type.clone()),
        body: body.as_ref().map(shown),
    })
}

fn shown(body: &Body) -> String {
    match std::str::from_utf8(&body.bytes) {
        Ok(text) => text.chars().take(BODY_CHARS_MAX).collect(),
        Err(_) => format!("{} bytes", body.bytes.len()),
    }
}

/// What the document says about an operation.
fn words(document: &Document, operation: &OperationRef) -> Option<String> {
    let pointer = operation.pointer().strip_prefix('#')?;
    let value = document.raw().pointer(pointer)?;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let all: Vec<&str> = [text("summary"), text("description")]
        .into_iter()
        .flatten()
        .collect();
    (!all.is_empty()).then(|| visible(&all.join("\n")))
}

#[cfg(test)]
mod tests {
    use openapi::DocumentLimits;

    use super::*;

    fn surveyed(read: &str, counted: &str) -> Report {
        let document = Document::read(read.as_bytes(), &DocumentLimits::default()).unwrap();
        survey(&Inputs {
            path: "api.yaml",
            bytes: counted.as_bytes(),
            own_path: "",
            files: &BTreeMap::new(),
            document: &document,
            before_overlays: document.operations().count(),
            build: "test",
            now: Timestamp::UNIX_EPOCH,
            configured: None,
            progress: &|_| {},
        })
    }

    #[test]
    fn a_report_whose_counts_do_not_fit_the_bytes_is_void() {
        let two = "openapi: 3.1.0\npaths:\n  /a: {get: {}, delete: {}}\n";
        let one = "openapi: 3.1.0\npaths:\n  /a: {get: {}}\n";
        let none = "openapi: 3.1.0\npaths: {}\n";
        for (read, counted, void) in [
            (two, two, false),
            (one, two, true),
            (two, one, true),
            (none, none, true),
        ] {
            let report = surveyed(read, counted);
            assert_eq!(report.is_void(), void, "{counted}: {:?}", report.verdict.reasons);
            assert!(!report.verdict.ready);
        }
        let lost = surveyed(one, two).verdict.reasons;
        assert!(
            lost[0].contains("1 operations were read and 2 are in the bytes"),
            "{lost:?}"
        );
        let outside = surveyed(two, "paths:\n  /a: {$ref: 'https://x.example/a'}\n");
        assert!(outside.is_void() && outside.summary.counted.is_none());
    }

    #[test]
    fn every_operation_is_one_of_four_and_the_same_defect_stands_once() {
        let text =
            "openapi: 3.1.0\npaths:\n  /a/{x}: {get: {}}\n  /b/{x}: {get: {}}\n  /c: {get: {}, post: {}}\n";
        let report = surveyed(text, text);
        let summary = &report.summary;
        assert_eq!(
            (
                summary.exposed,
                summary.excluded,
                summary.blocked,
                summary.unreviewed
            ),
            (0, 1, 2, 1)
        );
        assert_eq!(report.blockers.len(), 1, "{:?}", report.blockers);
        assert_eq!(
            (report.blockers[0].count, report.blockers[0].pointers.len()),
            (2, 2)
        );
    }
}
