//! No value of an argument, of a target's id or of a result is anywhere in what the ledger keeps, in any spelling that a
//! search would find.

use audit::{Outcome, OutcomeState, Record};
use model::{Class, Refusal, RefusalCode};

use crate::desk::{Desk, done, known_of, permitted, soon};

const CANARY: &str = "canary-4711";

#[tokio::test]
async fn a_canary_in_arguments_ids_and_results_is_nowhere_in_the_files_or_the_export() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let arguments = format!(
        r#"{{"invoiceId":"{CANARY}","limit":{{"{CANARY}":1,"limit":["{CANARY}"]}},"{CANARY}":"{CANARY}"}}"#
    );
    let result = format!(r#"{{"note":"{CANARY}"}}"#);
    let refusal = Refusal::new(RefusalCode::ArgumentsInvalid, format!("`{CANARY}` is no invoice"))
        .with_detail(format!("`{CANARY}` is too long"));
    for class in [Class::Read, Class::Write] {
        let known = known_of(class, CANARY, &arguments);
        let (_recorded, ticket) = ledger.intend(permitted(7), known.record(), soon()).await.unwrap();
        let outcome = Outcome {
            state: OutcomeState::Failed,
            refusal: Some(&refusal),
            result: Some(result.as_bytes()),
            ..done()
        };
        ledger.finish(ticket, outcome, soon()).await.unwrap();
        let refused = known_of(class, CANARY, &arguments);
        for declared in [Some(refused.declared.as_slice()), None] {
            let record = Record {
                declared,
                call: model::CallId::new(),
                ..refused.record()
            };
            ledger.refuse(record, &refusal, &[], soon()).await.unwrap();
        }
        let dropped = known_of(class, CANARY, &arguments);
        drop(
            ledger
                .intend(permitted(7), dropped.record(), soon())
                .await
                .unwrap(),
        );
    }
    // Once while the write-ahead log holds everything, and once after it was folded in.
    for closed in [false, true] {
        if closed {
            ledger.clone().close().await.unwrap();
        }
        let mut searched = vec![desk.export().await];
        for entry in std::fs::read_dir(desk.folder.path()).unwrap() {
            searched.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
        let entries = searched[0].iter().filter(|byte| **byte == b'\n').count();
        assert!(entries >= 12, "there is something to search: {entries}");
        let hexadecimal: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
        for bytes in &searched {
            for needle in [CANARY, &hexadecimal, "Y2FuYXJ5", "canary"] {
                assert!(
                    !bytes
                        .windows(needle.len())
                        .any(|window| window.eq_ignore_ascii_case(needle.as_bytes())),
                    "{needle}"
                );
            }
        }
        // The search would find it: what may be kept is there.
        assert!(
            searched[1..]
                .iter()
                .any(|bytes| bytes.windows(9).any(|window| window == b"invoiceId"))
        );
    }
}

#[tokio::test]
async fn undeclared_names_are_counted() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let known = known_of(Class::Read, "x", r#"{"invoiceId":"x","a":1,"b":{"c":2}}"#);
    let (_recorded, _ticket) = ledger.intend(permitted(7), known.record(), soon()).await.unwrap();
    let entry = audit::show(&desk.store().await, known.call)
        .await
        .unwrap()
        .remove(0);
    let arguments = &entry.body()["arguments"];
    assert_eq!(arguments["shape"], serde_json::json!({"invoiceId": "string"}));
    assert_eq!(arguments["undeclared"], 2);
}
