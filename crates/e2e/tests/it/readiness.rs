//! `tollhouse review`: what a document offers, what of it is offered to whom, what is in the way; and `tollhouse init
//! DOCUMENT`, which asks for the answers. The numbers fit together, or the report is a no.

use e2e::house::House;
use e2e::orders;
use e2e::said::{Said, run};
use serde_json::{Value, json};

async fn report(house: &House, more: &[&str], code: i32) -> Value {
    let arguments: Vec<&str> = ["review", "orders.yaml", "--json"]
        .iter()
        .chain(more)
        .copied()
        .collect();
    run(house, arguments).await.ended(code).json()
}

fn house() -> House {
    orders::house("http://127.0.0.1:9")
}

/// The integers that every report has.
fn counts(report: &Value) -> [u64; 5] {
    ["operations", "exposed", "excluded", "blocked", "unreviewed"]
        .map(|name| report["summary"][name].as_u64().unwrap())
}

fn row<'r>(report: &'r Value, path: &str, method: &str) -> &'r Value {
    let rows = report["tools"].as_array().unwrap();
    rows.iter()
        .find(|row| row["path"] == path && row["method"] == method)
        .unwrap_or_else(|| panic!("no {method} {path} in {report}"))
}

#[tokio::test]
async fn without_a_configuration_nothing_is_exposed_and_everything_is_counted() {
    let report = report(&house(), &[], 0).await;
    assert_eq!(counts(&report), [5, 0, 2, 0, 3]);
    assert_eq!(report["summary"]["counted"], 5);
    assert_eq!(report["verdict"]["ready"], false);
    let drop = row(&report, "/orders/{id}", "DELETE");
    assert_eq!(
        drop["class"],
        json!({"declared": null, "inferred": "destructive", "observed": null})
    );
    assert_eq!(drop["status"], "excluded");
    assert_eq!(drop["exclusions"], json!(["mutations"]));
    assert_eq!(row(&report, "/orders/{id}", "GET")["status"], "unreviewed");
    assert!(drop["bytes"].as_u64().unwrap() > 0 && drop["contract"] == "none observed");
}

#[tokio::test]
async fn with_a_configuration_the_report_drives_the_gateway_that_would_serve() {
    let house = house();
    let report = report(&house, &["--config", "tollhouse.toml"], 0).await;
    assert_eq!(counts(&report), [5, 5, 0, 0, 0]);
    assert_eq!(report["verdict"]["ready"], true, "{}", report["verdict"]);
    let note = row(&report, "/orders/{id}/notes", "POST");
    assert_eq!(note["name"], "orders_note");
    assert_eq!(note["class"]["declared"], "write");
    assert_eq!(note["approvals"][0]["by"], "the tests");
    assert_eq!(note["request"]["target"], "/orders/a/notes");
    assert_eq!(note["request"]["body"], r#"{"text":"a"}"#);
    // What a caller sees is what `tools --as` says.
    for caller in ["ada", "bob"] {
        let listed = run(&house, ["tools", "--as", caller, "--json"])
            .await
            .ended(0)
            .json();
        let listed: Vec<&Value> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        let views = report["reconciliation"]["callers"].as_array().unwrap();
        let view = views.iter().find(|view| view["caller"] == caller).unwrap();
        assert_eq!(
            view["sees"].as_array().unwrap().iter().collect::<Vec<_>>(),
            listed,
            "{caller}"
        );
    }
    assert_eq!(report["reconciliation"]["strays"], json!([]));
}

#[tokio::test]
async fn a_golden_request_has_what_the_operator_gives_beside_the_caller() {
    let operation = "operation = \"addNote\"\n";
    let given = "argument.text.fixed = \"seen\"\n";
    let house = house().with_change("tollhouse.toml", operation, &format!("{operation}{given}"));
    let report = report(&house, &["--config", "tollhouse.toml"], 0).await;
    let note = row(&report, "/orders/{id}/notes", "POST");
    assert_eq!(note["request"]["arguments"], json!({"id": "a"}));
    assert_eq!(note["request"]["body"], r#"{"text":"seen"}"#);
    let house = house.with_change(
        "tollhouse.toml",
        given,
        "argument.text.from = \"principal.tenant\"\n",
    );
    let report = self::report(&house, &["--config", "tollhouse.toml"], 0).await;
    let note = row(&report, "/orders/{id}/notes", "POST");
    assert_eq!(note["request"]["body"], r#"{"text":"the-caller"}"#);
}

#[tokio::test]
async fn with_a_configuration_its_overlays_and_files_are_read_as_the_gate_reads_them() {
    let overlay = "overlay: 1.0.0\ninfo: {title: o, version: '1'}\nactions:\n- {target: \"$.paths['/orders/{id}'].get\", update: {operationId: oneOrder}}\n- {target: $.paths, update: {'/more': {get: {operationId: more, responses: {'200': {description: x}}}}}}\n";
    let house = house()
        .with_file("o.yaml", overlay)
        .with_file(
            "more.yaml",
            "get: {operationId: split, responses: {'200': {description: x}}}\n",
        )
        .with_change("orders.yaml", "paths:\n", "paths:\n  /split: {$ref: more.yaml}\n")
        .with_change(
            "tollhouse.toml",
            "openapi = \"orders.yaml\"",
            "openapi = \"orders.yaml\"\noverlays = [\"o.yaml\"]",
        )
        .with_change("tollhouse.toml", "\"readOrder\"", "\"oneOrder\"");
    let report = report(&house, &["--config", "tollhouse.toml"], 0).await;
    assert_eq!(counts(&report), [7, 5, 0, 0, 2]);
    assert_eq!(
        (&report["summary"]["counted"], &report["summary"]["overlays"]),
        (&json!(6), &json!(1))
    );
    assert_eq!(row(&report, "/orders/{id}", "GET")["operation_id"], "oneOrder");
}

#[tokio::test]
async fn a_configured_tool_that_is_held_is_blocked_and_the_report_is_a_no() {
    let approval = "approval.mutations = { by = \"the tests\", because = \"nothing is real here\", until = \"2099-12-31\", for = [\"everyone\"] }\n";
    for (what, replacement, code) in [
        ("no approval", String::new(), "approval.missing.mutations"),
        (
            "ended",
            approval.replace("2099", "1999"),
            "approval.expired.mutations",
        ),
    ] {
        let house = house().with_change("tollhouse.toml", approval, &replacement);
        let report = report(&house, &["--config", "tollhouse.toml"], 1).await;
        assert_eq!(counts(&report), [5, 3, 0, 2, 0], "{what}");
        let blockers = report["blockers"].as_array().unwrap();
        assert_eq!(
            blockers.len(),
            1,
            "{what}: the same defect stands once: {blockers:?}"
        );
        assert_eq!(
            (&blockers[0]["code"], &blockers[0]["count"]),
            (&json!(code), &json!(2)),
            "{what}"
        );
        let owner = &blockers[0]["owner"];
        assert_eq!(owner.is_null(), replacement.is_empty(), "{what}: {owner}");
    }
}

#[tokio::test]
async fn a_verdict_is_bound_to_document_configuration_and_rules() {
    let digest = async |house: &House| {
        let report = report(house, &["--config", "tollhouse.toml"], 0).await;
        report["verdict"]["digest"].as_str().unwrap().to_owned()
    };
    let first = digest(&house()).await;
    assert_eq!(first, digest(&house()).await, "the same gives the same");
    for (file, from, to) in [
        ("orders.yaml", "title: Orders", "title: Other"),
        ("tollhouse.toml", "[stdio]", "# a comment\n[stdio]"),
        ("policy/orders.cedar", "own-orders", "their-orders"),
    ] {
        assert_ne!(
            first,
            digest(&house().with_change(file, from, to)).await,
            "{file}"
        );
    }
}

#[tokio::test]
async fn a_report_that_analysed_nothing_or_the_wrong_thing_fails() {
    let empty = "openapi: 3.1.0\ninfo: {title: x, version: '1'}\npaths: {}\n";
    let house = house()
        .with_file("empty.yaml", empty)
        .with_file("no.yaml", "just words");
    run(&house, ["review", "empty.yaml"])
        .await
        .ended(1)
        .told("nothing was analysed");
    run(&house, ["review", "no.yaml"]).await.ended(66).told("no.yaml");
    run(&house, ["review", "missing.yaml"])
        .await
        .ended(66)
        .told("missing.yaml");
    let other = run(&house, ["review", "empty.yaml", "--config", "tollhouse.toml"])
        .await
        .ended(66);
    other.told("no upstream of `tollhouse.toml` has the document `empty.yaml`; it has orders.yaml");
    run(&house, ["review", "orders.yaml", "--out", "x.txt"])
        .await
        .ended(66)
        .told("--format html");
    run(&house, ["review", "orders.yaml", "--config", "missing.toml"])
        .await
        .ended(78);
}

#[tokio::test]
async fn a_diff_tells_what_changed_and_which_approvals_that_takes_away() {
    let same = house().with_file("old.yaml", orders::DOCUMENT);
    let report_of = async |house: &House, code| {
        report(house, &["--config", "tollhouse.toml", "--diff", "old.yaml"], code).await
    };
    assert_eq!(report_of(&same, 0).await["changes"], json!([]));
    // Before, the note took only a text. Now it can be sent anywhere.
    let house = house()
        .with_file("old.yaml", orders::DOCUMENT)
        .with_change(
            "orders.yaml",
            "properties: { text: { type: string } }",
            "properties: { text: { type: string }, place: { type: string } }",
        )
        .with_change("orders.yaml", "operationId: report", "operationId: deleteReport")
        .with_change(
            "tollhouse.toml",
            "operation = \"report\"",
            "operation = \"GET /report\"",
        );
    let report = report_of(&house, 1).await;
    let changes: Vec<(&str, &str)> = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            (
                change["kind"].as_str().unwrap(),
                change["operation"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        changes,
        [
            ("input-widened", "POST /orders/{id}/notes"),
            ("renamed", "GET /report"),
            ("class", "GET /report"),
        ]
    );
    assert_eq!(report["changes"][0]["revokes"], json!(["orders_note: mutations"]));
}

#[tokio::test]
async fn a_split_document_is_read_within_its_folder_and_overlays_come_after_the_count() {
    let split = "openapi: 3.1.0\ninfo: {title: S, version: '1'}\npaths:\n  /a: {$ref: paths/a.yaml}\n  /b: {get: {operationId: readB}, delete: {operationId: dropB}}\n";
    let overlay = "overlay: 1.0.0\ninfo: {title: o, version: '1'}\nactions:\n- {target: \"$.paths['/b'].delete\", remove: true}\n";
    let house = House::new()
        .with_file("spec/api.yaml", split)
        .with_file(
            "spec/paths/a.yaml",
            "get: {operationId: readA}\npost: {operationId: makeA}\n",
        )
        .with_file("less.yaml", overlay)
        .with_file("secret.yaml", "get: {operationId: outside}\n");
    let whole = run(&house, ["review", "spec/api.yaml", "--json"])
        .await
        .ended(0)
        .json();
    assert_eq!(counts(&whole), [4, 0, 2, 0, 2]);
    assert_eq!(whole["summary"]["counted"], 4);
    assert_eq!(whole["subject"]["files"], json!(["paths/a.yaml"]));
    let less = run(
        &house,
        ["review", "spec/api.yaml", "--overlay", "less.yaml", "--json"],
    )
    .await
    .ended(0)
    .json();
    assert_eq!(counts(&less), [3, 0, 1, 0, 2]);
    assert_eq!(
        (&less["summary"]["counted"], &less["summary"]["overlays"]),
        (&json!(4), &json!(-1))
    );
    assert_ne!(less["verdict"]["document"], whole["verdict"]["document"]);
    // A link out of the folder, and a way up, lead nowhere.
    std::fs::remove_file(house.path("spec/paths/a.yaml")).unwrap();
    std::os::unix::fs::symlink(house.path("secret.yaml"), house.path("spec/paths/a.yaml")).unwrap();
    let linked = run(&house, ["review", "spec/api.yaml", "--json"])
        .await
        .ended(0)
        .json();
    assert_eq!(counts(&linked), [2, 0, 1, 0, 1]);
    assert!(
        linked["subject"]["unreadable"][0]
            .as_str()
            .unwrap()
            .contains("paths/a.yaml"),
        "{}",
        linked["subject"]
    );
    house.write("spec/api.yaml", split.replace("paths/a.yaml", "../secret.yaml"));
    let up = run(&house, ["review", "spec/api.yaml"]).await.ended(1);
    assert!(!up.out.contains("outside") && !up.err.contains("outside"));
}

// === init DOCUMENT ===

fn text_of(house: &House) -> String {
    std::fs::read_to_string(house.path("gate.toml")).unwrap()
}

async fn init(house: &House) -> Said {
    run(house, ["init", "orders.yaml", "--config", "gate.toml"]).await
}

#[tokio::test]
async fn init_asks_about_every_operation_and_enables_none() {
    let house = House::new().with_file("orders.yaml", orders::DOCUMENT);
    init(&house)
        .await
        .ended(0)
        .printed("wrote gate.toml: 5 operations, all of them held");
    let text = text_of(&house);
    assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
    for question in [
        "# --- DELETE /orders/{id}",
        "suggests at least `destructive` (`DELETE` at #/paths/~1orders~1{id}/delete)",
        "It changes state",
        "# [upstream.orders.tool.dropOrder]",
        "# approval.mutations = {",
        "Whose is the thing that the path names",
    ] {
        assert!(text.contains(question), "no {question:?} in:\n{text}");
    }
    run(&house, ["check", "--offline", "--config", "gate.toml"])
        .await
        .ended(0)
        .printed("0 tools are enabled, 5 operations are held");
    // Run again, there is nothing to ask.
    init(&house).await.ended(0).printed("kept gate.toml");
    assert_eq!(text_of(&house), text);
}

#[tokio::test]
async fn init_loses_no_byte_of_what_a_person_wrote_and_asks_only_about_what_is_new() {
    let house = House::new().with_file("orders.yaml", orders::DOCUMENT);
    init(&house).await.ended(0);
    // A person answers one, deletes the questions of another, writes comments in a style of their own, and no last line end.
    let mine = text_of(&house)
        .replace("# [upstream.orders.tool.report]", "[upstream.orders.tool.report]")
        .replace(
            "# operation = \"report\"\n# class = \"\"",
            "operation    =   \"report\"   # mine\nclass = \"read\"",
        )
        + "\n  # häufig: \t nachsehen\r\n# end";
    house.write("gate.toml", &mine);
    let more = orders::DOCUMENT.replace(
        "  /report:\n",
        "  /extra\\n:\n    get: { operationId: \"a\\n[upstream.evil]\\nb\", responses: { \"200\": { description: x } } }\n  /report:\n",
    );
    house.write("orders.yaml", more);
    init(&house)
        .await
        .ended(0)
        .printed("added 1 operation to gate.toml");
    let after = text_of(&house);
    assert!(
        after.starts_with(&mine),
        "what was there stands in front, as it was"
    );
    let added = &after[mine.len()..];
    assert!(
        added.lines().all(|line| line.is_empty() || line.starts_with('#')),
        "{added}"
    );
    let table: toml::Table = toml::from_str(&after).unwrap();
    assert_eq!(
        table["upstream"].as_table().unwrap().len(),
        1,
        "nothing of the document became a table"
    );
    init(&house).await.ended(0).printed("kept gate.toml");
    assert_eq!(text_of(&house), after);
}

#[tokio::test]
async fn init_changes_nothing_that_it_cannot_read() {
    for (config, why) in [
        ("not = = toml", "is no TOML"),
        ("[upstream.orders]\nopenapi = \"other.yaml\"\n", "--upstream NAME"),
    ] {
        let house = House::new()
            .with_file("orders.yaml", orders::DOCUMENT)
            .with_file("gate.toml", config);
        init(&house).await.ended(66).told(why);
        assert_eq!(text_of(&house), config);
    }
    let house = House::new()
        .with_file("orders.yaml", "paths: [")
        .with_file("gate.toml", "# mine\n");
    init(&house).await.ended(66).told("orders.yaml");
    assert_eq!(text_of(&house), "# mine\n");
}
