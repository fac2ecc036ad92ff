//! References that name nothing: what a call can be right without is left out and said, what decides about the request blocks
//! the operation, and what is no part of the request blocks nothing.

use openapi::{BlockerCause, NoteKind};
use serde_json::{Value, json};

use crate::support::{accepts, causes, document, note_kinds, tool};

const GONE: &str = "{$ref: 'gone.yaml#/components/schemas/Gone'}";

/// An operation whose body is one object with these fields, `spare` among them, and whose components are these.
fn with_body(schema: &str, components: &str) -> String {
    format!(
        "paths:\n  /a:\n    post:\n      requestBody: {{required: true, content: {{application/json: {{schema: {schema}}}}}}}\ncomponents:\n  schemas:\n    Fine: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}}\n    Other: {{type: string}}\n{components}"
    )
}

fn left_out(version: &str, schema: &str, components: &str, fits: &[Value], misfits: &[Value]) {
    let tool = tool(&document(version, &with_body(schema, components)), "POST /a");
    let notes: Vec<_> = tool
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::SchemaReferenceLeftOut)
        .collect();
    assert!(!notes.is_empty(), "{schema}");
    for note in notes {
        assert!(note.text.contains("gone.yaml"), "{note}");
        assert!(note.text.contains("was left out"), "{note}");
    }
    for arguments in fits {
        assert!(
            accepts(&tool, arguments),
            "{schema} {arguments} {}",
            tool.input_schema
        );
    }
    for arguments in misfits {
        assert!(
            !accepts(&tool, arguments),
            "{schema} {arguments} {}",
            tool.input_schema
        );
    }
}

#[test]
fn an_optional_field_whose_schema_is_not_there_is_left_out_and_refused() {
    for version in ["3.0.3", "3.1.0"] {
        let closed =
            format!("{{type: object, required: [n], properties: {{n: {{type: integer}}, spare: {GONE}}}}}");
        left_out(
            version,
            &closed,
            "",
            &[json!({"n": 1})],
            &[json!({"n": 1, "spare": {}})],
        );
        let open = format!(
            "{{type: object, additionalProperties: true, properties: {{n: {{type: integer}}, spare: {{type: array, items: {GONE}}}}}}}"
        );
        left_out(
            version,
            &open,
            "",
            &[json!({"body": {"n": 1, "x": 2}})],
            &[json!({"body": {"spare": []}})],
        );
        // Deep inside, and behind a definition that cannot be without it.
        let deep =
            "{type: object, properties: {n: {type: integer}, in: {$ref: '#/components/schemas/Spoilt'}}}";
        let components = format!(
            "    Spoilt: {{type: object, required: [must], properties: {{must: {{$ref: '#/components/schemas/Must'}}}}}}\n    Must: {{allOf: [{{$ref: '#/components/schemas/Fine'}}, {GONE}]}}\n"
        );
        left_out(
            version,
            deep,
            &components,
            &[json!({"n": 1})],
            &[json!({"in": {"must": {"n": 1}}})],
        );
        // Only the field goes, and not what holds it.
        let holder = "{type: object, properties: {in: {$ref: '#/components/schemas/Holder'}}}";
        let components =
            format!("    Holder: {{type: object, properties: {{a: {{type: string}}, spare: {GONE}}}}}\n");
        left_out(
            version,
            holder,
            &components,
            &[json!({"in": {"a": "x"}})],
            &[json!({"in": {"a": "x", "spare": 1}})],
        );
    }
}

#[test]
fn an_alternative_that_is_not_there_is_left_out_beside_others() {
    for keyword in ["anyOf", "oneOf"] {
        let schema = format!(
            "{{type: object, required: [way], properties: {{way: {{{keyword}: [{{$ref: '#/components/schemas/Fine'}}, {GONE}]}}}}}}"
        );
        left_out(
            "3.1.0",
            &schema,
            "",
            &[json!({"way": {"n": 1}})],
            &[json!({"way": {"x": 1}}), json!({}), json!({"way": 1})],
        );
        // An alternative is judged by what it must have, not by what it may.
        let schema = format!(
            "{{type: object, required: [way], properties: {{way: {{{keyword}: [{{type: object, properties: {{a: {{type: string}}, spare: {GONE}}}}}, {{type: integer}}]}}}}}}"
        );
        left_out(
            "3.1.0",
            &schema,
            "",
            &[json!({"way": {"a": "x"}}), json!({"way": 1})],
            &[json!({"way": {"spare": 1}})],
        );
    }
}

#[test]
fn an_optional_parameter_whose_schema_is_not_there_is_left_out() {
    for place in ["query", "header"] {
        let text = format!(
            "paths:\n  /a:\n    get:\n      parameters:\n      - {{name: b, in: {place}, schema: {GONE}}}\n      - {{name: c, in: query, schema: {{type: string}}}}\n"
        );
        let tool = tool(&document("3.1.0", &text), "GET /a");
        assert!(note_kinds(&tool).contains(&NoteKind::SchemaReferenceLeftOut));
        assert_eq!(tool.argument_names, ["c"], "{place}");
        assert!(!accepts(&tool, &json!({"b": "x"})));
    }
}

#[test]
fn what_decides_about_the_request_blocks_the_operation() {
    let required =
        |name: &str| format!("{{type: object, required: [{name}], properties: {{spare: {GONE}}}}}");
    let bodies = [
        GONE.to_owned(),
        required("spare"),
        format!("{{type: array, items: {GONE}}}"),
        format!("{{type: object, additionalProperties: {GONE}}}"),
        format!("{{allOf: [{{$ref: '#/components/schemas/Fine'}}, {GONE}]}}"),
        format!("{{not: {GONE}}}"),
        // One way is no alternative, and null is none either.
        format!("{{oneOf: [{GONE}]}}"),
        format!("{{oneOf: [{GONE}, {{$ref: '#/components/schemas/Gone2'}}]}}"),
        format!("{{anyOf: [{GONE}, {{type: 'null'}}]}}"),
    ];
    for schema in bodies {
        let document = document("3.1.0", &with_body(&schema, ""));
        let (causes, place) = causes(&document, "POST /a");
        assert!(
            causes.iter().all(|cause| matches!(
                cause,
                BlockerCause::ReferenceExternal | BlockerCause::ReferenceUnresolved
            )),
            "{schema}: {causes:?}"
        );
        assert!(place.ends_with("/$ref"), "{schema}: {place}");
    }
    for parameter in [
        format!("{{name: id, in: path, required: true, schema: {GONE}}}"),
        format!("{{name: q, in: query, required: true, schema: {GONE}}}"),
        // Nobody knows where it goes, or whether a call can be without it.
        "{$ref: 'gone.yaml#/components/parameters/Q'}".to_owned(),
        "{$ref: '#/components/parameters/Q'}".to_owned(),
    ] {
        let path = if parameter.contains("in: path") {
            "/a/{id}"
        } else {
            "/a"
        };
        let text = format!("paths:\n  '{path}': {{get: {{parameters: [{parameter}]}}}}\n");
        let causes = causes(&document("3.1.0", &text), &format!("GET {path}")).0;
        assert!(
            causes.contains(&BlockerCause::ReferenceExternal)
                || causes.contains(&BlockerCause::ReferenceUnresolved),
            "{parameter}"
        );
    }
    let text = "paths:\n  /a: {post: {requestBody: {$ref: 'gone.yaml#/components/requestBodies/B'}}}\n";
    assert_eq!(
        causes(&document("3.1.0", text), "POST /a").0,
        [BlockerCause::ReferenceExternal]
    );
    // A body that may be left out is not taken for one that is not there.
    let text = format!(
        "paths:\n  /a: {{post: {{requestBody: {{content: {{application/json: {{schema: {GONE}}}}}}}}}}}\n"
    );
    assert_eq!(
        causes(&document("3.1.0", &text), "POST /a").0,
        [BlockerCause::ReferenceExternal]
    );
}

#[test]
fn what_is_no_part_of_the_request_blocks_nothing() {
    let text = "
paths:
  /a:
    get:
      x-vendor: {$ref: 'gone.yaml#/x'}
      externalDocs: {$ref: 'gone.yaml#/docs'}
      parameters:
      - {name: q, in: query, schema: {type: string, x-vendor: {$ref: 'gone.yaml#/x'}}, examples: {one: {$ref: 'gone.yaml#/e'}}}
      callbacks: {onEvent: {$ref: 'gone.yaml#/callbacks/E'}}
      responses:
        '200':
          headers: {X-Rate: {$ref: 'gone.yaml#/headers/R'}}
          links: {next: {$ref: 'gone.yaml#/links/N'}}
          content: {application/json: {schema: {type: object}, examples: {one: {$ref: 'gone.yaml#/e'}}}}
        default: {$ref: 'gone.yaml#/responses/Error'}
  /b:
    get: {responses: {'200': {$ref: 'gone.yaml#/responses/Fine'}}}
  /c:
    get: {responses: {'200': {content: {application/json: {schema: {type: object, required: [a], properties: {a: {$ref: '#/nowhere'}}}}}}}}
";
    let document = document("3.1.0", text);
    let whole = tool(&document, "GET /a");
    assert_eq!(note_kinds(&whole), [NoteKind::DescriptionMissing]);
    assert!(whole.output_schema.is_some());
    for key in ["GET /b", "GET /c"] {
        let tool = tool(&document, key);
        assert!(note_kinds(&tool).contains(&NoteKind::OutputLeftOut), "{key}");
        assert_eq!(tool.output_schema, None);
    }
}

#[test]
fn a_tool_with_an_absent_reference_is_the_same_whichever_was_made_before_it() {
    let text = format!(
        "paths:\n  /a: {{post: {{requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{in: {{$ref: '#/components/schemas/Holder'}}}}}}}}}}}}}}}}\n  /b: {{post: {{requestBody: {{content: {{application/json: {{schema: {{type: object, properties: {{x: {GONE}, in: {{$ref: '#/components/schemas/Holder'}}}}}}}}}}}}}}}}\ncomponents:\n  schemas:\n    Holder: {{type: object, properties: {{a: {{type: string}}, spare: {GONE}}}}}\n"
    );
    let alone = |key: &str| tool(&document("3.1.0", &text), key).input_schema;
    let shared = document("3.1.0", &text);
    for key in ["POST /a", "POST /b", "POST /a"] {
        let tool = tool(&shared, key);
        assert_eq!(tool.input_schema, alone(key), "{key}");
        assert!(note_kinds(&tool).contains(&NoteKind::SchemaReferenceLeftOut));
    }
}
