//! Servers on the official SDKs and the official servers behind the gate, by each transport, called by clients of both eras.

use e2e::behind::{Line, Official, Way};
use e2e::client::Mcp;
use e2e::driver::Sdk;
use e2e::house::{House, Pipe, text};
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";

#[tokio::test]
async fn sse_02_sse_03_sse_05_servers_on_the_sdks_are_called_through_the_gate_by_every_transport() {
    for sdk in Sdk::ALL {
        for way in [Way::Http, Way::Modern, Way::Sse] {
            if !sdk.serves(way) {
                continue;
            }
            let Some(server) = sdk.serve(way).await else {
                continue;
            };
            let config = format!(
                "listen = \"127.0.0.1:0\"\n[identity]\napi_keys = true\n[policy]\nfolder = \"policy\"\n[caller.ada]\nsubject = \"ada\"\n\
                 [upstream.far]\nurl = \"{}\"\nnetwork = {{ allow = [\"127.0.0.0/8\"] }}\n\
                 [upstream.far.tool.echo]\nclass = \"read\"\n[upstream.far.tool.count]\nclass = \"read\"\n",
                server.url
            );
            let house = House::new()
                .with_file("tollhouse.toml", config)
                .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
            let approved = house.run(["pins", "approve", "far", "--all"]).await;
            let said = text(&approved.stderr);
            assert!(
                approved.status.success(),
                "{sdk:?} {way:?}: {said}\n{}",
                server.log()
            );
            let key = house.key("ada").await;
            let gate = house.serve().await;
            for client in [
                Mcp::modern(&gate.url, &key),
                Mcp::legacy(&gate.url, &key, LEGACY).await,
            ] {
                assert_eq!(client.tools().await, ["far_count", "far_echo"], "{sdk:?} {way:?}");
                let echoed = client.call("far_echo", json!({"text":"häll\u{f6}"})).await;
                assert_eq!(echoed["content"][0]["text"], "hällö", "{sdk:?} {way:?}: {echoed}");
                let counted = client.call("far_count", json!({"to":3})).await;
                assert_eq!(
                    counted["content"][0]["text"], "counted to 3",
                    "{sdk:?} {way:?}: {counted}"
                );
            }
            let (code, log) = gate.close().await;
            assert_eq!(code, Some(0), "{log}");
        }
    }
}

/// The gate in front of a server that is started, as a client would start it.
fn wrap(house: &House, line: &Line) -> Pipe {
    let state = house.path("state").display().to_string();
    let mut command = house.command(["wrap", "--state", &state, "--"]);
    command.args(&line.command).current_dir(&line.folder);
    Pipe::start(command)
}

/// Calls one tool in both eras, and gives what it said in each.
async fn call(pipe: &mut Pipe, name: &str, arguments: &Value) -> [Value; 2] {
    let params = || json!({ "name": name, "arguments": arguments });
    let modern = Mcp::modern("http://pipe", "");
    let first = pipe.ask(&modern.request(7, "tools/call", params())).await;
    pipe.ask(&e2e::client::opening(LEGACY)).await;
    let legacy = Mcp {
        revision: LEGACY.to_owned(),
        ..modern
    };
    let second = pipe.ask(&legacy.request(8, "tools/call", params())).await;
    [first["result"].clone(), second["result"].clone()]
}

#[tokio::test]
async fn every_official_server_stands_behind_the_gate_with_one_word_in_front_of_its_command() {
    let house = House::new().with_file("files/a.txt", "a text");
    let files = house.path("files").display().to_string();
    let text_file = house.path("files/a.txt").display().to_string();
    for (official, arguments, tool, asked, expected) in [
        (
            Official::Everything,
            vec![],
            "echo",
            json!({ "message": "hi" }),
            "Echo: hi",
        ),
        (
            Official::Filesystem,
            vec![files.as_str()],
            "read_text_file",
            json!({ "path": text_file }),
            "a text",
        ),
        (Official::Memory, vec![], "read_graph", json!({}), "entities"),
        (
            Official::Time,
            vec![],
            "get_current_time",
            json!({ "timezone": "UTC" }),
            "UTC",
        ),
        (
            Official::Git,
            vec![],
            "git_status",
            json!({ "repo_path": files }),
            "files",
        ),
        (
            Official::Fetch,
            vec![],
            "fetch",
            json!({ "url": "no address" }),
            "`url`",
        ),
    ] {
        let Some(line) = official.line(&arguments) else {
            continue;
        };
        let _ = std::fs::remove_dir_all(house.path("state"));
        let mut pipe = wrap(&house, &line);
        for said in call(&mut pipe, tool, &asked).await {
            assert!(
                said.to_string().contains(expected),
                "{official:?}: {said}\n{}",
                pipe.log()
            );
        }
        let (code, log) = pipe.close().await;
        assert_eq!(code, Some(0), "{official:?}: {log}");
    }
}

#[tokio::test]
async fn servers_on_the_sdks_are_called_over_their_pipes() {
    for sdk in Sdk::ALL {
        let Some(line) = sdk.line() else { continue };
        let house = House::new();
        let mut pipe = wrap(&house, &line);
        for said in call(&mut pipe, "echo", &json!({ "text": "häll\u{f6}" })).await {
            assert_eq!(
                said["content"][0]["text"],
                "hällö",
                "{sdk:?}: {said}\n{}",
                pipe.log()
            );
        }
        let (code, log) = pipe.close().await;
        assert_eq!(code, Some(0), "{sdk:?}: {log}");
    }
}

/// Asks in both eras, and gives what was answered in each.
async fn ask(pipe: &mut Pipe, method: &str, params: &Value) -> [Value; 2] {
    let modern = Mcp::modern("http://pipe", "");
    let first = pipe.ask(&modern.request(7, method, params.clone())).await;
    let legacy = Mcp {
        revision: LEGACY.to_owned(),
        ..modern
    };
    let second = pipe.ask(&legacy.request(8, method, params.clone())).await;
    for (revision, answer) in [(e2e::client::MODERN, &first), (LEGACY, &second)] {
        e2e::schema::assert_answer(revision, method, answer);
    }
    [first, second]
}

#[tokio::test]
async fn prompts_and_resources_of_servers_on_the_sdks_are_had_through_the_gate() {
    for sdk in Sdk::ALL {
        let Some(line) = sdk.line() else { continue };
        let house = House::new();
        let mut pipe = wrap(&house, &line);
        pipe.ask(&e2e::client::opening(LEGACY)).await;
        let named = |listed: &Value, member: &str, key: &str| -> Vec<String> {
            let items = listed["result"][member].as_array().unwrap().iter();
            items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
        };
        for listed in ask(&mut pipe, "prompts/list", &json!({})).await {
            assert_eq!(named(&listed, "prompts", "name"), ["greet"], "{sdk:?}: {listed}");
        }
        for listed in ask(&mut pipe, "resources/list", &json!({})).await {
            assert_eq!(
                named(&listed, "resources", "uri"),
                ["note://one"],
                "{sdk:?}: {listed}"
            );
        }
        for listed in ask(&mut pipe, "resources/templates/list", &json!({})).await {
            let templates = named(&listed, "resourceTemplates", "uriTemplate");
            assert_eq!(templates, ["note://by/{name}"], "{sdk:?}: {listed}");
        }
        let greeting = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        for got in ask(&mut pipe, "prompts/get", &greeting).await {
            let text = &got["result"]["messages"][0]["content"]["text"];
            assert_eq!(text, "greet Ada", "{sdk:?}: {got}");
        }
        for uri in ["note://one", "note://by/Ada"] {
            for read in ask(&mut pipe, "resources/read", &json!({ "uri": uri })).await {
                let content = &read["result"]["contents"][0];
                assert_eq!(content["uri"], uri, "{sdk:?}: {read}");
                assert!(
                    content["text"].as_str().is_some_and(|text| !text.is_empty()),
                    "{sdk:?}: {read}"
                );
            }
        }
        for (uri, missing) in [("note://other", "resource not found: `note://other`")] {
            for refused in ask(&mut pipe, "resources/read", &json!({ "uri": uri })).await {
                assert_eq!(refused["error"]["message"], missing, "{sdk:?}");
            }
        }
        for refused in ask(&mut pipe, "prompts/get", &json!({ "name": "greet" })).await {
            assert_eq!(refused["error"]["code"], -32_602, "{sdk:?}: {refused}");
        }
        let (code, log) = pipe.close().await;
        assert_eq!(code, Some(0), "{sdk:?}: {log}");
    }
}

#[tokio::test]
async fn what_the_official_server_of_everything_offers_is_had_through_the_gate() {
    let Some(line) = Official::Everything.line(&[]) else {
        return;
    };
    let house = House::new();
    let mut pipe = wrap(&house, &line);
    pipe.ask(&e2e::client::opening(LEGACY)).await;
    let [listed, _] = ask(&mut pipe, "prompts/list", &json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().unwrap().clone();
    assert!(prompts.len() > 2, "{listed}");
    for prompt in &prompts {
        let arguments = prompt["arguments"].as_array().cloned().unwrap_or_default();
        let needed = arguments.iter().filter(|argument| argument["required"] == true);
        let arguments: serde_json::Map<String, Value> = needed
            .map(|argument| (argument["name"].as_str().unwrap().to_owned(), json!("1")))
            .collect();
        // Some take only words of their own; whatever they say, it fits the schema of either revision.
        ask(
            &mut pipe,
            "prompts/get",
            &json!({ "name": prompt["name"], "arguments": arguments }),
        )
        .await;
    }
    let [listed, _] = ask(&mut pipe, "resources/list", &json!({})).await;
    let resources = listed["result"]["resources"].as_array().unwrap().clone();
    assert!(!resources.is_empty(), "{listed}");
    for resource in &resources {
        for read in ask(&mut pipe, "resources/read", &json!({ "uri": resource["uri"] })).await {
            assert_eq!(
                read["result"]["contents"][0]["uri"],
                resource["uri"],
                "{read}\n{}",
                pipe.log()
            );
        }
    }
    let [listed, _] = ask(&mut pipe, "resources/templates/list", &json!({})).await;
    let templates = listed["result"]["resourceTemplates"].as_array().unwrap().clone();
    assert!(!templates.is_empty(), "{listed}");
    let uri = templates[0]["uriTemplate"].as_str().unwrap();
    let made = uri
        .split_once('{')
        .and_then(|(front, behind)| Some(format!("{front}1{}", behind.split_once('}')?.1)))
        .unwrap();
    for read in ask(&mut pipe, "resources/read", &json!({ "uri": made })).await {
        assert!(read["result"]["contents"].is_array(), "{made}: {read}");
    }
    let (code, log) = pipe.close().await;
    assert_eq!(code, Some(0), "{log}");
}
