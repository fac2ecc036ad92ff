//! Inquiries: what is read, what is refused, and how each reader gets it.

use super::*;

fn read(method: &str, params: Value) -> Result<Inquiry, InquiryFault> {
    let limits = JsonLimits {
        bytes_max: 10_000,
        depth_max: 16,
    };
    Inquiry::read(method, Some(&Bytes::from(params.to_string())), limits)
}

fn form(fields: Value) -> Value {
    json!({ "message": "m", "requestedSchema": { "type": "object", "properties": fields, "required": ["a"] } })
}

fn asked(inquiry: &Inquiry, revision: Revision) -> Result<Value, String> {
    let request = inquiry.request(revision, 7)?;
    let message: Value = serde_json::from_slice(&request).unwrap();
    assert_eq!(message["id"], 7);
    Ok(message["params"].clone())
}

#[test]
fn only_what_a_client_can_be_asked_is_read_and_nothing_of_the_hop_is_kept() {
    let field = json!({ "a": { "type": "string" } });
    let mut whole = form(field.clone());
    whole["_meta"] = json!({ "progressToken": 1 });
    whole["task"] = json!({});
    whole["mode"] = json!("form");
    let inquiry = read("elicitation/create", whole).unwrap();
    assert_eq!(inquiry.params(), form(field).as_object().unwrap());
    for (method, params, code) in [
        ("tasks/get", json!({}), -32_601),
        ("elicitation/create", json!({ "message": "m" }), -32_602),
        (
            "elicitation/create",
            form(json!({ "a": { "type": "object" } })),
            -32_602,
        ),
        (
            "elicitation/create",
            json!({ "mode": "x", "message": "m" }),
            -32_602,
        ),
        ("elicitation/create", json!([]), -32_602),
        ("sampling/createMessage", json!({ "messages": [] }), -32_602),
    ] {
        assert_eq!(
            read(method, params.clone()).unwrap_err().code,
            code,
            "{method} {params}"
        );
    }
}

#[test]
fn elic_05_a_page_is_one_of_the_web_and_is_named_where_the_revision_demands_it() {
    let page = |url: &str| json!({ "mode": "url", "message": "m", "url": url, "elicitationId": "theirs" });
    for url in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://a b",
        "",
        "HTTP",
    ] {
        assert!(read("elicitation/create", page(url)).is_err(), "{url}");
    }
    let inquiry = read("elicitation/create", page("https://a.example/x")).unwrap();
    assert_eq!(inquiry.needs(), Profile::URL);
    let params = asked(&inquiry, Revision::V2025_11_25).unwrap();
    assert_eq!(params["elicitationId"], "ask-7", "never the server's own");
    assert_eq!(params["mode"], "url");
    assert!(asked(&inquiry, Revision::V2025_06_18).is_err());
    let entry = inquiry.entry();
    assert!(entry["params"].get("elicitationId").is_none());
    let accepted = json!({ "action": "accept", "content": { "x": 1 } });
    let choice = inquiry.read_result(&accepted).unwrap();
    assert_eq!(Value::Object(choice), json!({ "action": "accept" }));
}

#[test]
fn elic_02_a_form_is_written_as_its_reader_knows_it_or_not_at_all() {
    let titled = json!({ "a": { "type": "string", "default": "x", "oneOf": [{ "const": "x", "title": "X" }, { "const": "y" }] } });
    let inquiry = read("elicitation/create", form(titled.clone())).unwrap();
    let params = asked(&inquiry, Revision::V2025_11_25).unwrap();
    assert_eq!(params["requestedSchema"]["properties"], titled);
    let params = asked(&inquiry, Revision::V2025_06_18).unwrap();
    assert_eq!(
        params["requestedSchema"]["properties"],
        json!({ "a": { "type": "string", "enum": ["x", "y"], "enumNames": ["X", "y"] } })
    );
    let several = json!({ "a": { "type": "array", "items": { "enum": ["x", "y"] } } });
    let inquiry = read("elicitation/create", form(several)).unwrap();
    assert!(asked(&inquiry, Revision::V2025_11_25).is_ok());
    assert!(asked(&inquiry, Revision::V2025_06_18).is_err(), "HOP-10");
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        assert!(asked(&inquiry, revision).is_err());
    }
}

#[test]
fn elic_03_a_content_is_what_the_form_asks_for() {
    let fields = json!({
        "a": { "type": "string", "maxLength": 2 },
        "n": { "type": "integer", "minimum": 1, "maximum": 3 },
        "b": { "type": "boolean" },
        "e": { "type": "string", "enum": ["x"] },
        "s": { "type": "array", "items": { "anyOf": [{ "const": "x" }, { "const": "y" }] }, "maxItems": 1 },
    });
    let inquiry = read("elicitation/create", form(fields)).unwrap();
    for (content, fits) in [
        (
            json!({ "a": "xy", "n": 3, "b": true, "e": "x", "s": ["y"] }),
            true,
        ),
        (json!({ "a": "" }), true),
        (json!({}), false),
        (json!({ "a": "xyz" }), false),
        (json!({ "a": 1 }), false),
        (json!({ "a": "", "n": 4 }), false),
        (json!({ "a": "", "n": 1.5 }), false),
        (json!({ "a": "", "b": "true" }), false),
        (json!({ "a": "", "e": "y" }), false),
        (json!({ "a": "", "s": ["z"] }), false),
        (json!({ "a": "", "s": ["x", "y"] }), false),
        (json!({ "a": "", "z": 1 }), false),
        (json!([]), false),
    ] {
        let accepted = json!({ "action": "accept", "content": content });
        assert_eq!(inquiry.read_result(&accepted).is_ok(), fits, "{content}");
    }
    for (result, choice) in [
        (
            json!({ "action": "decline", "content": { "a": "x" } }),
            Some(json!({ "action": "decline" })),
        ),
        (json!({ "action": "maybe" }), None),
        (json!([]), None),
    ] {
        assert_eq!(inquiry.read_result(&result).ok().map(Value::Object), choice);
    }
}

#[test]
fn samp_02_samp_04_tools_need_their_own_word_and_older_readers_get_one_block_they_know() {
    let sampling =
        |content: Value| json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 1 });
    let text = json!({ "type": "text", "text": "a" });
    let one = read("sampling/createMessage", sampling(json!([text]))).unwrap();
    assert_eq!(one.needs(), Profile::SAMPLING);
    let params = asked(&one, Revision::V2024_11_05).unwrap();
    assert_eq!(params["messages"][0]["content"], text);
    let two = read("sampling/createMessage", sampling(json!([text, text]))).unwrap();
    assert!(asked(&two, Revision::V2025_06_18).is_err());
    assert!(asked(&two, Revision::V2025_11_25).is_ok());
    let audio = read(
        "sampling/createMessage",
        sampling(json!({ "type": "audio", "data": "", "mimeType": "a/b" })),
    )
    .unwrap();
    assert!(asked(&audio, Revision::V2024_11_05).is_err());
    assert!(asked(&audio, Revision::V2025_03_26).is_ok());
    let used = read(
        "sampling/createMessage",
        sampling(json!([{ "type": "tool_result", "toolUseId": "x", "content": [] }])),
    )
    .unwrap();
    assert_eq!(used.fits(Profile::SAMPLING).unwrap_err().code, -32_602);
    assert!(used.fits(Profile::SAMPLING.or(Profile::TOOLS)).is_ok());
    assert_eq!(used.fits(Profile::ROOTS).unwrap_err().code, -32_601);
}

#[test]
fn elic_01_what_a_client_declares_is_what_its_revision_has() {
    let declared =
        |capabilities: Value, revision| Profile::declared(capabilities.as_object().unwrap(), revision);
    let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": { "listChanged": true } });
    for revision in Revision::ALL {
        let profile = declared(all.clone(), revision);
        assert_eq!(
            profile.has(Profile::FORM),
            revision.has_elicitation(),
            "{revision}"
        );
        assert_eq!(profile.has(Profile::URL), revision.has_modes_of_elicitation());
        assert_eq!(profile.has(Profile::TOOLS), revision.has_modes_of_elicitation());
        assert!(profile.has(Profile::SAMPLING.or(Profile::ROOTS)));
    }
    let newest = Revision::V2025_11_25;
    assert_eq!(declared(json!({ "elicitation": {} }), newest), Profile::FORM);
    assert_eq!(
        declared(json!({ "elicitation": { "url": {} } }), newest),
        Profile::URL
    );
    assert_eq!(
        declared(json!({ "elicitation": true, "roots": 1 }), newest),
        Profile::NONE
    );
    let said = Profile::FORM
        .or(Profile::SAMPLING)
        .or(Profile::ROOTS)
        .capabilities();
    assert_eq!(
        Value::Object(said),
        json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} })
    );
}

#[test]
fn elic_04_a_form_that_asks_for_a_secret_is_noticed() {
    for (fields, is_one) in [
        (
            json!({ "a": { "type": "string", "title": "Your API key" } }),
            true,
        ),
        (
            json!({ "a": {"type": "string"}, "password": { "type": "string" } }),
            true,
        ),
        (json!({ "a": { "type": "string", "title": "Name" } }), false),
    ] {
        let inquiry = read("elicitation/create", form(fields)).unwrap();
        assert_eq!(inquiry.asks_for_a_secret(), is_one);
    }
}
