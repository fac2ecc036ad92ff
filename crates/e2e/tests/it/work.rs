//! Work that takes longer than one request: started once, looked at until it has ended, called off where nobody waits,
//! and never said to have ended where nobody saw it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use e2e::client::Mcp;
use e2e::example::CREDENTIAL;
use e2e::house::{Gate, House, close, until};
use e2e::said::run;
use e2e::service::{Arrived, Service, json as answer};
use serde_json::{Value, json};

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Jobs, version: "1" }
security: [{ bearer: [] }]
paths:
  /jobs:
    post: { operationId: start, responses: { "202": { description: x } } }
  /jobs/{job}:
    parameters: [{ name: job, in: path, required: true, schema: { type: string } }]
    get:
      operationId: look
      responses:
        "200":
          description: x
          content:
            application/json:
              schema: { type: object, required: [state], properties: { state: { type: string }, total: { type: integer } } }
    delete: { operationId: stop, responses: { "204": { description: x } } }
    put: { operationId: nudge, responses: { "204": { description: x } } }
  /jobs/{job}/parts/{part}:
    parameters:
      - { name: job, in: path, required: true, schema: { type: string } }
      - { name: part, in: path, required: true, schema: { type: string } }
    get: { operationId: part, responses: { "200": { description: x } } }
  /all: { get: { operationId: all, responses: { "200": { description: x } } } }
components:
  securitySchemes: { bearer: { type: http, scheme: bearer } }
"#;

const LONG: &str = "long_running = { status = \"look\", id = \"$.job\", state = \"$.state\", done = [\"done\"], \
    failed = [\"broken\"], progress = \"$.percent\", cancel = \"stop\", poll = \"20ms\", deadline = \"30s\" }";

fn house(url: &str, long: &str, more: &str) -> House {
    let config = format!(
        "store = \"sqlite:tollhouse.db\"\n[caller.ada]\n[upstream.jobs]\nopenapi = \"jobs.yaml\"\n\
         destination = \"{url}\"\nnetwork = {{ allow = [\"127.0.0.1\"] }}\n\
         [upstream.jobs.credentials]\nbearer = {{ bearer = \"env:BEARER\" }}\n\
         [upstream.jobs.tool.run]\noperation = \"start\"\nclass = \"write\"\n{long}\n\
         approval.mutations = {{ by = \"a\", because = \"a test\", until = \"2199-12-31\", for = [\"everyone\"] }}\n\
         consent = {{ waived_by = \"Grace\", because = \"a test\", until = \"2199-12-31\" }}\n{more}\n"
    );
    House::new()
        .with_file("tollhouse.toml", config)
        .with_file("jobs.yaml", DOCUMENT)
        .with_file(
            "policy/all.cedar",
            "@id(\"all\") permit (principal, action, resource);",
        )
        .with_variable("BEARER", "the-bearer-token")
}

async fn ada(house: &House) -> (Gate, Mcp) {
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    (gate, ada)
}

/// A service whose job ends by itself after this many looks; `None`: never.
async fn jobs(looks: Option<usize>, last: Value) -> Service {
    let looked = AtomicUsize::new(0);
    Service::start(move |arrived| match arrived.method.as_str() {
        "POST" => answer(202, &json!({"job":"j/1"})),
        "GET" => {
            let number = looked.fetch_add(1, Ordering::SeqCst) + 1;
            if looks.is_some_and(|looks| number > looks) {
                answer(200, &last)
            } else {
                answer(200, &json!({"state":"running","percent":number}))
            }
        }
        _ => answer(200, &json!({})),
    })
    .await
}

/// The requests, in short.
fn requests(service: &Service) -> Vec<String> {
    let one = |arrived: &Arrived| format!("{} {}", arrived.method, arrived.target);
    service.arrived().iter().map(one).collect()
}

async fn outcome(house: &House) -> Value {
    let ledger = house.ledger().await;
    (*ledger.of_kind("outcome").last().unwrap()).clone()
}

#[tokio::test]
async fn work_is_started_once_and_looked_at_until_it_is_done() {
    let service = jobs(Some(3), json!({"state":"done","total":7})).await;
    let house = house(&service.url(), LONG, "");
    let (gate, ada) = ada(&house).await;
    let list = ada.ask("tools/list", json!({})).await;
    let output = &list["result"]["tools"][0]["outputSchema"];
    assert_eq!(
        output["properties"]["total"]["type"], "integer",
        "the result is the last look: {list}"
    );
    let result = ada.call("jobs_run", json!({})).await;
    assert_eq!(
        result["structuredContent"],
        json!({"state":"done","total":7}),
        "{result}"
    );
    // A name of the service cannot change the path.
    let look = "GET /jobs/j%2F1";
    assert_eq!(requests(&service), ["POST /jobs", look, look, look, look]);
    for arrived in service.arrived() {
        assert_eq!(arrived.headers["authorization"], "Bearer the-bearer-token");
    }
    let outcome = outcome(&house).await;
    assert_eq!(
        (&outcome["state"], &outcome["upstream_requests"]),
        (&json!("done"), &json!(5))
    );
    close(gate).await;
}

#[tokio::test]
async fn work_that_fails_is_a_failed_result_that_says_why() {
    let service = jobs(Some(1), json!({"state":"broken","message":"no paper"})).await;
    let house = house(&service.url(), LONG, "");
    let (gate, ada) = ada(&house).await;
    let result = ada.call("jobs_run", json!({})).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "the service says that the work has failed (`broken`): no paper"
    );
    assert_eq!(outcome(&house).await["state"], "failed");
    close(gate).await;
}

#[tokio::test]
async fn a_look_that_does_not_succeed_is_not_the_end_of_the_work() {
    let service = jobs(None, json!({})).await;
    let looked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked);
    service.script(move |arrived| {
        if arrived.method == "POST" {
            return answer(202, &json!({"job":7}));
        }
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => answer(503, &json!({})),
            1 => answer(429, &json!({})),
            _ => answer(200, &json!({"state":"done"})),
        }
    });
    let house = house(&service.url(), LONG, "");
    let (gate, ada) = ada(&house).await;
    let result = ada.call("jobs_run", json!({})).await;
    assert_eq!(result["structuredContent"]["state"], "done", "{result}");
    assert_eq!(
        requests(&service),
        ["POST /jobs", "GET /jobs/7", "GET /jobs/7", "GET /jobs/7"]
    );
    close(gate).await;
}

#[tokio::test]
async fn work_whose_end_nobody_saw_is_unknown_and_not_started_again() {
    type Script = fn(&Arrived) -> axum::response::Response;
    let cases: [(&str, Script, &str, u64); 3] = [
        ("no name", |_| answer(202, &json!({"id":"j"})), "work-unknown", 1),
        (
            "nobody knows it",
            |arrived| match arrived.method.as_str() {
                "POST" => answer(202, &json!({"job":"j"})),
                _ => answer(404, &json!({"message":"no such job"})),
            },
            "work-unknown",
            2,
        ),
        (
            "no state",
            |arrived| match arrived.method.as_str() {
                "POST" => answer(202, &json!({"job":"j"})),
                _ => answer(200, &json!({"status":"done"})),
            },
            "work-unknown",
            2,
        ),
    ];
    let service = Service::json(json!({})).await;
    let house = house(&service.url(), LONG, "");
    let (gate, ada) = ada(&house).await;
    for (what, script, refusal, requests) in cases {
        service.script(script);
        service.forget();
        let result = ada.call("jobs_run", json!({})).await;
        assert_eq!(result["isError"], true, "{what}: {result}");
        let outcome = outcome(&house).await;
        assert_eq!(
            (&outcome["state"], &outcome["refusal"]),
            (&json!("unknown"), &json!(refusal)),
            "{what}"
        );
        assert_eq!(outcome["upstream_requests"], requests, "{what}");
    }
    // One that was not even started is told as any other answer.
    service.script(|_| answer(409, &json!({"message":"one at a time"})));
    let result = ada.call("jobs_run", json!({})).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "the service answered 409 Conflict: one at a time");
    assert_eq!(outcome(&house).await["state"], "failed");
    close(gate).await;
}

#[tokio::test]
async fn work_is_called_off_at_the_deadline_and_its_outcome_is_unknown() {
    let service = jobs(None, json!({})).await;
    let long = LONG.replace("30s", "300ms");
    let house = house(&service.url(), &long, "");
    let (gate, ada) = ada(&house).await;
    let result = ada.call("jobs_run", json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    let requests = requests(&service);
    assert_eq!(requests.last().unwrap(), "DELETE /jobs/j%2F1", "{requests:?}");
    assert_eq!(requests.iter().filter(|one| one.starts_with("DELETE")).count(), 1);
    let outcome = outcome(&house).await;
    assert_eq!(
        (&outcome["state"], &outcome["refusal"]),
        (&json!("unknown"), &json!("upstream-timeout"))
    );
    assert_eq!(outcome["upstream_requests"], requests.len());
    close(gate).await;
}

#[tokio::test]
async fn work_is_called_off_once_when_the_client_cancels_and_left_alone_where_nothing_calls_it_off() {
    for (long, calls_off) in [
        (LONG.to_owned(), true),
        (LONG.replace("cancel = \"stop\", ", ""), false),
    ] {
        let service = jobs(None, json!({})).await;
        let house = house(&service.url(), &long, "");
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let session = Mcp::legacy(&gate.url, &key, "2025-06-18").await;
        let call = session.request("c", "tools/call", json!({"name":"jobs_run","arguments":{}}));
        let waiting = {
            let session = session.clone();
            tokio::spawn(async move { session.post(&call).await })
        };
        service.until(3).await;
        let notice = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}});
        session.post(&notice).await;
        waiting.await.unwrap();
        until("the outcome is written", async || {
            !house.ledger().await.of_kind("outcome").is_empty()
        })
        .await;
        let requests = requests(&service);
        let stops = requests.iter().filter(|one| *one == "DELETE /jobs/j%2F1").count();
        assert_eq!(stops, usize::from(calls_off), "{requests:?}");
        let outcome = outcome(&house).await;
        assert_eq!(
            (&outcome["state"], &outcome["refusal"]),
            (&json!("unknown"), &json!("cancelled"))
        );
        let count = u64::try_from(requests.len()).unwrap();
        let written = outcome["upstream_requests"].as_u64().unwrap();
        assert!(
            written == count || written == count + 1,
            "{written} of {count}: one may just have been leaving"
        );
        // The work is not looked at any more.
        let before = service.count();
        assert_eq!(
            session.ask("tools/list", json!({})).await["result"]["tools"][0]["name"],
            "jobs_run"
        );
        assert_eq!(service.count(), before);
        close(gate).await;
    }
}

#[tokio::test]
async fn a_client_that_asked_for_it_is_told_how_far_the_work_is() {
    let service = jobs(None, json!({})).await;
    let done = Arc::new(AtomicUsize::new(0));
    let is_done = Arc::clone(&done);
    service.script(
        move |arrived| match (arrived.method.as_str(), is_done.load(Ordering::SeqCst)) {
            ("POST", _) => answer(202, &json!({"job":"j"})),
            (_, 0) => answer(200, &json!({"state":"running","percent":42.4})),
            _ => answer(200, &json!({"state":"done"})),
        },
    );
    let house = house(&service.url(), LONG, "[limits]\nprogress_interval = \"50ms\"");
    let (gate, ada) = ada(&house).await;
    let params = json!({"name":"jobs_run","arguments":{},"_meta":{"progressToken":"p"}});
    let mut stream = ada.stream(&ada.request(1, "tools/call", params)).await;
    let mut before = 0;
    loop {
        let message = stream.message().await.unwrap();
        if message["id"] == 1 {
            assert_eq!(
                message["result"]["structuredContent"]["state"], "done",
                "{message}"
            );
            break;
        }
        let params = &message["params"];
        let count = params["progress"].as_u64().unwrap();
        assert!(count > before, "PROG-02: {message}");
        before = count;
        if params["message"].as_str().unwrap().starts_with("42 % done") {
            done.store(1, Ordering::SeqCst);
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn the_pin_covers_where_the_work_is_looked_after() {
    let pin = async |document: &str| {
        let house = house("http://127.0.0.1:9", LONG, "server = {}").with_file("jobs.yaml", document);
        let tools = run(&house, ["tools", "--json"]).await.ended(0).json();
        tools["tools"][0]["pin"].as_str().unwrap().to_owned()
    };
    let document = DOCUMENT
        .replace("paths:\n", "servers: [{ url: /v1 }]\npaths:\n")
        .replace(
            "  /jobs/{job}:\n",
            "  /jobs/{job}:\n    servers: [{ url: /v1 }]\n",
        );
    let first = pin(&document).await;
    assert_eq!(first, pin(&document).await);
    // Both operations are sent elsewhere; the one that calls off is another one; none of it touches the start.
    for (from, to) in [
        ("    servers: [{ url: /v1 }]", "    servers: [{ url: /v2 }]"),
        ("operationId: stop,", "operationId: stop, summary: Anew.,"),
        ("operationId: look\n", "operationId: look\n      summary: Anew.\n"),
    ] {
        assert!(document.contains(from), "{from}");
        assert_ne!(first, pin(&document.replace(from, to)).await, "{to}");
    }
}

#[tokio::test]
async fn what_cannot_look_after_work_is_a_fault_with_its_place() {
    let to = |from: &str, to: &str| LONG.replace(from, to);
    for (long, key, expected) in [
        (to("\"look\"", "\"loook\""), "status", "loook"),
        (to("\"look\"", "\"nudge\""), "status", "is no GET"),
        (to("\"look\"", "\"part\""), "status", "it requires `job`, `part`"),
        (to("\"look\"", "\"all\""), "status", "it requires nothing"),
        (to("\"stop\"", "\"all\""), "cancel", "it requires nothing"),
        (
            to("state =", "argument = \"part\", state ="),
            "status",
            "must take `part` and require nothing else",
        ),
        (to("$.job", "$.job["), "id", "is no JSONPath"),
        (
            to("[\"broken\"]", "[\"done\"]"),
            "failed",
            "`done` is a state of work that is done, and",
        ),
        (
            to("30s", "11m"),
            "deadline",
            "longer than `limits.call_timeout_max`",
        ),
        (
            format!("{LONG}\nretry = {{ on = [503] }}"),
            "",
            "exclude each other",
        ),
    ] {
        let house = house("http://127.0.0.1:9", &long, "");
        let outcome = run(&house, ["check", "--offline", "--json"])
            .await
            .ended(78)
            .json();
        let problem = &outcome["problems"][0];
        let at = problem["key"].as_str().unwrap();
        assert!(
            key.is_empty() || at.ends_with(&format!("long_running.{key}")),
            "{long}: {outcome:#}"
        );
        assert!(
            problem["text"].as_str().unwrap().contains(expected),
            "{long}: {outcome:#}"
        );
        assert!(problem["line"].is_u64(), "{outcome:#}");
    }
}

#[tokio::test]
async fn the_report_of_the_worked_example_is_one_call() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut options = invoices::Options::new(folder.path().join("invoices.db"), CREDENTIAL);
    options.report_duration = std::time::Duration::from_millis(200);
    let service = invoices::start(options).await.unwrap();
    let house = House::invoices(&service, CREDENTIAL);
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    house.write(
        "tollhouse.toml",
        format!(
            "{config}\n[upstream.billing.tool.report]\noperation = \"startReport\"\nclass = \"write\"\n\
             resource = {{ type = \"InvoiceList\", scope = \"tenant\" }}\nscope = {{ argument = \"tenant\" }}\n\
             facts.member = {{ source = \"directory\", query = \"select count(*) > 0 from member where tenant = $1 and \
             subject = $2\", bind = [\"principal.tenant\", \"principal.subject\"] }}\n\
             returns = {{ totals = \"$.totals\" }}\nconsent = {{ waived_by = \"Grace\", because = \"a test\", until = \
             \"2199-12-31\" }}\napproval.billing = {{ by = \"a\", because = \"a test\", until = \"2199-12-31\", for = [\"everyone\"] }}\napproval.mutations = {{ by = \"a\", because = \"a test\", until = \"2199-12-31\", for = [\"everyone\"] }}\nlong_running = {{ status = \"getReport\", id = \"$.job_id\", state = \"$.status\", done = \
             [\"done\"], progress = \"$.progress_percent\", poll = \"20ms\" }}\n"
        ),
    );
    house.write(
        "policy/report.cedar",
        "@id(\"own-report\") permit (principal is Caller, action == Action::\"billing_report\", resource is InvoiceList) \
         when { resource.owner == principal.tenant };",
    );
    let (gate, ada) = ada(&house).await;
    let result = ada.call("billing_report", json!({})).await;
    let totals = result["structuredContent"]["totals"]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"));
    assert!(!totals.is_empty(), "{result}");
    assert!(outcome(&house).await["upstream_requests"].as_u64().unwrap() >= 3);
    close(gate).await;
}
