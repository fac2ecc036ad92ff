//! Payments: booked once for each idempotency key, however often they are sent.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::invoice::{Status, unknown};
use crate::problem::Problem;
use crate::service::Service;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    amount_minor: i64,
    currency: String,
    note: Option<String>,
}

#[derive(Serialize, sqlx::FromRow)]
pub(crate) struct Payment {
    #[sqlx(rename = "id")]
    payment_id: String,
    #[sqlx(rename = "invoice")]
    invoice_id: String,
    amount_minor: i64,
    currency: String,
    note: Option<String>,
    owed_minor: i64,
    invoice_status: Status,
}

/// `POST /v1/invoices/{invoice_id}/payments`
///
/// The whole of it is one write transaction, so that two requests with one key cannot both book.
pub(crate) async fn book(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    order: Result<Json<Order>, JsonRejection>,
) -> Result<(StatusCode, Json<Payment>), Problem> {
    let key = idempotency_key(&headers)?;
    let Json(order) = order?;
    order.check()?;
    let mut transaction = service.pool().begin_with("begin immediate").await?;
    if let Some(earlier) = booked(&mut transaction, &id, key).await? {
        return if order.asks_for(&earlier) {
            Ok((StatusCode::OK, Json(earlier)))
        } else {
            Err(Problem::Conflict(format!(
                "idempotency key `{key}` was used for another payment"
            )))
        };
    }
    let payment = order.fit(&mut transaction, &id).await?;
    insert(&mut transaction, key, &payment).await?;
    transaction.commit().await?;
    Ok((StatusCode::CREATED, Json(payment)))
}

fn idempotency_key(headers: &HeaderMap) -> Result<&str, Problem> {
    headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok())
        .filter(|key| {
            (8..=64).contains(&key.len())
                && key
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        })
        .ok_or_else(|| {
            Problem::Invalid(
                "header `Idempotency-Key` is missing or no key; send 8 to 64 letters, digits, `-` or `_`"
                    .to_owned(),
            )
        })
}

async fn booked(
    connection: &mut SqliteConnection,
    invoice: &str,
    key: &str,
) -> Result<Option<Payment>, sqlx::Error> {
    sqlx::query_as("select * from payment where invoice = $1 and idempotency_key = $2")
        .bind(invoice)
        .bind(key)
        .fetch_optional(connection)
        .await
}

async fn insert(connection: &mut SqliteConnection, key: &str, payment: &Payment) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into payment (id, invoice, idempotency_key, amount_minor, currency, note, owed_minor, invoice_status) \
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(&payment.payment_id)
    .bind(&payment.invoice_id)
    .bind(key)
    .bind(payment.amount_minor)
    .bind(&payment.currency)
    .bind(payment.note.as_deref())
    .bind(payment.owed_minor)
    .bind(payment.invoice_status)
    .execute(&mut *connection)
    .await?;
    sqlx::query("update invoice set status = $2 where id = $1")
        .bind(&payment.invoice_id)
        .bind(payment.invoice_status)
        .execute(connection)
        .await?;
    Ok(())
}

// === impl Order ===

impl Order {
    /// 2^53 - 1, beyond which JSON numbers are not exact everywhere.
    const AMOUNT_MINOR_MAX: i64 = 9_007_199_254_740_991;
    const NOTE_CHARACTERS_MAX: usize = 200;

    fn check(&self) -> Result<(), Problem> {
        if !(1..=Self::AMOUNT_MINOR_MAX).contains(&self.amount_minor) {
            return Err(Problem::Invalid(format!(
                "amount_minor `{}` is out of range; write 1 or more",
                self.amount_minor
            )));
        }
        let note = self.note.as_deref().unwrap_or_default();
        if note.chars().count() > Self::NOTE_CHARACTERS_MAX {
            return Err(Problem::Invalid(format!(
                "the note has more than {} characters",
                Self::NOTE_CHARACTERS_MAX
            )));
        }
        Ok(())
    }

    fn asks_for(&self, payment: &Payment) -> bool {
        (self.amount_minor, &self.currency, &self.note)
            == (payment.amount_minor, &payment.currency, &payment.note)
    }

    /// The payment that this order becomes, where the invoice exists and owes as much in that currency.
    async fn fit(self, connection: &mut SqliteConnection, id: &str) -> Result<Payment, Problem> {
        let (currency, status, owed): (String, Status, i64) = sqlx::query_as(
            "select currency, status, \
             total_minor - (select coalesce(sum(amount_minor), 0) from payment where invoice = invoice.id) \
             from invoice where id = $1",
        )
        .bind(id)
        .fetch_optional(connection)
        .await?
        .ok_or_else(|| unknown(id))?;
        if self.currency != currency {
            return Err(Problem::Conflict(format!("this invoice is in {currency}")));
        }
        let owed_minor = owed - self.amount_minor;
        if owed_minor < 0 {
            return Err(Problem::Conflict(format!(
                "amount_minor `{}` is more than is owed; {owed} is owed",
                self.amount_minor
            )));
        }
        Ok(Payment {
            payment_id: Uuid::new_v4().to_string(),
            invoice_id: id.to_owned(),
            amount_minor: self.amount_minor,
            currency,
            note: self.note,
            owed_minor,
            invoice_status: if owed_minor == 0 { Status::Paid } else { status },
        })
    }
}
