//! Answers of every kind: none, text, media, errors that a model can act on. And what each revision can carry of them.

use axum::body::Body;
use axum::response::Response;
use e2e::bench::Bench;
use e2e::client::Mcp;
use e2e::house::close;
use e2e::service::json as answer;
use serde_json::{Value, json};

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Answers, version: "1" }
paths:
  /record:
    get:
      operationId: record
      responses:
        "200":
          description: A record.
          content:
            application/json:
              schema: { type: object, required: [id], properties: { id: { type: string } } }
        "204": { description: Nothing yet. }
  /picture:
    get:
      operationId: picture
      responses:
        "200": { description: A picture., content: { image/png: {}, "audio/*": {}, application/pdf: {} } }
  /table:
    get:
      operationId: table
      responses:
        "200": { description: A table., content: { application/json: { schema: { type: object } }, text/csv: {} } }
"##;

fn of_type(media: &'static str, body: &'static [u8]) -> Response {
    Response::builder()
        .header("content-type", media)
        .body(Body::from(body))
        .unwrap()
}

fn status(code: u16) -> Response {
    Response::builder().status(code).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_success_without_a_body_is_told_where_the_document_lets_it_be_one() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool("record", "record", "")
        .tool("short", "record", "returns = { id = \"$.id\" }")
        .answering(|_| answer(200, &json!({"id": "a"})));
    for tool in ["record", "short"] {
        let said = bench.call(tool, json!({})).await.ended(0).json();
        assert_eq!(said["structuredContent"], json!({"id": "a"}), "{tool}");
    }
    let schema = bench.definition("record").await["outputSchema"].clone();
    assert_eq!(schema["type"], "object");
    let bench = bench.answering(|_| status(204));
    for tool in ["record", "short"] {
        let said = bench.call(tool, json!({})).await.ended(0).json();
        assert_eq!(said["structuredContent"], json!({}), "{tool}");
        assert_eq!(said["content"][0]["text"], "done (204 No Content)");
        assert!(jsonschema::is_valid(&schema, &said["structuredContent"]));
    }
    // What is neither is withheld, and so is nothing where the document promises something.
    let bench = bench.answering(|_| answer(200, &json!({"other": 1})));
    bench.call("record", json!({})).await.ended(1);
    let strict = DOCUMENT.replace("        \"204\": { description: Nothing yet. }\n", "");
    let bench = bench.file("api.yaml", strict).answering(|_| status(204));
    bench.call("record", json!({})).await.ended(1);
}

#[tokio::test]
async fn what_a_document_marks_as_only_written_leaves_no_answer() {
    const SECRET: &str = "correct horse battery staple";
    let document = r##"
openapi: 3.0.3
info: { title: Accounts, version: "1" }
paths:
  /one: { get: { operationId: one, responses: { "200": { description: d, content: { application/json: { schema: { $ref: "#/components/schemas/Account" } } } } } } }
  /all: { get: { operationId: all, responses: { "200": { description: d, content: { application/json: { schema: { type: array, items: { $ref: "#/components/schemas/Account" } } } } } } } }
components:
  schemas:
    Account: { type: object, required: [id, password], properties: { id: { type: string }, password: { type: string, writeOnly: true }, inner: { $ref: "#/components/schemas/Account" } } }
"##;
    let bench = Bench::new(document)
        .await
        .tool("one", "one", "")
        .tool("all", "all", "")
        .tool(
            "kept",
            "one",
            "returns = { word = \"$.password\", id = \"$.id\" }",
        )
        .answering(|arrived| {
            let account = json!({"id": "a", "password": SECRET, "inner": {"id": "b", "password": SECRET}});
            let is_all = arrived.target.ends_with("/all");
            answer(200, &if is_all { json!([account]) } else { account })
        });
    for (tool, left) in [
        ("one", json!({"id": "a", "inner": {"id": "b"}})),
        ("all", json!([{"id": "a", "inner": {"id": "b"}}])),
        ("kept", json!({"id": "a"})),
    ] {
        let said = bench.call(tool, json!({})).await.ended(0);
        assert!(!format!("{}{}", said.out, said.err).contains(SECRET), "{said:?}");
        let text = said.json()["content"][0]["text"].as_str().unwrap().to_owned();
        let text: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, left, "{tool}");
    }
}

/// A caller's client of a revision.
async fn client(gate: &e2e::house::Gate, key: &str, revision: &str) -> Mcp {
    if revision == "2026-07-28" {
        Mcp::modern(&gate.url, key)
    } else {
        Mcp::legacy(&gate.url, key, revision).await
    }
}

#[tokio::test]
async fn media_that_the_document_declares_are_passed_on_in_the_words_of_each_revision() {
    let bench = Bench::new(DOCUMENT).await.tool("picture", "picture", "");
    let key = bench.house.key("ada").await;
    let gate = bench.house.serve().await;
    let revisions = [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ];
    for revision in revisions {
        let ada = client(&gate, &key, revision).await;
        let block = async |media: &'static str, body: &'static [u8]| -> Value {
            bench.service.script(move |_| of_type(media, body));
            let said = ada.call("api_picture", json!({})).await;
            assert_ne!(said["isError"], true, "{said}");
            said["content"][0].clone()
        };
        assert_eq!(
            block("image/png", b"\x89PNG").await,
            json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"}),
            "{revision}"
        );
        let audio = block("audio/mpeg; x=1", b"ID3").await;
        if revision == "2024-11-05" {
            assert_eq!(audio["type"], "text");
            let text = audio["text"].as_str().unwrap();
            assert!(text.contains("audio/mpeg of 3 bytes"), "{text}");
        } else {
            assert_eq!(
                audio,
                json!({"type": "audio", "data": "SUQz", "mimeType": "audio/mpeg"}),
                "{revision}"
            );
        }
        let pdf = block("application/pdf", b"%PDF").await;
        assert_eq!(
            (&pdf["type"], &pdf["resource"]["blob"]),
            (&json!("resource"), &json!("JVBERg=="))
        );
        assert!(pdf["resource"]["uri"].as_str().unwrap().starts_with("urn:uuid:"));
    }
    // What it does not declare stays here.
    let ada = client(&gate, &key, "2026-07-28").await;
    for media in ["image/jpeg", "video/mp4", "application/zip"] {
        bench.service.script(move |_| of_type(media, b"x"));
        let said = ada.call("api_picture", json!({})).await;
        assert_eq!(said["isError"], true, "{media}: {said}");
    }
    close(gate).await;
    let request = &bench.service.arrived()[0];
    assert_eq!(request.headers["accept"], "application/pdf, audio/*, image/png");
    let ledger = bench.house.ledger().await;
    assert_eq!(ledger.of_kind("outcome").len(), 18);
}

#[tokio::test]
async fn media_have_the_limit_of_a_result_and_repeat_no_credential() {
    let bench = Bench::new(DOCUMENT)
        .await
        .limit("result_bytes_max = 256")
        .tool("picture", "picture", "");
    // 192 bytes are 256 of base64.
    const FITS: &[u8] = &[7; 192];
    const PAST: &[u8] = &[7; 193];
    let bench = bench.answering(|_| of_type("image/png", FITS));
    let said = bench.call("picture", json!({})).await.ended(0).json();
    assert_eq!(said["content"][0]["bytes"], 192);
    let bench = bench.answering(|_| of_type("image/png", PAST));
    bench.call("picture", json!({})).await.ended(1);
    let mut bench = bench.answering(|_| of_type("image/png", b"x canary-of-the-service y"));
    bench.change_keys("credential = { bearer = \"file:token\" }");
    let bench = bench.file("token", "canary-of-the-service");
    let said = bench.call("picture", json!({})).await.ended(1);
    assert!(!said.out.contains("canary"), "{said:?}");
}

#[tokio::test]
async fn another_media_type_of_the_answer_can_be_asked_for() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool("json", "table", "")
        .tool("csv", "table", "accept = \"text/csv\"")
        .answering(|arrived| match arrived.headers["accept"].to_str().unwrap() {
            "text/csv" => of_type("text/csv", b"a,b\n"),
            "application/json" => answer(200, &json!({"a": "b"})),
            other => panic!("{other}"),
        });
    let said = bench.call("json", json!({})).await.ended(0).json();
    assert_eq!(said["structuredContent"], json!({"a": "b"}));
    let said = bench.call("csv", json!({})).await.ended(0).json();
    assert_eq!(said["content"][0]["text"], "a,b\n");
    assert!(bench.definition("csv").await.get("outputSchema").is_none());
}

#[tokio::test]
async fn an_error_is_told_so_that_a_model_can_act_on_it_and_tells_nothing_else() {
    let bench = Bench::new(DOCUMENT).await.tool(
        "record",
        "record",
        "errors = { 404 = \"there is no record yet\", 5xx = \"the archive is closed\" }",
    );
    let told = async |bench: &Bench, code: u16, headers: &'static [(&str, &str)], body: Value| {
        bench.service.script(move |_| {
            let mut response = answer(code, &body);
            for (name, value) in headers {
                response
                    .headers_mut()
                    .insert(*name, axum::http::HeaderValue::from_static(value));
            }
            response
        });
        let said = bench.call("record", json!({})).await.ended(1).json();
        assert_eq!(said["isError"], true, "{said}");
        assert!(said["structuredContent"].is_null());
        said["content"][0]["text"].as_str().unwrap().to_owned()
    };
    const NONE: &[(&str, &str)] = &[];
    let problem = json!({"title": "Invalid", "errors": [
        {"detail": "must be positive", "pointer": "#/amount"},
        {"detail": "Traceback (most recent call last)", "pointer": "#/trace"},
    ], "stack": "at main.js:1", "debug": "secret"});
    for (code, headers, body, text) in [
        (
            422,
            NONE,
            problem,
            "the service answered 422 Unprocessable Content: Invalid; `amount`: must be positive",
        ),
        (
            429,
            &[("retry-after", "30")],
            json!({"detail": "slow down"}),
            "the service answered 429 Too Many Requests: slow down; try again in 30 seconds",
        ),
        (
            404,
            NONE,
            json!({"detail": "no row in table records of db.internal"}),
            "the service answered 404 Not Found: there is no record yet",
        ),
        (
            503,
            &[("retry-after", "1")],
            json!({"detail": "x"}),
            "the service answered 503 Service Unavailable: the archive is closed; try again in 1 second",
        ),
        (
            400,
            NONE,
            json!({"message": "panicked at src/main.rs:7"}),
            "the service answered 400 Bad Request",
        ),
        (
            400,
            &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")],
            json!([1]),
            "the service answered 400 Bad Request",
        ),
    ] {
        assert_eq!(told(&bench, code, headers, body).await, text);
    }
}
