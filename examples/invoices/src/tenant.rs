//! What is asked of a whole tenant: its members, and the export for auditors.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::service::Service;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantQuery {
    tenant: String,
}

#[derive(Serialize, sqlx::FromRow)]
struct Member {
    tenant: String,
    subject: String,
    role: String,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    customer: String,
    status: String,
    due_date: String,
    currency: String,
    total_minor: i64,
    iban: String,
}

/// `GET /v1/members`
pub(crate) async fn members(
    State(service): State<Arc<Service>>,
    query: Result<Query<TenantQuery>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(query) = query?;
    let members: Vec<Member> =
        sqlx::query_as("select tenant, subject, role from member where tenant = $1 order by subject")
            .bind(&query.tenant)
            .fetch_all(service.pool())
            .await?;
    Ok(Json(json!({ "members": members })))
}

/// `GET /v1/export`
pub(crate) async fn export(
    State(service): State<Arc<Service>>,
    query: Result<Query<TenantQuery>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(query) = query?;
    let rows: Vec<Row> = sqlx::query_as("select * from invoice where tenant = $1 order by id")
        .bind(&query.tenant)
        .fetch_all(service.pool())
        .await?;
    let cells: Value = rows
        .into_iter()
        .map(|row| {
            json!([
                row.id,
                row.customer,
                row.status,
                row.due_date,
                row.currency,
                row.total_minor,
                row.iban
            ])
        })
        .collect();
    Ok(Json(json!({
        "tenant": query.tenant,
        "columns": ["id", "customer", "status", "due_date", "currency", "total_minor", "iban"],
        "rows": cells,
    })))
}
