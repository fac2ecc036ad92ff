//! Schemas that are too large, and alternatives that a field tells apart: nothing is let through for it.

use std::fmt::Write as _;

use openapi::{BlockerCause, BuildFault, NoteKind, ToolOptions};
use serde_json::json;

use crate::support::{accepts, causes, document, note_kinds, tool, tool_with, validator};

/// A chain of schemas, each with a text that takes room and an optional way to the next.
fn chain(length: usize, required: &str) -> String {
    let mut text = format!(
        "paths:\n  /a:\n    post:\n      requestBody: {{required: true, content: {{application/json: {{schema: {{$ref: '#/components/schemas/L0'}}}}}}}}\n      responses: {{'200': {{content: {{application/json: {{schema: {{$ref: '#/components/schemas/L0'}}}}}}}}}}\ncomponents:\n  schemas:\n    L{length}: {{type: string}}\n"
    );
    for n in 0..length {
        let _ = writeln!(
            text,
            "    L{n}: {{type: object, {required} properties: {{s: {{type: string, description: {}}}, next: {{$ref: '#/components/schemas/L{}'}}}}}}",
            "x".repeat(300),
            n + 1
        );
    }
    text
}

fn small() -> ToolOptions {
    ToolOptions {
        schema_bytes_max: 4_000,
        output_bytes_max: 2_000,
        ..ToolOptions::default()
    }
}

#[test]
fn optional_fields_of_an_input_that_is_too_large_are_left_out_and_refused() {
    let document = document("3.1.0", &chain(40, ""));
    let whole = tool(&document, "POST /a");
    assert!(!note_kinds(&whole).contains(&NoteKind::SchemaFolded));
    let folded = tool_with(&document, "POST /a", &small());
    assert!(note_kinds(&folded).contains(&NoteKind::SchemaFolded));
    assert!(folded.input_schema.to_string().len() <= 4_000);
    let near = json!({"s": "a", "next": {"s": "b"}});
    assert!(accepts(&folded, &near));
    let mut deep = json!("end");
    for _ in 0..40 {
        deep = json!({ "next": deep });
    }
    assert!(accepts(&whole, &deep) && !accepts(&folded, &deep));
}

#[test]
fn an_argument_that_is_left_out_is_no_argument_of_the_plan() {
    let text = format!(
        "paths:\n  /a:\n    post:\n      requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{a: {{type: string}}, big: {{$ref: '#/components/schemas/Big'}}}}}}}}}}}}\ncomponents:\n  schemas:\n    Big: {{type: string, enum: {:?}}}\n",
        (0..1_000).map(|n| format!("v{n}")).collect::<Vec<_>>()
    );
    let document = document("3.1.0", &text);
    let folded = tool_with(&document, "POST /a", &small());
    assert_eq!(folded.argument_names, ["a"]);
    let arguments = json!({"big": "v1"});
    assert_eq!(
        folded
            .plan
            .build(arguments.as_object().unwrap(), &Default::default())
            .unwrap_err(),
        BuildFault::Undeclared("big".to_owned())
    );
}

#[test]
fn words_go_before_fields() {
    let long = "A sentence about it. ".repeat(250);
    let text = format!(
        "paths:\n  /a: {{post: {{requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{a: {{type: string, description: \"{long}\"}}}}}}}}}}}}}}}}\n"
    );
    let document = document("3.1.0", &text);
    let terse = tool_with(&document, "POST /a", &small());
    assert_eq!(terse.argument_names, ["a"]);
    let kinds = note_kinds(&terse);
    assert!(kinds.contains(&NoteKind::SchemaTerse) && !kinds.contains(&NoteKind::SchemaFolded));
    let words = terse.input_schema["properties"]["a"]["description"]
        .as_str()
        .unwrap();
    assert!(words.ends_with("it.") && words.len() <= 120, "{words}");
}

#[test]
fn texts_of_a_large_input_are_short_within_any_budget_and_all_its_fields_stay() {
    let words = "What it is for, said in one whole sentence of its own. And a second one that goes on for as long as somebody had the patience to write it down here, in full.";
    let text = |fields: usize| {
        let mut text =
            "paths:\n  /a:\n    post:\n      parameters: [{name: q, in: query, description: '".to_owned();
        let _ = write!(
            text,
            "{words}', schema: {{type: string}}}}]\n      requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{"
        );
        for n in 0..fields {
            let _ = write!(
                text,
                "f{n}: {{type: string, description: '{words}', title: 'A title'}}, "
            );
        }
        text.push_str("}}}}}\n");
        text
    };
    let small = tool(&document("3.1.0", &text(2)), "POST /a");
    assert_eq!(small.input_schema["properties"]["f1"]["description"], words);
    assert!(!note_kinds(&small).contains(&NoteKind::SchemaTerse));
    let large = tool(&document("3.1.0", &text(60)), "POST /a");
    let kinds = note_kinds(&large);
    assert!(kinds.contains(&NoteKind::SchemaTerse) && !kinds.contains(&NoteKind::SchemaFolded));
    assert_eq!(large.argument_names.len(), 61);
    for name in ["q", "f0", "f59"] {
        assert_eq!(
            large.input_schema["properties"][name]["description"],
            "What it is for, said in one whole sentence of its own.",
            "{name}"
        );
    }
    assert!(!large.input_schema.to_string().contains("A title"));
}

#[test]
fn a_long_list_of_values_stands_once_in_a_schema_and_fits_as_before() {
    let values: Vec<String> = (0..60).map(|n| format!("kind_{n}")).collect();
    let text = format!(
        "paths:\n  /a:\n    post:\n      requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{one: {{type: string, enum: {values:?}}}, many: {{type: array, items: {{type: string, enum: {values:?}}}}}}}}}}}}}}}\n      responses: {{'200': {{content: {{application/json: {{schema: {{type: object, properties: {{one: {{type: string, enum: {values:?}}}, two: {{type: string, enum: {values:?}}}}}}}}}}}}}}}\n"
    );
    let tool = tool(&document("3.1.0", &text), "POST /a");
    for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
        assert_eq!(schema.to_string().matches("kind_59").count(), 1, "{schema}");
        assert_eq!(schema["properties"]["one"]["type"], "string");
    }
    for (arguments, fits) in [
        (json!({"one": "kind_59", "many": ["kind_0", "kind_1"]}), true),
        (json!({"one": "kind_60"}), false),
        (json!({"many": ["kind_1", "other"]}), false),
    ] {
        assert_eq!(accepts(&tool, &arguments), fits, "{arguments}");
    }
}

#[test]
fn required_fields_are_never_left_out() {
    let long = document("3.1.0", &chain(40, "required: [next],"));
    let operation = long.find("POST /a").unwrap();
    let blockers = long.tool(&operation, &small()).unwrap_err();
    assert_eq!(blockers[0].cause, BlockerCause::SchemaOverBudget);
    let short = document("3.1.0", &chain(8, "required: [next],"));
    let tool = tool_with(&short, "POST /a", &small());
    let mut deep = json!("end");
    for _ in 0..8 {
        deep = json!({ "next": deep });
    }
    assert!(accepts(&tool, &deep));
}

#[test]
fn a_field_of_an_open_object_is_refused_by_name() {
    let text = chain(40, "additionalProperties: true,");
    let document = document("3.1.0", &text);
    let folded = tool_with(&document, "POST /a", &small());
    let body = |value| json!({ "body": value });
    let mut deep = json!({"s": "end"});
    for _ in 0..30 {
        deep = json!({ "next": deep });
    }
    assert!(accepts(&folded, &body(json!({"other": 1}))));
    assert!(!accepts(&folded, &body(deep)));
}

#[test]
fn an_answer_is_described_less_deeply_and_lets_more_through_never_less() {
    let document = document("3.1.0", &chain(40, "required: [next],"));
    let operation = document.find("POST /a").unwrap();
    let options = ToolOptions {
        schema_bytes_max: 64 << 10,
        output_bytes_max: 2_000,
        ..ToolOptions::default()
    };
    let tool = document.tool(&operation, &options).unwrap();
    assert!(note_kinds(&tool).contains(&NoteKind::OutputFolded));
    let schema = tool.output_schema.unwrap();
    assert!(schema.to_string().len() < 3_500, "{}", schema.to_string().len());
    let mut deep = json!("end");
    for _ in 0..40 {
        deep = json!({ "next": deep });
    }
    let validator = validator(&schema);
    assert!(validator.is_valid(&deep));
    assert!(!validator.is_valid(&json!({"s": "next is missing"})));
}

#[test]
fn alternatives_that_are_described_less_deeply_do_not_refuse_what_fits_one() {
    let text = format!(
        "paths:\n  /a: {{get: {{responses: {{'200': {{content: {{application/json: {{schema: {{type: object, properties: {{pad: {{type: string, description: {}}}, x: {{oneOf: [{{$ref: '#/components/schemas/A'}}, {{$ref: '#/components/schemas/B'}}]}}, y: {{not: {{$ref: '#/components/schemas/A'}}}}}}}}}}}}}}}}}}}}\ncomponents:\n  schemas:\n    A: {{type: object, required: [a], properties: {{a: {{type: string}}}}}}\n    B: {{type: object, required: [b], properties: {{b: {{type: string}}}}}}\n",
        "x".repeat(3_000)
    );
    let document = document("3.1.0", &text);
    let tool = tool_with(
        &document,
        "GET /a",
        &ToolOptions {
            output_bytes_max: 2_000,
            ..ToolOptions::default()
        },
    );
    let validator = validator(tool.output_schema.as_ref().unwrap());
    assert!(validator.is_valid(&json!({"x": {"a": "1"}, "y": {}})));
}

#[test]
fn a_budget_of_an_input_folds_what_is_optional_and_blocks_nothing() {
    let goal = ToolOptions {
        input_bytes_max: 3_000,
        ..ToolOptions::default()
    };
    let optional = tool_with(&document("3.1.0", &chain(40, "")), "POST /a", &goal);
    assert!(optional.input_schema.to_string().len() <= 3_000);
    assert!(note_kinds(&optional).contains(&NoteKind::SchemaFolded));
    // What must be given stays, as far as a tool may be large at all.
    let required = tool_with(
        &document("3.1.0", &chain(40, "required: [next],")),
        "POST /a",
        &goal,
    );
    let length = required.input_schema.to_string().len();
    assert!(length > 3_000, "{length}");
    // At the budget nothing is lost, and below it words go first.
    let small = document("3.1.0", &chain(4, ""));
    let whole = tool(&small, "POST /a");
    let at = |bytes: usize| {
        let options = ToolOptions {
            input_bytes_max: bytes,
            ..ToolOptions::default()
        };
        tool_with(&small, "POST /a", &options)
    };
    let length = whole.input_schema.to_string().len();
    assert_eq!(at(length).input_schema, whole.input_schema);
    assert!(note_kinds(&at(length - 1)).contains(&NoteKind::SchemaTerse));
}

#[test]
fn the_words_of_an_answer_go_where_the_operator_asks_for_a_smaller_one() {
    let text = format!(
        "paths:\n  /a: {{get: {{responses: {{'200': {{description: d, content: {{application/json: {{schema: {{type: object, properties: {{a: {{type: string, description: {0}}}, b: {{type: string, description: {0}}}, c: {{type: string, maxLength: 3, description: {0}}}}}}}}}}}}}}}}}}}\n",
        "x".repeat(100)
    );
    let document = document("3.1.0", &text);
    let at = |output_bytes_max: usize| {
        let options = ToolOptions {
            output_bytes_max,
            ..ToolOptions::default()
        };
        tool_with(&document, "GET /a", &options)
    };
    let whole = tool(&document, "GET /a").output_schema.unwrap();
    let length = whole.to_string().len();
    assert_eq!(at(length).output_schema.as_ref(), Some(&whole));
    let small = at(length - 1);
    assert!(note_kinds(&small).contains(&NoteKind::SchemaTerse));
    let small = small.output_schema.unwrap();
    assert!(!small.to_string().contains("xxx"), "{small}");
    assert_eq!(small["properties"]["c"]["maxLength"], 3);
}

#[test]
fn a_list_is_made_smaller_until_it_fits_and_says_so_where_it_cannot() {
    let document = document("3.1.0", &chain(40, ""));
    let operations: Vec<_> = document.operations().collect();
    let options = ToolOptions::default();
    let list = |bytes_max: usize| document.tools_within(&operations, &options, bytes_max);
    let whole = list(usize::MAX);
    assert!(whole.fits && whole.options.output_bytes_max == options.output_bytes_max);
    assert!(list(whole.bytes).fits && list(whole.bytes).bytes == whole.bytes);
    let less = list(whole.bytes - 1);
    assert!(less.fits && less.bytes < whole.bytes);
    let small = list(6_000);
    assert!(small.fits && small.bytes <= 6_000 && small.tools.iter().all(Result::is_ok));
    let none = list(100);
    assert!(!none.fits && none.bytes > 100 && none.tools.iter().all(Result::is_ok));
    // A tool that cannot be smaller is not lost for the list.
    let required = crate::support::document("3.1.0", &chain(40, "required: [next],"));
    let operations: Vec<_> = required.operations().collect();
    let list = required.tools_within(&operations, &options, 1_000);
    assert!(!list.fits && list.tools[0].is_ok());
}

const PAY: &str = r##"
paths:
  /pay: {post: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pay'}}}}}}
components:
  schemas:
    Pay:
      oneOf: [{$ref: '#/components/schemas/Card'}, {$ref: '#/components/schemas/Iban'}, {$ref: '#/components/schemas/Cash'}]
      discriminator: {propertyName: t, mapping: {card: Card, debit: Card, iban: '#/components/schemas/Iban'}}
    Card: {type: object, required: [t], properties: {t: {type: string}, number: {type: string}}}
    Iban: {type: object, required: [t], properties: {t: {type: string}, number: {type: string}}}
    Cash: {type: object, properties: {t: {type: string}}}
"##;

#[test]
fn a_discriminator_chooses_one_alternative_by_its_value() {
    for version in ["3.0.3", "3.1.0", "3.2.0"] {
        let tool = tool(&document(version, PAY), "POST /pay");
        for (body, fits) in [
            (json!({"t": "card", "number": "1"}), true),
            (json!({"t": "debit", "number": "1"}), true),
            (json!({"t": "iban", "number": "1"}), true),
            // Without a name in the mapping, the name of the schema.
            (json!({"t": "Cash"}), true),
            (json!({"t": "Cash", "number": "1"}), false),
            (json!({"t": "Card", "number": "1"}), false),
            (json!({"t": "other"}), false),
            (json!({"number": "1"}), false),
        ] {
            assert_eq!(accepts(&tool, &json!({ "body": body })), fits, "{version} {body}");
        }
    }
}

#[test]
fn a_fragment_of_a_path_tells_operations_apart_and_is_not_sent() {
    let document = document(
        "3.0.3",
        "paths:\n  '/#Action=A': {get: {parameters: [{name: Action, in: query, required: true, schema: {type: string, enum: [A]}}]}}\n  '/#Action=B/C': {get: {}}\n  '/a?b': {get: {}}\n  '/send/#env/v1/orders': {get: {}}\n  '/a#{id}': {get: {parameters: [{name: id, in: path, required: true, schema: {type: string}}]}}\n",
    );
    let tool = tool(&document, "GET /#Action=A");
    assert!(note_kinds(&tool).contains(&NoteKind::PathFragment));
    assert_eq!(
        crate::support::request(&tool, json!({"Action": "A"})).unwrap(),
        "GET /?Action=A"
    );
    assert_eq!(
        crate::support::request(&crate::support::tool(&document, "GET /#Action=B/C"), json!({})).unwrap(),
        "GET /"
    );
    // A part of the path behind `#` is no mark.
    for key in ["GET /a?b", "GET /send/#env/v1/orders", "GET /a#{id}"] {
        assert_eq!(causes(&document, key).0, [BlockerCause::PathMalformed], "{key}");
    }
}
