//! Fields that are only written: taken out of every answer, wherever the schemas of a success say so.

use serde_json::{Value, json};

use crate::support::{document, tool};

/// What leaves of an answer to an operation whose success has this schema.
fn left(schema: &str, mut answer: Value) -> (Value, usize) {
    let document = document(
        "3.1.0",
        &format!(
            r##"
paths:
  /x: {{get: {{responses: {{'200': {{description: d, content: {{application/json: {{schema: {schema}}}}}}}}}}}}}
components:
  schemas:
    Secret: {{type: string, writeOnly: true}}
    Also: {{allOf: [{{$ref: '#/components/schemas/Secret'}}]}}
    User:
      type: object
      properties:
        id: {{type: string}}
        password: {{type: string, writeOnly: true}}
        pin: {{$ref: '#/components/schemas/Also'}}
        boss: {{$ref: '#/components/schemas/User'}}
        team: {{type: array, items: {{$ref: '#/components/schemas/User'}}}}
        byName: {{type: object, additionalProperties: {{$ref: '#/components/schemas/User'}}}}
    Plain: {{type: object, properties: {{password: {{type: string}}, id: {{type: string}}}}}}
"##
        ),
    );
    let taken = tool(&document, "GET /x").write_only.take_from(&mut answer);
    (answer, taken)
}

#[test]
fn what_is_only_written_leaves_no_answer_wherever_it_stands() {
    const USER: &str = "{$ref: '#/components/schemas/User'}";
    let user = || json!({"id": "1", "password": "p", "pin": "1234"});
    for (schema, answer, expected, taken) in [
        (USER.to_owned(), user(), json!({"id": "1"}), 2),
        (
            USER.to_owned(),
            json!({"boss": {"boss": user()}, "team": [user(), 7], "byName": {"password": user(), "a": null}}),
            json!({"boss": {"boss": {"id": "1"}}, "team": [{"id": "1"}, 7], "byName": {"password": {"id": "1"}, "a": null}}),
            6,
        ),
        // A list promises no schema, and loses the fields all the same.
        (format!("{{type: array, items: {USER}}}"), json!([user(), [user()]]), json!([{"id": "1"}, [user()]]), 2),
        (format!("{{prefixItems: [{USER}], items: true}}"), json!([user()]), json!([{"id": "1"}]), 2),
        // Of alternatives and parts, each may be the one that holds.
        (
            format!("{{oneOf: [{{$ref: '#/components/schemas/Plain'}}, {USER}]}}"),
            user(),
            json!({"id": "1"}),
            2,
        ),
        (
            "{allOf: [{$ref: '#/components/schemas/Plain'}, {properties: {password: {writeOnly: true}}}]}".to_owned(),
            user(),
            json!({"id": "1", "pin": "1234"}),
            1,
        ),
        (
            format!("{{if: {{required: [id]}}, then: {USER}, properties: {{deep: {{patternProperties: {{'^u': {USER}}}}}}}}}"),
            json!({"pin": 1, "deep": {"u1": user()}}),
            json!({"deep": {"u1": {"id": "1"}}}),
            3,
        ),
        // A name alone says nothing, nor does the word in an example or an extension.
        ("{$ref: '#/components/schemas/Plain'}".to_owned(), user(), user(), 0),
        (
            "{type: object, properties: {password: {example: {writeOnly: true}, x-a: {writeOnly: true}, writeOnly: 'true'}}}".to_owned(),
            user(),
            user(),
            0,
        ),
        (USER.to_owned(), json!("password"), json!("password"), 0),
        (USER.to_owned(), json!({"password": {"password": 1}}), json!({}), 1),
    ] {
        assert_eq!(left(&schema, answer.clone()), (expected, taken), "{schema} {answer}");
    }
}

#[test]
fn every_success_of_every_kind_of_json_counts_and_no_error_does() {
    let document = document(
        "3.0.3",
        r##"
paths:
  /x:
    get:
      responses:
        '200': {description: d, content: {application/hal+json: {schema: {$ref: '#/components/schemas/A'}}, text/csv: {}}}
        2XX: {$ref: '#/components/responses/B'}
        '400': {description: d, content: {application/json: {schema: {properties: {c: {writeOnly: true}}}}}}
        default: {description: d, content: {application/json: {schema: {properties: {d: {writeOnly: true}}}}}}
components:
  responses: {B: {description: d, content: {application/json: {schema: {properties: {b: {writeOnly: true}}}}}}}
  schemas: {A: {properties: {a: {type: string, writeOnly: true}}}}
"##,
    );
    let mut answer = json!({"a": 1, "b": 1, "c": 1, "d": 1});
    assert_eq!(tool(&document, "GET /x").write_only.take_from(&mut answer), 3);
    assert_eq!(answer, json!({"c": 1}));
}
