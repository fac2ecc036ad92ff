//! The way out: where a call may go, what comes back, and how often. Connections and requests are counted by whoever
//! would have received them.

mod answers;
mod destinations;
mod redirects;
mod repeats;

use e2e::client::Mcp;
use e2e::house::{Gate, House};
use e2e::ledger::Entries;
use e2e::orders;
use serde_json::{Value, json};

/// A running gate, with ada in front of it.
struct Way {
    house: House,
    gate: Gate,
    ada: Mcp,
}

impl Way {
    async fn of(house: House) -> Self {
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let ada = Mcp::modern(&gate.url, &key);
        Self { house, gate, ada }
    }

    async fn to(url: &str) -> Self {
        Self::of(orders::house(url)).await
    }

    async fn read(&self) -> Value {
        self.ada.call("orders_read", json!({"id":"o-1"})).await
    }

    /// The newest outcome.
    async fn outcome(&self) -> Value {
        outcomes(&self.house.ledger().await).pop().unwrap()
    }

    async fn close(self) {
        let (code, log) = self.gate.close().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

fn outcomes(ledger: &Entries) -> Vec<Value> {
    ledger.of_kind("outcome").into_iter().cloned().collect()
}

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

const JSON: &str = "content-type: application/json\r\n";

const BROKE: &str = "the connection to the service behind this tool broke; whether it acted is unknown";
