//! The command: its ready line, its end, and what it says when it is called wrongly.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse-example-invoices"));
    command
        .env_remove("INVOICES_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

#[tokio::test]
async fn the_command_prints_one_ready_line_and_ends_well_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command()
        .args(["--listen", "127.0.0.1:0", "--database"])
        .arg(folder.path().join("invoices.db"))
        .env("INVOICES_TOKEN", "synthetic")
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.next_line().await.unwrap().unwrap();
    let address = ready.strip_prefix("listening on http://").unwrap();
    tokio::net::TcpStream::connect(address).await.unwrap();

    let id = child.id().unwrap().to_string();
    let told = Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    assert!(told.success());
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_wrong_call_of_the_command_says_what_is_wrong_and_ends_with_a_fault() {
    let cases: &[(&[&str], Option<&str>, &str)] = &[
        (&["--database", "x.db"], None, "`INVOICES_TOKEN` is not set"),
        (&[], Some("t"), "no database is named"),
        (&["--database"], Some("t"), "`--database` has no value"),
        (
            &["--listen", "here", "--database", "x.db"],
            Some("t"),
            "`here` is none",
        ),
        (&["--port", "1"], Some("t"), "`--port` is unknown"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (arguments, token, expected) in cases {
        let mut command = command();
        command.current_dir(folder.path()).args(*arguments);
        if let Some(token) = token {
            command.env("INVOICES_TOKEN", token);
        }
        let output = command.output().await.unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}
