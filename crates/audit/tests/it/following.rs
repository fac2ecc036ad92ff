//! Whoever follows the ledger sees what was committed, and nothing else.

use std::time::Duration;

use audit::EntryKind;
use model::Class;

use crate::desk::{Desk, call, intend, known, refuse};

#[tokio::test]
async fn a_subscriber_sees_committed_entries_in_their_order() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let mut following = ledger.subscribe();
    let id = call(&ledger, Class::Read).await.unwrap();
    refuse(&ledger, &known(Class::Read)).await.unwrap();
    ledger.close().await.unwrap();
    let mut seen = Vec::new();
    while let Ok(entry) = following.recv().await {
        seen.push(entry);
    }
    let kinds: Vec<_> = seen.iter().map(|entry| entry.kind()).collect();
    use EntryKind as K;
    assert_eq!(kinds, [K::Intent, K::Outcome, K::Refusal, K::Stop, K::Checkpoint]);
    assert_eq!(seen[0].call(), Some(id));
    let seqs: Vec<_> = seen.iter().map(|entry| entry.place().seq).collect();
    assert_eq!(seqs, [2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn an_entry_that_was_not_committed_is_not_seen() {
    let mut desk = Desk::new();
    desk.store_options.busy_timeout = Duration::from_millis(50);
    let ledger = desk.ledger().await;
    let mut following = ledger.subscribe();
    let mut other = desk.other().await;
    sqlx::raw_sql("BEGIN EXCLUSIVE")
        .execute(&mut other)
        .await
        .unwrap();
    assert!(intend(&ledger, &known(Class::Read)).await.is_err());
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert!(following.try_recv().is_err());
    let id = call(&ledger, Class::Read).await.unwrap();
    assert_eq!(following.recv().await.unwrap().call(), Some(id));
}
