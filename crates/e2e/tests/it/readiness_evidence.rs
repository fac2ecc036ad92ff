//! `tollhouse review`, where it says what is known and by whom: names that are locked, what probes observed, who clears
//! what is in the way, and what a reviewer should look at in bodies and access.

use e2e::house::House;
use e2e::orders;
use e2e::said::run;
use e2e::service::{Service, json as answer};
use serde_json::{Value, json};

const CONFIGURED: [&str; 3] = ["review", "orders.yaml", "--config"];

async fn report(house: &House, more: &[&str], code: i32) -> Value {
    let arguments: Vec<&str> = CONFIGURED
        .iter()
        .chain(&["tollhouse.toml", "--json"])
        .chain(more)
        .copied()
        .collect();
    run(house, arguments).await.ended(code).json()
}

fn row<'r>(report: &'r Value, path: &str, method: &str) -> &'r Value {
    let rows = report["tools"].as_array().unwrap();
    rows.iter()
        .find(|row| row["path"] == path && row["method"] == method)
        .unwrap_or_else(|| panic!("no {method} {path} in {report}"))
}

fn concerns(report: &Value, operation: &str) -> Vec<String> {
    let table = report["access"].as_array().unwrap();
    let found = table.iter().find(|row| row["operation"] == operation).unwrap();
    let texts = found["concerns"].as_array().unwrap();
    texts
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

const MORE: &str = "paths:\n  /more: {get: {operationId: more, responses: {'200': {description: x}}}}\n";

#[tokio::test]
async fn an_operation_has_the_name_that_the_lock_says() {
    let house = orders::house("http://127.0.0.1:9").with_change("orders.yaml", "paths:\n", MORE);
    let before = report(&house, &[], 0).await;
    assert_eq!(row(&before, "/more", "GET")["name"], "orders_more");
    house.write("tollhouse.names", "orders_earlier orders GET /more\n");
    let after = report(&house, &[], 0).await;
    assert_eq!(row(&after, "/more", "GET")["name"], "orders_earlier");
    // What another operation was called once is nobody's name.
    house.write("tollhouse.names", "orders_more orders GET /gone\n");
    let other = report(&house, &[], 0).await;
    assert_ne!(row(&other, "/more", "GET")["name"], "orders_more");
}

#[tokio::test]
async fn an_earlier_version_is_read_with_its_own_files_and_the_same_overlays() {
    let part = "get: {operationId: split, parameters: [{name: q, in: query, schema: {type: string}}], responses: {'200': {description: x}}}\n";
    let split = "paths:\n  /split: {$ref: more.yaml}\n";
    let overlay = "overlay: 1.0.0\ninfo: {title: o, version: '1'}\nactions:\n- {target: \"$.paths['/report'].get\", update: {operationId: told}}\n";
    let house = orders::house("http://127.0.0.1:9")
        .with_change("orders.yaml", "paths:\n", split)
        .with_file("more.yaml", part)
        .with_file("o.yaml", overlay)
        .with_file("old/orders.yaml", orders::DOCUMENT.replace("paths:\n", split))
        .with_file("old/more.yaml", part)
        .with_change(
            "tollhouse.toml",
            "openapi = \"orders.yaml\"",
            "openapi = \"orders.yaml\"\noverlays = [\"o.yaml\"]",
        )
        .with_change("tollhouse.toml", "operation = \"report\"", "operation = \"told\"");
    let alone = async |house: &House| {
        let arguments = [
            "review",
            "orders.yaml",
            "--overlay",
            "o.yaml",
            "--diff",
            "old/orders.yaml",
            "--json",
        ];
        run(house, arguments).await.ended(0).json()["changes"].clone()
    };
    let diff = ["--diff", "old/orders.yaml"];
    assert_eq!(report(&house, &diff, 0).await["changes"], json!([]));
    assert_eq!(alone(&house).await, json!([]));
    // A file of the earlier version that said something else is a change, and one outside of its folder is not read.
    house.write("old/more.yaml", part.replace("name: q", "name: p"));
    for changes in [
        report(&house, &diff, 0).await["changes"].clone(),
        alone(&house).await,
    ] {
        assert_eq!(changes[0]["operation"], "GET /split", "{changes}");
        assert_eq!(changes[0]["kind"], "input-changed", "{changes}");
    }
    house.write(
        "old/orders.yaml",
        orders::DOCUMENT.replace("paths:\n", &split.replace("more.yaml", "../more.yaml")),
    );
    for changes in [
        report(&house, &diff, 0).await["changes"].clone(),
        alone(&house).await,
    ] {
        assert_eq!(changes[0]["kind"], "added", "{changes}");
    }
}

#[tokio::test]
async fn what_a_probe_observed_stands_in_the_report_and_holds_the_tool() {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url()).with_file("data/one", "1");
    house.write(
        "tollhouse.toml",
        format!(
            "{}\n[upstream.orders.probe]\nenvironment = \"synthetic\"\ndestination = \"{}\"\ncall = {{ report = \
             '{{\"about\":\"synthetic\"}}' }}\nwitness.files = {{ folder = \"data\" }}\n",
            orders::CONFIG,
            service.url()
        ),
    );
    let probe = ["probe", "--as", "ada", "--json"];
    run(&house, probe).await.ended(0);
    let quiet = report(&house, &[], 0).await;
    let quiet = row(&quiet, "/report", "GET");
    assert_eq!(
        (&quiet["class"]["observed"], &quiet["status"]),
        (&json!("read"), &json!("exposed"))
    );
    assert!(
        quiet["contract"]
            .as_str()
            .unwrap()
            .starts_with("1 of 1 answers passed; no schema is declared, "),
        "{quiet}"
    );

    // A file that is gone is more than one that is new.
    for (change, expected) in [("new", "write"), ("gone", "destructive")] {
        let folder = house.path("data");
        service.script(move |arrived| {
            if arrived.target.starts_with("/report") {
                match change {
                    "new" => std::fs::write(folder.join("two"), "2").unwrap(),
                    _ => std::fs::remove_file(folder.join("one")).unwrap(),
                }
            }
            orders::usual(arrived)
        });
        run(&house, probe).await.ended(1);
        let held = report(&house, &[], 1).await;
        let held = row(&held, "/report", "GET");
        assert_eq!(held["status"], "blocked", "{change}");
        assert_eq!(held["class"]["observed"], expected, "{change}");
        assert_eq!(held["blockers"][0]["code"], "class.observed", "{held}");
        assert_eq!(held["seen_by"], json!([]), "{held}");
        assert!(held["observed"].as_str().unwrap().contains(expected), "{held}");
    }
}

#[tokio::test]
async fn real_answers_are_counted_and_one_that_breaks_its_schema_is_a_warning() {
    let service = Service::start(|_| answer(201, &json!({"note": "n1"}))).await;
    let house = orders::house(&service.url()).with_file("data/one", "1");
    house.write(
        "tollhouse.toml",
        format!(
            "{}\n[upstream.orders.probe]\nenvironment = \"synthetic\"\ndestination = \"{}\"\ncall = {{ note = \
             '{{\"id\":\"o1\",\"text\":\"t\"}}' }}\nwitness.files = {{ folder = \"data\" }}\n",
            orders::CONFIG,
            service.url()
        ),
    );
    house.write("owners.json", r#"{"Order": {"o1": "north"}}"#);
    let probe = ["probe", "--as", "ada", "--json"];
    run(&house, probe).await.ended(0);
    service.script(|_| answer(500, &json!({})));
    run(&house, probe).await.ended(1);
    let good = report(&house, &[], 0).await;
    let good = row(&good, "/orders/{id}/notes", "POST");
    assert_eq!(
        good["contract"], "1 of 1 answers fit the declared schema, 13 to 13 bytes; 1 calls failed",
        "{good}"
    );
    assert_eq!(good["blockers"], json!([]));
    service.script(|_| answer(201, &json!({"note": 7})));
    run(&house, probe).await.ended(1);
    let broken = report(&house, &[], 0).await;
    let broken = row(&broken, "/orders/{id}/notes", "POST");
    assert!(
        broken["contract"]
            .as_str()
            .unwrap()
            .starts_with("1 of 2 answers fit"),
        "{broken}"
    );
    assert_eq!(
        (
            &broken["status"],
            &broken["blockers"][0]["code"],
            &broken["blockers"][0]["severity"]
        ),
        (&json!("exposed"), &json!("contract.broken"), &json!("warning"))
    );
    // Counts of another operation are not its own.
    let house = house.with_change(
        "orders.yaml",
        "operationId: addNote",
        "operationId: addNote\n      summary: Anew.",
    );
    let anew = report(&house, &[], 0).await;
    assert_eq!(
        row(&anew, "/orders/{id}/notes", "POST")["contract"],
        "none observed"
    );
}

#[tokio::test]
async fn whoever_clears_a_blocker_stands_in_every_form() {
    let bad = "paths:\n  /bad/{x}: {get: {operationId: bad}}\n";
    let house = orders::house("http://127.0.0.1:9")
        .with_change("orders.yaml", "paths:\n", bad)
        .with_change(
            "tollhouse.toml",
            "[upstream.orders.tool.read]",
            "[upstream.orders.blocker]\nany = { owner = \"the gate team\" }\npath = { owner = \"Ada, of orders\", due = \"2020-02-29\" }\n\n\
             [upstream.orders.tool.read]",
        );
    let json = report(&house, &[], 0).await;
    let group = &json["blockers"][0];
    assert_eq!(
        (&group["code"], &group["owner"], &group["due"], &group["overdue"]),
        (
            &json!("path.undeclared-variable"),
            &json!("Ada, of orders"),
            &json!("2020-02-29"),
            &json!(true)
        ),
        "{group}"
    );
    assert_eq!(
        row(&json, "/bad/{x}", "GET")["blockers"][0]["owner"],
        "Ada, of orders"
    );
    for form in ["table", "html", "markdown", "csv", "sarif"] {
        let said = run(
            &house,
            [
                "review",
                "orders.yaml",
                "--config",
                "tollhouse.toml",
                "--format",
                form,
            ],
        )
        .await
        .ended(0);
        assert!(
            said.out.contains("Ada, of") && said.out.contains("orders"),
            "{form}: {}",
            said.out
        );
        assert!(
            form == "csv" || said.out.contains("2020-02-29"),
            "{form}: {}",
            said.out
        );
    }
    let wrong = house.with_change("tollhouse.toml", "2020-02-29", "2020-02-30");
    run(&wrong, ["check"]).await.ended(78).told("date");
}

#[tokio::test]
async fn a_body_that_sets_what_a_service_decides_and_an_admin_call_like_any_other_are_named() {
    const DOCUMENT: &str = "paths:\n  /admin/roles: {post: {operationId: setRole, security: [{key: [admin]}], requestBody: {content: \
                {application/json: {schema: {type: object, properties: {who: {type: string}, role: {type: string}, extra: \
                {type: object, additionalProperties: true}}}}}}, responses: {'200': {description: x}}}}\n";
    let house = orders::house("http://127.0.0.1:9").with_change("orders.yaml", "paths:\n", DOCUMENT);
    let all = async |house: &House| {
        run(house, ["review", "orders.yaml", "--json"])
            .await
            .ended(0)
            .json()
    };
    let sets = "a caller sets `role`, which decides about rights, owners or money";
    let takes = "`extra` takes fields that nobody declared";
    let alike = "nothing tells its callers from those of ordinary operations";
    let shared = "one credential reads and changes";
    let operation = "POST /admin/roles";
    assert_eq!(concerns(&all(&house).await, operation), [takes, sets]);
    // Without a scope of its own it asks for nothing more than others do.
    let house = house.with_change("orders.yaml", " security: [{key: [admin]}],", "");
    assert_eq!(concerns(&all(&house).await, operation), [takes, sets, alike]);
    // A reviewer who fixes the field and names who may call has answered.
    let tool = |more: &str, audience: &str| {
        let approval = |what: &str| {
            format!(
                "approval.{what} = {{ by = \"Ada\", because = \"a test\", until = \"2099-12-31\", for = [\"{audience}\"] }}\n"
            )
        };
        format!(
            "[upstream.orders.tool.role]\noperation = \"setRole\"\nclass = \"write\"\nconsent = {{ waived_by = \"Ada\", because \
             = \"a test\", until = \"2199-12-31\" }}\n{more}{}{}\n",
            approval("mutations"),
            approval("administration")
        )
    };
    for (more, audience, expected) in [
        ("", "everyone", vec![takes, sets, alike, shared]),
        (
            "argument.role.fixed = \"guest\"\nargument.extra.hide = true\n",
            "role:admin",
            vec![shared],
        ),
    ] {
        let house = orders::house("http://127.0.0.1:9").with_change(
            "orders.yaml",
            "paths:\n",
            &DOCUMENT.replace(" security: [{key: [admin]}],", ""),
        );
        house.write(
            "tollhouse.toml",
            format!("{}\n{}", orders::CONFIG, tool(more, audience)),
        );
        let report = run(
            &house,
            ["review", "orders.yaml", "--config", "tollhouse.toml", "--json"],
        )
        .await;
        let report = report.json();
        assert_eq!(concerns(&report, operation), expected, "{audience}");
    }
}
