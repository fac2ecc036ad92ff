//! Entries read back: the newest, those of a call, and a line for a person that no caller can abuse.

use audit::{
    EntryFault, EntryKind, ExportFault, LedgerFilter, LedgerOrder, Record, Selection, VerifyFault,
    VerifyOptions,
};
use model::{CallId, Class, Refusal, RefusalCode};

use crate::desk::{Desk, TOOL, bodies, call, known, refuse, soon};

#[tokio::test]
async fn the_newest_entries_come_first_and_a_call_comes_whole() {
    for desk in Desk::all().await {
        let ledger = desk.ledger().await;
        let mut last = CallId::new();
        for _ in 0..20 {
            last = call(&ledger, Class::Read).await.unwrap();
        }
        refuse(&ledger, &known(Class::Write)).await.unwrap();
        let store = desk.store().await;
        let filter = LedgerFilter {
            limit: 3,
            order: LedgerOrder::Newest,
            kinds: vec!["refusal".into(), "outcome".into(), "intent".into()],
            ..LedgerFilter::default()
        };
        let newest = audit::tail(&store, &filter).await.unwrap();
        let kinds: Vec<_> = newest.iter().map(|entry| entry.kind()).collect();
        assert_eq!(kinds, [EntryKind::Refusal, EntryKind::Outcome, EntryKind::Intent]);
        assert_eq!(newest[1].call(), Some(last));
        let whole = audit::show(&store, last).await.unwrap();
        let kinds: Vec<_> = whole.iter().map(|entry| entry.kind()).collect();
        assert_eq!(kinds, [EntryKind::Intent, EntryKind::Outcome]);
        assert_eq!(whole[0].actor().unwrap(), known(Class::Read).caller);
        assert_eq!(whole[0].rules(), ["everybody-may-read"]);
        assert_eq!(
            (whole[0].tool(), whole[0].class()),
            (Some(TOOL), Some(Class::Read))
        );
        assert_eq!(
            (whole[1].status(), whole[1].upstream_requests()),
            (Some(200), Some(1))
        );
        assert_eq!(newest[0].refusal(), Some("not-permitted"));
        assert_eq!(audit::show(&store, CallId::new()).await.unwrap(), []);
        let of_tool = LedgerFilter {
            tool: Some(TOOL.into()),
            ..LedgerFilter::default()
        };
        assert_eq!(audit::tail(&store, &of_tool).await.unwrap().len(), 41);
        ledger.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_line_for_a_person_shows_what_a_caller_hid() {
    let desk = Desk::new();
    let ledger = desk.ledger().await;
    let hostile = "x\u{1b}[2Jy\u{202e}z\nstart forged\u{200b}";
    let known = known(Class::Read);
    let record = Record {
        tool: Some(hostile),
        ..known.record()
    };
    ledger
        .refuse(record, &Refusal::new(RefusalCode::UnknownTool, ""), &[], soon())
        .await
        .unwrap();
    let entry = audit::show(&desk.store().await, known.call)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(entry.tool(), Some(hostile), "the ledger keeps it as it was");
    let line = entry.to_string();
    assert!(
        line.contains(r"x\u{1b}[2Jy\u{202e}z\nstart forged\u{200b}"),
        "{line}"
    );
    assert!(!line.chars().any(char::is_control), "{line}");
    assert!(
        line.contains(" unknown-tool 0 sent by corp/ada@north, call "),
        "{line}"
    );
}

#[tokio::test]
async fn a_row_that_is_filed_under_another_name_than_it_says_is_reported() {
    for (set, column) in [
        ("kind = 'refusal'", "kind"),
        ("time = time + 1", "time"),
        ("call = zeroblob(16)", "call"),
        ("position = position + 75", "seq"),
        ("body = '{}'", "body"),
    ] {
        let desk = Desk::new();
        let ledger = desk.ledger().await;
        call(&ledger, Class::Read).await.unwrap();
        let mut other = desk.other().await;
        let sql = format!("UPDATE ledger SET {set} WHERE position % 1099511627776 = 2");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut other)
            .await
            .unwrap();
        let fault = audit::tail(&desk.store().await, &LedgerFilter::default())
            .await
            .unwrap_err();
        match fault {
            ExportFault::Entry(EntryFault::Column { column: found, .. }) => assert_eq!(found, column),
            ExportFault::Entry(EntryFault::Body { .. }) => assert_eq!(column, "body"),
            other => panic!("{column}: {other:?}"),
        }
        if ["kind", "time", "call"].contains(&column) {
            // An export does not show it, so that the store has to be asked.
            let mut report = crate::desk::verify(&desk.export().await);
            assert!(report.sound(), "{column}: {report}");
            audit::check_filing(&desk.store().await, &mut report)
                .await
                .unwrap();
            let found: Vec<_> = report.faults.iter().map(|hole| (hole.kind, hole.seq)).collect();
            assert_eq!(found, [(audit::HoleKind::Misfiled, Some(2))], "{column}");
        }
    }
}

#[tokio::test]
async fn a_part_of_a_ledger_is_verified_as_a_part() {
    let desk = Desk::new();
    for _ in 0..2 {
        let ledger = desk.ledger().await;
        for _ in 0..20 {
            call(&ledger, Class::Read).await.unwrap();
        }
        ledger.close().await.unwrap();
    }
    let store = desk.store().await;
    let whole = bodies(&desk.export().await);
    let middle = whole[30]["time"].as_str().unwrap().parse().unwrap();
    let chain = whole[0]["chain"].as_str().unwrap().parse().unwrap();
    for selection in [
        Selection {
            since: Some(middle),
            chain: None,
        },
        Selection {
            since: None,
            chain: Some(chain),
        },
    ] {
        let mut part = Vec::new();
        let entries = audit::export(&store, selection, &mut part).await.unwrap();
        assert!(entries > 5 && entries < whole.len() as u64);
        let partial = VerifyOptions {
            partial: true,
            ..VerifyOptions::default()
        };
        let report = audit::verify(&part[..], partial).unwrap();
        assert!(report.sound(), "{report}");
        assert!(report.to_string().contains("read as a part"), "{report}");
        // As a whole it has holes.
        assert!(
            !audit::verify(&part[..], VerifyOptions::default())
                .unwrap()
                .sound()
        );
    }
}

#[tokio::test]
async fn a_long_ledger_is_exported_in_pages_and_without_loss() {
    let mut desk = Desk::new();
    desk.options.checkpoint_every = 400;
    let ledger = desk.ledger().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            for _ in 0..10 {
                call(&ledger, Class::Read).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    ledger.close().await.unwrap();
    let report = desk.verify().await;
    assert!(report.sound(), "{report}");
    assert_eq!(report.calls, 600);
    assert_eq!(report.entries, report.chains[0].last + 1);
}

#[test]
fn nothing_is_no_sound_ledger() {
    assert!(matches!(
        audit::verify(&b""[..], VerifyOptions::default()),
        Err(VerifyFault::Empty)
    ));
    let long = vec![b'x'; 5 * 1_024 * 1_024];
    assert!(matches!(
        audit::verify(&long[..], VerifyOptions::default()),
        Err(VerifyFault::LineLong { line: 1, .. })
    ));
}
