//! Calls that change state: nobody can be asked yet, so that they are refused, unless somebody answers for it in
//! writing. The ledger repeats who that is on every call.

use e2e::client::Mcp;
use e2e::house::{House, text};
use e2e::orders;
use e2e::service::Service;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

const WAIVER: &str =
    "consent = { waived_by = \"Grace Hopper\", because = \"a test\", until = \"2199-12-31\" }\n";
const TOOLS: [&str; 2] = ["orders_note", "orders_drop"];

fn arguments(tool: &str) -> Value {
    if tool == "orders_note" {
        json!({"id":"o-1","text":"x"})
    } else {
        json!({"id":"o-1"})
    }
}

fn until(date: &str) -> String {
    WAIVER.replace("2199-12-31", date)
}

/// A day of UTC, counted from today.
fn day(from_today: i64) -> String {
    let now = Timestamp::now().to_zoned_datetime(jiff::tz::TimeZone::UTC);
    now.checked_add(from_today.days()).unwrap().date().to_string()
}

/// Calls both tools, over HTTP and on stdio, and gives every answer.
async fn call_all(house: &House) -> Vec<(String, Value)> {
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    let legacy = Mcp::legacy(&gate.url, &key, "2025-06-18").await;
    let mut answers = Vec::new();
    for tool in TOOLS {
        answers.push((format!("{tool} over HTTP"), ada.call(tool, arguments(tool)).await));
        answers.push((
            format!("{tool} in a session"),
            legacy.call(tool, arguments(tool)).await,
        ));
    }
    gate.close().await;
    let mut pipe = house.stdio();
    for tool in TOOLS {
        let message = ada.request(1, "tools/call", json!({"name":tool,"arguments":arguments(tool)}));
        let answer = pipe.ask(&message).await;
        answers.push((format!("{tool} on stdio"), answer["result"].clone()));
    }
    pipe.close().await;
    for tool in TOOLS {
        let output = house
            .run([
                "call",
                "--json",
                "--as",
                "ada",
                tool,
                &arguments(tool).to_string(),
            ])
            .await;
        answers.push((
            format!("{tool} at a terminal"),
            serde_json::from_slice(&output.stdout).unwrap(),
        ));
    }
    answers
}

#[tokio::test]
async fn without_a_waiver_no_call_that_changes_state_is_made_by_any_way_in() {
    let service = Service::start(orders::usual).await;
    let yesterday = until(&day(-1));
    for (what, waiver) in [("no waiver", ""), ("an expired waiver", yesterday.as_str())] {
        let house = orders::house(&service.url()).with_change("tollhouse.toml", WAIVER, waiver);
        for (call, answer) in call_all(&house).await {
            let said = answer.to_string();
            assert!(
                said.contains(
                    "needs the approval of a person; nobody can be asked here, so the call was not made"
                ),
                "{what}, {call}: {said}"
            );
        }
        let ledger = house.ledger().await;
        let refusals = ledger.of_kind("refusal");
        assert_eq!(refusals.len(), 8, "{what}");
        for refusal in refusals {
            assert_eq!(refusal["refusal"], "consent-missing", "{what}");
            assert_eq!(refusal["upstream_requests"], 0, "{what}");
            // The rules said yes; that is not enough.
            assert_eq!(refusal["rules"], json!(["own-orders"]), "{what}");
        }
        assert!(ledger.of_kind("intent").is_empty(), "{what}");
        let explained = house
            .run(["explain", "--as", "ada", "orders_drop", "{\"id\":\"o-1\"}"])
            .await;
        assert_eq!(explained.status.code(), Some(1), "{what}");
        assert!(
            text(&explained.stdout).contains("consent"),
            "{what}: {}",
            text(&explained.stdout)
        );
    }
    assert_eq!(service.count(), 0);
}

#[tokio::test]
async fn with_a_waiver_every_intent_says_who_answers_for_it() {
    let service = Service::start(orders::usual).await;
    let today = day(0);
    for until in [today.as_str(), "2199-12-31"] {
        service.forget();
        let house = orders::house(&service.url()).with_change("tollhouse.toml", "2199-12-31", until);
        for (call, answer) in call_all(&house).await {
            assert!(
                answer.get("isError").is_none_or(|error| *error == false),
                "{call}: {answer}"
            );
        }
        assert_eq!(service.count(), 8, "{until}");
        let ledger = house.ledger().await;
        let intents = ledger.of_kind("intent");
        assert_eq!(intents.len(), 8, "{until}");
        for intent in intents {
            assert_eq!(
                intent["consent"],
                json!({"waived_by":"Grace Hopper","because":"a test","until":until})
            );
        }
    }
}

#[tokio::test]
async fn a_waiver_is_for_a_tool_that_changes_state_and_has_a_name_a_reason_and_an_end() {
    let service = Service::start(orders::usual).await;
    let read = "[upstream.orders.tool.read]\n";
    let note = "[upstream.orders.tool.note]\n";
    for (what, from, to, names) in [
        (
            "a waiver on a read",
            read,
            format!("{read}{WAIVER}"),
            "upstream.orders.tool.read.consent",
        ),
        (
            "a waiver without a name",
            "waived_by = \"Grace Hopper\", ",
            String::new(),
            "consent.waived_by",
        ),
        (
            "a waiver without a reason",
            "because = \"a test\", ",
            String::new(),
            "consent.because",
        ),
        (
            "a waiver without an end",
            ", until = \"2199-12-31\"",
            String::new(),
            "consent.until",
        ),
        (
            "a waiver with an empty name",
            "Grace Hopper",
            String::new(),
            "consent.waived_by",
        ),
        (
            "a waiver for ever",
            "2199-12-31",
            "never".to_owned(),
            "consent.until",
        ),
        (
            "a day that is none",
            "2199-12-31",
            "2199-02-30".to_owned(),
            "consent.until",
        ),
        (
            "a waiver that is a word",
            WAIVER,
            "consent = \"waived\"\n".to_owned(),
            "consent",
        ),
        (
            "a retry on a write",
            note,
            format!("{note}retry = {{ attempts = 2, on = [503] }}\n"),
            "upstream.orders.tool.note.retry",
        ),
    ] {
        let house = orders::house(&service.url()).with_change("tollhouse.toml", from, &to);
        let output = house.run(["check", "--offline"]).await;
        assert_eq!(output.status.code(), Some(78), "{what}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(said.contains(names), "{what}: {said}");
        assert!(said.contains("tollhouse.toml:"), "{what}: {said}");
    }
    // One that has ended is no fault, because it stops only its tool; `check` says it.
    let house = orders::house(&service.url()).with_change("tollhouse.toml", "2199-12-31", &day(-1));
    let output = house.run(["check", "--offline"]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("this waiver ended"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(service.count(), 0);
}
