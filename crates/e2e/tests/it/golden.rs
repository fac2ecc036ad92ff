//! What real documents hold, kind by kind, each with the request that a call becomes, byte for byte, through the built binary
//! at a real service. The rules behind each are tested in the room that reads documents.

use e2e::bench::{Bench, golden};
use serde_json::{Value, json};

const HEAD: &str = "openapi: 3.0.3\ninfo: { title: Kinds, version: \"1\" }\npaths:\n";

/// What comes of a call.
enum Becomes {
    /// Exactly this request.
    Request(&'static str),
    /// A refusal that names this, and no request.
    Refusal(&'static str),
}
use Becomes::{Refusal, Request};

/// Calls the one operation `op` of a document.
async fn check(what: &str, document: &str, calls: Vec<(Value, Becomes)>) {
    let document = if document.contains("paths:") {
        document.to_owned()
    } else {
        format!("{HEAD}{document}")
    };
    let tool = "[upstream.api.tool.op]\noperation = \"op\"\nclass = \"write\"\n\
                consent = { waived_by = \"the tests\", because = \"nothing is real here\", until = \"2099-12-31\" }\n";
    let bench = Bench::new(&document).await.tools(tool);
    for (arguments, becomes) in calls {
        bench.service.forget();
        let said = bench.call("op", arguments.clone()).await;
        let arrived: Vec<String> = bench.service.arrived().iter().map(golden).collect();
        match becomes {
            Request(expected) => assert_eq!(arrived, [expected], "{what}: {arguments}: {said:?}"),
            Refusal(told) => {
                assert_eq!(arrived, [""; 0], "{what}: {arguments}");
                let said = format!("{}{}", said.out, said.err);
                assert!(said.contains(told), "{what}: {arguments}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn lists_and_objects_in_the_query() {
    check(
        "a list that is not exploded",
        "  /articles: { get: { operationId: op, parameters: [{ name: labels, in: query, style: form, explode: false, schema: { type: array, items: { type: string } } }] } }\n",
        vec![
            (json!({"labels": ["a", "b c"]}), Request("GET /base/articles?labels=a,b%20c")),
            (json!({"labels": ["a,b"]}), Request("GET /base/articles?labels=a%2Cb")),
        ],
    )
    .await;
    check(
        "a list that is exploded by default",
        "  /articles: { get: { operationId: op, parameters: [{ name: labels, in: query, schema: { type: array, items: { type: string } } }] } }\n",
        vec![(
            json!({"labels": ["a", "b c"]}),
            Request("GET /base/articles?labels=a&labels=b%20c"),
        )],
    )
    .await;
    check(
        "pipes and spaces, whose default is not to explode",
        "  /reports:\n    get:\n      operationId: op\n      parameters:\n        - { name: ids, in: query, style: pipeDelimited, schema: { type: array, items: { type: integer } } }\n        - { name: cols, in: query, style: spaceDelimited, schema: { type: array, items: { type: string } } }\n",
        vec![(
            json!({"ids": [1, 2], "cols": ["a", "b"]}),
            Request("GET /base/reports?ids=1%7C2&cols=a%20b"),
        )],
    )
    .await;
    check(
        "an object with its parent key",
        "  /orders: { get: { operationId: op, parameters: [{ name: where, in: query, style: deepObject, explode: true, schema: { type: object, properties: { status: { type: string } } } }] } }\n",
        vec![
            (
                json!({"where": {"status": "open"}}),
                Request("GET /base/orders?where%5Bstatus%5D=open"),
            ),
            (json!({"where": {"total": {"gte": 5}}}), Refusal("total")),
        ],
    )
    .await;
    check(
        "what is not given is not sent, and nothing stands for it",
        "  /clients:\n    get:\n      operationId: op\n      parameters:\n        - { name: status, in: query, schema: { type: string, enum: [active, closed] } }\n        - { name: page, in: query, schema: { type: integer, minimum: 1 } }\n        - { name: flag, in: query, allowEmptyValue: true, schema: { type: boolean } }\n",
        vec![
            (json!({}), Request("GET /base/clients")),
            (json!({"page": 2, "flag": true}), Request("GET /base/clients?page=2&flag=true")),
            (json!({"flag": ""}), Request("GET /base/clients?flag=")),
            (json!({"status": ""}), Refusal("status")),
            (json!({"page": null}), Refusal("page")),
        ],
    )
    .await;
    check(
        "a parameter that is described by JSON",
        "  /find: { get: { operationId: op, parameters: [{ name: filter, in: query, content: { application/json: { schema: { type: object, properties: { a: { type: array, items: { type: integer } } } } } } }] } }\n",
        vec![(
            json!({"filter": {"a": [1, 2]}}),
            Request("GET /base/find?filter=%7B%22a%22%3A%5B1%2C2%5D%7D"),
        )],
    )
    .await;
    check(
        "names that no provider takes",
        "  /odd:\n    get:\n      operationId: op\n      parameters:\n        - { name: $filter, in: query, schema: { type: string } }\n        - { name: \"ids[]\", in: query, schema: { type: array, items: { type: integer } } }\n",
        vec![(
            json!({"filter": "a eq 1", "ids": [1, 2]}),
            Request("GET /base/odd?%24filter=a%20eq%201&ids%5B%5D=1&ids%5B%5D=2"),
        )],
    )
    .await;
}

#[tokio::test]
async fn values_in_the_path() {
    check(
        "a list in a segment",
        "  /days/{day}: { put: { operationId: op, parameters: [{ name: day, in: path, required: true, schema: { type: array, items: { type: string } } }] } }\n",
        vec![
            (json!({"day": ["mon", "tue"]}), Request("PUT /base/days/mon,tue")),
            (json!({"day": []}), Refusal("day")),
        ],
    )
    .await;
    check(
        "label and matrix",
        "  /days/{a}/{b}:\n    put:\n      operationId: op\n      parameters:\n        - { name: a, in: path, required: true, style: label, schema: { type: array, items: { type: string } } }\n        - { name: b, in: path, required: true, style: matrix, explode: true, schema: { type: array, items: { type: string } } }\n",
        vec![(
            json!({"a": ["mon", "tue"], "b": ["x", "y"]}),
            Request("PUT /base/days/.mon,tue/;b=x;b=y"),
        )],
    )
    .await;
    check(
        "a value that would be another path",
        "  /files/{name}/meta: { get: { operationId: op, parameters: [{ name: name, in: path, required: true, schema: { type: string } }] } }\n",
        vec![
            (json!({"name": "a b"}), Request("GET /base/files/a%20b/meta")),
            (json!({"name": "../../admin"}), Refusal("name")),
            (json!({"name": ".."}), Refusal("name")),
            (json!({"name": "%2e%2e"}), Refusal("name")),
            (json!({"name": ""}), Refusal("name")),
            (json!({"name": "x?admin=1#"}), Request("GET /base/files/x%3Fadmin%3D1%23/meta")),
            (json!({}), Refusal("name")),
        ],
    )
    .await;
    check(
        "parameters of the path, and by reference",
        "openapi: 3.0.3\npaths:\n  /repos/{owner}:\n    parameters: [{ $ref: '#/components/parameters/Owner' }]\n    get: { operationId: op, parameters: [{ $ref: '#/components/parameters/PerPage' }] }\ncomponents:\n  parameters:\n    Owner: { name: owner, in: path, required: true, schema: { type: string } }\n    PerPage: { name: per_page, in: query, schema: { type: integer, maximum: 100, default: 30 } }\n",
        vec![
            (json!({"owner": "o", "per_page": 100}), Request("GET /base/repos/o?per_page=100")),
            (json!({"owner": "o", "per_page": 101}), Refusal("per_page")),
            (json!({"per_page": 1}), Refusal("owner")),
        ],
    )
    .await;
    check(
        "one name in four places",
        "  /d/{id}:\n    post:\n      operationId: op\n      parameters:\n        - { name: id, in: path, required: true, schema: { type: string } }\n        - { name: id, in: query, schema: { type: string } }\n        - { name: id, in: header, schema: { type: string } }\n      requestBody: { content: { application/json: { schema: { type: object, properties: { id: { type: string } } } } } }\n",
        vec![(
            json!({"path_id": "p", "query_id": "q", "header_id": "h", "body_id": "b"}),
            Request("POST /base/d/p?id=q\ncontent-type: application/json\nid: h\n\n{\"id\":\"b\"}"),
        )],
    )
    .await;
}

#[tokio::test]
async fn headers_and_cookies() {
    check(
        "headers that are the gateway's, the operator's, and the caller's",
        "  /doc:\n    put:\n      operationId: op\n      parameters:\n        - { name: Authorization, in: header, schema: { type: string } }\n        - { name: Accept, in: header, schema: { type: string } }\n        - { name: X-User-Id, in: header, schema: { type: string } }\n        - { name: If-Match, in: header, schema: { type: string } }\n        - { name: sid, in: cookie, schema: { type: string } }\n",
        vec![
            (json!({"If-Match": "\"a\""}), Request("PUT /base/doc\nif-match: \"a\"")),
            (json!({"If-Match": "a\r\nX-Evil: 1"}), Refusal("If-Match")),
            (json!({"Authorization": "Bearer x"}), Refusal("Authorization")),
            (json!({"X-User-Id": "root"}), Refusal("X-User-Id")),
            (json!({"sid": "a; admin=1"}), Refusal("sid")),
        ],
    )
    .await;
}

#[tokio::test]
async fn bodies_of_json() {
    check(
        "a body by reference, with what the server sets left out",
        "openapi: 3.0.3\npaths:\n  /users:\n    post:\n      operationId: op\n      requestBody: { $ref: '#/components/requestBodies/User' }\ncomponents:\n  requestBodies:\n    User: { required: true, content: { application/json: { schema: { $ref: '#/components/schemas/User' } } } }\n  schemas:\n    User: { type: object, required: [id, name], properties: { id: { type: string, readOnly: true }, name: { type: string }, inner: { $ref: '#/components/schemas/User' } } }\n",
        vec![
            (
                json!({"name": "a", "inner": {"name": "b"}}),
                Request("POST /base/users\ncontent-type: application/json\n\n{\"name\":\"a\",\"inner\":{\"name\":\"b\"}}"),
            ),
            (json!({"name": "a", "id": "forged"}), Refusal("id")),
            (json!({}), Refusal("name")),
        ],
    )
    .await;
    check(
        "null in a merge patch, in its declared media type",
        "  /c: { patch: { operationId: op, requestBody: { required: true, content: { application/merge-patch+json: { schema: { type: object, properties: { phone: { type: string, nullable: true }, name: { type: string } } } } } } } }\n",
        vec![
            (
                json!({"phone": null}),
                Request("PATCH /base/c\ncontent-type: application/merge-patch+json\n\n{\"phone\":null}"),
            ),
            (json!({"name": null}), Refusal("name")),
        ],
    )
    .await;
    check(
        "single values and unions keep their types",
        "  /v: { post: { operationId: op, requestBody: { required: true, content: { application/json: { schema: { anyOf: [{ type: string }, { type: integer }] } } } } } }\n",
        vec![
            (
                json!({"body": "true"}),
                Request("POST /base/v\ncontent-type: application/json\n\n\"true\""),
            ),
            (
                json!({"body": 7}),
                Request("POST /base/v\ncontent-type: application/json\n\n7"),
            ),
            (json!({"body": null}), Refusal("body")),
        ],
    )
    .await;
    check(
        "a tag chooses the branch",
        "openapi: 3.0.3\npaths:\n  /pay: { post: { operationId: op, requestBody: { required: true, content: { application/json: { schema: { $ref: '#/components/schemas/Pay' } } } } } }\ncomponents:\n  schemas:\n    Pay: { oneOf: [{ $ref: '#/components/schemas/Card' }, { $ref: '#/components/schemas/Iban' }], discriminator: { propertyName: t, mapping: { card: Card, iban: '#/components/schemas/Iban' } } }\n    Card: { type: object, required: [t, pan], properties: { t: { type: string }, pan: { type: string } } }\n    Iban: { type: object, required: [t, no], properties: { t: { type: string }, no: { type: string } } }\n",
        vec![
            (
                json!({"body": {"t": "card", "pan": "4"}}),
                Request("POST /base/pay\ncontent-type: application/json\n\n{\"t\":\"card\",\"pan\":\"4\"}"),
            ),
            (json!({"body": {"t": "iban", "pan": "4"}}), Refusal("body")),
        ],
    )
    .await;
    check(
        "required of every part, and a bound of version 3.0",
        "  /m: { post: { operationId: op, requestBody: { required: true, content: { application/json: { schema: { allOf: [{ type: object, required: [x], properties: { x: { type: integer, minimum: 0, exclusiveMinimum: true } } }, { type: object, required: [y], properties: { y: { type: string } } }] } } } } } }\n",
        vec![
            (
                json!({"body": {"x": 1, "y": "a"}}),
                Request("POST /base/m\ncontent-type: application/json\n\n{\"x\":1,\"y\":\"a\"}"),
            ),
            (json!({"body": {"x": 0, "y": "a"}}), Refusal("x")),
            (json!({"body": {"x": 1}}), Refusal("y")),
        ],
    )
    .await;
    check(
        "path, query and body, each in its place",
        "  /d/{id}: { post: { operationId: op, parameters: [{ name: id, in: path, required: true, schema: { type: integer } }, { name: dry, in: query, schema: { type: boolean } }], requestBody: { content: { application/json: { schema: { type: object, properties: { user: { type: string } } } } } } } }\n",
        vec![(
            json!({"id": 7, "dry": true, "user": "u"}),
            Request("POST /base/d/7?dry=true\ncontent-type: application/json\n\n{\"user\":\"u\"}"),
        )],
    )
    .await;
}

#[tokio::test]
async fn bodies_of_other_kinds() {
    check(
        "a form, with an object and a list",
        "  /charges: { post: { operationId: op, requestBody: { required: true, content: { application/x-www-form-urlencoded: { schema: { type: object, required: [amount], properties: { amount: { type: integer }, live: { type: boolean }, tags: { type: array, items: { type: string } }, metadata: { type: object, additionalProperties: { type: string } } } }, encoding: { metadata: { style: deepObject, explode: true } } } } } } }\n",
        vec![(
            json!({"amount": 5, "live": true, "tags": ["a", "b c"], "metadata": {"k": "v&w"}}),
            Request(
                "POST /base/charges\ncontent-type: application/x-www-form-urlencoded\n\namount=5&live=true&tags=a&tags=b%20c&metadata%5Bk%5D=v%26w",
            ),
        )],
    )
    .await;
    check(
        "text, and XML as it is",
        "  /t: { post: { operationId: op, requestBody: { required: true, content: { application/xml: { schema: { type: object } } } } } }\n",
        vec![(
            json!({"body": "<a>1</a>"}),
            Request("POST /base/t\ncontent-type: application/xml\n\n<a>1</a>"),
        )],
    )
    .await;
    check(
        "bytes, from strict base64",
        "  /b: { put: { operationId: op, requestBody: { required: true, content: { application/octet-stream: { schema: { type: string, format: binary } } } } } }\n",
        vec![
            (
                json!({"body": "aGVsbG8="}),
                Request("PUT /base/b\ncontent-type: application/octet-stream\n\nhello"),
            ),
            (json!({"body": "aGVsbG8"}), Refusal("body")),
            (json!({"body": "hello!"}), Refusal("body")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_file_in_a_form_of_parts() {
    let document = format!(
        "{HEAD}  /upload: {{ post: {{ operationId: op, requestBody: {{ required: true, content: {{ multipart/form-data: {{ schema: {{ type: object, required: [file], properties: {{ file: {{ type: string, format: binary }}, meta: {{ type: object, properties: {{ a: {{ type: integer }} }} }}, tags: {{ type: array, items: {{ type: string }} }} }} }} }} }} }} }} }}\n"
    );
    let bench = Bench::new(&document).await.tool("op", "op", "");
    let arguments = json!({"file": {"name": "a.txt", "type": "text/plain", "base64": "aGk="}, "meta": {"a": 1}, "tags": ["x", "y"]});
    let schema = bench.definition("op").await["inputSchema"]["properties"]["file"].clone();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    // The names of a file's members are the schema's.
    let mut file = json!({});
    for key in keys {
        let value = match key.as_str() {
            "data" | "base64" | "content" => "aGk=",
            "media_type" | "mediaType" | "type" => "text/plain",
            _ => "a.txt",
        };
        file[key] = json!(value);
    }
    let mut arguments = arguments;
    arguments["file"] = file;
    let request = bench.request("op", arguments).await;
    let boundary = request
        .split_once("boundary=")
        .and_then(|(_, rest)| rest.split_once('\n'))
        .map(|(boundary, _)| boundary.to_owned())
        .unwrap();
    let body = request.split_once("\n\n").unwrap().1.replace(&boundary, "B");
    assert_eq!(
        body.replace("\r\n", "\n"),
        "--B\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\ncontent-type: text/plain\n\nhi\n\
         --B\ncontent-disposition: form-data; name=\"meta\"\ncontent-type: application/json\n\n{\"a\":1}\n\
         --B\ncontent-disposition: form-data; name=\"tags\"\n\nx\n--B\ncontent-disposition: form-data; name=\"tags\"\n\ny\n--B--\n"
    );
}

#[tokio::test]
async fn other_versions_of_documents() {
    check(
        "version 2.0, with its base path left to the operator",
        "swagger: '2.0'\ninfo: { title: Old, version: '1' }\nbasePath: /v9\nconsumes: [application/x-www-form-urlencoded]\npaths:\n  /old/{id}:\n    post:\n      operationId: op\n      parameters:\n        - { name: id, in: path, required: true, type: string }\n        - { name: ids, in: query, type: array, collectionFormat: csv, items: { type: integer } }\n        - { name: note, in: formData, type: string }\n      responses: { 200: { description: ok } }\n",
        vec![(
            json!({"id": "a", "ids": [1, 2], "note": "b c"}),
            Request(
                "POST /base/old/a?ids=1,2\ncontent-type: application/x-www-form-urlencoded\n\nnote=b%20c",
            ),
        )],
    )
    .await;
    check(
        "version 3.2, with its method and its whole query",
        "openapi: 3.2.0\npaths:\n  /find:\n    query:\n      operationId: op\n      parameters: [{ name: q, in: querystring, content: { application/x-www-form-urlencoded: { schema: { type: object, properties: { a: { type: string } } } } } }]\n      requestBody: { content: { application/json: { schema: { type: object, properties: { deep: { type: boolean } } } } } }\n",
        vec![(
            json!({"q": {"a": "b c"}, "deep": true}),
            Request("QUERY /base/find?a=b%20c\ncontent-type: application/json\n\n{\"deep\":true}"),
        )],
    )
    .await;
    check(
        "YAML with numbers as keys and words that are no truth values",
        "openapi: 3.0\ninfo: { title: Yaml, version: 1.10 }\npaths:\n  /y:\n    get:\n      operationId: op\n      parameters: [{ name: on, in: query, schema: { type: string, enum: [no, yes] } }]\n      responses:\n        200: { description: ok }\n",
        vec![
            (json!({"on": "no"}), Request("GET /base/y?on=no")),
            (json!({"on": false}), Refusal("on")),
        ],
    )
    .await;
    check(
        "a path item by reference, and a pointer to anywhere",
        "openapi: 3.1.0\npaths:\n  /here: { $ref: '#/x-items/a~1b' }\nx-items:\n  a/b: { get: { operationId: op, parameters: [{ name: n, in: query, schema: { $ref: '#/x-items/a~1b/x-type' } }] }, x-type: { type: integer } }\n",
        vec![
            (json!({"n": 1}), Request("GET /base/here?n=1")),
            (json!({"n": "a"}), Refusal("n")),
        ],
    )
    .await;
}
