//! Requests held against those of swagger-client for a document of our own: every place, style, mode and shape of a
//! parameter, and the media types of bodies, with values that have to be escaped. Every difference is explained here.

use std::collections::BTreeMap;
use std::io::Write as _;

use openapi::{Document, DocumentLimits, ToolOptions};
use serde_json::{Map, Value, json};

use crate::requests::{Call, compare, theirs};

/// Shapes of a value: a schema, and what is sent of it.
fn shapes() -> Vec<(&'static str, Value, Vec<Value>)> {
    vec![
        (
            "text",
            json!({"type": "string"}),
            vec![
                json!("plain"),
                json!("a b&c=d/e;f?g#h%i+j,k"),
                json!("ü漢~-._"),
                json!("'()*!:@$[]|"),
            ],
        ),
        ("whole", json!({"type": "integer"}), vec![json!(0), json!(-7)]),
        ("number", json!({"type": "number"}), vec![json!(1.5)]),
        (
            "truth",
            json!({"type": "boolean"}),
            vec![json!(true), json!(false)],
        ),
        (
            "list",
            json!({"type": "array", "items": {"type": "string"}}),
            vec![json!(["a"]), json!(["a", "b c", "ü"]), json!(["x&y", "z=1"])],
        ),
        (
            "numbers",
            json!({"type": "array", "items": {"type": "integer"}}),
            vec![json!([1, 2, 3])],
        ),
        (
            "thing",
            json!({"type": "object", "properties": {"R": {"type": "integer"}, "G h": {"type": "string"}}}),
            vec![json!({"R": 100}), json!({"R": 100, "G h": "x y&z"})],
        ),
    ]
}

const STYLES: [(&str, &[&str]); 3] = [
    (
        "query",
        &["form", "spaceDelimited", "pipeDelimited", "deepObject"],
    ),
    ("path", &["simple", "label", "matrix"]),
    ("header", &["simple"]),
];

/// The document, and the values for each of its operations.
fn parameters() -> (Value, BTreeMap<String, Vec<Value>>) {
    let (mut paths, mut values) = (Map::new(), BTreeMap::new());
    for (place, styles) in STYLES {
        for style in styles {
            for explode in [true, false] {
                for (shape, schema, samples) in shapes() {
                    let variable = if place == "path" { "/{x-v}" } else { "" };
                    let path = format!("/{place}/{style}/{explode}/{shape}{variable}");
                    let parameter = json!({
                        "name": "x-v", "in": place, "style": style, "explode": explode, "required": true, "schema": schema,
                    });
                    values.insert(format!("GET {path}"), samples);
                    paths.insert(
                        path,
                        json!({"get": {"parameters": [parameter], "responses": {"200": {"description": "d"}}}}),
                    );
                }
            }
        }
    }
    (
        json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "paths": paths}),
        values,
    )
}

async fn compared(
    document: &Value,
    arguments: &dyn Fn(&str) -> Vec<Value>,
    explain: crate::requests::Explain,
) -> Option<(usize, BTreeMap<&'static str, usize>)> {
    let bytes = document.to_string();
    let read = Document::read(bytes.as_bytes(), &DocumentLimits::default()).unwrap();
    let mut calls = Vec::new();
    for operation in read.operations() {
        // What the standard does not define is a blocker, and there is nothing to compare.
        let Ok(tool) = read.tool(&operation, &ToolOptions::default()) else {
            continue;
        };
        for value in arguments(&operation.key().to_string()) {
            let given = value.as_object().unwrap();
            // A value that would read back as another one is refused.
            let Ok(ours) = tool.plan.build(given, &Map::new()) else {
                continue;
            };
            calls.push(Call {
                operation: operation.key().to_string(),
                arguments: given.clone(),
                ours,
            });
        }
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes.as_bytes()).unwrap();
    let theirs = theirs(file.path(), &calls).await?;
    let (equal, reasons) = compare(&calls, &theirs, explain);
    Some((equal, reasons))
}

#[tokio::test]
async fn parameters_of_every_style_are_those_of_another_program() {
    let (document, values) = parameters();
    let arguments = |operation: &str| {
        values[operation]
            .iter()
            .map(|value| json!({"x-v": value}))
            .collect()
    };
    let Some((equal, reasons)) = compared(&document, &arguments, why).await else {
        return;
    };
    assert!(equal > 150, "{equal} {reasons:?}");
    assert_eq!(
        reasons.len(),
        4,
        "a reason that explains nothing any more: {reasons:?}"
    );
}

const OBJECT_DELIMITED: &str = "an object in `spaceDelimited` or `pipeDelimited` has its own delimiter (OpenAPI 3.1.1 section 4.8.12.6); theirs is a comma";
const PIPE: &str = "`|` stands in no URL as it is (RFC 3986 section 3.4)";
const LABEL: &str =
    "a label that is not exploded has commas (RFC 6570 section 3.2.5, OpenAPI 3.1.1 section 4.8.12.6)";
const KEY: &str = "the other program leaves keys in a path as they are, and a space stands in no URL";

/// Why the requests differ. Ours has to be what the reason says, also where theirs is something else.
fn why(call: &Call, other: &Value) -> Option<&'static str> {
    let (ours, theirs) = (call.ours.path_and_query.as_str(), other["target"].as_str()?);
    let delimited = [("spaceDelimited", "%20"), ("pipeDelimited", "%7C")]
        .into_iter()
        .find(|(style, _)| ours.contains(style));
    if let Some((_, delimiter)) = delimited.filter(|_| ours.contains("/thing")) {
        return (ours == theirs.replace(',', delimiter)).then_some(OBJECT_DELIMITED);
    }
    if ours.contains("pipeDelimited") {
        return (ours == theirs.replace('|', "%7C")).then_some(PIPE);
    }
    let escaped = theirs.replace(' ', "%20");
    if ours.contains("/label/false/") {
        let (path, value) = escaped.rsplit_once("/.")?;
        return (ours == format!("{path}/.{}", value.replace('.', ","))).then_some(LABEL);
    }
    (ours == escaped).then_some(KEY)
}

#[tokio::test]
async fn bodies_of_every_media_type_are_those_of_another_program() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object", "properties": {"k": {"type": "string"}}}}});
    let mut paths = Map::new();
    for (name, media, schema, encoding) in [
        ("json", "application/json", object.clone(), json!(null)),
        (
            "merge",
            "application/merge-patch+json",
            object.clone(),
            json!(null),
        ),
        (
            "list",
            "application/json",
            json!({"type": "array", "items": {"type": "integer"}}),
            json!(null),
        ),
        (
            "scalar",
            "application/json",
            json!({"type": "integer"}),
            json!(null),
        ),
        (
            "form",
            "application/x-www-form-urlencoded",
            object.clone(),
            json!(null),
        ),
        (
            "styled",
            "application/x-www-form-urlencoded",
            object,
            json!({"l": {"style": "form", "explode": false}, "o": {"style": "deepObject", "explode": true}}),
        ),
        ("text", "text/plain", json!({"type": "string"}), json!(null)),
        ("xml", "application/xml", json!({"type": "string"}), json!(null)),
    ] {
        let mut content = json!({"schema": schema});
        if !encoding.is_null() {
            content["encoding"] = encoding;
        }
        paths.insert(
            format!("/{name}"),
            json!({"post": {"requestBody": {"required": true, "content": {media: content}}, "responses": {"200": {"description": "d"}}}}),
        );
    }
    let document = json!({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "paths": paths});
    let arguments = |operation: &str| match operation {
        "POST /list" => vec![json!({"body": [1, 2]})],
        "POST /scalar" => vec![json!({"body": 7})],
        "POST /text" => vec![json!({"body": "one\ntwo ü"})],
        "POST /xml" => vec![json!({"body": "<a>1</a>"})],
        _ => vec![
            json!({"a": "x y&z=ü", "n": 3}),
            json!({"a": "", "l": ["p q", "r"]}),
            json!({"n": -1, "o": {"k": "v w"}}),
        ],
    };
    let explain: crate::requests::Explain = |call, other| {
        let body = std::str::from_utf8(&call.ours.body.as_ref()?.bytes).ok()?;
        let is_form = other["type"] == "application/x-www-form-urlencoded";
        (is_form && body == other["body"].as_str()?.replace(",r", "&l=r")).then_some(
            "a list in a form is exploded where nothing else is said (OpenAPI 3.1.1 section 4.8.15)",
        )
    };
    let Some((equal, reasons)) = compared(&document, &arguments, explain).await else {
        return;
    };
    assert!(equal > 10, "{equal} {reasons:?}");
    assert_eq!(
        reasons.len(),
        1,
        "a reason that explains nothing any more: {reasons:?}"
    );
}
