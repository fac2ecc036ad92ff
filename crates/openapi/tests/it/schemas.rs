//! Schemas that refer to each other, to themselves, or say what cannot be carried over: cycles, definitions, bounds, and
//! the limit of size.

use openapi::{BlockerCause, NoteKind, ToolOptions};
use serde_json::json;

use crate::inputs::{body_document, body_tool};
use crate::support::{accepts, causes, document, note_kinds, tool};

#[test]
fn a_cycle_stays_a_cycle_in_the_definitions() {
    let tool = body_tool(
        "3.0.3",
        "{$ref: '#/components/schemas/Comment'}",
        "Comment: {type: object, properties: {text: {type: string}, replies: {type: array, items: {$ref: '#/components/schemas/Comment'}}}}",
    );
    assert_eq!(
        tool.input_schema["properties"]["replies"],
        json!({"type": "array", "items": {"$ref": "#/$defs/Comment"}})
    );
    assert!(accepts(
        &tool,
        &json!({"text": "a", "replies": [{"replies": [{"text": "b"}]}]})
    ));
    assert!(!accepts(&tool, &json!({"replies": [{"replies": [{"text": 1}]}]})));
}

#[test]
fn references_are_followed_everywhere_and_to_any_place() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /a/{id}:
    post:
      parameters: [{name: id, in: path, required: true, schema: {$ref: '#/components/parameters/Id/schema'}}]
      requestBody:
        content:
          application/json:
            schema:
              type: object
              properties:
                back: {$ref: '#/paths/~1a~1%7Bid%7D/post/requestBody/content/application~1json/schema/properties/n'}
                n: {type: object, additionalProperties: {$ref: '#/components/schemas/A%20b~1c'}}
                item: {$ref: '#/components/x-list/1'}
components:
  parameters: {Id: {name: id, in: query, schema: {type: string, enum: [p, q]}}}
  x-list: [{type: string}, {type: integer}]
  schemas:
    'A b/c': {properties: {c: {not: {$ref: '#/components/schemas/C'}}, t: {prefixItems: [{$ref: '#/components/schemas/C'}]},
      p: {patternProperties: {'^x': {$ref: '#/components/schemas/C'}}, additionalProperties: false}, d: {dependentSchemas: {k: {$ref: '#/components/schemas/C'}}}}}
    C: {type: string}
"##,
    );
    let tool = tool(&document, "POST /a/{id}");
    for (arguments, fits) in [
        (json!({"id": "p", "back": {"k": {"c": 1}}, "item": 1}), true),
        (json!({"id": "r"}), false),
        (json!({"id": "p", "back": {"k": {"c": "text"}}}), false),
        (json!({"id": "p", "n": {"k": {"t": [1]}}}), false),
        (json!({"id": "p", "n": {"k": {"p": {"x1": 1}}}}), false),
        (json!({"id": "p", "n": {"k": {"d": {"k": 1}}}}), false),
        (json!({"id": "p", "item": "text"}), false),
    ] {
        assert_eq!(
            accepts(&tool, &arguments),
            fits,
            "{arguments} in {}",
            tool.input_schema
        );
    }
    assert_eq!(
        tool.input_schema["$defs"].as_object().unwrap().len(),
        5,
        "{}",
        tool.input_schema["$defs"]
    );
}

#[test]
fn a_bad_schema_blocks_its_operation_with_the_place() {
    for (version, schema, cause, place) in [
        ("3.0.3", "{type: file}", BlockerCause::SchemaMalformed, "/type"),
        (
            "3.0.3",
            "{type: [string, 7]}",
            BlockerCause::SchemaMalformed,
            "/type",
        ),
        (
            "3.0.3",
            "{type: string, minLength: -1}",
            BlockerCause::SchemaMalformed,
            "/minLength",
        ),
        (
            "3.0.3",
            "{type: string, maxLength: long}",
            BlockerCause::SchemaMalformed,
            "/maxLength",
        ),
        ("3.0.3", "{enum: a}", BlockerCause::SchemaMalformed, "/enum"),
        ("3.0.3", "{allOf: []}", BlockerCause::SchemaMalformed, "/allOf"),
        (
            "3.0.3",
            "{anyOf: {type: string}}",
            BlockerCause::SchemaMalformed,
            "/anyOf",
        ),
        (
            "3.0.3",
            "{properties: [a]}",
            BlockerCause::SchemaMalformed,
            "/properties",
        ),
        (
            "3.0.3",
            "{required: [1], properties: {}}",
            BlockerCause::SchemaMalformed,
            "/required",
        ),
        (
            "3.0.3",
            "{multipleOf: 0}",
            BlockerCause::SchemaMalformed,
            "/multipleOf",
        ),
        ("3.0.3", "text", BlockerCause::SchemaMalformed, "/v"),
        ("3.0.3", "{items: 1}", BlockerCause::SchemaMalformed, "/items"),
        ("3.0.3", "{$ref: 1}", BlockerCause::SchemaMalformed, "/v"),
        (
            "3.0.3",
            "{pattern: '^(?!admin)'}",
            BlockerCause::SchemaPattern,
            "/pattern",
        ),
        (
            "3.0.3",
            "{pattern: '(a)\\1'}",
            BlockerCause::SchemaPattern,
            "/pattern",
        ),
        (
            "3.0.3",
            "{pattern: '[a'}",
            BlockerCause::SchemaPattern,
            "/pattern",
        ),
        (
            "3.1.0",
            "{patternProperties: {'(?<=x)y': {}}}",
            BlockerCause::SchemaPattern,
            "/patternProperties",
        ),
        (
            "3.1.0",
            "{const: 9007199254740993}",
            BlockerCause::SchemaNumber,
            "/const",
        ),
        (
            "3.1.0",
            "{minimum: 9007199254740993}",
            BlockerCause::SchemaNumber,
            "/minimum",
        ),
        (
            "3.1.0",
            "{$id: 'http://x', type: string}",
            BlockerCause::SchemaKeyword,
            "/$id",
        ),
        (
            "3.1.0",
            "{$dynamicRef: '#x'}",
            BlockerCause::SchemaKeyword,
            "/$dynamicRef",
        ),
        (
            "3.1.0",
            "{dependencies: {a: [b]}}",
            BlockerCause::SchemaKeyword,
            "/dependencies",
        ),
        (
            "3.0.3",
            "{$ref: '#/components/schemas/Missing'}",
            BlockerCause::ReferenceUnresolved,
            "/$ref",
        ),
        ("3.0.3", "{$ref: '#'}", BlockerCause::ReferenceUnresolved, "/$ref"),
        (
            "3.1.0",
            "{$ref: '#anchor'}",
            BlockerCause::ReferenceUnresolved,
            "/$ref",
        ),
        (
            // BASE-22: nothing is fetched, and nothing passes instead.
            "3.0.3",
            "{$ref: 'http://169.254.169.254/latest'}",
            BlockerCause::ReferenceExternal,
            "/$ref",
        ),
        (
            "3.0.3",
            "{$ref: '../../etc/passwd'}",
            BlockerCause::ReferenceExternal,
            "/$ref",
        ),
        (
            "3.0.3",
            "{$ref: '#/components/schemas/Loop'}",
            BlockerCause::ReferenceCyclic,
            "/$ref",
        ),
        (
            "3.0.3",
            "{$ref: '#/components/schemas/Knot'}",
            BlockerCause::ReferenceCyclic,
            "/post",
        ),
        (
            "3.1.0",
            "{$ref: '#/components/schemas/Tight'}",
            BlockerCause::ReferenceCyclic,
            "/post",
        ),
    ] {
        let document = body_document(
            version,
            &format!("{{type: object, required: [v], properties: {{v: {schema}}}}}"),
            r##"Loop: {$ref: '#/components/schemas/Pool'}, Pool: {$ref: '#/components/schemas/Loop'},
                Knot: {allOf: [{$ref: '#/components/schemas/Knot'}]}, Tight: {$ref: '#/components/schemas/Tight', maxLength: 3}"##,
        );
        let (found, pointer) = causes(&document, "POST /x");
        assert_eq!(found, [cause], "{schema}");
        assert!(pointer.ends_with(place), "{schema}: {pointer}");
        tool(&document, "GET /fine");
    }
}

#[test]
fn bounds_beyond_every_exact_number_are_left_out_with_a_note() {
    let tool = body_tool(
        "3.0.3",
        "{type: object, properties: {n: {type: integer, minimum: -9223372036854775808, maximum: 9223372036854775807}, s: {type: string, maxLength: 9223372036854775807}, e: {enum: [1, 9223372036854775807]}, d: {default: 9223372036854775807}}}",
        "",
    );
    assert_eq!(
        tool.input_schema["properties"],
        json!({"n": {"type": "integer"}, "s": {"type": "string"}, "e": {"enum": [1]}, "d": {}})
    );
    let dropped = note_kinds(&tool)
        .into_iter()
        .filter(|kind| *kind == NoteKind::SchemaNumberDropped);
    assert_eq!(dropped.count(), 5);
}

#[test]
fn a_schema_is_taken_at_its_limit_and_refused_one_byte_past_it() {
    let document = body_document(
        "3.0.3",
        "{type: object, required: [v], properties: {v: {type: string, enum: [some, values, of, it]}}}",
        "",
    );
    let operation = document.find("POST /x").unwrap();
    let length = tool(&document, "POST /x").input_schema.to_string().len();
    let options = |schema_bytes_max| ToolOptions {
        schema_bytes_max,
        ..ToolOptions::default()
    };
    assert!(document.tool(&operation, &options(length)).is_ok());
    let blockers = document.tool(&operation, &options(length - 1)).unwrap_err();
    assert_eq!(blockers[0].cause, BlockerCause::SchemaOverBudget);
    assert!(
        blockers[0].text.contains(&(length - 1).to_string()),
        "{}",
        blockers[0]
    );
    assert_eq!(
        document.tool(&operation, &options(8)).unwrap_err()[0].cause,
        BlockerCause::SchemaOverBudget
    );
}

#[test]
fn shared_schemas_stand_once_so_that_doubling_does_not_grow() {
    let mut schemas = String::new();
    for level in 0..30 {
        schemas.push_str(&format!(
            "L{level}: {{type: object, properties: {{x: {{$ref: '#/components/schemas/L{0}'}}, y: {{$ref: '#/components/schemas/L{0}'}}}}}}, ",
            level + 1
        ));
    }
    schemas.push_str("L30: {type: string}");
    let tool = body_tool("3.0.3", "{$ref: '#/components/schemas/L0'}", &schemas);
    assert!(tool.input_schema.to_string().len() < 5_000);
    assert_eq!(tool.input_schema["$defs"].as_object().unwrap().len(), 30);
}

#[test]
fn a_recursion_of_the_older_dialect_is_a_reference_to_the_schema_around_it() {
    let tree = "Tree: {$recursiveAnchor: true, type: object, properties: {name: {type: string}, children: {type: array, items: {oneOf: [{type: string}, {$recursiveRef: '#'}]}}}}";
    let made = body_tool(
        "3.1.0",
        "{type: object, properties: {tree: {$ref: '#/components/schemas/Tree'}}}",
        tree,
    );
    assert!(
        note_kinds(&made).contains(&NoteKind::SchemaDialectMismatch),
        "{:?}",
        made.notes
    );
    for (tree, good) in [
        (
            json!({"name": "a", "children": ["b", {"name": "c", "children": []}]}),
            true,
        ),
        (json!({"children": [{"children": [{"name": 7}]}]}), false),
        // It is closed as deep as it goes.
        (json!({"children": [{"other": 1}]}), false),
    ] {
        assert_eq!(accepts(&made, &json!({"tree": tree})), good, "{tree}");
    }
    // Without an anchor, beside other words, or with another target, nobody knows what it means.
    for broken in [
        tree.replace("$recursiveAnchor: true, ", ""),
        tree.replace(
            "$recursiveRef: '#'",
            "$recursiveRef: '#', properties: {x: {type: string}}",
        ),
        tree.replace("$recursiveRef: '#'", "$recursiveRef: '#/a'"),
    ] {
        let schema = "{type: object, properties: {tree: {$ref: '#/components/schemas/Tree'}}}";
        let (causes, _) = causes(&body_document("3.1.0", schema, &broken), "POST /x");
        assert_eq!(causes, [BlockerCause::SchemaKeyword], "{broken}");
    }
}
