//! Output schemas: what a tool promises about its answers, and when it promises nothing.

use openapi::{NoteKind, Projection, ToolOptions};
use serde_json::json;

use crate::support::{document, note_kinds, tool, tool_with, validator};

fn with_responses(version: &str, responses: &str) -> openapi::Document {
    document(
        version,
        &format!(
            r##"
paths:
  /x: {{get: {{description: d, responses: {responses}}}}}
components:
  responses:
    Ok: {{description: ok, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Account'}}}}}}}}
  schemas:
    Account: {{type: object, required: [id, password], properties: {{id: {{type: string, readOnly: true}}, password: {{type: string, writeOnly: true}}, parent: {{$ref: '#/components/schemas/Account'}}}}}}
    Loose: {{properties: {{a: {{type: string}}}}}}
    Combined: {{allOf: [{{$ref: '#/components/schemas/Loose'}}, {{type: object, properties: {{b: {{type: integer}}}}}}]}}
    Look: {{type: object, properties: {{a: {{type: string, pattern: '(?!x)'}}, b: {{type: string, pattern: '^y'}}}}}}
    Knot: {{type: object, allOf: [{{$ref: '#/components/schemas/Knot'}}]}}
    Wide: {{type: object, properties: {{n: {{type: integer, maximum: 9223372036854775807}}}}}}
"##
        ),
    )
}

#[test]
fn the_schema_of_a_success_is_the_output_schema_without_what_is_only_written() {
    for responses in [
        "{'200': {$ref: '#/components/responses/Ok'}}",
        "{200: {$ref: '#/components/responses/Ok'}, 201: {$ref: '#/components/responses/Ok'}, 404: {description: none}, default: {description: other}}",
        "{2XX: {description: ok, content: {text/csv: {}, application/json: {schema: {$ref: '#/components/schemas/Account'}}}}}",
        "{'201': {description: ok, content: {application/hal+json: {schema: {$ref: '#/components/schemas/Account'}}}}}",
    ] {
        let tool = tool(&with_responses("3.0.3", responses), "GET /x");
        assert_eq!(
            tool.output_schema.unwrap(),
            json!({
                "type": "object", "required": ["id"],
                "properties": {"id": {"type": "string"}, "parent": {"$ref": "#/$defs/Account"}},
                "$defs": {"Account": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "parent": {"$ref": "#/$defs/Account"}}}},
            }),
            "{responses}"
        );
    }
}

#[test]
fn an_output_is_as_open_as_the_document_says() {
    let tool = tool(
        &with_responses("3.0.3", "{'200': {$ref: '#/components/responses/Ok'}}"),
        "GET /x",
    );
    let validator = validator(tool.output_schema.as_ref().unwrap());
    assert!(validator.is_valid(&json!({"id": "1", "added later": 1, "parent": {"id": "2", "x": 1}})));
    assert!(!validator.is_valid(&json!({"id": 1})));
    assert!(!validator.is_valid(&json!({})));
}

#[test]
fn an_object_in_all_but_name_is_an_object() {
    for schema in ["Loose", "Combined"] {
        let responses = format!(
            "{{'200': {{description: ok, content: {{application/json: {{schema: {{$ref: '#/components/schemas/{schema}'}}}}}}}}}}"
        );
        let tool = tool(&with_responses("3.0.3", &responses), "GET /x");
        assert_eq!(tool.output_schema.unwrap()["type"], "object", "{schema}");
    }
}

#[test]
fn a_tool_without_one_object_to_promise_has_no_output_schema_and_says_why() {
    let json_body =
        |schema: &str| format!("{{description: ok, content: {{application/json: {{schema: {schema}}}}}}}");
    for (responses, reason) in [
        ("{}".to_owned(), "no successful response"),
        (
            "{default: {description: any}}".to_owned(),
            "no successful response",
        ),
        ("{'204': {description: gone}}".to_owned(), "has a schema"),
        (
            format!(
                "{{'200': {}, '201': {}}}",
                json_body("{type: object}"),
                json_body("{type: object, title: other}")
            ),
            "different schemas",
        ),
        (
            "{'200': {description: ok, content: {image/png: {}}}}".to_owned(),
            "not JSON",
        ),
        (
            "{'200': {description: ok, content: {application/json: {}}}}".to_owned(),
            "no schema",
        ),
        (
            format!("{{'200': {}}}", json_body("{type: array, items: {type: object}}")),
            "not only an object",
        ),
        (
            format!("{{'200': {}}}", json_body("{type: object, nullable: true}")),
            "not only an object",
        ),
        (format!("{{'200': {}}}", json_body("{}")), "not only an object"),
        (
            format!(
                "{{'200': {}}}",
                json_body("{oneOf: [{type: object}, {type: string}]}")
            ),
            "not only an object",
        ),
        (
            format!(
                "{{'200': {}}}",
                json_body("{type: object, properties: {a: {type: file}}}")
            ),
            "schema.malformed",
        ),
        (
            format!(
                "{{'200': {}}}",
                json_body("{type: object, properties: {a: {$ref: 'http://far'}}}")
            ),
            "ref.external",
        ),
        (
            format!("{{'200': {}}}", json_body("{$ref: '#/components/schemas/Knot'}")),
            "ref.cyclic",
        ),
        (
            format!("{{'200': {}}}", json_body("{$ref: '#/nowhere'}")),
            "#/nowhere",
        ),
        ("{'200': {$ref: 'other.yaml'}}".to_owned(), "leads out"),
    ] {
        let tool = tool(&with_responses("3.0.3", &responses), "GET /x");
        assert_eq!(tool.output_schema, None, "{responses}");
        let note = tool
            .notes
            .iter()
            .find(|note| note.kind == NoteKind::OutputLeftOut)
            .unwrap();
        assert!(note.text.contains(reason), "{responses}: {note}");
    }
}

#[test]
fn a_pattern_or_bound_that_cannot_be_checked_is_left_out_of_an_output() {
    let responses = |name: &str| {
        format!(
            "{{'200': {{description: ok, content: {{application/json: {{schema: {{$ref: '#/components/schemas/{name}'}}}}}}}}}}"
        )
    };
    let look = tool(&with_responses("3.0.3", &responses("Look")), "GET /x");
    assert_eq!(
        look.output_schema.as_ref().unwrap()["properties"],
        json!({"a": {"type": "string"}, "b": {"type": "string", "pattern": "^y"}})
    );
    assert_eq!(note_kinds(&look), [NoteKind::SchemaPatternDropped]);
    let wide = tool(&with_responses("3.0.3", &responses("Wide")), "GET /x");
    assert_eq!(note_kinds(&wide), [NoteKind::SchemaNumberDropped]);
}

#[test]
fn an_output_schema_that_is_too_large_is_left_out_and_the_tool_stays() {
    let fields: String = (0..400)
        .map(|n| format!("f{n}: {{type: string, description: '{}'}}, ", "w".repeat(200)))
        .collect();
    let document = document(
        "3.0.3",
        &format!(
            "paths: {{/x: {{get: {{description: d, responses: {{'200': {{description: ok, content: {{application/json: {{schema: {{type: object, required: [f7], properties: {{{fields}}}}}}}}}}}}}}}}}}}"
        ),
    );
    let whole = tool(&document, "GET /x");
    assert_eq!(whole.output_schema, None);
    assert!(
        whole.notes[0].text.contains("schema.over-budget"),
        "{}",
        whole.notes[0]
    );

    let options = ToolOptions {
        returns: Some(Projection::parse(&[("seven".to_owned(), "$.f7".to_owned())]).unwrap()),
        ..ToolOptions::default()
    };
    let kept = tool_with(&document, "GET /x", &options);
    assert_eq!(kept.output_schema.unwrap()["required"], json!(["seven"]));
}

#[test]
fn the_output_schema_of_a_projected_answer_is_that_of_the_kept_fields() {
    let options = ToolOptions {
        returns: Some(
            Projection::parse(&[
                ("id".to_owned(), "$.id".to_owned()),
                ("ids".to_owned(), "$[*].id".to_owned()),
                ("parent".to_owned(), "$.parent".to_owned()),
            ])
            .unwrap(),
        ),
        ..ToolOptions::default()
    };
    let object = with_responses("3.0.3", "{'200': {$ref: '#/components/responses/Ok'}}");
    let schema = tool_with(&object, "GET /x", &options).output_schema.unwrap();
    assert_eq!(schema["properties"]["id"], json!({"type": "string"}));
    assert_eq!(schema["properties"]["parent"], json!({"$ref": "#/$defs/Account"}));
    assert_eq!(schema["required"], json!(["id", "ids"]));
    assert_eq!(schema["additionalProperties"], false);
    // A list, or an answer that nothing is known of, still has known fields once it is projected.
    let responses = "{'200': {description: ok, content: {application/json: {schema: {type: array, items: {type: object}}}}}}";
    let schema = tool_with(&with_responses("3.0.3", responses), "GET /x", &options)
        .output_schema
        .unwrap();
    assert_eq!(
        schema,
        json!({"type": "object", "properties": {"id": {}, "ids": {"type": "array"}, "parent": {}}, "required": ["ids"], "additionalProperties": false}),
    );
    // Where there is nothing, there are no fields either.
    let gone = with_responses("3.0.3", "{'204': {description: gone}}");
    let schema = tool_with(&gone, "GET /x", &options).output_schema.unwrap();
    assert!(jsonschema::is_valid(&schema, &json!({})) && jsonschema::is_valid(&schema, &json!({"ids": []})));
    assert!(!jsonschema::is_valid(&schema, &json!({"other": 1})));
}

#[test]
fn the_json_of_a_success_is_what_is_asked_for() {
    for (responses, accept) in [
        ("{'200': {$ref: '#/components/responses/Ok'}}", "application/json"),
        (
            "{'200': {description: ok, content: {application/vnd.x+json: {}}}}",
            "application/vnd.x+json",
        ),
        ("{'204': {description: gone}}", "application/json"),
        (
            "{'200': {description: ok, content: {\"application/json\\r\\nX-Evil: 1\": {}}}}",
            "application/json",
        ),
    ] {
        let tool = tool(&with_responses("3.0.3", responses), "GET /x");
        let request = tool
            .plan
            .build(&model::Object::new(), &model::Object::new())
            .unwrap();
        assert_eq!(
            request.headers,
            [("accept".to_owned(), accept.to_owned())],
            "{responses}"
        );
    }
}

#[test]
fn a_success_without_a_body_beside_others_is_an_empty_object() {
    let json_body =
        |schema: &str| format!("{{description: ok, content: {{application/json: {{schema: {schema}}}}}}}");
    let schema =
        "{type: object, required: [inner], properties: {inner: {$ref: '#/components/schemas/Account'}}}";
    let responses = format!("{{'200': {}, '204': {{description: gone}}}}", json_body(schema));
    let tool = tool(&with_responses("3.0.3", &responses), "GET /x");
    assert!(tool.may_be_empty);
    assert!(tool.notes.iter().any(|note| note.kind == NoteKind::OutputEmpty));
    let schema = tool.output_schema.unwrap();
    assert_eq!(schema["type"], "object");
    assert!(jsonschema::is_valid(&schema, &json!({})));
    assert!(!jsonschema::is_valid(&schema, &json!({"other": 1})));
    // What asks for nothing takes an empty object as it is.
    let responses = format!(
        "{{'200': {}, '204': {{description: gone}}}}",
        json_body("{type: object}")
    );
    let tool = self::tool(&with_responses("3.0.3", &responses), "GET /x");
    assert!(tool.output_schema.unwrap().get("anyOf").is_none());
}
