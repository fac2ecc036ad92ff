//! What a document shows of the danger of an operation: for each kind of evidence a yes, and a no that looks like it.

use std::collections::BTreeSet;

use model::{Class, Exclusion};
use openapi::{Document, DocumentLimits, EvidenceKind, Inference};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The inference of the only operation of a document.
fn inferred(method: &str, path: &str, operation: Value) -> Inference {
    let mut item = json!({});
    item[method] = operation;
    let mut paths = json!({});
    paths[path] = item;
    let text = json!({"openapi": "3.1.0", "paths": paths, "components": {"schemas": {
        "Secretive": {"type": "object", "properties": {"apiKey": {"type": "string"}}},
        "Circle": {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Circle"}}},
    }}});
    let document = Document::read(text.to_string().as_bytes(), &DocumentLimits::default()).unwrap();
    let operation = document.operations().next().unwrap();
    document.inference(&operation)
}

fn class(method: &str, path: &str, id: &str) -> Option<Class> {
    inferred(method, path, json!({"operationId": id})).class()
}

#[test]
fn a_get_proves_nothing_and_the_other_methods_say_that_something_changes() {
    for (method, expected) in [
        ("get", None),
        ("head", None),
        ("options", None),
        ("post", Some(Class::Write)),
        ("put", Some(Class::Write)),
        ("patch", Some(Class::Write)),
        ("delete", Some(Class::Destructive)),
    ] {
        assert_eq!(
            inferred(method, "/things/{id}", json!({})).class(),
            expected,
            "{method}"
        );
    }
}

#[test]
fn a_get_whose_name_changes_something_is_a_change_and_one_that_only_holds_the_word_is_not() {
    for (path, id, expected) in [
        ("/x", "GET_DeleteSnapshot", Some(Class::Destructive)),
        ("/x", "GET_TerminateInstances", Some(Class::Destructive)),
        ("/x", "GET_ModifyVpc", Some(Class::Write)),
        ("/x", "GET_DescribeSnapshots", None),
        ("/x", "deleteThing", Some(Class::Destructive)),
        ("/x", "chat_delete", Some(Class::Destructive)),
        ("/x", "chat.postMessage", Some(Class::Write)),
        ("/x", "repos/create-fork", Some(Class::Write)),
        ("/x", "setName", Some(Class::Write)),
        ("/x", "getDeleteStatus", None),
        ("/x", "get_delete_status", None),
        ("/x", "listDeletedThings", None),
        ("/x", "getUpdate", None),
        ("/x", "getPlaylist", None),
        ("/x", "budget", None),
        ("/x", "getSettings", None),
        ("/x", "updatesOfToday", None),
        ("/x", "reset", Some(Class::Write)),
        ("/x", "asset", None),
        ("/x", "getDataset", None),
        ("/files/delete", "x", Some(Class::Destructive)),
        ("/servers/{id}/reboot", "x", Some(Class::Write)),
        ("/projects/{id}:undelete", "x", None),
        ("/projects/{id}:cancel", "x", Some(Class::Write)),
        ("/updates", "x", None),
        ("/creators", "x", None),
        ("/starters/{id}", "x", None),
        ("/start/{id}", "x", Some(Class::Write)),
    ] {
        assert_eq!(class("get", path, id), expected, "{path} {id}");
    }
}

#[test]
fn words_name_what_is_left_out_by_default_and_parts_of_words_do_not() {
    use Exclusion::*;
    for (path, id, expected) in [
        ("/user/api_keys", "x", vec![Keys]),
        ("/user/keys", "x", vec![Keys]),
        ("/keyboards", "x", vec![]),
        ("/monkeys", "x", vec![]),
        ("/keywords/{id}", "x", vec![]),
        ("/x", "getClientSecret", vec![Keys]),
        ("/x", "getSecretary", vec![]),
        ("/x", "getNextPageToken", vec![]),
        ("/x", "getToken", vec![Keys]),
        ("/teams/{id}/members", "x", vec![Members]),
        ("/members/{id}", "x", vec![]),
        ("/x", "listUsers", vec![Members]),
        ("/x", "getUser", vec![]),
        ("/x", "getRemembered", vec![]),
        ("/things/export", "x", vec![Exports]),
        ("/exporters", "x", vec![]),
        ("/orgs/{o}/audit-log", "x", vec![Exports]),
        ("/auditoriums", "x", vec![]),
        ("/billing/usage", "x", vec![Billing]),
        ("/x", "getInvoice", vec![Billing]),
        ("/x", "getCreditCard", vec![Billing]),
        ("/cards/{id}", "x", vec![]),
        ("/embankments", "x", vec![]),
        ("/admin/things", "x", vec![Administration]),
        ("/administrators/{id}", "x", vec![Administration]),
        ("/badminton", "x", vec![]),
        ("/x", "listRoles", vec![Administration]),
        ("/x", "getParole", vec![]),
        ("/x", "loginAs", vec![Impersonation]),
        ("/x", "getLogin", vec![]),
        ("/repos/{r}/hooks", "x", vec![Webhooks]),
        ("/hookah", "x", vec![]),
        ("/pods/{p}/exec", "x", vec![Execution]),
        ("/pods/{p}/proxy/{path}", "x", vec![Execution]),
        ("/pods/{p}/attach", "x", vec![Execution]),
        ("/executives", "x", vec![]),
        ("/x", "downloadThing", vec![Files]),
        ("/x", "getUploadLimits", vec![Files]),
        ("/profiles", "x", vec![]),
        ("/graphql", "x", vec![Queries]),
        ("/graphs", "x", vec![]),
    ] {
        let found = inferred("get", path, json!({"operationId": id}));
        // What runs commands or acts as somebody else changes state, too.
        let mut found = found.exclusions();
        found.remove(&Mutations);
        assert_eq!(
            found,
            expected.into_iter().collect::<BTreeSet<_>>(),
            "{path} {id}"
        );
    }
    for (method, expected) in [("get", false), ("post", true), ("delete", true)] {
        let found = inferred(method, "/things", json!({})).exclusions();
        assert_eq!(found.contains(&Mutations), expected, "{method}");
    }
}

#[test]
fn secrets_people_and_exports_are_a_sensitive_reading_and_running_something_is_a_change() {
    for (path, expected) in [
        ("/user/keys", Some(Class::SensitiveRead)),
        ("/teams/{id}/members", Some(Class::SensitiveRead)),
        ("/things/export", Some(Class::SensitiveRead)),
        ("/billing/usage", None),
        ("/pods/{p}/exec", Some(Class::Write)),
    ] {
        assert_eq!(class("get", path, "x"), expected, "{path}");
    }
}

#[test]
fn sensitive_fields_of_an_answer_are_found_through_references_and_counts_of_tokens_are_none() {
    let answer = |schema: Value| {
        let operation = json!({"responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}});
        inferred("get", "/x", operation)
    };
    let object = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
    for (name, expected) in [
        ("password", true),
        ("iban", true),
        ("accountNumber", true),
        ("date_of_birth", true),
        ("access_token", true),
        ("email", true),
        ("total_tokens", false),
        ("next_page_token", false),
        ("compassport", false),
        ("accountName", false),
        ("emailed_at", false),
    ] {
        let found = answer(object(name));
        assert_eq!(found.class() == Some(Class::SensitiveRead), expected, "{name}");
        assert_eq!(found.class_without_answer(), None, "{name}");
    }
    for schema in [
        json!({"$ref": "#/components/schemas/Secretive"}),
        json!({"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Secretive"}]}}),
    ] {
        let found = answer(schema);
        let evidence = found.best(Class::SensitiveRead).unwrap();
        assert_eq!(evidence.kind, EvidenceKind::Answer);
        assert_eq!(evidence.quote, "apiKey");
        assert_eq!(
            evidence.pointer,
            "#/components/schemas/Secretive/properties/apiKey"
        );
    }
    assert_eq!(
        answer(json!({"$ref": "#/components/schemas/Circle"})).class(),
        None
    );
    // An error that echoes an address is no answer.
    let error = json!({"responses": {"400": {"content": {"application/json": {"schema": object("email")}}}}});
    assert_eq!(inferred("get", "/x", error).class(), None);
}

#[test]
fn arguments_and_media_types_say_what_is_left_out() {
    use Exclusion::*;
    let parameter =
        |name: &str, schema: Value| json!({"parameters": [{"name": name, "in": "query", "schema": schema}]});
    let body = |media: &str| json!({"requestBody": {"content": {media: {"schema": {"type": "object", "properties": {"target_url": {"type": "string"}}}}}}});
    for (method, operation, exclusion, expected) in [
        (
            "get",
            parameter("callback_url", json!({"type": "string"})),
            Webhooks,
            true,
        ),
        (
            "get",
            parameter("target", json!({"type": "string", "format": "uri"})),
            Webhooks,
            true,
        ),
        (
            "get",
            parameter("curl", json!({"type": "string"})),
            Webhooks,
            false,
        ),
        (
            "get",
            parameter("url_count", json!({"type": "integer"})),
            Webhooks,
            false,
        ),
        ("get", parameter("jql", json!({"type": "string"})), Queries, true),
        ("get", parameter("q", json!({"type": "string"})), Queries, false),
        ("post", body("application/json"), Webhooks, true),
        ("post", body("multipart/form-data"), Files, true),
        ("post", body("application/json"), Files, false),
        (
            "get",
            json!({"responses": {"200": {"content": {"application/octet-stream": {}}}}}),
            Files,
            true,
        ),
        (
            "get",
            json!({"responses": {"200": {"content": {"application/json": {}}}}}),
            Files,
            false,
        ),
    ] {
        let found = inferred(method, "/x", operation.clone());
        assert_eq!(found.exclusions().contains(&exclusion), expected, "{operation}");
    }
}

#[test]
fn texts_and_extensions_raise_and_claims_of_harmlessness_count_for_nothing() {
    for (operation, expected) in [
        (json!({"summary": "Deletes the thing."}), Some(Class::Destructive)),
        (json!({"summary": "Update a thing"}), Some(Class::Write)),
        (json!({"summary": "Gets what was deleted"}), None),
        (
            json!({"description": "Careful: this cannot be undone."}),
            Some(Class::Destructive),
        ),
        (
            json!({"x-kubernetes-action": "deletecollection"}),
            Some(Class::Destructive),
        ),
        (json!({"x-kubernetes-action": "list"}), None),
        (json!({"x-linode-grant": "read_write"}), Some(Class::Write)),
        (json!({"x-linode-grant": "read_only"}), None),
        (
            json!({"x-mcp-annotations": {"destructiveHint": true}}),
            Some(Class::Destructive),
        ),
        (json!({"x-mcp-annotations": {"readOnlyHint": true}}), None),
        (
            json!({"x-mcp-annotations": {"readOnlyHint": false}}),
            Some(Class::Write),
        ),
    ] {
        assert_eq!(
            inferred("get", "/x", operation.clone()).class(),
            expected,
            "{operation}"
        );
    }
    // What is already known to delete does not become harmless by a claim.
    let claimed = json!({"operationId": "deleteAll", "x-mcp-annotations": {"readOnlyHint": true, "destructiveHint": false}});
    assert_eq!(inferred("get", "/x", claimed).class(), Some(Class::Destructive));
}

#[test]
fn evidence_names_the_place_and_the_words_and_the_strongest_is_chosen() {
    let found = inferred(
        "post",
        "/repos/{r}/hooks",
        json!({"operationId": "repos/create-webhook", "tags": ["admin"]}),
    );
    let best = found.best(Class::Write).unwrap();
    assert_eq!(
        (best.kind, best.quote.as_str()),
        (EvidenceKind::OperationId, "create")
    );
    assert_eq!(best.pointer, "#/paths/~1repos~1{r}~1hooks/post/operationId");
    let hook = found.best_for(Exclusion::Webhooks).unwrap();
    assert_eq!((hook.kind, hook.quote.as_str()), (EvidenceKind::Path, "hooks"));
    assert!(found.best_for(Exclusion::Mutations).is_some());
    assert!(found.best_for(Exclusion::Files).is_none());
    let tag = found.best_for(Exclusion::Administration).unwrap();
    assert_eq!(
        (tag.kind, tag.pointer.as_str()),
        (EvidenceKind::Tag, "#/paths/~1repos~1{r}~1hooks/post/tags/0")
    );
}

proptest! {
    /// More text never lowers what is known.
    #[test]
    fn adding_texts_never_lowers_the_class(
        method in prop::sample::select(vec!["get", "post", "delete"]),
        id in "[a-zA-Z_./-]{0,24}",
        summary in "\\PC{0,40}",
        tag in "\\PC{0,12}",
    ) {
        let before = inferred(method, "/x", json!({"operationId": id})).class();
        let after = inferred(method, "/x", json!({
            "operationId": id, "summary": summary, "tags": [tag],
            "x-mcp-annotations": {"readOnlyHint": true, "destructiveHint": false},
        })).class();
        prop_assert!(after >= before, "{before:?} {after:?}");
    }

    #[test]
    fn any_operation_is_looked_at_without_a_panic(path in "/\\PC{0,40}", id in "\\PC{0,40}", text in "\\PC{0,80}") {
        inferred("get", &path, json!({"operationId": id, "description": text, "parameters": [text], "responses": {"200": text}}));
    }
}
