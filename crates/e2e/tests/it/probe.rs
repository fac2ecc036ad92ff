//! `tollhouse probe`: what a tool really does in an environment that is marked for it, and what becomes of a tool that
//! does more than was declared.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use e2e::client::Mcp;
use e2e::example::CREDENTIAL;
use e2e::house::{House, close};
use e2e::orders;
use e2e::said::run;
use e2e::service::{Arrived, Service, json as answer};
use serde_json::{Value, json};

/// The orders, with `report` to be probed and these witnesses.
fn house(url: &str, marked: &str, witnesses: &str) -> House {
    let house = orders::house(url)
        .with_file("data/one", "1")
        .with_file("data/two/three", "3");
    house.write(
        "tollhouse.toml",
        format!(
            "{}\n[upstream.orders.probe]\nenvironment = \"synthetic\"\ndestination = \"{marked}\"\n\
             call = {{ report = '{{\"about\":\"synthetic\"}}' }}\n[upstream.orders.probe.witness]\n{witnesses}\n",
            orders::CONFIG
        ),
    );
    house
}

const FILES: &str = "files = { folder = \"data\" }";

const PROBE: [&str; 4] = ["probe", "--as", "ada", "--json"];

fn kept(house: &House) -> Value {
    serde_json::from_slice(&std::fs::read(house.path("probes.json")).unwrap()).unwrap()
}

/// A report that writes into the folder that bears witness.
fn writing(folder: PathBuf) -> impl Fn(&Arrived) -> axum::response::Response + Send + Sync {
    let number = AtomicUsize::new(0);
    move |arrived| {
        if arrived.target.starts_with("/report") {
            let name = format!("new-{}", number.fetch_add(1, Ordering::SeqCst));
            std::fs::write(folder.join(name), "x").unwrap();
        }
        orders::usual(arrived)
    }
}

#[tokio::test]
async fn a_tool_that_changes_nothing_is_observed_as_a_read_and_the_call_is_in_the_ledger() {
    let service = Service::start(orders::usual).await;
    let house = house(&service.url(), &service.url(), FILES);
    let said = run(&house, PROBE).await.ended(0).json();
    let probe = &said["probes"][0];
    assert_eq!(
        (&probe["declared"], &probe["observed"]),
        (&json!("read"), &json!("read")),
        "{said:#}"
    );
    assert_eq!(probe["witnesses"][0]["state"], "unchanged");
    assert_eq!(service.arrived()[0].target, "/report?about=synthetic");
    assert_eq!(house.ledger().await.of_kind("intent").len(), 1);
    let kept = kept(&house);
    assert_eq!(kept["probes"]["orders_report"]["class"], "read", "{kept:#}");
    assert!(
        !kept.to_string().contains("synthetic"),
        "no argument is kept: {kept}"
    );
    run(&house, ["check"]).await.ended(0);
}

#[tokio::test]
async fn a_declared_read_that_changes_a_witness_is_held_until_its_operation_changes() {
    let service = Service::start(orders::usual).await;
    let house = house(&service.url(), &service.url(), FILES);
    service.script(writing(house.path("data")));
    let said = run(&house, PROBE).await.ended(1).json();
    let probe = &said["probes"][0];
    assert_eq!(
        (&probe["observed"], &probe["contradicts"]),
        (&json!("write"), &json!(true)),
        "{said:#}"
    );

    let check = run(&house, ["check", "--json"]).await.ended(0).json();
    let warnings = check["warnings"].as_array().unwrap();
    let held = |text: &str| {
        text.contains("the tool is held: a probe observed class `write` at ")
            && text.contains("it changed `files`")
            && text.contains("(evidence ")
            && text.contains("declare `class = \"write\"`")
    };
    assert!(
        warnings.iter().any(|one| held(one["text"].as_str().unwrap())),
        "{check:#}"
    );

    let key = house.key("ada").await;
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    assert!(!ada.tools().await.contains(&"orders_report".to_owned()));
    service.forget();
    let refused = ada
        .ask("tools/call", json!({"name":"orders_report","arguments":{}}))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(service.count(), 0);
    assert_eq!(house.ledger().await.refusals(), ["held"]);
    close(gate).await;

    // Evidence of another operation does not count.
    let house = house.with_change(
        "orders.yaml",
        "operationId: report",
        "operationId: report\n      summary: Anew.",
    );
    let check = run(&house, ["check", "--json"]).await.ended(0).json();
    let warnings = check["warnings"].as_array().unwrap();
    assert!(
        !warnings.iter().any(|one| held(one["text"].as_str().unwrap())),
        "{check:#}"
    );
    // And who observes is not kept from it by what was observed before.
    service.script(orders::usual);
    let said = run(&house, PROBE).await.ended(0).json();
    assert_eq!(said["probes"][0]["observed"], "read");
}

#[tokio::test]
async fn nothing_is_sent_where_nothing_is_marked() {
    let service = Service::start(orders::usual).await;
    for (marked, arguments, expected) in [
        (
            "http://127.0.0.1:9",
            vec![],
            "is marked as synthetic; nothing was sent",
        ),
        (
            service.url().as_str(),
            vec!["orders_read"],
            "has no call to probe it with",
        ),
    ] {
        let house = house(&service.url(), marked, FILES);
        let said = run(&house, [&PROBE[..], &arguments].concat()).await.ended(66);
        assert!(said.err.contains(expected), "{}", said.err);
        assert!(!house.path("probes.json").exists());
    }
    let said = run(&orders::house(&service.url()), PROBE).await.ended(66);
    assert!(said.err.contains("nothing may be probed"), "{}", said.err);
    // What is no mark, and a witness that changes something itself.
    let house_of = |witness: &str| house(&service.url(), &service.url(), witness);
    let unmarked = house_of(FILES).with_change("tollhouse.toml", "\"synthetic\"\n", "\"production\"\n");
    let said = run(&unmarked, PROBE).await.ended(78);
    assert!(
        said.err.contains("`production` is no environment"),
        "{}",
        said.err
    );
    let said = run(&house_of("note = { tool = \"note\" }"), PROBE)
        .await
        .ended(66);
    assert!(
        said.err.contains("a witness is a GET that changes nothing"),
        "{}",
        said.err
    );
    let said = run(&house_of("none = { tool = \"nothing\" }"), PROBE)
        .await
        .ended(78);
    assert!(
        said.err.contains("`nothing` is no tool of this upstream"),
        "{}",
        said.err
    );
    assert_eq!(service.count(), 0);
}

#[tokio::test]
async fn a_witness_that_changes_by_itself_is_said_and_not_blamed_on_the_operation() {
    let number = AtomicUsize::new(0);
    let service = Service::start(move |arrived| {
        if arrived.target.starts_with("/orders") {
            let id = number.fetch_add(1, Ordering::SeqCst);
            return answer(200, &json!({"orders":[{"id":id.to_string(),"tenant":"north"}]}));
        }
        orders::usual(arrived)
    })
    .await;
    let noisy = "list = { tool = \"list\" }";
    let alone = house(&service.url(), &service.url(), noisy);
    let said = run(&alone, PROBE).await.ended(1).json();
    assert_eq!(said["probes"][0]["observed"], json!(null), "{said:#}");
    assert_eq!(said["probes"][0]["witnesses"][0]["state"], "noisy");
    assert_eq!(
        kept(&alone)["probes"],
        json!({}),
        "what says nothing is no evidence"
    );

    let beside = house(&service.url(), &service.url(), &format!("{noisy}\n{FILES}"));
    let said = run(&beside, PROBE).await.ended(0).json();
    assert_eq!(said["probes"][0]["observed"], "read", "{said:#}");
    let text = run(&beside, ["probe", "--as", "ada"]).await.ended(0);
    assert!(text.out.contains("list: changes by itself"), "{}", text.out);
}

#[tokio::test]
async fn what_looks_sensitive_in_the_answer_raises_the_class_and_is_not_kept() {
    let service = Service::start(|_| answer(200, &json!({"by":[{"who":"canary-7f3a@example.com"}]}))).await;
    let house = house(&service.url(), &service.url(), FILES);
    let said = run(&house, PROBE).await.ended(1);
    assert!(
        !said.out.contains("canary") && !said.err.contains("canary"),
        "{}",
        said.out
    );
    let probe = &said.json()["probes"][0];
    assert_eq!(probe["observed"], "sensitive-read");
    assert_eq!(
        probe["sensitive"][0],
        json!({"pointer":"/by/0/who","what":"email"})
    );
    assert!(!kept(&house).to_string().contains("canary"));
    // A call that fails says nothing.
    service.script(|_| answer(500, &json!({})));
    let said = run(&house, PROBE).await.ended(1).json();
    assert_eq!(said["probes"][0]["observed"], json!(null));
    assert!(
        said["probes"][0]["said"]
            .as_str()
            .unwrap()
            .contains("the call failed"),
        "{said:#}"
    );
}

#[tokio::test]
async fn a_file_of_evidence_that_cannot_be_read_lets_nothing_start() {
    let service = Service::start(orders::usual).await;
    for (content, expected) in [
        ("{", "cannot be read"),
        ("{\"version\":9,\"probes\":{}}", "has version 9"),
    ] {
        let house = orders::house(&service.url()).with_file("probes.json", content);
        let said = run(&house, ["check", "--offline"]).await.ended(78);
        assert!(
            said.err.contains("probes.json: it") && said.err.contains(expected),
            "{}",
            said.err
        );
    }
}

#[tokio::test]
async fn a_payment_of_the_worked_example_is_seen_by_a_query() {
    let folder = tempfile::TempDir::new().unwrap();
    let options = invoices::Options::new(folder.path().join("invoices.db"), CREDENTIAL);
    let service = invoices::start(options).await.unwrap();
    let house = House::invoices(&service, CREDENTIAL);
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    let config = config.replace(
        "operation = \"payInvoice\"\n",
        "operation = \"payInvoice\"\nconsent = { waived_by = \"Grace\", because = \"synthetic\", until = \"2199-12-31\" }\n",
    );
    house.write(
        "tollhouse.toml",
        format!(
            "{config}\n[upstream.billing.probe]\nenvironment = \"synthetic\"\ndestination = \"{}\"\ncall = {{ \
             getInvoiceStatus = '{{\"invoice_id\":\"inv-1001\"}}', payInvoice = '{{\"invoice_id\":\"inv-1001\",\
             \"Idempotency-Key\":\"synthetic-1\",\"amount_minor\":1,\"currency\":\"EUR\"}}' }}\n\
             [upstream.billing.probe.witness.paid]\nsource = \"directory\"\nquery = \"select count(*) from payment\"\n",
            service.url()
        ),
    );
    let said = run(&house, PROBE).await.ended(0).json();
    let of = |tool: &str| {
        let probes = said["probes"].as_array().unwrap();
        let found = probes.iter().find(|one| one["tool"] == tool);
        found.unwrap_or_else(|| panic!("{said:#}"))["observed"].clone()
    };
    assert_eq!(of("billing_getInvoiceStatus"), "read", "{said:#}");
    assert_eq!(of("billing_payInvoice"), "write", "{said:#}");
}
