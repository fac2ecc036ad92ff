//! The wire: one golden request for each way in which a parameter or a body is written.

use openapi::{BlockerCause, Document, Nesting, NoteKind, ToolOptions};
use serde_json::{Value, json};

use crate::support::{
    accepts, blockers, build, causes, document, note_kinds, request, shown, tool, tool_with,
};

fn one(parameter: &str, path: &str) -> Document {
    document(
        "3.1.0",
        &format!("paths:\n  {path}:\n    get:\n      parameters: [{parameter}]\n"),
    )
}

#[test]
fn parameters_of_every_style_are_written_as_the_standard_says() {
    const LIST: &str = "schema: {type: array, items: {type: string}}";
    const OBJECT: &str = "schema: {type: object, properties: {r: {type: integer}, g: {type: string}}}";
    let list = json!(["a", "b c"]);
    let object = json!({"r": 1, "g": "x&y"});
    for (place, schema, value, expected) in [
        ("in: path, required: true", LIST, &list, "/p/a,b%20c"),
        (
            "in: path, required: true, style: label",
            LIST,
            &list,
            "/p/.a,b%20c",
        ),
        (
            "in: path, required: true, style: label, explode: true",
            LIST,
            &list,
            "/p/.a.b%20c",
        ),
        (
            "in: path, required: true, style: matrix",
            LIST,
            &list,
            "/p/;v=a,b%20c",
        ),
        (
            "in: path, required: true, style: matrix, explode: true",
            LIST,
            &list,
            "/p/;v=a;v=b%20c",
        ),
        ("in: path, required: true", OBJECT, &object, "/p/r,1,g,x%26y"),
        (
            "in: path, required: true, explode: true",
            OBJECT,
            &object,
            "/p/r=1,g=x%26y",
        ),
        (
            "in: path, required: true, style: label, explode: true",
            OBJECT,
            &object,
            "/p/.r=1.g=x%26y",
        ),
        (
            "in: path, required: true, style: matrix, explode: true",
            OBJECT,
            &object,
            "/p/;r=1;g=x%26y",
        ),
        ("in: query", LIST, &list, "/p?v=a&v=b%20c"),
        ("in: query, explode: false", LIST, &list, "/p?v=a,b%20c"),
        ("in: query, style: pipeDelimited", LIST, &list, "/p?v=a%7Cb%20c"),
        (
            "in: query, style: spaceDelimited",
            LIST,
            &json!(["a", "b"]),
            "/p?v=a%20b",
        ),
        ("in: query", OBJECT, &object, "/p?r=1&g=x%26y"),
        ("in: query, explode: false", OBJECT, &object, "/p?v=r,1,g,x%26y"),
        (
            "in: query, style: deepObject",
            OBJECT,
            &object,
            "/p?v%5Br%5D=1&v%5Bg%5D=x%26y",
        ),
        (
            "in: query",
            "content: {application/json: {schema: {}}}",
            &object,
            "/p?v=%7B%22r%22%3A1%2C%22g%22%3A%22x%26y%22%7D",
        ),
        ("in: header", LIST, &json!(["a", "b"]), "/p\nv: a,b"),
        ("in: header", OBJECT, &json!({"r": 1, "g": "x"}), "/p\nv: r,1,g,x"),
        (
            "in: header, explode: true",
            OBJECT,
            &json!({"r": 1, "g": "x"}),
            "/p\nv: r=1,g=x",
        ),
        (
            "in: header",
            "content: {application/json: {schema: {}}}",
            &json!({"r": [1]}),
            "/p\nv: {\"r\":[1]}",
        ),
    ] {
        let path = if place.contains("path") { "/p/{v}" } else { "/p" };
        let document = one(&format!("{{name: v, {place}, {schema}}}"), path);
        let tool = tool(&document, &format!("GET {path}"));
        let arguments = json!({ "v": value });
        assert!(accepts(&tool, &arguments), "{place} {arguments}");
        assert_eq!(
            request(&tool, arguments).unwrap(),
            format!("GET {expected}"),
            "{place} {schema}"
        );
    }
}

#[test]
fn reserved_characters_stand_only_where_document_and_operator_say_so() {
    let document = one(
        "{name: v, in: query, allowReserved: true, schema: {type: string}}",
        "/p",
    );
    let arguments = json!({"v": "/a:b?c=d,e&f#g+h%2f;i[j]"});
    let encoded = tool(&document, "GET /p");
    assert!(note_kinds(&encoded).contains(&NoteKind::ParameterReservedEncoded));
    assert_eq!(
        request(&encoded, arguments.clone()).unwrap(),
        "GET /p?v=%2Fa%3Ab%3Fc%3Dd%2Ce%26f%23g%2Bh%252f%3Bi%5Bj%5D"
    );
    let options = ToolOptions {
        allow_reserved: true,
        ..ToolOptions::default()
    };
    assert_eq!(
        request(&tool_with(&document, "GET /p", &options), arguments).unwrap(),
        "GET /p?v=/a:b?c=d,e%26f%23g%2Bh%252f%3Bi%5Bj%5D"
    );
    // The operator alone changes nothing.
    let document = one("{name: v, in: query, schema: {type: string}}", "/p");
    assert_eq!(
        request(&tool_with(&document, "GET /p", &options), json!({"v": "/"})).unwrap(),
        "GET /p?v=%2F"
    );
}

#[test]
fn deeper_levels_of_deep_objects_need_the_operators_word() {
    let parameter = "{name: w, in: query, style: deepObject, schema: {type: object, properties: {t: {type: object, properties: {gte: {type: integer}}}, l: {type: array, items: {type: string}}}}}";
    let document = one(parameter, "/p");
    let blocker = &blockers(&document, "GET /p")[0];
    assert_eq!(blocker.cause, BlockerCause::ParameterObject);
    assert!(blocker.clears.contains("nests"), "{blocker}");
    // A list is not defined either; where it may be missing, it is, and the note says so.
    let list = one(
        "{name: l, in: query, style: deepObject, schema: {type: array, items: {type: string}}}",
        "/p",
    );
    let left = tool(&list, "GET /p");
    assert!(left.argument_names.is_empty() && note_kinds(&left).contains(&NoteKind::ParameterLeftOut));
    for (nesting, expected) in [
        (
            Nesting::Indexed,
            "GET /p?w%5Bt%5D%5Bgte%5D=1&w%5Bl%5D%5B0%5D=a&w%5Bl%5D%5B1%5D=b",
        ),
        (
            Nesting::Unindexed,
            "GET /p?w%5Bt%5D%5Bgte%5D=1&w%5Bl%5D%5B%5D=a&w%5Bl%5D%5B%5D=b",
        ),
    ] {
        let options = ToolOptions {
            nesting,
            ..ToolOptions::default()
        };
        let tool = tool_with(&document, "GET /p", &options);
        assert_eq!(
            request(&tool, json!({"w": {"t": {"gte": 1}, "l": ["a", "b"]}})).unwrap(),
            expected
        );
    }
}

#[test]
fn an_exploded_object_cannot_stand_for_another_parameter() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /p:
    get:
      parameters:
        - {name: filter, in: query, schema: {type: object, additionalProperties: {type: string}}}
        - {name: tenant, in: query, schema: {type: string}}
        - {name: api_key, in: query, schema: {type: string}}
components: {securitySchemes: {k: {type: apiKey, in: query, name: api_key}}}
"##,
    );
    let options = ToolOptions {
        inject: vec!["tenant".to_owned()],
        ..ToolOptions::default()
    };
    let tool = tool_with(&document, "GET /p", &options);
    let built =
        |arguments: Value| build(&tool, arguments, json!({"tenant": "mine"})).map(|request| shown(&request));
    assert_eq!(
        built(json!({"filter": {"a": "1"}})).unwrap(),
        "GET /p?a=1&tenant=mine"
    );
    for name in ["tenant", "api_key"] {
        let mut filter = json!({});
        filter[name] = json!("other");
        let fault = built(json!({ "filter": filter })).unwrap_err();
        assert!(fault.starts_with("`filter` has an item or a key"), "{fault}");
    }
}

#[test]
fn cookies_are_the_operators_and_no_value_ends_one() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /must: {get: {parameters: [{name: sid, in: cookie, required: true, schema: {type: string}}, {name: lang, in: cookie, schema: {type: string}}]}}
  /may: {get: {parameters: [{name: sid, in: cookie, schema: {type: string}}]}}
  /list: {get: {parameters: [{name: sid, in: cookie, schema: {type: array, items: {type: string}}}]}}
"##,
    );
    assert_eq!(causes(&document, "GET /must").0, [BlockerCause::ParameterCookie]);
    let may = tool(&document, "GET /may");
    assert!(may.argument_names.is_empty() && note_kinds(&may).contains(&NoteKind::ParameterIgnored));
    assert_eq!(causes(&document, "GET /list").0, [BlockerCause::ParameterStyle]);
    let options = ToolOptions {
        inject: vec!["sid".to_owned(), "lang".to_owned()],
        ..ToolOptions::default()
    };
    let tool = tool_with(&document, "GET /must", &options);
    assert!(tool.argument_names.is_empty());
    let request = build(&tool, json!({}), json!({"sid": "a; admin=1\r\n", "lang": "de"})).unwrap();
    assert_eq!(
        shown(&request),
        "GET /must\ncookie: sid=a%3B%20admin%3D1%0D%0A; lang=de"
    );
    assert!(build(&tool, json!({"sid": "x"}), json!({"sid": "a", "lang": "b"})).is_err());
}

#[test]
fn a_header_that_says_who_is_calling_is_the_operators() {
    let document = document(
        "3.1.0",
        r##"
paths:
  /must: {get: {parameters: [{name: X-Tenant, in: header, required: true, schema: {type: string}}, {name: If-Match, in: header, schema: {type: string}}]}}
  /may: {get: {parameters: [{name: x-user-id, in: header, schema: {type: string}}]}}
"##,
    );
    assert_eq!(
        causes(&document, "GET /must").0,
        [BlockerCause::ParameterIdentity]
    );
    assert!(tool(&document, "GET /may").argument_names.is_empty());
    let options = ToolOptions {
        inject: vec!["X-Tenant".to_owned()],
        ..ToolOptions::default()
    };
    let bound = tool_with(&document, "GET /must", &options);
    assert_eq!(bound.argument_names, ["If-Match"]);
    let request = build(&bound, json!({"If-Match": "1"}), json!({"X-Tenant": "mine"})).unwrap();
    assert_eq!(shown(&request), "GET /must\nx-tenant: mine\nif-match: 1");
}

#[test]
fn only_what_may_be_empty_is_sent_empty() {
    let document = one(
        "{name: flag, in: query, allowEmptyValue: true, schema: {type: boolean}}, {name: status, in: query, schema: {type: string, enum: [a]}}, {name: page, in: query, schema: {type: integer}}",
        "/p",
    );
    let tool = tool(&document, "GET /p");
    assert_eq!(request(&tool, json!({})).unwrap(), "GET /p");
    for (arguments, fits) in [
        (json!({"flag": ""}), true),
        (json!({"flag": true}), true),
        (json!({"flag": "x"}), false),
        (json!({"status": ""}), false),
        (json!({"page": ""}), false),
        (json!({"page": null}), false),
    ] {
        assert_eq!(accepts(&tool, &arguments), fits, "{arguments}");
    }
    assert_eq!(request(&tool, json!({"flag": ""})).unwrap(), "GET /p?flag=");
}

#[test]
fn the_whole_query_of_version_3_2_is_written_from_one_object() {
    let body = r##"
paths:
  /q: {get: {parameters: [{name: q, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: integer}}}}}}}]}}
  /both: {get: {parameters: [{name: q, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object}}}}, {name: a, in: query, schema: {type: string}}]}}
  /json: {get: {parameters: [{name: q, in: querystring, content: {application/json: {schema: {}}}}]}}
"##;
    let document = document("3.2.0", body);
    assert_eq!(
        request(
            &tool(&document, "GET /q"),
            json!({"q": {"a": "x y&b=1", "b": [1, 2]}})
        )
        .unwrap(),
        "GET /q?a=x%20y%26b%3D1&b=1&b=2"
    );
    assert_eq!(
        causes(&document, "GET /both").0,
        [BlockerCause::ParameterMalformed]
    );
    assert_eq!(causes(&document, "GET /json").0, [BlockerCause::ParameterContent]);
}

const STYLES: &str = r##"
paths:
  /p/{simple}/{label}/{matrix}/end:
    post:
      parameters:
        - {name: simple, in: path, required: true, explode: true, schema: {type: object, additionalProperties: {type: string}}}
        - {name: label, in: path, required: true, style: label, explode: true, schema: {type: array, items: {type: string}}}
        - {name: matrix, in: path, required: true, style: matrix, explode: true, schema: {type: object, additionalProperties: {type: string}}}
        - {name: form, in: query, schema: {type: object, additionalProperties: {type: string}}}
        - {name: pipe, in: query, style: pipeDelimited, schema: {type: array, items: {type: string}}}
        - {name: space, in: query, style: spaceDelimited, schema: {type: array, items: {type: string}}}
        - {name: deep, in: query, style: deepObject, schema: {type: object, additionalProperties: {type: string}}}
        - {name: free, in: query, allowReserved: true, schema: {type: string}}
        - {name: json, in: query, content: {application/json: {schema: {}}}}
        - {name: X-List, in: header, schema: {type: array, items: {type: string}}}
        - {name: X-Map, in: header, explode: true, schema: {type: object, additionalProperties: {type: string}}}
        - {name: sid, in: cookie, schema: {type: string}}
      requestBody: {content: {BODY: {schema: {type: object, properties: {text: {type: string}, map: {type: object, additionalProperties: {type: string}}}}}}}
"##;

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z]{1,4}",
            "[ -~]{0,8}",
            Just("..".to_owned()),
            Just("../../admin".to_owned()),
            Just("a\r\nx: y".to_owned()),
            Just("pipe".to_owned()),
            any::<String>(),
        ]
    }

    fn maps() -> impl Strategy<Value = Value> {
        prop::collection::btree_map(texts(), texts(), 0..3).prop_map(|map| json!(map))
    }

    fn lists() -> impl Strategy<Value = Value> {
        prop::collection::vec(texts(), 0..3).prop_map(|list| json!(list))
    }

    proptest! {
        #[test]
        fn no_value_changes_the_structure_of_a_request_in_any_style(
            maps in prop::collection::vec(maps(), 6),
            lists in prop::collection::vec(lists(), 4),
            texts in prop::collection::vec(texts(), 3),
        ) {
            for media in ["application/x-www-form-urlencoded", "multipart/form-data"] {
                let options = ToolOptions {
                    allow_reserved: true,
                    inject: vec!["sid".to_owned()],
                    ..ToolOptions::default()
                };
                let document = document("3.1.0", &STYLES.replace("BODY", media));
                let operation = document.operations().next().unwrap();
                let tool = document.tool(&operation, &options).unwrap();
                let mut whole = json!({
                    "simple": {"a": "b"}, "label": ["a"], "matrix": {"a": "b"}, "form": maps[2], "pipe": lists[1],
                    "space": lists[2], "deep": maps[3], "free": texts[0], "json": maps[4], "X-List": lists[3],
                    "X-Map": maps[5], "text": texts[2], "map": maps[0],
                });
                whole["simple"] = maps[0].clone();
                whole["label"] = lists[0].clone();
                whole["matrix"] = maps[1].clone();
                // One hostile argument at a time, so that one refusal does not hide the others; then all together.
                let calm = json!({"simple": {"a": "b"}, "label": ["a"], "matrix": {"a": "b"}});
                let mut calls = vec![whole.clone()];
                for (name, value) in whole.as_object().unwrap() {
                    let mut call = calm.clone();
                    call[name] = value.clone();
                    calls.push(call);
                }
                for arguments in calls {
                    let Ok(request) = build(&tool, arguments.clone(), json!({"sid": texts[1]})) else {
                        continue;
                    };
                    let url = url::Url::parse(&format!("https://api.test/base{}", request.path_and_query)).unwrap();
                    prop_assert_eq!(url.origin().ascii_serialization(), "https://api.test");
                    prop_assert!(url.fragment().is_none());
                    let steps: Vec<&str> = url.path_segments().unwrap().collect();
                    prop_assert_eq!(steps.len(), 6, "{}", url);
                    prop_assert!(steps[0] == "base" && steps[1] == "p" && steps[5] == "end");
                    let known = ["accept", "x-list", "x-map", "cookie"];
                    let mut names: Vec<&str> = Vec::new();
                    for (name, value) in &request.headers {
                        prop_assert!(known.contains(&name.as_str()) && !names.contains(&name.as_str()));
                        prop_assert!(value.bytes().all(|b| (b' '..=b'~').contains(&b)), "{value:?}");
                        names.push(name);
                    }
                    let cookie = request.headers.iter().find(|(name, _)| name == "cookie").unwrap();
                    prop_assert!(cookie.1.starts_with("sid=") && !cookie.1.contains([';', ' ', ',']));
                    if let Some(body) = &request.body {
                        let fields = ["text", "map"].iter().filter(|name| arguments.get(**name).is_some()).count();
                        match body.content_type.split_once("; boundary=") {
                            Some((_, boundary)) => {
                                let count = body.bytes.windows(boundary.len()).filter(|window| *window == boundary.as_bytes()).count();
                                prop_assert_eq!(count, fields + 1);
                            }
                            None => prop_assert_eq!(url::form_urlencoded::parse(&body.bytes).count(), fields),
                        }
                    }
                    // What was exploded names no other parameter.
                    for name in ["pipe", "space", "free", "json"] {
                        let count = url.query_pairs().filter(|(key, _)| key == name).count();
                        prop_assert_eq!(count, usize::from(arguments.get(name).is_some()), "{}", name);
                    }
                }
            }
        }
    }
}
