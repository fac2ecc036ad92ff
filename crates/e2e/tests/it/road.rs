//! The road of one call, through the HTTP port: what is allowed makes one request, what is refused makes none. The
//! requests are counted by the service itself.

use std::collections::BTreeMap;

use e2e::client::{Answer, LEGACY, Mcp};
use e2e::house::{Gate, House};
use e2e::issuer::Issuer;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

const CREDENTIAL: &str = "service-credential-of-the-test";

/// The worked example, with callers by key and by token.
struct Town {
    service: invoices::Running,
    house: House,
    gate: Gate,
    issuer: Issuer,
    audience: String,
    /// API keys, made before the gate read them for the first time.
    keys: BTreeMap<&'static str, String>,
    _database: TempDir,
}

impl Town {
    async fn build() -> Self {
        let database = TempDir::new().unwrap();
        let options = invoices::Options::new(database.path().join("invoices.db"), CREDENTIAL);
        let service = invoices::start(options).await.unwrap();
        let issuer = Issuer::start().await;
        let house = House::invoices(&service, CREDENTIAL);
        let config = format!("{}{}", invoices::CONFIG, issuer.config("corp"));
        house.write("tollhouse.toml", config);
        let mut keys = BTreeMap::new();
        for caller in ["ada", "ines"] {
            keys.insert(caller, house.key(caller).await);
        }
        let gate = house.serve().await;
        let audience = gate.url.clone();
        Self {
            service,
            house,
            gate,
            issuer,
            audience,
            keys,
            _database: database,
        }
    }

    fn token(&self, subject: &str, tenant: &str) -> String {
        self.issuer.member(&self.audience, subject, tenant)
    }

    async fn status(&self, token: &str, id: &str) -> Value {
        Mcp::modern(&self.gate.url, token)
            .call("billing_getInvoiceStatus", json!({"invoice_id":id}))
            .await
    }

    /// Posts a status call with a token that may not hold, and gives the whole answer.
    async fn post(&self, token: Option<&str>) -> Answer {
        let client = Mcp {
            token: token.map(str::to_owned),
            ..Mcp::modern(&self.gate.url, "")
        };
        let params = json!({"name":"billing_getInvoiceStatus","arguments":{"invoice_id":"inv-1001"}});
        client.post(&client.request(1, "tools/call", params)).await
    }

    async fn close(self) {
        let (code, log) = self.gate.close().await;
        assert_eq!(code, Some(0), "{log}");
        self.service.stop().await.unwrap();
    }
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_member_reads_the_status_of_an_invoice_and_nothing_else_of_it() {
    let town = Town::build().await;
    for token in [town.keys["ada"].clone(), town.token("ada", "north")] {
        let before = town.service.requests();
        let result = town.status(&token, "inv-1001").await;
        let fields: Vec<&String> = result["structuredContent"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["status", "due"]);
        assert!(!text_of(&result).contains("iban"), "{result}");
        assert_eq!(town.service.requests() - before, 1);
    }
    let ledger = town.house.ledger().await;
    let intents = ledger.of_kind("intent");
    assert_eq!(intents.len(), 2);
    for intent in intents {
        assert_eq!(intent["rules"], json!(["status-of-own-invoice"]));
        assert_eq!(intent["target"]["owner"], "north");
        let outcome = ledger.outcome(&intent["call"]).expect("an outcome");
        assert_eq!(
            (outcome["state"].as_str(), outcome["upstream_requests"].as_u64()),
            (Some("done"), Some(1))
        );
    }
    town.close().await;
}

#[tokio::test]
async fn a_refused_call_makes_no_request_and_the_ledger_says_why() {
    let town = Town::build().await;
    let ada = town.token("ada", "north");
    let now = Timestamp::now().as_second();
    let before = town.service.requests();

    // Another tenant's record, and one that nobody owns: knowing an id is no right (TOOL-12, TOOL-14).
    for id in ["inv-2001", "inv-9999"] {
        let result = town.status(&ada, id).await;
        assert_eq!(result["isError"], true, "{id}");
        assert!(result.get("structuredContent").is_none(), "{id}");
        assert_eq!(
            text_of(&result),
            "not permitted: no rule allows this call",
            "{id}: the two cannot be told apart"
        );
    }
    // An id that was altered.
    for id in ["inv-1001'", "../inv-1001", "inv-1001 or 1=1", "INV-1001", ""] {
        let result = town.status(&ada, id).await;
        assert_eq!(result["isError"], true, "{id}");
        assert!(text_of(&result).contains("invoice_id"), "{id}: {result}");
    }
    // A member of nothing: the token says north, the directory does not know this subject.
    assert_eq!(
        town.status(&town.token("mallory", "north"), "inv-1001").await["isError"],
        true
    );
    // An argument that the tool does not have.
    let client = Mcp::modern(&town.gate.url, &ada);
    let result = client
        .call(
            "billing_getInvoiceStatus",
            json!({"invoice_id":"inv-1001","tenant":"south"}),
        )
        .await;
    assert!(text_of(&result).contains("tenant"), "{result}");
    // A tool that this caller may not use, one that is held, one that is nowhere: the three read the same.
    let mut answers = Vec::new();
    for name in [
        "billing_exportInvoices",
        "billing_listMembers",
        "billing_nonsense",
    ] {
        let error = client.call(name, json!({})).await;
        assert_eq!(error["error"]["code"], -32602, "{error}");
        answers.push(error["error"]["message"].as_str().unwrap().replace(name, "NAME"));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    // A tool that changes state, and nobody to ask.
    let result = client
        .call("billing_payInvoice", json!({"invoice_id":"inv-1001","Idempotency-Key":"k-123456789","amount_minor":100,"currency":"EUR"}))
        .await;
    assert!(text_of(&result).contains("approval of a person"), "{result}");

    // No identity, and tokens that do not hold.
    let claims = |extra: Value| {
        let mut claims = json!({"aud":town.audience,"sub":"ada","org_id":"north","roles":["member"]});
        claims
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        town.issuer.token(claims)
    };
    let expired = claims(json!({"exp":now - 3_600}));
    let foreign = claims(json!({"aud":"https://other.example/mcp"}));
    let altered = format!("{}x", &ada[..ada.len() - 1]);
    for (what, token) in [
        ("none", None),
        ("expired", Some(expired.as_str())),
        ("wrong audience", Some(foreign.as_str())),
        ("altered", Some(altered.as_str())),
        (
            "no such key",
            Some("th_abc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        ),
        ("nonsense", Some("nonsense")),
    ] {
        let answer = town.post(token).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text());
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("Bearer ") && challenge.contains("resource_metadata=\"http://"),
            "{what}: {challenge}"
        );
        assert_eq!(
            challenge.contains("error="),
            what != "none",
            "{what}: {challenge}"
        );
    }

    assert_eq!(
        town.service.requests() - before,
        0,
        "no refused call may reach the service"
    );
    let ledger = town.house.ledger().await;
    assert!(ledger.of_kind("intent").is_empty());
    let refusals = ledger.refusals();
    for (code, count) in [
        ("not-permitted", 3),
        ("owner-unknown", 1),
        ("arguments-invalid", 6),
        ("held", 1),
        ("unknown-tool", 1),
        ("consent-missing", 1),
        ("unauthenticated", 6),
    ] {
        assert_eq!(
            refusals.iter().filter(|found| **found == code).count(),
            count,
            "{code}: {refusals:?}"
        );
    }
    town.close().await;
}

#[tokio::test]
async fn every_revision_walks_the_same_road() {
    let town = Town::build().await;
    let ada = town.token("ada", "north");
    for revision in LEGACY {
        let client = Mcp::legacy(&town.gate.url, &ada, revision).await;
        let before = town.service.requests();
        let allowed = client
            .call("billing_getInvoiceStatus", json!({"invoice_id":"inv-1001"}))
            .await;
        assert!(text_of(&allowed).contains("status"), "{revision}: {allowed}");
        let denied = client
            .call("billing_getInvoiceStatus", json!({"invoice_id":"inv-2001"}))
            .await;
        assert_eq!(denied["isError"], true, "{revision}");
        assert_eq!(town.service.requests() - before, 1, "{revision}");
        assert_eq!(
            client.tools().await,
            [
                "billing_getInvoiceStatus",
                "billing_listInvoices",
                "billing_payInvoice"
            ],
            "{revision}"
        );
    }
    town.close().await;
}

#[tokio::test]
async fn a_list_holds_the_callers_own_rows_even_if_the_service_forgets_to_ask() {
    let database = TempDir::new().unwrap();
    let mut options = invoices::Options::new(database.path().join("invoices.db"), CREDENTIAL);
    options.list_ignores_tenant = true;
    let service = invoices::start(options).await.unwrap();
    let house = House::invoices(&service, CREDENTIAL);
    let key = house.key("bob").await;
    let gate = house.serve().await;
    let bob = Mcp::modern(&gate.url, &key);
    let result = bob.call("billing_listInvoices", json!({"limit":50})).await;
    let rows = result["structuredContent"]["invoices"].as_array().unwrap();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row["tenant"] == "south"),
        "{result:#}"
    );
    // The scope is the operator's to give.
    let error = bob.call("billing_listInvoices", json!({"tenant":"north"})).await;
    assert!(text_of(&error).contains("tenant"), "{error}");
    gate.close().await;
    service.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_tool_answers_cannot_change_what_the_next_call_may_do() {
    let town = Town::build().await;
    let client = Mcp::modern(&town.gate.url, &town.keys["ines"]);
    let export = client.call("billing_exportInvoices", json!({})).await;
    assert!(export.get("isError").is_none(), "{export:#}");
    let before = town.service.requests();
    let denied = client
        .call("billing_getInvoiceStatus", json!({"invoice_id":"inv-2001"}))
        .await;
    assert_eq!(denied["isError"], true);
    assert_eq!(town.service.requests() - before, 0);
    town.close().await;
}
