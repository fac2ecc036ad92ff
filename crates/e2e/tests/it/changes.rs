//! What clients hear of changes: in sessions, on pipes, and by subscriptions of the stateless era.

use e2e::client::{MODERN, Mcp, opening};
use e2e::far::{FarServer, echo};
use e2e::house::{Gate, House};
use e2e::schema::assert_message;
use serde_json::{Value, json};

use crate::servers::{TOOL, close, house, unapproved};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const CHANGED: &str = "notifications/tools/list_changed";

struct Changing {
    far: FarServer,
    house: House,
    gate: Gate,
    key: String,
}

/// A gate in front of a server that tells its changes, with a conversation in which it can.
async fn changing() -> Changing {
    let far = FarServer::start(&["2025-11-25"]).await;
    let house = house(&far, "", TOOL).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let first = Mcp::modern(&gate.url, &key);
    first.call("far_echo", json!({ "text": "a" })).await;
    Changing {
        far,
        house,
        gate,
        key,
    }
}

impl Changing {
    /// The server defines its tool otherwise, and says so.
    async fn changes(&self) {
        let mut other = echo();
        other["description"] = json!("Something else.");
        self.far.tools(vec![other]);
        self.tells().await;
    }

    async fn is_as_it_was(&self) {
        self.far.tools(vec![echo()]);
        self.tells().await;
    }

    async fn tells(&self) {
        e2e::house::until("somebody listens to the server", async || {
            self.far.tell(&json!({ "jsonrpc": "2.0", "method": CHANGED })) > 0
        })
        .await;
    }
}

fn listening(id: Value, notifications: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen",
        "params": {
            "notifications": notifications,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            },
        },
    })
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[tokio::test]
async fn hl_10_a_session_hears_of_a_change_on_one_of_its_streams() {
    for revision in LEGACY {
        let changing = changing().await;
        let stranger = Mcp {
            revision: revision.to_owned(),
            ..Mcp::modern(&changing.gate.url, &changing.key)
        };
        let opened = stranger.post(&opening(revision)).await.json();
        assert_eq!(
            opened["result"]["capabilities"]["tools"],
            json!({ "listChanged": true }),
            "{revision}"
        );
        let client = Mcp::legacy(&changing.gate.url, &changing.key, revision).await;
        let mut one = client.listen(None).await;
        let mut other = client.listen(None).await;
        changing.changes().await;
        let told = one.message().await.unwrap();
        assert_message(revision, &told);
        assert_eq!(told["method"], CHANGED, "{revision}");
        assert!(
            told["params"].get("_meta").is_none(),
            "{revision}: no subscription in this era"
        );
        // Once it comes back the same stream hears of it, and the other one heard of nothing.
        changing.is_as_it_was().await;
        assert_eq!(one.message().await.unwrap()["method"], CHANGED);
        drop(one);
        changing.changes().await;
        assert_eq!(other.message().await.unwrap()["method"], CHANGED, "{revision}");
        close(changing.gate).await;
    }
}

#[tokio::test]
async fn d15_sub_01_sub_02_sub_03_sub_04_sub_06_a_subscription_is_acknowledged_tagged_and_hears_what_it_wants()
 {
    let changing = changing().await;
    let client = Mcp::modern(&changing.gate.url, &changing.key);
    for id in [json!(7), json!("7")] {
        let wants = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": false, "resourceSubscriptions": ["a:b"],
        });
        let mut heard = client.stream(&listening(id.clone(), wants)).await;
        let first = heard.message().await.unwrap();
        assert_message(MODERN, &first);
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(
            first["params"]["notifications"],
            json!({ "toolsListChanged": true }),
            "what there is"
        );
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION], id);
        let mut deaf = client
            .stream(&listening(json!("deaf"), json!({ "promptsListChanged": true })))
            .await;
        assert_eq!(
            deaf.message().await.unwrap()["params"]["notifications"],
            json!({})
        );
        changing.changes().await;
        let told = heard.message().await.unwrap();
        assert_message(MODERN, &told);
        assert_eq!(
            (&told["method"], &told["params"]["_meta"][SUBSCRIPTION]),
            (&json!(CHANGED), &id)
        );
        changing.is_as_it_was().await;
        assert_eq!(heard.message().await.unwrap()["method"], CHANGED);
    }
    // SUB-06: at the end of the gate, a result, and nothing behind it.
    let mut heard = client
        .stream(&listening(json!("last"), json!({ "toolsListChanged": true })))
        .await;
    heard.message().await.unwrap();
    changing.gate.interrupt();
    let last = heard.message().await.unwrap();
    assert_message(MODERN, &last);
    assert_eq!(last["id"], "last");
    assert_eq!(
        last["result"],
        json!({ "resultType": "complete", "_meta": { SUBSCRIPTION: "last" } })
    );
    assert!(heard.message().await.is_none());
    let (code, log) = changing.gate.ended().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn nobody_hears_of_what_he_may_not_see_nor_on_an_endpoint_that_does_not_show_it() {
    let changing = changing().await;
    changing.house.write(
        "policy/all.cedar",
        "permit (principal, action, resource) when { principal.subject == \"bob\" };\n",
    );
    let (code, log) = changing.gate.close().await;
    assert_eq!(code, Some(0), "{log}");
    let bob = changing.house.key("bob").await;
    let gate = changing.house.serve().await;
    Mcp::modern(&gate.url, &bob)
        .call("far_echo", json!({ "text": "a" }))
        .await;
    let wants = json!({ "toolsListChanged": true });
    let mut of_ada = Mcp::modern(&gate.url, &changing.key)
        .stream(&listening(json!(1), wants.clone()))
        .await;
    let mut of_bob = Mcp::modern(&gate.url, &bob)
        .stream(&listening(json!(1), wants))
        .await;
    assert!(of_ada.message().await.unwrap()["method"].is_string());
    assert!(of_bob.message().await.unwrap()["method"].is_string());
    let changing = Changing { gate, ..changing };
    changing.changes().await;
    assert_eq!(of_bob.message().await.unwrap()["method"], CHANGED);
    changing.gate.interrupt();
    let last = of_ada.message().await.unwrap();
    assert!(
        last["result"].is_object(),
        "she heard of nothing before the end: {last}"
    );
    changing.gate.ended().await;
}

#[tokio::test]
async fn sub_05_sub_08_subscriptions_are_open_up_to_the_limit_and_one_that_is_closed_makes_room() {
    let far = FarServer::start(&[MODERN]).await;
    let house = house(
        &far,
        "",
        &format!("{TOOL}[limits]\nsubscriptions_per_caller_max = 2\n"),
    )
    .await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let open = async || {
        let mut heard = client.stream(&listening(json!(1), json!({}))).await;
        let first = heard.message().await;
        first.map(|_| heard)
    };
    let one = open().await;
    let two = open().await;
    assert!(one.is_some() && two.is_some());
    let third = client.post(&listening(json!(1), json!({}))).await;
    assert_eq!(third.code(), Some(-32_603), "{}", third.text());
    drop(one);
    e2e::house::until("a place is free", async || open().await.is_some()).await;
    gate.interrupt();
    gate.ended().await;
}

#[tokio::test]
async fn sub_09_where_nothing_can_change_there_is_nothing_to_listen_to_and_wants_have_their_form() {
    let (desk, gate) = e2e::desk::Plan::new().serve().await;
    let client = desk.modern(&gate, "ada");
    let answer = client
        .post(&listening(json!(1), json!({ "toolsListChanged": true })))
        .await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.code(), Some(-32_601));
    drop(gate);
    let far = FarServer::start(&[MODERN]).await;
    let house = house(&far, "", TOOL).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    for wants in [
        json!([]),
        json!({ "toolsListChanged": 1 }),
        json!({ "resourceSubscriptions": "a:b" }),
        json!({ "resourceSubscriptions": [1] }),
    ] {
        let answer = client.post(&listening(json!(1), wants.clone())).await;
        assert_eq!(answer.code(), Some(-32_602), "{wants}");
    }
    let legacy = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let answer = legacy
        .ask("subscriptions/listen", json!({ "notifications": {} }))
        .await;
    assert_eq!(answer["error"]["code"], -32_601, "not in this era");
    close(gate).await;
}

#[tokio::test]
async fn stdio_07_sub_07_on_a_pipe_both_eras_hear_of_changes_each_in_its_own_words() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let house = unapproved(&far, "", &format!("{TOOL}[stdio]\ncaller = \"ada\"\n"));
    crate::servers::approve(&house).await;
    let mut pipe = house.stdio();
    let opened = pipe
        .ask(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
        }))
        .await;
    assert_eq!(
        opened["result"]["capabilities"]["tools"],
        json!({ "listChanged": true })
    );
    pipe.send(&listening(json!("s"), json!({ "toolsListChanged": true })).to_string())
        .await;
    assert_eq!(
        pipe.message().await["method"],
        "notifications/subscriptions/acknowledged"
    );
    let called = pipe
        .ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "far_echo", "arguments": { "text": "a" } } }))
        .await;
    assert_eq!(called["id"], 2, "{called}");
    let mut other = echo();
    other["description"] = json!("Something else.");
    far.tools(vec![other]);
    e2e::house::until("somebody listens to the server", async || {
        far.tell(&json!({ "jsonrpc": "2.0", "method": CHANGED })) > 0
    })
    .await;
    let mut tags: Vec<Value> = [pipe.message().await, pipe.message().await]
        .iter()
        .inspect(|told| assert_eq!(told["method"], CHANGED, "{told}"))
        .map(|told| told["params"]["_meta"][SUBSCRIPTION].clone())
        .collect();
    tags.sort_by_key(Value::is_null);
    assert_eq!(tags, [json!("s"), json!(null)]);
    // A subscription that its client ends is not answered (CAN-02); the others are, when the pipe ends.
    pipe.send(&listening(json!("t"), json!({})).to_string()).await;
    assert_eq!(pipe.message().await["params"]["_meta"][SUBSCRIPTION], "t");
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "s", "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN } } }).to_string())
        .await;
    // Behind it, so that it was read.
    let ping = pipe
        .ask(&json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }))
        .await;
    assert_eq!(ping["id"], 3, "{ping}");
    pipe.interrupt();
    let ended = pipe.message().await;
    assert_eq!(ended["id"], "t", "{ended}");
    let torn_down = pipe.message().await;
    assert_eq!(
        (&torn_down["method"], &torn_down["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!("t"))
    );
    let (code, log) = pipe.ended().await;
    assert_eq!(code, Some(0), "{log}");
}
