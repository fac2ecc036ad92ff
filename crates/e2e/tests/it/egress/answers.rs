//! Whatever a service can answer, and what becomes of it.

use std::fmt::Write as _;

use e2e::house::House;
use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use serde_json::json;

use super::{BROKE, JSON, Way, outcomes, said};

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

const WITHHELD: &str = "the answer of the service failed a check and was withheld";

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
    // LOG-04: nor does the log.
    assert!(!way.gate.log().contains(INNARDS), "{}", way.gate.log());
    way.close().await;
}
