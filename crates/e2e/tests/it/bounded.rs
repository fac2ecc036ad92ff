//! Tools within bounds: what a reviewer says about single arguments, from the configuration to the request.

use e2e::bench::Bench;
use serde_json::json;

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Bounds, version: "1" }
servers:
  - url: "https://{region}.example.com/{version}/"
    variables:
      region: { default: eu }
      version: { default: v1, enum: [v1, v2] }
  - { url: "/plain" }
paths:
  /rows:
    get:
      operationId: listRows
      parameters:
        - { name: state, in: query, description: "The state.", schema: { type: string, enum: [open, paid, void] } }
        - { name: limit, in: query, schema: { type: integer, minimum: 1, maximum: 100 } }
        - { name: tags, in: query, schema: { type: array, items: { type: string } } }
        - { name: currency, in: query, schema: { type: string } }
        - { name: debug, in: query, schema: { type: boolean } }
        - { name: search, in: query, allowReserved: true, schema: { type: string } }
        - { name: X-User-Id, in: header, schema: { type: string } }
        - { name: sid, in: cookie, schema: { type: string } }
        - { name: theme, in: cookie, schema: { type: string } }
  /deep:
    get:
      operationId: searchRows
      parameters:
        - name: where
          in: query
          style: deepObject
          schema: { type: object, properties: { total: { type: object, properties: { gte: { type: integer } } } } }
  /rows/{row-id}:
    parameters: [{ name: row-id, in: path, required: true, schema: { type: string } }]
    post:
      operationId: changeRow
      requestBody:
        content:
          application/json: { schema: { $ref: "#/components/schemas/Change" } }
          application/x-www-form-urlencoded: { schema: { $ref: "#/components/schemas/Change" } }
  /files/{id}:
    servers: [{ url: "https://files.example.com/v9" }]
    get:
      operationId: readFile
      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
components:
  schemas:
    Change:
      type: object
      properties:
        amount: { type: integer, minimum: 0 }
        note: { type: string }
        owner: { type: string }
"##;

async fn rows(lines: &str) -> Bench {
    Bench::new(DOCUMENT).await.tool("rows", "listRows", lines)
}

#[tokio::test]
async fn arguments_are_renamed_described_narrowed_and_required() {
    let bench = rows(
        r#"
argument.state = { rename = "status", description = "Which rows.", unit = "a word", values = ["open", "paid"], required = true }
argument.limit = { minimum = 5, maximum = 20, unit = "rows" }
argument.tags = { items_max = 2 }
argument.currency = { length_max = 3 }
"#,
    )
    .await;
    let schema = bench.definition("rows").await["inputSchema"].clone();
    assert_eq!(
        schema["properties"]["status"],
        json!({"type": "string", "enum": ["open", "paid"], "description": "Which rows. Unit: a word."})
    );
    assert_eq!(
        schema["properties"]["limit"],
        json!({"type": "integer", "minimum": 5, "maximum": 20, "description": "Unit: rows."})
    );
    assert_eq!(schema["required"], json!(["status"]));
    assert!(schema["properties"].get("state").is_none());

    let good = json!({"status": "paid", "limit": 20, "tags": ["a", "b"], "currency": "EUR"});
    assert_eq!(
        bench.request("rows", good.clone()).await,
        "GET /base/rows?state=paid&limit=20&tags=a&tags=b&currency=EUR"
    );
    for (name, value, told) in [
        ("status", json!("void"), "status"),
        ("limit", json!(21), "limit"),
        ("limit", json!(4), "limit"),
        ("tags", json!(["a", "b", "c"]), "tags"),
        ("currency", json!("EURO"), "currency"),
        ("state", json!("open"), "state"),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        let said = bench.refused("rows", bad).await;
        assert!(said.contains(told), "{name}: {said}");
    }
    let mut without = good;
    without.as_object_mut().unwrap().remove("status");
    assert!(bench.refused("rows", without).await.contains("status"));
}

#[tokio::test]
async fn what_is_fixed_hidden_or_the_callers_own_can_be_set_by_no_call() {
    let bench = rows(
        r#"
argument.currency = { fixed = "EUR" }
argument.debug = { hide = true }
argument.X-User-Id = { from = "principal.subject" }
argument.sid = { from = "claims.account" }
argument.theme = { fixed = "plain" }
"#,
    )
    .await;
    let names: Vec<String> = bench.definition("rows").await["inputSchema"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, ["state", "limit", "tags", "search"]);
    assert_eq!(
        bench.request("rows", json!({"state": "open"})).await,
        "GET /base/rows?state=open&currency=EUR\ncookie: sid=acc-7; theme=plain\nx-user-id: ada"
    );
    for name in ["currency", "debug", "X-User-Id", "sid", "theme"] {
        let said = bench.refused("rows", json!({ name: "x" })).await;
        assert!(said.contains(name), "{said}");
    }
    // A caller without what is sent is refused, and nothing stands in for it.
    let said = bench.run(&["call", "--as", "nobody", "api_rows", "{}"]).await;
    assert_ne!(said.code, Some(0));
    assert_eq!(bench.service.count(), 0, "nothing was sent");

    // In a body, in a path, and of other types.
    let bench = Bench::new(DOCUMENT).await.tools(
        r#"
[upstream.api.tool.change]
operation = "changeRow"
class = "write"
consent = { waived_by = "the tests", because = "nothing is real here", until = "2099-12-31" }
argument.row-id = { from = "principal.tenant" }
argument.owner = { from = "principal.client" }
argument.amount = { fixed = 7 }
"#,
    );
    assert_eq!(
        bench.request("change", json!({"note": "n"})).await,
        "POST /base/rows/north\ncontent-type: application/json\n\n{\"amount\":7,\"note\":\"n\",\"owner\":\"ide\"}"
    );
}

#[tokio::test]
async fn a_key_of_the_call_is_one_for_all_tries_of_it_and_for_no_other_call() {
    let document = "openapi: 3.1.0\ninfo: { title: Keys, version: '1' }\npaths:\n  /orders: { get: { operationId: order, parameters: [{ name: Idempotency-Key, in: header, required: true, schema: { type: string, format: uuid } }] } }\n";
    let bench = Bench::new(document).await.tool(
        "order",
        "order",
        "argument.Idempotency-Key = { from = \"call.id\" }\nretry = { attempts = 2, on = [503] }",
    );
    let bench = bench.answering(|_| e2e::service::json(503, &json!({})));
    let keys = async || {
        bench.service.forget();
        bench.call("order", json!({})).await;
        let arrived = bench.service.arrived();
        let keys: Vec<String> = arrived
            .iter()
            .map(|request| request.headers["idempotency-key"].to_str().unwrap().to_owned())
            .collect();
        assert_eq!(keys.len(), 2, "{arrived:?}");
        assert_eq!(keys[0], keys[1]);
        assert_eq!((keys[0].len(), keys[0].matches('-').count()), (36, 4), "{keys:?}");
        keys[0].clone()
    };
    assert_ne!(keys().await, keys().await);
    let said = bench.refused("order", json!({"Idempotency-Key": "mine"})).await;
    assert!(said.contains("Idempotency-Key"), "{said}");
}

#[tokio::test]
async fn no_value_of_the_operator_or_of_a_claim_adds_a_cookie_or_a_header() {
    let bench = rows("argument.sid = { from = \"claims.odd\" }\nargument.theme = { fixed = \"a b\" }").await;
    let request = bench.request("rows", json!({})).await;
    let cookie = request.split_once("cookie: ").unwrap().1;
    assert_eq!(cookie, "sid=a%3Bb%3Dc; theme=a%20b");
    let bench = rows("argument.X-User-Id = { fixed = \"a\\r\\nX-Evil: 1\" }").await;
    let said = bench.refused("rows", json!({})).await;
    assert!(!said.contains("X-Evil"), "{said}");
}

#[tokio::test]
async fn every_bound_is_part_of_the_pin() {
    let mut pins = vec![rows("").await.pin("rows").await];
    for lines in [
        "argument.state = { rename = \"status\" }",
        "argument.state = { description = \"d\" }",
        "argument.state = { unit = \"u\" }",
        "argument.state = { required = true }",
        "argument.state = { values = [\"open\"] }",
        "argument.state = { hide = true }",
        "argument.state = { fixed = \"open\" }",
        "argument.state = { fixed = \"paid\" }",
        "argument.state = { from = \"principal.tenant\" }",
        "argument.state = { from = \"claims.level\" }",
        "argument.limit = { minimum = 2 }",
        "argument.limit = { maximum = 2 }",
        "argument.currency = { length_max = 2 }",
        "argument.tags = { items_max = 2 }",
        "allow_reserved = true",
        "errors = { 404 = \"gone\" }",
        "errors = { 404 = \"away\" }",
        "server = {}",
        "server = { variables = { version = \"v2\" } }",
        "pages = { argument = \"search\", next = \"$.n\", items = \"$.d\", pages_max = 2 }",
        "pages = { argument = \"search\", next = \"$.m\", items = \"$.d\", pages_max = 2 }",
    ] {
        pins.push(rows(lines).await.pin("rows").await);
    }
    let distinct: std::collections::BTreeSet<&String> = pins.iter().collect();
    assert_eq!(distinct.len(), pins.len(), "{pins:#?}");
}

#[tokio::test]
async fn a_bound_that_does_not_fit_the_document_is_a_fault_with_its_place() {
    for (lines, key, told) in [
        (
            "argument.stat = { unit = \"x\" }",
            "argument.stat",
            "did you mean `state`?",
        ),
        (
            "argument.zzz = { hide = true }",
            "argument.zzz",
            "the operation has no argument `zzz`; it has `state`, `limit`",
        ),
        (
            "argument.stat = { fixed = \"x\" }",
            "argument.stat",
            "did you mean `state`?",
        ),
        (
            "argument.state = { values = [\"open\", \"closed\"] }",
            "argument.state",
            "the document does not allow the value `closed`",
        ),
        (
            "argument.limit = { maximum = 101 }",
            "argument.limit",
            "`maximum` of 101 is wider than that of the document, 100",
        ),
        (
            "argument.limit = { minimum = 0 }",
            "argument.limit",
            "`minimum` of 0 is wider",
        ),
        (
            "argument.state = { maximum = 3 }",
            "argument.state",
            "`maximum` does not fit the type of the argument",
        ),
        (
            "argument.state = { rename = \"limit\" }",
            "argument.state",
            "two arguments would be called `limit`",
        ),
        (
            "argument.state = { hide = true, unit = \"x\" }",
            "argument.state.unit",
            "means nothing for an argument that no call can give",
        ),
        (
            "argument.state = { hide = true, fixed = \"open\" }",
            "argument.state.",
            "exclude each other",
        ),
        (
            "argument.state = { from = \"principal.name\" }",
            "argument.state.from",
            "claims.NAME",
        ),
        (
            "argument.limit = { minimum = 9, maximum = 8 }",
            "argument.limit.minimum",
            "more than `maximum`",
        ),
        (
            "argument.state = { fixed = { a = 1 } }",
            "argument.state.fixed",
            "a text in quotes, a number",
        ),
        (
            "accept = \"text/csv\"",
            "operation",
            "no successful response is `text/csv`",
        ),
        (
            "server = { url = \"https://no.example.com\" }",
            "server",
            "the operation has no server `https://no.example.com`",
        ),
        (
            "server = { variables = { version = \"v3\" } }",
            "server",
            "`v3` is no value of the variable `{version}`; write one of v1, v2",
        ),
        (
            "server = { variables = { vers = \"v2\" } }",
            "server",
            "the server has no variable `{vers}`",
        ),
        (
            "pages = { argument = \"zzz\", next = \"$.n\", items = \"$.d\", pages_max = 2 }",
            "pages.argument",
            "the tool has no argument `zzz`",
        ),
        (
            "pages = { argument = \"search\", next = \"$.n\", items = \"$.d\", pages_max = 2, as = \"limit\" }",
            "pages",
            "the tool has an argument `limit` already",
        ),
        (
            "errors = { 200 = \"x\" }",
            "errors.200",
            "is no status of an error",
        ),
    ] {
        let faults = rows(lines).await.faults().await;
        assert!(
            faults.contains(&format!("upstream.api.tool.rows.{key}")) && faults.contains(told),
            "{lines}: {faults}"
        );
        let place = faults.lines().next().unwrap_or_default();
        assert!(place.starts_with("tollhouse.toml:"), "{lines}: {place}");
    }
    let required = Bench::new(DOCUMENT)
        .await
        .tool("file", "readFile", "argument.id = { hide = true }");
    let faults = required.faults().await;
    assert!(
        faults.contains("the argument `id` is required and cannot be hidden"),
        "{faults}"
    );
}

#[tokio::test]
async fn the_path_of_a_server_is_the_documents_and_the_host_is_the_operators() {
    let bench = rows("").await.tool("file", "readFile", "");
    assert_eq!(bench.request("rows", json!({})).await, "GET /base/rows");
    let mut bench = bench;
    for (server, expected) in [
        ("server = {}", ["GET /base/v1/rows", "GET /base/v9/files/f"]),
        (
            "server = { variables = { version = \"v2\" } }",
            ["GET /base/v2/rows", ""],
        ),
        ("server = { url = \"/plain\" }", ["GET /base/plain/rows", ""]),
    ] {
        if expected[1].is_empty() {
            bench = Bench::new(DOCUMENT).await.tool("rows", "listRows", "");
        }
        bench.change_keys(server);
        assert_eq!(bench.request("rows", json!({})).await, expected[0]);
        if !expected[1].is_empty() {
            assert_eq!(bench.request("file", json!({"id": "f"})).await, expected[1]);
        }
    }
    // A tool can have its own.
    let bench = rows("server = { url = \"/plain\" }").await;
    assert_eq!(bench.request("rows", json!({})).await, "GET /base/plain/rows");
}

#[tokio::test]
async fn nesting_and_reserved_characters_are_sent_only_where_the_operator_says_so() {
    let mut bench = Bench::new(DOCUMENT).await.tool("deep", "searchRows", "");
    let faults = bench.faults().await;
    assert!(faults.contains("say how the API nests `deepObject`"), "{faults}");
    for (nesting, expected) in [
        ("indexed", "GET /base/deep?where%5Btotal%5D%5Bgte%5D=5"),
        ("unindexed", "GET /base/deep?where%5Btotal%5D%5Bgte%5D=5"),
    ] {
        bench.change_keys(&format!("nesting = \"{nesting}\""));
        let arguments = json!({"where": {"total": {"gte": 5}}});
        assert_eq!(bench.request("deep", arguments).await, expected);
    }
    let bench = rows("").await;
    assert_eq!(
        bench.request("rows", json!({"search": "a/b:c&d"})).await,
        "GET /base/rows?search=a%2Fb%3Ac%26d"
    );
    let bench = rows("allow_reserved = true").await;
    assert_eq!(
        bench.request("rows", json!({"search": "a/b:c&d"})).await,
        "GET /base/rows?search=a/b:c%26d"
    );
}

#[tokio::test]
async fn the_media_type_of_a_body_can_be_chosen() {
    const CHANGE: &str = r#"
[upstream.api.tool.change]
operation = "changeRow"
class = "write"
consent = { waived_by = "the tests", because = "nothing is real here", until = "2099-12-31" }
"#;
    let arguments = json!({"row-id": "r", "amount": 1, "note": "a b"});
    let bench = Bench::new(DOCUMENT).await.tools(CHANGE);
    assert_eq!(
        bench.request("change", arguments.clone()).await,
        "POST /base/rows/r\ncontent-type: application/json\n\n{\"amount\":1,\"note\":\"a b\"}"
    );
    let form = format!("{CHANGE}media_type = \"application/x-www-form-urlencoded\"\n");
    let bench = bench.tools(&form);
    assert_eq!(
        bench.request("change", arguments).await,
        "POST /base/rows/r\ncontent-type: application/x-www-form-urlencoded\n\namount=1&note=a%20b"
    );
    let bench = bench.tools(&format!("{CHANGE}media_type = \"application/xml\"\n"));
    let faults = bench.faults().await;
    assert!(
        faults.contains(
            "the body cannot be sent as `application/xml`; the document declares `application/json`"
        ),
        "{faults}"
    );
}
