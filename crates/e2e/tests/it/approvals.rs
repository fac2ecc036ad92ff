//! What is left out by default is offered only where somebody answers for exactly that, until a day, for some callers.
//! Whatever else a rule or a waiver says: what is held is not listed, reads as unknown, and is never sent.

use e2e::client::Mcp;
use e2e::house::House;
use e2e::orders;
use e2e::said::run;
use e2e::service::Service;
use serde_json::json;

const APPROVAL: &str = "approval.mutations = { by = \"the tests\", because = \"nothing is real here\", \
                        until = \"2099-12-31\", for = [\"everyone\"] }\n";

/// What `ada` and `bob` see, and what becomes of a call of `ada`.
async fn seen(house: &House) -> (Vec<String>, Vec<String>, String) {
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &ada);
    let bob = Mcp::modern(&gate.url, &bob);
    let answer = ada.call("orders_note", json!({"id":"o-1","text":"x"})).await;
    let seen = (ada.tools().await, bob.tools().await, answer.to_string());
    gate.close().await;
    seen
}

#[tokio::test]
async fn what_changes_state_is_held_without_an_approval_with_one_that_ended_and_for_whom_it_is_not() {
    let service = Service::start(orders::usual).await;
    let note = "orders_note".to_owned();
    for (what, approval, for_ada, for_bob) in [
        ("as it is", APPROVAL.to_owned(), true, true),
        ("no approval", String::new(), false, false),
        ("it ended", APPROVAL.replace("2099", "1999"), false, false),
        (
            "of something else",
            APPROVAL.replace("mutations", "billing"),
            false,
            false,
        ),
        (
            "for a role",
            APPROVAL.replace("everyone", "role:member"),
            true,
            true,
        ),
        (
            "for another role",
            APPROVAL.replace("everyone", "role:auditor"),
            false,
            false,
        ),
        (
            "for one tenant",
            APPROVAL.replace("everyone", "tenant:north"),
            true,
            false,
        ),
        (
            "for another caller",
            APPROVAL.replace("everyone", "subject:bob"),
            false,
            true,
        ),
    ] {
        service.forget();
        let house = orders::house(&service.url()).with_change("tollhouse.toml", APPROVAL, &approval);
        let (ada, bob, answer) = seen(&house).await;
        assert_eq!(ada.contains(&note), for_ada, "{what}: {ada:?}");
        assert_eq!(bob.contains(&note), for_bob, "{what}: {bob:?}");
        assert!(
            ada.contains(&"orders_read".to_owned()),
            "{what}: what needs none is there"
        );
        assert_eq!(service.count(), usize::from(for_ada), "{what}: {answer}");
        let ledger = house.ledger().await;
        if for_ada {
            assert!(ledger.refusals().is_empty(), "{what}");
        } else {
            assert_eq!(ledger.refusals(), ["held"], "{what}");
            assert!(
                answer.contains("orders_note") || answer.contains("unknown"),
                "{what}: {answer}"
            );
            assert!(
                !answer.contains("approval"),
                "{what}: an agent is not told: {answer}"
            );
            let explained = run(
                &house,
                [
                    "explain",
                    "--as",
                    "ada",
                    "orders_note",
                    r#"{"id":"o-1","text":"x"}"#,
                ],
            )
            .await;
            explained.ended(1).printed("approval.mutations");
        }
    }
}

#[tokio::test]
async fn check_tells_what_is_held_with_the_words_of_the_document_and_what_would_clear_it() {
    let house = orders::house("http://127.0.0.1:9");
    let said = run(&house, ["check", "--offline"]).await.ended(0);
    assert!(!said.err.contains("held"), "{}", said.err);
    let held = orders::house("http://127.0.0.1:9").with_change("tollhouse.toml", APPROVAL, "");
    let said = run(&held, ["check", "--offline"]).await.ended(0);
    assert_eq!(said.err.matches("the tool is held").count(), 2, "{}", said.err);
    said.told("upstream.orders.tool.note: the tool is held: it changes state")
        .told("`add` at #/paths/~1orders~1{id}~1notes/post/operationId")
        .told("`DELETE` at #/paths/~1orders~1{id}/delete")
        .told("add `approval.mutations = {");
}

#[tokio::test]
async fn a_class_below_the_one_that_the_document_suggests_is_held_until_somebody_answers_for_it() {
    let class =
        "approval.class = { by = \"a\", because = \"b\", until = \"2099-12-31\", for = [\"everyone\"] }\n";
    let post = "  /report:\n    post:\n";
    for (what, document, approval, held) in [
        ("a get", "  /report:\n    get:\n", "", false),
        ("a post", post, "", true),
        ("a post, approved", post, class, false),
    ] {
        let tool = "[upstream.orders.tool.report]\noperation = \"report\"\nclass = \"read\"\n";
        let house = orders::house("http://127.0.0.1:9")
            .with_change("orders.yaml", "  /report:\n    get:\n", document)
            .with_change("tollhouse.toml", tool, &format!("{tool}{approval}"));
        let said = run(&house, ["check", "--offline"]).await.ended(0);
        assert_eq!(
            said.err
                .contains("tool.report: the tool is held: the document suggests class `write` (`POST` at"),
            held,
            "{what}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn sensitive_fields_hold_a_reading_unless_they_do_not_leave() {
    let secret = "        note: { type: string, description: x }\n        iban: { type: string }\n";
    let class = "class = \"read\"\nresource = { type = \"Order\", id = \"$.id\" }";
    for (what, returns, held) in [
        ("the whole answer", "", true),
        (
            "what leaves is harmless",
            "returns = { note = \"$.note\" }\n",
            false,
        ),
        ("what leaves is not", "returns = { note = \"$.iban\" }\n", true),
    ] {
        let house = orders::house("http://127.0.0.1:9")
            .with_change("orders.yaml", "        note: { type: string }\n", secret)
            .with_change("tollhouse.toml", class, &format!("{returns}{class}"));
        let said = run(&house, ["check", "--offline"]).await.ended(0);
        assert_eq!(
            said.err
                .contains("tool.read: the tool is held: the document suggests class `sensitive-read`"),
            held,
            "{what}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn an_approval_that_is_not_whole_is_a_fault() {
    for (from, to, place) in [
        ("by = \"the tests\", ", "", "approval.mutations.by"),
        (
            "because = \"nothing is real here\", ",
            "",
            "approval.mutations.because",
        ),
        (", for = [\"everyone\"]", "", "approval.mutations.for"),
        ("[\"everyone\"]", "[]", "approval.mutations.for"),
        ("[\"everyone\"]", "[\"all\"]", "approval.mutations.for"),
        ("[\"everyone\"]", "[\"role:\"]", "approval.mutations.for"),
        ("2099-12-31", "soon", "approval.mutations.until"),
        ("approval.mutations", "approval.mutation", "approval.mutation"),
    ] {
        let approval = APPROVAL.replace(from, to);
        let house = orders::house("http://127.0.0.1:9").with_change("tollhouse.toml", APPROVAL, &approval);
        run(&house, ["check", "--offline"]).await.ended(78).told(place);
    }
}
