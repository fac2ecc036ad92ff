//! The way out: where a call may go, what comes back, and how often. Connections and requests are counted by whoever
//! would have received them.

use std::fmt::Write as _;

use e2e::client::Mcp;
use e2e::house::{Gate, House, text};
use e2e::ledger::Entries;
use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use e2e::service::{Service, json as json_answer};
use e2e::tls::Authority;
use http::Method;
use serde_json::{Value, json};

/// A running gate, with ada in front of it.
struct Way {
    house: House,
    gate: Gate,
    ada: Mcp,
}

impl Way {
    async fn of(house: House) -> Self {
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let ada = Mcp::modern(&gate.url, &key);
        Self { house, gate, ada }
    }

    async fn to(url: &str) -> Self {
        Self::of(orders::house(url)).await
    }

    async fn read(&self) -> Value {
        self.ada.call("orders_read", json!({"id":"o-1"})).await
    }

    /// The newest outcome.
    async fn outcome(&self) -> Value {
        outcomes(&self.house.ledger().await).pop().unwrap()
    }

    async fn close(self) {
        let (code, log) = self.gate.close().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

fn outcomes(ledger: &Entries) -> Vec<Value> {
    ledger.of_kind("outcome").into_iter().cloned().collect()
}

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

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

/// A service that sends `/orders/o-1` elsewhere.
async fn redirecting(status: u16, to: String) -> Service {
    Service::start(move |arrived| {
        if arrived.target.starts_with("/orders/o-1") {
            axum::response::Response::builder()
                .status(status)
                .header("location", &to)
                .body(axum::body::Body::empty())
                .unwrap()
        } else {
            json_answer(200, &orders::order())
        }
    })
    .await
}

const SAME_ORIGIN: (&str, &str) = (
    "destination = \"env:ORDERS_URL\"",
    "destination = \"env:ORDERS_URL\"\nredirects = \"same-origin\"",
);

#[tokio::test]
async fn a_redirect_is_not_followed_unless_it_was_declared() {
    for status in [301, 302, 303, 307, 308] {
        let service = redirecting(status, "/elsewhere".to_owned()).await;
        let way = Way::to(&service.url()).await;
        let result = way.read().await;
        assert_eq!(result["isError"], true, "{status}: {result}");
        assert!(!said(&result).contains("elsewhere"), "{status}: {result}");
        assert_eq!(service.count(), 1, "{status}");
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "result-invalid", "{status}");
        assert_eq!(outcome["status"], status);
        assert_eq!(outcome["upstream_requests"], 1, "{status}");
        way.close().await;
    }
}

#[tokio::test]
async fn a_declared_redirect_leads_to_the_same_origin_and_every_request_of_it_is_counted() {
    let service = redirecting(307, "/elsewhere?x=1".to_owned()).await;
    let house = orders::house(&service.url()).with_change("tollhouse.toml", SAME_ORIGIN.0, SAME_ORIGIN.1);
    let way = Way::of(house).await;
    let result = way.read().await;
    assert_eq!(result["structuredContent"], orders::order(), "{result}");
    let targets: Vec<String> = service.arrived().into_iter().map(|one| one.target).collect();
    assert_eq!(targets, ["/orders/o-1", "/elsewhere?x=1"]);
    assert_eq!(way.outcome().await["upstream_requests"], 2);

    // A call that changes state is not repeated elsewhere, declared or not.
    for (tool, arguments) in [
        ("orders_note", json!({"id":"o-1","text":"x"})),
        ("orders_drop", json!({"id":"o-1"})),
    ] {
        let before = service.count();
        let result = way.ada.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(service.count() - before, 1, "{tool}");
        assert_eq!(way.outcome().await["upstream_requests"], 1, "{tool}");
    }
    way.close().await;
}

#[tokio::test]
async fn a_declared_redirect_that_leads_round_in_circles_ends() {
    let service = redirecting(302, "/orders/o-1".to_owned()).await;
    let house = orders::house(&service.url()).with_change("tollhouse.toml", SAME_ORIGIN.0, SAME_ORIGIN.1);
    let way = Way::of(house).await;
    let result = way.read().await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(service.count(), 4, "the request and three redirects");
    let outcome = way.outcome().await;
    assert_eq!(outcome["upstream_requests"], 4, "{outcome}");
    assert_eq!(outcome["refusal"], "result-invalid", "{outcome}");
    way.close().await;
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_never_followed() {
    let elsewhere = Raw::start(|_| Act::Say(answer("200 OK", "", "{}"))).await;
    let port = elsewhere.address.port();
    for to in [
        format!("http://127.0.0.1:{port}/orders/o-1"),
        format!("http://localhost:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("\\\\127.0.0.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://127.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
    ] {
        let service = redirecting(302, to.clone()).await;
        let house = orders::house(&service.url()).with_change("tollhouse.toml", SAME_ORIGIN.0, SAME_ORIGIN.1);
        let way = Way::of(house).await;
        let result = way.read().await;
        assert_eq!(result["isError"], true, "{to}: {result}");
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "result-invalid", "{to}: {outcome}");
        assert_eq!(outcome["upstream_requests"], 1, "{to}: {outcome}");
        assert_eq!(service.count(), 1, "{to}");
        way.close().await;
    }
    assert_eq!(elsewhere.connections(), 0);
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

/// An answer of a service, and what must come of it.
struct Case {
    what: &'static str,
    act: Act,
    /// Code of the refusal, `None` where the answer goes out, as a result or as an error that the model reads.
    refusal: Option<&'static str>,
    state: &'static str,
    /// What the agent reads of it, among other words.
    reads: &'static str,
}

fn case(
    what: &'static str,
    act: Act,
    refusal: &'static str,
    state: &'static str,
    reads: &'static str,
) -> Case {
    Case {
        what,
        act,
        refusal: (!refusal.is_empty()).then_some(refusal),
        state,
        reads,
    }
}

const JSON: &str = "content-type: application/json\r\n";
const WITHHELD: &str = "the answer of the service failed a check and was withheld";
const BROKE: &str = "the connection to the service behind this tool broke; whether it acted is unknown";
const LATE: &str = "the service behind this tool did not answer in time; whether it acted is unknown";

/// Something that no agent may ever read.
const INNARDS: &str = "INNARDS-OF-THE-SERVICE";

fn cases() -> Vec<Case> {
    let say = |status: &str, headers: &str, body: &str| Act::SayAndClose(answer(status, headers, body));
    let bytes = |text: String| Act::SayAndClose(text.into_bytes());
    let problem = "content-type: application/problem+json\r\n";
    let trace =
        format!("{{\"message\":\"TypeError: {INNARDS}\\n    at Object.<anonymous> (/srv/app.js:1:1)\"}}");
    let fields = format!("{{\"title\":\"no such order\",\"debug\":\"{INNARDS}\",\"stack\":\"{INNARDS}\"}}");
    let html = format!("<html>{INNARDS}</html>");
    let deep = format!("{{\"id\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let mut not_utf8 = answer("200 OK", JSON, "{\"id\":\"??\"}");
    let at = not_utf8.len() - 4;
    not_utf8[at] = 0xff;
    vec![
        // What must go through.
        case(
            "an answer",
            say("200 OK", JSON, "{\"id\":\"o-1\"}"),
            "",
            "done",
            "\"id\":\"o-1\"",
        ),
        case(
            "hints before the answer",
            bytes(format!(
                "HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 200 OK\r\n{JSON}content-length: 12\r\n\r\n{{\"id\":\"o-1\"}}"
            )),
            "",
            "done",
            "\"id\":\"o-1\"",
        ),
        // Errors of the service, in words that a model can act on.
        case(
            "a problem document",
            say("404 Not Found", problem, &fields),
            "",
            "failed",
            "the service answered 404 Not Found: no such order",
        ),
        case(
            "a refusal",
            say("403 Forbidden", JSON, "{\"error\":\"not yours\"}"),
            "",
            "failed",
            "the service answered 403 Forbidden: not yours",
        ),
        case(
            "our credential is refused",
            say("401 Unauthorized", "www-authenticate: Basic\r\n", ""),
            "",
            "failed",
            "the service answered 401 Unauthorized",
        ),
        case(
            "too many requests",
            say("429 Too Many Requests", "retry-after: 1\r\n", ""),
            "",
            "failed",
            "429 Too Many Requests",
        ),
        case(
            "a stack trace",
            say("500 Internal Server Error", JSON, &trace),
            "",
            "failed",
            "the service answered 500 Internal Server Error",
        ),
        case(
            "a page",
            say("502 Bad Gateway", "content-type: text/html\r\n", &html),
            "",
            "failed",
            "the service answered 502 Bad Gateway",
        ),
        case(
            "a status of nobody",
            say("599 Whatever", JSON, "{}"),
            "",
            "failed",
            "the service answered 599",
        ),
        case(
            "another protocol",
            say(
                "101 Switching Protocols",
                "upgrade: x\r\nconnection: upgrade\r\n",
                "",
            ),
            "",
            "failed",
            "",
        ),
        // Answers that are not what the document promises.
        case(
            "a page instead of JSON",
            say("200 OK", "content-type: text/html\r\n", &html),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "no media type",
            say("200 OK", "", "{\"id\":\"o-1\"}"),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "no JSON",
            say("200 OK", JSON, INNARDS),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "half of JSON",
            say("200 OK", JSON, "{\"id\":\"o-1"),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "a key that stands twice",
            say(
                "200 OK",
                JSON,
                "{\"id\":\"o-1\",\"id\":\"INNARDS-OF-THE-SERVICE\"}",
            ),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "deep JSON",
            say("200 OK", JSON, &deep),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "not UTF-8",
            Act::SayAndClose(not_utf8),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "a number beyond all bounds",
            say(
                "200 OK",
                JSON,
                "{\"id\":\"o-1\",\"total\":123456789012345678901234567890}",
            ),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "another type",
            say("200 OK", JSON, "{\"id\":7,\"note\":\"INNARDS-OF-THE-SERVICE\"}"),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "a field less",
            say("200 OK", JSON, "{\"note\":\"INNARDS-OF-THE-SERVICE\"}"),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "a list",
            say("200 OK", JSON, "[\"INNARDS-OF-THE-SERVICE\"]"),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "nothing",
            say("200 OK", JSON, ""),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "no content",
            say("204 No Content", "", ""),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        case(
            "not modified",
            say("304 Not Modified", "", ""),
            "result-invalid",
            "failed",
            WITHHELD,
        ),
        case(
            "several choices",
            say("300 Multiple Choices", JSON, "{}"),
            "result-invalid",
            "failed",
            WITHHELD,
        ),
        case(
            "compressed without being asked",
            say(
                "200 OK",
                "content-type: application/json\r\ncontent-encoding: gzip\r\n",
                "\u{1f}\u{8b}",
            ),
            "result-invalid",
            "done",
            WITHHELD,
        ),
        // Answers that do not end, or not in time.
        case(
            "a long answer",
            say("200 OK", JSON, &format!("{{\"id\":\"{}\"}}", "x".repeat(5_000))),
            "result-invalid",
            "unknown",
            WITHHELD,
        ),
        case(
            "an endless answer",
            Act::SayForEver(
                format!(
                    "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n400\r\n{}\r\n",
                    "x".repeat(0x400)
                )
                .into_bytes(),
            ),
            "",
            "unknown",
            "",
        ),
        case(
            "a long head",
            bytes(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(20_000))),
            "result-invalid",
            "unknown",
            WITHHELD,
        ),
        case(
            "an endless head",
            Act::SayForEver(b"HTTP/1.1 200 OK\r\n".to_vec()),
            "",
            "unknown",
            "",
        ),
        case(
            "silence",
            Act::SayAndHang(Vec::new()),
            "upstream-timeout",
            "unknown",
            LATE,
        ),
        case(
            "half a head",
            Act::SayAndHang(b"HTTP/1.1 200 OK\r\n".to_vec()),
            "upstream-timeout",
            "unknown",
            LATE,
        ),
        case(
            "half a body",
            Act::SayAndHang(format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 100\r\n\r\n{{").into_bytes()),
            "upstream-timeout",
            "unknown",
            LATE,
        ),
        // Connections that break.
        case("a reset", Act::Reset, "upstream-broken", "unknown", BROKE),
        case(
            "an end",
            Act::SayAndClose(Vec::new()),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
        case(
            "an end in the body",
            bytes(format!(
                "HTTP/1.1 200 OK\r\n{JSON}content-length: 100\r\n\r\n{{\"id\":"
            )),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
        case(
            "an end in a chunk",
            bytes(format!(
                "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n64\r\n{{\"id\":"
            )),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
        case(
            "a chunk of no length",
            bytes(format!(
                "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\nzz\r\n"
            )),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
        case(
            "two lengths",
            bytes(format!(
                "HTTP/1.1 200 OK\r\n{JSON}content-length: 2\r\ncontent-length: 12\r\n\r\n{{\"id\":\"o-1\"}}"
            )),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
        case(
            "not HTTP",
            bytes(format!("{INNARDS}\r\n\r\n")),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
        case(
            "another version",
            bytes("HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned()),
            "upstream-broken",
            "unknown",
            BROKE,
        ),
    ]
}

#[tokio::test]
async fn whatever_a_service_answers_the_agent_reads_a_result_or_a_clear_no_and_the_ledger_knows() {
    let mut checks = tokio::task::JoinSet::new();
    // One service per case and one gate over all of them.
    let mut services = Vec::new();
    let mut config = orders::CONFIG
        .split("[upstream.orders]")
        .next()
        .unwrap()
        .to_owned();
    let mut policy = String::new();
    config.insert_str(
        0,
        "limits = { upstream_body_bytes_max = \"4KiB\", upstream_headers_bytes_max = \"8KiB\" }\n",
    );
    for (index, case) in cases().into_iter().enumerate() {
        let act = case.act.clone();
        let raw = Raw::start(move |_| act.clone()).await;
        write!(
            config,
            "\n[upstream.u{index}]\nopenapi = \"orders.yaml\"\ndestination = \"{}\"\nnetwork = {{ allow = [\"127.0.0.1\"] }}\n\
             timeout = \"{}\"\n\
             [upstream.u{index}.tool.read]\noperation = \"readOrder\"\nclass = \"read\"\n\
             resource = {{ type = \"Order\", id = \"$.id\" }}\nowner = {{ source = \"owners\" }}\n",
            raw.url(),
            if case.refusal == Some("upstream-timeout") { "2s" } else { "30s" },
        )
        .unwrap();
        writeln!(
            policy,
            "@id(\"r{index}\") permit (principal, action == Action::\"u{index}_read\", resource);"
        )
        .unwrap();
        services.push((case, raw));
    }
    let house = House::new()
        .with_file("tollhouse.toml", config)
        .with_file("orders.yaml", orders::DOCUMENT)
        .with_file("owners.json", orders::OWNERS)
        .with_file("policy/all.cedar", policy);
    let way = Way::of(house).await;
    for (index, (case, raw)) in services.into_iter().enumerate() {
        let ada = way.ada.clone();
        checks.spawn(async move {
            let result = ada.call(&format!("u{index}_read"), json!({"id":"o-1"})).await;
            (index, case, raw, result)
        });
    }
    let answered = checks.join_all().await;
    let ledger = way.house.ledger().await;
    let outcomes = outcomes(&ledger);
    assert_eq!(outcomes.len(), answered.len());
    let mut wrong = Vec::new();
    for (index, case, raw, result) in answered {
        let tool = format!("u{index}_read");
        let outcome = outcomes.iter().find(|outcome| outcome["tool"] == tool).unwrap();
        let is_error = case.refusal.is_some() || case.state != "done";
        let good = result.get("isError").is_some_and(|value| *value == true) == is_error
            && said(&result).contains(case.reads)
            && !result.to_string().contains(INNARDS)
            && (result.get("structuredContent").is_some() != is_error)
            && case.refusal.is_none_or(|code| outcome["refusal"] == code)
            && outcome["state"] == case.state
            && outcome["upstream_requests"] == 1
            && raw.requests() == 1;
        if !good {
            wrong.push(format!(
                "{}: {} requests\n  {result}\n  {outcome}",
                case.what,
                raw.requests()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!way.gate.log().contains(INNARDS), "{}", way.gate.log());
    way.close().await;
}

#[tokio::test]
async fn a_write_whose_connection_breaks_is_not_sent_again_and_is_unknown() {
    let broken = |act: Act| Raw::start(move |_| act.clone());
    let half = b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{".to_vec();
    for (what, act) in [
        ("a reset", Act::Reset),
        ("an end", Act::SayAndClose(Vec::new())),
        ("an end in the answer", Act::SayAndClose(half)),
    ] {
        for (tool, arguments) in [
            ("orders_note", json!({"id":"o-1","text":"x"})),
            ("orders_drop", json!({"id":"o-1"})),
        ] {
            let service = broken(act.clone()).await;
            let way = Way::to(&service.url()).await;
            let result = way.ada.call(tool, arguments).await;
            assert_eq!(said(&result), BROKE, "{what} {tool}: {result}");
            let outcome = way.outcome().await;
            assert_eq!(outcome["state"], "unknown", "{what} {tool}");
            assert_eq!(outcome["refusal"], "upstream-broken", "{what} {tool}");
            assert_eq!(outcome["upstream_requests"], 1, "{what} {tool}");
            way.close().await;
            assert_eq!(service.requests(), 1, "{what} {tool}");
        }
    }
}

#[tokio::test]
async fn a_write_on_a_connection_that_was_kept_and_just_ended_is_not_sent_twice() {
    // The first request is answered and its connection kept; the second one is read, and the connection ends.
    let service = Raw::start(|number| match number {
        0 => Act::Say(answer("201 Created", JSON, "{\"note\":\"n\"}")),
        1 => Act::Reset,
        _ => Act::Say(answer("201 Created", JSON, "{\"note\":\"again\"}")),
    })
    .await;
    let way = Way::to(&service.url()).await;
    let note = json!({"id":"o-1","text":"x"});
    let first = way.ada.call("orders_note", note.clone()).await;
    assert_eq!(first["structuredContent"]["note"], "n", "{first}");
    let second = way.ada.call("orders_note", note).await;
    assert_eq!(said(&second), BROKE, "{second}");
    assert_eq!(way.outcome().await["state"], "unknown");
    way.close().await;
    assert_eq!(
        (service.requests(), service.connections()),
        (2, 1),
        "on one connection, and no more"
    );
}

/// A house whose reading tool is tried again.
fn retrying(url: &str, retry: &str) -> House {
    orders::house(url).with_change(
        "tollhouse.toml",
        "[upstream.orders.tool.read]\n",
        &format!("[upstream.orders.tool.read]\nretry = {retry}\n"),
    )
}

#[tokio::test]
async fn a_read_is_tried_again_as_its_reviewer_wrote_and_never_more_often() {
    let busy = || answer("503 Service Unavailable", "", "");
    let good = || answer("200 OK", JSON, "{\"id\":\"o-1\"}");
    let retry = "{ attempts = 3, on = [503] }";
    for (what, retry, script, requests, reads) in [
        ("good at once", retry, vec![good()], 1, "o-1"),
        (
            "good at the third try",
            retry,
            vec![busy(), busy(), good()],
            3,
            "o-1",
        ),
        (
            "never good",
            retry,
            vec![busy(), busy(), busy(), good()],
            3,
            "503",
        ),
        (
            "no retry configured",
            "{ attempts = 1, on = [503] }",
            vec![busy(), good()],
            1,
            "503",
        ),
        (
            "a status that is not listed",
            retry,
            vec![answer("502 Bad Gateway", "", ""), good()],
            1,
            "502",
        ),
        (
            "a fault of the caller",
            retry,
            vec![answer("404 Not Found", "", ""), good()],
            1,
            "404",
        ),
        (
            "broken after it was sent",
            retry,
            vec![Vec::new(), good()],
            1,
            "whether it acted is unknown",
        ),
        (
            "told to wait longer than there is time",
            retry,
            vec![
                answer("503 Service Unavailable", "retry-after: 3600\r\n", ""),
                good(),
            ],
            1,
            "503",
        ),
    ] {
        let service = Raw::start(move |number| match script.get(number) {
            Some(bytes) if bytes.is_empty() => Act::Reset,
            Some(bytes) => Act::Say(bytes.clone()),
            None => Act::Reset,
        })
        .await;
        let way = Way::of(retrying(&service.url(), retry)).await;
        let result = way.read().await;
        assert!(said(&result).contains(reads), "{what}: {result}");
        assert_eq!(service.requests(), requests, "{what}");
        assert_eq!(way.outcome().await["upstream_requests"], requests, "{what}");
        way.close().await;
    }
}

#[tokio::test]
async fn a_read_waits_as_long_as_the_service_asks_before_it_tries_again() {
    let service = Raw::start(|number| match number {
        0 => Act::Say(answer("503 Service Unavailable", "retry-after: 2\r\n", "")),
        _ => Act::Say(answer("200 OK", JSON, "{\"id\":\"o-1\"}")),
    })
    .await;
    let way = Way::of(retrying(&service.url(), "{ attempts = 2, on = [503] }")).await;
    let began = std::time::Instant::now();
    let result = way.read().await;
    assert_eq!(result["structuredContent"]["id"], "o-1", "{result}");
    assert!(began.elapsed().as_millis() >= 2_000, "{:?}", began.elapsed());
    assert_eq!(service.requests(), 2);
    way.close().await;
}

#[tokio::test]
async fn a_service_that_is_not_there_got_nothing_and_the_ledger_says_so() {
    let port = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        taken.local_addr().unwrap().port()
    };
    let way = Way::of(retrying(
        &format!("http://127.0.0.1:{port}"),
        "{ attempts = 2, on = [503] }",
    ))
    .await;
    for (tool, arguments) in [
        ("orders_read", json!({"id":"o-1"})),
        ("orders_note", json!({"id":"o-1","text":"x"})),
    ] {
        let result = way.ada.call(tool, arguments).await;
        assert_eq!(
            said(&result),
            "the service behind this tool could not be reached; nothing was sent",
            "{result}"
        );
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "upstream-unreachable");
        assert_eq!(outcome["state"], "failed");
        assert_eq!(outcome["upstream_requests"], 0);
    }
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
