//! Lists page by page: several pages with one call, within bounds, and never anywhere else.

use axum::http::HeaderValue;
use e2e::bench::Bench;
use e2e::service::{Arrived, json as answer};
use serde_json::{Value, json};

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Pages, version: "1" }
paths:
  /rows:
    get:
      operationId: listRows
      parameters:
        - { name: cursor, in: query, schema: { type: string, maxLength: 8, pattern: "^[a-z0-9/&=]+$" } }
        - { name: page, in: query, schema: { type: integer } }
        - { name: state, in: query, schema: { type: string } }
      responses:
        "200":
          description: Rows.
          content:
            application/json:
              schema:
                type: object
                required: [rows]
                properties: { rows: { type: array, items: {} }, next: { type: [string, "null"] } }
"##;

const CURSOR: &str =
    "pages = { argument = \"cursor\", next = \"$.next\", items = \"$.rows\", pages_max = 3 }";

/// The value of a query parameter of a request.
fn asked(arrived: &Arrived, name: &str) -> Option<String> {
    let (_, query) = arrived.target.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(&format!("{name}=")).map(str::to_owned))
}

/// Five pages of one row each, `a` to `e`, by cursor.
fn by_cursor(arrived: &Arrived) -> axum::response::Response {
    let here = asked(arrived, "cursor").unwrap_or_else(|| "a".to_owned());
    let next = match here.as_str() {
        "a" => json!("b"),
        "b" => json!("c"),
        "c" => json!("d"),
        "d" => json!("e"),
        _ => Value::Null,
    };
    answer(
        200,
        &json!({"rows": [{"id": here, "tenant": "north"}], "next": next}),
    )
}

fn targets(bench: &Bench) -> Vec<String> {
    bench
        .service
        .arrived()
        .iter()
        .map(|arrived| arrived.target.clone())
        .collect()
}

#[tokio::test]
async fn a_call_reads_as_many_pages_as_it_asks_for_up_to_the_maximum() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool("rows", "listRows", CURSOR)
        .answering(by_cursor);
    let schema = bench.definition("rows").await["inputSchema"].clone();
    assert_eq!(schema["properties"]["pages"]["maximum"], 3);

    let said = bench.call("rows", json!({"state": "x"})).await.ended(0).json();
    assert_eq!(said["structuredContent"]["rows"].as_array().unwrap().len(), 1);
    assert_eq!(
        said["content"][1]["text"],
        "there is another page: call again with `cursor` = \"b\""
    );
    assert_eq!(targets(&bench), ["/base/rows?state=x"]);

    bench.service.forget();
    let said = bench
        .call("rows", json!({"state": "x", "pages": 3}))
        .await
        .ended(0)
        .json();
    let ids: Vec<&Value> = said["structuredContent"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["id"])
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(said["structuredContent"]["next"], "d");
    assert_eq!(
        targets(&bench),
        [
            "/base/rows?state=x",
            "/base/rows?cursor=b&state=x",
            "/base/rows?cursor=c&state=x"
        ]
    );
    // The record says how many requests one call became.
    let ledger = bench.house.ledger().await;
    let outcomes = ledger.of_kind("outcome");
    let requests: Vec<u64> = outcomes
        .iter()
        .filter_map(|outcome| outcome["upstream_requests"].as_u64())
        .collect();
    assert_eq!(requests.iter().max(), Some(&3), "{outcomes:?}");

    // It goes on where it was told to, and ends where the list ends.
    bench.service.forget();
    let said = bench
        .call("rows", json!({"cursor": "d", "pages": 3}))
        .await
        .ended(0)
        .json();
    assert_eq!(said["structuredContent"]["rows"].as_array().unwrap().len(), 2);
    assert!(said["content"].get(1).is_none(), "{said}");
    assert_eq!(bench.service.count(), 2);

    for pages in [json!(0), json!(4), json!("2"), json!(-1)] {
        bench.refused("rows", json!({ "pages": pages })).await;
    }
}

#[tokio::test]
async fn rows_of_others_are_dropped_on_every_page() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool(
            "rows",
            "listRows",
            &format!(
                "{CURSOR}\nresource = {{ type = \"RowList\", scope = \"tenant\" }}\nrows = {{ items = \"$.rows\", owner = \"$.tenant\" }}"
            ),
        )
        .answering(|arrived| {
            let second = asked(arrived, "cursor").is_some();
            let rows = json!([{"id": second, "tenant": "north"}, {"id": "canary", "tenant": "south"}, {"id": "canary"}]);
            answer(200, &json!({"rows": rows, "next": if second { Value::Null } else { json!("b") }}))
        });
    let said = bench.call("rows", json!({"pages": 3})).await.ended(0);
    assert!(!said.out.contains("canary"), "{}", said.out);
    assert_eq!(
        said.json()["structuredContent"]["rows"],
        json!([{"id": false, "tenant": "north"}, {"id": true, "tenant": "north"}])
    );
}

#[tokio::test]
async fn what_names_the_next_page_is_a_value_and_nothing_else() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool("rows", "listRows", CURSOR)
        .answering(|arrived| {
            let next = match asked(arrived, "cursor") {
                None => json!("a/b&c=1"),
                Some(_) => Value::Null,
            };
            answer(200, &json!({"rows": [1], "next": next}))
        });
    bench.call("rows", json!({"pages": 2})).await.ended(0);
    assert_eq!(targets(&bench), ["/base/rows", "/base/rows?cursor=a%2Fb%26c%3D1"]);
    // Whatever the schema would not take of a caller is not taken of the service either, and a loop ends.
    for next in [
        json!("TOO-LOUD"),
        json!("muchtoolong"),
        json!({"a": 1}),
        json!(["b"]),
        json!(true),
    ] {
        bench.service.forget();
        let next = next.clone();
        bench
            .service
            .script(move |_| answer(200, &json!({"rows": [1], "next": next})));
        bench.call("rows", json!({"pages": 2})).await.ended(1);
        assert_eq!(bench.service.count(), 1);
    }
    bench.service.forget();
    bench
        .service
        .script(|_| answer(200, &json!({"rows": [1], "next": "same"})));
    bench.call("rows", json!({"pages": 3})).await.ended(1);
    assert_eq!(bench.service.count(), 2);
}

#[tokio::test]
async fn an_error_or_another_form_on_a_later_page_is_the_answer() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool("rows", "listRows", CURSOR)
        .answering(|arrived| match asked(arrived, "cursor") {
            None => answer(200, &json!({"rows": [1], "next": "b"})),
            Some(_) => answer(500, &json!({"detail": "x"})),
        });
    let said = bench.call("rows", json!({"pages": 3})).await.ended(1).json();
    assert_eq!(said["isError"], true);
    assert!(said["content"][0]["text"].as_str().unwrap().contains("500"));
    let bench = bench.answering(|arrived| match asked(arrived, "cursor") {
        None => answer(200, &json!({"rows": [1], "next": "b"})),
        Some(_) => answer(200, &json!({"rows": {"a": 1}})),
    });
    bench.call("rows", json!({"pages": 3})).await.ended(1);
    // All pages together have the limit of one answer.
    let bench = bench.limit("upstream_body_bytes_max = 512").answering(|arrived| {
        let next = if asked(arrived, "cursor").is_none() {
            json!("b")
        } else {
            Value::Null
        };
        answer(200, &json!({"rows": ["x".repeat(280)], "next": next}))
    });
    bench.call("rows", json!({})).await.ended(0);
    bench.call("rows", json!({"pages": 2})).await.ended(1);
}

#[tokio::test]
async fn pages_are_counted_where_they_have_numbers() {
    let bench = Bench::new(DOCUMENT)
        .await
        .tool(
            "rows",
            "listRows",
            "pages = { argument = \"page\", first = 1, items = \"$.rows\", pages_max = 9, as = \"how_many\" }",
        )
        .answering(|arrived| {
            let page: u64 = asked(arrived, "page").map_or(1, |page| page.parse().unwrap());
            let rows = if page < 3 { json!([page]) } else { json!([]) };
            answer(200, &json!({ "rows": rows }))
        });
    let said = bench.call("rows", json!({"how_many": 9})).await.ended(0).json();
    assert_eq!(said["structuredContent"]["rows"], json!([1, 2]));
    assert_eq!(
        targets(&bench),
        ["/base/rows", "/base/rows?page=2", "/base/rows?page=3"]
    );
}

#[tokio::test]
async fn only_a_link_to_the_same_operation_is_followed_and_only_its_page_is_taken() {
    const LINK: &str = "pages = { argument = \"page\", link = true, items = \"$.rows\", pages_max = 3 }";
    let bench = Bench::new(DOCUMENT).await.tool("rows", "listRows", LINK);
    let url = bench.service.url();
    let linking = |target: String| {
        move |arrived: &Arrived| {
            let mut response = answer(200, &json!({"rows": [asked(arrived, "page")]}));
            if asked(arrived, "page").is_none() {
                let value = format!("<{target}>; rel=\"next\"");
                response
                    .headers_mut()
                    .insert("link", HeaderValue::from_str(&value).unwrap());
            }
            response
        }
    };
    for target in [
        format!("{url}/base/rows?page=2&state=all&evil=1"),
        "/base/rows?page=2".to_owned(),
        "?page=2".to_owned(),
    ] {
        bench.service.forget();
        let bench = &bench;
        bench.service.script(linking(target));
        let said = bench
            .call("rows", json!({"state": "mine", "pages": 3}))
            .await
            .ended(0)
            .json();
        assert_eq!(said["structuredContent"]["rows"], json!([null, "2"]));
        assert_eq!(
            targets(bench),
            ["/base/rows?state=mine", "/base/rows?page=2&state=mine"]
        );
    }
    for target in [
        "http://127.0.0.1:1/base/rows?page=2".to_owned(),
        format!("{url}/base/admin?page=2"),
        format!("{url}/base/rows/../admin?page=2"),
        "//evil.example.com/base/rows?page=2".to_owned(),
        "/base/rows?other=2".to_owned(),
        "/base/rows?page=two".to_owned(),
    ] {
        bench.service.forget();
        bench.service.script(linking(target.clone()));
        bench.call("rows", json!({"pages": 3})).await.ended(1);
        assert_eq!(bench.service.count(), 1, "{target}");
    }
}

#[tokio::test]
async fn a_tool_that_changes_state_has_no_pages() {
    let bench = Bench::new(DOCUMENT).await.tools(&format!(
        "[upstream.api.tool.rows]\noperation = \"listRows\"\nclass = \"write\"\n{CURSOR}\n"
    ));
    let faults = bench.faults().await;
    assert!(
        faults.contains("a call of class `write` is one request"),
        "{faults}"
    );
}
