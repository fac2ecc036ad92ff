//! The servers that stand behind the gate in other tests are there, and speak as they are said to: directly, without a
//! gate.

use std::collections::BTreeMap;
use std::process::Stdio;

use e2e::behind::{Line, Official, TOOLS, Way};
use e2e::client::{Http, MODERN};
use e2e::driver::Sdk;
use e2e::house::PATIENCE;
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

const LEGACY: &str = "2025-11-25";

fn initialize() -> Value {
    json!({
        "jsonrpc":"2.0","id":1,"method":"initialize",
        "params":{"protocolVersion":LEGACY,"capabilities":{},"clientInfo":{"name":"test","version":"1"}},
    })
}

/// The names of the tools in an answer to `tools/list`.
fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Sends a message to an endpoint with these headers, and gives the headers of the answer and what it says.
async fn post(url: &str, headers: &[(&str, &str)], message: &Value) -> (Option<String>, Value) {
    let all = [
        &[
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ],
        headers,
    ]
    .concat();
    let answer = Http::new()
        .send(Method::POST, url, &all, message.to_string())
        .await;
    let session = answer.header("mcp-session-id").map(str::to_owned);
    let said = if answer.body.is_empty() {
        Value::Null
    } else {
        answer.json()
    };
    (session, said)
}

#[tokio::test]
async fn servers_on_the_sdks_speak_streamable_http_in_each_of_their_eras() {
    for sdk in Sdk::ALL {
        let Some(server) = sdk.serve(Way::Http).await else {
            continue;
        };
        let (session, opened) = post(&server.url, &[], &initialize()).await;
        assert_eq!(opened["result"]["protocolVersion"], LEGACY, "{sdk:?}: {opened}");
        let mut headers = vec![("mcp-protocol-version", LEGACY)];
        headers.extend(session.as_deref().map(|session| ("mcp-session-id", session)));
        let ready = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
        post(&server.url, &headers, &ready).await;
        let list = json!({"jsonrpc":"2.0","id":2,"method":"tools/list"});
        let (_, listed) = post(&server.url, &headers, &list).await;
        assert!(
            TOOLS.iter().all(|tool| names(&listed).contains(tool)),
            "{sdk:?}: {listed}"
        );
        let is_modern = matches!(sdk, Sdk::TypeScript2 | Sdk::Python2);
        let discovered = discover(&server.url).await;
        assert_eq!(
            discovered["result"]["supportedVersions"].is_array(),
            is_modern,
            "{sdk:?}: {discovered}"
        );
    }
    let Some(server) = Sdk::TypeScript2.serve(Way::Modern).await else {
        return;
    };
    let discovered = discover(&server.url).await;
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!([MODERN]),
        "{discovered}"
    );
    let (_, opened) = post(&server.url, &[], &initialize()).await;
    assert!(opened["error"].is_object(), "{opened}");
}

async fn discover(url: &str) -> Value {
    let message = json!({
        "jsonrpc":"2.0","id":1,"method":"server/discover",
        "params":{"_meta":{
            "io.modelcontextprotocol/protocolVersion":MODERN,
            "io.modelcontextprotocol/clientCapabilities":{},
        }},
    });
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "server/discover"),
    ];
    post(url, &headers, &message).await.1
}

#[tokio::test]
async fn sse_01_sse_03_servers_on_the_sdks_that_have_it_speak_the_old_transport() {
    for sdk in Sdk::ALL.into_iter().filter(|sdk| sdk.serves(Way::Sse)) {
        let Some(server) = sdk.serve(Way::Sse).await else {
            continue;
        };
        let http = Http::new();
        let mut stream = http
            .open(Method::GET, &server.url, &[("accept", "text/event-stream")], "")
            .await;
        let first = stream.next().await.unwrap();
        assert_eq!(first.name, "endpoint", "{sdk:?}");
        let place = String::from_utf8(first.data.to_vec()).unwrap();
        assert!(place.starts_with('/'), "{sdk:?}: {place}");
        let url = server.url.replace("/sse", &place);
        http.send(
            Method::POST,
            &url,
            &[("content-type", "application/json")],
            initialize().to_string(),
        )
        .await;
        let opened = stream.message().await.unwrap();
        assert!(
            opened["result"]["serverInfo"]["name"].is_string(),
            "{sdk:?}: {opened}"
        );
    }
}

/// What a server on standard input and output answers to `initialize` and then to `tools/list`.
async fn spoken(line: &Line, variables: &BTreeMap<&str, &str>) -> Value {
    let mut server = line
        .command(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut last = Value::Null;
    for message in [
        initialize(),
        json!({"jsonrpc":"2.0","method":"notifications/initialized"}),
        json!({"jsonrpc":"2.0","id":2,"method":"tools/list"}),
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        while message["id"].is_u64() && last["id"] != message["id"] {
            let said = tokio::time::timeout(PATIENCE, lines.next_line()).await;
            let said = said.expect("an answer").unwrap().expect("it goes on");
            last = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
            // A server may ask for something meanwhile.
            if last["method"].is_string() {
                last = Value::Null;
            }
        }
    }
    last
}

#[tokio::test]
async fn servers_on_the_sdks_and_the_official_ones_speak_on_standard_input_and_output() {
    for sdk in Sdk::ALL {
        if let Some(line) = sdk.line() {
            let listed = spoken(&line, &BTreeMap::new()).await;
            assert!(
                TOOLS.iter().all(|tool| names(&listed).contains(tool)),
                "{sdk:?}: {listed}"
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let repository = std::process::Command::new("git")
        .args(["init", "--quiet", path])
        .status();
    assert!(repository.unwrap().success());
    let memory = format!("{path}/memory.json");
    // Python's git asks the path for its program.
    let search = std::env::var("PATH").unwrap();
    let variables = BTreeMap::from([("MEMORY_FILE_PATH", memory.as_str()), ("PATH", search.as_str())]);
    for official in Official::ALL {
        let (arguments, tool): (&[&str], _) = match official {
            Official::Everything => (&["stdio"], "echo"),
            Official::Filesystem => (&[path], "read_text_file"),
            Official::Memory => (&[], "read_graph"),
            Official::Time => (&["--local-timezone", "UTC"], "get_current_time"),
            Official::Git => (&["--repository", path], "git_status"),
            Official::Fetch => (&[], "fetch"),
        };
        if let Some(line) = official.line(arguments) {
            let listed = spoken(&line, &variables).await;
            assert!(names(&listed).contains(&tool), "{official:?}: {listed}");
        }
    }
}
