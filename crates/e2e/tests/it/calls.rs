//! `explain`, `tools` and `call`: the road of a call from the terminal, and that looking is not acting.

use e2e::client::Mcp;
use e2e::example::{CREDENTIAL, Example, everything_in};
use e2e::said::{run, run_with_input};
use serde_json::{Value, json};

const STATUS: &str = "billing_getInvoiceStatus";

#[tokio::test]
async fn explain_shows_where_a_call_would_stop_and_sends_nothing() {
    let example = Example::start().await;
    let before = everything_in(&example.house);
    let pay =
        json!({"invoice_id":"inv-1001","Idempotency-Key":"k-123456789","amount_minor":100,"currency":"EUR"});
    // Caller, tool, arguments; the last step and the refusal, or none.
    for (caller, tool, arguments, step, refusal) in [
        ("ada", STATUS, json!({"invoice_id":"inv-1001"}), 11, None),
        ("ada", "billing_nonsense", json!({}), 5, Some("unknown-tool")),
        ("ada", "billing_listMembers", json!({}), 5, Some("held")),
        ("ada", STATUS, json!({}), 6, Some("arguments-invalid")),
        (
            "ada",
            STATUS,
            json!({"invoice_id":"inv-9999"}),
            8,
            Some("owner-unknown"),
        ),
        (
            "ada",
            STATUS,
            json!({"invoice_id":"inv-2001"}),
            8,
            Some("not-permitted"),
        ),
        (
            "eve",
            STATUS,
            json!({"invoice_id":"inv-1001"}),
            8,
            Some("not-permitted"),
        ),
        ("ada", "billing_payInvoice", pay, 9, Some("consent-missing")),
    ] {
        let arguments = arguments.to_string();
        let said = run(
            &example.house,
            ["explain", "--as", caller, tool, &arguments, "--json"],
        )
        .await;
        let said = said.ended(i32::from(refusal.is_some()));
        let explanation = said.json();
        let what = format!("{caller} {tool} {arguments}: {explanation:#}");
        assert_eq!(explanation["would_be_made"], refusal.is_none(), "{what}");
        let steps = explanation["steps"].as_array().unwrap();
        let last = steps.last().unwrap();
        assert_eq!(explanation["refusal"]["code"].as_str(), refusal, "{what}");
        assert_eq!(last["passed"], refusal.is_none(), "{what}");
        if refusal != Some("owner-unknown") {
            assert_eq!(last["step"], step, "{what}");
        }
        assert!(
            steps[..steps.len() - 1].iter().all(|step| step["passed"] == true),
            "{what}"
        );
        // For a person, the same.
        let text = run(&example.house, ["explain", "--as", caller, tool, &arguments])
            .await
            .ended(i32::from(refusal.is_some()));
        let expected = match refusal {
            None => "the call would be made; nothing was sent".to_owned(),
            Some(_) => format!(
                "the call would be refused; the agent would read: {}",
                explanation["refusal"]["for_agent"].as_str().unwrap()
            ),
        };
        let text = text.printed(&expected);
        assert!(
            !text.out.contains(CREDENTIAL) && !said.out.contains(CREDENTIAL),
            "{what}"
        );
    }
    assert_eq!(example.service.requests(), 0, "nothing was sent");
    assert_eq!(everything_in(&example.house), before, "nothing was written");
}

#[tokio::test]
async fn explain_shows_the_request_and_hides_the_credential() {
    let example = Example::start().await;
    let arguments = ["explain", "--as", "ada", STATUS, r#"{"invoice_id":"inv-1001"}"#];
    let url = format!("{}/v1/invoices/inv-1001", example.service.url());
    let said = run(&example.house, arguments).await.ended(0);
    let said = said
        .printed(&format!("GET {url}\n"))
        .printed("authorization: [hidden]\n")
        .printed("owned by north; member = true");
    assert!(!said.out.contains(CREDENTIAL));
    let explanation = run(&example.house, arguments.iter().chain(&["--json"]))
        .await
        .ended(0)
        .json();
    assert_eq!(explanation["request"]["url"], url);
    assert_eq!(explanation["request"]["method"], "GET");
    assert!(!explanation.to_string().contains(CREDENTIAL));
}

#[tokio::test]
async fn tools_as_a_caller_are_what_its_client_sees() {
    let example = Example::start().await;
    let mut keys = Vec::new();
    for caller in ["ada", "ines", "bob", "eve"] {
        keys.push((caller, example.house.key(caller).await));
    }
    let gate = example.house.serve().await;
    for (caller, key) in keys {
        let client = Mcp::modern(&gate.url, &key);
        let seen = client.ask("tools/list", json!({})).await;
        let said = run(&example.house, ["tools", "--as", caller, "--json"])
            .await
            .ended(0);
        assert_eq!(said.json()["tools"], seen["result"]["tools"], "{caller}");
        let text = run(&example.house, ["tools", "--as", caller]).await.ended(0);
        let names: Vec<&str> = text
            .out
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(names, client.tools().await, "{caller}");
    }
    run(&example.house, ["tools", "--as", "mallory"])
        .await
        .ended(66)
        .told("`mallory` is no caller of `tollhouse.toml`; write one of ada, bob, eve, ines");
}

#[tokio::test]
async fn tools_are_listed_with_what_was_decided_about_them() {
    let example = Example::start().await;
    let listed = run(&example.house, ["tools", "--json"]).await.ended(0).json();
    assert_eq!(listed["held"], 3);
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(
        names,
        [
            "billing_cancelInvoice",
            "billing_exportInvoices",
            STATUS,
            "billing_listInvoices",
            "billing_payInvoice"
        ]
    );
    let keys: Vec<&String> = tools[2].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "name",
            "kind",
            "upstream",
            "operation",
            "class",
            "pin",
            "rules",
            "notes"
        ]
    );
    assert_eq!(tools[2]["operation"], "GET /v1/invoices/{invoice_id}");
    assert_eq!(tools[2]["class"], "read");
    assert_eq!(
        tools[2]["rules"],
        json!(["only-current-members", "status-of-own-invoice"])
    );
    let text = run(&example.house, ["tools"]).await.ended(0);
    for name in names {
        assert!(text.out.contains(name.as_str().unwrap()), "{}", text.out);
    }
    text.printed("3 operations are held");
}

#[tokio::test]
async fn held_operations_are_listed_with_what_keeps_them_from_being_tools() {
    let example = Example::start().await;
    let blocked = invoices::OPENAPI.replace(
        "      operationId: listMembers\n",
        "      operationId: listMembers\n      requestBody: {required: true, content: {application/x-thing: {schema: {type: string}}}}\n",
    );
    assert_ne!(blocked, invoices::OPENAPI);
    example.house.write("openapi.yaml", blocked);
    let listed = run(&example.house, ["tools", "--held", "--json"])
        .await
        .ended(0)
        .json();
    let held = listed["held"].as_array().unwrap();
    let found: Vec<(&str, bool)> = held
        .iter()
        .map(|operation| {
            (
                operation["operation"].as_str().unwrap(),
                operation["blockers"].as_array().unwrap().is_empty(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [("listMembers", false), ("startReport", true), ("getReport", true)]
    );
    let keys: Vec<&String> = held[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "upstream",
            "operation",
            "method",
            "path",
            "pointer",
            "blockers",
            "credentials"
        ]
    );
    assert_eq!(held[0]["pointer"], "#/paths/~1v1~1members/get");
    run(&example.house, ["tools", "--held"])
        .await
        .ended(0)
        .printed("can be a tool")
        .printed("#/paths/~1v1~1members/get/requestBody");
}

#[tokio::test]
async fn call_is_the_same_road_as_any_agents() {
    let example = Example::start().await;
    let own = r#"{"invoice_id":"inv-1001"}"#;
    let text = run(&example.house, ["call", "--as", "ada", STATUS, own])
        .await
        .ended(0);
    let value: Value = serde_json::from_str(text.out.trim()).unwrap();
    assert_eq!(value, json!({"status":"open","due":value["due"]}));

    let whole = run(&example.house, ["call", "--as", "ada", STATUS, own, "--json"])
        .await
        .ended(0)
        .json();
    let keys: Vec<&String> = whole.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["content", "structuredContent", "isError"]);
    assert_eq!(
        (&whole["structuredContent"], &whole["isError"]),
        (&value, &json!(false))
    );

    let piped = ["call", "--as", "ada", STATUS, "-"];
    let said = run_with_input(&example.house, piped, own.as_bytes())
        .await
        .ended(0);
    assert_eq!(said.out, text.out);
    assert_eq!(example.service.requests(), 3);

    let foreign = r#"{"invoice_id":"inv-2001"}"#;
    let refused = run(&example.house, ["call", "--as", "ada", STATUS, foreign])
        .await
        .ended(1);
    assert_eq!(refused.out, "");
    refused
        .told("refused (not-permitted): ")
        .told("an agent reads: not permitted: no rule allows this call");
    let refused = run(&example.house, ["call", "--as", "ada", STATUS, foreign, "--json"]).await;
    assert_eq!(
        refused.ended(1).json(),
        json!({"refusal":"not-permitted","for_agent":"not permitted: no rule allows this call"})
    );
    assert_eq!(example.service.requests(), 3);

    let ledger = example.house.ledger().await;
    assert_eq!(ledger.of_kind("intent").len(), 3);
    assert_eq!(ledger.refusals(), ["not-permitted", "not-permitted"]);
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_called() {
    let example = Example::start().await;
    let long = format!(r#"{{"invoice_id":"{}"}}"#, "x".repeat(2 << 20));
    for (arguments, input, expected) in [
        (vec!["--as", "nobody", STATUS], "", "`nobody` is no caller"),
        (
            vec!["--as", "ada", STATUS, "{"],
            "",
            "the arguments cannot be read: ",
        ),
        (vec!["--as", "ada", STATUS, "[]"], "", "write a JSON object"),
        (
            vec!["--as", "ada", STATUS, "-"],
            "",
            "the arguments cannot be read: ",
        ),
        (vec!["--as", "ada", STATUS, "-"], "{\"a\":1,\"a\":2}", "`a`"),
        (
            vec!["--as", "ada", STATUS, "-"],
            long.as_str(),
            "the arguments cannot be read: ",
        ),
    ] {
        for command in ["call", "explain"] {
            let line = [command].into_iter().chain(arguments.iter().copied());
            let said = run_with_input(&example.house, line, input.as_bytes()).await;
            let said = said.ended(66).told(expected);
            assert_eq!(said.out, "", "{command} {arguments:?}");
        }
    }
    // Bytes that are no text.
    run_with_input(
        &example.house,
        ["call", "--as", "ada", STATUS, "-"],
        b"{\"a\":\"\xff\"}",
    )
    .await
    .ended(66)
    .told("standard input cannot be read: ");
    assert_eq!(example.service.requests(), 0);
    assert!(
        !example.house.path("tollhouse.db").exists(),
        "the store was not even made"
    );
}
