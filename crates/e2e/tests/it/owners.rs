//! Whose a thing is: asked of a source that is not the protected call. A source that does not know, fails, is late or
//! gives two answers is a no, and the service is not asked.

use std::path::Path;

use e2e::client::Mcp;
use e2e::house::{Gate, House, text, until};
use e2e::issuer::Issuer;
use e2e::orders;
use e2e::postgres::Postgres;
use e2e::service::Service;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

/// Tables of owners and members, for both engines.
const TABLES: &str = "
    create table thing (id text primary key, tenant text, number bigint);
    insert into thing values ('o-1', 'north', 1), ('o-2', 'south', 2), ('o-null', null, null), ('o-empty', '', 3),
        ('o-odd', 'north south', 4), ('o-7', '7', 7);
    create table shared (id text, tenant text);
    insert into shared values ('o-1', 'north'), ('o-1', 'south'), ('o-2', 'north'), ('o-2', 'north');
    create table member (subject text, tenant text, good boolean, points bigint);
    insert into member values ('ada', 'north', true, 10), ('bob', 'south', null, null);
";

/// The configuration with a database as the source, and this query for owners.
fn with_sql(service: &Service, url: &str, owner: &str, facts: &str) -> House {
    orders::house(&service.url())
        .with_change(
            "tollhouse.toml",
            "[source.owners]\nfile = \"owners.json\"",
            "[source.owners]\nsql = \"env:OWNERS_URL\"",
        )
        .with_change(
            "tollhouse.toml",
            "owner = { source = \"owners\" }",
            &format!("owner = {{ source = \"owners\", query = \"{owner}\" }}\n{facts}"),
        )
        .with_variable("OWNERS_URL", url)
}

const BY_ID: &str = "select tenant from thing where id = $1";

async fn sqlite(path: &Path, statements: &str) {
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", path.display()))
        .await
        .unwrap();
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// A directory in a file of its own.
async fn directory() -> (tempfile::TempDir, String) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("directory.db");
    sqlite(&path, TABLES).await;
    let url = format!("sqlite:{}", path.display());
    (folder, url)
}

/// A gate with ada and bob in front of it.
struct Gates {
    house: House,
    gate: Gate,
    ada: Mcp,
    bob: Mcp,
}

impl Gates {
    async fn of(house: House) -> Self {
        let (ada, bob) = (house.key("ada").await, house.key("bob").await);
        let gate = house.serve().await;
        Self {
            ada: Mcp::modern(&gate.url, &ada),
            bob: Mcp::modern(&gate.url, &bob),
            house,
            gate,
        }
    }

    async fn last_refusal(&self) -> String {
        let ledger = self.house.ledger().await;
        let refusals = ledger.of_kind("refusal");
        let last = refusals.last().unwrap();
        assert_eq!(last["upstream_requests"], 0);
        last["refusal"].as_str().unwrap().to_owned()
    }

    async fn close(self) {
        let (code, log) = self.gate.close().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

async fn read(client: &Mcp, id: impl Into<Value>) -> Value {
    client.call("orders_read", json!({"id":id.into()})).await
}

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

const NOT_PERMITTED: &str = "not permitted: no rule allows this call";
const NOT_CHECKED: &str =
    "a check that this call needs could not be made, so the call was not made; try again later";

/// Each caller reads their own, nobody reads what is another's or nobody's, and none of it can be told apart.
async fn own_and_other(house: House, service: &Service) {
    let gates = Gates::of(house).await;
    let before = service.count();
    for (client, own, other) in [(&gates.ada, "o-1", "o-2"), (&gates.bob, "o-2", "o-1")] {
        let result = read(client, own).await;
        assert_eq!(
            result["structuredContent"]["id"], "o-1",
            "the service has one answer: {result}"
        );
        for id in [other, "o-9", "O-1", "o-1 ", " o-1", "o-1\u{200b}"] {
            let result = read(client, id).await;
            assert_eq!(said(&result), NOT_PERMITTED, "{id:?}: {result}");
        }
    }
    assert_eq!(service.count() - before, 2);
    let ledger = gates.house.ledger().await;
    let owners: Vec<&Value> = ledger
        .of_kind("intent")
        .into_iter()
        .map(|intent| &intent["target"]["owner"])
        .collect();
    assert_eq!(owners, ["north", "south"]);
    for refusal in ledger.of_kind("refusal") {
        assert_eq!(refusal["upstream_requests"], 0);
    }
    gates.close().await;
}

#[tokio::test]
async fn the_owner_is_known_from_a_file() {
    let service = Service::start(orders::usual).await;
    own_and_other(orders::house(&service.url()), &service).await;
}

#[tokio::test]
async fn the_owner_is_known_from_a_sqlite_database() {
    let service = Service::start(orders::usual).await;
    let (_folder, url) = directory().await;
    own_and_other(with_sql(&service, &url, BY_ID, ""), &service).await;
}

#[tokio::test]
async fn the_owner_is_known_from_a_postgres_database() {
    let Some(postgres) = Postgres::shared().await else {
        return;
    };
    let service = Service::start(orders::usual).await;
    let database = postgres.database(TABLES).await;
    let url = postgres.url_of("tollhouse", None, &database);
    own_and_other(with_sql(&service, &url, BY_ID, ""), &service).await;
}

#[tokio::test]
async fn the_owner_is_known_from_the_callers_own_claims() {
    let service = Service::start(orders::usual).await;
    let issuer = Issuer::start().await;
    let house = orders::house(&service.url()).with_change(
        "tollhouse.toml",
        "owner = { source = \"owners\" }",
        "owner = { claims = \"accounts\" }",
    );
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    house.write("tollhouse.toml", config + &issuer.config("corp"));
    let gate = house.serve().await;
    let mut served = 0;
    for (what, claims, allowed) in [
        ("listed", json!({"accounts":["o-7","o-1"]}), true),
        ("the only one", json!({"accounts":"o-1"}), true),
        ("not listed", json!({"accounts":["o-7"]}), false),
        ("nothing listed", json!({"accounts":[]}), false),
        ("no claim", json!({}), false),
        ("a part of a listed one", json!({"accounts":["o-11"]}), false),
        ("words in one text", json!({"accounts":"o-1 o-7"}), false),
        ("other letters", json!({"accounts":["O-1"]}), false),
        (
            "under another name",
            json!({"account":["o-1"],"Accounts":["o-1"]}),
            false,
        ),
    ] {
        let mut all = json!({"aud":gate.url,"sub":"ada","org_id":"north"});
        all.as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        let result = read(&Mcp::modern(&gate.url, &issuer.token(all)), "o-1").await;
        served += usize::from(allowed);
        assert_eq!(
            result.get("structuredContent").is_some(),
            allowed,
            "{what}: {result}"
        );
        assert_eq!(service.count(), served, "{what}");
    }
    gate.close().await;
}

/// What a source can answer instead of one owner, and what becomes of the call.
const ODD_ANSWERS: [(&str, &str, &str, &str); 9] = [
    ("nothing", BY_ID, "o-9", "owner-unknown"),
    ("no value", BY_ID, "o-null", "owner-unknown"),
    ("an empty value", BY_ID, "o-empty", "source-failed"),
    ("no name of a tenant", BY_ID, "o-odd", "source-failed"),
    (
        "two owners",
        "select tenant from shared where id = $1",
        "o-1",
        "source-failed",
    ),
    (
        "the same owner twice",
        "select tenant from shared where id = $1",
        "o-2",
        "source-failed",
    ),
    (
        "two columns",
        "select tenant, id from thing where id = $1",
        "o-1",
        "source-failed",
    ),
    (
        "a truth value",
        "select good from member where subject = 'ada' and $1 = 'o-1'",
        "o-1",
        "source-failed",
    ),
    (
        "a table that is not there",
        "select tenant from nowhere where id = $1",
        "o-1",
        "source-failed",
    ),
];

#[tokio::test]
async fn a_source_that_gives_anything_but_one_owner_is_a_no() {
    let service = Service::start(orders::usual).await;
    let (_folder, url) = directory().await;
    let mut urls = vec![("sqlite", url)];
    if let Some(postgres) = Postgres::shared().await {
        let database = postgres.database(TABLES).await;
        urls.push(("postgres", postgres.url_of("tollhouse", None, &database)));
    }
    for (engine, url) in urls {
        for (what, query, id, code) in ODD_ANSWERS {
            // SQLite has no truth values: a 1 is the name of a tenant there, and nobody's.
            let code = if engine == "sqlite" && what == "a truth value" {
                "not-permitted"
            } else {
                code
            };
            let gates = Gates::of(with_sql(&service, &url, query, "")).await;
            let result = read(&gates.ada, id).await;
            let text = if code == "source-failed" {
                NOT_CHECKED
            } else {
                NOT_PERMITTED
            };
            assert_eq!(said(&result), text, "{engine}, {what}: {result}");
            assert_eq!(gates.last_refusal().await, code, "{engine}, {what}");
            gates.close().await;
        }
    }
    assert_eq!(service.count(), 0);
}

#[tokio::test]
async fn an_id_is_a_value_and_never_a_part_of_a_query() {
    let service = Service::start(orders::usual).await;
    let (folder, url) = directory().await;
    let mut urls = vec![("sqlite", url)];
    let postgres = Postgres::shared().await;
    if let Some(postgres) = postgres {
        let database = postgres.database(TABLES).await;
        urls.push(("postgres", postgres.url_of("tollhouse", None, &database)));
    }
    let hostile = [
        "o-2' or '1'='1",
        "o-9' or tenant='north' --",
        "o-2' union select 'north' --",
        "'; update thing set tenant='north'; --",
        "o-2'; drop table thing; --",
        "o-2\\' or 1=1 --",
        "o-2\" or \"\"=\"",
        "o-2/**/or/**/1=1",
        "%",
        "o-_",
        "$1",
        "?1",
        ":id",
        "o-2\u{2019} or 1=1",
        "x' || (select tenant from thing where id='o-1') || '",
        "{\"id\":\"o-1\"}",
    ];
    for (engine, url) in &urls {
        let gates = Gates::of(with_sql(&service, url, BY_ID, "")).await;
        for id in hostile {
            let result = read(&gates.ada, id).await;
            assert_eq!(result["isError"], true, "{engine} {id}: {result}");
            assert!(
                result.get("structuredContent").is_none(),
                "{engine} {id}: {result}"
            );
        }
        assert_eq!(service.count(), 0, "{engine}");
        // The tables are as they were.
        assert!(
            read(&gates.ada, "o-1").await.get("structuredContent").is_some(),
            "{engine}"
        );
        assert_eq!(said(&read(&gates.ada, "o-2").await), NOT_PERMITTED, "{engine}");
        gates.close().await;
        service.forget();
    }
    drop(folder);
}

#[tokio::test]
async fn a_database_of_facts_is_only_read_whatever_the_operators_query_says() {
    let service = Service::start(orders::usual).await;
    let (folder, url) = directory().await;
    let mut urls = vec![("sqlite", url)];
    if let Some(postgres) = Postgres::shared().await {
        let database = postgres.database(TABLES).await;
        urls.push(("postgres", postgres.url_of("tollhouse", None, &database)));
    }
    for (engine, url) in urls {
        let house = with_sql(
            &service,
            &url,
            "update thing set tenant = 'north' where id = $1 returning tenant",
            "",
        );
        // Refused when it is read, or by the database; never carried out.
        let served = house
            .run(["call", "--as", "ada", "orders_read", "{\"id\":\"o-2\"}"])
            .await;
        assert!(!served.status.success(), "{engine}: {}", text(&served.stdout));
        let gates = Gates::of(with_sql(&service, &url, BY_ID, "")).await;
        assert_eq!(said(&read(&gates.ada, "o-2").await), NOT_PERMITTED, "{engine}");
        gates.close().await;
    }
    assert_eq!(service.count(), 0);
    drop(folder);
}

#[tokio::test]
async fn a_sqlite_source_that_is_locked_or_gone_is_a_no_and_heals_by_itself() {
    let service = Service::start(orders::usual).await;
    let (folder, url) = directory().await;
    let path = folder.path().join("directory.db");
    let gates = Gates::of(with_sql(&service, &url, BY_ID, "")).await;
    assert!(read(&gates.ada, "o-1").await.get("structuredContent").is_some());

    // Somebody else holds it for writing.
    let mut other = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("begin exclusive")
        .execute(&mut other)
        .await
        .unwrap();
    assert_eq!(said(&read(&gates.ada, "o-1").await), NOT_CHECKED);
    assert_eq!(gates.last_refusal().await, "source-failed");
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    assert!(
        read(&gates.ada, "o-1").await.get("structuredContent").is_some(),
        "unlocked"
    );

    // It is gone, though a connection to it is open; then it is damaged; then another stands in its place.
    let aside = folder.path().join("aside.db");
    std::fs::rename(&path, &aside).unwrap();
    assert_eq!(said(&read(&gates.ada, "o-1").await), NOT_CHECKED, "gone");
    std::fs::write(
        &path,
        "this is no database, and it is long enough to have a header of its own......",
    )
    .unwrap();
    assert_eq!(said(&read(&gates.ada, "o-1").await), NOT_CHECKED, "damaged");
    std::fs::remove_file(&path).unwrap();
    sqlite(
        &path,
        &TABLES.replace("('o-1', 'north', 1)", "('o-1', 'south', 1)"),
    )
    .await;
    assert_eq!(
        said(&read(&gates.ada, "o-1").await),
        NOT_PERMITTED,
        "sold to the south"
    );
    assert!(read(&gates.bob, "o-1").await.get("structuredContent").is_some());
    assert_eq!(service.count(), 3);
    gates.close().await;
}

#[tokio::test]
async fn a_postgres_source_that_is_down_is_a_no_and_stops_the_start() {
    if Postgres::shared().await.is_none() {
        return;
    }
    let mut postgres = tokio::task::spawn_blocking(Postgres::start)
        .await
        .unwrap()
        .unwrap();
    let service = Service::start(orders::usual).await;
    let database = postgres.database(TABLES).await;
    let url = postgres.url_of("tollhouse", None, &database);
    let gates = Gates::of(with_sql(&service, &url, BY_ID, "")).await;
    assert!(read(&gates.ada, "o-1").await.get("structuredContent").is_some());
    // The server ends its connections: the next call asks on a new one.
    postgres
        .run(
            &postgres.url(),
            &format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'"),
        )
        .await;
    assert!(
        read(&gates.ada, "o-1").await.get("structuredContent").is_some(),
        "reconnected"
    );
    assert_eq!(service.count(), 2);
    let stopped = tokio::task::spawn_blocking(move || {
        postgres.stop();
        postgres
    });
    let _postgres = stopped.await.unwrap();
    for _ in 0..3 {
        assert_eq!(said(&read(&gates.ada, "o-1").await), NOT_CHECKED, "down");
        assert_eq!(gates.last_refusal().await, "source-failed");
    }
    assert_eq!(service.count(), 2);
    let checked = gates.house.run(["check"]).await;
    assert!(!checked.status.success());
    let said = text(&checked.stderr);
    assert!(
        said.contains("source.owners.sql") && said.contains("tollhouse.toml:"),
        "{said}"
    );
    gates.close().await;
}

#[tokio::test]
async fn a_source_that_is_late_is_a_no_in_time() {
    let service = Service::start(orders::usual).await;
    let (folder, url) = directory().await;
    let count = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000000000) select case when max(i) > 0 and $1 = 'o-1' then 'north' end from n";
    let mut sources = vec![("sqlite", url, count.to_owned())];
    if let Some(postgres) = Postgres::shared().await {
        let database = postgres.database(TABLES).await;
        let url = postgres.url_of("tollhouse", None, &database);
        let sleep = "select tenant from thing, pg_sleep(3600) where id = $1".to_owned();
        sources.push(("postgres", url, sleep));
    }
    for (engine, url, query) in sources {
        let house = with_sql(&service, &url, &query, "");
        let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
        house.write(
            "tollhouse.toml",
            format!("{config}\n[limits]\nsource_timeout = \"300ms\"\n"),
        );
        let gates = Gates::of(house).await;
        let began = std::time::Instant::now();
        assert_eq!(said(&read(&gates.ada, "o-1").await), NOT_CHECKED, "{engine}");
        let took = began.elapsed();
        assert!(took.as_millis() >= 300, "{engine}: {took:?}");
        assert!(
            took.as_secs() < 30,
            "{engine}: the query was not waited for, but {took:?}"
        );
        assert_eq!(gates.last_refusal().await, "source-failed", "{engine}");
        gates.close().await;
    }
    assert_eq!(service.count(), 0);
    drop(folder);
}

#[tokio::test]
async fn a_fact_is_known_or_the_call_is_not_made() {
    let service = Service::start(orders::usual).await;
    let (folder, url) = directory().await;
    let mut urls = vec![("sqlite", url)];
    if let Some(postgres) = Postgres::shared().await {
        let database = postgres.database(TABLES).await;
        urls.push(("postgres", postgres.url_of("tollhouse", None, &database)));
    }
    let policy = orders::POLICY.replace(
        "when { resource.owner == principal.tenant };",
        "when { resource.owner == principal.tenant && context.facts.good };",
    );
    let policy = policy.split("@id(\"own-lists\")").next().unwrap();
    let policy = policy.replace(
        "action in Action::\"upstream:orders\"",
        "action == Action::\"orders_read\"",
    );
    for (engine, url) in &urls {
        for (what, query, bind, text) in [
            (
                "true",
                "select good from member where subject = $1",
                "principal.subject",
                None,
            ),
            (
                "false",
                "select not good from member where subject = $1",
                "principal.subject",
                Some(NOT_PERMITTED),
            ),
            (
                "unknown",
                "select good from member where subject = $1",
                "principal.tenant",
                Some(NOT_CHECKED),
            ),
            (
                "null",
                "select null from member where subject = $1",
                "principal.subject",
                Some(NOT_CHECKED),
            ),
            (
                "a number",
                "select points from member where subject = $1",
                "principal.subject",
                Some(NOT_CHECKED),
            ),
            (
                "a text",
                "select tenant from member where subject = $1",
                "principal.subject",
                Some(NOT_CHECKED),
            ),
            (
                "many",
                "select good from member where subject = $1 or true",
                "principal.subject",
                Some(NOT_CHECKED),
            ),
        ] {
            let fact = format!(
                "facts.good = {{ source = \"owners\", query = \"{query}\", bind = [\"{bind}\"], type = \"truth\" }}"
            );
            let house = with_sql(&service, url, BY_ID, &fact).with_file("policy/orders.cedar", &policy);
            let before = service.count();
            let gates = Gates::of(house).await;
            let result = read(&gates.ada, "o-1").await;
            match text {
                None => assert!(
                    result.get("structuredContent").is_some(),
                    "{engine} {what}: {result}"
                ),
                Some(text) => assert_eq!(said(&result), text, "{engine} {what}: {result}"),
            }
            assert_eq!(
                service.count() - before,
                usize::from(text.is_none()),
                "{engine} {what}"
            );
            gates.close().await;
        }
    }
    drop(folder);
}

#[tokio::test]
async fn a_file_of_owners_that_is_none_stops_the_start() {
    let service = Service::start(orders::usual).await;
    for (what, content) in [
        ("not JSON", "{"),
        ("a list", "[]"),
        ("an owner that is a number", r#"{"Order":{"o-1":7}}"#),
        ("an owner that is a list", r#"{"Order":{"o-1":["north"]}}"#),
        ("an owner with a space", r#"{"Order":{"o-1":"north south"}}"#),
        (
            "an id that stands twice",
            r#"{"Order":{"o-1":"north","o-1":"south"}}"#,
        ),
    ] {
        let house = orders::house(&service.url()).with_file("owners.json", content);
        let output = house.run(["check", "--offline"]).await;
        assert_eq!(output.status.code(), Some(78), "{what}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(said.contains("owners.json"), "{what}: {said}");
    }
    let house = orders::house(&service.url());
    std::fs::remove_file(house.path("owners.json")).unwrap();
    assert_eq!(house.run(["check", "--offline"]).await.status.code(), Some(78));
    assert_eq!(service.count(), 0);
}

#[tokio::test]
async fn a_caller_without_a_tenant_owns_nothing() {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url()).with_change(
        "tollhouse.toml",
        "[caller.ada]\ntenant = \"north\"\n",
        "[caller.ada]\n",
    );
    let gates = Gates::of(house).await;
    let result = read(&gates.ada, "o-1").await;
    assert_eq!(
        result["isError"].as_bool().or(result.get("error").map(|_| true)),
        Some(true),
        "{result}"
    );
    let result = gates.ada.call("orders_list", json!({})).await;
    assert!(result.get("structuredContent").is_none(), "{result}");
    until("the ledger has both", async || {
        gates.house.ledger().await.refusals().len() == 2
    })
    .await;
    assert_eq!(service.count(), 0);
    gates.close().await;
}
