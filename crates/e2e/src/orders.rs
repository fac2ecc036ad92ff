//! A small service and its configuration, for tests that need a tool of each class and nothing of the worked example.
//!
//! The service itself is a [`Service`](crate::service::Service) or a [`Raw`](crate::raw::Raw) that answers as a test
//! says.

use serde_json::{Value, json};

use crate::house::House;
use crate::service::{Arrived, json as answer};

/// The document.
pub const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Orders, version: "1" }
paths:
  /orders:
    get:
      operationId: listOrders
      parameters:
        - { name: tenant, in: query, schema: { type: string } }
      responses:
        "200":
          description: Orders.
          content:
            application/json:
              schema:
                type: object
                required: [orders]
                properties:
                  orders: { type: array, items: { $ref: "#/components/schemas/Order" } }
  /orders/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: string } }
    get:
      operationId: readOrder
      responses:
        "200":
          description: An order.
          content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } }
    delete:
      operationId: dropOrder
      responses: { "204": { description: Gone. } }
  /orders/{id}/notes:
    parameters:
      - { name: id, in: path, required: true, schema: { type: string } }
    post:
      operationId: addNote
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [text]
              properties: { text: { type: string } }
      responses:
        "201":
          description: A note.
          content:
            application/json:
              schema: { type: object, properties: { note: { type: string } } }
  /report:
    get:
      operationId: report
      parameters:
        - { name: about, in: query, schema: { type: string } }
        - { name: year, in: query, schema: { type: integer } }
      responses:
        "200": { description: A text. }
components:
  schemas:
    Order:
      type: object
      required: [id]
      properties:
        id: { type: string }
        tenant: { type: string }
        note: { type: string }
"##;

/// The configuration. Tests change single lines of it.
pub const CONFIG: &str = r#"
store = "sqlite:tollhouse.db"

[stdio]
caller = "ada"

[caller.ada]
tenant = "north"
roles = ["member"]

[caller.bob]
tenant = "south"
roles = ["member"]

[source.owners]
file = "owners.json"

[upstream.orders]
openapi = "orders.yaml"
destination = "env:ORDERS_URL"
network = { allow = ["127.0.0.1/32"] }
credential = { bearer = "env:ORDERS_TOKEN" }

[upstream.orders.tool.read]
operation = "readOrder"
class = "read"
resource = { type = "Order", id = "$.id" }
owner = { source = "owners" }

[upstream.orders.tool.list]
operation = "listOrders"
class = "read"
resource = { type = "OrderList", scope = "tenant" }
scope = { argument = "tenant" }
rows = { items = "$.orders", owner = "$.tenant" }

[upstream.orders.tool.report]
operation = "report"
class = "read"

[upstream.orders.tool.note]
operation = "addNote"
class = "write"
approval.mutations = { by = "the tests", because = "nothing is real here", until = "2099-12-31", for = ["everyone"] }
resource = { type = "Order", id = "$.id" }
owner = { source = "owners" }
consent = { waived_by = "Grace Hopper", because = "a test", until = "2199-12-31" }

[upstream.orders.tool.drop]
operation = "dropOrder"
class = "destructive"
approval.mutations = { by = "the tests", because = "nothing is real here", until = "2099-12-31", for = ["everyone"] }
resource = { type = "Order", id = "$.id" }
owner = { source = "owners" }
consent = { waived_by = "Grace Hopper", because = "a test", until = "2199-12-31" }
"#;

/// The rules: everybody may do everything with what is their own.
pub const POLICY: &str = r#"
@id("own-orders")
permit (principal is Caller, action in Action::"upstream:orders", resource is Order)
when { resource.owner == principal.tenant };

@id("own-lists")
permit (principal is Caller, action == Action::"orders_list", resource is OrderList)
when { resource.owner == principal.tenant };

@id("everybody-reports")
permit (principal is Caller, action == Action::"orders_report", resource);
"#;

/// Who owns what.
pub const OWNERS: &str = r#"{"Order": {"o-1": "north", "o-2": "south"}}"#;

/// What the gate says to the service.
pub const CREDENTIAL: &str = "credential-of-the-orders-service";

/// A house in front of a service at this URL.
pub fn house(url: &str) -> House {
    House::new()
        .with_file("tollhouse.toml", CONFIG)
        .with_file("orders.yaml", DOCUMENT)
        .with_file("policy/orders.cedar", POLICY)
        .with_file("owners.json", OWNERS)
        .with_variable("ORDERS_URL", url)
        .with_variable("ORDERS_TOKEN", CREDENTIAL)
}

/// The usual answers of the service.
pub fn usual(arrived: &Arrived) -> axum::response::Response {
    let path = arrived.target.split('?').next().unwrap_or_default();
    match (arrived.method.as_str(), path) {
        ("GET", "/orders") => answer(
            200,
            &json!({"orders": [{"id": "o-1", "tenant": "north"}, {"id": "o-2", "tenant": "south"}]}),
        ),
        ("GET", "/report") => answer(200, &json!({"all": "well"})),
        ("GET", _) => answer(200, &order()),
        ("POST", _) => answer(201, &json!({"note": "n-1"})),
        ("DELETE", _) => axum::response::Response::builder()
            .status(204)
            .body(axum::body::Body::empty())
            .unwrap(),
        _ => answer(405, &json!({})),
    }
}

/// The one order that there is.
pub fn order() -> Value {
    json!({"id": "o-1", "tenant": "north", "note": "two chairs"})
}
