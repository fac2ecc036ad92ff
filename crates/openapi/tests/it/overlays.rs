//! Overlays: what they change before a document is read, and what of them is refused.

use openapi::{Document, DocumentFault, OverlayFault, Reading};
use serde_json::json;

use crate::support::tool;

const ROOT: &str = r##"
openapi: 3.0.3
info: {title: Test, version: '1'}
tags: [{name: a}]
paths:
  /carts:
    get:
      operationId: listCarts
      parameters:
        - {name: p0, in: query, schema: {type: string}}
        - {name: p1, in: query, schema: {type: string}}
        - {name: p2, in: query, schema: {type: string}}
    delete: {operationId: dropCarts}
  /lines: {get: {operationId: listLines}}
"##;

fn read(actions: &str) -> Result<Document, OverlayFault> {
    let overlay = format!("overlay: 1.0.0\ninfo: {{title: t, version: '1'}}\nactions:\n{actions}");
    read_all(&[overlay.as_bytes()]).map_err(|fault| match fault {
        DocumentFault::Overlay { number: 1, fault } => fault,
        other => panic!("{other}"),
    })
}

fn read_all(overlays: &[&[u8]]) -> Result<Document, DocumentFault> {
    Document::read_with(
        ROOT.as_bytes(),
        &Reading {
            overlays,
            ..Reading::default()
        },
    )
}

#[test]
fn actions_change_the_document_in_their_order_and_are_reported() {
    let document = read(
        r##"
  - {target: "$.paths['/carts'].get", update: {description: Lists., parameters: [{name: p3, in: query, schema: {type: integer}}]}}
  - {target: "$.paths['/carts'].get.parameters[?@.name=='p0' || @.name=='p2']", remove: true}
  - {target: "$.paths[*].delete", remove: true}
  - {target: "$.info.title", update: Changed}
  - {target: "$.tags", update: {name: b}}
  - {target: "$.nothing", update: {a: 1}}
"##,
    )
    .unwrap();
    assert_eq!(document.title(), Some("Changed"));
    assert_eq!(document.operations().count(), 2);
    let listed = tool(&document, "listCarts");
    assert_eq!(listed.argument_names, ["p1", "p3"]);
    assert_eq!(listed.description, "Lists.");
    assert_eq!(document.raw()["tags"], json!([{"name": "a"}, {"name": "b"}]));
    let counts: Vec<usize> = document.overlaid().iter().map(|action| action.count).collect();
    assert_eq!(counts, [1, 2, 1, 1, 1, 0]);
    assert_eq!(document.overlaid()[2].pointer, "#/actions/2");
    assert_eq!(document.overlaid()[2].places, ["#/paths/~1carts/delete"]);
}

#[test]
fn copy_takes_from_one_place() {
    let document = read(
        "  - {target: \"$.paths['/lines'].get\", copy: \"$.paths['/carts'].get\"}\n  - {target: \"$.paths['/lines'].get\", update: {operationId: listLines}}\n",
    )
    .unwrap();
    assert_eq!(tool(&document, "listLines").argument_names, ["p0", "p1", "p2"]);
    assert!(matches!(
        read("  - {target: $.info, copy: '$.paths.*'}\n"),
        Err(OverlayFault::Target { .. })
    ));
}

#[test]
fn an_overlay_that_says_no_clear_thing_is_refused() {
    for (actions, expected) in [
        (
            "  - {target: $.info}\n",
            "one of `update`, `copy` and `remove: true`",
        ),
        ("  - {target: $.info, update: {a: 1}, remove: true}\n", "one of"),
        ("  - {target: 'info', update: {a: 1}}\n", "write a JSONPath"),
        ("  - {target: '$..*..*', remove: true}\n", "more than one `..`"),
        ("  - {update: {a: 1}}\n", "#/actions/0"),
        (
            "  - {target: $.info, update: 7}\n",
            "an object is updated by an object",
        ),
        ("  - {target: $.info.title, update: {a: 1}}\n", "a single value"),
    ] {
        let fault = read(actions).unwrap_err().to_string();
        assert!(fault.contains(expected), "{actions}: {fault}");
    }
    for overlay in [
        "overlay: 2.0.0\nactions: []",
        "a: b",
        "overlay: 1.0.0",
        "overlay: 1.0.0\nactions: []",
        "a: 1\na: 2",
    ] {
        let fault = read_all(&[overlay.as_bytes()]).unwrap_err();
        assert!(fault.to_string().starts_with("overlay 1: "), "{fault}");
    }
}

#[test]
fn the_digest_covers_overlays_and_their_order() {
    let one = b"overlay: 1.0.0\nactions: [{target: $.info, update: {a: 1}}]".as_slice();
    let two = b"overlay: 1.1.0\nactions: [{target: $.info, update: {a: 2}}]".as_slice();
    let digest = |overlays: &[&[u8]]| read_all(overlays).unwrap().digest();
    let all = [
        digest(&[]),
        digest(&[one]),
        digest(&[one, two]),
        digest(&[two, one]),
    ];
    for (index, left) in all.iter().enumerate() {
        assert!(all.iter().skip(index + 1).all(|right| right != left));
    }
    assert_eq!(
        digest(&[]),
        Document::read(ROOT.as_bytes(), &Default::default())
            .unwrap()
            .digest()
    );
}

#[test]
fn an_update_that_would_be_copied_too_often_is_refused() {
    let overlay =
        b"overlay: 1.0.0\nactions: [{target: '$..*', update: {a: [1, 2, 3, 4, 5, 6, 7, 8]}}]".as_slice();
    let overlays = [overlay];
    let mut reading = Reading {
        overlays: &overlays,
        ..Reading::default()
    };
    reading.limits.nodes_max = 200;
    let fault = Document::read_with(ROOT.as_bytes(), &reading)
        .unwrap_err()
        .to_string();
    assert!(fault.contains("copied too often"), "{fault}");
}
