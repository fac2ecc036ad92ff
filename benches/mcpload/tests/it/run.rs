//! `mcpload run`: what it counts, what it calls wrong, how it ends.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::process::Command;

use crate::server::{Wrong, serve};

struct Ran {
    code: Option<i32>,
    report: Value,
    stderr: String,
}

async fn run(address: SocketAddr, path: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpload"));
    command.args(["run", "--url", &format!("http://{address}{path}")]);
    for (name, value) in [("--warm-up", "0ms"), ("--measure", "30s")] {
        if !arguments.contains(&name) {
            command.args([name, value]);
        }
    }
    let output = command
        .args(arguments)
        .env("MCPLOAD_TEST_BEARER", "canary-77")
        .output()
        .await
        .unwrap();
    Ran {
        code: output.status.code(),
        report: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

const FACES: [(&str, &str); 3] = [
    ("/echo", "http-plain"),
    ("/mcp", "mcp-modern"),
    ("/mcp", "mcp-legacy"),
];

#[tokio::test]
async fn a_server_that_is_right_gives_as_many_verified_calls_as_were_asked_for() {
    let address = serve(Wrong::Never, None).await;
    for (path, face) in FACES {
        for concurrency in ["1", "7"] {
            let ran = run(
                address,
                path,
                &["--face", face, "--calls", "100", "--concurrency", concurrency],
            )
            .await;
            assert_eq!(ran.code, Some(0), "{face}: {}", ran.stderr);
            let report = &ran.report;
            assert_eq!(
                (&report["calls"], &report["verified"]),
                (&100.into(), &100.into())
            );
            assert_eq!(report["errors"], 0);
            assert_eq!(report["connections"].to_string(), concurrency);
            let latency = |name: &str| report["latency_us"][name].as_f64().unwrap();
            assert!(latency("p50") > 0.0 && latency("p50") <= latency("p99"));
            assert!(latency("p99") <= latency("max"));
        }
    }
}

#[tokio::test]
async fn each_way_to_be_wrong_is_counted_and_ends_with_1() {
    for (wrong, face, fault) in [
        (Wrong::Nonce, "http-plain", "Nonce"),
        (Wrong::Text, "http-plain", "Text"),
        (Wrong::Status, "http-plain", "Status(500)"),
        (Wrong::Silent, "http-plain", "Timeout"),
        (Wrong::Nonce, "mcp-modern", "Nonce"),
        (Wrong::Text, "mcp-modern", "Text"),
        (Wrong::Id, "mcp-modern", "Id"),
        (Wrong::Id, "mcp-legacy", "Id"),
        (Wrong::Status, "mcp-modern", "Status(500)"),
    ] {
        let path = if face == "http-plain" { "/echo" } else { "/mcp" };
        let address = serve(wrong, None).await;
        let arguments = ["--face", face, "--calls", "50", "--call-timeout", "300ms"];
        let ran = run(address, path, &arguments).await;
        assert_eq!(ran.code, Some(1), "{wrong:?} {face}");
        // A machine that stalls for longer than the timeout of a call may add a timeout of its own.
        let expected = ran.report["faults"][fault].as_u64().unwrap_or(0);
        assert!(expected >= 2, "{wrong:?} {face}: {}", ran.report);
        assert_eq!(ran.report["calls"], 50);
        let sum = ran.report["verified"].as_u64().unwrap() + ran.report["errors"].as_u64().unwrap();
        assert_eq!(sum, 50);
        // A wrong answer spoils no other: each of the rest was verified.
        let kinds: u64 = ran.report["faults"]
            .as_object()
            .unwrap()
            .values()
            .map(|n| n.as_u64().unwrap())
            .sum();
        assert_eq!(kinds, ran.report["errors"].as_u64().unwrap());
        assert!(
            ran.report["faults"]
                .as_object()
                .unwrap()
                .keys()
                .all(|kind| kind == fault || kind == "Timeout")
        );
    }
}

#[tokio::test]
async fn a_fault_in_the_warm_up_counts_as_well() {
    let address = serve(Wrong::NonceOnce, None).await;
    let ran = run(address, "/echo", &["--warm-up", "30s", "--calls", "20"]).await;
    assert_eq!(ran.report["warm_up"]["errors"], 1);
    assert_eq!(
        (&ran.report["verified"], &ran.report["errors"]),
        (&20.into(), &0.into())
    );
    assert_eq!(ran.code, Some(1));
}

#[tokio::test]
async fn a_target_that_fails_all_the_time_is_left_alone_after_a_hundred_errors() {
    let address = serve(Wrong::Never, Some("another".to_owned())).await;
    let ran = run(address, "/echo", &["--calls", "100000", "--concurrency", "4"]).await;
    let errors = ran.report["errors"].as_u64().unwrap();
    assert!((100..104).contains(&errors), "{errors}");
    assert_eq!(ran.code, Some(1));
}

#[tokio::test]
async fn a_token_is_sent_and_shown_nowhere() {
    let address = serve(Wrong::Never, Some("canary-77".to_owned())).await;
    for (path, face) in FACES {
        let ran = run(
            address,
            path,
            &[
                "--face",
                face,
                "--calls",
                "5",
                "--bearer-env",
                "MCPLOAD_TEST_BEARER",
            ],
        )
        .await;
        assert_eq!(ran.code, Some(0), "{face}: {}", ran.stderr);
        assert!(!ran.report.to_string().contains("canary") && !ran.stderr.contains("canary"));
    }
    let without = run(address, "/echo", &["--calls", "5"]).await;
    assert_eq!(without.code, Some(1));
}

#[tokio::test]
async fn connections_that_the_target_closes_are_opened_again_and_counted() {
    let address = serve(Wrong::Closing, None).await;
    let ran = run(address, "/echo", &["--calls", "10"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.report);
    assert_eq!(ran.report["connections"], 10);
}

#[tokio::test]
async fn in_the_open_loop_a_stall_is_felt_by_every_call_that_was_due_meanwhile() {
    let address = serve(Wrong::StallOnce, None).await;
    let arguments = ["--rate", "200", "--measure", "1s", "--concurrency", "1"];
    let ran = run(address, "/echo", &arguments).await;
    assert_eq!(ran.code, Some(0), "{}", ran.report);
    assert_eq!(ran.report["verified"], 200);
    let p90 = |kind: &str| ran.report[kind]["p90"].as_f64().unwrap();
    // One call of 200 was slow to answer; a hundred others had to wait for it before they were even sent.
    assert!(p90("latency_us") > 200_000.0, "{}", ran.report);
    assert!(p90("service_us") < 100_000.0, "{}", ran.report);
}

#[tokio::test]
async fn a_rate_that_the_target_cannot_hold_is_no_success() {
    let address = serve(Wrong::Slow, None).await;
    let ran = run(address, "/echo", &["--rate", "200", "--measure", "200ms"]).await;
    let part = |name: &str| ran.report[name].as_u64().unwrap();
    assert_eq!(part("verified") + part("unsent"), 40, "{}", ran.report);
    assert!(part("unsent") > 20);
    assert_eq!(ran.code, Some(1));
}

#[tokio::test]
async fn a_watched_process_is_reported_and_one_that_does_not_exist_is_refused() {
    let address = serve(Wrong::Never, None).await;
    let me = std::process::id().to_string();
    let ran = run(address, "/echo", &["--calls", "200", "--watch-pid", &me]).await;
    let watched = &ran.report["watched"][0];
    assert_eq!(watched["pid"].to_string(), me);
    assert!(
        watched["rss_bytes"]["peak"].as_u64().unwrap() > 1_000_000,
        "{watched}"
    );
    let none = run(address, "/echo", &["--calls", "1", "--watch-pid", "4294967295"]).await;
    assert_ne!(none.code, Some(0));
    assert!(
        none.stderr.contains("there is no process `4294967295`"),
        "{}",
        none.stderr
    );
}

#[tokio::test]
async fn only_this_machine_can_be_a_target() {
    for url in [
        "http://192.0.2.1:80/",
        "http://example.com:80/",
        "https://127.0.0.1:1/",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_mcpload"))
            .args(["run", "--url", url])
            .output()
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{url}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn a_target_that_is_not_there_is_an_error_and_not_a_report() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let ran = run(free, "/echo", &["--calls", "1"]).await;
    assert_ne!(ran.code, Some(0));
    assert!(ran.report.is_null());
    assert!(ran.stderr.contains("cannot open a connection"), "{}", ran.stderr);
}
