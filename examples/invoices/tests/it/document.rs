//! The document and the router say the same, and the answers fit the document's schemas.

use std::collections::BTreeSet;

use hyper::StatusCode;
use invoices::{OPENAPI, Operation};
use serde_json::{Value, json};

use crate::client::{Answer, Town};

fn document() -> Value {
    serde_saphyr::from_str(OPENAPI).unwrap()
}

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

#[test]
fn the_document_has_exactly_the_operations_that_the_router_has() {
    let document = document();
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                let id = operation["operationId"].as_str().unwrap().to_owned();
                documented.insert((id, method.to_uppercase(), path.clone()));
            }
        }
    }
    let routed = Operation::ALL.map(|operation| {
        (
            operation.id().to_owned(),
            operation.method().to_owned(),
            operation.path().to_owned(),
        )
    });
    assert_eq!(documented, BTreeSet::from(routed));
}

#[test]
fn every_operation_needs_the_service_credential() {
    let document = document();
    assert_eq!(document["security"], json!([{ "service": [] }]));
    for item in document["paths"].as_object().unwrap().values() {
        for method in METHODS {
            assert!(item.get(method).is_none_or(|o| o.get("security").is_none()));
        }
    }
    let scheme = &document["components"]["securitySchemes"]["service"];
    assert_eq!(
        (&scheme["type"], &scheme["scheme"]),
        (&json!("http"), &json!("bearer"))
    );
}

/// The response that the document promises for this status, with a `$ref` followed.
fn promised(document: &Value, operation: Operation, status: StatusCode) -> &Value {
    let method = operation.method().to_lowercase();
    let responses = &document["paths"][operation.path()][method]["responses"];
    let response = &responses[status.as_str()];
    match response.get("$ref") {
        Some(reference) => {
            let pointer = reference.as_str().unwrap().trim_start_matches('#');
            document.pointer(pointer).unwrap()
        }
        None => {
            assert!(response.is_object(), "{operation} does not document {status}");
            response
        }
    }
}

fn check(document: &Value, operation: Operation, answer: &Answer) {
    let response = promised(document, operation, answer.status);
    let Some(content) = response.get("content") else {
        assert_eq!(answer.body, Value::Null, "{operation} answers {}", answer.status);
        return;
    };
    let mut schema = content["application/json"]["schema"].clone();
    // References point into the document, so the schema is read with the document's components beside it.
    schema["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    let faults: Vec<_> = validator
        .iter_errors(&answer.body)
        .map(|fault| format!("{} at {}", fault, fault.instance_path()))
        .collect();
    assert!(
        faults.is_empty(),
        "{operation} {}: {faults:?}\n{}",
        answer.status,
        answer.body
    );
    for name in response
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|headers| headers.keys())
    {
        assert!(
            answer.headers.contains_key(name.as_str()),
            "{operation} sends no {name}"
        );
    }
}

#[tokio::test]
async fn every_operation_answers_as_documented_and_refuses_as_documented() {
    let town = Town::start_with(|options| options.report_duration = std::time::Duration::ZERO).await;
    let document = document();
    let tenant = json!({ "tenant": "north" });
    let order = json!({ "amount_minor": 1, "currency": "EUR", "note": "x" });
    let job = town.send("POST", "/v1/reports", &[], Some(&tenant)).await.body["job_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let done = format!("/v1/reports/{job}");
    let pay = "/v1/invoices/inv-1001/payments";
    let key: &[(&str, &str)] = &[("idempotency-key", "key-0000001")];
    type Row<'a> = (
        Operation,
        &'a str,
        &'a [(&'a str, &'a str)],
        Option<&'a Value>,
        u16,
    );
    let rows: &[Row<'_>] = &[
        (Operation::GetInvoice, "/v1/invoices/inv-1003", &[], None, 200),
        (Operation::GetInvoice, "/v1/invoices/inv-0000", &[], None, 404),
        (
            Operation::ListInvoices,
            "/v1/invoices?tenant=north&limit=2",
            &[],
            None,
            200,
        ),
        (
            Operation::ListInvoices,
            "/v1/invoices?tenant=south",
            &[],
            None,
            200,
        ),
        (Operation::ListInvoices, "/v1/invoices", &[], None, 400),
        (Operation::ListMembers, "/v1/members?tenant=north", &[], None, 200),
        (Operation::ListMembers, "/v1/members", &[], None, 400),
        (
            Operation::ExportInvoices,
            "/v1/export?tenant=north",
            &[],
            None,
            200,
        ),
        (Operation::ExportInvoices, "/v1/export?x=1", &[], None, 400),
        (Operation::StartReport, "/v1/reports", &[], Some(&tenant), 202),
        (Operation::StartReport, "/v1/reports", &[], Some(&order), 400),
        (Operation::GetReport, &done, &[], None, 200),
        (Operation::GetReport, "/v1/reports/none", &[], None, 404),
        (Operation::PayInvoice, pay, key, Some(&order), 201),
        (Operation::PayInvoice, pay, key, Some(&order), 200),
        (Operation::PayInvoice, pay, &[], Some(&order), 400),
        (
            Operation::PayInvoice,
            "/v1/invoices/inv-1002/payments",
            key,
            Some(&order),
            409,
        ),
        (
            Operation::PayInvoice,
            "/v1/invoices/inv-0000/payments",
            key,
            Some(&order),
            404,
        ),
        (Operation::DeleteInvoice, "/v1/invoices/inv-1001", &[], None, 204),
        (Operation::DeleteInvoice, "/v1/invoices/inv-1001", &[], None, 404),
    ];
    let mut answered = BTreeSet::new();
    for (operation, path, headers, body, status) in rows {
        let before = town.running.count(*operation);
        let answer = town.send(operation.method(), path, headers, *body).await;
        assert_eq!(
            answer.status.as_u16(),
            *status,
            "{operation} {path}: {}",
            answer.body
        );
        // The counter moved, so it was this operation that answered and not a neighbour.
        assert_eq!(town.running.count(*operation), before + 1, "{operation} {path}");
        check(&document, *operation, &answer);
        if answer.status.is_success() {
            answered.insert(*operation);
        }
    }
    assert_eq!(answered, BTreeSet::from(Operation::ALL));

    for operation in Operation::ALL {
        let path = operation
            .path()
            .replace("{invoice_id}", "inv-1002")
            .replace("{job_id}", &job);
        let answer = town.send_bare(operation.method(), &path, &[], None).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{operation}");
        check(&document, operation, &answer);
    }
}
