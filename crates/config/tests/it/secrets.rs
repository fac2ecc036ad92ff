//! No secret is in anything that can be shown: settings, faults, warnings.

use std::path::Path;

use config::load;

use crate::world::{CANARY, world};

const COMPLETE: &str = include_str!("complete.toml");

#[track_caller]
fn hides(shown: &str) {
    assert!(!shown.contains(CANARY), "{shown}");
}

#[test]
fn settings_and_warnings_show_no_secret() {
    let text = COMPLETE.replace(
        "\"postgres://tollhouse@db.internal/tollhouse\"",
        "\"env:DIRECTORY\"",
    );
    assert_ne!(text, COMPLETE);
    // A key set with symmetric keys is as secret as a password.
    let keys = format!("{{\"keys\":[{{\"k\":\"{CANARY}\"}}]}}");
    let world = world()
        .with_file("tollhouse.toml", text)
        .with_file("keys.json", keys);
    let loaded = load(Path::new("tollhouse.toml"), &world).unwrap();
    hides(&format!("{loaded:?}"));
    hides(&format!("{loaded:#?}"));
    // The secrets are in it: the test would find them if they were shown.
    assert!(format!("{:?}", loaded.settings.upstreams[0].credentials).contains("Bearer"));
}

#[test]
fn settings_and_warnings_show_no_secret_that_stands_in_the_file_in_clear() {
    let text = COMPLETE
        .replace(
            "danger_clear_text_credential = false",
            "danger_clear_text_credential = true",
        )
        .replace("env:BILLING_TOKEN", CANARY)
        .replace("file:password", CANARY)
        .replace(
            "postgres://tollhouse@db",
            &format!("postgres://tollhouse:{CANARY}@db"),
        );
    let text = text.replace(
        "FILES_TOKEN = \"env:CRM_KEY\"",
        &format!("FILES_TOKEN = \"{CANARY}\""),
    );
    assert_eq!(text.matches(CANARY).count(), 5);
    let loaded = load(
        Path::new("tollhouse.toml"),
        &world().with_file("tollhouse.toml", text),
    )
    .unwrap();
    hides(&format!("{loaded:?}"));
    hides(&serde_json::to_string(&loaded.warnings).unwrap());
}

#[test]
fn no_fault_shows_a_secret_wherever_it_stands_wrongly() {
    let upstream = "[upstream.api]\nopenapi = \"billing.yaml\"\ndestination = \"https://api.example.com\"\n";
    let values = [
        "CANARY",
        "CANARY with spaces",
        "env:CANARY-x",
        "file:binary",
        "https://u:CANARY@h.example",
        "https://h.example/?t=CANARY",
        "postgres://u:CANARY@h:x/db",
        "postgres://u:CANARY@h/db",
        "sqlite:?CANARY",
        "Bearer\\nCANARY",
    ];
    let places = [
        "credential = \"VALUE\"",
        "credential = [\"VALUE\"]",
        "credential = { bearer = \"VALUE\" }",
        "credential = { bearer = [\"VALUE\"] }",
        "credential = { bearer = { value = \"VALUE\" } }",
        "credential = { token = \"VALUE\" }",
        "credential = { basic = \"VALUE\" }",
        "credential = { basic = { username = \"u\", password = \"VALUE\" } }",
        "credential = { api_key = \"VALUE\" }",
        "credential = { api_key = { cookie = \"k\", value = \"VALUE\" } }",
        "credential = { oauth2 = { token_url = \"https://h.example/t\", client_id = \"c\", client_secret = \"VALUE\" } }",
        "credential = { oauth2 = { discovery = \"https://h.example/t\", client_id = \"c\", client_secret = [\"VALUE\"] } }",
        "credential = { mutual_tls = { certificate = \"ca.pem\", key = \"VALUE\" } }",
        "credential = { mutual_tls = \"VALUE\" }",
        "credentials = \"VALUE\"",
        "credentials = { x = \"VALUE\" }",
        "credentials = { x = { bearer = \"VALUE\" } }",
        "credential = { api_key = { header = \"X-K\", value = \"VALUE\" } }",
        "credential = { api_key = { query = \"k\", value = \"VALUE\", extra = \"VALUE\" } }",
        "headers = \"VALUE\"",
        "headers = { \"X-API-Key\" = \"VALUE\" }",
        "headers = { \"X-Env\" = [\"VALUE\"], \"X-Other\" = \"VALUE\\n\" }",
        "[source.d]\nsql = \"VALUE\"",
        "[source.d]\nsql = [\"VALUE\"]",
        "[source]\nd = \"VALUE\"",
        "[upstream]\nx = \"VALUE\"",
    ];
    let mut faulty = 0;
    for value in values {
        for place in places {
            for text in [
                format!("{upstream}{place}\n"),
                format!("store = \"{value}\"\n{upstream}"),
                format!("{upstream}{place}\nx = = \"{value}\"\n"),
            ] {
                let text = text.replace("VALUE", value).replace("CANARY", CANARY);
                if let Err(faults) = load(
                    Path::new("tollhouse.toml"),
                    &world().with_file("tollhouse.toml", text),
                ) {
                    faulty += 1;
                    hides(&format!("{faults:?}"));
                    hides(&faults.iter().map(ToString::to_string).collect::<String>());
                    hides(&serde_json::to_string(&faults).unwrap());
                }
            }
        }
    }
    assert!(faulty > 400, "{faulty}");
}

#[test]
fn no_fault_shows_what_a_variable_or_a_file_holds() {
    for reference in [
        "env:BILLING_TOKEN",
        "env:SPACE",
        "env:SPOKEN",
        "env:DIRECTORY",
        "file:password",
        "file:two-lines",
    ] {
        for line in ["listen = \"R\"", "public_url = \"R\"", "store = \"R\""] {
            let text = format!("{}\n[upstream.api]\nopenapi = \"billing.yaml\"\ndestination = \"R\"\ncredential = {{ basic = {{ username = \"R\", password = \"R\" }} }}\n", line).replace('R', reference);
            if let Err(faults) = load(
                Path::new("tollhouse.toml"),
                &world().with_file("tollhouse.toml", text),
            ) {
                hides(&format!("{faults:?}"));
            }
        }
    }
}
