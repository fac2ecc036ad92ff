//! The worked example, driven by the command line of the Inspector, over HTTP and over standard input and output, in each
//! of its ways to agree on an era.

use e2e::driver::{self, At, HOW};
use e2e::example::Example;
use e2e::house::text;
use e2e::peer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::road;

/// The launcher of the Inspector.
pub(crate) const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// What it ends with where a tool said that it failed.
const TOOL_FAILED: i32 = 5;

/// Asks the Inspector for one thing; gives its exit code and what it told, a line of JSON each. `None` where it is not
/// installed.
async fn ask(at: At<'_>, era: &str, words: &[&str]) -> Option<(i32, Vec<Value>)> {
    let Some(mut inspector) = driver::npm(INSPECTOR) else {
        peer::missing("the Inspector", HOW);
        return None;
    };
    let home = TempDir::new().unwrap();
    inspector
        .env("HOME", home.path())
        .env("MCP_CATALOG_PATH", home.path().join("catalog.json"))
        .args(["--cli", "--quiet", "--format", "json", "--stored-auth-only"])
        .args(["--protocol-era", era])
        .args(words);
    match at {
        At::Http(url, token) => {
            inspector
                .args(["--transport", "http", "--server-url", url])
                .args(["--header", &format!("Authorization: Bearer {token}")]);
        }
        At::Stdio(house) => {
            for (name, value) in house.variables() {
                inspector.args(["-e", &format!("{name}={value}")]);
            }
            inspector
                .args(["--transport", "stdio", "--cwd"])
                .arg(house.folder())
                .arg(e2e::binary::tollhouse())
                .args(["serve", "--stdio"]);
        }
    }
    let output = driver::run(inspector).await;
    let told = text(&output.stdout);
    let told = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let told: Vec<Value> = told.collect();
    assert!(!told.is_empty(), "{era} {words:?}: {}", text(&output.stderr));
    Some((output.status.code().unwrap(), told))
}

/// Walks the road in each era; gives how often.
async fn walk(at: At<'_>) -> u64 {
    let mut walked = 0;
    for era in ["legacy", "auto", "modern"] {
        let way = format!("{era} {at:?}");
        // `--strict`: a schema that other clients would stumble over is a failure.
        let Some((code, told)) = ask(at, era, &["--method", "tools/list", "--strict"]).await else {
            return 0;
        };
        assert_eq!(code, 0, "{way}: {told:?}");
        let tools = told[0]["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, road::TOOLS, "{way}");

        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            road::STATUS,
            "--tool-args-json",
        ];
        let mut words = call.to_vec();
        words.push(r#"{"invoice_id":"inv-1001"}"#);
        let (code, told) = ask(at, era, &words).await.unwrap();
        assert_eq!(code, 0, "{way}: {told:?}");
        assert_eq!(
            told[0]["result"]["structuredContent"],
            road::answer(),
            "{way}: {told:?}"
        );
        // Which era was spoken shows in the result: only the newer one names the server in each.
        let named = &told[0]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        let expected = if era == "legacy" {
            Value::Null
        } else {
            json!("tollhouse")
        };
        assert_eq!(*named, expected, "{way}: {told:?}");

        let mut words = call.to_vec();
        words.push(r#"{"invoice_id":"inv-2001"}"#);
        let (code, told) = ask(at, era, &words).await.unwrap();
        assert_eq!(code, TOOL_FAILED, "{way}: {told:?}");
        let result = &told[0]["result"];
        assert_eq!(result["isError"], true, "{way}: {told:?}");
        assert_eq!(result["content"][0]["text"], road::DENIED, "{way}: {told:?}");
        walked += 1;
    }
    walked
}

#[tokio::test]
async fn the_inspector_walks_the_road_over_http() {
    let example = Example::start().await;
    let key = example.house.key("ada").await;
    let gate = example.house.serve().await;
    let walked = walk(At::Http(&gate.url, &key)).await;
    road::assert_carried(&example, walked, walked).await;
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn the_inspector_walks_the_road_over_standard_input_and_output() {
    let example = Example::start().await;
    let walked = walk(At::Stdio(&example.house)).await;
    road::assert_carried(&example, walked, walked).await;
}
