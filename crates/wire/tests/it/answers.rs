//! What we emit, held against the official schema of the revision that it is emitted in.

use std::sync::Arc;

use model::{Content, Object, Reply, ToolName};
use serde_json::{Value, json};
use wire::answer::{Offers, Said, Server, Step, batch, error, progress};
use wire::{Definition, Failure, Hints, Id, Identity, Item, ItemPage, Page, Revision, Surface, Token};

use crate::schema::{assert_result, assert_valid};

fn server() -> Server {
    Server {
        identity: Identity {
            name: "tollhouse".into(),
            version: "0.1.0".into(),
        },
        title: "Tollhouse".into(),
        instructions: Some("Ask first.".into()),
        ttl_ms: 60_000,
    }
}

fn definition(output: Option<Value>) -> Arc<Definition> {
    Arc::new(Definition {
        name: ToolName::parse("billing_getInvoiceStatus").unwrap(),
        title: Some("Invoice status".into()),
        description: "Status of one invoice.".into(),
        input_schema: Arc::new(
            json!({"type":"object","properties":{"invoiceId":{"type":"string"}},"additionalProperties":false}),
        ),
        output_schema: output.map(Arc::new),
        hints: Hints {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: true,
        },
        others: model::Object::new(),
    })
}

fn written(revision: Revision, said: &Said) -> Value {
    serde_json::from_slice(&server().result(revision, &Id::Text("a".into()), said)).unwrap()
}

#[test]
fn every_result_fits_the_schema_of_its_revision() {
    let page = Page {
        tools: vec![
            definition(Some(
                json!({"type":"object","properties":{"status":{"type":"string"}}}),
            )),
            definition(None),
        ],
        next: Some("c2".into()),
        left_out: 0,
    };
    let replies = [
        Reply::text("hello"),
        Reply::failure("no"),
        Reply::structured(json!({"status":"paid"})),
        Reply::structured(json!([1, 2])),
        Reply {
            content: vec![],
            ..Reply::text("")
        },
        Reply {
            content: vec![Content::Text("a".into()), Content::Text("b".into())],
            ..Reply::text("")
        },
    ];
    for revision in Revision::ALL {
        if revision.has_sessions() {
            assert_result(
                revision,
                "InitializeResult",
                &written(revision, &Said::Opened(Offers::default())),
            );
            assert_result(revision, "EmptyResult", &written(revision, &Said::Heard));
        } else {
            assert_result(
                revision,
                "DiscoverResult",
                &written(revision, &Said::Discovered(Offers::default())),
            );
        }
        assert_result(
            revision,
            "ListToolsResult",
            &written(revision, &Said::Tools(page.clone())),
        );
        assert_result(
            revision,
            "ListToolsResult",
            &written(
                revision,
                &Said::Tools(Page {
                    tools: vec![],
                    next: None,
                    left_out: 0,
                }),
            ),
        );
        for reply in &replies {
            assert_result(
                revision,
                "CallToolResult",
                &written(revision, &Said::Called(reply.clone())),
            );
        }
    }
}

fn item(surface: Surface, whole: Value) -> Arc<Item> {
    let Value::Object(whole) = whole else { panic!() };
    Arc::new(Item { surface, whole })
}

#[test]
fn prm_02_res_01_every_list_and_every_result_beside_tools_fits_the_schema_of_its_revision() {
    let icons = json!([{ "src": "https://example.com/i.png" }]);
    let lists = [
        (
            "ListPromptsResult",
            item(
                Surface::Prompts,
                json!({ "name": "far_ask", "title": "Ask", "description": "d", "icons": icons, "_meta": { "a.b/c": 1 },
                        "arguments": [{ "name": "x", "title": "X", "required": true }], "vendor": 1 }),
            ),
        ),
        (
            "ListResourcesResult",
            item(
                Surface::Resources,
                json!({ "uri": "a:b", "name": "b", "title": "B", "mimeType": "text/plain", "size": 3, "icons": icons,
                        "annotations": { "priority": 1, "lastModified": "2025-01-01T00:00:00Z" } }),
            ),
        ),
        (
            "ListResourceTemplatesResult",
            item(
                Surface::Templates,
                json!({ "uriTemplate": "a:{x}", "name": "x", "title": "X" }),
            ),
        ),
    ];
    let Value::Object(prompt) = json!({
        "description": "d", "vendor": 1, "resultType": "other", "ttlMs": 9,
        "messages": [
            { "role": "user", "content": { "type": "text", "text": "a" } },
            { "role": "assistant", "content": { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" } },
            { "role": "user", "content": { "type": "resource_link", "uri": "a:b", "name": "b" } },
            { "role": "user", "content": { "type": "resource", "resource": { "uri": "a:b", "text": "x" } } },
        ],
    }) else {
        panic!()
    };
    let Value::Object(contents) = json!({
        "contents": [{ "uri": "a:b", "text": "x", "mimeType": "text/plain" }, { "uri": "a:c", "blob": "AAAA" }],
        "ttlMs": 5_000, "cacheScope": "public", "_meta": { "a.b/c": 1 },
    }) else {
        panic!()
    };
    let Value::Object(values) = json!({ "completion": { "values": ["a"], "total": 1, "hasMore": false } })
    else {
        panic!()
    };
    for revision in Revision::ALL {
        for (definition, item) in &lists {
            let page = ItemPage {
                surface: item.surface,
                items: vec![Arc::clone(item)],
                next: Some("c".into()),
                left_out: 4,
            };
            let list = written(revision, &Said::Items(page));
            assert_result(revision, definition, &list);
            let first = &list["result"][item.surface.member()][0];
            assert_eq!(
                first.get("icons").is_some(),
                revision >= Revision::V2025_11_25 && item.whole.contains_key("icons")
            );
            assert_eq!(
                first.get("title").is_some(),
                revision >= Revision::V2025_06_18,
                "{revision}"
            );
        }
        let got = written(revision, &Said::Prompt(prompt.clone()));
        assert_result(revision, "GetPromptResult", &got);
        assert_eq!(got["result"]["vendor"], 1);
        assert!(got["result"].get("ttlMs").is_none(), "a prompt is not kept");
        let read = written(revision, &Said::Contents(contents.clone()));
        assert_result(revision, "ReadResourceResult", &read);
        assert_eq!(read["result"]["_meta"]["a.b/c"], 1);
        // CACHE-01, CACHE-05: as long as its server lets it, and never for others; in the older era nobody knows either.
        let (ttl, scope) = (read["result"].get("ttlMs"), read["result"].get("cacheScope"));
        if revision.has_sessions() {
            assert_eq!((ttl, scope), (None, None), "{revision}");
        } else {
            assert_eq!((ttl, scope), (Some(&json!(5_000)), Some(&json!("private"))));
        }
        assert_result(
            revision,
            "CompleteResult",
            &written(revision, &Said::Completed(values.clone())),
        );
        let all = Offers {
            prompts: true,
            resources: true,
            completions: true,
            changes: true,
            updates: true,
            logs: true,
        };
        let (definition, said) = if revision.has_sessions() {
            ("InitializeResult", Said::Opened(all))
        } else {
            ("DiscoverResult", Said::Discovered(all))
        };
        let said = written(revision, &said);
        assert_result(revision, definition, &said);
        let capabilities = said["result"]["capabilities"].as_object().unwrap();
        assert!(capabilities.contains_key("prompts") && capabilities.contains_key("resources"));
        assert_eq!(capabilities["tools"], json!({ "listChanged": true }));
        assert_eq!(
            capabilities["resources"],
            json!({ "listChanged": true, "subscribe": true })
        );
        assert_eq!(capabilities["logging"], json!({}), "LOG-01");
        assert_eq!(
            capabilities.contains_key("completions"),
            revision >= Revision::V2025_03_26,
            "{revision}"
        );
    }
}

#[test]
fn res_03_res_04_what_is_not_there_has_the_code_of_its_era_and_says_which_it_was() {
    for revision in Revision::ALL {
        let failure = Failure::NoResource("a:b".into());
        let said = error(revision, Some(&Id::Integer(1)), &failure).unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap();
        let code = if revision.has_sessions() { -32_002 } else { -32_602 };
        assert_eq!(said["error"]["code"], code, "{revision}");
        assert_eq!(said["error"]["data"], json!({ "uri": "a:b" }));
    }
}

#[test]
fn every_error_fits_the_schema_of_its_revision() {
    let failures = [
        Failure::Syntax("x".into()),
        Failure::InvalidRequest("x".into()),
        Failure::MethodNotFound("x".into()),
        Failure::InvalidParams("x".into()),
        Failure::UnknownTool("x".into()),
        Failure::BadCursor,
        Failure::MetaInvalid("x".into()),
        Failure::HeaderMismatch("x".into()),
        Failure::MissingCapability(json!({"elicitation":{"url":{}}}).as_object().cloned().unwrap()),
        Failure::UnsupportedVersion {
            requested: "x".into(),
            supported: vec![Revision::V2026_07_28],
        },
        Failure::Internal("x"),
    ];
    for revision in Revision::ALL {
        let envelope = match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => "JSONRPCError",
            Revision::V2025_11_25 | Revision::V2026_07_28 => "JSONRPCErrorResponse",
        };
        for failure in &failures {
            let message: Value =
                serde_json::from_slice(&error(revision, Some(&Id::Integer(7)), failure).unwrap()).unwrap();
            assert_valid(revision, envelope, &message);
            assert_eq!(message["id"], 7);
            // BASE-06: without an id only where the schema allows it, and never with null.
            match error(revision, None, failure) {
                None => assert!(!revision.has_errors_without_id()),
                Some(bytes) => {
                    let message: Value = serde_json::from_slice(&bytes).unwrap();
                    assert!(message.get("id").is_none(), "{message}");
                    assert_valid(revision, envelope, &message);
                }
            }
        }
    }
    let revision = Revision::V2026_07_28;
    for (failure, definition) in [
        (&failures[7], "HeaderMismatchError"),
        (&failures[8], "MissingRequiredClientCapabilityError"),
        (&failures[9], "UnsupportedProtocolVersionError"),
    ] {
        let message: Value =
            serde_json::from_slice(&error(revision, Some(&Id::Integer(7)), failure).unwrap()).unwrap();
        assert_valid(revision, definition, &message);
    }
}

#[test]
fn prog_02_progress_fits_the_schema_and_has_a_message_only_where_it_exists() {
    for revision in Revision::ALL {
        for token in [json!("t"), json!(5)] {
            let token = Token::of(&token).unwrap();
            let message: Value = serde_json::from_slice(&progress(
                revision,
                &token,
                Step {
                    done: 3.0,
                    total: None,
                    text: Some("waiting"),
                },
            ))
            .unwrap();
            assert_valid(revision, "ProgressNotification", &message);
            assert_eq!(
                message["params"].get("message").is_some(),
                revision.has_progress_messages(),
                "{revision}"
            );
            assert_eq!(
                message["params"]["progressToken"],
                serde_json::to_value(&token).unwrap()
            );
        }
    }
}

#[test]
fn d7_base_11_result_type_is_everywhere_in_2026_and_nowhere_before() {
    let replies = [
        Said::Heard,
        Said::Tools(Page {
            tools: vec![],
            next: None,
            left_out: 0,
        }),
        Said::Called(Reply::text("x")),
        Said::Discovered(Offers::default()),
    ];
    for revision in Revision::ALL {
        for said in &replies {
            let result = written(revision, said)["result"].clone();
            assert_eq!(
                result.get("resultType").is_some(),
                !revision.has_sessions(),
                "{revision} {said:?}"
            );
        }
    }
}

#[test]
fn d4_life_m01_discover_says_what_initialize_says_and_has_no_body_identity() {
    let result = written(Revision::V2026_07_28, &Said::Discovered(Offers::default()))["result"].clone();
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!(result["capabilities"], json!({"tools":{}}));
    assert_eq!(result["instructions"], "Ask first.");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "tollhouse"
    );
    assert!(result.get("serverInfo").is_none());
}

#[test]
fn cache_01_cache_04_lists_carry_hints_in_2026_and_calls_never_do() {
    let list = Said::Tools(Page {
        tools: vec![],
        next: None,
        left_out: 0,
    });
    for said in [&list, &Said::Discovered(Offers::default())] {
        let result = written(Revision::V2026_07_28, said)["result"].clone();
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(60_000), &json!("private"))
        );
    }
    let result = written(Revision::V2026_07_28, &Said::Called(Reply::text("x")))["result"].clone();
    assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none());
    for revision in Revision::ALL.into_iter().filter(|r| r.has_sessions()) {
        assert!(
            written(revision, &list)["result"].get("ttlMs").is_none(),
            "{revision}"
        );
    }
}

#[test]
fn c4_a_definition_holds_what_its_reader_knows() {
    let tool = definition(Some(json!({"type":"object"})));
    let keys = |revision: Revision| {
        let object: Object = tool.write(revision);
        object.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(Revision::V2024_11_05), "name description inputSchema");
    assert_eq!(
        keys(Revision::V2025_03_26),
        "name description inputSchema annotations"
    );
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        assert_eq!(
            keys(revision),
            "name title description inputSchema outputSchema annotations"
        );
    }
    assert_eq!(
        tool.write(Revision::V2025_03_26)["annotations"]["title"],
        "Invoice status"
    );
    assert!(
        tool.write(Revision::V2025_06_18)["annotations"]
            .get("title")
            .is_none()
    );
}

#[test]
fn d22_tool_07_structured_content_is_an_object_before_2026() {
    let array = definition(Some(json!({"type":"array"})));
    let reply = Said::Called(Reply::structured(json!([1, 2])));
    for revision in Revision::ALL {
        let any = revision == Revision::V2026_07_28;
        assert_eq!(
            array.write(revision).get("outputSchema").is_some(),
            any,
            "{revision}"
        );
        let result = written(revision, &reply)["result"].clone();
        assert_eq!(result.get("structuredContent").is_some(), any, "{revision}");
        assert_eq!(
            result["content"][0]["text"], "[1,2]",
            "TOOL-06: older clients read the text"
        );
    }
    let object = Said::Called(Reply::structured(json!({"a":1})));
    assert!(
        written(Revision::V2025_06_18, &object)["result"]
            .get("structuredContent")
            .is_some()
    );
    assert!(
        written(Revision::V2025_03_26, &object)["result"]
            .get("structuredContent")
            .is_none()
    );
}

#[test]
fn base_09_a_batch_of_answers_is_one_array() {
    let revision = Revision::V2025_03_26;
    let one = server().result(revision, &Id::Integer(1), &Said::Heard);
    let two = error(revision, Some(&Id::Integer(2)), &Failure::BadCursor).unwrap();
    let value: Value = serde_json::from_slice(&batch(&[one, two])).unwrap();
    assert_eq!(
        (value[0]["id"].as_i64(), value[1]["id"].as_i64()),
        (Some(1), Some(2))
    );
    assert_eq!(value.as_array().unwrap().len(), 2);
    assert_valid(revision, "JSONRPCBatchResponse", &value);
}

#[test]
fn an_answer_is_one_line() {
    let said = Said::Called(Reply::text("a\nb\r\n\u{2028}"));
    for revision in Revision::ALL {
        let bytes = server().result(revision, &Id::Text("x\ny".into()), &said);
        assert!(!bytes.contains(&b'\n') && !bytes.contains(&b'\r'), "STDIO-01");
    }
}
