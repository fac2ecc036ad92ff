//! Reports: a job that is started, asked after, and done some time later, whether anybody listens or not.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::problem::Problem;
use crate::service::Service;

/// Jobs that the service keeps. It never forgets one, so that a result can be fetched late.
const JOBS_MAX: i64 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    tenant: String,
}

#[derive(Serialize)]
pub(crate) struct Report {
    job_id: String,
    tenant: String,
    status: &'static str,
    progress_percent: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<Vec<Total>>,
}

#[derive(Serialize, sqlx::FromRow)]
pub(crate) struct Total {
    currency: String,
    invoices: i64,
    total_minor: i64,
}

/// `POST /v1/reports`
pub(crate) async fn start(
    State(service): State<Arc<Service>>,
    order: Result<Json<Order>, JsonRejection>,
) -> Result<impl IntoResponse, Problem> {
    let Json(order) = order?;
    let id = Uuid::new_v4();
    // One statement, so that two requests cannot both take the last place.
    let started = sqlx::query(
        "insert into report (id, tenant, started_millis) select $1, $2, $3 where (select count(*) from report) < $4",
    )
    .bind(id.to_string())
    .bind(&order.tenant)
    .bind(Timestamp::now().as_millisecond())
    .bind(JOBS_MAX)
    .execute(service.pool())
    .await?
    .rows_affected();
    if started == 0 {
        return Err(Problem::Full(format!(
            "the service keeps {JOBS_MAX} jobs and no more"
        )));
    }
    Ok((
        StatusCode::ACCEPTED,
        [(header::LOCATION, format!("/v1/reports/{id}"))],
        Json(json!({ "job_id": id })),
    ))
}

/// `GET /v1/reports/{job_id}`
pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Result<Json<Report>, Problem> {
    let (tenant, started): (String, i64) =
        sqlx::query_as("select tenant, started_millis from report where id = $1")
            .bind(&id)
            .fetch_optional(service.pool())
            .await?
            .ok_or_else(|| Problem::Unknown(format!("there is no job `{}`", id.escape_default())))?;
    let percent = progress_percent(
        started,
        Timestamp::now().as_millisecond(),
        service.report_duration(),
    );
    let totals = if percent < 100 {
        None
    } else {
        let totals = sqlx::query_as(
            "select currency, count(*) as invoices, sum(total_minor) as total_minor from invoice \
             where tenant = $1 group by currency order by currency",
        );
        Some(totals.bind(&tenant).fetch_all(service.pool()).await?)
    };
    Ok(Json(Report {
        job_id: id,
        tenant,
        status: if totals.is_some() { "done" } else { "running" },
        progress_percent: percent,
        totals,
    }))
}

/// How far a job is, from the clock alone: nothing has to run for it, so nothing can leak when the service stops.
fn progress_percent(started_millis: i64, now_millis: i64, duration: Duration) -> u8 {
    let elapsed = u128::try_from(now_millis.saturating_sub(started_millis)).unwrap_or(0);
    match elapsed.saturating_mul(100).checked_div(duration.as_millis()) {
        None => 100,
        Some(percent) => u8::try_from(percent.min(100)).unwrap_or(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_goes_from_0_to_100_and_stays_there() {
        for (now, duration, expected) in [
            (1_000, 2_000, 0),
            (1_500, 2_000, 25),
            (2_999, 2_000, 99),
            (3_000, 2_000, 100),
            (9_000_000, 2_000, 100),
            (1_000, 0, 100),
            // A clock that was set back shows a job that has not begun, never a number below zero.
            (0, 2_000, 0),
            (i64::MAX, 2_000, 100),
        ] {
            let percent = progress_percent(1_000, now, Duration::from_millis(duration));
            assert_eq!(percent, expected, "at {now} of {duration}");
        }
    }
}
