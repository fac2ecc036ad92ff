//! The first steps: `init`, and what editors and shells are given (`schema`, `completions`, `man`).

use std::fmt::Write as _;

use e2e::example::{Example, everything_in};
use e2e::house::House;
use e2e::said::run;

#[tokio::test]
async fn init_writes_a_start_and_overwrites_nothing() {
    let house = House::new();
    run(&house, ["init"])
        .await
        .ended(0)
        .printed("wrote tollhouse.toml\nwrote policy/rules.cedar\n")
        .printed("tollhouse check");
    house.write("tollhouse.toml", "mine");
    let kept = run(&house, ["init"]).await.ended(0);
    kept.printed(
        "kept tollhouse.toml, which is there already\nkept policy/rules.cedar, which is there already\n",
    );
    assert_eq!(std::fs::read(house.path("tollhouse.toml")).unwrap(), b"mine");

    run(&house, ["init", "sub/gate"]).await.ended(0);
    assert!(house.path("sub/gate/policy/rules.cedar").is_file());
    house.write("taken", "a file");
    run(&house, ["init", "taken"]).await.ended(66).told("taken");
    assert_eq!(std::fs::read(house.path("taken")).unwrap(), b"a file");
}

#[tokio::test]
async fn a_document_that_is_not_there_becomes_no_folder() {
    let house = House::new().with_file("folder.json/kept", "");
    for name in ["opnapi.yaml", "opnapi.yml", "opnapi.json"] {
        let cannot = format!("`{name}` cannot be read");
        run(&house, ["init", name]).await.ended(66).told(&cannot);
        assert!(!house.path(name).exists(), "{name}");
    }
    assert!(!house.path("tollhouse.toml").exists());
    run(&house, ["init", "folder.json"]).await.ended(0);
    assert!(house.path("folder.json/tollhouse.toml").is_file());
}

#[tokio::test]
async fn what_init_wrote_passes_once_the_document_is_there() {
    let house = House::new();
    run(&house, ["init"]).await.ended(0);
    run(&house, ["check", "--offline"]).await.ended(78).told(
        "upstream.api.openapi: `openapi.yaml` is not there; relative paths begin in the folder of this file",
    );
    house.write("openapi.yaml", invoices::OPENAPI);
    run(&house, ["check", "--offline"])
        .await
        .ended(0)
        .printed("0 tools are enabled, 8 operations are held")
        .told("this upstream has no tools")
        .told("there are no rules");
    run(&house, ["tools", "--held"])
        .await
        .ended(0)
        .printed("getInvoice ");
    run(&house, ["keys", "add", "ada"]).await.ended(0);
}

/// The newcomer's path to its end: everything that `init` wrote as a comment, taken at its word, is a gate that works.
#[tokio::test]
async fn what_init_suggests_makes_a_gate_that_works() {
    let example = Example::start().await;
    let house = House::new()
        .with_variable("API_TOKEN", e2e::example::CREDENTIAL)
        .with_variable(
            "DIRECTORY_URL",
            format!("sqlite:{}", example.service.database_path().display()),
        );
    run(&house, ["init"]).await.ended(0);
    house.write("openapi.yaml", invoices::OPENAPI);

    let read = |name: &str| std::fs::read_to_string(house.path(name)).unwrap();
    let mut config = String::new();
    let mut issuer = false;
    for line in read("tollhouse.toml").lines() {
        issuer = if line.starts_with("# [") {
            line.contains("identity")
        } else {
            issuer && !line.is_empty()
        };
        let suggested = line.starts_with("# [") || (line.starts_with("# ") && line.contains(" = "));
        // Neither an identity provider nor a public name is there for a test.
        let here = suggested && !issuer && !line.contains("public_url");
        let _ = writeln!(config, "{}", if here { &line[2..] } else { line });
    }
    let config = config
        .replace("https://api.example.com", &example.service.url())
        .replace("10.1.2.0/24", "127.0.0.1/32");
    house.write("tollhouse.toml", config);
    let policy = read("policy/rules.cedar");
    let (prose, rule) = policy.split_once("//\n").expect("a rule that is commented out");
    let rule: String = rule.lines().fold(String::new(), |text, line| {
        text + line.trim_start_matches('/').trim_start() + "\n"
    });
    house.write("policy/rules.cedar", format!("{prose}{rule}"));

    let checked = run(&house, ["check"]).await.ended(0);
    assert_eq!(checked.err, "", "no warnings");
    checked.printed("1 tool is enabled, 7 operations are held");
    let own = r#"{"invoice_id":"inv-1001"}"#;
    run(&house, ["call", "--as", "ada", "api_getInvoiceStatus", own])
        .await
        .ended(0)
        .printed(r#""status":"#);
    let foreign = r#"{"invoice_id":"inv-2001"}"#;
    run(&house, ["call", "--as", "ada", "api_getInvoiceStatus", foreign])
        .await
        .ended(1)
        .told("not-permitted");
}

#[tokio::test]
async fn the_schema_is_one_and_the_example_fits_it() {
    let house = House::new();
    let schema = run(&house, ["schema"]).await.ended(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    run(&house, ["init"]).await.ended(0);
    let started = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    for text in [invoices::CONFIG, &started] {
        let value: serde_json::Value = toml::from_str(text).unwrap();
        let faults: Vec<String> = schema
            .iter_errors(&value)
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
    let wrong: serde_json::Value =
        toml::from_str(&invoices::CONFIG.replace("class = \"read\"", "class = \"reed\"")).unwrap();
    assert!(!schema.is_valid(&wrong));
}

#[tokio::test]
async fn the_schema_of_policies_knows_the_tools_of_the_configuration() {
    let example = Example::start().await;
    let said = run(&example.house, ["schema", "--policy"]).await.ended(0);
    for text in [
        "billing_getInvoiceStatus",
        "InvoiceExport",
        "amount_minor",
        "member",
    ] {
        assert!(said.out.contains(text), "no {text} in:\n{}", said.out);
    }
    assert!(
        !said.out.contains("billing_listMembers"),
        "what is held is no action"
    );
}

#[tokio::test]
async fn there_is_a_completion_script_for_every_shell() {
    let house = House::new();
    let mut scripts = Vec::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = run(&house, ["completions", shell]).await.ended(0);
        for word in ["demo", "explain", "revoke", "offline"] {
            assert!(said.out.contains(word), "{shell} has no {word}");
        }
        scripts.push(said.out);
    }
    scripts.sort();
    scripts.dedup();
    assert_eq!(scripts.len(), 5);
}

#[tokio::test]
async fn there_is_a_page_of_the_manual_for_every_command() {
    let house = House::new();
    run(&house, ["man", "pages"]).await.ended(0);
    let found: Vec<String> = everything_in(&house)
        .into_iter()
        .filter_map(|path| Some(path.rsplit_once("/pages/")?.1.strip_suffix(".1")?.to_owned()))
        .collect();
    for command in [
        "tollhouse",
        "tollhouse-audit",
        "tollhouse-audit-export",
        "tollhouse-audit-show",
        "tollhouse-audit-tail",
        "tollhouse-audit-verify",
        "tollhouse-call",
        "tollhouse-check",
        "tollhouse-completions",
        "tollhouse-demo",
        "tollhouse-explain",
        "tollhouse-init",
        "tollhouse-keys",
        "tollhouse-keys-add",
        "tollhouse-keys-list",
        "tollhouse-keys-revoke",
        "tollhouse-man",
        "tollhouse-schema",
        "tollhouse-serve",
        "tollhouse-tools",
    ] {
        assert!(
            found.iter().any(|page| page == command),
            "no page of {command} in {found:?}"
        );
        let page = std::fs::read_to_string(house.path(&format!("pages/{command}.1"))).unwrap();
        assert!(
            page.contains(".TH ") && page.contains(".SH SYNOPSIS"),
            "{command}"
        );
    }
    house.write("taken", "a file");
    run(&house, ["man", "taken"])
        .await
        .ended(66)
        .told("`taken` cannot be written");
}
