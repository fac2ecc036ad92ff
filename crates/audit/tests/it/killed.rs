//! A process that is killed between intent and outcome: what it intended is in the ledger, and reported as unknown.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use audit::Ledger;
use model::{CallId, Class};

use crate::desk::{Desk, call, done, intend, known, soon};

/// Tells this test binary that it is the child, and where the store is.
const STORE: &str = "TOLLHOUSE_TEST_LEDGER";
const BUSY: &str = "TOLLHOUSE_TEST_BUSY";

fn child(desk: &Desk, busy: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["killed::the_child_that_is_killed", "--exact", "--nocapture"])
        .env(STORE, &desk.text)
        .env(BUSY, if busy { "1" } else { "0" })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what the child does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_that_is_killed() {
    let Ok(text) = std::env::var(STORE) else {
        return;
    };
    let desk = Desk {
        url: store::StoreUrl::parse(&text, std::path::Path::new("/")).unwrap(),
        text,
        ..Desk::new()
    };
    let ledger = desk.ledger().await;
    if std::env::var(BUSY).unwrap() == "1" {
        busy(ledger).await;
    } else {
        for _ in 0..3 {
            call(&ledger, Class::Read).await.unwrap();
        }
        let known = known(Class::Read);
        let (_recorded, ticket) = intend(&ledger, &known).await.unwrap();
        say(&format!("intended {}", known.call));
        // Here it is killed.
        std::future::pending::<()>().await;
        ledger.finish(ticket, done(), soon()).await.unwrap();
    }
}

/// Many calls at once, until it is killed.
async fn busy(ledger: Ledger) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            loop {
                let known = known(Class::ALL[n % 4]);
                let (_recorded, ticket) = intend(&ledger, &known).await.unwrap();
                say(&format!("intended {}", known.call));
                ledger.finish(ticket, done(), soon()).await.unwrap();
                say(&format!("finished {}", known.call));
            }
        });
    }
    tasks.join_all().await;
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // On a line of its own, whatever the test harness has written before.
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

/// What a child said, until `enough` lines of the kind have come; then it is killed.
fn kill_after(mut child: Child, word: &str, enough: usize) -> (Vec<CallId>, Vec<CallId>) {
    let (mut intended, mut finished) = (Vec::new(), Vec::new());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut count = 0;
    let mut killed = false;
    while let Some(Ok(line)) = lines.next() {
        match line.split_once(' ') {
            Some(("intended", call)) => intended.push(call.parse().unwrap()),
            Some(("finished", call)) => finished.push(call.parse().unwrap()),
            _ => continue,
        }
        count += usize::from(line.starts_with(word));
        if count >= enough && !killed {
            // SIGKILL. What it said before is still in the pipe, and is read to the end.
            child.kill().unwrap();
            killed = true;
        }
    }
    assert!(killed, "the child ended by itself");
    child.wait().unwrap();
    (intended, finished)
}

#[tokio::test]
async fn a_process_killed_between_intent_and_outcome_leaves_an_unknown_call() {
    let desk = Desk::new();
    let mut killed = Vec::new();
    for round in 1..=10 {
        let (intended, _) = kill_after(child(&desk, false), "intended", 1);
        killed.extend(intended);
        let report = desk.verify().await;
        assert!(report.sound(), "round {round}: {report}");
        let unknown: Vec<CallId> = report.unknown.iter().map(|call| call.call).collect();
        assert_eq!(unknown, killed, "round {round}");
        assert!(report.unknown.iter().all(|call| !call.recorded));
        assert_eq!(report.chains.len(), round);
        assert!(report.chains.iter().all(|chain| !chain.stopped));
    }
}

#[tokio::test]
async fn a_busy_process_killed_at_any_moment_has_recorded_what_it_said_it_had() {
    let desk = Desk::new();
    let (mut intended, mut finished) = (0, 0);
    for round in 1..=10 {
        let (said_intended, said_finished) = kill_after(child(&desk, true), "finished", 5 + round * 3);
        let report = desk.verify().await;
        assert!(report.sound(), "round {round}: {report}");
        let store = desk.store().await;
        for call in &said_finished {
            assert_eq!(
                audit::show(&store, *call).await.unwrap().len(),
                2,
                "round {round}"
            );
        }
        for call in &said_intended {
            assert!(
                !audit::show(&store, *call).await.unwrap().is_empty(),
                "round {round}"
            );
        }
        intended += said_intended.len() as u64;
        finished += said_finished.len() as u64;
        // At most the eight tasks had something open, each time.
        let round = u64::try_from(round).unwrap();
        assert!(report.unknown_total <= 8 * round, "{report}");
        assert!(report.calls >= intended && report.calls - report.unknown_total >= finished);
    }
}
