//! Which connection is made: literals, names that change their meaning, mixed answers, dead addresses.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egress::{BoxFuture, Client, ClientOptions, EgressFault, Network, Resolve};

use crate::server::{Act, Server, answer, client, get, in_time, loopback, options, soon};

/// A resolver that says one prepared answer after the other, and the last one for ever.
pub(crate) struct Script {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Script {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let mut answers: Vec<Vec<IpAddr>> = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        answers.reverse();
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: AtomicUsize::new(0),
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Script {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop().unwrap()
        } else {
            answers.last().unwrap().clone()
        };
        Box::pin(async move { Ok(answer) })
    }
}

/// Only 127.0.0.2 may be used, so that 127.0.0.1 can play the forbidden address with a real server on it.
fn only_two() -> Network {
    Network::allowing(vec!["127.0.0.2/32".parse().unwrap()])
}

fn with_resolver(network: Network, resolver: &Arc<Script>) -> Client {
    // No idle connections: each request is a new connection.
    let options = ClientOptions {
        network,
        idle_max: 0,
        ..options()
    };
    Client::with_resolver(options, Arc::clone(resolver) as Arc<dyn Resolve>).unwrap()
}

/// A URL of the server under another name.
fn named(name: &str, server: &Server) -> String {
    format!("http://{name}:{}/", server.address.port())
}

#[tokio::test]
async fn an_address_in_the_url_is_judged_though_no_resolver_is_asked() {
    // The trap: HTTP clients parse such hosts themselves and never ask a filtering resolver.
    let server = Server::start(|_| Act::Say(answer("secret"))).await;
    let resolver = Script::new(&[&["127.0.0.1"]]);
    let client = with_resolver(Network::public(), &resolver);
    for host in [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[::7f00:1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
    ] {
        let fault = client.send(get(&named(host, &server)), soon()).await.unwrap_err();
        assert!(matches!(fault, EgressFault::Refused { .. }), "{host}: {fault:?}");
        assert!(!fault.sent());
    }
    assert_eq!(
        resolver.asked(),
        0,
        "a resolver alone would have let them through"
    );
    assert_eq!(server.connections(), 0);
    assert_eq!(client.requests(), 0);
    // The counter-check: the same server, where loopback is allowed.
    let answer = crate::server::client()
        .send(get(&server.url("/")), soon())
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn odd_spellings_of_an_address_are_refused_even_where_the_address_is_allowed() {
    let server = Server::start(|_| Act::Say(answer("secret"))).await;
    let resolver = Script::new(&[&["127.0.0.1"]]);
    let client = with_resolver(loopback(), &resolver);
    for host in [
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.0.01",
        "127.0.0.1.",
        "localhost.",
        "user@127.0.0.1",
        "user:hunter2@127.0.0.1",
    ] {
        let fault = client.send(get(&named(host, &server)), soon()).await.unwrap_err();
        assert!(matches!(fault, EgressFault::Request(_)), "{host}: {fault:?}");
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    }
    assert_eq!(
        (resolver.asked(), server.connections(), client.requests()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn a_name_is_judged_by_its_addresses() {
    let server = Server::start(|_| Act::Say(answer("secret"))).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["::ffff:127.0.0.1"],
    ] {
        let client = with_resolver(Network::public(), &Script::new(&[addresses]));
        let fault = client
            .send(get(&named("inside.example", &server)), soon())
            .await
            .unwrap_err();
        match fault {
            EgressFault::Refused { host, address, .. } => {
                assert_eq!(host, "inside.example");
                assert_eq!(address, addresses[0].parse::<IpAddr>().unwrap());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(client.requests(), 0);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_meaning_is_judged_at_each_connection() {
    let allowed = Server::start_on("127.0.0.2".parse().unwrap(), |_| Act::Say(answer("ok"))).await;
    let resolver = Script::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let client = with_resolver(only_two(), &resolver);
    let url = named("rebind.example", &allowed);
    assert_eq!(client.send(get(&url), soon()).await.unwrap().status, 200);
    // Asked once: what was judged is what was connected to. A second question could have had another answer.
    assert_eq!(resolver.asked(), 1);
    let fault = client.send(get(&url), soon()).await.unwrap_err();
    assert!(matches!(fault, EgressFault::Refused { .. }), "{fault:?}");
    assert_eq!(client.requests(), 1);
    assert_eq!(allowed.connections(), 1);
}

#[tokio::test]
async fn an_answer_that_mixes_good_and_bad_addresses_is_refused_whole() {
    let good = Server::start_on("127.0.0.2".parse().unwrap(), |_| Act::Say(answer("ok"))).await;
    for addresses in [
        &["127.0.0.2", "127.0.0.1"][..],
        &["127.0.0.1", "127.0.0.2"],
        &["127.0.0.2", "127.0.0.2", "10.0.0.1"],
        &["127.0.0.2", "::1"],
    ] {
        let client = with_resolver(only_two(), &Script::new(&[addresses]));
        let fault = client
            .send(get(&named("mixed.example", &good)), soon())
            .await
            .unwrap_err();
        assert!(
            matches!(fault, EgressFault::Refused { .. }),
            "{addresses:?}: {fault:?}"
        );
    }
    assert_eq!(good.connections(), 0);
}

/// Systems take a connection to no address in particular for one to themselves, so that the peer is not who was named.
#[tokio::test]
async fn who_is_at_the_other_end_is_judged_too() {
    let server = Server::start(|_| Act::Say(answer("secret"))).await;
    let options = ClientOptions {
        network: Network::allowing(vec!["0.0.0.0/8".parse().unwrap()]),
        ..options()
    };
    let client = Client::new(options).unwrap();
    let url = format!("http://0.0.0.0:{}/", server.address.port());
    let fault = client.send(get(&url), soon()).await.unwrap_err();
    match fault {
        EgressFault::Refused { host, address, .. } => {
            assert_eq!(host, "0.0.0.0");
            assert_eq!(address, server.address.ip());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(client.requests(), 0);
    assert!(server.heads().is_empty());
}

#[tokio::test]
async fn a_name_without_an_address_and_a_failing_resolver_are_a_no() {
    struct Failing;
    impl Resolve for Failing {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Err(io::Error::other("server failure")) })
        }
    }
    let nowhere = with_resolver(loopback(), &Script::new(&[&[]]));
    let failing = Client::with_resolver(options(), Arc::new(Failing)).unwrap();
    for client in [nowhere, failing] {
        let fault = client
            .send(get("http://nowhere.example/"), soon())
            .await
            .unwrap_err();
        assert!(
            matches!(&fault, EgressFault::Resolve { host, .. } if host == "nowhere.example"),
            "{fault:?}"
        );
        assert!(!fault.sent());
        assert_eq!(client.requests(), 0);
    }
}

#[tokio::test]
async fn the_systems_resolver_knows_this_machine() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let answer = client()
        .send(get(&named("localhost", &server)), soon())
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    let public = Client::new(ClientOptions {
        network: Network::public(),
        ..options()
    })
    .unwrap();
    let fault = public
        .send(get(&named("localhost", &server)), soon())
        .await
        .unwrap_err();
    assert!(matches!(fault, EgressFault::Refused { .. }), "{fault:?}");
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let server = Server::start_on("127.0.0.2".parse().unwrap(), |_| Act::Say(answer("ok"))).await;
    // Nothing listens on this port of 127.0.0.3.
    let client = with_resolver(loopback(), &Script::new(&[&["127.0.0.3", "127.0.0.2"]]));
    let answer = client
        .send(get(&named("two.example", &server)), soon())
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    let client = with_resolver(loopback(), &Script::new(&[&["127.0.0.3", "127.0.0.4"]]));
    let fault = client
        .send(get(&named("two.example", &server)), soon())
        .await
        .unwrap_err();
    assert!(matches!(fault, EgressFault::Connect { .. }), "{fault:?}");
    assert_eq!(client.requests(), 0);
}

#[tokio::test]
async fn an_address_that_swallows_packets_leaves_time_for_the_next() {
    let server = Server::start_on("127.0.0.2".parse().unwrap(), |_| Act::Say(answer("ok"))).await;
    let (_full, address) = crate::waiting::full_backlog("127.0.0.3", server.address.port()).await;
    assert_eq!(address.port(), server.address.port());
    let resolver = Script::new(&[&["127.0.0.3", "127.0.0.2"]]);
    let options = ClientOptions {
        connect_timeout: Duration::from_millis(600),
        ..options()
    };
    let client = Client::with_resolver(options, resolver).unwrap();
    let answer = in_time(client.send(get(&named("two.example", &server)), soon()))
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn an_open_connection_is_used_again() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let client = client();
    for n in 1..=5 {
        let answer = client.send(get(&server.url("/")), soon()).await.unwrap();
        assert_eq!(answer.read(2, soon()).await.unwrap(), "ok");
        assert_eq!(client.requests(), n);
        assert_eq!(client.clone().requests(), n, "clones count together");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn no_idle_connection_is_kept_where_none_may_be() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let client = Client::new(ClientOptions {
        idle_max: 0,
        ..options()
    })
    .unwrap();
    for _ in 0..3 {
        let answer = client.send(get(&server.url("/")), soon()).await.unwrap();
        answer.read(2, soon()).await.unwrap();
    }
    assert_eq!(server.connections(), 3);
}
