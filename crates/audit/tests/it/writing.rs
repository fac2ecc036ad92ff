//! What is written down, in which order, and that chains hold together over restarts and under load.

use audit::{EntryKind, LedgerFault, Outcome, OutcomeState, Record, VerifyOptions};
use model::{CallId, Class, Refusal, RefusalCode, RuleId};
use serde_json::json;

use crate::desk::{Desk, TOOL, bodies, call, done, intend, known, permitted, refuse, soon, verify};

#[tokio::test]
async fn an_intent_an_outcome_and_a_refusal_say_what_is_known_and_no_more() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let (permitted_call, refused) = (known(Class::Write), known(Class::Read));
    let record = Record {
        consent: Some(json!({"waived_by": "ops", "because": "ü", "a": 1})),
        ..permitted_call.record()
    };
    let (recorded, ticket) = ledger.intend(permitted(7_u8), record, soon()).await.unwrap();
    let verdict = recorded.get().verdict();
    let (rules, policy) = (verdict.rules.clone(), verdict.policy);
    let outcome = Outcome {
        state: OutcomeState::Failed,
        refusal: Some(&Refusal::new(RefusalCode::ResultInvalid, "host.internal said so").with_detail("x")),
        status: Some(502),
        ..done()
    };
    ledger.finish(ticket, outcome, soon()).await.unwrap();
    let rule = [RuleId::parse("never").unwrap()];
    let no = Refusal::new(RefusalCode::SourceFailed, "directory.internal is down");
    ledger.refuse(refused.record(), &no, &rule, soon()).await.unwrap();
    let stranger = known(Class::Read);
    let unknown = Record {
        actor: None,
        credential: None,
        tool: Some("no such tool"),
        class: None,
        pin: None,
        target: None,
        arguments: None,
        declared: None,
        trace: None,
        ..stranger.record()
    };
    let unknown_call = unknown.call;
    ledger
        .refuse(unknown, &Refusal::new(RefusalCode::UnknownTool, ""), &[], soon())
        .await
        .unwrap();
    ledger.close().await.unwrap();

    let bodies = bodies(&desk.export().await);
    let kinds: Vec<_> = bodies.iter().map(|body| body["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "start",
            "checkpoint",
            "intent",
            "outcome",
            "refusal",
            "refusal",
            "stop",
            "checkpoint"
        ]
    );
    let chain = &bodies[0]["chain"];
    let (intent, outcome, refusal, last) = (&bodies[2], &bodies[3], &bodies[4], &bodies[5]);
    let digest = &intent["arguments"]["digest"];
    let id = &intent["target"]["id"];
    assert_eq!(
        *intent,
        json!({
            "actor": {"issuer": "corp", "subject": "ada", "tenant": "north", "roles": ["member"]},
            "arguments": {"digest": digest, "shape": {"invoiceId": "string", "limit": "integer"}},
            "call": permitted_call.call, "chain": chain, "class": "write",
            "consent": {"waived_by": "ops", "because": "ü", "a": 1},
            "credential": "key abc", "kind": "intent", "method": "tools/call", "pin": intent["pin"],
            "policy": policy, "rules": rules, "seq": 2,
            "target": {"id": id, "owner": "north", "type": "Invoice"},
            "time": intent["time"], "tool": TOOL,
            "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "transport": "http",
        })
    );
    assert_eq!(
        *outcome,
        json!({
            "call": permitted_call.call, "chain": chain, "duration_us": 1234, "fault": "upstream", "kind": "outcome",
            "refusal": "result-invalid", "result": {"bytes": 17, "digest": outcome["result"]["digest"]}, "seq": 3,
            "state": "failed", "status": 502, "time": outcome["time"], "tool": TOOL, "upstream_requests": 1,
        })
    );
    assert_eq!(refusal["refusal"], "source-failed");
    assert_eq!(refusal["fault"], "gateway");
    assert_eq!(refusal["rules"], json!(["never"]));
    assert_eq!(refusal["upstream_requests"], 0);
    // The same arguments and the same target: whoever holds the key could not tell them apart either.
    assert_eq!(
        (&refusal["arguments"]["digest"], &refusal["target"]["id"]),
        (digest, id)
    );
    assert_eq!(
        *last,
        json!({
            "call": unknown_call, "chain": chain, "fault": "caller", "kind": "refusal", "method": "tools/call",
            "refusal": "unknown-tool", "rules": [], "seq": 5, "time": last["time"], "tool": "no such tool",
            "transport": "http", "upstream_requests": 0,
        })
    );
    let shown = serde_json::to_string(&bodies).unwrap();
    for secret in ["inv-1", "internal", "try harder", "paid"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn every_line_is_canonical() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    for class in Class::ALL {
        call(&ledger, class).await.unwrap();
        refuse(&ledger, &known(class)).await.unwrap();
    }
    drop(intend(&ledger, &known(Class::Read)).await.unwrap());
    ledger.close().await.unwrap();
    let export = desk.export().await;
    for line in std::str::from_utf8(&export).unwrap().lines() {
        let value: model::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line.as_bytes(), model::canonical(&value), "{line}");
    }
}

#[tokio::test]
async fn the_proof_holds_what_was_permitted_and_says_where_it_is_recorded() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let known = known(Class::Read);
    let (recorded, ticket) = intend(&ledger, &known).await.unwrap();
    assert_eq!(recorded.entry(), ticket.entry());
    assert_eq!(ticket.call(), known.call);
    assert_eq!(recorded.entry().seq, 2);
    assert_eq!(*recorded.get().get(), 7);
    // It is committed before the proof is there.
    let entries = audit::show(&desk.store().await, known.call).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].place(), entries[0].kind()),
        (recorded.entry(), EntryKind::Intent)
    );
    ledger.finish(ticket, done(), soon()).await.unwrap();
}

#[tokio::test]
async fn chains_of_restarts_name_each_other_and_verify_as_one_ledger() {
    for desk in Desk::all().await {
        let mut expected = Vec::new();
        for round in 0..4_u64 {
            let ledger = desk.ledger().await;
            for _ in 0..round * 4 {
                call(&ledger, Class::Read).await.unwrap();
            }
            ledger.close().await.unwrap();
            // start, checkpoint, two per call, a checkpoint per ten, stop, checkpoint.
            let report = desk.verify().await;
            assert!(report.sound(), "{report}");
            expected.push(report.chains[0].last);
        }
        let report = desk.verify().await;
        assert!(report.sound(), "{report}");
        assert_eq!(
            (report.chains.len(), report.calls, report.unknown_total),
            (4, 24, 0),
            "{report}"
        );
        let last: Vec<u64> = report.chains.iter().rev().map(|chain| chain.last).collect();
        assert_eq!(last, expected);
        assert!(
            report
                .chains
                .iter()
                .all(|chain| chain.stopped && chain.first == 0)
        );
        assert!(report.chains.iter().all(|chain| chain.after_last_checkpoint == 0));
        // Every chain but the newest is named by a later one, by exactly one.
        let named: Vec<bool> = report.chains.iter().map(|chain| chain.named).collect();
        assert_eq!(named, [false, true, true, true]);
        let heads: Vec<usize> = bodies(&desk.export().await)
            .iter()
            .filter(|body| body["kind"] == "start")
            .map(|body| body["heads"].as_array().unwrap().len())
            .collect();
        assert_eq!(heads, [1, 1, 1, 0]);
        assert_eq!(report.keys.len(), 1, "one installation, one key");
    }
}

#[tokio::test]
async fn processes_side_by_side_keep_chains_of_their_own() {
    for desk in Desk::all().await {
        let (one, two) = (desk.ledger().await, desk.ledger().await);
        for _ in 0..5 {
            let (a, b) = tokio::join!(call(&one, Class::Write), call(&two, Class::Read));
            a.unwrap();
            b.unwrap();
        }
        let three = desk.ledger().await;
        call(&one, Class::Read).await.unwrap();
        call(&three, Class::Read).await.unwrap();
        for ledger in [two, one, three] {
            ledger.close().await.unwrap();
        }
        let report = desk.verify().await;
        assert!(report.sound(), "{report}");
        assert_eq!((report.chains.len(), report.calls), (3, 12));
        // The next start names all that is not named yet: all three went on after they were named.
        desk.ledger().await.close().await.unwrap();
        let export = desk.export().await;
        assert!(verify(&export).sound(), "{}", verify(&export));
        assert_eq!(bodies(&export)[0]["heads"].as_array().unwrap().len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_callers_at_once_leave_one_chain_without_a_gap() {
    for desk in Desk::all().await {
        let ledger = desk.ledger().await;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..200 {
            let ledger = ledger.clone();
            tasks.spawn(async move {
                let class = Class::ALL[n % 4];
                if n % 5 == 0 {
                    refuse(&ledger, &known(class)).await.unwrap();
                }
                call(&ledger, class).await.unwrap()
            });
        }
        let calls: std::collections::HashSet<CallId> = tasks.join_all().await.into_iter().collect();
        assert_eq!(calls.len(), 200);
        ledger.close().await.unwrap();
        let report = desk.verify().await;
        assert!(report.sound(), "{report}");
        assert_eq!((report.calls, report.refused, report.unknown_total), (200, 40, 0));
        assert_eq!(report.chains.len(), 1);
        assert_eq!(report.entries, report.chains[0].last + 1);
    }
}

#[tokio::test]
async fn a_checkpoint_stands_behind_every_so_many_entries() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    for _ in 0..50 {
        call(&ledger, Class::Read).await.unwrap();
    }
    ledger.close().await.unwrap();
    let seqs: Vec<u64> = bodies(&desk.export().await)
        .iter()
        .filter(|body| body["kind"] == "checkpoint")
        .map(|body| body["seq"].as_u64().unwrap())
        .collect();
    // Behind the start, then behind each ten entries, then behind the stop.
    assert_eq!(seqs, [1, 12, 23, 34, 45, 56, 67, 78, 89, 100, 111, 113]);
}

#[tokio::test]
async fn a_dropped_ticket_leaves_an_unknown_outcome() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let known = known(Class::Write);
    let (recorded, ticket) = intend(&ledger, &known).await.unwrap();
    drop(ticket);
    drop(recorded);
    ledger.close().await.unwrap();
    let entries = audit::show(&desk.store().await, known.call).await.unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].state(), Some(OutcomeState::Unknown));
    assert!(entries[1].is_abandoned());
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert_eq!(report.unknown.len(), 1);
    assert_eq!(
        (
            report.unknown[0].call,
            report.unknown[0].recorded,
            report.unknown[0].class
        ),
        (known.call, true, Some(Class::Write))
    );
    assert_eq!(report.unknown[0].tool.as_deref(), Some(TOOL));
}

#[tokio::test]
async fn a_finished_ticket_leaves_one_outcome_only() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let id = call(&ledger, Class::Read).await.unwrap();
    ledger.close().await.unwrap();
    assert_eq!(audit::show(&desk.store().await, id).await.unwrap().len(), 2);
    assert_eq!(desk.verify().await.unknown_total, 0);
}

#[tokio::test]
async fn a_closed_ledger_takes_nothing_and_its_chain_is_whole() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let open = known(Class::Read);
    let (_recorded, ticket) = intend(&ledger, &open).await.unwrap();
    ledger.clone().close().await.unwrap();
    let after = known(Class::Read);
    assert_eq!(intend(&ledger, &after).await.err(), Some(LedgerFault::Closed));
    assert_eq!(refuse(&ledger, &after).await.err(), Some(LedgerFault::Closed));
    assert_eq!(
        ledger.finish(ticket, done(), soon()).await,
        Err(LedgerFault::Closed)
    );
    assert_eq!(ledger.close().await, Err(LedgerFault::Closed));
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert!(report.chains[0].stopped);
    assert_eq!(report.unknown.len(), 1);
    assert_eq!(
        (report.unknown[0].call, report.unknown[0].recorded),
        (open.call, false)
    );
}

#[tokio::test]
async fn what_waits_when_the_ledger_closes_is_still_written() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let ledger = ledger.clone();
        tasks.spawn(async move { refuse(&ledger, &known(Class::Read)).await });
    }
    tokio::task::yield_now().await;
    ledger.close().await.unwrap();
    let answers = tasks.join_all().await;
    let written = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!(
        answers
            .iter()
            .all(|answer| answer.is_ok() || *answer == Err(LedgerFault::Closed))
    );
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert_eq!(report.refused, u64::try_from(written).unwrap());
    assert!(written > 0);
}

#[tokio::test]
async fn a_ledger_that_is_dropped_and_not_closed_has_no_stop() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    call(&ledger, Class::Read).await.unwrap();
    drop(ledger);
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert!(!report.chains[0].stopped);
    assert_eq!(report.chains[0].after_last_checkpoint, 2);
    assert!(
        report.to_string().contains("2 entries after the last checkpoint"),
        "{report}"
    );
}

#[tokio::test]
async fn the_public_key_is_the_one_that_signs() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let key = ledger.public_key();
    ledger.close().await.unwrap();
    let export = desk.export().await;
    let pinned = |key| VerifyOptions {
        pinned_key: Some(key),
        partial: false,
    };
    let report = audit::verify(&export[..], pinned(key)).unwrap();
    assert!(report.sound(), "{report}");
    assert_eq!(report.keys, [key]);
    let other = Desk::new().ledger().await.public_key();
    let report = audit::verify(&export[..], pinned(other)).unwrap();
    let kinds: Vec<_> = report.faults.iter().map(|hole| hole.kind.as_str()).collect();
    assert_eq!(kinds, ["foreign-key", "bad-signature", "bad-signature"]);
}
