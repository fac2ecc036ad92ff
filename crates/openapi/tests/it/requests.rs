//! Requests: golden ones, refused ones, and what holds whatever the arguments are.

use std::collections::BTreeMap;

use model::{Fault, Object, Value};
use openapi::{
    BlockerCause, BuildFault, Generated, HEADER_VALUE_BYTES_MAX, NoteKind, Prepared, TARGET_BYTES_MAX,
};
use proptest::prelude::*;
use serde_json::json;
use url::Url;

use crate::support::{accepts, causes, document, note_kinds, object, request, tool};

const EVERYTHING: &str = r##"
paths:
  /files/{name}.json/{days}/end:
    put:
      parameters:
        - {name: name, in: path, required: true, schema: {type: string}}
        - {name: days, in: path, required: true, schema: {type: array, items: {type: string}}}
        - {name: q, in: query, schema: {type: string}}
        - {name: n, in: query, schema: {type: number}}
        - {name: flag, in: query, schema: {type: boolean}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: labels, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: maybe, in: query, schema: {type: string, nullable: true}}
        - {name: free, in: query, schema: {}}
        - {name: X-Note, in: header, schema: {type: string}}
        - {name: X-List, in: header, schema: {type: array, items: {type: string}}}
      requestBody: {content: {application/json: {schema: {type: object, properties: {text: {type: string}, deep: {type: object, additionalProperties: true}}}}}}
"##;

fn everything() -> Generated {
    tool(
        &document("3.0.3", EVERYTHING),
        "PUT /files/{name}.json/{days}/end",
    )
}

#[test]
fn arguments_become_exactly_one_request() {
    let tool = everything();
    for (arguments, expected) in [
        (json!({"name": "a", "days": ["mon"]}), "PUT /files/a.json/mon/end"),
        (
            json!({"name": "a b/c?d#e&f=g%h", "days": ["m,o", "t;u"]}),
            "PUT /files/a%20b%2Fc%3Fd%23e%26f%3Dg%25h.json/m%2Co,t%3Bu/end",
        ),
        (
            json!({"name": "ü", "days": ["1"], "q": "a b&c=d+e,f"}),
            "PUT /files/%C3%BC.json/1/end?q=a%20b%26c%3Dd%2Be%2Cf",
        ),
        (
            json!({"name": "-._~", "days": ["1"], "n": 1.0, "flag": false}),
            "PUT /files/-._~.json/1/end?n=1&flag=false",
        ),
        (
            json!({"name": "a", "days": ["1"], "n": 0.5, "tags": ["red", "b c", ""]}),
            "PUT /files/a.json/1/end?n=0.5&tags=red&tags=b%20c&tags=",
        ),
        (
            json!({"name": "a", "days": ["1"], "labels": ["a", "b c", "d,e"]}),
            "PUT /files/a.json/1/end?labels=a,b%20c,d%2Ce",
        ),
        (
            json!({"name": "a", "days": ["1"], "q": ""}),
            "PUT /files/a.json/1/end?q=",
        ),
        (
            json!({"name": "a", "days": ["1"], "maybe": null}),
            "PUT /files/a.json/1/end",
        ),
        (
            json!({"name": "a", "days": ["1"], "free": [1, true, "x"]}),
            "PUT /files/a.json/1/end?free=1&free=true&free=x",
        ),
        (
            json!({"name": "a", "days": ["1"], "X-Note": "a, b: c", "X-List": ["1", "b c"]}),
            "PUT /files/a.json/1/end\nx-note: a, b: c\nx-list: 1,b c",
        ),
        (
            json!({"name": "a", "days": ["1"], "text": null}),
            "PUT /files/a.json/1/end\ncontent-type: application/json\n\n{\"text\":null}",
        ),
        (
            json!({"name": "a", "days": ["1"], "text": "\"ü\"\n", "deep": {"z": [1.5, {}], "a": null}}),
            "PUT /files/a.json/1/end\ncontent-type: application/json\n\n{\"text\":\"\\\"ü\\\"\\n\",\"deep\":{\"z\":[1.5,{}],\"a\":null}}",
        ),
    ] {
        assert_eq!(
            request(&tool, arguments.clone()).unwrap(),
            expected,
            "{arguments}"
        );
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_the_argument_is_named() {
    let tool = everything();
    type Make = fn(String) -> BuildFault;
    for (name, value, fault) in [
        ("name", json!(""), BuildFault::PathStep as Make),
        ("name", json!("."), BuildFault::PathStep),
        ("name", json!(".."), BuildFault::PathStep),
        ("name", json!("%2e%2E"), BuildFault::PathStep),
        ("name", json!("../../admin"), BuildFault::PathStep),
        ("name", json!("..;x"), BuildFault::PathStep),
        ("name", json!("a\\..\\b"), BuildFault::PathStep),
        ("name", json!(null), BuildFault::Null),
        ("name", json!({}), BuildFault::Kind),
        ("name", json!([[1]]), BuildFault::Kind),
        ("days", json!([]), BuildFault::EmptyList),
        ("days", json!(["a", ""]), BuildFault::PathStep),
        ("days", json!(["a", ".."]), BuildFault::PathStep),
        ("days", json!(["a", null]), BuildFault::Kind),
        ("q", json!(null), BuildFault::Null),
        ("q", json!({"a": 1}), BuildFault::Kind),
        ("free", json!({"a": 1}), BuildFault::Kind),
        ("tags", json!([]), BuildFault::EmptyList),
        ("tags", json!([["a"]]), BuildFault::Kind),
        ("X-Note", json!("a\r\nX-Evil: 1"), BuildFault::HeaderValue),
        ("X-Note", json!("a\nb"), BuildFault::HeaderValue),
        ("X-Note", json!("a\0b"), BuildFault::HeaderValue),
        ("X-Note", json!("tab\there"), BuildFault::HeaderValue),
        ("X-Note", json!("ü"), BuildFault::HeaderValue),
        ("X-Note", json!(" a"), BuildFault::HeaderValue),
        ("X-Note", json!("a "), BuildFault::HeaderValue),
        ("X-Note", json!(""), BuildFault::HeaderValue),
        ("X-List", json!(["a,b"]), BuildFault::HeaderValue),
        ("X-List", json!(["a", ""]), BuildFault::HeaderValue),
        ("X-List", json!([]), BuildFault::EmptyList),
        ("unknown", json!(1), BuildFault::Undeclared),
        ("Host", json!("x"), BuildFault::Undeclared),
    ] {
        let mut arguments = json!({"name": "a", "days": ["1"]});
        arguments[name] = value.clone();
        let found = tool.plan.build(&object(arguments), &Object::new()).unwrap_err();
        assert_eq!(found, fault(name.to_owned()), "{name}: {value}");
        assert_eq!(found.fault(), Fault::Caller);
        assert!(found.to_string().contains(&format!("`{name}`")), "{found}");
    }
    for name in ["name", "days"] {
        let mut arguments = object(json!({"name": "a", "days": ["1"]}));
        arguments.remove(name);
        assert_eq!(
            tool.plan.build(&arguments, &Object::new()),
            Err(BuildFault::Missing(name.to_owned()))
        );
    }
    // Nothing may be injected that the tool was not made to inject.
    let injected = object(json!({"q": "x"}));
    let fault = tool
        .plan
        .build(&object(json!({"name": "a", "days": ["1"]})), &injected)
        .unwrap_err();
    assert_eq!(fault.fault(), Fault::Gateway, "{fault}");
}

#[test]
fn lengths_are_taken_at_their_limits_and_refused_one_past_them() {
    let tool = everything();
    let plain = "PUT /files/a.json/1/end?q=".len() - "PUT ".len();
    let query = |n: usize| object(json!({"name": "a", "days": ["1"], "q": "x".repeat(n)}));
    let fits = tool
        .plan
        .build(&query(TARGET_BYTES_MAX - plain), &Object::new())
        .unwrap();
    assert_eq!(fits.path_and_query.len(), TARGET_BYTES_MAX);
    assert_eq!(
        tool.plan
            .build(&query(TARGET_BYTES_MAX - plain + 1), &Object::new()),
        Err(BuildFault::TargetLong)
    );
    let header = |n: usize| object(json!({"name": "a", "days": ["1"], "X-Note": "x".repeat(n)}));
    assert!(
        tool.plan
            .build(&header(HEADER_VALUE_BYTES_MAX), &Object::new())
            .is_ok()
    );
    assert_eq!(
        tool.plan
            .build(&header(HEADER_VALUE_BYTES_MAX + 1), &Object::new()),
        Err(BuildFault::HeaderLong("X-Note".to_owned()))
    );
}

#[test]
fn a_request_printed_for_debugging_shows_no_value() {
    let tool = everything();
    let arguments =
        object(json!({"name": "s3cret", "days": ["s3cret"], "X-Note": "s3cret", "text": "s3cret"}));
    let request = tool.plan.build(&arguments, &Object::new()).unwrap();
    let shown = format!("{request:?} {:?}", request.body);
    assert!(!shown.contains("s3cret") && shown.contains("x-note"), "{shown}");
}

#[test]
fn the_plan_knows_method_and_template() {
    let plan = everything().plan;
    assert_eq!(
        (plan.method(), plan.template()),
        ("PUT", "/files/{name}.json/{days}/end")
    );
}

// === whatever the arguments are ===

/// Reads a request of `everything` back into arguments, by the rules of RFC 6570 and nothing of ours.
fn read_back(request: &Prepared) -> BTreeMap<String, Value> {
    let decode = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8()
            .unwrap()
            .into_owned()
    };
    let list = |text: &str| Value::from(text.split(',').map(decode).collect::<Vec<_>>());
    let mut arguments = BTreeMap::new();
    let (path, query) = request
        .path_and_query
        .split_once('?')
        .unwrap_or((&request.path_and_query, ""));
    let segments: Vec<&str> = path.split('/').collect();
    assert_eq!(segments.len(), 5, "{path}");
    assert_eq!((segments[0], segments[1], segments[4]), ("", "files", "end"));
    let name = segments[2].strip_suffix(".json").unwrap();
    arguments.insert("name".to_owned(), json!(decode(name)));
    arguments.insert("days".to_owned(), list(segments[3]));
    let mut tags = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap();
        match key {
            "tags" => tags.push(decode(value)),
            "labels" => {
                arguments.insert(key.to_owned(), list(value));
            }
            "n" => {
                arguments.insert(key.to_owned(), serde_json::from_str(value).unwrap());
            }
            "flag" => {
                arguments.insert(key.to_owned(), json!(value == "true"));
            }
            other => {
                arguments.insert(other.to_owned(), json!(decode(value)));
            }
        }
    }
    if !tags.is_empty() {
        arguments.insert("tags".to_owned(), json!(tags));
    }
    for (key, value) in &request.headers {
        match key.as_str() {
            "accept" => {}
            "x-note" => {
                arguments.insert("X-Note".to_owned(), json!(value));
            }
            "x-list" => {
                arguments.insert("X-List".to_owned(), json!(value.split(',').collect::<Vec<_>>()));
            }
            other => panic!("the header {other} was added"),
        }
    }
    if let Some(body) = &request.body {
        let fields: BTreeMap<String, Value> = serde_json::from_slice(&body.bytes).unwrap();
        arguments.extend(fields);
    }
    arguments
}

/// Texts that try: separators of every layer, steps, escapes, line ends, anything.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9 ,;:@&=+$/?#%.\\\\-]{0,12}",
        "(\\.|%2e|%2E|/|\\\\|%2f|%5c|;|a){0,6}",
        "[\\r\\n\\t\\x00a:, ]{0,6}",
        any::<String>(),
    ]
}

fn arguments() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let texts = || prop::collection::vec(text(), 0..4).prop_map(|items| json!(items));
    let single = || text().prop_map(|text| json!(text));
    let optional = |name: &'static str, value: BoxedStrategy<Value>| {
        prop::option::of(value.prop_map(move |value| (name.to_owned(), value)))
    };
    (
        single(),
        texts(),
        (
            optional("q", single().boxed()),
            optional("n", (-1000_i32..1000).prop_map(|n| json!(n)).boxed()),
            optional("flag", any::<bool>().prop_map(|flag| json!(flag)).boxed()),
            optional("tags", texts().boxed()),
            optional("labels", texts().boxed()),
            optional("X-Note", single().boxed()),
            optional("X-List", texts().boxed()),
            optional("text", single().boxed()),
        ),
    )
        .prop_map(|(name, days, (a, b, c, d, e, f, g, h))| {
            let mut arguments = BTreeMap::from([("name".to_owned(), name), ("days".to_owned(), days)]);
            arguments.extend([a, b, c, d, e, f, g, h].into_iter().flatten());
            arguments
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_argument_changes_path_origin_or_headers_and_every_request_reads_back(arguments in arguments()) {
        thread_local!(static TOOL: Generated = everything());
        let given: Object = arguments.clone().into_iter().collect();
        let built = TOOL.with(|tool| {
            assert!(accepts(tool, &Value::Object(given.clone())));
            tool.plan.build(&given, &Object::new())
        });
        let Ok(request) = built else { return Ok(()) };
        prop_assert!(request.path_and_query.bytes().all(|b| b.is_ascii_graphic() && b != b'#'));
        // An independent parser, which resolves dot segments, sees the same origin and the same path.
        let url = Url::parse(&format!("https://api.test{}", request.path_and_query)).unwrap();
        prop_assert_eq!(url.origin().ascii_serialization(), "https://api.test");
        let path = request.path_and_query.split('?').next().unwrap();
        prop_assert_eq!(url.path(), path);
        prop_assert_eq!(url.fragment(), None);
        for (name, value) in &request.headers {
            prop_assert!(["accept", "x-note", "x-list"].contains(&name.as_str()));
            prop_assert!(value.bytes().all(|b| (b' '..=b'~').contains(&b)) && value.trim() == value);
        }
        prop_assert_eq!(read_back(&request), arguments);
    }

    #[test]
    fn ordinary_arguments_are_not_refused(
        name in "[A-Za-z0-9 _äöü/:@-]{1,20}",
        days in prop::collection::vec("[a-z]{1,5}", 1..4),
        note in "[!-~]([ -~]{0,20}[!-~])?",
        q in any::<String>(),
    ) {
        thread_local!(static TOOL: Generated = everything());
        let given = object(json!({"name": name, "days": days, "X-Note": note, "q": q}));
        let built = TOOL.with(|tool| tool.plan.build(&given, &Object::new()));
        prop_assert!(built.is_ok() || q.len() > 1_000, "{:?}", built);
    }
}

#[test]
fn a_query_that_stands_in_the_path_is_sent_and_nobody_takes_its_place() {
    let text = |path: &str, parameters: &str| {
        let body = format!(
            "paths:\n  '{path}': {{get: {{operationId: x, parameters: [{parameters}], responses: {{'200': {{description: d}}}}}}}}\n"
        );
        document("3.2.0", &body)
    };
    let list = "{name: q, in: query, schema: {type: string}}, {name: o, in: query, schema: {type: object, additionalProperties: {type: string}}}";
    let made = tool(&text("/a?beta=true&v=1%2F2", list), "x");
    assert!(
        note_kinds(&made).contains(&NoteKind::PathQuery),
        "{:?}",
        made.notes
    );
    let target = |arguments: Value| {
        made.plan
            .build(arguments.as_object().unwrap(), &Object::new())
            .map(|request| request.path_and_query)
    };
    assert_eq!(target(json!({})).unwrap(), "/a?beta=true&v=1%2F2");
    assert_eq!(
        target(json!({"q": "&beta=false"})).unwrap(),
        "/a?beta=true&v=1%2F2&q=%26beta%3Dfalse"
    );
    assert_eq!(
        target(json!({"o": {"z": "1"}})).unwrap(),
        "/a?beta=true&v=1%2F2&z=1"
    );
    // An exploded object cannot say it again.
    assert!(target(json!({"o": {"beta": "false"}})).is_err());
    for (path, parameters) in [
        ("/a?beta=true", "{name: beta, in: query, schema: {type: string}}"),
        (
            "/a?beta=true",
            "{name: all, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object}}}}",
        ),
        ("/a?beta", ""),
        ("/a?", ""),
        ("/a?b=1&b=2", ""),
        ("/a?b=%", ""),
        ("/a?b=1+2", ""),
        (
            "/a?b={c}",
            "{name: c, in: path, required: true, schema: {type: string}}",
        ),
        ("/a?b=1?c=2", ""),
        ("/a?b=c/../d", ""),
    ] {
        let (causes, _) = causes(&text(path, parameters), "x");
        assert!(
            causes.contains(&BlockerCause::PathMalformed),
            "{path}: {causes:?}"
        );
    }
}
