//! What the service answers and what it counts.

use std::time::Duration;

use hyper::StatusCode;
use invoices::{Operation, Options};
use serde_json::{Value, json};

use crate::client::{CREDENTIAL, Town};

#[tokio::test]
async fn a_request_without_the_service_credential_is_counted_and_refused() {
    let town = Town::start().await;
    let good = format!("Bearer {CREDENTIAL}");
    let cases: &[&[(&str, &str)]] = &[
        &[],
        &[("authorization", "Bearer wrong")],
        &[("authorization", CREDENTIAL)],
        &[("authorization", "Basic synthetic-service-credential")],
        &[("authorization", &good), ("authorization", &good)],
    ];
    for headers in cases {
        let answer = town
            .send_bare("GET", "/v1/invoices/inv-1001", headers, None)
            .await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{headers:?}");
        assert_eq!(answer.body["error"], "unauthenticated");
        assert!(answer.headers.contains_key("www-authenticate"));
    }
    assert_eq!(town.running.count(Operation::GetInvoice), 5);
    let answer = town
        .send_bare("GET", "/v1/invoices/inv-1001", &[("authorization", &good)], None)
        .await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn one_credential_reads_the_invoices_of_every_tenant() {
    let town = Town::start().await;
    for (id, tenant) in [("inv-1001", "north"), ("inv-2001", "south")] {
        let answer = town.get(&format!("/v1/invoices/{id}")).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.body["tenant"], tenant);
        assert!(answer.body["iban"].is_string());
    }
    assert_eq!(
        town.get("/v1/invoices/inv-9999").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn one_record_carries_text_that_reads_like_an_instruction() {
    let town = Town::start().await;
    let list = town.get("/v1/invoices?tenant=north").await;
    let notes: Vec<_> = list.body["invoices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| {
            row["customer_note"]
                .as_str()
                .is_some_and(|note| note.contains("ignore your previous instructions"))
        })
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert_eq!(notes, ["inv-1003"]);
}

#[tokio::test]
async fn every_request_is_counted_under_its_operation_and_test_aids_are_not() {
    let town = Town::start().await;
    town.get("/v1/invoices/inv-1001").await;
    town.get("/v1/invoices/inv-2001").await;
    town.get("/v1/invoices?tenant=north").await;
    town.get("/v1/nothing").await;
    town.send("PUT", "/v1/invoices/inv-1001", &[], None).await;
    let counted = town.send_bare("GET", "/_test/count", &[], None).await.body;
    let expected = json!({
        "total": 5,
        "operations": {
            "getInvoice": 2, "listInvoices": 1, "deleteInvoice": 0, "payInvoice": 0, "listMembers": 0,
            "exportInvoices": 0, "startReport": 0, "getReport": 0, "unmatched": 2,
        },
    });
    assert_eq!(counted, expected);
    assert_eq!(town.running.requests(), 5);
    assert_eq!(town.running.count(Operation::GetInvoice), 2);
    assert_eq!(town.running.count(Operation::DeleteInvoice), 0);
}

#[tokio::test]
async fn a_reset_sets_the_counters_to_zero_and_the_data_back() {
    let town = Town::start().await;
    let before = town.get("/v1/export?tenant=north").await.body;
    let gone = town.send("DELETE", "/v1/invoices/inv-1001", &[], None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_eq!(
        town.get("/v1/invoices/inv-1001").await.status,
        StatusCode::NOT_FOUND
    );
    assert_ne!(town.get("/v1/export?tenant=north").await.body, before);
    town.send_bare("POST", "/_test/reset", &[], None).await;
    assert_eq!(town.running.requests(), 0);
    assert_eq!(town.get("/v1/export?tenant=north").await.body, before);
}

#[tokio::test]
async fn pages_together_hold_each_invoice_of_the_tenant_once() {
    let town = Town::start().await;
    for limit in [1, 2, 4, 5, 100] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/invoices?tenant=north&limit={limit}{cursor}");
            let page = town.get(&path).await.body;
            let rows = page["invoices"].as_array().unwrap();
            assert!(rows.len() <= limit && !rows.is_empty());
            for row in rows {
                assert_eq!(row["tenant"], "north");
                seen.push(row["id"].as_str().unwrap().to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let expected = ["inv-1001", "inv-1002", "inv-1003", "inv-1004", "inv-1005"];
        assert_eq!(seen, expected, "limit {limit}");
    }
}

#[tokio::test]
async fn a_list_is_filtered_by_status_and_refuses_what_the_document_does_not_name() {
    let town = Town::start().await;
    let overdue = town.get("/v1/invoices?tenant=north&status=overdue").await.body;
    assert_eq!(overdue["invoices"].as_array().unwrap().len(), 1);
    for query in [
        "",
        "?status=open",
        "?tenant=north&status=late",
        "?tenant=north&limit=0",
        "?tenant=north&limit=101",
        "?tenant=north&limit=many",
        "?tenant=north&tenants=south",
    ] {
        let answer = town.get(&format!("/v1/invoices{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.body["error"], "invalid", "{query}");
    }
}

#[tokio::test]
async fn the_faulty_list_gives_rows_of_other_tenants_and_the_sound_one_does_not() {
    let tenants = async |town: &Town| -> Vec<String> {
        let page = town.get("/v1/invoices?tenant=north").await.body;
        let mut tenants: Vec<_> = page["invoices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["tenant"].as_str().unwrap().to_owned())
            .collect();
        tenants.dedup();
        tenants
    };
    assert_eq!(tenants(&Town::start().await).await, ["north"]);
    let faulty = Town::start_with(|options| options.list_ignores_tenant = true).await;
    assert_eq!(tenants(&faulty).await, ["north", "south"]);
}

#[tokio::test]
async fn a_payment_is_booked_once_for_each_key_however_often_it_is_sent() {
    let town = Town::start().await;
    let order = json!({ "amount_minor": 9_000, "currency": "EUR", "note": "first half" });
    let first = town.pay("inv-1001", "key-0000001", &order).await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(first.body["owed_minor"], 10_000);
    assert_eq!(first.body["invoice_status"], "open");

    let again = town.pay("inv-1001", "key-0000001", &order).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.body, first.body);
    assert_eq!(town.get("/v1/invoices/inv-1001").await.body["paid_minor"], 9_000);

    let other = json!({ "amount_minor": 9_001, "currency": "EUR" });
    let conflict = town.pay("inv-1001", "key-0000001", &other).await;
    assert_eq!(conflict.status, StatusCode::CONFLICT);

    let rest = json!({ "amount_minor": 10_000, "currency": "EUR" });
    let last = town.pay("inv-1001", "key-0000002", &rest).await;
    assert_eq!(last.body["invoice_status"], "paid");
    let invoice = town.get("/v1/invoices/inv-1001").await.body;
    assert_eq!(
        (&invoice["status"], &invoice["paid_minor"]),
        (&json!("paid"), &json!(19_000))
    );
}

#[tokio::test]
async fn many_requests_with_one_key_at_once_book_one_payment() {
    let town = Town::start().await;
    let order = json!({ "amount_minor": 100, "currency": "EUR" });
    let pay = || town.pay("inv-1001", "key-0000001", &order);
    let answers = tokio::join!(pay(), pay(), pay(), pay(), pay(), pay());
    let statuses = [
        answers.0.status,
        answers.1.status,
        answers.2.status,
        answers.3.status,
        answers.4.status,
        answers.5.status,
    ];
    let created = statuses
        .iter()
        .filter(|status| **status == StatusCode::CREATED)
        .count();
    assert_eq!(created, 1, "{statuses:?}");
    assert_eq!(town.get("/v1/invoices/inv-1001").await.body["paid_minor"], 100);
}

#[tokio::test]
async fn a_payment_that_does_not_fit_books_nothing() {
    let town = Town::start().await;
    let order = |amount: i64, currency: &str| json!({ "amount_minor": amount, "currency": currency });
    let long = json!({ "amount_minor": 1, "currency": "EUR", "note": "x".repeat(201) });
    let foreign = json!({ "amount_minor": 1, "currency": "EUR", "iban": "DE00" });
    let large = json!({ "amount_minor": 1, "currency": "EUR", "note": "x".repeat(20_000) });
    let cases: &[(&str, &str, Value, StatusCode)] = &[
        ("inv-9999", "key-0000001", order(1, "EUR"), StatusCode::NOT_FOUND),
        ("inv-1001", "short", order(1, "EUR"), StatusCode::BAD_REQUEST),
        (
            "inv-1001",
            "key 0000001",
            order(1, "EUR"),
            StatusCode::BAD_REQUEST,
        ),
        (
            "inv-1001",
            "key-0000001",
            order(0, "EUR"),
            StatusCode::BAD_REQUEST,
        ),
        (
            "inv-1001",
            "key-0000001",
            order(-5, "EUR"),
            StatusCode::BAD_REQUEST,
        ),
        ("inv-1001", "key-0000001", order(1, "GBP"), StatusCode::CONFLICT),
        (
            "inv-1001",
            "key-0000001",
            order(19_001, "EUR"),
            StatusCode::CONFLICT,
        ),
        ("inv-1002", "key-0000001", order(1, "EUR"), StatusCode::CONFLICT),
        ("inv-1001", "key-0000001", long, StatusCode::BAD_REQUEST),
        ("inv-1001", "key-0000001", foreign, StatusCode::BAD_REQUEST),
        ("inv-1001", "key-0000001", large, StatusCode::BAD_REQUEST),
    ];
    for (id, key, body, expected) in cases {
        let answer = town.pay(id, key, body).await;
        assert_eq!(answer.status, *expected, "{id} {key} {body}");
    }
    assert_eq!(town.get("/v1/invoices/inv-1001").await.body["paid_minor"], 0);
    assert_eq!(
        town.pay("inv-1001", "key-0000001", &order(19_000, "EUR"))
            .await
            .status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn a_report_runs_for_its_time_and_then_has_totals() {
    let order = json!({ "tenant": "north" });
    for (duration, status) in [(Duration::from_secs(3_600), "running"), (Duration::ZERO, "done")] {
        let town = Town::start_with(|options| options.report_duration = duration).await;
        let started = town.send("POST", "/v1/reports", &[], Some(&order)).await;
        assert_eq!(started.status, StatusCode::ACCEPTED);
        let location = started.headers["location"].to_str().unwrap();
        assert_eq!(
            location,
            format!("/v1/reports/{}", started.body["job_id"].as_str().unwrap())
        );
        let job = town.get(location).await.body;
        assert_eq!(job["status"], status);
        if status == "done" {
            assert_eq!(job["progress_percent"], 100);
            assert_eq!(
                job["totals"][0],
                json!({ "currency": "EUR", "invoices": 4, "total_minor": 325_200 })
            );
        } else {
            assert_eq!(job["progress_percent"], 0);
            assert!(job.get("totals").is_none());
        }
    }
}

#[tokio::test]
async fn the_service_keeps_a_thousand_jobs_and_refuses_one_more() {
    let town = Town::start().await;
    let pool = open(&town).await;
    // 999 jobs, written beside the service, because a thousand requests would say no more.
    sqlx::query(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 999) \
         insert into report (id, tenant, started_millis) select 'job-' || i, 'north', 0 from n",
    )
    .execute(&pool)
    .await
    .unwrap();
    let order = json!({ "tenant": "north" });
    let start = || town.send("POST", "/v1/reports", &[], Some(&order));
    assert_eq!(start().await.status, StatusCode::ACCEPTED);
    let refused = start().await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.body["error"], "full");
}

#[tokio::test]
async fn a_gate_can_read_owners_and_members_from_the_file_while_the_service_runs() {
    let town = Town::start().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(town.running.database_path())
        .read_only(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let owner = async |id: &str| -> Option<String> {
        sqlx::query_scalar("select tenant from invoice where id = $1")
            .bind(id)
            .fetch_optional(&pool)
            .await
            .unwrap()
    };
    let member = async |tenant: &str, subject: &str| -> bool {
        sqlx::query_scalar("select count(*) > 0 from member where tenant = $1 and subject = $2")
            .bind(tenant)
            .bind(subject)
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    assert_eq!(owner("inv-1001").await.as_deref(), Some("north"));
    assert_eq!(owner("inv-2001").await.as_deref(), Some("south"));
    assert_eq!(owner("inv-9999").await, None);
    for (tenant, subject, expected) in [
        ("north", "ada", true),
        ("north", "ines", true),
        ("south", "bob", true),
        ("north", "bob", false),
        ("north", "eve", false),
        ("south", "ada", false),
    ] {
        assert_eq!(member(tenant, subject).await, expected, "{tenant} {subject}");
    }
    assert_eq!(town.running.requests(), 0);
}

#[tokio::test]
async fn a_second_start_on_the_same_file_fills_it_afresh() {
    let town = Town::start().await;
    town.send("DELETE", "/v1/invoices/inv-1001", &[], None).await;
    let path = town.running.database_path().to_owned();
    let Town { running, folder } = town;
    running.stop().await.unwrap();
    let running = invoices::start(Options::new(path, CREDENTIAL)).await.unwrap();
    let town = Town { running, folder };
    assert_eq!(town.get("/v1/invoices/inv-1001").await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_service_refuses_to_start_where_it_must_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("invoices.db");
    let why = async |options: Options| -> String {
        match invoices::start(options).await {
            Ok(_) => panic!("it started"),
            Err(error) => format!("{error:#}"),
        }
    };

    let mut public = Options::new(&file, CREDENTIAL);
    public.listen = "0.0.0.0:0".parse().unwrap();
    assert!(why(public).await.contains("`0.0.0.0:0` is not loopback"));

    let empty = why(Options::new(&file, "")).await;
    assert!(empty.contains("credential is empty"), "{empty}");

    let nowhere = why(Options::new(folder.path().join("no/such.db"), CREDENTIAL)).await;
    assert!(nowhere.contains("its folder must exist"), "{nowhere}");

    // Somebody else's database, which also has a table called `invoice`.
    let foreign = folder.path().join("foreign.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&foreign)
        .create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("create table invoice (id text)")
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("insert into invoice values ('precious')")
        .execute(&pool)
        .await
        .unwrap();
    let refused = why(Options::new(&foreign, CREDENTIAL)).await;
    assert!(refused.contains("is a database of something else"), "{refused}");
    let kept: i64 = sqlx::query_scalar("select count(*) from invoice")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, 1);
}

async fn open(town: &Town) -> sqlx::SqlitePool {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(town.running.database_path());
    sqlx::SqlitePool::connect_with(options).await.unwrap()
}
