//! Names of tools: one for every operation, and none that comes to mean another one.

use e2e::bench::Bench;
use serde_json::json;

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Names, version: "1" }
paths:
  /a: { get: { operationId: read } }
  /b: { get: { operationId: "read/all" } }
  /c: { get: {} }
"##;

#[tokio::test]
async fn a_name_never_comes_to_mean_another_operation() {
    let bench = Bench::new(DOCUMENT).await.tool("mine", "GET /c", "");
    let said = bench.run(&["names", "--json"]).await.ended(0).json();
    assert_eq!(
        said["names"],
        json!([
            {"name": "api_mine", "upstream": "api", "operation": "GET /c", "source": "configuration"},
            {"name": "api_read", "upstream": "api", "operation": "GET /a", "source": "operationId"},
            {"name": "api_read_all", "upstream": "api", "operation": "GET /b", "source": "operationId, changed"},
        ])
    );
    assert!(!bench.house.path("tollhouse.names").exists());
    bench
        .run(&["names", "--write"])
        .await
        .ended(0)
        .printed("3 names added, 3 in all");
    let written = std::fs::read_to_string(bench.house.path("tollhouse.names")).unwrap();
    assert!(written.ends_with("api_mine api GET /c\napi_read api GET /a\napi_read_all api GET /b\n"));

    // The ids change places: the names stay where they were.
    let bench = bench.file(
        "api.yaml",
        DOCUMENT
            .replace("operationId: read }", "operationId: other }")
            .replace("read/all", "read"),
    );
    let said = bench.run(&["names", "--json"]).await.ended(0).json();
    assert_eq!(said["names"][1]["name"], "api_read");
    assert_eq!(said["names"][1]["operation"], "GET /a");
    assert_eq!(said["names"][2]["name"], "api_read_all");
    bench
        .run(&["names", "--write"])
        .await
        .ended(0)
        .printed("0 names added, 3 in all");

    // A configuration that gives a name to another operation is a fault, also when its own is gone.
    let bench = bench.file(
        "api.yaml",
        DOCUMENT.replace("  /a: { get: { operationId: read } }\n", ""),
    );
    let taken = bench.tool("read", "GET /b", "");
    let faults = taken.faults().await;
    assert!(
        faults.contains(
            "the name `api_read` belongs to `GET /a` of the upstream `api`, as `tollhouse.names` says"
        ),
        "{faults}"
    );
    let said = taken.run(&["serve"]).await;
    assert_eq!(said.code, Some(78));
    // With its own operation it is none.
    let bench = taken.file("api.yaml", DOCUMENT).tools("");
    let bench = bench.tool("read", "GET /a", "");
    assert_eq!(bench.request("read", json!({})).await, "GET /base/a");
}

#[tokio::test]
async fn a_lock_that_cannot_be_read_is_a_fault_with_its_line() {
    for (text, told) in [
        (
            "api_read api\n",
            "tollhouse.names:1:1: this line is not `NAME UPSTREAM METHOD PATH`",
        ),
        (
            "# c\napi_x api GET /x\napi_x api GET /y\n",
            "tollhouse.names:3:1: the name `api_x` stands twice",
        ),
        (
            "9 api GET /x\n",
            "tollhouse.names:1:1: this line gives a name that no tool can have",
        ),
    ] {
        let bench = Bench::new(DOCUMENT).await.file("tollhouse.names", text);
        let faults = bench.faults().await;
        assert!(faults.contains(told), "{faults}");
    }
}
