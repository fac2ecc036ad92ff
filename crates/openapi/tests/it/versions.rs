//! Versions beside 3.0 and 3.1: 2.0, which is upgraded with a trace to what was written, and what 3.2 adds.

use openapi::{BlockerCause, Document, DocumentLimits, FindFault};
use serde_json::json;

use crate::support::{blockers, causes, document, request, tool};

fn swagger(body: &str) -> Document {
    let text = format!("swagger: '2.0'\ninfo: {{title: Test, version: '1'}}\n{body}");
    Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap_or_else(|fault| panic!("{fault}"))
}

const SHOP: &str = r##"
host: shop.test
basePath: /v1/
schemes: [https, http]
consumes: [application/json]
produces: [application/json]
securityDefinitions:
  key: {type: apiKey, in: header, name: X-Key}
  login: {type: basic}
  app: {type: oauth2, flow: application, tokenUrl: 'https://id.test/t', scopes: {read: r}}
security: [{key: []}]
paths:
  /carts/{cart}:
    parameters:
      - {$ref: '#/parameters/Cart'}
    post:
      operationId: fillCart
      parameters:
        - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: cols, in: query, type: array, items: {type: string}}
        - {name: ids, in: query, type: array, items: {type: integer, maximum: 9}, collectionFormat: pipes}
        - {name: X-Days, in: header, type: array, items: {type: string}}
        - {name: body, in: body, required: true, schema: {$ref: '#/definitions/Line'}}
      responses: {200: {description: ok, schema: {$ref: '#/definitions/Line'}}}
    get:
      operationId: readCart
      schemes: [https]
      parameters:
        - {name: tabs, in: query, type: array, items: {type: string}, collectionFormat: tsv}
      responses: {200: {$ref: '#/responses/Line'}}
parameters:
  Cart: {name: cart, in: path, required: true, type: integer, format: int64, minimum: 1, exclusiveMinimum: true}
responses:
  Line: {description: ok, schema: {$ref: '#/definitions/Line'}}
definitions:
  Line:
    type: object
    required: [sku]
    properties:
      id: {type: string, readOnly: true}
      sku: {type: string, x-nullable: true}
      parent: {$ref: '#/definitions/Line'}
      discriminator: {type: string}
"##;

#[test]
fn a_document_of_version_2_0_gives_tools_with_all_their_inputs() {
    let document = swagger(SHOP);
    assert_eq!(document.version(), "2.0");
    let tool = tool(&document, "fillCart");
    assert_eq!(
        tool.argument_names,
        [
            "tags",
            "cols",
            "ids",
            "X-Days",
            "cart",
            "sku",
            "parent",
            "discriminator"
        ]
    );
    let properties = &tool.input_schema["properties"];
    assert_eq!(
        properties["cart"],
        json!({"type": "integer", "format": "int64", "exclusiveMinimum": 1})
    );
    assert_eq!(
        properties["ids"]["items"],
        json!({"type": "integer", "maximum": 9})
    );
    assert_eq!(properties["sku"], json!({"type": ["string", "null"]}));
    assert_eq!(tool.input_schema["required"], json!(["cart", "sku"]));
    assert_eq!(
        tool.output_schema.as_ref().unwrap()["properties"]["parent"],
        json!({"$ref": "#/$defs/Line"})
    );
    assert_eq!(
        request(
            &tool,
            json!({"cart": 5, "sku": "a", "tags": ["x", "y z"], "cols": ["a", "b"], "ids": [1, 2], "X-Days": ["mo", "tu"]})
        )
        .unwrap(),
        "POST /carts/5?tags=x&tags=y%20z&cols=a,b&ids=1%7C2\nx-days: mo,tu\ncontent-type: application/json\n\n{\"sku\":\"a\"}"
    );
}

#[test]
fn findings_in_a_document_of_version_2_0_name_the_places_that_were_written() {
    let document = swagger(SHOP);
    assert_eq!(
        causes(&document, "readCart"),
        (
            vec![BlockerCause::ParameterStyle],
            "#/paths/~1carts~1{cart}/get/parameters/0".to_owned()
        )
    );
    let broken = swagger(&SHOP.replace("sku: {type: string,", "sku: {type: text,"));
    assert_eq!(
        causes(&broken, "fillCart"),
        (
            // Once for the field as an argument, once inside its parent.
            vec![BlockerCause::SchemaMalformed; 2],
            "#/definitions/Line/properties/sku/type".to_owned()
        )
    );
    let broken = swagger(&SHOP.replace("type: integer, format: int64", "type: whole, format: int64"));
    assert_eq!(
        causes(&broken, "fillCart"),
        (
            vec![BlockerCause::SchemaMalformed],
            "#/parameters/Cart/type".to_owned()
        )
    );
    let lost = swagger(&SHOP.replace("'#/parameters/Cart'", "'#/parameters/Cast'"));
    assert_eq!(
        causes(&lost, "readCart").0,
        [
            BlockerCause::ParameterStyle,
            BlockerCause::ReferenceUnresolved,
            BlockerCause::PathUndeclaredVariable
        ]
    );
}

#[test]
fn servers_and_schemes_of_version_2_0_are_those_of_3_0() {
    let document = swagger(SHOP);
    let servers = |key: &str| -> Vec<String> {
        let operation = document.find(key).unwrap();
        let servers = document.servers(&operation);
        servers.into_iter().map(|server| server.url).collect()
    };
    assert_eq!(
        servers("fillCart"),
        ["https://shop.test/v1", "http://shop.test/v1"]
    );
    assert_eq!(servers("readCart"), ["https://shop.test/v1"]);
    let schemes = &document.raw()["components"]["securitySchemes"];
    assert_eq!(schemes["login"]["scheme"], "basic");
    assert_eq!(
        schemes["app"]["flows"]["clientCredentials"]["tokenUrl"],
        "https://id.test/t"
    );
}

#[test]
fn what_references_of_version_2_0_repeat_is_bounded() {
    use std::fmt::Write as _;
    let mut text = "paths:\n".to_owned();
    for n in 0..200 {
        let _ = writeln!(
            text,
            "  /p{n}: {{get: {{parameters: [{{$ref: '#/paths/~1p0/x-big'}}]}}{}}}",
            if n == 0 {
                format!(
                    ", x-big: {{name: a, in: query, type: string, enum: {:?}}}",
                    vec!["v"; 300]
                )
            } else {
                String::new()
            }
        );
    }
    let text = format!("swagger: '2.0'\n{text}");
    let read = |nodes_max: usize| {
        let limits = DocumentLimits {
            nodes_max,
            ..DocumentLimits::default()
        };
        Document::read(text.as_bytes(), &limits).map(|document| document.operations().count())
    };
    assert_eq!(read(300_000), Ok(200));
    assert!(read(20_000).is_err());
}

#[test]
fn methods_of_version_3_2_are_counted_and_only_query_is_offered() {
    let body = r##"
paths:
  /find:
    query: {operationId: findThings, requestBody: {content: {application/json: {schema: {type: object, properties: {a: {type: string}}}}}}}
    additionalOperations:
      PURGE: {operationId: purgeThings}
      copy: {operationId: copyThings}
    get: {operationId: getThings}
"##;
    let document = document("3.2.0", body);
    let keys: Vec<String> = document
        .operations()
        .map(|operation| format!("{} {}", operation.key(), operation.pointer()))
        .collect();
    assert_eq!(
        keys,
        [
            "QUERY /find #/paths/~1find/query",
            "PURGE /find #/paths/~1find/additionalOperations/PURGE",
            "copy /find #/paths/~1find/additionalOperations/copy",
            "GET /find #/paths/~1find/get",
        ]
    );
    let query = tool(&document, "QUERY /find");
    assert!(query.safe_method && query.idempotent);
    assert_eq!(
        request(&query, json!({"a": "x"})).unwrap(),
        "QUERY /find\ncontent-type: application/json\n\n{\"a\":\"x\"}"
    );
    for key in ["purgeThings", "PURGE /find", "copy /find"] {
        let blockers = blockers(&document, key);
        assert_eq!(blockers[0].cause, BlockerCause::OperationMethod, "{key}");
    }
    // Names of methods have case.
    assert!(matches!(
        document.find("purge /find"),
        Err(FindFault::Unknown { .. })
    ));
    // Other versions have neither.
    let older = crate::support::document("3.1.0", body);
    assert_eq!(older.operations().count(), 1);
}
