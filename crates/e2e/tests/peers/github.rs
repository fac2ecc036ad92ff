//! The largest public document that anybody is likely to bring, GitHub's, as its npm package has it: five of its operations
//! as tools, in front of a service that answers with the document's own examples.

use e2e::client::Mcp;
use e2e::driver::{self, HOW};
use e2e::house::{Gate, House, text};
use e2e::peer;
use e2e::service::{Service, json as answer};
use serde_json::{Value, json};

/// The document, in `@octokit/openapi`.
const DOCUMENT: &str = "@octokit/openapi/generated/api.github.com.json";

const CONFIG: &str = r#"
listen = "127.0.0.1:0"

[caller.ada]
tenant = "north"

[policy]
folder = "policy"

[upstream.github]
openapi = "github.json"
destination = "SERVICE"
network = { allow = ["127.0.0.1/32"] }

[upstream.github.tool.repository]
operation = "repos/get"
class = "sensitive-read"

[upstream.github.tool.issues]
operation = "issues/list-for-repo"
class = "sensitive-read"

[upstream.github.tool.issue]
operation = "issues/get"
class = "sensitive-read"

[upstream.github.tool.commits]
operation = "repos/list-commits"
class = "read"
approval.class = { by = "the test", because = "who committed is public here", until = "2099-12-31", for = ["everyone"] }

[upstream.github.tool.label]
operation = "issues/get-label"
class = "read"
"#;

const POLICY: &str = r#"
@id("anybody-reads")
permit (principal is Caller, action in [Action::"class:read", Action::"class:sensitive-read"], resource);
"#;

/// The tool whose example does not fit: the document requires a `language` of each repository, and its example has none.
const LIAR: &str = "github_repository";

const WITHHELD: &str = "the answer of the service failed a check and was withheld";

/// A call, and the request that must come of it.
struct Case {
    tool: &'static str,
    /// Where the document has the operation.
    path: &'static str,
    arguments: Value,
    target: &'static str,
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            tool: "github_repository",
            path: "/repos/{owner}/{repo}",
            arguments: json!({"owner":"octocat","repo":"Hello World"}),
            target: "/repos/octocat/Hello%20World",
        },
        Case {
            tool: "github_issues",
            path: "/repos/{owner}/{repo}/issues",
            arguments: json!({"owner":"octocat","repo":"hello","labels":"bug,ui&x=1","per_page":5,"state":"open"}),
            target: "/repos/octocat/hello/issues?state=open&labels=bug%2Cui%26x%3D1&per_page=5",
        },
        Case {
            tool: "github_issue",
            path: "/repos/{owner}/{repo}/issues/{issue_number}",
            arguments: json!({"owner":"octocat","repo":"a/b","issue_number":1347}),
            target: "/repos/octocat/a%2Fb/issues/1347",
        },
        Case {
            tool: "github_commits",
            path: "/repos/{owner}/{repo}/commits",
            arguments: json!({"owner":"octocat","repo":"hello","since":"2026-01-01T00:00:00Z","path":"src/é"}),
            target: "/repos/octocat/hello/commits?path=src%2F%C3%A9&since=2026-01-01T00%3A00%3A00Z",
        },
        Case {
            tool: "github_label",
            path: "/repos/{owner}/{repo}/labels/{name}",
            arguments: json!({"owner":"octocat","repo":"hello","name":"good first issue?"}),
            target: "/repos/octocat/hello/labels/good%20first%20issue%3F",
        },
    ]
}

/// What the document gives as the first example of an operation's answer.
fn example(document: &Value, path: &str) -> Value {
    let examples =
        &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["examples"];
    let first = examples.as_object().unwrap().values().next().unwrap();
    let named = first.get("$ref").unwrap_or(&first["value"]["$ref"]);
    let pointer = named.as_str().unwrap().strip_prefix('#').unwrap();
    document.pointer(pointer).unwrap()["value"].clone()
}

/// The document as text, the service, and the folder of a gate in front of it; `None` where the document is not installed.
async fn set_up() -> Option<(String, Service, House)> {
    let Some(path) = driver::package(DOCUMENT) else {
        peer::missing("GitHub's document", HOW);
        return None;
    };
    let document = std::fs::read_to_string(path).unwrap();
    let service = Service::json(json!({})).await;
    let house = House::new()
        .with_file("tollhouse.toml", CONFIG.replace("SERVICE", &service.url()))
        .with_file("github.json", &document)
        .with_file("policy/read.cedar", POLICY);
    Some((document, service, house))
}

async fn close(gate: Gate) {
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn five_operations_of_githubs_document_are_tools_and_all_others_are_held() {
    let Some((document, service, house)) = set_up().await else {
        return;
    };
    let document: Value = serde_json::from_str(&document).unwrap();
    let methods = [
        "get", "put", "post", "delete", "options", "head", "patch", "trace",
    ];
    let paths = document["paths"].as_object().unwrap().values();
    let operations: usize = paths
        .map(|path| methods.iter().filter(|method| path.get(method).is_some()).count())
        .sum();
    assert!(operations > 1000, "{operations}");
    let checked = house.run(["check", "--offline"]).await;
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let expected = format!(
        "1 approval holds, the first until 2099-12-31\n5 tools are enabled, {} operations are held\n",
        operations - 5
    );
    assert_eq!(text(&checked.stdout), expected);
    assert_eq!(service.count(), 0, "a check without the network asks nobody");
}

#[tokio::test]
async fn githubs_operations_are_called_as_its_document_says_and_answer_with_its_examples() {
    let Some((document, service, house)) = set_up().await else {
        return;
    };
    let document: Value = serde_json::from_str(&document).unwrap();
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let mut names: Vec<&str> = cases().iter().map(|case| case.tool).collect();
    names.sort_unstable();
    assert_eq!(client.tools().await, names);

    for case in cases() {
        let body = example(&document, case.path);
        let given = body.clone();
        service.script(move |_| answer(200, &given));
        service.forget();
        let result = client.call(case.tool, case.arguments).await;
        let told = result["content"][0]["text"].as_str().unwrap();
        if case.tool == LIAR {
            assert_eq!(result["isError"], true, "{result:#}");
            assert_eq!(told, WITHHELD);
        } else {
            assert!(result.get("isError").is_none(), "{}: {result:#}", case.tool);
            let told: Value = serde_json::from_str(told).unwrap();
            assert_eq!(told, body, "{}", case.tool);
        }
        let arrived = service.arrived();
        let targets: Vec<&str> = arrived.iter().map(|request| request.target.as_str()).collect();
        assert_eq!(targets, [case.target], "{}", case.tool);
        assert!(arrived[0].method == http::Method::GET && arrived[0].body.is_empty());
    }

    // What the document does not allow is not sent.
    service.forget();
    for (tool, arguments, named) in [
        (
            "github_issues",
            json!({"owner":"o","repo":"r","state":"maybe"}),
            "state",
        ),
        (
            "github_issues",
            json!({"owner":"o","repo":"r","extra":1}),
            "extra",
        ),
        (
            "github_issue",
            json!({"owner":"o","repo":"r","issue_number":"7"}),
            "issue_number",
        ),
        (
            "github_issue",
            json!({"owner":"o","repo":"a/../b","issue_number":7}),
            "repo",
        ),
        ("github_repository", json!({"owner":"o"}), "repo"),
    ] {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let told = result["content"][0]["text"].as_str().unwrap();
        assert!(told.contains(named), "{tool}: {told}");
    }
    assert_eq!(service.count(), 0);

    // What the document does not promise does not go out.
    let mut altered = example(&document, "/repos/{owner}/{repo}/issues/{issue_number}");
    altered["number"] = json!("the secret number");
    service.script(move |_| answer(200, &altered));
    let result = client
        .call("github_issue", json!({"owner":"o","repo":"r","issue_number":7}))
        .await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["content"][0]["text"], WITHHELD, "{result}");
    assert!(!result.to_string().contains("secret number"), "{result}");
    assert_eq!(service.count(), 1);
    close(gate).await;
}
