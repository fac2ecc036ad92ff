//! The OpenAPI face: `POST /echo` and its numbered siblings, `GET /items/{id}`, and the document of both.

use serde::Serialize;
use serde_json::{Value, json};

use crate::count::Kind;
use crate::echo::{Asked, Echo, tool_name};

/// An answer of this face: a status and JSON.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Answers a request, or gives `None` for a path that this face does not have.
pub(crate) fn answer(
    echo: &Echo,
    method: &str,
    path: &str,
    query: Option<&str>,
    body: &[u8],
) -> Option<Answer> {
    let (kind, answer) = match (method, path) {
        ("POST", path) if operation(echo, path) => (Kind::Echo, echoed(echo, body)),
        ("GET", "/openapi.json") => (Kind::Document, ok(&document(echo.shape().tools))),
        ("GET", path) => (Kind::Item, item(path.strip_prefix("/items/")?, query)),
        _ => return None,
    };
    echo.counts().add(kind);
    Some(answer)
}

/// Whether a path is that of an echo: `/echo`, `/echo2`, …
fn operation(echo: &Echo, path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|name| echo.has_tool(name))
}

fn echoed(echo: &Echo, body: &[u8]) -> Answer {
    match serde_json::from_slice::<Asked<'_>>(body) {
        Ok(asked) => ok(&echo.answer(&asked)),
        Err(_) => invalid("the body is an object with the texts `text` and `nonce`"),
    }
}

fn item(id: &str, query: Option<&str>) -> Answer {
    let nonce = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("nonce="));
    match nonce {
        Some(nonce) if is_word(id) && is_word(nonce) => ok(&json!({ "id": id, "nonce": nonce })),
        _ => invalid("id and nonce are 1 to 64 letters, digits, `-` or `_`"),
    }
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn ok(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => Answer { status: 200, body },
        Err(error) => Answer {
            status: 500,
            body: json!({ "error": error.to_string() }).to_string().into_bytes(),
        },
    }
}

fn invalid(why: &str) -> Answer {
    Answer {
        status: 400,
        body: json!({ "error": why }).to_string().into_bytes(),
    }
}

/// The OpenAPI document of this face with so many echo operations.
pub(crate) fn document(tools: u16) -> Value {
    let mut paths: serde_json::Map<String, Value> = (1..=tools)
        .map(|n| (format!("/{}", tool_name(n)), json!({ "post": echo_operation(n) })))
        .collect();
    paths.insert("/items/{id}".to_owned(), json!({ "get": item_operation() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Echo",
            "version": "1.0.0",
            "description": "Gives back what it gets. For benchmarks.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Asked": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["text", "nonce"],
                    "properties": {
                        "text": { "type": "string", "description": "Given back as it is." },
                        "nonce": { "type": "string", "description": "Given back as it is; unique for each call." },
                    },
                },
                "Echoed": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["text", "nonce", "seq"],
                    "properties": {
                        "text": { "type": "string" },
                        "nonce": { "type": "string" },
                        "seq": { "type": "integer", "minimum": 0, "description": "Counts the answers." },
                        "padding": { "type": "string", "description": "Present where a large answer is asked for." },
                    },
                },
                "Word": { "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" },
                "Item": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["id", "nonce"],
                    "properties": {
                        "id": { "$ref": "#/components/schemas/Word" },
                        "nonce": { "$ref": "#/components/schemas/Word" },
                    },
                },
                "Problem": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["error"],
                    "properties": { "error": { "type": "string" } },
                },
            },
        },
    })
}

fn echo_operation(n: u16) -> Value {
    json!({
        "operationId": tool_name(n),
        "summary": "Echo a text",
        "description": "Gives the text back, with the nonce of the call and a running number.",
        "parameters": [{
            "name": "account",
            "in": "query",
            "description": "Whom the text is for. The service does not look at it; a gate may.",
            "schema": { "$ref": "#/components/schemas/Word" },
        }],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Asked" } } },
        },
        "responses": responses("Echoed"),
    })
}

fn item_operation() -> Value {
    let parameter = |name: &str, place: &str| {
        json!({
            "name": name,
            "in": place,
            "required": true,
            "schema": { "$ref": "#/components/schemas/Word" },
        })
    };
    json!({
        "operationId": "getItem",
        "summary": "Get an item",
        "description": "Gives the id back, with the nonce of the call.",
        "parameters": [parameter("id", "path"), parameter("nonce", "query")],
        "responses": responses("Item"),
    })
}

fn responses(schema: &str) -> Value {
    let content = |name: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } });
    json!({
        "200": { "description": "What was sent.", "content": content(schema) },
        "400": { "description": "The request does not fit this document.", "content": content("Problem") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::Shape;

    fn check(schema: &str, body: &[u8]) {
        let document = document(2);
        let mut root = json!({ "$ref": format!("#/components/schemas/{schema}") });
        root["components"] = document["components"].clone();
        let validator = jsonschema::draft202012::new(&root).unwrap();
        let body: Value = serde_json::from_slice(body).unwrap();
        assert!(validator.is_valid(&body), "{schema}: {body}");
    }

    #[test]
    fn the_document_is_true_of_each_operation_it_names() {
        let echo = Echo::new(Shape {
            tools: 2,
            padding_bytes: 10,
            ..Shape::default()
        });
        let document = document(2);
        for (path, item) in document["paths"].as_object().unwrap() {
            if item.get("post").is_some() {
                let good = answer(&echo, "POST", path, None, br#"{"text":"t","nonce":"n"}"#).unwrap();
                assert_eq!(good.status, 200, "{path}");
                check("Echoed", &good.body);
                for bad in [&b"{}"[..], b"", br#"{"text":1,"nonce":"n"}"#] {
                    let bad = answer(&echo, "POST", path, None, bad).unwrap();
                    assert_eq!(bad.status, 400, "{path}");
                    check("Problem", &bad.body);
                }
            } else {
                let good = answer(&echo, "GET", "/items/a-1", Some("nonce=n_1"), b"").unwrap();
                assert_eq!(good.status, 200);
                check("Item", &good.body);
            }
        }
        assert_eq!(document["paths"].as_object().unwrap().len(), 3);
        assert!(answer(&echo, "POST", "/echo3", None, br#"{"text":"t","nonce":"n"}"#).is_none());
        assert!(answer(&echo, "DELETE", "/echo", None, b"").is_none());
    }

    #[test]
    fn an_item_gives_back_its_id_and_nonce_and_nothing_that_is_no_word() {
        let echo = Echo::new(Shape::default());
        let get = |path: &str, query| answer(&echo, "GET", path, query, b"").unwrap();
        let good = get("/items/a", Some("x=1&nonce=n"));
        assert_eq!(good.body, br#"{"id":"a","nonce":"n"}"#);
        let long = format!("/items/{}", "a".repeat(65));
        for (path, query) in [
            ("/items/", Some("nonce=n")),
            ("/items/a/b", Some("nonce=n")),
            ("/items/a%2Fb", Some("nonce=n")),
            ("/items/a", None),
            ("/items/a", Some("nonce=")),
            (long.as_str(), Some("nonce=n")),
        ] {
            assert_eq!(get(path, query).status, 400, "{path}");
        }
        assert_eq!(
            get(&format!("/items/{}", "a".repeat(64)), Some("nonce=n")).status,
            200
        );
    }
}
