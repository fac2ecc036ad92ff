//! Resources whose changes are told, over the wire: who follows one is asked about on the road like a reader of it, and is told
//! in the words of his era whatever the server's is.

use std::collections::BTreeSet;

use axum::response::Response;
use e2e::client::{MODERN, Mcp};
use e2e::far::{Asked, FarServer, error};
use e2e::house::{Gate, House, close, until};
use e2e::schema::assert_message;
use serde_json::{Value, json};

use crate::asks::house;

const RESOURCES: &str = "[upstream.far.resource.notes]\nuri = \"file:///notes\"\nclass = \"read\"\n\
     [upstream.far.resource.other]\nuri = \"file:///other\"\nclass = \"read\"\n\
     [upstream.far.resource.page]\ntemplate = \"page:///{number}\"\nclass = \"read\"\n";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

async fn following(revision: &str) -> FarServer {
    let far = FarServer::start(&[revision]).await;
    let resource = |name: &str| json!({ "uri": format!("file:///{name}"), "name": name });
    far.has("resources/list", vec![resource("notes"), resource("other")]);
    far.has(
        "resources/templates/list",
        vec![json!({ "uriTemplate": "page:///{number}", "name": "page" })],
    );
    far.subscribes();
    far
}

/// A gate in front of a server, and a session of ada's at it.
async fn ada_at(far: &FarServer, more: &str) -> (House, Gate, Mcp) {
    let house = house(far, "", more).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    (house, gate, client)
}

fn updated(uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } })
}

fn wants(id: Value, client: &Mcp, uris: &[&str]) -> Value {
    let params = json!({ "notifications": { "resourceSubscriptions": uris } });
    client.request(id, "subscriptions/listen", params)
}

/// Waits until the server is listened to where it was asked to tell something last.
async fn heard(far: &FarServer) {
    until("the gate listens", async || {
        far.is_heard_by("resources/subscribe") || far.is_heard_by("subscriptions/listen")
    })
    .await;
}

/// What a server of either era was asked to tell, in the order in which it was asked.
fn asked(far: &FarServer) -> Vec<BTreeSet<String>> {
    let of = |asked: &Asked| match asked.method.as_str() {
        "resources/subscribe" => Some(BTreeSet::from([asked.params["uri"].as_str().unwrap().to_owned()])),
        "subscriptions/listen" => {
            let uris = asked.params["notifications"]["resourceSubscriptions"].as_array();
            Some(
                uris.unwrap()
                    .iter()
                    .map(|uri| uri.as_str().unwrap().to_owned())
                    .collect(),
            )
        }
        _ => None,
    };
    far.asked().iter().filter_map(of).collect()
}

fn set(uris: &[&str]) -> BTreeSet<String> {
    uris.iter().map(|&uri| uri.to_owned()).collect()
}

#[tokio::test]
async fn d15_res_05_res_06_whoever_follows_a_resource_is_told_in_every_pair_of_eras() {
    for (revision, far_revision) in [
        ("2024-11-05", "2025-11-25"),
        ("2025-03-26", "2025-11-25"),
        ("2025-06-18", MODERN),
        ("2025-11-25", "2025-11-25"),
        ("2025-11-25", MODERN),
        (MODERN, "2025-11-25"),
        (MODERN, "2024-11-05"),
        (MODERN, MODERN),
    ] {
        let pair = format!("{revision} {far_revision}");
        let far = following(far_revision).await;
        let house = house(&far, "", RESOURCES).await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let (client, mut hears, tag);
        if revision == MODERN {
            client = Mcp::modern(&gate.url, &key);
            let discovered = client.ask("server/discover", json!({})).await;
            let resources = &discovered["result"]["capabilities"]["resources"];
            assert_eq!(resources["subscribe"], true, "RES-01 {pair}");
            hears = client
                .stream(&wants(
                    json!("f"),
                    &client,
                    &["file:///notes", "page:///7", "file:///none"],
                ))
                .await;
            let first = hears.message().await.unwrap();
            assert_message(MODERN, &first);
            // SUB-02: what there is.
            assert_eq!(
                first["params"]["notifications"],
                json!({ "resourceSubscriptions": ["file:///notes", "page:///7"] }),
                "{pair}"
            );
            tag = json!("f");
        } else {
            client = Mcp::legacy(&gate.url, &key, revision).await;
            hears = client.listen(None).await;
            for uri in ["file:///notes", "page:///7"] {
                let answer = client.ask("resources/subscribe", json!({ "uri": uri })).await;
                assert_eq!(answer["result"], json!({}), "{pair}");
            }
            let answer = client
                .ask("resources/subscribe", json!({ "uri": "file:///none" }))
                .await;
            assert_eq!(answer["error"]["code"], -32_002, "RES-03 {pair}: {answer}");
            tag = json!(null);
        }
        let expected = if far_revision == MODERN {
            // C2: the whole set anew, since a listening request cannot be changed.
            vec![set(&["file:///notes"]), set(&["file:///notes", "page:///7"])]
        } else {
            vec![set(&["file:///notes"]), set(&["page:///7"])]
        };
        assert_eq!(asked(&far), expected, "{pair}");
        heard(&far).await;
        // What nobody follows is told to nobody; a part of what is followed is.
        for uri in ["file:///other", "file:///notes2", "page:///7", "file:///notes/1"] {
            far.tell(&updated(uri));
        }
        for uri in ["page:///7", "file:///notes/1"] {
            let told = hears.message().await.unwrap();
            assert_message(revision, &told);
            assert_eq!(told["method"], "notifications/resources/updated", "{pair}");
            assert_eq!(told["params"]["uri"], uri, "{pair}");
            assert_eq!(told["params"]["_meta"][SUBSCRIPTION], tag, "SUB-03 {pair}");
        }
        // The end of it: the server is told, or asked for less.
        if revision == MODERN {
            drop(hears);
        } else {
            for uri in ["file:///notes", "page:///7", "file:///never"] {
                let answer = client.ask("resources/unsubscribe", json!({ "uri": uri })).await;
                assert_eq!(answer["result"], json!({}), "{pair}");
            }
        }
        if far_revision == MODERN {
            until("nobody listens to the server any more", async || {
                far.listeners() == 0
            })
            .await;
        } else {
            until("the server was told", async || {
                let ended: BTreeSet<String> = far
                    .asked_for("resources/unsubscribe")
                    .iter()
                    .map(|asked| asked.params["uri"].as_str().unwrap().to_owned())
                    .collect();
                ended == set(&["file:///notes", "page:///7"])
            })
            .await;
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn d16_sub_05_what_is_followed_grows_without_a_moment_in_which_nothing_is_told() {
    let far = following(MODERN).await;
    let (_house, gate, client) = ada_at(&far, RESOURCES).await;
    let mut hears = client.listen(None).await;
    let first = client
        .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
        .await;
    assert_eq!(first["result"], json!({}), "{first}");
    // The server has heard of the second, and does not acknowledge it yet.
    far.service.hold();
    let more = client.request(2, "resources/subscribe", json!({ "uri": "file:///other" }));
    let more = client.post(&more);
    tokio::pin!(more);
    let second_came = async || asked_to_listen(&far) == 2;
    tokio::select! {
        answer = &mut more => panic!("it is answered before the server acknowledged it: {}", answer.text()),
        () = until("the second request arrives", second_came) => {}
    }
    assert_eq!(far.listeners(), 1, "the first is still open");
    far.tell(&updated("file:///notes"));
    let told = hears.message().await.unwrap();
    assert_eq!(told["params"]["uri"], "file:///notes", "{told}");
    far.service.let_go();
    assert_eq!(more.await.json()["result"], json!({}));
    until("the first is closed behind the second", async || {
        far.listeners() == 1
    })
    .await;
    far.tell(&updated("file:///other"));
    let told = hears.message().await.unwrap();
    assert_eq!(told["params"]["uri"], "file:///other", "{told}");
    close(gate).await;
}

/// How many listening requests have arrived, answered or not.
fn asked_to_listen(far: &FarServer) -> usize {
    let arrived = far.service.arrived();
    let listening = arrived
        .iter()
        .filter(|arrived| String::from_utf8_lossy(&arrived.body).contains("subscriptions/listen"));
    listening.count()
}

#[tokio::test]
async fn who_may_not_read_a_resource_may_not_follow_it_and_the_server_hears_nothing_of_it() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = following(far_revision).await;
        let house = house(&far, "", RESOURCES).await;
        house.write(
            "policy/all.cedar",
            "permit (principal, action, resource) when { principal.subject == \"bob\" };\n",
        );
        let (ada, bob) = (house.key("ada").await, house.key("bob").await);
        let gate = house.serve().await;
        let client = Mcp::legacy(&gate.url, &ada, "2025-11-25").await;
        let refused = client
            .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
            .await;
        assert!(refused["error"].is_object(), "{refused}");
        let modern = Mcp::modern(&gate.url, &ada);
        let mut heard = modern.stream(&wants(json!(1), &modern, &["file:///notes"])).await;
        assert_eq!(
            heard.message().await.unwrap()["params"]["notifications"],
            json!({})
        );
        assert_eq!(asked(&far), [], "0 requests");
        let of_bob = Mcp::legacy(&gate.url, &bob, "2025-11-25").await;
        let answer = of_bob
            .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
            .await;
        assert_eq!(answer["result"], json!({}));
        drop(heard);
        close(gate).await;
        // Each of them stands in the ledger, with what became of it.
        let entries = house.ledger().await;
        let of = |kind: &str| {
            let entries = entries
                .0
                .iter()
                .filter(|entry| entry["method"] == "resources/subscribe" && entry["kind"] == kind);
            entries.count()
        };
        assert_eq!((of("refusal"), of("intent")), (2, 1), "{entries:?}");
    }
}

#[tokio::test]
async fn what_is_told_reaches_whoever_follows_it_and_no_other_caller_of_the_same_conversation() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = following(far_revision).await;
        let house = house(&far, "sharing = \"shared\"", RESOURCES).await;
        let (ada, bob) = (house.key("ada").await, house.key("bob").await);
        let gate = house.serve().await;
        let mut hears = Vec::new();
        for (key, uri) in [
            (&ada, "file:///notes"),
            (&bob, "file:///other"),
            (&bob, "file:///notes"),
        ] {
            let client = Mcp::legacy(&gate.url, key, "2025-11-25").await;
            let stream = client.listen(None).await;
            let answer = client.ask("resources/subscribe", json!({ "uri": uri })).await;
            assert_eq!(answer["result"], json!({}));
            hears.push((client, stream));
        }
        heard(&far).await;
        far.tell(&updated("file:///notes"));
        far.tell(&updated("file:///other"));
        let mut told = Vec::new();
        for (_, stream) in &mut hears {
            told.push(stream.message().await.unwrap()["params"]["uri"].clone());
        }
        assert_eq!(
            told,
            [
                json!("file:///notes"),
                json!("file:///other"),
                json!("file:///notes")
            ]
        );
        // One of two goes: the other is told as before, and the server hears of it only when the last one goes.
        let (first, _) = &hears[0];
        first
            .ask("resources/unsubscribe", json!({ "uri": "file:///notes" }))
            .await;
        heard(&far).await;
        far.tell(&updated("file:///notes"));
        let (_, last) = &mut hears[2];
        assert_eq!(last.message().await.unwrap()["params"]["uri"], "file:///notes");
        assert_eq!(far.asked_for("resources/unsubscribe").len(), 0);
        // A session that ends follows nothing.
        let (session, stream) = hears.remove(2);
        drop(stream);
        session.end().await;
        if far_revision == MODERN {
            until("less is asked for", async || {
                asked(&far).last() == Some(&set(&["file:///other"]))
            })
            .await;
        } else {
            until("the server was told", async || {
                far.asked_for("resources/unsubscribe").len() == 1
            })
            .await;
        }
        drop(hears);
        close(gate).await;
    }
}

#[tokio::test]
async fn resources_are_followed_up_to_the_limit_and_not_one_past_it() {
    let far = following("2025-11-25").await;
    let limits = format!("{RESOURCES}[limits]\nresource_subscriptions_max = 2\n");
    let house = house(&far, "", &limits).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let follow = async |uri: &str| client.ask("resources/subscribe", json!({ "uri": uri })).await;
    for uri in ["page:///1", "page:///2", "page:///2"] {
        assert_eq!(follow(uri).await["result"], json!({}));
    }
    let refused = follow("page:///3").await;
    assert_eq!(refused["error"]["code"], -32_603, "{refused}");
    client
        .ask("resources/unsubscribe", json!({ "uri": "page:///1" }))
        .await;
    assert_eq!(follow("page:///3").await["result"], json!({}));
    // Another session has places of its own.
    let other = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let answer = other
        .ask("resources/subscribe", json!({ "uri": "page:///1" }))
        .await;
    assert_eq!(answer["result"], json!({}));
    let modern = Mcp::modern(&gate.url, &key);
    let many = ["page:///1", "page:///2", "page:///3"];
    let refused = modern.post(&wants(json!(1), &modern, &many)).await;
    assert_eq!(refused.code(), Some(-32_602), "{}", refused.text());
    let mut heard = modern.stream(&wants(json!(1), &modern, &many[1..])).await;
    let first = heard.message().await.unwrap();
    let honoured = &first["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(honoured, &json!(many[1..]));
    drop(heard);
    close(gate).await;
}

#[tokio::test]
async fn what_is_followed_is_asked_for_again_when_the_conversation_was_lost() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = following(far_revision).await;
        let (_house, gate, client) = ada_at(&far, RESOURCES).await;
        let mut hears = client.listen(None).await;
        client
            .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
            .await;
        heard(&far).await;
        let before = asked(&far).len();
        // The server forgets its sessions and ends their streams; nobody calls anything.
        far.forget_sessions();
        far.hang_up();
        until("it is asked again", async || asked(&far).len() > before).await;
        assert_eq!(asked(&far).last(), Some(&set(&["file:///notes"])));
        heard(&far).await;
        far.tell(&updated("file:///notes"));
        assert_eq!(hears.message().await.unwrap()["params"]["uri"], "file:///notes");
        close(gate).await;
    }
}

#[tokio::test]
async fn a_session_in_which_nothing_is_heard_any_more_is_opened_anew_for_whoever_follows() {
    let far = following("2025-11-25").await;
    let (_house, gate, client) = ada_at(&far, RESOURCES).await;
    let mut hears = client.listen(None).await;
    client
        .ask("resources/read", json!({ "uri": "file:///notes" }))
        .await;
    until("the gate listens", async || far.is_heard_by("resources/read")).await;
    // Nothing is followed yet when the stream ends for good; the session itself goes on.
    far.refuse_listening(true);
    far.hang_up();
    until("the gate has tried again", async || {
        far.has_refused("resources/read")
    })
    .await;
    far.refuse_listening(false);
    let opened = far.asked_for("initialize").len();
    until("what is followed is heard", async || {
        let answer = client
            .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
            .await;
        assert_eq!(answer["result"], json!({}), "{answer}");
        far.is_heard_by("resources/subscribe")
    })
    .await;
    assert!(far.asked_for("initialize").len() > opened);
    far.tell(&updated("file:///notes"));
    assert_eq!(hears.message().await.unwrap()["params"]["uri"], "file:///notes");
    close(gate).await;
}

#[tokio::test]
async fn what_is_followed_at_a_server_that_was_down_for_a_while_is_asked_for_when_it_is_back() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = following(far_revision).await;
        let limits = format!("{RESOURCES}[limits]\nupstream_list_age_max = \"200ms\"\n");
        let (_house, gate, client) = ada_at(&far, &limits).await;
        let mut hears = client.listen(None).await;
        client
            .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
            .await;
        heard(&far).await;
        far.down(true);
        far.forget_sessions();
        far.hang_up();
        let said = if far_revision == MODERN {
            "was not asked again"
        } else {
            "cannot be reached"
        };
        gate.logged(said).await;
        let before = asked(&far).len();
        far.down(false);
        until("it is asked again", async || asked(&far).len() > before).await;
        heard(&far).await;
        far.tell(&updated("file:///notes"));
        assert_eq!(hears.message().await.unwrap()["params"]["uri"], "file:///notes");
        close(gate).await;
    }
}

#[tokio::test]
async fn res_01_where_a_server_does_not_tell_nobody_can_follow() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = FarServer::start(&[far_revision]).await;
        far.has(
            "resources/list",
            vec![json!({ "uri": "file:///notes", "name": "notes" })],
        );
        let resources = "[upstream.far.resource.notes]\nuri = \"file:///notes\"\nclass = \"read\"\n";
        let house = house(&far, "", resources).await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let refused = client.ask(method, json!({ "uri": "file:///notes" })).await;
            assert_eq!(refused["error"]["code"], -32_601, "{method}: {refused}");
        }
        let modern = Mcp::modern(&gate.url, &key);
        let discovered = modern.ask("server/discover", json!({})).await;
        assert!(
            discovered["result"]["capabilities"]["resources"]
                .get("subscribe")
                .is_none()
        );
        let mut heard = modern.stream(&wants(json!(1), &modern, &["file:///notes"])).await;
        assert_eq!(
            heard.message().await.unwrap()["params"]["notifications"],
            json!({})
        );
        drop(heard);
        close(gate).await;
    }
}

#[tokio::test]
async fn a_server_that_says_no_is_followed_by_nobody() {
    let far = following("2025-11-25").await;
    let refuse = |asked: &Asked| -> Response { error(asked, -32_602, "not this one") };
    far.reply("resources/subscribe", refuse);
    let modern = following(MODERN).await;
    modern.reply("subscriptions/listen", |asked| {
        let nothing = json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": { "notifications": {}, "_meta": { (SUBSCRIPTION): asked.id } },
        });
        e2e::far::events(&[nothing])
    });
    for far in [far, modern] {
        let (_house, gate, client) = ada_at(&far, RESOURCES).await;
        let mut hears = client.listen(None).await;
        let refused = client
            .ask("resources/subscribe", json!({ "uri": "file:///notes" }))
            .await;
        assert!(refused["error"].is_object(), "{refused}");
        if !far.asked_for("initialize").is_empty() {
            heard(&far).await;
            // What it tells all the same is not for him; behind it stands what is for everybody.
            far.tell(&updated("file:///notes"));
            let mut other = e2e::far::echo();
            other["description"] = json!("Something else.");
            far.tools(vec![other]);
            far.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            let told = hears.message().await.unwrap();
            assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
        }
        drop(hears);
        close(gate).await;
    }
}

#[tokio::test]
async fn what_is_followed_is_followed_in_the_conversation_of_the_calls() {
    let far = following("2025-11-25").await;
    let house = house(&far, crate::asks::MAY_ASK, RESOURCES).await;
    let call = json!({ "name": "far_echo", "arguments": { "text": "a" } });
    let follow = json!({ "uri": "file:///notes" });
    // A server that tells in its session what was done in it would else tell nobody.
    let is_one = |far: &FarServer| {
        let session = |method: &str| far.asked_for(method).last().unwrap().session.clone().unwrap();
        assert_eq!(session("tools/call"), session("resources/subscribe"));
        far.forget_asked();
    };
    let mut pipe = house.stdio();
    let opening = json!({
        "protocolVersion": "2025-11-25", "capabilities": crate::asks::able(),
        "clientInfo": { "name": "t", "version": "1" },
    });
    for (id, (method, params)) in [
        ("initialize", opening),
        ("tools/call", call.clone()),
        ("resources/subscribe", follow.clone()),
    ]
    .into_iter()
    .enumerate()
    {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answer = pipe.ask(&request).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    is_one(&far);
    pipe.close().await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", crate::asks::able()).await;
    let mut called = client.stream(&client.request(1, "tools/call", call)).await;
    assert!(called.message().await.unwrap()["result"].is_object());
    assert_eq!(
        client.ask("resources/subscribe", follow).await["result"],
        json!({})
    );
    is_one(&far);
    close(gate).await;
}

#[tokio::test]
async fn res_05_sub_03_on_a_pipe_both_eras_follow_each_in_its_own_words() {
    let far = following("2025-11-25").await;
    let house = house(&far, "", RESOURCES).await;
    let mut pipe = house.stdio();
    pipe.ask(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    }))
    .await;
    let followed = pipe
        .ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": "file:///notes" } }))
        .await;
    assert_eq!(followed["result"], json!({}), "{followed}");
    let listen = json!({
        "jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen",
        "params": {
            "notifications": { "resourceSubscriptions": ["file:///notes"] },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let acknowledged = pipe.ask(&listen).await;
    assert_eq!(
        acknowledged["params"]["notifications"]["resourceSubscriptions"],
        json!(["file:///notes"])
    );
    heard(&far).await;
    far.tell(&updated("file:///notes"));
    let mut tags: Vec<Value> = [pipe.message().await, pipe.message().await]
        .iter()
        .inspect(|told| assert_eq!(told["params"]["uri"], "file:///notes", "{told}"))
        .map(|told| told["params"]["_meta"][SUBSCRIPTION].clone())
        .collect();
    tags.sort_by_key(Value::is_null);
    assert_eq!(tags, [json!("s"), json!(null)]);
    pipe.close().await;
}
