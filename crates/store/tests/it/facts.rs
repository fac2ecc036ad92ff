//! Facts: the one value, or a fault, in time; never the first of many, never a write.

use std::path::Path;
use std::time::Duration;

use model::FactValue;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use store::{FactDatabase, FactFault, FactQuery, FactRow, StoreFault, StoreUrl};
use tokio::time::Instant;

use crate::engines::Engine;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn query(text: &str) -> FactQuery {
    FactQuery::parse(text).unwrap()
}

const TABLES: &str = "
    CREATE TABLE invoice (id TEXT PRIMARY KEY, number BIGINT, tenant TEXT);
    INSERT INTO invoice VALUES ('inv-1', 1, 'north'), ('inv-2', 2, 'south'), ('inv-3', 3, NULL), ('inv-4', 4, 'south');
    CREATE TABLE member (tenant TEXT, subject TEXT);
    INSERT INTO member VALUES ('north', 'ada');
";

async fn ask(facts: &FactDatabase, text: &str, binds: &[&str]) -> Result<FactRow, FactFault> {
    let binds: Vec<String> = binds.iter().map(|bind| (*bind).to_owned()).collect();
    facts.query(&query(text), &binds, soon()).await
}

#[tokio::test]
async fn a_fact_is_one_value_and_nothing_else() {
    for engine in Engine::shared().await {
        engine.run(TABLES).await;
        let facts = FactDatabase::open(&engine.url, 2).await.unwrap();
        let text = |value: &str| Ok(FactRow::One(FactValue::Text(value.to_owned())));
        let owner = "select tenant from invoice where id = $1";
        for (sql, binds, expected) in [
            (owner, &["inv-1"][..], text("north")),
            (owner, &["inv-2"], text("south")),
            (owner, &["inv-3"], Ok(FactRow::Null)),
            (owner, &["inv-9"], Ok(FactRow::None)),
            (owner, &["' or 1 = 1 --"], Ok(FactRow::None)),
            (owner, &[""], Ok(FactRow::None)),
            (
                "select id from invoice where tenant = $1",
                &["south"],
                Ok(FactRow::Many),
            ),
            (
                "select id from invoice where tenant = $1 limit 1",
                &["south"],
                text("inv-2"),
            ),
            (
                "select count(*) from invoice",
                &[],
                Ok(FactRow::One(FactValue::Integer(4))),
            ),
            (
                "select id, tenant from invoice where id = $1",
                &["inv-1"],
                Err(FactFault::Columns(2)),
            ),
            (
                owner,
                &[],
                Err(FactFault::Binds {
                    expected: 1,
                    found: 0,
                }),
            ),
            (
                owner,
                &["a", "b"],
                Err(FactFault::Binds {
                    expected: 1,
                    found: 2,
                }),
            ),
        ] {
            assert_eq!(
                ask(&facts, sql, binds).await,
                expected,
                "{} {sql} {binds:?}",
                engine.name
            );
        }
        let member = "select count(*) > 0 from member where tenant = $1 and subject = $2";
        assert_eq!(
            ask(&facts, member, &["north", "ada"]).await.unwrap().truth(),
            Ok(Some(true))
        );
        assert_eq!(
            ask(&facts, member, &["south", "ada"]).await.unwrap().truth(),
            Ok(Some(false))
        );
        let nul = ask(&facts, owner, &["inv-1\0x"]).await;
        assert!(
            matches!(nul, Err(FactFault::Bind { placeholder: 1, .. })),
            "{nul:?}"
        );
    }
}

#[test]
fn a_row_is_read_as_the_type_that_is_needed_or_not_at_all() {
    use FactValue as V;
    let one = FactRow::One;
    for (row, text, truth, integer) in [
        (FactRow::None, Some(None), Some(None), Some(None)),
        (FactRow::Null, Some(None), Some(None), Some(None)),
        (FactRow::Many, None, None, None),
        (one(V::Text("1".into())), Some(Some("1")), None, None),
        (
            one(V::Integer(1)),
            Some(Some("1")),
            Some(Some(true)),
            Some(Some(1)),
        ),
        (
            one(V::Integer(0)),
            Some(Some("0")),
            Some(Some(false)),
            Some(Some(0)),
        ),
        (one(V::Integer(2)), Some(Some("2")), None, Some(Some(2))),
        (one(V::Truth(true)), None, Some(Some(true)), None),
    ] {
        assert_eq!(
            row.clone().text().ok(),
            text.map(|t| t.map(str::to_owned)),
            "{row:?}"
        );
        assert_eq!(row.clone().truth().ok(), truth, "{row:?}");
        assert_eq!(row.clone().integer().ok(), integer, "{row:?}");
    }
}

#[tokio::test]
async fn a_query_is_checked_before_it_is_needed() {
    for engine in Engine::shared().await {
        engine.run(TABLES).await;
        let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
        let check = async |text: &str| facts.check(&query(text), soon()).await;
        assert_eq!(check("select tenant from invoice where id = $1").await, Ok(()));
        assert_eq!(
            check("select id, tenant from invoice").await,
            Err(FactFault::Columns(2))
        );
        for text in [
            "select tenant from invoices",
            "select tennant from invoice",
            "select from where",
        ] {
            let fault = check(text).await.unwrap_err();
            assert!(
                matches!(fault, FactFault::Query(_)),
                "{} {text}: {fault:?}",
                engine.name
            );
        }
        // The connection is good for the next question.
        assert_eq!(check("select tenant from invoice where id = $1").await, Ok(()));
    }
}

#[tokio::test]
async fn nothing_can_be_written_through_it() {
    for engine in Engine::shared().await {
        engine.run(TABLES).await;
        let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
        let writes: &[&str] = if engine.name == "postgres" {
            &[
                "with x as (delete from invoice returning id) select count(*) from x",
                "with x as (insert into member values ('a', 'b') returning 1) select count(*) from x",
                "select nextval('counter')",
                "select id into stolen from invoice",
                "select id from invoice for update",
            ]
        } else {
            &["with x as (select 1) insert into member values ('a', 'b') returning 1"]
        };
        if engine.name == "postgres" {
            engine.run("CREATE SEQUENCE counter").await;
        }
        for text in writes {
            let fault = ask(&facts, text, &[]).await.unwrap_err();
            assert!(
                // `Columns`: it gives no value, and was not run.
                matches!(
                    fault,
                    FactFault::Query(_) | FactFault::Database(StoreFault::Io(_)) | FactFault::Columns(0)
                ),
                "{} {text}: {fault:?}",
                engine.name
            );
        }
        let count = ask(&facts, "select count(*) from invoice", &[]).await;
        assert_eq!(count, Ok(FactRow::One(FactValue::Integer(4))));
    }
}

#[tokio::test]
async fn a_query_that_runs_too_long_ends_at_its_deadline_and_leaves_nothing_running() {
    for engine in Engine::shared().await {
        engine.run(TABLES).await;
        let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
        let endless =
            query("with recursive n (i) as (select 1 union all select i + 1 from n) select max(i) from n");
        for _ in 0..3 {
            let start = Instant::now();
            let answer = facts
                .query(&endless, &[], start + Duration::from_millis(100))
                .await;
            assert_eq!(answer, Err(FactFault::Timeout), "{}", engine.name);
            assert!(start.elapsed() < Duration::from_secs(5));
            // With one connection allowed, this shows that the place was given back.
            assert!(ask(&facts, "select 1", &[]).await.is_ok(), "{}", engine.name);
        }
        let past = facts
            .query(&query("select 1"), &[], Instant::now() - Duration::from_millis(1))
            .await;
        assert!(matches!(past, Err(FactFault::Timeout)), "{past:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_a_timeout() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!("postgres://u@{}/x?sslmode=disable", silent.local_addr().unwrap());
    let url = StoreUrl::parse(&text, Path::new("/")).unwrap();
    // Opening makes a first connection; whoever opens sets the time.
    let opened = tokio::time::timeout(Duration::from_millis(200), FactDatabase::open(&url, 1)).await;
    assert!(opened.is_err());
}

#[tokio::test]
async fn questions_asked_at_once_share_the_connections() {
    for engine in Engine::shared().await {
        engine.run(TABLES).await;
        let facts = FactDatabase::open(&engine.url, 2).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..50 {
            let facts = facts.clone();
            tasks.spawn(async move {
                let id = format!("inv-{}", n % 2 + 1);
                let answer = ask(&facts, "select tenant from invoice where id = $1", &[&id]).await;
                (n % 2, answer.unwrap().text().unwrap().unwrap())
            });
        }
        for (n, owner) in tasks.join_all().await {
            assert_eq!(owner, ["north", "south"][n], "{}", engine.name);
        }
    }
}

#[tokio::test]
async fn a_missing_file_is_a_fault_and_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let url = StoreUrl::parse("sqlite:facts.db", folder.path()).unwrap();
    let fault = FactDatabase::open(&url, 1).await.unwrap_err();
    assert!(
        matches!(&fault, FactFault::Database(StoreFault::Io(text)) if text.contains("facts.db")),
        "{fault:?}"
    );
    assert!(!folder.path().join("facts.db").exists());
    assert!(FactDatabase::open(&StoreUrl::Memory, 1).await.is_err());
}

#[tokio::test]
async fn a_locked_file_is_a_fault_in_time() {
    let engine = Engine::sqlite();
    engine.run(TABLES).await;
    let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
    let mut holder = SqliteConnection::connect(&engine.text).await.unwrap();
    sqlx::raw_sql("BEGIN EXCLUSIVE")
        .execute(&mut holder)
        .await
        .unwrap();
    let fault = ask(&facts, "select count(*) from invoice", &[])
        .await
        .unwrap_err();
    assert!(
        matches!(fault, FactFault::Database(StoreFault::Locked(_))),
        "{fault:?}"
    );
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    assert!(ask(&facts, "select count(*) from invoice", &[]).await.is_ok());
}

#[tokio::test]
async fn a_file_that_is_replaced_or_removed_is_noticed() {
    let engine = Engine::sqlite();
    engine.run(TABLES).await;
    let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
    let owner = "select tenant from invoice where id = $1";
    assert_eq!(
        ask(&facts, owner, &["inv-1"]).await.unwrap().text(),
        Ok(Some("north".into()))
    );
    let path = engine.folder.path().join("t.db");
    let next = engine.folder.path().join("next.db");
    std::fs::copy(&path, &next).unwrap();
    let mut other = SqliteConnection::connect(&format!("sqlite:{}", next.display()))
        .await
        .unwrap();
    sqlx::raw_sql("UPDATE invoice SET tenant = 'west'")
        .execute(&mut other)
        .await
        .unwrap();
    other.close().await.unwrap();
    std::fs::rename(&next, &path).unwrap();
    assert_eq!(
        ask(&facts, owner, &["inv-1"]).await.unwrap().text(),
        Ok(Some("west".into()))
    );
    std::fs::remove_file(&path).unwrap();
    let fault = ask(&facts, owner, &["inv-1"]).await.unwrap_err();
    assert!(
        matches!(fault, FactFault::Database(StoreFault::Io(_))),
        "{fault:?}"
    );
}

#[tokio::test]
async fn a_value_that_is_no_fact_says_what_to_do() {
    let engine = Engine::sqlite();
    engine.run("CREATE TABLE t (x)").await;
    let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
    for (text, found) in [("select 1.5", "REAL"), ("select x'00'", "BLOB")] {
        let fault = ask(&facts, text, &[]).await.unwrap_err();
        assert!(
            matches!(&fault, FactFault::Type { found: kind, .. } if kind == found),
            "{fault:?}"
        );
        assert!(fault.to_string().contains("cast"), "{fault}");
    }
}

#[tokio::test]
async fn postgres_takes_a_text_for_a_column_of_another_type_or_says_how() {
    let Some(engine) = Engine::postgres().await else {
        return;
    };
    let id = "0198e7a2-3c4d-7e5f-8a6b-112233445566";
    engine
        .run(&format!(
            "CREATE TYPE colour AS ENUM ('red', 'green');
             CREATE DOMAIN short AS varchar(10);
             CREATE TABLE t (small SMALLINT, whole INTEGER, big BIGINT, id UUID, yes BOOLEAN, colour colour, price NUMERIC,
                             day DATE, fixed CHAR(4), vary VARCHAR(9), dom short, owner TEXT);
             INSERT INTO t VALUES (7, 70, 700, '{id}', true, 'red', 9.5, '2030-01-31', 'ab', 'cd', 'ef', 'north')"
        ))
        .await;
    let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
    for (column, value, other) in [
        ("small", "7", "8"),
        ("whole", "70", "71"),
        ("big", "700", "701"),
        ("big", "700", "-9223372036854775808"),
        ("id", id, "0198e7a2-3c4d-7e5f-8a6b-112233445567"),
        ("yes", "true", "false"),
        ("colour", "red", "green"),
        ("fixed", "ab", "ac"),
        ("vary", "cd", "ce"),
        ("dom", "ef", "eg"),
        ("price::text", "9.5", "9.6"),
        ("day::text", "2030-01-31", "2030-02-01"),
    ] {
        let text = format!("select owner from t where {column} = $1");
        assert_eq!(
            ask(&facts, &text, &[value]).await.unwrap().text(),
            Ok(Some("north".into())),
            "{text}"
        );
        assert_eq!(
            ask(&facts, &text, &[other]).await,
            Ok(FactRow::None),
            "{text} {other}"
        );
    }
    for (column, wanted, values) in [
        (
            "small",
            "smallint",
            &["canary-77", "40000", "+7", "07", " 7", "7.0", ""][..],
        ),
        ("whole", "integer", &["canary-77", "3000000000"]),
        ("big", "bigint", &["canary-77", "9223372036854775808"]),
        (
            "id",
            "uuid",
            &[
                "canary-77",
                "0198E7A2-3C4D-7E5F-8A6B-112233445566",
                "0198e7a23c4d7e5f8a6b112233445566",
            ],
        ),
        ("yes", "boolean", &["canary-77", "1", "TRUE"]),
    ] {
        for value in values {
            let text = format!("select owner from t where {column} = $1");
            let fault = ask(&facts, &text, &[value]).await.unwrap_err();
            assert!(
                matches!(&fault, FactFault::Bind { placeholder: 1, wanted: w } if w.starts_with(wanted)),
                "{text} {value}: {fault:?}"
            );
            assert!(!fault.to_string().contains("canary"));
        }
    }
    // An enumeration is checked by the server, which quotes the value; we do not.
    let fault = ask(&facts, "select owner from t where colour = $1", &["canary-77"])
        .await
        .unwrap_err();
    assert!(
        matches!(&fault, FactFault::Query(text) if text.contains("22P02")),
        "{fault:?}"
    );
    assert!(!format!("{fault} {fault:?}").contains("canary"));
    for column in ["price", "day"] {
        let text = format!("select owner from t where {column} = $1");
        let fault = ask(&facts, &text, &["9"]).await.unwrap_err();
        assert!(
            matches!(&fault, FactFault::BindType { placeholder: 1, .. }),
            "{fault:?}"
        );
        assert!(fault.to_string().contains("column::text = $1"), "{fault}");
        assert_eq!(facts.check(&query(&text), soon()).await, Err(fault));
    }
    let value = |v| Ok(FactRow::One(v));
    for (column, expected) in [
        ("small", value(FactValue::Integer(7))),
        ("whole", value(FactValue::Integer(70))),
        ("big", value(FactValue::Integer(700))),
        ("id", value(FactValue::Text(id.into()))),
        ("yes", value(FactValue::Truth(true))),
        ("colour", value(FactValue::Text("red".into()))),
        ("vary", value(FactValue::Text("cd".into()))),
        ("dom", value(FactValue::Text("ef".into()))),
        ("'lit'", value(FactValue::Text("lit".into()))),
    ] {
        assert_eq!(
            ask(&facts, &format!("select {column} from t"), &[]).await,
            expected,
            "{column}"
        );
    }
    for column in ["price", "day", "array[1]", "1.5", "'{}'::jsonb"] {
        let fault = ask(&facts, &format!("select {column} from t"), &[])
            .await
            .unwrap_err();
        assert!(matches!(fault, FactFault::Type { .. }), "{column}: {fault:?}");
    }
}

#[tokio::test]
async fn a_session_that_the_server_ended_is_replaced_without_a_fault() {
    let Some(engine) = Engine::postgres().await else {
        return;
    };
    let facts = FactDatabase::open(&engine.url, 1).await.unwrap();
    let mark = format!("mark_{}", uuid::Uuid::now_v7().simple());
    assert!(ask(&facts, &format!("select '{mark}'"), &[]).await.is_ok());
    let mut admin = sqlx::PgConnection::connect(&engine.text).await.unwrap();
    let ended: Vec<bool> = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%{mark}%'"
    )))
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(ended, [true]);
    assert_eq!(
        ask(&facts, "select 1", &[]).await,
        Ok(FactRow::One(FactValue::Integer(1)))
    );
}
