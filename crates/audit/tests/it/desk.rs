//! What every test needs: a store, an open ledger, a permitted call, and what is known of it.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use audit::{
    DurabilityRules, EntryRef, Ledger, LedgerFault, LedgerOptions, Outcome, OutcomeState, Record, Recorded,
    Report, Selection, Ticket, VerifyOptions,
};
use jiff::Timestamp;
use model::{
    Arguments, CallId, Caller, Class, Digest, JsonLimits, Limits, Object, Refusal, RefusalCode, ResourceType,
    Subject, Target, TenantId, ToolName, UpstreamName, Value,
};
use policy::{Action, Permitted, Policy, PolicyFile, Question};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use store::{Store, StoreOptions, StoreUrl};
use tempfile::TempDir;
use tokio::time::Instant;

pub(crate) const TOOL: &str = "billing_getInvoiceStatus";

/// A store in a folder of its own, or in a schema of its own.
pub(crate) struct Desk {
    pub(crate) folder: TempDir,
    pub(crate) url: StoreUrl,
    pub(crate) text: String,
    pub(crate) store_options: StoreOptions,
    pub(crate) options: LedgerOptions,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("sqlite:{}", folder.path().join("t.db").display());
        Self::at(folder, text)
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let Ok(base) = std::env::var("PG_URL") else {
            static SAID: std::sync::Once = std::sync::Once::new();
            SAID.call_once(|| eprintln!("PG_URL is not set: the PostgreSQL half of these tests was skipped"));
            return None;
        };
        let schema = format!("t_{}", uuid::Uuid::now_v7().simple());
        let mut admin = sqlx::PgConnection::connect(&base).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(&mut admin)
            .await
            .unwrap();
        let mark = if base.contains('?') { '&' } else { '?' };
        let text = format!("{base}{mark}options=-csearch_path%3D{schema}&application_name={schema}");
        Some(Self::at(tempfile::tempdir().unwrap(), text))
    }

    pub(crate) async fn all() -> Vec<Self> {
        let mut desks = vec![Self::new()];
        desks.extend(Self::postgres().await);
        desks
    }

    fn at(folder: TempDir, text: String) -> Self {
        Self {
            folder,
            url: StoreUrl::parse(&text, Path::new("/")).unwrap(),
            text,
            store_options: StoreOptions::default(),
            options: LedgerOptions {
                durability: DurabilityRules::default(),
                checkpoint_every: 10,
                ..LedgerOptions::new("test-build", "one", &Limits::default())
            },
        }
    }

    pub(crate) async fn store(&self) -> Store {
        Store::open(&self.url, self.store_options.clone()).await.unwrap()
    }

    pub(crate) async fn ledger(&self) -> Ledger {
        Ledger::open(self.store().await, self.options.clone())
            .await
            .unwrap()
    }

    /// Another client of the SQLite file.
    pub(crate) async fn other(&self) -> SqliteConnection {
        SqliteConnection::connect(&self.text).await.unwrap()
    }

    pub(crate) async fn export(&self) -> Vec<u8> {
        let mut out = Vec::new();
        audit::export(&self.store().await, Selection::default(), &mut out)
            .await
            .unwrap();
        out
    }

    pub(crate) async fn verify(&self) -> Report {
        verify(&self.export().await)
    }
}

pub(crate) fn verify(export: &[u8]) -> Report {
    audit::verify(export, VerifyOptions::default()).unwrap()
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// A call with everything that can be known of it.
pub(crate) struct Known {
    pub(crate) call: CallId,
    pub(crate) caller: Caller,
    pub(crate) target: Target,
    pub(crate) arguments: Arguments,
    pub(crate) declared: Vec<String>,
    pub(crate) class: Class,
}

pub(crate) fn known(class: Class) -> Known {
    known_of(class, "inv-1", r#"{"invoiceId":"inv-1","limit":5}"#)
}

pub(crate) fn known_of(class: Class, id: &str, arguments: &str) -> Known {
    let limits = JsonLimits {
        bytes_max: 100_000,
        depth_max: 32,
    };
    Known {
        call: CallId::new(),
        caller: Caller {
            issuer: "corp".to_owned(),
            subject: Subject::parse("ada").unwrap(),
            tenant: Some(TenantId::parse("north").unwrap()),
            roles: [model::Role::parse("member").unwrap()].into(),
            client: None,
        },
        target: Target {
            kind: ResourceType::parse("Invoice").unwrap(),
            id: id.to_owned(),
            owner: Some(TenantId::parse("north").unwrap()),
        },
        arguments: Arguments::parse(arguments.as_bytes(), limits).unwrap(),
        declared: vec!["invoiceId".to_owned(), "limit".to_owned()],
        class,
    }
}

impl Known {
    pub(crate) fn record(&self) -> Record<'_> {
        Record {
            call: self.call,
            actor: Some(&self.caller),
            credential: Some("key abc".to_owned()),
            transport: "http",
            method: "tools/call",
            tool: Some(TOOL),
            class: Some(self.class),
            pin: Some(Digest::of("pin", &[b"x"])),
            target: Some(&self.target),
            arguments: Some(&self.arguments),
            declared: Some(&self.declared),
            policy: None,
            rules: &[],
            consent: None,
            trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            time: Timestamp::now(),
        }
    }
}

pub(crate) fn done() -> Outcome<'static> {
    Outcome {
        state: OutcomeState::Done,
        refusal: None,
        status: Some(200),
        upstream_requests: 1,
        result_bytes: Some(17),
        result: Some(b"{\"status\":\"paid\"}"),
        duration: Duration::from_micros(1_234),
        time: Timestamp::now(),
    }
}

/// A permission of the real policy room for anything.
pub(crate) fn permitted<T>(subject: T) -> Permitted<T> {
    static POLICY: LazyLock<Policy> = LazyLock::new(|| {
        let action = Action {
            tool: ToolName::parse(TOOL).unwrap(),
            upstream: UpstreamName::parse("billing").unwrap(),
            class: Class::Read,
            resource: None,
            input_schema: serde_json::json!({"type": "object", "properties": {}}),
            facts: Vec::new(),
        };
        let file = PolicyFile {
            path: "test.cedar".to_owned(),
            text: "@id(\"everybody-may-read\") permit (principal, action, resource);".to_owned(),
        };
        Policy::load(&[file], &[action]).unwrap_or_else(|faults| panic!("{faults:?}"))
    });
    let known = known(Class::Read);
    let question = Question {
        caller: &known.caller,
        tool: &ToolName::parse(TOOL).unwrap(),
        target: None,
        arguments: &Object::new(),
        facts: &[],
        now: Timestamp::now(),
    };
    POLICY
        .decide(subject, &question)
        .unwrap_or_else(|denied| panic!("{denied:?}"))
}

pub(crate) async fn intend(
    ledger: &Ledger,
    known: &Known,
) -> Result<(Recorded<Permitted<u8>>, Ticket), LedgerFault> {
    ledger.intend(permitted(7), known.record(), soon()).await
}

/// One whole call.
pub(crate) async fn call(ledger: &Ledger, class: Class) -> Result<CallId, LedgerFault> {
    let known = known(class);
    let (recorded, ticket) = intend(ledger, &known).await?;
    assert_eq!(*recorded.into_inner().get(), 7);
    ledger.finish(ticket, done(), soon()).await?;
    Ok(known.call)
}

pub(crate) async fn refuse(ledger: &Ledger, known: &Known) -> Result<EntryRef, LedgerFault> {
    let refusal = Refusal::new(RefusalCode::NotPermitted, "no rule permits it").with_detail("try harder");
    ledger.refuse(known.record(), &refusal, &[], soon()).await
}

/// The bodies of an export, as values.
pub(crate) fn bodies(export: &[u8]) -> Vec<Value> {
    std::str::from_utf8(export)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone())
        .collect()
}
