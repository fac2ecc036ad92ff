//! Split documents: which files become part of one, and which never do.

use std::cell::RefCell;
use std::collections::BTreeMap;

use openapi::{Absent, BlockerCause, Document, DocumentFault, Reading, Sources};
use serde_json::json;

use crate::support::{causes, request, tool};

const ROOT: &str = r##"
openapi: 3.1.0
paths:
  /carts: {$ref: './paths/carts.yaml'}
  /lines: {$ref: 'paths/carts.yaml#/lines'}
  /gone: {get: {responses: {'200': {content: {application/json: {schema: {}}}}}, parameters: [{$ref: 'gone.yaml'}]}}
  /out: {get: {parameters: [{$ref: '../secret.yaml'}]}}
  /far: {get: {parameters: [{$ref: 'http://169.254.169.254/x.yaml'}]}}
  /bad: {get: {parameters: [{$ref: 'bad.yaml#/p'}]}}
components:
  schemas:
    Name: {type: string, maxLength: 9}
"##;

const CARTS: &str = r##"
post:
  operationId: openCart
  parameters: [{$ref: '../shared/parameters.json#/Page'}]
  requestBody: {content: {application/json: {schema: {$ref: '../schemas/Cart.yaml'}}}}
get:
  operationId: listCarts
  parameters: [{$ref: '#/own'}]
own: {name: own, in: query, schema: {$ref: '../api.yaml#/components/schemas/Name'}}
lines:
  get: {operationId: listLines, parameters: [{name: a, in: query, schema: {type: broken}}]}
"##;

const CART: &str = "type: object\nproperties:\n  name: {type: string}\n  parent: {$ref: Cart.yaml}\n  kids: {type: array, items: {$ref: '#'}}\n";

fn files() -> BTreeMap<String, Vec<u8>> {
    [
        ("api.yaml", ROOT),
        ("paths/carts.yaml", CARTS),
        ("schemas/Cart.yaml", CART),
        (
            "shared/parameters.json",
            r#"{"Page": {"name": "page", "in": "query", "schema": {"type": "integer"}}}"#,
        ),
        ("bad.yaml", "a: 1\na: 2\n"),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .collect()
}

fn read(sources: &dyn Sources) -> Result<Document, DocumentFault> {
    let reading = Reading {
        path: "api.yaml",
        sources,
        ..Reading::default()
    };
    Document::read_with(ROOT.as_bytes(), &reading)
}

#[test]
fn files_inside_the_folder_are_part_of_the_document() {
    let document = read(&files()).unwrap();
    assert_eq!(
        document.files(),
        ["paths/carts.yaml", "schemas/Cart.yaml", "shared/parameters.json"]
    );
    let opened = tool(&document, "openCart");
    assert_eq!(opened.argument_names, ["page", "name", "parent", "kids"]);
    assert_eq!(
        request(&opened, json!({"page": 2, "parent": {"name": "a"}})).unwrap(),
        "POST /carts?page=2\ncontent-type: application/json\n\n{\"parent\":{\"name\":\"a\"}}"
    );
    let listed = tool(&document, "listCarts");
    assert_eq!(listed.input_schema["$defs"].as_object().unwrap().len(), 1);
    assert_eq!(listed.argument_names, ["own"]);
}

#[test]
fn findings_name_the_file() {
    let document = read(&files()).unwrap();
    assert_eq!(
        blocker(&document, "listLines"),
        (
            BlockerCause::SchemaMalformed,
            "paths/carts.yaml#/lines/get/parameters/0/schema/type".to_owned()
        )
    );
    let unreadable = document.unreadable();
    assert_eq!(unreadable.len(), 1);
    assert_eq!(unreadable[0].pointer, "bad.yaml#");
    assert!(
        unreadable[0].text.contains("`a` stands twice"),
        "{}",
        unreadable[0]
    );
}

#[test]
fn the_folder_may_begin_above_the_document() {
    let root = ROOT
        .replace("./paths/", "../paths/")
        .replace("'paths/", "'../paths/");
    let files: BTreeMap<String, Vec<u8>> = files()
        .into_iter()
        .map(|(path, bytes)| {
            let text = String::from_utf8(bytes)
                .unwrap()
                .replace("../api.yaml", "../spec/api.yaml");
            (path, text.into_bytes())
        })
        .collect();
    let read = |path: &str| {
        let reading = Reading {
            path,
            sources: &files,
            ..Reading::default()
        };
        Document::read_with(root.as_bytes(), &reading).unwrap()
    };
    assert_eq!(
        tool(&read("spec/api.yaml"), "openCart").argument_names,
        ["page", "name", "parent", "kids"]
    );
    assert_eq!(tool(&read("spec/api.yaml"), "listCarts").argument_names, ["own"]);
    assert!(read("").find("openCart").is_err());
}

fn blocker(document: &Document, key: &str) -> (BlockerCause, String) {
    let operation = document.find(key).unwrap();
    let blockers = document.tool(&operation, &Default::default()).unwrap_err();
    (blockers[0].cause, blockers[0].pointer.clone())
}

#[test]
fn what_lies_outside_or_is_missing_blocks_only_the_operations_that_need_it() {
    let document = read(&files()).unwrap();
    for key in ["GET /gone", "GET /out", "GET /far", "GET /bad"] {
        assert_eq!(
            causes(&document, key).0,
            [BlockerCause::ReferenceExternal],
            "{key}"
        );
    }
    // Without files, everything that needs one is blocked, and nothing else is harmed.
    let alone = Document::read(ROOT.as_bytes(), &Default::default()).unwrap();
    assert_eq!(alone.operations().count(), 4);
    assert_eq!(alone.unreadable().len(), 2);
}

#[test]
fn no_path_that_could_leave_the_folder_is_asked_for() {
    struct Asked(RefCell<Vec<String>>);
    impl Sources for Asked {
        fn file(&self, path: &str) -> Result<Vec<u8>, Absent> {
            self.0.borrow_mut().push(path.to_owned());
            files().file(path)
        }
    }
    let asked = Asked(RefCell::default());
    read(&asked).unwrap();
    let mut asked = asked.0.into_inner();
    asked.sort();
    assert_eq!(
        asked,
        [
            "bad.yaml",
            "gone.yaml",
            "paths/carts.yaml",
            "schemas/Cart.yaml",
            "shared/parameters.json"
        ]
    );
}

#[test]
fn the_digest_covers_every_file_that_is_part_of_the_document_and_no_other() {
    let digest = |files: &BTreeMap<String, Vec<u8>>| read(files).unwrap().digest();
    let before = digest(&files());
    let mut changed = files();
    changed.insert("schemas/Cart.yaml".to_owned(), format!("{CART} ").into_bytes());
    assert_ne!(digest(&changed), before);
    let mut more = files();
    more.insert("unused.yaml".to_owned(), b"x".to_vec());
    assert_eq!(digest(&more), before);
}

#[test]
fn all_files_together_have_the_limits_of_one_document() {
    let reading = |bytes_max: usize| {
        let files = files();
        let mut reading = Reading {
            path: "api.yaml",
            sources: &files,
            ..Reading::default()
        };
        reading.limits.bytes_max = bytes_max;
        Document::read_with(ROOT.as_bytes(), &reading).map(|document| document.files().len())
    };
    assert_eq!(reading(64 << 10), Ok(3));
    assert!(reading(ROOT.len() + 50).unwrap() < 3);
    assert!(reading(ROOT.len() - 1).is_err());
}

#[test]
fn a_document_has_files_up_to_the_limit_and_the_next_one_is_blocked_with_the_key() {
    let reading = |files_max: usize| {
        let files = files();
        let mut reading = Reading {
            path: "api.yaml",
            sources: &files,
            ..Reading::default()
        };
        reading.limits.files_max = files_max;
        Document::read_with(ROOT.as_bytes(), &reading).unwrap()
    };
    // Three that are there, one that is not, one that cannot be read.
    let why = |document: &Document| {
        let operation = document.find("GET /bad").unwrap();
        document.tool(&operation, &Default::default()).unwrap_err()[0]
            .text
            .clone()
    };
    assert!(!why(&reading(5)).contains("may have"), "{}", why(&reading(5)));
    let past: Vec<String> = reading(4)
        .operations()
        .filter_map(|operation| reading(4).tool(&operation, &Default::default()).err())
        .flat_map(|blockers| blockers.into_iter().map(|blocker| blocker.clears))
        .collect();
    assert!(
        past.iter().any(|clears| clears.contains("document_files_max")),
        "{past:?}"
    );
}

#[test]
fn a_file_of_a_server_is_read_where_the_sources_give_it_and_the_reason_is_told_where_they_do_not() {
    let root = ROOT.replace("http://169.254.169.254/x.yaml", "https://s.example/p.yaml#/Page");
    let mut files = files();
    let read = |files: &BTreeMap<String, Vec<u8>>| {
        let reading = Reading {
            path: "api.yaml",
            sources: files,
            ..Reading::default()
        };
        Document::read_with(root.as_bytes(), &reading).unwrap()
    };
    let document = read(&files);
    let operation = document.find("GET /far").unwrap();
    let blocker = &document.tool(&operation, &Default::default()).unwrap_err()[0];
    assert_eq!(blocker.cause, BlockerCause::ReferenceExternal);
    assert!(blocker.text.ends_with("there is no such file"), "{blocker}");
    let (page, other) = (
        "Page: {$ref: 'q/other.yaml'}\n",
        "name: page\nin: query\nschema: {type: integer}\n",
    );
    files.insert("https://s.example/p.yaml".to_owned(), page.as_bytes().to_vec());
    files.insert(
        "https://s.example/q/other.yaml".to_owned(),
        other.as_bytes().to_vec(),
    );
    let document = read(&files);
    assert_eq!(tool(&document, "GET /far").argument_names, ["page"]);
    assert!(
        document
            .files()
            .contains(&"https://s.example/q/other.yaml".to_owned())
    );
}
