//! What a recorded call costs: an intent and an outcome, at one caller and at sixteen. Plain timing, for a person to read.
//!
//! `cargo bench -p tollhouse-audit`. `PG_URL` names a PostgreSQL to measure instead of SQLite, `BENCH_CALLS` the number of
//! calls, `BENCH_CASE` one of the four cases (0 to 3), `BENCH_SQL` statements to run on the SQLite file before the ledger opens (another layout of the table),
//! `BENCH_PAGE` a page size for it, `BENCH_DIR` a folder on the disk that is meant.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use audit::{Ledger, LedgerOptions, Outcome, OutcomeState, Record};
use jiff::Timestamp;
use model::{
    Arguments, CallId, Caller, Class, Digest, JsonLimits, Limits, Object, ResourceType, RuleId, Subject,
    Target, TenantId, ToolName, UpstreamName,
};
use policy::{Action, Permitted, Policy, PolicyFile, Question};
use sqlx::{AssertSqlSafe, Connection};
use store::{Store, StoreOptions, StoreUrl};

const TOOL: &str = "billing_getInvoiceStatus";

struct Facts {
    caller: Caller,
    target: Target,
    arguments: Arguments,
    declared: Vec<String>,
    rules: Vec<RuleId>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let calls: usize = std::env::var("BENCH_CALLS").map_or(4_000, |text| text.parse().unwrap());
    let only: Option<usize> = std::env::var("BENCH_CASE").ok().map(|text| text.parse().unwrap());
    println!(
        "{:<22} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "pairs", "pairs/s", "CPU µs", "KB out", "p50 µs", "p95 µs", "p99 µs"
    );
    let cases = [
        (Class::Read, 1),
        (Class::Read, 16),
        (Class::Write, 1),
        (Class::Write, 16),
    ];
    for (index, (class, callers)) in cases.into_iter().enumerate() {
        if only.is_none_or(|only| only == index) {
            runtime.block_on(measure(
                class,
                callers,
                if class.changes_state() { calls / 4 } else { calls },
            ));
        }
    }
}

async fn measure(class: Class, callers: usize, calls: usize) {
    let folder = match std::env::var("BENCH_DIR") {
        Ok(folder) => tempfile::tempdir_in(folder).unwrap(),
        Err(_) => tempfile::tempdir().unwrap(),
    };
    let store = open(folder.path()).await;
    let options = LedgerOptions::new("bench", "one", &Limits::default());
    let ledger = Ledger::open(store.clone(), options).await.unwrap();
    let facts = Arc::new(facts());
    // Decisions are not what is measured.
    let permissions: Vec<Vec<Permitted<u8>>> = (0..callers)
        .map(|_| (0..calls / callers).map(|_| permitted(&facts)).collect())
        .collect();
    let (written, cpu, start) = (written(), cpu_time(), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for permissions in permissions {
        let (ledger, facts) = (ledger.clone(), Arc::clone(&facts));
        tasks.spawn(async move {
            let mut took = Vec::with_capacity(permissions.len());
            for permission in permissions {
                let start = Instant::now();
                pair(&ledger, &facts, permission, class).await;
                took.push(start.elapsed());
            }
            took
        });
    }
    let mut took: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let (elapsed, cpu, written) = (start.elapsed(), cpu_time() - cpu, self::written() - written);
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!(
        "{:<22} {:>8} {:>9.0} {:>9.1} {:>9.1} {:>9.0} {:>9.0} {:>9.0}",
        format!("{class}, {callers} callers"),
        took.len(),
        took.len() as f64 / elapsed.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / took.len() as f64,
        written as f64 / 1e3 / took.len() as f64,
        at(0.5),
        at(0.95),
        at(0.99),
    );
    ledger.close().await.unwrap();
}

async fn pair(ledger: &Ledger, facts: &Facts, permission: Permitted<u8>, class: Class) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    let record = Record {
        call: CallId::new(),
        actor: Some(&facts.caller),
        credential: Some("token corp".to_owned()),
        transport: "http",
        method: "tools/call",
        tool: Some(TOOL),
        class: Some(class),
        pin: Some(Digest::ZERO),
        target: Some(&facts.target),
        arguments: Some(&facts.arguments),
        declared: Some(&facts.declared),
        policy: None,
        rules: &facts.rules,
        consent: None,
        trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        time: Timestamp::now(),
    };
    let (recorded, ticket) = ledger.intend(permission, record, deadline).await.unwrap();
    drop(recorded);
    let outcome = Outcome {
        state: OutcomeState::Done,
        refusal: None,
        status: Some(200),
        upstream_requests: 1,
        result_bytes: Some(200),
        result: Some(&[b'x'; 200]),
        duration: Duration::from_millis(3),
        time: Timestamp::now(),
    };
    ledger.finish(ticket, outcome, deadline).await.unwrap();
}

async fn open(folder: &Path) -> Store {
    if let Ok(url) = std::env::var("PG_URL") {
        let schema = format!("bench_{}", uuid::Uuid::now_v7().simple());
        let mut admin = sqlx::PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(&mut admin)
            .await
            .unwrap();
        let url = format!("{url}?options=-csearch_path%3D{schema}");
        return Store::open(&StoreUrl::parse(&url, folder).unwrap(), StoreOptions::default())
            .await
            .unwrap();
    }
    let path = folder.join("t.db");
    if let Ok(size) = std::env::var("BENCH_PAGE") {
        run(&path, &format!("PRAGMA page_size = {size}; VACUUM")).await;
    }
    let store = Store::open(&StoreUrl::Sqlite(path.clone()), StoreOptions::default())
        .await
        .unwrap();
    if let Ok(sql) = std::env::var("BENCH_SQL") {
        run(&path, &sql).await;
    }
    store
}

async fn run(path: &Path, sql: &str) {
    let url = format!("sqlite:{}?mode=rwc", path.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// User and system time of this process, to the clock tick of 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Bytes that this process has written to anything.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    line.parse().unwrap()
}

fn facts() -> Facts {
    let limits = JsonLimits {
        bytes_max: 10_000,
        depth_max: 8,
    };
    Facts {
        caller: Caller {
            issuer: "corp".to_owned(),
            subject: Subject::parse("ada@example.com").unwrap(),
            tenant: Some(TenantId::parse("north").unwrap()),
            roles: [model::Role::parse("member").unwrap()].into(),
            client: None,
        },
        target: Target {
            kind: ResourceType::parse("Invoice").unwrap(),
            id: "inv-20301130-0001".to_owned(),
            owner: Some(TenantId::parse("north").unwrap()),
        },
        arguments: Arguments::parse(
            br#"{"invoiceId":"inv-20301130-0001","fields":["status","due"]}"#,
            limits,
        )
        .unwrap(),
        declared: vec!["invoiceId".to_owned(), "fields".to_owned()],
        rules: vec![RuleId::parse("members-read-their-invoices").unwrap()],
    }
}

fn permitted(facts: &Facts) -> Permitted<u8> {
    static POLICY: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(|| {
        let action = Action {
            tool: ToolName::parse(TOOL).unwrap(),
            upstream: UpstreamName::parse("billing").unwrap(),
            class: Class::Read,
            resource: None,
            input_schema: serde_json::json!({"type": "object", "properties": {}}),
            facts: Vec::new(),
        };
        let file = PolicyFile {
            path: "bench.cedar".to_owned(),
            text: "permit (principal, action, resource);".to_owned(),
        };
        Policy::load(&[file], &[action]).unwrap_or_else(|faults| panic!("{faults:?}"))
    });
    let question = Question {
        caller: &facts.caller,
        tool: &ToolName::parse(TOOL).unwrap(),
        target: None,
        arguments: &Object::new(),
        facts: &[],
        now: Timestamp::now(),
    };
    POLICY
        .decide(7, &question)
        .unwrap_or_else(|denied| panic!("{denied:?}"))
}
