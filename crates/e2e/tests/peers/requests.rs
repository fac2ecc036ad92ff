//! Requests held against those of swagger-client, a program that serialises by the document alone and that other people
//! wrote: for every operation of GitHub's document. Every difference is explained here.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use e2e::driver::{self, HOW};
use e2e::house::text;
use e2e::peer;
use openapi::{Document, DocumentLimits, NoteKind, Prepared, ToolOptions, sample_arguments};
use serde_json::{Map, Value, json};

/// One call and the request that we make of it.
pub(crate) struct Call {
    pub(crate) operation: String,
    /// What callers give, and what the operator gives beside them.
    pub(crate) arguments: Map<String, Value>,
    pub(crate) ours: Prepared,
}

/// A request as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compared {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The pairs of the query as they are written, in alphabetical order.
    pub(crate) query: Vec<String>,
    /// The headers that are arguments, by their names in lower case, and cookies.
    pub(crate) headers: BTreeMap<String, String>,
    /// The media type of the body, where there is one.
    pub(crate) content_type: Option<String>,
    /// JSON as its value, a form of parts as a list of `[name, file name, text]`, anything else as its text.
    pub(crate) body: Option<Value>,
}

impl Compared {
    fn new(
        method: &str,
        target: &str,
        headers: BTreeMap<String, String>,
        body: Option<(String, Value)>,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut query: Vec<String> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(str::to_owned)
            .collect();
        query.sort();
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            headers,
            content_type: body.as_ref().map(|(content_type, _)| content_type.clone()),
            body: body.map(|(_, body)| body),
        }
    }

    pub(crate) fn of_ours(ours: &Prepared) -> Self {
        let body = ours.body.as_ref().map(|body| {
            let (media_type, boundary) = body
                .content_type
                .split_once("; boundary=")
                .unwrap_or((&body.content_type, ""));
            let written = text(&body.bytes);
            let value = match boundary {
                "" => value_of(&written),
                boundary => parts(&written, boundary),
            };
            (media_type.to_owned(), value)
        });
        let headers = ours.headers.iter().filter(|(name, _)| name != "accept");
        Self::new(
            ours.method,
            &ours.path_and_query,
            headers.cloned().collect(),
            body,
        )
    }

    pub(crate) fn of_theirs(theirs: &Value) -> Self {
        let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let body = theirs["body"]
            .as_str()
            .map(|body| (string(&theirs["type"]), value_of(body)));
        let headers = theirs["headers"].as_object().into_iter().flatten();
        Self::new(
            &string(&theirs["method"]),
            &string(&theirs["target"]),
            headers
                .map(|(name, value)| (name.clone(), string(value)))
                .collect(),
            body,
        )
    }
}

/// The parts of a form, each with its name, the name of its file, and its text.
fn parts(body: &str, boundary: &str) -> Value {
    let inner = body
        .strip_prefix(&format!("--{boundary}\r\n"))
        .and_then(|body| body.strip_suffix(&format!("\r\n--{boundary}--\r\n")))
        .unwrap_or_else(|| panic!("{body}"));
    let delimiter = format!("\r\n--{boundary}\r\n");
    let parts = inner.split(&delimiter).map(|part| {
        let (head, text) = part.split_once("\r\n\r\n").unwrap();
        let quoted = |key: &str| {
            let (_, rest) = head.split_once(&format!("; {key}=\""))?;
            Some(rest.split_once('"')?.0)
        };
        json!([quoted("name"), quoted("filename"), text])
    });
    Value::Array(parts.collect())
}

/// JSON as its value, anything else as its text.
fn value_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| json!(body))
}

/// What the other program makes of the calls; `None` where it is not installed.
pub(crate) async fn theirs(document: &Path, calls: &[Call]) -> Option<Vec<Value>> {
    let Some(mut command) = driver::script("requests.mjs") else {
        peer::missing("swagger-client", HOW);
        return None;
    };
    let plan = json!({
        "document": document,
        "calls": calls.iter().map(|call| json!({"operation": call.operation, "arguments": call.arguments})).collect::<Vec<_>>(),
    });
    let mut input = tempfile::NamedTempFile::new().unwrap();
    input.write_all(plan.to_string().as_bytes()).unwrap();
    command.arg(input.path());
    let output = driver::run(command).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), calls.len());
    Some(lines)
}

/// Why the requests of a call differ; `None` where nobody can say.
pub(crate) type Explain = fn(&Call, &Value) -> Option<&'static str>;

/// Compares all calls; gives how many are equal, and how many differ for each reason.
pub(crate) fn compare(
    calls: &[Call],
    theirs: &[Value],
    explain: Explain,
) -> (usize, BTreeMap<&'static str, usize>) {
    let mut equal = 0;
    let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for (call, other) in calls.iter().zip(theirs) {
        let (one, two) = (Compared::of_ours(&call.ours), Compared::of_theirs(other));
        if other.get("fault").is_none() && one == two {
            equal += 1;
        } else if let Some(reason) = explain(call, other) {
            *reasons.entry(reason).or_default() += 1;
        } else {
            unexplained.push(format!(
                "{} {}\n  ours   {one:?}\n  theirs {other}",
                call.operation,
                Value::Object(call.arguments.clone())
            ));
        }
    }
    assert!(
        unexplained.is_empty(),
        "{} differ:\n{}",
        unexplained.len(),
        unexplained[..unexplained.len().min(12)].join("\n")
    );
    (equal, reasons)
}

/// Every call that the samples of a document give and that we make a request of.
pub(crate) fn calls(bytes: &[u8]) -> Vec<Call> {
    let document = Document::read(bytes, &DocumentLimits::default()).unwrap();
    let options = ToolOptions {
        compile: false,
        allow_reserved: true,
        ..ToolOptions::default()
    };
    let mut calls = Vec::new();
    for operation in document.operations() {
        let Ok(tool) = document.tool(&operation, &options) else {
            continue;
        };
        // The other program is given values by the names of the document, which are not told apart where two are alike.
        if tool
            .notes
            .iter()
            .any(|note| note.kind == NoteKind::ArgumentRenamed)
        {
            continue;
        }
        for variant in 0..4 {
            let arguments = sample_arguments(&tool, variant);
            if let Ok(ours) = tool.plan.build(&arguments, &Map::new()) {
                calls.push(Call {
                    operation: operation.key().to_string(),
                    arguments,
                    ours,
                });
            }
        }
    }
    calls
}

#[tokio::test]
async fn requests_for_githubs_operations_are_those_of_another_program() {
    let Some(path) = driver::package("@octokit/openapi/generated/api.github.com.json") else {
        peer::missing("GitHub's document", HOW);
        return;
    };
    let calls = calls(&std::fs::read(&path).unwrap());
    assert!(calls.len() > 2_000, "{}", calls.len());
    let Some(theirs) = theirs(&path, &calls).await else {
        return;
    };
    let (equal, reasons) = compare(&calls, &theirs, |call, other| {
        let empty = call.ours.body.as_ref().is_some_and(|body| *body.bytes == *b"{}");
        // The document requires the body and none of its fields; the other program leaves it out.
        (empty && other["body"].is_null()).then_some("a required body without fields is an empty object")
    });
    assert_eq!(
        reasons.len(),
        1,
        "a reason that explains nothing any more: {reasons:?}"
    );
    assert!(equal > 2_000, "{equal} {reasons:?}");
}
