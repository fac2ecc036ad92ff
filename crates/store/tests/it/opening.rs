//! Opening: what is created, what is refused, and that many may do it at once.

use std::path::Path;

use sqlx::Connection;
use store::{Store, StoreFault, StoreOptions, StoreUrl};

use crate::engines::Engine;

#[tokio::test]
async fn many_processes_may_open_a_new_store_at_once() {
    for engine in Engine::shared().await {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let url = engine.url.clone();
            tasks.spawn(async move { Store::open(&url, StoreOptions::default()).await.map(|_| ()) });
        }
        for opened in tasks.join_all().await {
            assert_eq!(opened, Ok(()), "{}", engine.name);
        }
    }
}

#[tokio::test]
async fn a_new_file_is_opened_by_many_at_once_again_and_again() {
    // Each file is new, so that each opening may be the one that switches it to write-ahead logging.
    for _ in 0..40 {
        let engine = Engine::sqlite();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let url = engine.url.clone();
            tasks.spawn(async move { Store::open(&url, StoreOptions::default()).await.map(|_| ()) });
        }
        for opened in tasks.join_all().await {
            assert_eq!(opened, Ok(()));
        }
    }
}

#[tokio::test]
async fn what_was_kept_is_there_when_it_is_opened_again() {
    for engine in Engine::shared().await {
        let store = engine.open().await;
        store
            .secret_get_or_create("x", || model::SecretBytes::new(Box::new(vec![7])))
            .await
            .unwrap();
        store.clone().close().await;
        let gone = store.secret_get("x").await;
        assert!(matches!(gone, Err(StoreFault::Unreachable(_))), "a closed store");
        assert!(
            engine.open().await.secret_get("x").await.unwrap().is_some(),
            "{}",
            engine.name
        );
    }
}

#[tokio::test]
async fn two_stores_in_memory_are_two() {
    let url = StoreUrl::parse("sqlite::memory:", Path::new("/")).unwrap();
    let one = Store::open(&url, StoreOptions::default()).await.unwrap();
    let two = Store::open(&url, StoreOptions::default()).await.unwrap();
    one.secret_get_or_create("x", || model::SecretBytes::new(Box::new(vec![7])))
        .await
        .unwrap();
    assert!(two.secret_get("x").await.unwrap().is_none());
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_and_its_helpers_are_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let engine = Engine::sqlite();
    let store = engine.open().await;
    let mut writer = store.ledger_writer().await.unwrap();
    writer
        .append(
            &crate::ledger::rows(uuid::Uuid::now_v7(), 0..1),
            store::Durability::Process,
        )
        .await
        .unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(engine.folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{entry:?}"
        );
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["t.db", "t.db-shm", "t.db-wal"]);
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let url = StoreUrl::parse("sqlite:no/such/t.db", folder.path()).unwrap();
    let fault = Store::open(&url, StoreOptions::default()).await.unwrap_err();
    assert!(
        matches!(&fault, StoreFault::Io(text) if text.contains("no/such` does not exist; create it")),
        "{fault:?}"
    );
    assert!(!folder.path().join("no").exists());
}

#[tokio::test]
async fn a_store_of_a_newer_build_is_refused_and_left_as_it_is() {
    for engine in Engine::shared().await {
        engine.open().await.close().await;
        let checksum = if engine.name == "postgres" {
            "'\\x00'"
        } else {
            "x'00'"
        };
        engine
            .run(&format!(
                "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time)
                 VALUES (9000, 'from the future', '2030-01-01 00:00:00', true, {checksum}, 0)"
            ))
            .await;
        let fault = Store::open(&engine.url, StoreOptions::default())
            .await
            .unwrap_err();
        assert!(
            matches!(&fault, StoreFault::Schema(text) if text.contains("9000") && text.contains("newer")),
            "{}: {fault:?}",
            engine.name
        );
        assert!(
            fault
                .to_string()
                .ends_with("run the build that wrote it or a newer one"),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn a_migration_that_was_changed_afterwards_is_refused() {
    for engine in Engine::shared().await {
        engine.open().await.close().await;
        let checksum = if engine.name == "postgres" {
            "'\\x00'"
        } else {
            "x'00'"
        };
        engine
            .run(&format!("UPDATE _sqlx_migrations SET checksum = {checksum}"))
            .await;
        let fault = Store::open(&engine.url, StoreOptions::default())
            .await
            .unwrap_err();
        assert!(
            matches!(&fault, StoreFault::Schema(_)),
            "{}: {fault:?}",
            engine.name
        );
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let engine = Engine::sqlite();
    let path = engine.folder.path().join("t.db");
    let text = "this is a letter to a friend ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let fault = Store::open(&engine.url, StoreOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(fault, StoreFault::Corrupt(_)), "{fault:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn somebody_elses_database_keeps_its_tables() {
    let engine = Engine::sqlite();
    engine
        .run("CREATE TABLE ledger (x INTEGER); INSERT INTO ledger VALUES (7)")
        .await;
    let fault = Store::open(&engine.url, StoreOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&fault, StoreFault::Other(text) if text.contains("already exists")),
        "{fault:?}"
    );
    let mut other = sqlx::SqliteConnection::connect(&engine.text).await.unwrap();
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_master")
        .fetch_all(&mut other)
        .await
        .unwrap();
    assert_eq!(tables, ["ledger"], "the migration left nothing behind");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_in_time() {
    // Bound and not listening to PostgreSQL: it accepts, and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let options = StoreOptions {
        connect_timeout: std::time::Duration::from_millis(300),
        ..StoreOptions::default()
    };
    for address in [silent.local_addr().unwrap(), closed] {
        let url = StoreUrl::parse(&format!("postgres://u:canary-77@{address}/x"), Path::new("/")).unwrap();
        let start = std::time::Instant::now();
        let fault = Store::open(&url, options.clone()).await.unwrap_err();
        assert!(matches!(fault, StoreFault::Unreachable(_)), "{fault:?}");
        assert!(!fault.to_string().contains("canary"), "{fault}");
        assert!(start.elapsed().as_secs() < 5);
    }
}

#[tokio::test]
async fn the_size_is_told_with_its_limit() {
    for engine in Engine::all().await {
        let options = StoreOptions {
            bytes_max: Some(10_000_000),
            ..StoreOptions::default()
        };
        let store = Store::open(&engine.url, options).await.unwrap();
        let size = store.size().await.unwrap();
        assert!(size.bytes > 10_000, "{} {size:?}", engine.name);
        assert_eq!(size.bytes_max.is_some(), engine.name != "postgres");
    }
}
