//! Gates that are killed while calls are under way: whatever reached the service was written down before, and what nobody
//! can know is reported as unknown. A hundred kills.

use std::collections::BTreeSet;

use e2e::client::Mcp;
use e2e::house::{Gate, House, text, until};
use e2e::ledger::Entries;
use e2e::orders;
use e2e::service::Service;
use e2e::socket::Socket;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

/// Kills per house. There are four houses.
const ROUNDS: usize = 25;

/// A house whose gates do not get old.
struct Scene {
    service: Service,
    house: House,
    key: String,
}

impl Scene {
    async fn build() -> Self {
        let service = Service::start(orders::usual).await;
        let house = orders::house(&service.url());
        let key = house.key("ada").await;
        Self { service, house, key }
    }

    /// Sends a call; whatever was answered until the connection ended is what the task gives.
    async fn send(&self, gate: &Gate, tool: &str) -> JoinHandle<String> {
        let ada = Mcp::modern(&gate.url, &self.key);
        let arguments = match tool {
            "orders_note" => json!({"id":"o-1","text":"x"}),
            _ => json!({"id":"o-1"}),
        };
        let message = ada.request(1, "tools/call", json!({"name":tool,"arguments":arguments}));
        let body = message.to_string();
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            gate.authority(),
            body.len()
        );
        for (name, value) in ada.headers(&message) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut socket = Socket::open(gate.authority()).await;
        socket.write(format!("{request}\r\n{body}")).await;
        tokio::spawn(async move { String::from_utf8_lossy(&socket.end().await).into_owned() })
    }

    /// Ids of the calls that arrived, as the service read them.
    fn arrived(&self) -> BTreeSet<String> {
        let arrived = self.service.arrived();
        let ids: BTreeSet<String> = arrived
            .iter()
            .map(|request| request.headers["x-request-id"].to_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), arrived.len(), "no call makes two requests");
        ids
    }

    /// One more gate starts from what the killed ones left and ends well; then the ledger must be sound.
    async fn ledger(&self) -> Book {
        let gate = self.house.serve().await;
        let ada = Mcp::modern(&gate.url, &self.key);
        let result = ada.call("orders_read", json!({"id":"o-1"})).await;
        assert_eq!(result["structuredContent"], orders::order(), "{result}");
        let (code, log) = gate.close().await;
        assert_eq!(code, Some(0), "{log}");
        let verified = self.house.run(["audit", "verify", "--json"]).await;
        let report = text(&verified.stdout);
        assert_eq!(verified.status.code(), Some(0), "{report}");
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(
            (&report["sound"], &report["faults_total"]),
            (&json!(true), &json!(0))
        );
        // Every start of a gate names the ends of the chains before it, so that no end can be cut off unseen.
        assert_eq!(report["chains"].as_array().unwrap().len(), ROUNDS + 1);
        Book {
            entries: self.house.ledger().await,
            report,
        }
    }
}

/// A ledger, and what `audit verify` says about it.
struct Book {
    entries: Entries,
    report: Value,
}

impl Book {
    fn calls(&self, kind: &str) -> BTreeSet<String> {
        let entries = self.entries.of_kind(kind);
        let calls: BTreeSet<String> = entries
            .iter()
            .map(|entry| entry["call"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(calls.len(), entries.len(), "no call has two of a kind");
        calls
    }

    /// The calls that the verifier reports as unknown.
    fn unknown(&self) -> BTreeSet<String> {
        let listed = self.report["unknown"].as_array().unwrap();
        assert_eq!(self.report["unknown_total"], listed.len());
        listed
            .iter()
            .map(|call| call["call"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Kills gates whose calls wait for the service's answer.
async fn held() {
    let scene = Scene::build().await;
    let mut open = BTreeSet::new();
    for round in 0..ROUNDS {
        let gate = scene.house.serve().await;
        // Some calls end before; their outcomes stay what they were.
        for _ in 0..round % 3 {
            let answer = scene.send(&gate, "orders_read").await.await.unwrap();
            assert!(answer.contains("structuredContent"), "{answer}");
        }
        scene.service.hold();
        let before = scene.arrived();
        let mut waiting = Vec::new();
        for tool in ["orders_read", "orders_note", "orders_read", "orders_drop"] {
            waiting.push(scene.send(&gate, tool).await);
        }
        scene.service.until(before.len() + waiting.len()).await;
        open.extend(scene.arrived().difference(&before).cloned());
        gate.kill().await;
        for call in waiting {
            assert_eq!(call.await.unwrap(), "", "round {round}: nobody was answered");
        }
        scene.service.let_go();
    }
    assert_eq!(open.len(), 4 * ROUNDS);
    let book = scene.ledger().await;
    // What the service counted is what was intended, call by call, and what was under way is what is unknown.
    assert_eq!(book.calls("intent"), scene.arrived());
    assert_eq!(book.unknown(), open);
    assert!(book.calls("outcome").is_disjoint(&open));
}

/// Kills gates in the middle of whatever they do.
async fn streaming() {
    let scene = std::sync::Arc::new(Scene::build().await);
    let mut answered = 0;
    for round in 0..ROUNDS {
        let gate = std::sync::Arc::new(scene.house.serve().await);
        let before = scene.service.count();
        let mut callers = JoinSet::new();
        for caller in 0..4 {
            let (scene, gate) = (std::sync::Arc::clone(&scene), std::sync::Arc::clone(&gate));
            callers.spawn(async move {
                let mut answered = 0;
                let tools = ["orders_read", "orders_note", "orders_read", "orders_drop"];
                for tool in tools.iter().cycle().skip(caller) {
                    // Until the gate is gone in the middle of it.
                    if !scene
                        .send(&gate, tool)
                        .await
                        .await
                        .unwrap()
                        .contains("\"result\"")
                    {
                        break;
                    }
                    answered += 1;
                    // The rest of a round comes to nothing if the kill is slow.
                    if answered == 200 {
                        break;
                    }
                }
                answered
            });
        }
        scene.service.until(before + 3 + 2 * round).await;
        let killed = std::process::Command::new("kill")
            .args(["-KILL", &gate.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
        // A connection that is refused is the end of a caller too.
        while let Some(ended) = callers.join_next().await {
            answered += ended.unwrap_or(0);
        }
        until("the gate is dead", async || {
            tokio::net::TcpStream::connect(gate.authority()).await.is_err()
        })
        .await;
    }
    assert!(answered > 0);
    let book = scene.ledger().await;
    let (intents, arrived) = (book.calls("intent"), scene.arrived());
    // An intent may not have come as far as the service; nothing comes to the service without one.
    assert!(
        arrived.is_subset(&intents),
        "{:?}",
        arrived.difference(&intents).collect::<Vec<_>>()
    );
    assert!(intents.len() - arrived.len() <= 4 * ROUNDS);
    let outcomes = book.calls("outcome");
    assert!(
        outcomes.is_subset(&intents) && outcomes.len() > answered,
        "whoever was answered has an outcome: {} of {answered}",
        outcomes.len()
    );
    let open: BTreeSet<String> = intents.difference(&outcomes).cloned().collect();
    assert_eq!(book.unknown(), open);
}

#[tokio::test]
async fn a_hundred_gates_that_are_killed_between_intent_and_outcome_lose_nothing() {
    tokio::join!(held(), held(), held(), streaming());
}
