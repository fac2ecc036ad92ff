//! A store that fails in every step of a call: the caller is told, nobody hangs, and afterwards it goes on by itself with
//! a chain that verifies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use audit::{HoleKind, Ledger, LedgerFault};
use model::Class;
use sqlx::{Connection, SqliteConnection};
use store::StoreFault;
use tokio::time::Instant;

use crate::desk::{Desk, call, done, intend, known, permitted, refuse, soon};

/// A way in which the store fails, and how it recovers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    Full,
    Locked,
    Slow,
}

impl Cause {
    fn desk(self) -> Desk {
        let mut desk = Desk::new();
        match self {
            Self::Full => desk.store_options.bytes_max = Some(2_000_000),
            Self::Locked => desk.store_options.busy_timeout = Duration::from_millis(50),
            // The lock is waited for longer than the ledger waits for the store.
            Self::Slow => desk.options.timeout = Duration::from_millis(100),
        }
        desk
    }

    async fn begin(self, other: &mut SqliteConnection) {
        match self {
            Self::Full => {
                // Everything up to the limit, by somebody who has the same limit.
                sqlx::raw_sql("CREATE TABLE IF NOT EXISTS filler (x BLOB)")
                    .execute(&mut *other)
                    .await
                    .unwrap();
                for size in [100_000, 4_000, 100] {
                    loop {
                        let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
                            .fetch_one(&mut *other)
                            .await
                            .unwrap();
                        let free: i64 = sqlx::query_scalar("PRAGMA freelist_count")
                            .fetch_one(&mut *other)
                            .await
                            .unwrap();
                        if (488 - pages + free) * 4_096 < size + 8_192 && size > 100 {
                            break;
                        }
                        let filled = sqlx::query("INSERT INTO filler VALUES (zeroblob($1))")
                            .bind(size)
                            .execute(&mut *other)
                            .await;
                        if filled.is_err() {
                            break;
                        }
                    }
                }
            }
            Self::Locked | Self::Slow => {
                sqlx::raw_sql("BEGIN EXCLUSIVE").execute(other).await.unwrap();
            }
        }
    }

    async fn end(self, other: &mut SqliteConnection) {
        let sql = match self {
            Self::Full => "DELETE FROM filler",
            Self::Locked | Self::Slow => "ROLLBACK",
        };
        sqlx::raw_sql(sql).execute(other).await.unwrap();
    }

    fn is(self, fault: &LedgerFault) -> bool {
        match self {
            Self::Full => matches!(fault, LedgerFault::Full(StoreFault::Full(_))),
            Self::Locked => matches!(fault, LedgerFault::Locked(StoreFault::Locked(_))),
            Self::Slow => *fault == LedgerFault::TimedOut,
        }
    }
}

/// Fails until it works: a write that was given up may stand in the way once.
async fn recovers(ledger: &Ledger) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match call(ledger, Class::Write).await {
            Ok(_) => return,
            Err(fault) if Instant::now() > end => panic!("no recovery: {fault:?}"),
            Err(_) => {}
        }
    }
}

#[tokio::test]
async fn a_failing_store_refuses_in_every_step_and_recovers_without_repair() {
    for cause in [Cause::Full, Cause::Locked, Cause::Slow] {
        let desk = cause.desk();
        let ledger = desk.ledger().await;
        let mut other = desk.other().await;
        if cause == Cause::Full {
            sqlx::raw_sql("PRAGMA max_page_count = 488")
                .execute(&mut other)
                .await
                .unwrap();
        }
        for class in [Class::Read, Class::Write] {
            // Several of each kind: what is left of a page holds a few more entries of a full store.
            let mut running = Vec::new();
            for _ in 0..20 {
                let known = known(class);
                let (_recorded, ticket) = intend(&ledger, &known).await.unwrap();
                running.push((known.call, ticket));
            }
            cause.begin(&mut other).await;
            let mut faults = Vec::new();
            for _ in 0..20 {
                let known = known(class);
                match intend(&ledger, &known).await {
                    Ok((_recorded, ticket)) => drop(ticket),
                    Err(fault) => {
                        faults.push(fault);
                        break;
                    }
                }
            }
            for _ in 0..20 {
                if let Err(fault) = refuse(&ledger, &known(class)).await {
                    faults.push(fault);
                    break;
                }
            }
            let mut unrecorded = None;
            for (call, ticket) in running {
                if unrecorded.is_some() {
                    // Not dropped: that would write something.
                    std::mem::forget(ticket);
                } else if let Err(fault) = ledger.finish(ticket, done(), soon()).await {
                    faults.push(fault);
                    unrecorded = Some(call);
                }
            }
            assert_eq!(faults.len(), 3, "{cause:?}: in each step one is told: {faults:?}");
            for fault in &faults {
                assert!(cause.is(fault), "{cause:?}: {fault:?}");
            }
            cause.end(&mut other).await;
            recovers(&ledger).await;
            let report = desk.verify().await;
            assert!(report.sound(), "{cause:?}: {report}");
            assert_eq!(report.chains.len(), 1, "{cause:?}: the chain goes on");
            if cause != Cause::Slow {
                assert!(
                    report.unknown.iter().any(|call| Some(call.call) == unrecorded),
                    "{cause:?}: {report}"
                );
            }
        }
        ledger.close().await.unwrap();
        let report = desk.verify().await;
        assert!(report.sound() && report.chains[0].stopped, "{cause:?}: {report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_hangs_while_the_store_fails_again_and_again() {
    for cause in [Cause::Full, Cause::Locked, Cause::Slow] {
        let desk = cause.desk();
        let ledger = desk.ledger().await;
        let enough = Arc::new(AtomicBool::new(false));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..16 {
            let (ledger, enough) = (ledger.clone(), Arc::clone(&enough));
            tasks.spawn(async move {
                let (mut done, mut faults) = (0_u32, Vec::new());
                while !enough.load(Ordering::Relaxed) {
                    let asked = Instant::now();
                    match call(&ledger, Class::ALL[n % 4]).await {
                        Ok(_) => done += 1,
                        Err(fault) => faults.push(fault),
                    }
                    // Two entries, each at most as long as the ledger waits (5 s), on a busy machine.
                    assert!(asked.elapsed() < Duration::from_secs(20));
                }
                (done, faults)
            });
        }
        let mut other = desk.other().await;
        if cause == Cause::Full {
            sqlx::raw_sql("PRAGMA max_page_count = 488")
                .execute(&mut other)
                .await
                .unwrap();
        }
        for _ in 0..3 {
            cause.begin(&mut other).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            cause.end(&mut other).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        enough.store(true, Ordering::Relaxed);
        let counts = tokio::time::timeout(Duration::from_secs(60), tasks.join_all())
            .await
            .expect("nobody hangs");
        assert!(counts.iter().map(|(done, _)| done).sum::<u32>() > 0, "{cause:?}");
        let faults: Vec<_> = counts.into_iter().flat_map(|(_, faults)| faults).collect();
        assert!(!faults.is_empty(), "{cause:?}: the store did fail");
        // Above all no conflict with a write of our own that was given up.
        let strange = faults.iter().find(|fault| !cause.is(fault));
        assert_eq!(strange, None, "{cause:?}");
        recovers(&ledger).await;
        ledger.close().await.unwrap();
        let report = desk.verify().await;
        assert!(report.sound(), "{cause:?}: {report}");
    }
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_a_refusal_at_once() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let mut other = desk.other().await;
    Cause::Locked.begin(&mut other).await;
    let known = known(Class::Read);
    let start = Instant::now();
    let past = Instant::now() - Duration::from_millis(1);
    let fault = ledger.intend(permitted(1), known.record(), past).await.err();
    assert_eq!(fault, Some(LedgerFault::TimedOut));
    assert!(start.elapsed() < Duration::from_secs(1));
    Cause::Locked.end(&mut other).await;
    ledger.close().await.unwrap();
    assert!(desk.verify().await.sound());
}

#[tokio::test]
async fn an_intent_that_nobody_waits_for_any_more_is_not_written_or_ends_as_unknown() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let mut calls = Vec::new();
    for patience in 0..40 {
        let known = known(Class::Write);
        calls.push(known.call);
        let mut asked = Box::pin(intend(&ledger, &known));
        for _ in 0..patience {
            let ready = std::future::poll_fn(|context| {
                std::task::Poll::Ready(std::future::Future::poll(asked.as_mut(), context).is_ready())
            });
            if ready.await {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(asked);
    }
    ledger.close().await.unwrap();
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert_eq!(report.calls, report.unknown_total, "none of them was made");
    assert!(
        report
            .unknown
            .iter()
            .all(|call| call.recorded && calls.contains(&call.call)),
        "{report}"
    );
}

#[tokio::test]
async fn a_full_queue_holds_callers_up_to_their_deadline() {
    let mut desk = Desk::new();
    desk.options.queue_max = 2;
    desk.options.batch_max = 1;
    let ledger = desk.ledger().await;
    let mut other = desk.other().await;
    Cause::Locked.begin(&mut other).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            let known = known(Class::Read);
            let deadline = Instant::now() + Duration::from_millis(200);
            ledger.intend(permitted(1), known.record(), deadline).await.err()
        });
    }
    for fault in tasks.join_all().await {
        assert_eq!(fault, Some(LedgerFault::TimedOut));
    }
    Cause::Locked.end(&mut other).await;
    recovers(&ledger).await;
    ledger.close().await.unwrap();
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    // The one that was being written, and the one that showed that it goes on. The two that were given up in the queue are
    // not written any more, and the others never came that far.
    assert!(report.calls <= 2, "{report}");
}

#[tokio::test]
async fn entries_that_the_store_lost_are_missed_for_ever() {
    let desk = {
        let mut desk = Desk::new();
        desk.store_options.busy_timeout = Duration::from_millis(50);
        desk
    };
    let ledger = desk.ledger().await;
    for _ in 0..3 {
        call(&ledger, Class::Read).await.unwrap();
    }
    let mut other = desk.other().await;
    // What a database server does that dies before its disk has the last commits.
    sqlx::raw_sql("DELETE FROM ledger WHERE position % 1099511627776 >= 6")
        .execute(&mut other)
        .await
        .unwrap();
    Cause::Locked.begin(&mut other).await;
    assert!(call(&ledger, Class::Read).await.is_err());
    Cause::Locked.end(&mut other).await;
    call(&ledger, Class::Read).await.unwrap();
    ledger.close().await.unwrap();
    let report = desk.verify().await;
    assert_eq!(report.chains.len(), 2, "{report}");
    assert!(report.chains[0].stopped && !report.chains[1].stopped);
    let holes: Vec<_> = report.faults.iter().map(|hole| (hole.kind, hole.seq)).collect();
    assert_eq!(holes, [(HoleKind::Truncated, Some(5))], "{report}");
}

#[tokio::test]
async fn a_database_server_that_ends_the_session_is_connected_again() {
    let Some(desk) = Desk::postgres().await else {
        return;
    };
    let ledger = desk.ledger().await;
    let name = desk.text.rsplit('=').next().unwrap();
    for _ in 0..3 {
        call(&ledger, Class::Write).await.unwrap();
        let running = known(Class::Write);
        let (_recorded, ticket) = intend(&ledger, &running).await.unwrap();
        let mut admin = sqlx::PgConnection::connect(&std::env::var("PG_URL").unwrap())
            .await
            .unwrap();
        sqlx::query(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1",
        )
        .bind(name)
        .execute(&mut admin)
        .await
        .unwrap();
        let fault = ledger.finish(ticket, done(), soon()).await.unwrap_err();
        assert!(
            matches!(fault, LedgerFault::Store(StoreFault::Unreachable(_))),
            "{fault:?}"
        );
        call(&ledger, Class::Write).await.unwrap();
    }
    ledger.close().await.unwrap();
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert_eq!((report.chains.len(), report.unknown_total), (1, 3));
}

#[tokio::test]
async fn a_ledger_that_cannot_write_its_start_does_not_open() {
    let desk = {
        let mut desk = Desk::new();
        desk.store_options.busy_timeout = Duration::from_millis(50);
        desk
    };
    desk.ledger().await.close().await.unwrap();
    let store = desk.store().await;
    let mut other = desk.other().await;
    Cause::Locked.begin(&mut other).await;
    let fault = Ledger::open(store, desk.options.clone()).await.unwrap_err();
    assert!(matches!(fault, LedgerFault::Locked(_)), "{fault:?}");
}

#[tokio::test]
async fn a_key_of_another_length_is_not_used() {
    let desk = Desk::new();
    desk.ledger().await.close().await.unwrap();
    let mut other = desk.other().await;
    for name in ["ledger-digest-key", "ledger-signing-key"] {
        sqlx::query("UPDATE named_secret SET value = x'00' WHERE name = $1")
            .bind(name)
            .execute(&mut other)
            .await
            .unwrap();
        let fault = Ledger::open(desk.store().await, desk.options.clone())
            .await
            .unwrap_err();
        assert_eq!(fault, LedgerFault::Key(name));
        sqlx::query("UPDATE named_secret SET value = zeroblob(32) WHERE name = $1")
            .bind(name)
            .execute(&mut other)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_write_that_was_given_up_and_arrives_after_all_belongs_to_the_chain() {
    let mut desk = Cause::Slow.desk();
    desk.store_options.busy_timeout = Duration::from_secs(60);
    let ledger = desk.ledger().await;
    let mut other = desk.other().await;
    let count = async |other: &mut SqliteConnection| -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM ledger")
            .fetch_one(other)
            .await
            .unwrap()
    };
    for round in 0..3 {
        let before = count(&mut other).await;
        Cause::Slow.begin(&mut other).await;
        let known = known(Class::Write);
        assert_eq!(intend(&ledger, &known).await.err(), Some(LedgerFault::TimedOut));
        Cause::Slow.end(&mut other).await;
        // It waited for the lock in a thread of its own, and now gets it.
        while count(&mut other).await == before {}
        recovers(&ledger).await;
        let report = desk.verify().await;
        assert!(report.sound(), "{report}");
        assert_eq!(report.chains.len(), 1, "the same chain goes on");
        let unknown = report.unknown.iter().find(|unknown| unknown.call == known.call);
        assert!(
            unknown.is_some_and(|call| !call.recorded),
            "round {round}: {report}"
        );
    }
    ledger.close().await.unwrap();
    assert!(desk.verify().await.sound());
}
