//! `tollhouse check`: every fault at once, each with its place; what can be reached; `--offline` reaches for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use e2e::example::{Example, everything_in};
use e2e::house::House;
use e2e::said::run;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const TWELVE: &str = r#"listen = "localhost"
stor = "sqlite:a.db"
[stdio]
caller = "ada"
[caller.ida]
tenant = 5
[policy]
folder = "policy"
[upstream.api]
openapi = "no-such.yaml"
destination = "ftp://api.example.com"
timeout = 5
credential = { bearer = "hunter2" }
[upstream.api.tool.get]
class = "reed"
resource = { type = "Invoice", id = "$.id" }
[limits]
calls_max = 0
"#;

#[tokio::test]
async fn twelve_faults_are_twelve_lines_each_with_its_place() {
    let house = House::new()
        .with_file("tollhouse.toml", TWELVE)
        .with_file("policy/rules.cedar", "");
    let before = everything_in(&house);
    let said = run(&house, ["check"]).await.ended(78);
    let lines: Vec<&str> = said.err.lines().collect();
    let expected = [
        ("1:10: listen: ", "`localhost`"),
        ("2:1: stor: ", "did you mean `store`?"),
        ("4:10: stdio.caller: ", "did you mean `ida`?"),
        ("6:10: caller.ida.tenant: ", "`5`"),
        ("10:11: upstream.api.openapi: ", "`no-such.yaml`"),
        ("11:15: upstream.api.destination: ", "`ftp://api.example.com`"),
        ("12:11: upstream.api.timeout: ", "`5`"),
        ("13:25: upstream.api.credential.bearer: ", "env:NAME"),
        ("14:1: upstream.api.tool.get.operation: ", "this key is missing"),
        ("14:1: upstream.api.tool.get.owner: ", "this key is missing"),
        ("15:9: upstream.api.tool.get.class: ", "`reed`"),
        ("18:13: limits.calls_max: ", "`0`"),
    ];
    assert_eq!(lines.len(), expected.len() + 1, "{}", said.err);
    for (line, (place, text)) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("tollhouse.toml:{place}")), "{line}");
        assert!(line.contains(text), "{line}");
    }
    assert_eq!(lines[12], "tollhouse: 12 faults; nothing was started");
    assert!(!said.err.contains("hunter2"), "a credential is not repeated");

    // The same for a program, and the same from every command that starts something.
    let outcome = run(&house, ["check", "--json"]).await.ended(78).json();
    assert_eq!(outcome["ok"], false);
    let problems = outcome["problems"].as_array().unwrap();
    for (problem, line) in problems.iter().zip(&lines) {
        let whole = format!(
            "{}:{}:{}: {}: {}",
            problem["file"].as_str().unwrap(),
            problem["line"],
            problem["column"],
            problem["key"].as_str().unwrap(),
            problem["text"].as_str().unwrap()
        );
        assert_eq!(whole, **line);
        assert_eq!(problem["kind"], "configuration");
    }
    for arguments in [
        &["serve"][..],
        &["serve", "--stdio"],
        &["tools"],
        &["keys", "list"],
    ] {
        let other = run(&house, arguments).await.ended(78);
        assert_eq!(
            (other.err, other.out.as_str()),
            (said.err.clone(), ""),
            "{arguments:?}"
        );
    }
    assert_eq!(everything_in(&house), before, "nothing was written");
}

#[tokio::test]
async fn faults_behind_the_configuration_have_a_place_too() {
    let example = Example::start().await;
    let cases: [(&str, &str, &str, &[&str]); 9] = [
        (
            "tollhouse.toml",
            "operation = \"getInvoice\"",
            "operation = \"getInvoic\"",
            &[
                "tollhouse.toml:51:1: upstream.billing.tool.getInvoiceStatus.operation: ",
                "did you mean `getInvoice`",
            ],
        ),
        (
            "tollhouse.toml",
            "returns = { status = \"$.status\"",
            "returns = { status = \"$.status[\"",
            &[
                "tollhouse.toml:",
                "upstream.billing.tool.getInvoiceStatus.returns",
            ],
        ),
        (
            "tollhouse.toml",
            "resource = { type = \"Invoice\", id = \"$.invoice_id\" }",
            "resource = { type = \"Invoice\", id = \"$.invoice\" }",
            &["tollhouse.toml:", "`invoice`", "`invoice_id`"],
        ),
        (
            "openapi.yaml",
            "openapi: 3.1.0",
            "openapi: [",
            &["upstream.billing.openapi: `openapi.yaml`"],
        ),
        (
            "openapi.yaml",
            "openapi: 3.1.0",
            "openapi: 4.0.0",
            &["`openapi.yaml`: ", "4.0.0"],
        ),
        // An operation that cannot be a tool: the place in the document, and what would clear it.
        (
            "openapi.yaml",
            "      operationId: getInvoice\n",
            "      operationId: getInvoice\n      requestBody: {required: true, content: {application/x-thing: {schema: {type: string}}}}\n",
            &["#/paths/~1v1~1invoices~1{invoice_id}/get/requestBody"],
        ),
        (
            "policy/invoices.cedar",
            "principal is Caller",
            "principal is Calller",
            &["policy/invoices.cedar:", "Calller"],
        ),
        (
            "policy/invoices.cedar",
            "billing_getInvoiceStatus",
            "billing_getInvoiceStatu",
            &["policy/invoices.cedar:", "billing_getInvoiceStatus"],
        ),
        (
            "policy/invoices.cedar",
            "permit (",
            "permit (((",
            &["policy/invoices.cedar:"],
        ),
    ];
    for (file, from, to, expected) in cases {
        let whole = std::fs::read_to_string(example.house.path(file)).unwrap();
        assert!(whole.contains(from), "{file} has no {from:?}");
        example.house.write(file, whole.replacen(from, to, 1));
        let mut said = run(&example.house, ["check", "--offline"]).await.ended(78);
        for text in expected {
            said = said.told(text);
        }
        said.told("nothing was started");
        example.house.write(file, whole);
    }
    run(&example.house, ["check", "--offline"]).await.ended(0);
}

#[tokio::test]
async fn faults_of_documents_and_of_policies_are_all_listed() {
    let example = Example::start().await;
    let policy = std::fs::read_to_string(example.house.path("policy/invoices.cedar")).unwrap();
    let wrong = policy.replace("principal.tenant", "principal.tenent");
    let count = wrong.matches("principal.tenent").count();
    assert!(count > 1);
    example.house.write("policy/invoices.cedar", wrong);
    let said = run(&example.house, ["check", "--offline"]).await.ended(78);
    assert!(said.err.matches("tenent").count() >= count, "{}", said.err);
    example.house.write("policy/invoices.cedar", policy);

    let config = invoices::CONFIG
        .replace("\"payInvoice\"", "\"payInvoices\"")
        .replace("\"deleteInvoice\"", "\"destroyInvoice\"");
    example.house.write("tollhouse.toml", config);
    run(&example.house, ["check", "--offline"])
        .await
        .ended(78)
        .told("`payInvoices`")
        .told("`destroyInvoice`")
        .told("tollhouse: 2 faults; nothing was started");
}

#[tokio::test]
async fn what_is_named_is_reached_or_not() {
    let example = Example::start().await;
    let before = everything_in(&example.house);
    run(&example.house, ["check"])
        .await
        .ended(0)
        .printed("upstream `billing`: reached, ")
        .printed("5 tools are enabled, 3 operations are held");
    let outcome = run(&example.house, ["check", "--json"]).await.ended(0).json();
    let keys: Vec<&String> = outcome.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "ok",
            "tools",
            "held",
            "rules_version",
            "approvals",
            "documents",
            "blocked",
            "probes",
            "warnings",
            "problems"
        ]
    );
    assert_eq!(
        (&outcome["ok"], &outcome["tools"], &outcome["held"]),
        (&json!(true), &json!(5), &json!(3))
    );
    assert_eq!(outcome["probes"][0]["what"], "upstream `billing`");
    assert_eq!(outcome["probes"][0]["reached"], true);

    let Example { service, house, .. } = example;
    service.stop().await.unwrap();
    run(&house, ["check"])
        .await
        .ended(69)
        .printed("upstream `billing`: NOT reached, ")
        .told("something that the configuration names cannot be reached");
    let outcome = run(&house, ["check", "--json"]).await.ended(69).json();
    assert_eq!(
        (&outcome["ok"], &outcome["probes"][0]["reached"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(outcome["problems"], Value::Array(Vec::new()));
    // Nothing has to be reachable for what is written to be right.
    run(&house, ["check", "--offline"]).await.ended(0);
    assert_eq!(everything_in(&house), before, "looking leaves no trace");
}

#[tokio::test]
async fn offline_connects_to_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let example = Example::start().await;
    // Upstream, key set and source of facts all lead to the counter.
    let config = format!(
        "{}\n[identity.issuer.corp]\nissuer = \"https://idp.example.com\"\nkey_set = \"http://{address}/keys\"\n\
         network = {{ allow = [\"127.0.0.1/32\"] }}\n",
        invoices::CONFIG
    );
    let house = House::new()
        .with_file("tollhouse.toml", config)
        .with_file("openapi.yaml", invoices::OPENAPI)
        .with_file("policy/invoices.cedar", invoices::POLICY)
        .with_variable(invoices::URL_VARIABLE, format!("http://{address}"))
        .with_variable(invoices::DATABASE_VARIABLE, format!("postgres://u:p@{address}/d"))
        .with_variable(invoices::TOKEN_VARIABLE, "t");
    run(&house, ["check", "--offline"]).await.ended(0);
    assert_eq!(connections.load(Ordering::SeqCst), 0);
    // The counter counts: without the flag all three are asked.
    let outcome = run(&house, ["check", "--json"]).await.json();
    assert!(connections.load(Ordering::SeqCst) >= 3, "{outcome}");
    assert_eq!(outcome["ok"], false);
    drop(example);
}
