//! The road that every client walks through the worked example, and what must come of it.

use e2e::example::Example;
use invoices::Operation;
use serde_json::{Value, json};

/// What a member of a tenant sees.
pub(crate) const TOOLS: [&str; 3] = [STATUS, "billing_listInvoices", "billing_payInvoice"];

/// The tool that a member calls.
pub(crate) const STATUS: &str = "billing_getInvoiceStatus";

/// What a caller is told who asks for the record of somebody else.
pub(crate) const DENIED: &str = "not permitted: no rule allows this call";

/// What a member is told of invoice `inv-1001`.
pub(crate) fn answer() -> Value {
    json!({"status":"open","due":"2026-12-15"})
}

/// Holds the ledger and the service against so many calls that were carried out, and so many that no rule allowed.
pub(crate) async fn assert_carried(example: &Example, carried: u64, denied: u64) {
    assert_eq!(example.service.count(Operation::GetInvoice), carried);
    assert_eq!(example.service.requests(), carried, "and nothing else");
    let ledger = example.house.ledger().await;
    let intents = ledger.of_kind("intent");
    assert_eq!(intents.len() as u64, carried);
    for intent in intents {
        assert_eq!(intent["rules"], json!(["status-of-own-invoice"]));
        let outcome = ledger.outcome(&intent["call"]).expect("an outcome");
        assert_eq!(outcome["state"], "done");
    }
    let refusals = ledger.refusals();
    assert!(
        refusals.iter().all(|code| *code == "not-permitted"),
        "{refusals:?}"
    );
    assert_eq!(refusals.len() as u64, denied);
}
