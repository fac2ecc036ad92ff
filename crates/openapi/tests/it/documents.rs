//! Documents: what is read, which operations are in it, and which one a key names.

use openapi::{BlockerCause, Document, DocumentFault, DocumentLimits, FindFault};

use crate::support::{causes, document, tool};

fn read(text: &str) -> Result<Document, DocumentFault> {
    Document::read(text.as_bytes(), &DocumentLimits::default())
}

#[test]
fn versions_2_0_to_3_2_are_read_and_every_other_is_named() {
    for version in ["3.0.0", "3.0.4", "3.1.0", "3.1.1", "3.0", "'3.1'", "3.2.0", "3.2"] {
        let document = document(version, "paths: {}");
        assert_eq!(document.version(), version.trim_matches('\''));
        assert_eq!(document.title(), Some("Test"));
    }
    for (text, field, found) in [
        ("openapi: 3.3.0\npaths: {}", "openapi", "3.3.0"),
        ("openapi: 4.0.0", "openapi", "4.0.0"),
        ("openapi: 3.10.0", "openapi", "3.10.0"),
        // Not 3.1, although the number is.
        ("info: {}\nopenapi: 3.10\npaths: {}", "openapi", "3.10"),
        ("openapi: '3.0.'", "openapi", "3.0."),
        ("openapi: [3]", "openapi", "?"),
        ("swagger: '1.2'", "swagger", "1.2"),
        ("{\"swagger\": \"2.0\", \"openapi\": \"3.0.0\"}", "swagger", "2.0"),
    ] {
        let fault = read(text).unwrap_err();
        assert_eq!(
            fault,
            DocumentFault::Version {
                field: if field == "openapi" { "openapi" } else { "swagger" },
                found: found.to_owned()
            },
            "{text}"
        );
        assert!(fault.to_string().contains(found) && fault.to_string().contains("2.0, 3.0, 3.1 and 3.2"));
    }
    for text in ["", "[]", "just text", "{}", "info: {}", "null"] {
        assert_eq!(read(text).unwrap_err(), DocumentFault::NoVersion, "{text:?}");
    }
}

#[test]
fn the_digest_is_of_the_bytes_as_they_are() {
    let one = read("openapi: 3.1.0\npaths: {}\n").unwrap();
    let same = read("openapi: 3.1.0\npaths: {}\n").unwrap();
    let other = read("openapi: 3.1.0\npaths: {} \n").unwrap();
    assert_eq!(one.digest(), same.digest());
    assert_ne!(one.digest(), other.digest());
    assert_eq!(one.raw(), other.raw());
}

const SHOP: &str = r##"
paths:
  /carts:
    get: {operationId: listCarts}
    post: {operationId: openCart}
    summary: not an operation
    x-get: {operationId: nor this}
  /carts/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    delete: {}
    get: not an object
  /shared: {$ref: '#/components/pathItems/Shared'}
  /far: {$ref: './far.yaml'}
  /loop: {$ref: '#/paths/~1loop'}
  /none: null
  x-internal: {get: {operationId: hidden}}
components:
  pathItems:
    Shared:
      put: {operationId: putShared}
      get: {operationId: getShared}
"##;

#[test]
fn every_operation_is_enumerated_also_behind_references_and_malformed_ones() {
    let document = document("3.1.0", SHOP);
    let found: Vec<String> = document
        .operations()
        .map(|operation| format!("{} {}", operation.key(), operation.pointer()))
        .collect();
    assert_eq!(
        found,
        [
            "GET /carts #/paths/~1carts/get",
            "POST /carts #/paths/~1carts/post",
            "DELETE /carts/{id} #/paths/~1carts~1{id}/delete",
            "GET /carts/{id} #/paths/~1carts~1{id}/get",
            "PUT /shared #/components/pathItems/Shared/put",
            "GET /shared #/components/pathItems/Shared/get",
        ]
    );
    let unreadable: Vec<_> = document
        .unreadable()
        .iter()
        .map(|blocker| (blocker.cause, blocker.pointer.as_str()))
        .collect();
    assert_eq!(
        unreadable,
        [
            (BlockerCause::ReferenceExternal, "#/paths/~1far/$ref"),
            (BlockerCause::ReferenceCyclic, "#/paths/~1loop/$ref"),
            (BlockerCause::OperationMalformed, "#/paths/~1none"),
        ]
    );
}

#[test]
fn a_bad_operation_never_harms_another() {
    let document = document("3.1.0", SHOP);
    assert_eq!(
        causes(&document, "GET /carts/{id}").0,
        [BlockerCause::OperationMalformed]
    );
    let deleted = tool(&document, "DELETE /carts/{id}");
    assert_eq!(deleted.argument_names, ["id"]);
    assert!(deleted.idempotent && !deleted.safe_method);
    let listed = tool(&document, "listCarts");
    assert!(listed.idempotent && listed.safe_method);
    let opened = tool(&document, "openCart");
    assert!(!opened.idempotent && !opened.safe_method);
}

#[test]
fn an_operation_is_found_by_id_or_by_method_and_path() {
    let document = document("3.1.0", SHOP);
    for key in ["putShared", "PUT /shared", "put  /shared ", " putShared"] {
        assert_eq!(
            document.find(key).unwrap().pointer(),
            "#/components/pathItems/Shared/put",
            "{key}"
        );
    }
    for (key, near) in [
        ("listCart", vec!["listCarts"]),
        ("LISTCARTS", vec!["listCarts"]),
        ("GET /cart", vec!["GET /carts"]),
        ("nothing like it", vec![]),
        ("", vec![]),
        ("hidden", vec![]),
    ] {
        match document.find(key) {
            Err(FindFault::Unknown { near: found, .. }) if near.is_empty() => {
                assert!(found.is_empty(), "{key}: {found:?}")
            }
            Err(FindFault::Unknown { near: found, .. }) => assert_eq!(found[0], near[0], "{key}"),
            other => panic!("{key}: {other:?}"),
        }
    }
    let fault = document.find("listCart").unwrap_err().to_string();
    assert!(fault.contains("did you mean `listCarts`"), "{fault}");
}

#[test]
fn an_id_that_stands_twice_names_both_places() {
    let document = document(
        "3.0.3",
        "paths:\n  /a: {get: {operationId: dup}}\n  /b: {get: {operationId: dup}}\n  /c: {get: {operationId: GET /a}}\n",
    );
    let fault = document.find("dup").unwrap_err();
    assert_eq!(
        fault,
        FindFault::Ambiguous {
            key: "dup".to_owned(),
            pointers: vec!["#/paths/~1a/get".to_owned(), "#/paths/~1b/get".to_owned()]
        }
    );
    assert!(fault.to_string().contains("#/paths/~1a/get and #/paths/~1b/get"));
    assert_eq!(document.find("GET /b").unwrap().path(), "/b");
    // An id that is written like a method and a path is not preferred to that path.
    assert!(matches!(
        document.find("GET /a"),
        Err(FindFault::Ambiguous { .. })
    ));
}

#[test]
fn servers_and_security_are_those_nearest_to_the_operation() {
    let document = document(
        "3.0.3",
        r##"
servers: [{url: 'https://{region}.api.test/v1', variables: {region: {default: eu}}}]
security: [{bearer: []}]
paths:
  /a: {get: {}}
  /b:
    servers: [{url: https://b.test}]
    get: {}
    post: {servers: [{url: /relative}], security: []}
    put: {security: [{bearer: [read]}, {key: [], app: []}, {}]}
components:
  securitySchemes:
    bearer: {type: http, scheme: bearer}
    key: {type: apiKey, in: header, name: X-Key}
"##,
    );
    let urls = |key: &str| -> Vec<String> {
        let operation = document.find(key).unwrap();
        document
            .servers(&operation)
            .into_iter()
            .map(|server| server.url)
            .collect()
    };
    assert_eq!(urls("GET /a"), ["https://{region}.api.test/v1"]);
    assert_eq!(urls("GET /b"), ["https://b.test"]);
    assert_eq!(urls("POST /b"), ["/relative"]);
    let operation = document.find("GET /a").unwrap();
    assert_eq!(
        document.servers(&operation)[0].variables,
        [("region".to_owned(), "eu".to_owned())]
    );

    let security = |key: &str| {
        let security = document.security(&document.find(key).unwrap());
        let alternatives: Vec<Vec<String>> = security
            .alternatives
            .iter()
            .map(|all| {
                all.iter()
                    .map(|one| format!("{} {:?} {:?}", one.scheme, one.scopes, one.kind.as_deref()))
                    .collect()
            })
            .collect();
        (security.is_own, security.is_open(), alternatives)
    };
    let bearer = "bearer [] Some(\"http bearer\")".to_owned();
    assert_eq!(security("GET /a"), (false, false, vec![vec![bearer]]));
    assert_eq!(security("POST /b"), (true, true, vec![]));
    assert_eq!(
        security("PUT /b"),
        (
            true,
            true,
            vec![
                vec!["bearer [\"read\"] Some(\"http bearer\")".to_owned()],
                vec![
                    "key [] Some(\"apiKey in header X-Key\")".to_owned(),
                    "app [] None".to_owned()
                ],
                vec![],
            ]
        )
    );
}

#[test]
fn an_operations_digest_moves_with_everything_that_it_reaches_and_with_nothing_else() {
    let text = r##"
security: [{key: []}]
paths:
  /a/{id}:
    parameters: [{$ref: '#/components/parameters/Id'}]
    post:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}
      responses: {'200': {$ref: '#/components/responses/Ok'}}
  /b: {get: {summary: other}}
components:
  parameters: {Id: {name: id, in: path, required: true, schema: {type: string}}}
  schemas:
    A: {type: object, properties: {b: {$ref: '#/components/schemas/B'}, a: {$ref: '#/components/schemas/A'}}}
    B: {type: string, maxLength: 9223372036854775806}
    Unused: {type: string}
  responses: {Ok: {description: fine}}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    spare: {type: http, scheme: basic}
"##;
    let digest_in = |version: &str, text: &str| {
        let document = document(version, text);
        let operation = document.find("POST /a/{id}").unwrap();
        document.operation_digest(&operation).unwrap()
    };
    let digest = |text: &str| digest_in("3.0.3", text);
    let before = digest(text);
    for (from, to) in [
        (
            "name: id, in: path, required: true, schema: {type: string}",
            "name: id, in: path, required: true, schema: {type: integer}",
        ),
        ("9223372036854775806", "9223372036854775807"),
        ("description: fine", "description: changed"),
        ("name: X-Key", "name: X-Other"),
        ("security: [{key: []}]", "security: [{key: [], spare: []}]"),
        ("    post:\n", "    post:\n      x-vendor: 1\n"),
        (
            "a: {$ref: '#/components/schemas/A'}",
            "a: {$ref: '#/components/schemas/Unused'}",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        assert_ne!(digest(&text.replace(from, to)), before, "{from} -> {to}");
    }
    for (from, to) in [
        ("summary: other", "summary: changed"),
        ("Unused: {type: string}", "Unused: {type: integer}"),
        ("scheme: basic", "scheme: digest"),
        ("type: object, properties", "properties"),
    ] {
        let changed = text.replace(from, to);
        assert_eq!(
            digest(&changed) == before,
            from != "type: object, properties",
            "{from} -> {to}"
        );
    }
    // The order of keys is no change.
    let reordered = text.replace("in: path, required: true", "required: true, in: path");
    assert_eq!(digest(&reordered), before);
    assert_ne!(digest_in("3.1.0", text), before);
}
