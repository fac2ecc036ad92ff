//! Documents that mean harm: nothing panics, nothing runs long, and what is refused is refused by name.

use std::time::{Duration, Instant};

use openapi::{BlockerCause, Document, DocumentFault, DocumentLimits, ToolOptions, exercise};
use proptest::prelude::*;
use serde_json::json;

use crate::support::document;

/// Far more than any of these takes, and far less than one that runs away: builds without optimisation on a busy
/// machine are slow.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(
    clippy::disallowed_methods,
    reason = "a test looks at the clock; the room does not"
)]
fn walk(text: &str) -> Option<openapi::Exercise> {
    let start = Instant::now();
    let exercise = exercise(text.as_bytes(), &DocumentLimits::default());
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    if let Some(exercise) = &exercise {
        assert_eq!(exercise.violations, Vec::<String>::new());
    }
    exercise
}

fn with_schema(schema: &str, components: &str) -> String {
    format!(
        r##"{{"openapi":"3.1.0","info":{{}},"paths":{{"/x":{{"post":{{"requestBody":{{"required":true,"content":{{"application/json":{{"schema":{schema}}}}}}},"responses":{{"200":{{"content":{{"application/json":{{"schema":{schema}}}}}}}}}}}}},"/fine":{{"get":{{}}}}}},"components":{{"schemas":{components}}}}}"##
    )
}

#[test]
fn base_23_deep_nesting_is_refused_before_it_is_deep() {
    for text in [
        with_schema(
            &format!("{}{}", "{\"items\":".repeat(20_000), "}".repeat(20_000)),
            "{}",
        ),
        format!("openapi: 3.1.0\npaths:\n  /x: {}", "{a: ".repeat(20_000)),
        format!(
            "openapi: 3.1.0\npaths: {}1{}",
            "[".repeat(20_000),
            "]".repeat(20_000)
        ),
    ] {
        let fault = Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap_err();
        assert!(
            matches!(fault, DocumentFault::Depth { .. } | DocumentFault::Syntax { .. }),
            "{fault:?}"
        );
    }
}

#[test]
fn schemas_at_the_depth_limit_are_worked_through_on_a_small_stack() {
    // Paths, path, operation, body, content, media type and schema take seven levels.
    for depth in [20, 50, 56] {
        for (open, close) in [
            ("{\"items\":", "}"),
            ("{\"allOf\":[", "]}"),
            ("{\"properties\":{\"a\":", "}}"),
        ] {
            let levels = depth / open.matches(['{', '[']).count();
            let text = with_schema(
                &format!("{}true{}", open.repeat(levels), close.repeat(levels)),
                "{}",
            );
            let walked = std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn(move || walk(&text))
                .unwrap()
                .join()
                .unwrap()
                .unwrap();
            assert_eq!(walked.operations, 2);
        }
    }
}

#[test]
fn references_that_run_in_circles_end() {
    for (schema, components) in [
        (r##"{"$ref":"#/paths/~1x/post/requestBody/content/application~1json/schema"}"##, "{}".to_owned()),
        (r##"{"$ref":"#/components/schemas/a"}"##, r##"{"a":{"$ref":"#/components/schemas/a"}}"##.to_owned()),
        (r##"{"$ref":"#/components/schemas/a"}"##, r##"{"a":{"$ref":"#/components/schemas/a","type":"object"}}"##.to_owned()),
        (r##"{"$ref":"#/components/schemas/a"}"##, r##"{"a":{"anyOf":[{"$ref":"#/components/schemas/b"}]},"b":{"not":{"$ref":"#/components/schemas/a"}}}"##.to_owned()),
        (r##"{"$ref":"#/components/schemas/list/allOf/0"}"##, r##"{"list":{"allOf":[{"$ref":"#/components/schemas/list"}]}}"##.to_owned()),
        (r##"{"$ref":"#/components/schemas"}"##, r##"{"a":{"$ref":"#/components"}}"##.to_owned()),
        (r##"{"$ref":"#/paths"}"##, "{}".to_owned()),
    ] {
        let walked = walk(&with_schema(schema, &components)).unwrap();
        assert_eq!(walked.operations, 2);
        assert!(walked.tools >= 1, "the other operation is a tool: {schema}");
    }
}

#[test]
fn a_schema_that_doubles_at_every_level_is_refused_where_it_would_be_checked_a_million_times() {
    let mut components = json!({});
    for level in 0..25 {
        let below = json!({"$ref": format!("#/components/schemas/l{}", level + 1)});
        components[format!("l{level}")] = json!({"allOf": [below, below]});
    }
    components["l25"] = json!({"type": "object"});
    let text = with_schema(r##"{"$ref":"#/components/schemas/l0"}"##, &components.to_string());
    let walked = walk(&text).unwrap();
    assert_eq!(walked.tools, 1);
    let causes: Vec<_> = walked.blocked.keys().copied().collect();
    assert!(
        causes.contains(&BlockerCause::SchemaOverBudget)
            || causes.contains(&BlockerCause::OperationOverBudget),
        "{causes:?}"
    );
}

#[test]
fn many_references_to_each_other_are_worked_through_once() {
    let mut components = json!({});
    for n in 0..300 {
        let all: Vec<_> = (0..300)
            .map(|m| json!({"$ref": format!("#/components/schemas/s{m}")}))
            .collect();
        components[format!("s{n}")] = json!({"type": "object", "properties": {"p": {"anyOf": all}}});
    }
    let walked = walk(&with_schema(
        r##"{"$ref":"#/components/schemas/s0"}"##,
        &components.to_string(),
    ))
    .unwrap();
    // The optional field that leads to all of them is left out.
    assert_eq!((walked.operations, walked.tools), (2, 2));
}

#[test]
fn an_alias_bomb_is_refused_by_name() {
    let mut text = "openapi: 3.1.0\npaths: {}\na0: &a0 {k: v}\n".to_owned();
    for n in 1..12 {
        let items = vec![format!("*a{}", n - 1); 10].join(", ");
        text.push_str(&format!("a{n}: &a{n} [{items}]\n"));
    }
    let fault = Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap_err();
    assert!(matches!(fault, DocumentFault::Aliases { .. }), "{fault:?}");
    // Aliases and merge keys that people write are read.
    let document = document(
        "3.1.0",
        "x-common: &common {description: shared, responses: {}}\npaths:\n  /a: {get: {<<: *common, operationId: a}}\n  /b: {get: *common}\n",
    );
    assert_eq!(document.operations().count(), 2);
    assert_eq!(document.raw()["paths"]["/a"]["get"]["description"], "shared");
}

#[test]
fn ten_megabytes_of_parameters_are_refused_quickly() {
    let parameters: Vec<String> = (0..100_000)
        .map(|n| {
            format!(
                r##"{{"name":"p{n}","in":"query","description":"{}","schema":{{"type":"string"}}}}"##,
                "w".repeat(40)
            )
        })
        .collect();
    let text = format!(
        r##"{{"openapi":"3.1.0","paths":{{"/x":{{"get":{{"parameters":[{}]}}}},"/fine":{{"get":{{}}}}}}}}"##,
        parameters.join(",")
    );
    assert!(text.len() > 10_000_000);
    let walked = walk(&text).unwrap();
    assert_eq!((walked.operations, walked.tools), (2, 1));
}

#[test]
fn parameters_are_taken_at_their_limit_and_refused_one_past_it() {
    let with = |count: usize| {
        let parameters: Vec<String> = (0..count)
            .map(|n| format!("{{name: p{n}, in: query, schema: {{}}}}"))
            .collect();
        document(
            "3.1.0",
            &format!(
                "paths: {{/x: {{get: {{parameters: [{}]}}}}}}",
                parameters.join(", ")
            ),
        )
    };
    let tool =
        |document: &Document| document.tool(&document.find("GET /x").unwrap(), &ToolOptions::default());
    assert_eq!(tool(&with(512)).unwrap().argument_names.len(), 512);
    assert_eq!(
        tool(&with(513)).unwrap_err()[0].cause,
        BlockerCause::ParameterMalformed
    );
}

#[test]
fn operations_are_taken_at_their_limit_and_refused_one_past_it() {
    let with = |count: usize| {
        let paths: Vec<String> = (0..count)
            .map(|n| format!(r##""/p{n}":{{"get":{{}}}}"##))
            .collect();
        let text = format!(r##"{{"openapi":"3.1.0","paths":{{{}}}}}"##, paths.join(","));
        Document::read(text.as_bytes(), &DocumentLimits::default())
    };
    assert_eq!(with(50_000).unwrap().operations().count(), 50_000);
    assert_eq!(
        with(50_001).unwrap_err(),
        DocumentFault::Operations { max: 50_000 }
    );
}

#[test]
fn thousands_of_faults_in_one_operation_are_reported_up_to_a_limit() {
    let fields: String = (0..5_000).map(|n| format!("f{n}: {{type: file}}, ")).collect();
    let document = document(
        "3.0.3",
        &format!(
            "paths: {{/x: {{post: {{requestBody: {{content: {{application/json: {{schema: {{type: object, additionalProperties: true, properties: {{{fields}}}}}}}}}}}}}}}}}"
        ),
    );
    let blockers = document
        .tool(&document.find("POST /x").unwrap(), &ToolOptions::default())
        .unwrap_err();
    assert_eq!(blockers.len(), 32);
}

#[test]
fn patterns_that_are_costly_to_compile_are_refused_quickly() {
    let costly: serde_json::Value = (0..400)
        .map(|n| {
            (
                format!("f{n}"),
                json!({"pattern": format!("(\\p{{L}}{{100}}){{1{n}}}")}),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let schema = json!({"type": "object", "properties": costly}).to_string();
    let walked = walk(&with_schema(&schema, "{}")).unwrap();
    assert_eq!((walked.operations, walked.tools), (2, 1));
    assert!(walked.blocked.contains_key(&BlockerCause::SchemaPattern));
}

#[test]
fn keys_and_names_that_mean_something_elsewhere_are_only_names_here() {
    let text = r##"{"openapi":"3.1.0","paths":{"/x":{"post":{"requestBody":{"content":{"application/json":{"schema":{"type":"object",
        "properties":{"$ref":{"type":"string"},"__proto__":{"type":"string"},"constructor":{"type":"string"},"\u0000":{"type":"string"},
        "properties":{"type":"object","properties":{"$ref":{"type":"integer"},"required":{"type":"string"},"x-y":{"type":"string"}}}}}}}}}}}}"##;
    let document = Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap();
    let tool = document
        .tool(&document.find("POST /x").unwrap(), &ToolOptions::default())
        .unwrap();
    assert_eq!(
        tool.argument_names,
        ["ref", "__proto__", "constructor", "argument", "properties"]
    );
    let request = crate::support::request(
        &tool,
        json!({"ref": "a", "__proto__": "b", "argument": "c", "properties": {"$ref": 1, "x-y": "d"}}),
    );
    assert_eq!(
        request.unwrap(),
        "POST /x\ncontent-type: application/json\n\n{\"$ref\":\"a\",\"__proto__\":\"b\",\"\\u0000\":\"c\",\"properties\":{\"$ref\":1,\"x-y\":\"d\"}}"
    );
}

/// A reference, mostly to a place that exists.
fn reference() -> impl Strategy<Value = serde_json::Value> {
    prop::sample::select(vec![
        "#/components/schemas/A",
        "#/components/schemas/B",
        "#/components/schemas/A/properties/a",
        "#/paths/~1x~1%7Bp%7D/post",
        "#/components/schemas/C",
        "#",
        "#/%",
        "#x",
        "http://far",
    ])
    .prop_map(|text| json!({ "$ref": text }))
}

/// Something that looks like a schema, often wrongly.
fn schema() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        reference(),
        prop::sample::select(vec![
            "string", "integer", "number", "boolean", "object", "array", "null", "file"
        ])
        .prop_map(|kind| json!({ "type": kind })),
        Just(json!({"type": ["string", "null"], "enum": ["a", null]})),
        Just(json!({"pattern": "^a+$", "minLength": 1})),
        Just(json!({"pattern": "(?=a)"})),
        Just(json!({"maximum": 9_223_372_036_854_775_807_u64, "exclusiveMinimum": true})),
        Just(json!(true)),
        Just(json!("text")),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (prop::collection::btree_map("[ab$]{1,2}", inner.clone(), 0..4), any::<bool>(), any::<bool>()).prop_map(
                |(properties, read_only, nullable)| {
                    json!({"type": "object", "properties": properties, "required": ["a"], "readOnly": read_only, "nullable": nullable})
                }
            ),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), prop::collection::vec(inner.clone(), 0..3))
                .prop_map(|(keyword, members)| json!({ keyword: members })),
            (prop::sample::select(vec!["not", "if", "then", "else", "additionalProperties", "items", "contains"]), inner)
                .prop_map(|(keyword, member)| json!({ keyword: member })),
        ]
    })
}

fn parameter() -> impl Strategy<Value = serde_json::Value> {
    (
        prop::sample::select(vec!["p", "q", "X-A", "Host", "$f", "検"]),
        prop::sample::select(vec!["path", "query", "header", "cookie", "body"]),
        schema(),
        any::<bool>(),
        prop::option::of(prop::sample::select(vec!["form", "simple", "deepObject"])),
    )
        .prop_map(|(name, place, schema, required, style)| {
            let mut parameter = json!({"name": name, "in": place, "schema": schema, "required": required});
            if let Some(style) = style {
                parameter["style"] = json!(style);
            }
            parameter
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_an_operation_holds_its_tool_is_sound_or_it_is_blocked(
        version in prop::sample::select(vec!["3.0.3", "3.1.0"]),
        parameters in prop::collection::vec(parameter(), 0..4),
        body in schema(),
        answer in schema(),
        (a, b, c) in (schema(), schema(), schema()),
    ) {
        let text = json!({
            "openapi": version,
            "paths": {"/x/{p}": {"parameters": [{"name": "p", "in": "path", "required": true, "schema": {"type": "string"}}],
                "post": {"parameters": parameters, "requestBody": {"content": {"application/json": {"schema": body}}},
                    "responses": {"200": {"content": {"application/json": {"schema": answer}}}}}}},
            "components": {"schemas": {"A": a, "B": b, "C": c}},
        })
        .to_string();
        let document = Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap();
        let operation = document.find("POST /x/{p}").unwrap();
        match document.tool(&operation, &ToolOptions::default()) {
            Ok(tool) => {
                crate::support::check_schema(&tool.input_schema);
                tool.output_schema.iter().for_each(crate::support::check_schema);
            }
            Err(blockers) => prop_assert!(!blockers.is_empty()),
        }
        let walked = exercise(text.as_bytes(), &DocumentLimits::default()).unwrap();
        prop_assert_eq!(walked.violations, Vec::<String>::new());
    }

    #[test]
    fn bytes_of_any_kind_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = exercise(&bytes, &DocumentLimits::default());
    }

    #[test]
    fn texts_that_look_like_documents_never_panic(text in "(openapi: 3\\.1\\.0\n|paths:\n|  /[a{}]{0,3}:\n|    get: |\\{|\\}|parameters: |\\[|\\]|- |&a |\\*a|[a-z]: |'200': |#|\\||>|!!int |\n){0,30}") {
        let _ = exercise(text.as_bytes(), &DocumentLimits::default());
    }
}
