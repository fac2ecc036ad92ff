//! `tollhouse approve`: nothing is started that a person has not looked at, exactly as it is.

use e2e::house::House;
use e2e::said::run;
use serde_json::json;

fn configuration(more: &str) -> String {
    format!(
        "[upstream.files]\ncommand = [\"./server\", \"--root\", \"a b\"]\nenv = {{ TOKEN = \"env:FILES\" }}\n{more}"
    )
}

fn house(more: &str) -> House {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new()
        .with_file("tollhouse.toml", configuration(more))
        .with_file("policy/rules.cedar", "")
        .with_file("server", "#!/bin/sh\ntouch started\n")
        .with_variable("FILES", "hunter2");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(house.path("server"), runs).unwrap();
    house
}

const REFUSED: &str = "tollhouse.toml:2:1: upstream.files.command: nobody approved what this starts, or it has changed \
                       since; look at it and approve it with `tollhouse approve files`";

#[tokio::test]
async fn a_command_runs_only_after_exactly_it_was_approved() {
    let house = house("");
    for command in ["check", "serve"] {
        run(&house, [command]).await.ended(78).told(REFUSED);
    }
    // To look is not to approve.
    let shown = run(&house, ["approve", "files", "--show"]).await.ended(0);
    let shown = shown
        .printed("arguments   \"--root\" \"a b\"")
        .printed("variables   \"TOKEN\"");
    let shown = shown.printed("sandbox     none: it may do whatever its user may");
    assert!(!format!("{}{}", shown.out, shown.err).contains("hunter2"));
    run(&house, ["check"]).await.ended(78).told(REFUSED);

    let approved = run(&house, ["approve", "files", "--note", "Grace"])
        .await
        .ended(0);
    approved.told("approved; whatever changes above needs a new approval");
    let again = run(&house, ["approve", "files", "--json"]).await.ended(0).json();
    assert_eq!(again["command"]["arguments"], json!(["--root", "a b"]));
    assert!(again["approved"].is_string(), "{again}");
    let said = run(&house, ["check", "--offline"]).await;
    assert!(!said.err.contains("nobody approved"), "{}", said.err);

    // A changed command is another one, and the first one again is approved still.
    for more in [
        "pass_env = [\"HTTPS_PROXY\"]",
        "sandbox = { network = true }",
        "cwd = \"policy\"",
    ] {
        std::fs::write(house.path("tollhouse.toml"), configuration(more)).unwrap();
        run(&house, ["check"]).await.ended(78).told(REFUSED);
    }
    std::fs::write(house.path("tollhouse.toml"), configuration("")).unwrap();
    let said = run(&house, ["check", "--offline"]).await;
    assert!(!said.err.contains("nobody approved"), "{}", said.err);

    run(&house, ["approve", "files", "--revoke"]).await.ended(0);
    run(&house, ["check"]).await.ended(78).told(REFUSED);
    run(&house, ["approve", "files", "--revoke"]).await.ended(66);
    assert!(!house.path("started").exists(), "nothing was started so far");
    run(&house, ["approve", "files"]).await.ended(0);
    run(&house, ["check"]).await;
    assert!(
        house.path("started").exists(),
        "what is approved is started where it is looked at"
    );
}

#[tokio::test]
async fn what_cannot_be_started_cannot_be_approved() {
    let house = house("");
    run(&house, ["approve", "notes"])
        .await
        .ended(66)
        .told("there is no server `notes` that is started");
    std::fs::remove_file(house.path("server")).unwrap();
    for words in [["approve", "files"].as_slice(), &["check"], &["serve"]] {
        run(&house, words)
            .await
            .ended(78)
            .told("is no program that can be run");
    }
}
