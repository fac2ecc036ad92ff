//! The cases of `demo --once`: what must be allowed and what must be refused, each through the gate's own HTTP port.
//!
//! A case is right when the answer, the ledger's entry and the number of requests that the service itself counted are
//! all as they should be. A message alone proves nothing.

use std::sync::Arc;
use std::time::Duration;

use audit::{Entry, EntryKind};
use bytes::Bytes;
use egress::{Client, ClientOptions, Network};
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use model::{Limits, Value};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;

use super::town::Town;
use crate::failure::Failure;
use crate::print::{self, say, tell};

/// How long one case may take.
const CASE_TIMEOUT: Duration = Duration::from_secs(20);

/// One case.
struct Case {
    what: &'static str,
    /// The caller; `None` sends no identity.
    caller: Option<&'static str>,
    tool: &'static str,
    arguments: Value,
    expected: Expected,
}

enum Expected {
    /// Allowed by this rule, with one request, and exactly these fields in the answer.
    Allowed {
        rule: &'static str,
        fields: &'static [&'static str],
    },
    /// Refused for this reason by this rule, if it was one, with no request.
    Refused {
        code: &'static str,
        rule: Option<&'static str>,
    },
}

/// What came of a case.
struct Seen {
    answer: Value,
    entry: Arc<Entry>,
    requests: u64,
}

fn cases() -> Vec<Case> {
    let status = "billing_getInvoiceStatus";
    vec![
        Case {
            what: "ada asks for the status of her organisation's invoice",
            caller: Some("ada"),
            tool: status,
            arguments: json!({ "invoice_id": "inv-1001" }),
            expected: Expected::Allowed {
                rule: "status-of-own-invoice",
                fields: &["due", "status"],
            },
        },
        Case {
            what: "ada asks for an invoice of another organisation",
            caller: Some("ada"),
            tool: status,
            arguments: json!({ "invoice_id": "inv-2001" }),
            expected: Expected::Refused {
                code: "not-permitted",
                rule: None,
            },
        },
        Case {
            what: "eve, who has left, asks for an invoice of her old organisation",
            caller: Some("eve"),
            tool: status,
            arguments: json!({ "invoice_id": "inv-1001" }),
            expected: Expected::Refused {
                code: "not-permitted",
                rule: Some("only-current-members"),
            },
        },
        Case {
            what: "ada sends an argument that the tool does not have",
            caller: Some("ada"),
            tool: status,
            arguments: json!({ "invoice_id": "inv-1001", "tenant": "south" }),
            expected: Expected::Refused {
                code: "arguments-invalid",
                rule: None,
            },
        },
        Case {
            what: "ada asks for a payment, which nobody approved",
            caller: Some("ada"),
            tool: "billing_payInvoice",
            arguments: json!({
                "invoice_id": "inv-1001",
                "Idempotency-Key": "demo-payment-1",
                "amount_minor": 100,
                "currency": "EUR",
            }),
            expected: Expected::Refused {
                code: "consent-missing",
                rule: Some("pay-own-invoice"),
            },
        },
        Case {
            what: "ada asks for a tool that nobody enabled",
            caller: Some("ada"),
            tool: "billing_listMembers",
            arguments: json!({}),
            expected: Expected::Refused {
                code: "held",
                rule: None,
            },
        },
        Case {
            what: "somebody without an identity asks for an invoice",
            caller: None,
            tool: status,
            arguments: json!({ "invoice_id": "inv-1001" }),
            expected: Expected::Refused {
                code: "unauthenticated",
                rule: None,
            },
        },
    ]
}

/// Runs every case, prints what was decided, and says whether all came out right.
pub(super) async fn run(town: &Town) -> Result<bool, Failure> {
    let network = "127.0.0.0/8".parse().map(|net| Network::allowing(vec![net]));
    let network = network.map_err(|_| Failure::Internal("loopback is no network".to_owned()))?;
    let client = Client::new(ClientOptions::new(network, &Limits::default()))
        .map_err(|fault| Failure::Internal(fault.to_string()))?;
    let mut ledger = town.ledger();
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let seen = see(town, &client, &mut ledger, case).await?;
        let faults = case.faults(&seen);
        rows.push(case.row(&seen, faults.is_empty()));
        wrong.extend(faults.into_iter().map(|fault| format!("{}: {fault}", case.what)));
    }
    print::table(&["case", "decision", "by rule", "requests", ""], rows);
    for fault in &wrong {
        tell!("{fault}");
    }
    if wrong.is_empty() {
        say!("\nall {} cases came out right", cases.len());
    } else {
        say!("\nthe demo did NOT come out right");
    }
    Ok(wrong.is_empty())
}

/// Sends one case through the gate and collects what came of it.
async fn see(
    town: &Town,
    client: &Client,
    ledger: &mut Receiver<Arc<Entry>>,
    case: &Case,
) -> Result<Seen, Failure> {
    let deadline = Instant::now() + CASE_TIMEOUT;
    let before = town.service_requests();
    let answer = client
        .send(request(town, case)?, deadline)
        .await
        .map_err(|fault| Failure::Unavailable(format!("the gate did not answer: {fault}")))?;
    let body = answer
        .read(1 << 20, deadline)
        .await
        .map_err(|fault| Failure::Unavailable(format!("the gate did not answer: {fault}")))?;
    let answer = serde_json::from_slice(&body)
        .map_err(|error| Failure::Internal(format!("the gate's answer is not JSON: {error}")))?;
    // The decision is committed before the answer, so it is there; an outcome may follow it.
    let decision = async {
        loop {
            match ledger.recv().await {
                Ok(entry) if matches!(entry.kind(), EntryKind::Intent | EntryKind::Refusal) => {
                    return Ok(entry);
                }
                Ok(_) => {}
                Err(error) => return Err(Failure::Internal(format!("the ledger gave no entry: {error}"))),
            }
        }
    };
    let entry = tokio::time::timeout_at(deadline, decision)
        .await
        .map_err(|_| Failure::Internal("the ledger gave no entry in time".to_owned()))??;
    Ok(Seen {
        answer,
        entry,
        requests: town.service_requests() - before,
    })
}

fn request(town: &Town, case: &Case) -> Result<Request<Full<Bytes>>, Failure> {
    let revision = wire::Revision::NEWEST_STATELESS.as_str();
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "tollhouse-demo", "version": env!("CARGO_PKG_VERSION") },
            },
            "name": case.tool,
            "arguments": case.arguments,
        },
    });
    let broken = |what: &str| Failure::Internal(format!("the request cannot be made: {what}"));
    let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = town.endpoint().parse().map_err(|_| broken("the endpoint"))?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    headers.insert(wire::header::PROTOCOL_VERSION, HeaderValue::from_static(revision));
    headers.insert(wire::header::METHOD, HeaderValue::from_static("tools/call"));
    headers.insert(wire::header::NAME, HeaderValue::from_static(case.tool));
    if let Some(key) = case.caller.and_then(|caller| town.key(caller)) {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| broken("the key"))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(request)
}

impl Case {
    /// Everything about a case that is not as it should be.
    fn faults(&self, seen: &Seen) -> Vec<String> {
        let mut faults = Vec::new();
        let rules = seen.entry.rules();
        match &self.expected {
            Expected::Allowed { rule, fields } => {
                if seen.entry.kind() != EntryKind::Intent || rules != [*rule] {
                    faults.push(format!(
                        "the ledger says {}, not that `{rule}` permits it",
                        seen.entry
                    ));
                }
                if seen.requests != 1 {
                    faults.push(format!("the service counted {} requests, not 1", seen.requests));
                }
                let result = seen
                    .answer
                    .pointer("/result/structuredContent")
                    .and_then(Value::as_object);
                let mut found: Vec<&str> = result
                    .map(|object| object.keys().map(String::as_str).collect())
                    .unwrap_or_default();
                found.sort_unstable();
                if found != *fields {
                    faults.push(format!("the answer has the fields {found:?}, not {fields:?}"));
                }
            }
            Expected::Refused { code, rule } => {
                if seen.entry.refusal() != Some(code) || rule.is_some_and(|rule| rules != [rule]) {
                    faults.push(format!("the ledger says {}, not `{code}`", seen.entry));
                }
                if seen.requests != 0 {
                    faults.push(format!("the service counted {} requests, not 0", seen.requests));
                }
                if seen.answer.pointer("/result/structuredContent").is_some() {
                    faults.push("the answer has content of the service".to_owned());
                }
            }
        }
        faults
    }

    fn row(&self, seen: &Seen, right: bool) -> Vec<String> {
        let decision = match seen.entry.refusal() {
            None => "allowed".to_owned(),
            Some(code) => format!("refused: {code}"),
        };
        let rules = seen.entry.rules();
        let rules = if rules.is_empty() {
            "none".to_owned()
        } else {
            rules.join(", ")
        };
        let word = if right { "ok" } else { "WRONG" };
        vec![
            self.what.to_owned(),
            decision,
            rules,
            seen.requests.to_string(),
            word.to_owned(),
        ]
    }
}
