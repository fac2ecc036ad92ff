//! Documents in several files, with overlays, and with files of servers: from the configuration to the request.

use e2e::bench::Bench;
use e2e::service::{Service, json as answer};
use serde_json::{Value, json};

const SPLIT: &str = r##"
openapi: 3.1.0
info: { title: Split, version: "1" }
paths:
  /carts/{id}: { $ref: "paths/carts.yaml#/one" }
  /carts: { $ref: "./paths/carts.yaml#/all" }
"##;

const CARTS: &str = r##"
one:
  get:
    operationId: readCart
    parameters:
      - { $ref: "../shared/parameters.yaml#/Id" }
all:
  post:
    operationId: openCart
    requestBody:
      required: true
      content: { application/json: { schema: { $ref: "../shared/cart.yaml" } } }
"##;

const PARAMETERS: &str =
    "Id: { name: id, in: path, required: true, schema: { type: string, maxLength: 9 } }\n";

const CART: &str =
    "type: object\nrequired: [name]\nproperties:\n  name: { type: string }\n  inner: { $ref: \"#\" }\n";

async fn split() -> Bench {
    Bench::new(SPLIT)
        .await
        .file("paths/carts.yaml", CARTS)
        .file("shared/parameters.yaml", PARAMETERS)
        .file("shared/cart.yaml", CART)
}

#[tokio::test]
async fn a_document_in_several_files_becomes_requests() {
    let bench = split()
        .await
        .tool("read", "readCart", "")
        .tool("open", "openCart", "");
    assert_eq!(
        bench.request("read", json!({"id": "a/b"})).await,
        "GET /base/carts/a%2Fb"
    );
    assert_eq!(
        bench
            .request("open", json!({"name": "a", "inner": {"name": "b"}}))
            .await,
        "POST /base/carts\ncontent-type: application/json\n\n{\"name\":\"a\",\"inner\":{\"name\":\"b\"}}"
    );
    let said = bench.run(&["check", "--offline"]).await.ended(0);
    said.printed("upstream `api`: its document has 3 other files");
    // A file is part of the pin of the tools that need it, and of no other.
    let pins = [bench.pin("read").await, bench.pin("open").await];
    let bench = bench.file("shared/parameters.yaml", PARAMETERS.replace('9', "8"));
    assert_ne!(bench.pin("read").await, pins[0]);
    assert_eq!(bench.pin("open").await, pins[1]);
}

#[tokio::test]
async fn no_file_outside_of_the_root_folder_is_read_and_no_link_is_followed() {
    let held = async |bench: &Bench| {
        let said = bench.run(&["tools", "--held", "--json"]).await.ended(0);
        let held = said.json()["held"].clone();
        let of = |key: &str| -> Value {
            held.as_array()
                .unwrap()
                .iter()
                .find(|one| one["operation"] == key)
                .cloned()
                .unwrap_or_default()
        };
        (of("GET /out"), of("GET /link"), of("GET /good"))
    };
    const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Split, version: "1" }
paths:
  /out: { get: { parameters: [{ $ref: "../secret.yaml#/p" }] } }
  /link: { get: { parameters: [{ $ref: "link.yaml#/p" }] } }
  /good: { get: { parameters: [{ $ref: "good.yaml#/p" }] } }
"##;
    const PARAMETER: &str = "p: { name: canary, in: query, schema: { type: string } }\n";
    let bench = Bench::new("openapi: 3.1.0\npaths: {}\n").await;
    let config = std::fs::read_to_string(bench.house.path("tollhouse.toml")).unwrap();
    let bench = bench
        .file("tollhouse.toml", config.replace("api.yaml", "spec/api.yaml"))
        .file("spec/api.yaml", DOCUMENT)
        .file("secret.yaml", PARAMETER)
        .file("spec/good.yaml", PARAMETER);
    std::os::unix::fs::symlink("../secret.yaml", bench.house.path("spec/link.yaml")).unwrap();
    let (out, link, good) = held(&bench).await;
    assert_eq!(out["blockers"][0]["cause"], "ref.external");
    assert!(
        out["blockers"][0]["text"]
            .as_str()
            .unwrap()
            .contains("leads out of the root folder")
    );
    assert!(
        link["blockers"][0]["text"]
            .as_str()
            .unwrap()
            .contains("symbolic link, which is not followed")
    );
    assert_eq!(good["blockers"], json!([]));
    assert_eq!(out["blockers"][0]["pointer"], "#/paths/~1out/get/parameters/0");

    // What `check` lists of them says what would clear it.
    let said = bench.run(&["check", "--offline"]).await.ended(0);
    let said = said.printed("`GET /out` cannot be a tool: ref.external at #/paths/~1out/get/parameters/0: ");
    said.printed("name a file inside the root folder");

    // A wider root is the operator's word.
    let config = std::fs::read_to_string(bench.house.path("tollhouse.toml")).unwrap();
    let wider = config.replace("spec/api.yaml\"", "spec/api.yaml\"\nopenapi_root = \".\"");
    let bench = bench.file("tollhouse.toml", wider);
    let (out, link, _) = held(&bench).await;
    assert_eq!(out["blockers"], json!([]));
    assert_ne!(link["blockers"], json!([]));
    let bench = bench.file(
        "tollhouse.toml",
        config.replace("spec/api.yaml\"", "spec/api.yaml\"\nopenapi_root = \"policy\""),
    );
    assert!(
        bench
            .faults()
            .await
            .contains("the document `spec/api.yaml` is not inside `policy`")
    );
}

const FLAT: &str = r##"
openapi: 3.0.3
info: { title: Flat, version: "1" }
paths:
  /search:
    get:
      operationId: search
      parameters:
        - { name: tags, in: query, schema: { type: array, items: { type: string } } }
"##;

#[tokio::test]
async fn overlays_are_applied_before_the_document_is_read_and_are_reported() {
    const FIRST: &str = "overlay: 1.0.0\ninfo: { title: t, version: '1' }\nactions:\n\
        - { target: \"$.paths['/search'].get.parameters[0]\", update: { explode: false } }\n";
    const SECOND: &str = "overlay: 1.0.0\ninfo: { title: t, version: '1' }\nactions:\n\
        - { target: \"$.paths['/gone']\", remove: true }\n";
    let bench = Bench::new(FLAT).await.tool("search", "search", "");
    assert_eq!(
        bench.request("search", json!({"tags": ["a", "b c"]})).await,
        "GET /base/search?tags=a&tags=b%20c"
    );
    let pin = bench.pin("search").await;
    let bench = bench
        .file("first.yaml", FIRST)
        .file("second.yaml", SECOND)
        .keys("overlays = [\"first.yaml\", \"second.yaml\"]");
    assert_eq!(
        bench.request("search", json!({"tags": ["a", "b c"]})).await,
        "GET /base/search?tags=a,b%20c"
    );
    assert_ne!(bench.pin("search").await, pin);
    let said = bench.run(&["check", "--offline"]).await.ended(0);
    let said = said.printed("upstream `api`: 2 actions of overlays changed 1 place");
    said.told("`second.yaml`: `#/actions/0` selects nothing by `$.paths[");
    let outcome = bench.run(&["check", "--offline", "--json"]).await.ended(0).json();
    let action = &outcome["documents"][0]["overlaid"][0];
    assert_eq!(action["places"], json!(["#/paths/~1search/get/parameters/0"]));

    // A fault of an overlay names its file and its action.
    let bench = bench.file("second.yaml", SECOND.replace("$.paths", "paths"));
    let faults = bench.faults().await;
    assert!(
        faults.contains("upstream.api.overlays: `second.yaml`: `#/actions/0` has the target"),
        "{faults}"
    );
}

const FAR: &str = r##"
openapi: 3.1.0
info: { title: Far, version: "1" }
paths:
  /far:
    get:
      operationId: far
      parameters: [{ $ref: "SERVER/common/parameters.yaml#/Page" }]
  /near: { get: { operationId: near } }
"##;

/// A server of files that answers by path, and everything else with a redirect to the first of them.
async fn files() -> Service {
    Service::start(|arrived| match arrived.target.as_str() {
        "/common/parameters.yaml" => text("Page: { $ref: 'deep/page.yaml' }"),
        "/common/deep/page.yaml" => text("name: page\nin: query\nschema: { type: integer }\n"),
        "/common/moved.yaml" => axum::response::Response::builder()
            .status(302)
            .header("location", "/common/parameters.yaml")
            .body(axum::body::Body::empty())
            .unwrap(),
        _ => answer(404, &json!({})),
    })
    .await
}

fn text(body: &'static str) -> axum::response::Response {
    axum::response::Response::new(axum::body::Body::from(body))
}

#[tokio::test]
async fn files_of_a_server_are_fetched_only_where_the_configuration_allows_it() {
    let server = files().await;
    let document = FAR.replace("SERVER", &server.url());
    let mut bench = Bench::new(&document).await.tool("near", "near", "");
    let blockers = async |bench: &Bench, arguments: &[&str]| {
        let said = bench.run(arguments).await.ended(0).json();
        let all = if said["held"].is_array() {
            &said["held"]
        } else {
            &said["blocked"]
        };
        let mut texts = String::new();
        for one in all.as_array().unwrap() {
            texts += &one["blockers"].to_string();
        }
        texts
    };
    let held = ["tools", "--held", "--json"];
    let said = blockers(&bench, &held).await;
    assert!(
        said.contains("`upstream.api.references` does not allow it"),
        "{said}"
    );
    assert!(
        said.contains("add it to `upstream.api.references.from`"),
        "{said}"
    );
    assert_eq!(server.count(), 0);

    let allow = |from: &str| {
        format!(
            "references = {{ from = [\"{}{from}\"], network = {{ allow = [\"127.0.0.1/32\"] }} }}",
            server.url()
        )
    };
    // Another folder, or one that only begins alike, is not this one.
    for from in ["/other/", "/comm", "/common/parameters.yml"] {
        let said = blockers(bench.change_keys(&allow(from)), &held).await;
        assert!(said.contains("does not allow it"), "{from}: {said}");
    }
    assert_eq!(server.count(), 0);

    bench.change_keys(&allow("/common/"));
    let offline = ["check", "--offline", "--json"];
    let said = blockers(&bench, &offline).await;
    assert!(said.contains("leave `--offline` out"), "{said}");
    assert_eq!(server.count(), 0);
    let bench = bench.tool("far", "far", "");
    assert_eq!(
        bench.request("far", json!({"page": 2})).await,
        "GET /base/far?page=2"
    );
    let asked: Vec<String> = server
        .arrived()
        .iter()
        .map(|arrived| {
            assert!(!arrived.headers.contains_key("authorization"));
            arrived.target.clone()
        })
        .collect();
    assert_eq!(asked, ["/common/parameters.yaml", "/common/deep/page.yaml"]);

    // A private address is refused unless it is allowed; a redirect is not followed; a long file is not read.
    let mut bench = bench.tools("");
    let private = format!("references = {{ from = [\"{}/common/\"] }}", server.url());
    let said = blockers(bench.change_keys(&private), &held).await;
    assert!(said.contains("could not be fetched"), "{said}");
    let moved = document.replace("parameters.yaml", "moved.yaml");
    let mut bench = bench.file("api.yaml", moved);
    server.forget();
    let said = blockers(bench.change_keys(&allow("/common/")), &held).await;
    assert!(said.contains("the server answered 302"), "{said}");
    assert_eq!(server.count(), 1);
}
