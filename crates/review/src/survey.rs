//! Makes the report: one walk over the operations of a document, beside the catalogue and the gateway of a configuration
//! where there is one. It orders the steps; what each part says is in the files beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use catalog::{Hold, HoldState, Tool};
use config::{Approved, CredentialSettings, Settings, UpstreamSettings};
use gateway::Gateway;
use identity::Principal;
use jiff::Timestamp;
use model::{Class, Digest, Exclusion, Object, Value};
use openapi::{
    Body, Document, Generated, Means, NameLock, OperationRef, Prepared, RequestPlan, ToolOptions, tool_names,
};
use url::Url;
use wire::Revision;

use crate::count::{self, Count};
use crate::report::{
    Access, Answered, Block, Budget, CallerView, Classes, Golden, Group, Measure, Place, Reconciliation,
    Report, Row, Severity, Status, Subject, Summary, Verdict,
};
use crate::text::{self, visible};

/// The length that a list of tools should not pass, in bytes.
const LIST_BYTES_MAX: usize = 256 << 10;
/// Operations and places that a group names.
const NAMED_MAX: usize = 20;
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
    let blockers = groups(inputs, &rows);
    let budget = budget(&rows);
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
fn contact(document: &Document) -> Option<String> {
    let contact = document.raw().get("info")?.get("contact")?;
    let text = |key: &str| contact.get(key).and_then(Value::as_str).map(visible);
    text("name").or_else(|| text("email"))
}

fn names(inputs: &Inputs<'_>, operations: &[OperationRef]) -> HashMap<String, String> {
    let prefix = inputs
        .configured
        .as_ref()
        .map(|configured| format!("{}_", configured.upstream.name))
        .unwrap_or_default();
    let lock = NameLock::default();
    let proposed = tool_names(operations, &prefix, &lock).or_else(|_| tool_names(operations, "", &lock));
    proposed
        .unwrap_or_default()
        .into_iter()
        .map(|naming| (naming.operation, naming.name))
        .collect()
}

/// The tools of the configuration, by the operation behind them.
type Tools = BTreeMap<String, Vec<Arc<Tool>>>;

fn tools_by_operation(inputs: &Inputs<'_>) -> Tools {
    let mut tools = Tools::new();
    if let Some(configured) = &inputs.configured {
        for tool in configured.gateway.catalog().tools() {
            if *tool.upstream() == configured.upstream.name {
                tools
                    .entry(tool.operation().to_owned())
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
            let held = own.get(*name).is_some_and(|tool| {
                tool.contradiction().is_some() || tool.hold(Some(principal.caller()), inputs.now).is_some()
            });
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
        .filter(|(name, tool)| {
            tool.contradiction().is_none() && tool.hold(None, inputs.now).is_none() && !seen.contains(*name)
        })
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
        let Ok(page) = gateway.list(principal, cursor.as_deref()) else {
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
        pin: None,
        seen_by: Vec::new(),
        contract: "none observed".to_owned(),
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
            row.status = if row.blockers.is_empty() {
                Status::Exposed
            } else {
                Status::Blocked
            };
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
    row.notes = tool.notes().iter().map(ToString::to_string).collect();
    let definition = tool.definition();
    row.bytes = Value::Object(definition.write(Revision::NEWEST_STATELESS))
        .to_string()
        .len();
    row.tokens = row.bytes.div_ceil(4);
    row.description_bytes = definition.description.len();
    row.schema_bytes = definition.input_schema.to_string().len()
        + definition
            .output_schema
            .as_ref()
            .map_or(0, |schema| schema.to_string().len());
    let injected = tool
        .bounds()
        .scope_argument
        .iter()
        .map(|name| (name.clone(), Value::String("the-caller".to_owned())))
        .collect();
    row.request = golden(&definition.input_schema, tool.plan(), &injected);
    answers(inputs, row, tool);
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
    let Some(observed) = tool.observed() else {
        return;
    };
    row.class.observed = row.class.observed.max(Some(observed.class));
    row.contract = observed.to_string();
    if tool.contradiction().is_some() {
        row.blockers.push(Block {
            code: "class.observed".to_owned(),
            severity: Severity::Error,
            pointer: row.pointer.clone(),
            text: observed.to_string(),
            clears: format!(
                "declare `class = \"{}\"`, or correct the operation and probe it again",
                observed.class
            ),
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
                })
                .collect();
        }
    }
}

fn measure(row: &mut Row, tool: &Generated) {
    row.description_bytes = tool.description.len();
    row.schema_bytes = tool.input_schema.to_string().len()
        + tool
            .output_schema
            .as_ref()
            .map_or(0, |schema| schema.to_string().len());
    let frame =
        "{\"name\":\"\",\"title\":\"\",\"description\":\"\",\"inputSchema\":,\"outputSchema\":}".len();
    row.bytes = frame
        + row.name.len()
        + tool.title.as_ref().map_or(0, String::len)
        + row.description_bytes
        + row.schema_bytes;
    row.tokens = row.bytes.div_ceil(4);
}

/// A request of arguments that the schema suggests.
fn golden(schema: &Value, plan: &RequestPlan, injected: &Object) -> Option<Golden> {
    let arguments = openapi::arguments_for(schema, 0);
    let Prepared {
        method,
        path_and_query,
        headers,
        body,
    } = plan.build(&arguments, injected).ok()?;
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

// === all together ===

fn summary(inputs: &Inputs<'_>, rows: &[Row]) -> Summary {
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
fn groups(inputs: &Inputs<'_>, rows: &[Row]) -> Vec<Group> {
    let contact = contact(inputs.document);
    let mut groups: BTreeMap<(Severity, String, String), Group> = BTreeMap::new();
    for row in rows {
        let mut of_row = BTreeSet::new();
        for block in &row.blockers {
            let key = (block.severity, block.code.clone(), block.clears.clone());
            let is_new = of_row.insert(key.clone());
            let approved = block.code.strip_prefix("approval.expired.");
            let owner = row
                .approvals
                .iter()
                .find(|approval| Some(approval.what.as_str()) == approved)
                .map(|approval| approval.by.clone());
            let group = groups.entry(key).or_insert_with(|| Group {
                code: block.code.clone(),
                severity: block.severity,
                owner: owner.or_else(|| contact.clone()),
                text: block.text.clone(),
                clears: block.clears.clone(),
                count: 0,
                operations: Vec::new(),
                pointers: Vec::new(),
            });
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

fn budget(rows: &[Row]) -> Budget {
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
        bytes_max: LIST_BYTES_MAX,
        fits: bytes <= LIST_BYTES_MAX,
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

fn access(inputs: &Inputs<'_>, rows: &[Row], tools: &Tools) -> Vec<Access> {
    let exposed: Vec<&Row> = rows.iter().filter(|row| row.status == Status::Exposed).collect();
    let changes = |row: &&&Row| row.class.declared.is_some_and(Class::changes_state);
    let shares =
        inputs.configured.as_ref().is_some_and(|configured| {
            matches!(configured.upstream.credentials, CredentialSettings::Every(_))
        }) && exposed.iter().any(|row| changes(&row))
            && exposed.iter().any(|row| !changes(&row));
    let mut table = Vec::new();
    for (row, access) in rows.iter().zip(inputs.document.access()) {
        if inputs.configured.is_some() && row.class.declared.is_none() {
            continue;
        }
        let key = access.operation.to_string();
        let mut concerns = Vec::new();
        for tool in tools.get(&key).into_iter().flatten() {
            concerns.extend(concerns_of(tool));
        }
        if shares && row.status == Status::Exposed {
            concerns.push("one credential reads and changes".to_owned());
        }
        if row.exclusions.contains(&Exclusion::Webhooks) {
            concerns.push("an argument is an address".to_owned());
        }
        concerns.sort_unstable();
        concerns.dedup();
        table.push(Access {
            operation: key,
            own: access.security.is_own,
            alternatives: access
                .security
                .alternatives
                .iter()
                .map(|all| {
                    all.iter()
                        .map(|one| match &one.kind {
                            Some(kind) => visible(&format!("{} ({kind})", one.scheme)),
                            None => visible(&one.scheme),
                        })
                        .collect()
                })
                .collect(),
            scopes: access.caller_scopes,
            flags: access.flags,
            concerns,
        });
    }
    table
}

/// What a configured tool leaves open.
fn concerns_of(tool: &Tool) -> Vec<String> {
    let mut concerns = Vec::new();
    if tool.plan().template().contains('{') && tool.bounds().owner.is_none() {
        concerns.push("nobody asks whose the thing in the path is".to_owned());
    }
    let properties = tool
        .definition()
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let lower = name.to_ascii_lowercase().replace(['_', '-'], "");
        let is_size = [
            "limit",
            "pagesize",
            "perpage",
            "count",
            "maxresults",
            "top",
            "size",
        ]
        .contains(&lower.as_str());
        if is_size && schema.get("maximum").is_none() && schema.get("enum").is_none() {
            concerns.push(format!("`{name}` has no maximum"));
        }
    }
    concerns
}

fn destinations(inputs: &Inputs<'_>) -> Vec<Place> {
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let approved = inputs
        .configured
        .as_ref()
        .and_then(|configured| origin(&configured.upstream.destination))
        .filter(url::Origin::is_tuple);
    let is_approved = |url: &str| approved.is_some() && origin(url) == approved;
    let mut places: Vec<Place> = inputs
        .document
        .destinations()
        .into_iter()
        .map(|destination| Place {
            approved: is_approved(&destination.url),
            url: visible(&destination.url),
            role: "operations",
            operations: destination.operations,
        })
        .collect();
    let mut tokens: BTreeMap<String, usize> = BTreeMap::new();
    for access in inputs.document.access() {
        let mut of_operation = BTreeSet::new();
        for requirement in access.security.alternatives.into_iter().flatten() {
            match requirement.means {
                Means::OAuth2(flows) => {
                    for flow in flows {
                        of_operation.extend(flow.token_url);
                        of_operation.extend(flow.authorization_url);
                    }
                }
                Means::OpenIdConnect(url) => {
                    of_operation.insert(url);
                }
                Means::ApiKey { .. }
                | Means::Basic
                | Means::Bearer
                | Means::Http(_)
                | Means::MutualTls
                | Means::Unknown(_)
                | Means::Undeclared => {}
            }
        }
        for url in of_operation {
            *tokens.entry(url).or_default() += 1;
        }
    }
    places.extend(tokens.into_iter().map(|(url, operations)| Place {
        approved: is_approved(&url),
        url: visible(&url),
        role: "tokens",
        operations,
    }));
    places
}

fn verdict(
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
    say(
        !budget.fits,
        format!(
            "the list of enabled tools has {} bytes; {} is the most that it should have",
            budget.bytes, budget.bytes_max
        ),
    );
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
