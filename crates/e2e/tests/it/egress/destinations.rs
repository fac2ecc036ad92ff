//! Where a call may go: addresses, names and networks, proxies, certificates, and what a request carries.

use std::fmt::Write as _;

use e2e::house::{House, text};
use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use e2e::service::Service;
use e2e::tls::Authority;
use http::Method;
use serde_json::json;

use super::{Way, outcomes, said};

/// A configuration with one upstream per destination, and the tool `report` in each.
fn many(destinations: &[String], network: &str) -> (String, String) {
    let mut config = "store = \"sqlite:tollhouse.db\"\n[caller.ada]\ntenant = \"north\"\n".to_owned();
    let mut policy = String::new();
    for (index, destination) in destinations.iter().enumerate() {
        write!(
            config,
            "\n[upstream.u{index}]\nopenapi = \"orders.yaml\"\ndestination = \"{destination}\"\n{network}\
             [upstream.u{index}.tool.report]\noperation = \"report\"\nclass = \"read\"\n"
        )
        .unwrap();
        writeln!(
            policy,
            "@id(\"r{index}\") permit (principal, action == Action::\"u{index}_report\", resource);"
        )
        .unwrap();
    }
    (config, policy)
}

fn house_of_many(destinations: &[String], network: &str) -> House {
    let (config, policy) = many(destinations, network);
    House::new()
        .with_file("tollhouse.toml", config)
        .with_file("orders.yaml", orders::DOCUMENT)
        .with_file("policy/all.cedar", policy)
}

#[tokio::test]
async fn sec_04_an_address_inside_is_not_connected_to_unless_its_network_is_named() {
    let inside = Raw::start(|_| Act::Say(answer("200 OK", "content-type: text/plain\r\n", "inside"))).await;
    let port = inside.address.port();
    // The first ones all lead to the listener, by one road or another.
    let mut hosts: Vec<String> = [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
        "0.0.0.0",
        "[::]",
        "[::1]",
        "127.0.0.2",
    ]
    .map(|host| format!("http://{host}:{port}"))
    .into();
    // These stand for what there is inside of other networks.
    hosts.extend(
        [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.254",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.254",
            "169.254.169.254",
            "169.254.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "[fd00::1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "[fec0::1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::a00:1]",
            "[2002:7f00:1::1]",
            "[2002:a00:1::1]",
            "[2001:0:7f00:1::]",
            "[::127.0.0.1]",
            "[ff02::1]",
        ]
        .map(|host| format!("http://{host}:{port}")),
    );
    let way = Way::of(house_of_many(&hosts, "")).await;
    for (index, host) in hosts.iter().enumerate() {
        let result = way.ada.call(&format!("u{index}_report"), json!({})).await;
        assert_eq!(result["isError"], true, "{host}: {result}");
        assert_eq!(
            said(&result),
            "the service behind this tool could not be reached",
            "{host}"
        );
    }
    let outcomes = outcomes(&way.house.ledger().await);
    assert_eq!(outcomes.len(), hosts.len());
    for (outcome, host) in outcomes.iter().zip(&hosts) {
        assert_eq!(outcome["refusal"], "destination-refused", "{host}: {outcome}");
        assert_eq!(outcome["upstream_requests"], 0, "{host}");
        assert_eq!(outcome["state"], "failed", "{host}");
    }
    assert_eq!(inside.connections(), 0);
    // `check` tries, and says for each that it would not be reached.
    let checked = way.house.run(["check"]).await;
    assert_eq!(checked.status.code(), Some(69));
    let report = text(&checked.stdout);
    assert_eq!(report.matches("NOT reached").count(), hosts.len(), "{report}");
    assert_eq!(inside.connections(), 0);
    way.close().await;
}

#[tokio::test]
async fn sec_04_a_network_opens_what_it_holds_and_nothing_else() {
    let inside = Raw::start(|_| Act::Say(answer("200 OK", "content-type: text/plain\r\n", "inside"))).await;
    let port = inside.address.port();
    let hosts: Vec<String> = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]
        .map(|host| format!("http://{host}:{port}"))
        .into();
    let network = "network = { allow = [\"127.0.0.0/8\", \"::1/128\"] }\n";
    let way = Way::of(house_of_many(&hosts, network)).await;
    for (index, host) in hosts.iter().enumerate() {
        let result = way.ada.call(&format!("u{index}_report"), json!({})).await;
        assert_eq!(said(&result), "inside", "{host}: {result}");
    }
    way.close().await;
    let opened = inside.connections();

    // Another network than the one that is meant, a neighbour of the single address, and a network that holds the
    // metadata service without naming it.
    for (network, host) in [
        ("10.0.0.0/8", format!("127.0.0.1:{port}")),
        ("127.0.0.2/32", format!("127.0.0.1:{port}")),
        ("127.0.0.0/31", format!("127.0.0.2:{port}")),
        ("169.254.0.0/16", "169.254.169.254".to_owned()),
        ("127.0.0.0/8", format!("[64:ff9b::7f00:1]:{port}")),
    ] {
        let house = house_of_many(
            &[format!("http://{host}")],
            &format!("network = {{ allow = [\"{network}\"] }}\n"),
        );
        let way = Way::of(house).await;
        let result = way.ada.call("u0_report", json!({})).await;
        assert_eq!(result["isError"], true, "{network} {host}: {result}");
        assert_eq!(
            way.outcome().await["refusal"],
            "destination-refused",
            "{network} {host}"
        );
        way.close().await;
    }
    assert_eq!(inside.connections(), opened);
}

#[tokio::test]
async fn an_address_in_an_odd_spelling_is_a_fault_of_the_configuration_with_its_line() {
    let spellings = [
        "http://2130706433",
        "http://0x7f000001",
        "http://0x7f.0.0.1",
        "http://017700000001",
        "http://0177.0.0.1",
        "http://127.1",
        "http://127.0.1",
        "http://127.0.0.01",
        "http://127.0.0.1.",
        "http://localhost.",
        "http://0x7f.1:8080/base",
        "http://１２７.0.0.1",
        "http://127。0。0。1",
        "http://0",
        "http://00000300.0250.0.1",
        "http://[::ffff:127.0.0.1%25lo]",
    ]
    .map(str::to_owned);
    let house = house_of_many(&spellings, "network = { allow = [\"127.0.0.0/8\"] }\n");
    let output = house.run(["check", "--offline"]).await;
    assert_eq!(output.status.code(), Some(78), "{}", text(&output.stdout));
    let report = text(&output.stderr);
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    for (index, spelling) in spellings.iter().enumerate() {
        let line = 1 + config
            .lines()
            .position(|line| line == format!("destination = \"{spelling}\""))
            .unwrap();
        let place = format!("tollhouse.toml:{line}:");
        let key = format!("upstream.u{index}.destination: ");
        assert!(
            report
                .lines()
                .any(|reported| reported.contains(&place) && reported.contains(&key)),
            "{spelling}: {report}"
        );
    }
    assert!(
        report.contains(&format!("{} faults; nothing was started", spellings.len())),
        "{report}"
    );
    // The same faults stop the gate before it listens.
    assert_eq!(house.run(["serve"]).await.status.code(), Some(78));
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_not_used() {
    let proxy = Raw::start(|_| Act::SayAndClose(answer("200 OK", "", "{}"))).await;
    let service = Service::start(orders::usual).await;
    let mut house = orders::house(&service.url());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        house = house
            .with_variable(name, proxy.url())
            .with_variable(&name.to_lowercase(), proxy.url());
    }
    let house = house.with_variable("NO_PROXY", "").with_variable("no_proxy", "");
    let way = Way::of(house).await;
    assert_eq!(way.read().await["structuredContent"], orders::order());
    let checked = way.house.run(["check"]).await;
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert_eq!(proxy.connections(), 0);
    assert!(service.count() >= 2);
    way.close().await;
}

#[tokio::test]
async fn sec_03_what_leaves_is_made_here_and_carries_nothing_of_the_callers() {
    let service = Service::start(orders::usual).await;
    let way = Way::to(&service.url()).await;
    let message = way.ada.request(
        1,
        "tools/call",
        json!({"name":"orders_note","arguments":{"id":"o-1","text":"x"}}),
    );
    let mut headers = way.ada.headers(&message);
    for (name, value) in [
        ("cookie", "session=callers"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-request-id", "chosen-by-the-caller"),
        ("x-api-key", "callers"),
        ("proxy-authorization", "Basic callers"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("baggage", "callers=1"),
    ] {
        headers.insert(name, value.to_owned());
    }
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let sent = way
        .ada
        .http
        .send(Method::POST, &way.gate.url, &headers, message.to_string())
        .await;
    assert_eq!(sent.status, 200);
    let arrived = service.arrived().pop().unwrap();
    let mut names: Vec<&str> = arrived.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "traceparent",
            "user-agent",
            "x-request-id"
        ]
    );
    let header = |name: &str| arrived.headers[name].to_str().unwrap();
    assert_eq!(header("authorization"), format!("Bearer {}", orders::CREDENTIAL));
    assert_eq!(header("host"), service.address.to_string());
    // What the service logs and what the ledger says can be laid side by side.
    let ledger = way.house.ledger().await;
    let intent = ledger.of_kind("intent")[0].clone();
    assert_eq!(intent["call"], header("x-request-id"));
    assert!(header("traceparent").starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
    assert_eq!(String::from_utf8_lossy(&arrived.body), r#"{"text":"x"}"#);
    way.close().await;
}

#[tokio::test]
async fn a_service_over_tls_shows_a_certificate_of_a_known_authority_for_its_name() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let good = authority.server("localhost", &orders::order());
    let wrong_name = authority.server("elsewhere.example", &orders::order());
    let unknown = stranger.server("localhost", &orders::order());
    let ca = (
        "destination = \"env:ORDERS_URL\"\nnetwork = { allow = [\"127.0.0.1/32\"] }",
        "destination = \"env:ORDERS_URL\"\nnetwork = { allow = [\"127.0.0.0/8\", \"::1\"] }\ntls = { ca = \"ca.pem\" }",
    );
    let house =
        |port: u16| orders::house(&format!("https://localhost:{port}")).with_file("ca.pem", authority.pem());
    let way = Way::of(house(good.address.port()).with_change("tollhouse.toml", ca.0, ca.1)).await;
    assert_eq!(way.read().await["structuredContent"], orders::order());
    assert_eq!(good.requests(), 1);
    way.close().await;

    let without = ca.1.replace("\ntls = { ca = \"ca.pem\" }", "");
    for (what, server, change) in [
        ("another name", &wrong_name, ca.1),
        ("an authority that nobody knows", &unknown, ca.1),
        ("an authority that was not named", &good, without.as_str()),
    ] {
        let before = server.requests();
        let way = Way::of(house(server.address.port()).with_change("tollhouse.toml", ca.0, change)).await;
        let result = way.read().await;
        assert_eq!(
            said(&result),
            "the service behind this tool could not be reached; nothing was sent",
            "{what}: {result}"
        );
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "upstream-unreachable", "{what}");
        assert_eq!(outcome["upstream_requests"], 0, "{what}");
        assert_eq!(server.requests(), before, "{what}");
        let checked = way.house.run(["check"]).await;
        assert_eq!(checked.status.code(), Some(69), "{what}");
        way.close().await;
    }
}
