//! Rows go in whole batches or not at all, and come out as they went in.

use std::future::Future;
use std::task::Poll;

use model::Digest;
use store::{Durability, LedgerFilter, LedgerHead, LedgerOrder, LedgerRow, Store, StoreFault};
use uuid::Uuid;

use crate::engines::Engine;

pub(crate) fn row(chain: Uuid, seq: u64) -> LedgerRow {
    LedgerRow {
        chain,
        seq,
        time: 1_700_000_000_000_000 + i64::try_from(seq).unwrap(),
        kind: if seq == 0 { "start" } else { "intent" }.to_owned(),
        call: (seq > 0).then(|| Uuid::from_u128(u128::from(seq))),
        body: format!(
            "{{\"seq\":{seq},\"text\":\"ü ' \\\" \\u0000 🦀\",\"tool\":\"tool_{}\"}}",
            seq % 3
        ),
        prev: Digest::of("prev", &[&seq.to_be_bytes()]),
        hash: Digest::of("hash", &[&seq.to_be_bytes()]),
    }
}

pub(crate) fn rows(chain: Uuid, seqs: std::ops::Range<u64>) -> Vec<LedgerRow> {
    seqs.map(|seq| row(chain, seq)).collect()
}

async fn all(store: &Store) -> Vec<LedgerRow> {
    let filter = LedgerFilter {
        limit: 100_000,
        ..LedgerFilter::default()
    };
    store.ledger_read(&filter).await.unwrap()
}

#[tokio::test]
async fn rows_come_out_as_they_went_in_whatever_the_size_of_the_batch() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        let mut writer = store.ledger_writer().await.unwrap();
        let chain = Uuid::now_v7();
        let mut next = 0;
        // Around the length of one statement, and far beyond it; the durability alternates.
        for (length, durability) in [
            (1, Durability::Process),
            (2, Durability::Disk),
            (0, Durability::Disk),
            (15, Durability::Process),
            (16, Durability::Disk),
            (17, Durability::Process),
            (32, Durability::Disk),
            (1_000, Durability::Process),
        ] {
            writer
                .append(&rows(chain, next..next + length), durability)
                .await
                .unwrap();
            next += length;
        }
        assert_eq!(all(&store).await, rows(chain, 0..next), "{}", engine.name);
        assert_eq!(
            writer.head(chain).await.unwrap(),
            Some((next - 1, row(chain, next - 1).hash))
        );
        assert_eq!(writer.head(Uuid::nil()).await.unwrap(), None);
        writer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_with_one_bad_row_leaves_nothing() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        let mut writer = store.ledger_writer().await.unwrap();
        let chain = Uuid::now_v7();
        writer
            .append(&rows(chain, 0..1), Durability::Process)
            .await
            .unwrap();
        for length in [2_u64, 16, 17, 40] {
            let mut batch = rows(chain, 1..length);
            batch.push(row(chain, 0));
            let fault = writer.append(&batch, Durability::Disk).await.unwrap_err();
            assert!(
                matches!(fault, StoreFault::Conflict(_)),
                "{}: {fault:?}",
                engine.name
            );
            assert_eq!(all(&store).await.len(), 1, "{} {length}", engine.name);
        }
        // The writer goes on, on a new connection.
        writer
            .append(&rows(chain, 1..3), Durability::Process)
            .await
            .unwrap();
        assert_eq!(all(&store).await.len(), 3);
    }
}

#[tokio::test]
async fn a_write_that_is_given_up_arrives_whole_or_not_at_all_and_the_writer_goes_on() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        let mut writer = store.ledger_writer().await.unwrap();
        let chain = Uuid::now_v7();
        let mut next = 0;
        for polls in 0..12 {
            let batch = rows(chain, next..next + 40);
            {
                let mut append = std::pin::pin!(writer.append(&batch, Durability::Process));
                for _ in 0..polls {
                    let once =
                        std::future::poll_fn(|context| Poll::Ready(append.as_mut().poll(context).is_ready()));
                    if once.await {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            // A batch that is still under way may land between the look and the next write; then that one is refused.
            loop {
                next = writer.head(chain).await.unwrap().map_or(0, |(seq, _)| seq + 1);
                match writer
                    .append(&rows(chain, next..next + 1), Durability::Process)
                    .await
                {
                    Ok(()) => break,
                    Err(StoreFault::Conflict(_) | StoreFault::Locked(_)) => {}
                    Err(fault) => panic!("{}: {fault:?}", engine.name),
                }
            }
            next += 1;
        }
        let rows = all(&store).await;
        let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
        assert_eq!(
            seqs,
            (0..u64::try_from(rows.len()).unwrap()).collect::<Vec<_>>(),
            "{}",
            engine.name
        );
    }
}

#[tokio::test]
async fn a_filter_gives_what_it_says() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        let mut writer = store.ledger_writer().await.unwrap();
        let (one, two) = (Uuid::from_u128(2), Uuid::from_u128(1));
        // The second chain is of a later time.
        let mut later = rows(two, 0..10);
        later.iter_mut().for_each(|row| row.time += 5);
        writer
            .append(&rows(one, 0..10), Durability::Process)
            .await
            .unwrap();
        writer.append(&later, Durability::Process).await.unwrap();
        let any = LedgerFilter::default();
        let check = async |filter: LedgerFilter, expected: &[(Uuid, u64)]| {
            let rows = store.ledger_read(&filter).await.unwrap();
            let found: Vec<_> = rows.iter().map(|row| (row.chain, row.seq)).collect();
            assert_eq!(found, expected, "{} {filter:?}", engine.name);
        };
        #[rustfmt::skip]
        let cases = [
            (LedgerFilter { chain: Some(one), after: Some(7), ..any.clone() }, &[(one, 8), (one, 9)][..]),
            (LedgerFilter { chain: Some(one), after: Some(9), ..any.clone() }, &[]),
            (LedgerFilter { chain: Some(one), after: Some(u64::MAX), ..any.clone() }, &[]),
            (LedgerFilter { after: Some(8), ..any.clone() }, &[(one, 9), (two, 9)]),
            (LedgerFilter { chain: Some(Uuid::nil()), ..any.clone() }, &[]),
            (LedgerFilter { call: Some(Uuid::from_u128(3)), ..any.clone() }, &[(one, 3), (two, 3)]),
            (LedgerFilter { since: Some(later[8].time), ..any.clone() }, &[(two, 8), (two, 9)]),
            (LedgerFilter { kinds: vec!["start".into(), "stop".into()], ..any.clone() }, &[(one, 0), (two, 0)]),
            (LedgerFilter { kinds: vec!["stop".into()], ..any.clone() }, &[]),
            (LedgerFilter { tool: Some("tool_2".into()), chain: Some(two), ..any.clone() }, &[(two, 2), (two, 5), (two, 8)]),
            // Neither a wildcard nor a part of a name matches.
            (LedgerFilter { tool: Some("tool%2".into()), ..any.clone() }, &[]),
            (LedgerFilter { tool: Some("tool".into()), ..any.clone() }, &[]),
            (LedgerFilter { tool: Some("TOOL_2".into()), ..any.clone() }, &[]),
            (LedgerFilter { tool: Some("_ool_2".into()), ..any.clone() }, &[]),
            (LedgerFilter { tool: Some("' OR 1=1 --".into()), ..any.clone() }, &[]),
            (LedgerFilter { limit: 2, ..any.clone() }, &[(one, 0), (one, 1)]),
            (LedgerFilter { limit: 0, ..any.clone() }, &[]),
        ];
        for (filter, expected) in cases {
            check(filter, expected).await;
        }
        // The latest first, whichever chain it is in.
        let newest = LedgerFilter {
            order: LedgerOrder::Newest,
            ..LedgerFilter::default()
        };
        let limited = |limit| LedgerFilter {
            limit,
            ..newest.clone()
        };
        let expected = [
            (two, 9),
            (two, 8),
            (two, 7),
            (two, 6),
            (two, 5),
            (one, 9),
            (two, 4),
            (one, 8),
        ];
        // Of the same time are (two, 4) and (one, 9); the larger place goes first.
        for limit in 0..=8 {
            check(limited(limit), &expected[..usize::try_from(limit).unwrap()]).await;
        }
        #[rustfmt::skip]
        let cases = [
            (LedgerFilter { chain: Some(one), limit: 1, ..newest.clone() }, &[(one, 9)][..]),
            (LedgerFilter { kinds: vec!["start".into()], ..newest.clone() }, &[(two, 0), (one, 0)]),
            (LedgerFilter { call: Some(Uuid::from_u128(3)), limit: 1, ..newest }, &[(two, 3)]),
        ];
        for (filter, expected) in cases {
            check(filter, expected).await;
        }
    }
}

#[tokio::test]
async fn heads_and_starts_are_those_of_every_chain() {
    for engine in Engine::all().await {
        let store = engine.open().await;
        assert_eq!(store.ledger_heads().await.unwrap(), []);
        assert_eq!(store.ledger_starts().await.unwrap(), []);
        let mut writer = store.ledger_writer().await.unwrap();
        let chains: Vec<Uuid> = (0..5).map(|_| Uuid::now_v7()).collect();
        let mut expected = Vec::new();
        for (chain, length) in chains.iter().zip([1_u64, 30, 2, 7, 1]) {
            writer
                .append(&rows(*chain, 0..length), Durability::Process)
                .await
                .unwrap();
            expected.push(LedgerHead {
                chain: *chain,
                seq: length - 1,
                hash: row(*chain, length - 1).hash,
            });
        }
        expected.sort_by_key(|head| head.chain);
        assert_eq!(store.ledger_heads().await.unwrap(), expected, "{}", engine.name);
        let starts: Vec<_> = store.ledger_starts().await.unwrap();
        assert_eq!(
            starts,
            expected.iter().map(|head| row(head.chain, 0)).collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn two_writers_cannot_write_the_same_place_of_a_chain() {
    for engine in Engine::shared().await {
        let (one, two) = (engine.open().await, engine.open().await);
        let (mut first, mut second) = (
            one.ledger_writer().await.unwrap(),
            two.ledger_writer().await.unwrap(),
        );
        let chain = Uuid::now_v7();
        let batch = rows(chain, 0..1);
        let (a, b) = tokio::join!(
            first.append(&batch, Durability::Process),
            second.append(&batch, Durability::Disk)
        );
        assert!(a.is_ok() != b.is_ok(), "{}: {a:?} {b:?}", engine.name);
        let fault = a.err().or(b.err()).unwrap();
        assert!(matches!(fault, StoreFault::Conflict(_)), "{fault:?}");
    }
}

#[tokio::test]
async fn a_row_that_is_no_entry_is_reported_and_not_skipped() {
    for engine in Engine::shared().await {
        let store = engine.open().await;
        let mut writer = store.ledger_writer().await.unwrap();
        writer
            .append(&rows(Uuid::now_v7(), 0..2), Durability::Process)
            .await
            .unwrap();
        let (short, long) = if engine.name == "postgres" {
            ("'\\x00'", "1")
        } else {
            ("x'00'", "1")
        };
        engine
            .run(&format!(
                "UPDATE ledger SET hash = {short} WHERE position % 1099511627776 = {long}"
            ))
            .await;
        for fault in [
            store.ledger_read(&LedgerFilter::default()).await.err(),
            store.ledger_heads().await.err(),
        ] {
            assert!(
                matches!(fault, Some(StoreFault::Corrupt(_))),
                "{}: {fault:?}",
                engine.name
            );
        }
    }
}
