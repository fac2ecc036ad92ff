//! Invoices: one, a page of them, and the end of one.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::problem::Problem;
use crate::service::Service;

/// Where an invoice stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "kebab-case")]
#[sqlx(rename_all = "kebab-case")]
pub(crate) enum Status {
    Open,
    Paid,
    Overdue,
    Disputed,
}

/// The full record, with much that a question about its status must not show.
#[derive(Serialize, sqlx::FromRow)]
pub(crate) struct Invoice {
    id: String,
    tenant: String,
    customer: String,
    status: Status,
    issued_date: String,
    due_date: String,
    currency: String,
    total_minor: i64,
    paid_minor: i64,
    #[sqlx(try_from = "String")]
    lines: Lines,
    iban: String,
    internal_note: String,
    customer_note: Option<String>,
}

/// The lines of an invoice, kept as JSON in one column because nobody asks for one of them.
#[derive(Serialize)]
struct Lines(Value);

impl TryFrom<String> for Lines {
    type Error = serde_json::Error;
    fn try_from(text: String) -> Result<Self, serde_json::Error> {
        serde_json::from_str(&text).map(Self)
    }
}

#[derive(Serialize, sqlx::FromRow)]
pub(crate) struct Summary {
    id: String,
    tenant: String,
    customer: String,
    status: Status,
    due_date: String,
    currency: String,
    total_minor: i64,
    customer_note: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Page {
    invoices: Vec<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    tenant: String,
    status: Option<Status>,
    limit: Option<u8>,
    cursor: Option<String>,
}

pub(crate) fn unknown(id: &str) -> Problem {
    Problem::Unknown(format!("there is no invoice `{}`", id.escape_default()))
}

/// `GET /v1/invoices/{invoice_id}`
pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Result<Json<Invoice>, Problem> {
    sqlx::query_as(
        "select i.*, (select coalesce(sum(amount_minor), 0) from payment where invoice = i.id) as paid_minor \
         from invoice i where i.id = $1",
    )
    .bind(&id)
    .fetch_optional(service.pool())
    .await?
    .map(Json)
    .ok_or_else(|| unknown(&id))
}

/// `GET /v1/invoices`: pages are ordered by id, and a cursor is the last id of the page before.
pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Page>, Problem> {
    let Query(query) = query?;
    let limit = match query.limit.unwrap_or(20) {
        limit @ 1..=100 => i64::from(limit),
        limit => {
            return Err(Problem::Invalid(format!(
                "limit `{limit}` is out of range; write 1 to 100"
            )));
        }
    };
    // One row more than asked for tells whether there is another page.
    let mut invoices: Vec<Summary> = sqlx::query_as(
        "select id, tenant, customer, status, due_date, currency, total_minor, customer_note from invoice \
         where (tenant = $1 or $2) and ($3 is null or status = $3) and id > $4 order by id limit $5",
    )
    .bind(&query.tenant)
    .bind(service.list_ignores_tenant())
    .bind(query.status)
    .bind(query.cursor.unwrap_or_default())
    .bind(limit + 1)
    .fetch_all(service.pool())
    .await?;
    let more = i64::try_from(invoices.len()).is_ok_and(|rows| rows > limit);
    if more {
        invoices.pop();
    }
    let next_cursor = invoices.last().filter(|_| more).map(|last| last.id.clone());
    Ok(Json(Page {
        invoices,
        next_cursor,
    }))
}

/// `DELETE /v1/invoices/{invoice_id}`
pub(crate) async fn remove(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let gone = sqlx::query("delete from invoice where id = $1")
        .bind(&id)
        .execute(service.pool())
        .await?
        .rows_affected();
    if gone == 0 {
        return Err(unknown(&id));
    }
    Ok(StatusCode::NO_CONTENT)
}
