//! Each cause of failure, brought about for real, has its own name; and what failed works again once the cause is gone.

use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use store::{Durability, LedgerFilter, Store, StoreFault, StoreOptions, StoreUrl};
use uuid::Uuid;

use crate::engines::Engine;
use crate::ledger::rows;

fn path(engine: &Engine) -> std::path::PathBuf {
    engine.folder.path().join("t.db")
}

#[tokio::test]
async fn a_full_store_says_full_and_goes_on_when_there_is_room_again() {
    for engine in [Engine::sqlite(), Engine::all().await.remove(1)] {
        let options = StoreOptions {
            bytes_max: Some(200_000),
            ..StoreOptions::default()
        };
        let store = Store::open(&engine.url, options).await.unwrap();
        let mut writer = store.ledger_writer().await.unwrap();
        let chain = Uuid::now_v7();
        let mut next = 0;
        let fault = loop {
            match writer
                .append(&rows(chain, next..next + 40), Durability::Process)
                .await
            {
                Ok(()) => next += 40,
                Err(fault) => break fault,
            }
            assert!(next < 10_000, "the limit is not kept");
        };
        assert!(matches!(fault, StoreFault::Full(_)), "{}: {fault:?}", engine.name);
        assert!(next > 40, "something fits");
        // The batch that failed left nothing, and it is still full.
        assert_eq!(
            writer.head(chain).await.unwrap().map(|(seq, _)| seq),
            Some(next - 1)
        );
        assert!(
            writer
                .append(&rows(chain, next..next + 40), Durability::Process)
                .await
                .is_err()
        );
        if engine.name == "sqlite" {
            engine
                .run("DELETE FROM ledger WHERE position % 1099511627776 < 100")
                .await;
            writer
                .append(&rows(chain, next..next + 40), Durability::Process)
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn a_file_at_its_limit_holds_no_page_more() {
    let engine = Engine::sqlite();
    let options = |bytes_max| StoreOptions {
        bytes_max: Some(bytes_max),
        ..StoreOptions::default()
    };
    // 40 pages of 4 KiB, and a little that is not a whole page.
    let store = Store::open(&engine.url, options(40 * 4_096 + 4_095))
        .await
        .unwrap();
    let mut writer = store.ledger_writer().await.unwrap();
    let chain = Uuid::now_v7();
    let mut next = 0;
    while writer
        .append(&rows(chain, next..next + 1), Durability::Process)
        .await
        .is_ok()
    {
        next += 1;
    }
    // As somebody else sees it who knows of no limit.
    let mut other = SqliteConnection::connect(&engine.text).await.unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
        .fetch_one(&mut other)
        .await
        .unwrap();
    assert_eq!(pages, 40);
    // One page more lets one more row in.
    let store = Store::open(&engine.url, options(41 * 4_096)).await.unwrap();
    let mut writer = store.ledger_writer().await.unwrap();
    writer
        .append(&rows(chain, next..next + 1), Durability::Process)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_locked_store_says_locked_in_time_and_goes_on_when_it_is_free() {
    let engine = Engine::sqlite();
    let options = StoreOptions {
        busy_timeout: Duration::from_millis(100),
        ..StoreOptions::default()
    };
    let store = Store::open(&engine.url, options).await.unwrap();
    let mut writer = store.ledger_writer().await.unwrap();
    let chain = Uuid::now_v7();
    let mut holder = SqliteConnection::connect(&engine.text).await.unwrap();
    sqlx::raw_sql("BEGIN EXCLUSIVE")
        .execute(&mut holder)
        .await
        .unwrap();
    for length in [1, 40] {
        let fault = writer
            .append(&rows(chain, 0..length), Durability::Process)
            .await
            .unwrap_err();
        assert!(matches!(fault, StoreFault::Locked(_)), "{fault:?}");
    }
    // In WAL mode readers go on.
    assert_eq!(store.ledger_read(&LedgerFilter::default()).await.unwrap(), []);
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    writer
        .append(&rows(chain, 0..1), Durability::Process)
        .await
        .unwrap();
}

/// This test has one thread: whoever waited on it would keep the lock from being given up, and wait for as long as it may.
#[tokio::test]
async fn a_lock_is_waited_for_beside_the_runtime_and_not_on_it() {
    let engine = Engine::sqlite();
    let patience = Duration::from_secs(20);
    let options = StoreOptions {
        busy_timeout: patience,
        ..StoreOptions::default()
    };
    let store = Store::open(&engine.url, options).await.unwrap();
    let mut writer = store.ledger_writer().await.unwrap();
    let chain = Uuid::now_v7();
    writer
        .append(&rows(chain, 0..1), Durability::Process)
        .await
        .unwrap();
    let mut holder = SqliteConnection::connect(&engine.text).await.unwrap();
    let mut next = 1;
    for durability in [Durability::Process, Durability::Disk] {
        for length in [1, 40] {
            sqlx::raw_sql("BEGIN IMMEDIATE")
                .execute(&mut holder)
                .await
                .unwrap();
            let entries = rows(chain, next..next + length);
            let began = Instant::now();
            let (written, released) = tokio::join!(
                biased;
                writer.append(&entries, durability),
                sqlx::raw_sql("ROLLBACK").execute(&mut holder)
            );
            released.unwrap();
            written.unwrap();
            assert!(began.elapsed() < patience, "{durability:?} {length}");
            next += length;
        }
    }
    let everything = LedgerFilter::default();
    assert_eq!(store.ledger_read(&everything).await.unwrap().len(), 83);
}

#[tokio::test]
async fn the_log_is_folded_into_the_file_before_it_has_grown_much_past_its_bound() {
    let engine = Engine::sqlite();
    let store = engine.open().await;
    let mut writer = store.ledger_writer().await.unwrap();
    let chain = Uuid::now_v7();
    let log = path(&engine).with_extension("db-wal");
    let size = |file: &std::path::Path| std::fs::metadata(file).unwrap().len();
    for batch in 0..60 {
        let mut entries = rows(chain, batch * 16..(batch + 1) * 16);
        for entry in &mut entries {
            entry.body = "x".repeat(30_000);
        }
        writer.append(&entries, Durability::Process).await.unwrap();
        // About 4,000 pages: what a row takes is estimated from its text, and here it has pages of its own besides.
        assert!(size(&log) < 22_000_000, "{batch}: {}", size(&log));
    }
    assert!(size(&path(&engine)) > 15_000_000);
}

#[tokio::test]
async fn a_read_only_file_says_io() {
    let engine = Engine::sqlite();
    engine.open().await.close().await;
    // Tests may run as root, whom no file mode stops, so that SQLite itself is told to open it read only.
    let mut connection = SqliteConnectOptions::new()
        .filename(path(&engine))
        .read_only(true)
        .connect()
        .await
        .unwrap();
    let error = sqlx::raw_sql("DELETE FROM api_key")
        .execute(&mut connection)
        .await
        .unwrap_err();
    let fault = StoreFault::from(error);
    assert!(matches!(fault, StoreFault::Io(_)), "{fault:?}");
}

#[tokio::test]
async fn a_damaged_file_says_corrupt() {
    let engine = Engine::sqlite();
    let store = engine.open().await;
    let mut writer = store.ledger_writer().await.unwrap();
    writer
        .append(&rows(Uuid::now_v7(), 0..200), Durability::Process)
        .await
        .unwrap();
    writer.close().await.unwrap();
    store.close().await;
    let mut bytes = std::fs::read(path(&engine)).unwrap();
    for byte in &mut bytes[4_096..] {
        *byte = 0xA5;
    }
    std::fs::write(path(&engine), bytes).unwrap();
    let fault = match Store::open(&engine.url, StoreOptions::default()).await {
        Err(fault) => fault,
        Ok(store) => store.ledger_read(&LedgerFilter::default()).await.unwrap_err(),
    };
    assert!(matches!(fault, StoreFault::Corrupt(_)), "{fault:?}");
}

#[tokio::test]
async fn a_server_that_ends_our_session_says_unreachable_and_the_next_write_connects_again() {
    let Some(engine) = Engine::postgres().await else {
        return;
    };
    let mark = format!("mark_{}", Uuid::now_v7().simple());
    let url = format!("{}&application_name={mark}", engine.text);
    let url = StoreUrl::parse(&url, std::path::Path::new("/")).unwrap();
    let store = Store::open(&url, StoreOptions::default()).await.unwrap();
    let mut writer = store.ledger_writer().await.unwrap();
    let chain = Uuid::now_v7();
    writer
        .append(&rows(chain, 0..1), Durability::Process)
        .await
        .unwrap();
    engine
        .run(&format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '{mark}'"
        ))
        .await;
    let fault = writer
        .append(&rows(chain, 1..2), Durability::Disk)
        .await
        .unwrap_err();
    assert!(matches!(fault, StoreFault::Unreachable(_)), "{fault:?}");
    assert_eq!(writer.head(chain).await.unwrap().map(|(seq, _)| seq), Some(0));
    writer.append(&rows(chain, 1..2), Durability::Disk).await.unwrap();
}

#[tokio::test]
async fn a_locked_table_says_locked_on_postgres() {
    let Some(engine) = Engine::postgres().await else {
        return;
    };
    let store = engine.open().await;
    let mut holder = sqlx::PgConnection::connect(&engine.text).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE api_key IN ACCESS EXCLUSIVE MODE")
        .execute(&mut holder)
        .await
        .unwrap();
    let mut second = sqlx::PgConnection::connect(&engine.text).await.unwrap();
    let error = sqlx::raw_sql("SET lock_timeout = 50; SELECT * FROM api_key")
        .execute(&mut second)
        .await
        .unwrap_err();
    assert!(matches!(StoreFault::from(error), StoreFault::Locked(_)));
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    assert_eq!(store.keys_list().await.unwrap(), []);
}
