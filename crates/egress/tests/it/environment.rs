//! What the environment says must not matter, or must be said clearly. Each test runs itself again in a child process,
//! because a process cannot safely change its own environment.

use std::process::Command;

use egress::{Client, EgressFault};

use crate::server::{Act, Server, answer, client, get, options, soon};

const TARGET: &str = "EGRESS_TEST_TARGET";

/// Runs one test of this binary in a child with these variables, and fails with its output if it fails.
fn run_again(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_proxy_of_the_environment_is_used() {
    if let Ok(target) = std::env::var(TARGET) {
        let answer = client().send(get(&target), soon()).await.unwrap();
        assert_eq!(answer.read(5, soon()).await.unwrap(), "right");
        return;
    }
    let proxy = Server::start(|_| Act::Say(answer("wrong"))).await;
    let server = Server::start(|_| Act::Say(answer("right"))).await;
    let (through, target) = (proxy.url(""), server.url("/"));
    let variables = [
        ("HTTP_PROXY", through.as_str()),
        ("http_proxy", through.as_str()),
        ("HTTPS_PROXY", through.as_str()),
        ("https_proxy", through.as_str()),
        ("ALL_PROXY", through.as_str()),
        ("all_proxy", through.as_str()),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
        (TARGET, target.as_str()),
    ];
    tokio::task::block_in_place(|| run_again("environment::no_proxy_of_the_environment_is_used", &variables));
    assert_eq!((proxy.connections(), server.connections()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_without_roots_says_what_to_do_and_still_speaks_plain_text() {
    if let Ok(target) = std::env::var(TARGET) {
        let client = client();
        let advice = client.tls_fault().unwrap().to_owned();
        assert!(
            advice.contains("ca-certificates") && advice.contains("SSL_CERT_FILE"),
            "{advice}"
        );
        let fault = client
            .send(get(&target.replace("http:", "https:")), soon())
            .await
            .unwrap_err();
        assert!(
            matches!(&fault, EgressFault::Tls { why, .. } if *why == advice),
            "{fault:?}"
        );
        assert_eq!(client.requests(), 0);
        assert_eq!(client.send(get(&target), soon()).await.unwrap().status, 200);

        // A root of the operator's own is enough.
        let mut options = options();
        options.ca_pem = Some(crate::tls::Authority::new().pem().into_bytes());
        assert_eq!(Client::new(options).unwrap().tls_fault(), None);
        return;
    }
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let empty = tempfile::tempdir().unwrap();
    let file = empty.path().join("roots.pem");
    std::fs::write(&file, "").unwrap();
    let target = server.url("/");
    let variables = [
        ("SSL_CERT_FILE", file.to_str().unwrap()),
        ("SSL_CERT_DIR", empty.path().to_str().unwrap()),
        (TARGET, target.as_str()),
    ];
    tokio::task::block_in_place(|| {
        run_again(
            "environment::a_machine_without_roots_says_what_to_do_and_still_speaks_plain_text",
            &variables,
        );
    });
    assert_eq!(server.connections(), 1, "the plain-text request only");
}
