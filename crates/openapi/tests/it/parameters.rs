//! Parameters: which become arguments, which are left to others, and which block.

use openapi::{BlockerCause, NoteKind, ToolOptions};
use serde_json::json;

use crate::support::{
    accepts, blockers, build, causes, document, note_kinds, request, shown, tool, tool_with,
};

#[test]
fn parameters_of_the_path_item_are_inherited_and_the_operations_own_replace_them() {
    let document = document(
        "3.0.3",
        r##"
paths:
  /rooms/{room}:
    parameters:
      - {name: room, in: path, required: true, schema: {type: string}}
      - {name: X-Trace, in: header, schema: {type: string}}
      - {name: view, in: query, schema: {type: string}}
    get:
      parameters:
        - {name: view, in: query, schema: {type: integer}}
        - {name: x-trace, in: header, schema: {type: boolean}}
        - {$ref: '#/components/parameters/Limit'}
    delete: {}
components:
  parameters:
    Limit: {$ref: '#/components/parameters/PageSize'}
    PageSize: {name: limit, in: query, description: How many, schema: {type: integer, maximum: 100, default: 30}}
"##,
    );
    let get = tool(&document, "GET /rooms/{room}");
    assert_eq!(
        get.input_schema,
        json!({
            "type": "object",
            "properties": {
                "view": {"type": "integer"},
                "x-trace": {"type": "boolean"},
                "limit": {"type": "integer", "maximum": 100, "default": 30, "description": "How many"},
                "room": {"type": "string"},
            },
            "required": ["room"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        request(&get, json!({"room": "1", "x-trace": true, "view": 2, "limit": 5})).unwrap(),
        "GET /rooms/1?view=2&limit=5\nx-trace: true"
    );
    let delete = tool(&document, "DELETE /rooms/{room}");
    assert_eq!(delete.argument_names, ["room", "X-Trace", "view"]);
}

#[test]
fn parameters_behind_the_reference_of_a_path_item_count() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /rooms/{room}: {$ref: '#/components/pathItems/Room'}
components:
  pathItems:
    Room:
      parameters: [{name: room, in: path, required: true, schema: {type: string}}]
      get: {}
"##,
    );
    assert_eq!(tool(&document, "GET /rooms/{room}").argument_names, ["room"]);
}

#[test]
fn an_operation_without_inputs_has_an_empty_closed_schema() {
    let tool = tool(&document("3.0.3", "paths: {/ping: {get: {}}}"), "GET /ping");
    assert_eq!(
        tool.input_schema,
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    );
    assert!(tool.argument_names.is_empty());
    assert_eq!(request(&tool, json!({})).unwrap(), "GET /ping");
    assert!(request(&tool, json!({"x": 1})).is_err());
}

#[test]
fn path_variables_and_parameters_are_held_against_each_other() {
    let document = document(
        "3.0.3",
        r##"
paths:
  /ghost/{unknown}: {get: {}}
  /half/{a}/{b}: {get: {parameters: [{name: a, in: path, required: true, schema: {type: string}}, {name: b, in: query, schema: {type: string}}]}}
  /styled/{a}: {get: {parameters: [{name: a, in: path, required: true, style: form, schema: {type: string}}]}}
  /spare: {get: {parameters: [{name: a, in: path, required: true, schema: {type: string}}]}}
  /lax/{a}: {get: {parameters: [{name: a, in: path, schema: {type: string}}]}}
"##,
    );
    assert_eq!(
        causes(&document, "GET /ghost/{unknown}"),
        (
            vec![BlockerCause::PathUndeclaredVariable],
            "#/paths/~1ghost~1{unknown}".to_owned()
        )
    );
    assert!(blockers(&document, "GET /half/{a}/{b}")[0].text.contains("`{b}`"));
    // What is declared and cannot be sent has its own blocker, and is not undeclared as well.
    assert_eq!(
        causes(&document, "GET /styled/{a}").0,
        [BlockerCause::ParameterStyle]
    );

    let spare = tool(&document, "GET /spare");
    assert!(spare.argument_names.is_empty());
    assert_eq!(note_kinds(&spare)[0], NoteKind::ParameterUnused);
    let lax = tool(&document, "GET /lax/{a}");
    assert_eq!(lax.input_schema["required"], json!(["a"]));
    assert_eq!(note_kinds(&lax)[0], NoteKind::ParameterRequired);
}

#[test]
fn paths_that_are_no_templates_block_their_operations_only() {
    let document = document(
        "3.0.3",
        r##"
paths:
  '/a?beta': {get: {}}
  relative: {get: {}}
  '/a/../b': {get: {}}
  '/a/{b': {get: {}}
  /fine: {get: {}}
"##,
    );
    for path in ["/a?beta", "relative", "/a/../b", "/a/{b"] {
        assert_eq!(
            causes(&document, &format!("GET {path}")).0,
            [BlockerCause::PathMalformed],
            "{path}"
        );
    }
    tool(&document, "GET /fine");
}

#[test]
fn what_cannot_be_serialised_is_a_blocker_and_never_a_guess() {
    for (parameter, cause) in [
        (
            "{name: p, in: query, style: deepObject, schema: {type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}}",
            BlockerCause::ParameterObject,
        ),
        (
            "{name: p, in: query, required: true, style: deepObject, schema: {type: array, items: {type: string}}}",
            BlockerCause::ParameterObject,
        ),
        (
            "{name: p, in: query, style: pipeDelimited, explode: true, schema: {type: array, items: {type: string}}}",
            BlockerCause::ParameterStyle,
        ),
        (
            "{name: p, in: query, style: spaceDelimited, explode: true, schema: {type: object, additionalProperties: {type: string}}}",
            BlockerCause::ParameterStyle,
        ),
        (
            "{name: p, in: query, style: 7, schema: {type: string}}",
            BlockerCause::ParameterStyle,
        ),
        (
            "{name: p, in: header, style: form, schema: {type: string}}",
            BlockerCause::ParameterStyle,
        ),
        (
            "{name: p, in: query, explode: 'false', schema: {type: array, items: {type: string}}}",
            BlockerCause::ParameterMalformed,
        ),
        (
            "{name: p, in: query, content: {application/xml: {schema: {type: object}}}}",
            BlockerCause::ParameterContent,
        ),
        (
            "{name: p, in: query, content: {application/json: {schema: {}}, text/plain: {schema: {}}}}",
            BlockerCause::ParameterContent,
        ),
        (
            "{name: p, in: query, content: {application/json: {}}}",
            BlockerCause::ParameterContent,
        ),
        (
            "{name: p, in: query, required: true, schema: {type: object, properties: {a: {type: array, items: {type: string}}}}}",
            BlockerCause::ParameterObject,
        ),
        (
            "{name: p, in: query, required: true, schema: {$ref: '#/components/schemas/Range'}}",
            BlockerCause::ParameterObject,
        ),
        (
            "{name: p, in: header, required: true, schema: {oneOf: [{type: string}, {type: object, additionalProperties: {type: object}}]}}",
            BlockerCause::ParameterObject,
        ),
        (
            "{name: p, in: query, required: true, schema: {type: array, items: {type: object}}}",
            BlockerCause::ParameterObject,
        ),
        (
            "{name: p, in: query, required: true, schema: {type: array, items: {type: array, items: {type: string}}}}",
            BlockerCause::ParameterObject,
        ),
        ("{name: p, in: query}", BlockerCause::ParameterMalformed),
        (
            "{in: query, schema: {type: string}}",
            BlockerCause::ParameterMalformed,
        ),
        (
            "{name: p, schema: {type: string}}",
            BlockerCause::ParameterMalformed,
        ),
        (
            "{name: '', in: query, schema: {type: string}}",
            BlockerCause::ParameterMalformed,
        ),
        (
            "{name: 'a b', in: header, schema: {type: string}}",
            BlockerCause::ParameterMalformed,
        ),
        ("text", BlockerCause::ParameterMalformed),
        (
            "{name: p, in: querystring, schema: {type: string}}",
            BlockerCause::ParameterMalformed,
        ),
        (
            "{name: p, in: body, schema: {type: string}}",
            BlockerCause::ParameterLocation,
        ),
        (
            "{name: p, in: cookie, required: true, schema: {type: string}}",
            BlockerCause::ParameterCookie,
        ),
        (
            "{name: Host, in: header, required: true, schema: {type: string}}",
            BlockerCause::ParameterReserved,
        ),
        (
            "{name: Mcp-Session-Id, in: header, required: true, schema: {type: string}}",
            BlockerCause::ParameterReserved,
        ),
        (
            "{$ref: '#/components/parameters/Missing'}",
            BlockerCause::ReferenceUnresolved,
        ),
        ("{$ref: 'common.yaml#/p'}", BlockerCause::ReferenceExternal),
        (
            "{$ref: '#/components/parameters/Loop'}",
            BlockerCause::ReferenceCyclic,
        ),
        (
            "{name: p, in: query, schema: {type: string}}, {name: p, in: query, schema: {type: string}}",
            BlockerCause::ParameterDuplicate,
        ),
        (
            "{name: X-P, in: header, schema: {type: string}}, {name: x-p, in: header, schema: {type: string}}",
            BlockerCause::ParameterDuplicate,
        ),
    ] {
        let text = format!(
            "paths:\n  /a: {{get: {{parameters: [{parameter}]}}}}\n  /b: {{get: {{}}}}\ncomponents:\n  parameters: {{Loop: {{$ref: '#/components/parameters/Loop'}}}}\n  schemas: {{Range: {{type: object, properties: {{from: {{type: array}}}}}}}}\n"
        );
        let document = document("3.0.3", &text);
        let (causes, pointer) = causes(&document, "GET /a");
        assert_eq!(causes, [cause], "{parameter}");
        assert!(
            pointer.contains("parameters") || pointer.contains("schemas"),
            "{pointer}"
        );
        tool(&document, "GET /b");
    }
}

#[test]
fn headers_of_the_gateway_cookies_and_credentials_are_never_arguments() {
    let document = document(
        "3.0.3",
        r##"
paths:
  /a:
    get:
      parameters:
        - {name: Authorization, in: header, required: true, schema: {type: string}}
        - {name: accept, in: header, required: true, schema: {type: string}}
        - {name: Content-Type, in: header, schema: {type: string}}
        - {name: X-Forwarded-For, in: header, schema: {type: string}}
        - {name: Proxy-Authorization, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: x-api-key, in: header, required: true, schema: {type: string}}
        - {name: token, in: query, required: true, schema: {type: string}}
        - {name: sid, in: cookie, required: true, schema: {type: string}}
        - {name: If-Match, in: header, schema: {type: string}}
components:
  securitySchemes:
    header: {type: apiKey, in: header, name: X-Api-Key}
    query: {type: apiKey, in: query, name: token}
    cookie: {type: apiKey, in: cookie, name: sid}
"##,
    );
    let tool = tool(&document, "GET /a");
    assert_eq!(tool.argument_names, ["If-Match"]);
    assert!(!tool.input_schema.to_string().contains("required"));
    let ignored = note_kinds(&tool)
        .into_iter()
        .filter(|kind| *kind == NoteKind::ParameterIgnored)
        .count();
    assert_eq!(ignored, 9);
    for name in ["Authorization", "authorization", "session", "token", "x-api-key"] {
        assert!(!accepts(&tool, &json!({ name: "x" })), "{name}");
        assert!(request(&tool, json!({ name: "x" })).is_err(), "{name}");
    }
}

#[test]
fn names_that_meet_or_that_providers_refuse_are_renamed_and_reach_their_own_place() {
    let text = r##"
paths:
  /users/{id}:
    put:
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: id, in: query, schema: {type: string}}
        - {name: $filter, in: query, schema: {type: string}}
        - {name: 'ids[]', in: query, schema: {type: array, items: {type: integer}}}
        - {name: user.name, in: query, schema: {type: string}}
      requestBody: {required: true, content: {application/json: {schema: {type: object, properties: {id: {type: integer}, body: {type: string}}}}}}
"##;
    let put = tool(&document("3.0.3", text), "PUT /users/{id}");
    assert_eq!(
        put.argument_names,
        [
            "path_id",
            "query_id",
            "filter",
            "ids",
            "user.name",
            "body_id",
            "body"
        ]
    );
    assert_eq!(
        request(
            &put,
            json!({"path_id": "p", "query_id": "q", "filter": "f eq 1", "ids": [1, 2], "user.name": "n", "body_id": 7, "body": "b"})
        )
        .unwrap(),
        "PUT /users/p?id=q&%24filter=f%20eq%201&ids%5B%5D=1&ids%5B%5D=2&user.name=n\ncontent-type: application/json\n\n{\"id\":7,\"body\":\"b\"}"
    );
    let renamed = put
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::ArgumentRenamed);
    assert_eq!(renamed.count(), 5);
    let swapped = text.replace(
        "in: path, required: true, schema: {type: string}}\n        - {name: id, in: query",
        "in: query, schema: {type: string}}\n        - {name: id, in: path, required: true",
    );
    assert_ne!(swapped, text);
    let mut names = put.argument_names.clone();
    let mut other = tool(&document("3.0.3", &swapped), "PUT /users/{id}").argument_names;
    names.sort();
    other.sort();
    assert_eq!(names, other, "names do not depend on the order of the document");
}

#[test]
fn an_injected_argument_is_the_operators_alone() {
    let document = document(
        "3.0.3",
        r##"
paths:
  /tenants/{tenant}/notes:
    post:
      parameters:
        - {name: tenant, in: path, required: true, schema: {type: string}}
        - {name: scope, in: query, schema: {type: array, items: {type: string}}}
      requestBody: {content: {application/json: {schema: {type: object, required: [author, text], properties: {author: {$ref: '#/components/schemas/Author'}, text: {type: string}}}}}}
components: {schemas: {Author: {type: string, description: secret wording}}}
"##,
    );
    let options = ToolOptions {
        inject: vec!["tenant".to_owned(), "scope".to_owned(), "author".to_owned()],
        ..ToolOptions::default()
    };
    let tool = tool_with(&document, "POST /tenants/{tenant}/notes", &options);
    assert_eq!(
        tool.input_schema,
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false})
    );
    assert_eq!(tool.argument_names, ["text"]);
    let injected = json!({"tenant": "t/1", "scope": ["a", "b"], "author": "svc"});
    assert_eq!(
        shown(&build(&tool, json!({"text": "hi"}), injected.clone()).unwrap()),
        "POST /tenants/t%2F1/notes?scope=a&scope=b\ncontent-type: application/json\n\n{\"author\":\"svc\",\"text\":\"hi\"}"
    );
    // A caller cannot set it, and an operator cannot forget it: a missing scope would widen the call.
    assert!(build(&tool, json!({"text": "hi", "tenant": "other"}), injected.clone()).is_err());
    for missing in ["tenant", "scope", "author"] {
        let mut less = injected.clone();
        less.as_object_mut().unwrap().remove(missing);
        let fault = tool
            .plan
            .build(
                json!({"text": "hi"}).as_object().unwrap(),
                less.as_object().unwrap(),
            )
            .unwrap_err();
        assert_eq!(fault.fault(), model::Fault::Gateway, "{fault}");
        assert!(fault.to_string().contains(missing), "{fault}");
    }
    for (name, value) in [
        ("tenant", json!("..")),
        ("tenant", json!(null)),
        ("scope", json!([])),
        ("text", json!("x")),
    ] {
        let mut wrong = injected.clone();
        wrong[name] = value;
        let fault = tool
            .plan
            .build(
                json!({"text": "hi"}).as_object().unwrap(),
                wrong.as_object().unwrap(),
            )
            .unwrap_err();
        assert_eq!(fault.fault(), model::Fault::Gateway, "{name}: {fault}");
    }
}

#[test]
fn injecting_what_the_operation_does_not_have_is_a_blocker() {
    let document = document(
        "3.0.3",
        "paths: {/a: {get: {parameters: [{name: scope, in: query, schema: {type: string}}]}}, /b: {get: {}}}",
    );
    for (key, expected) in [("GET /a", "did you mean `scope`?"), ("GET /b", "no arguments")] {
        let options = ToolOptions {
            inject: vec!["scopes".to_owned()],
            ..ToolOptions::default()
        };
        let blockers = document.tool(&document.find(key).unwrap(), &options).unwrap_err();
        assert_eq!(blockers[0].cause, BlockerCause::ArgumentUnknown);
        assert!(blockers[0].clears.contains(expected), "{}", blockers[0]);
    }
}
