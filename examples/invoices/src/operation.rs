//! The operations of the service, one row each. The router, the counters and the test of the document read this table.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, delete, get, post};

use crate::service::Service;
use crate::{invoice, payment, report, tenant};

/// One operation of `openapi.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// `GET /v1/invoices/{invoice_id}`
    GetInvoice,
    /// `GET /v1/invoices`
    ListInvoices,
    /// `DELETE /v1/invoices/{invoice_id}`
    DeleteInvoice,
    /// `POST /v1/invoices/{invoice_id}/payments`
    PayInvoice,
    /// `GET /v1/members`
    ListMembers,
    /// `GET /v1/export`
    ExportInvoices,
    /// `POST /v1/reports`
    StartReport,
    /// `GET /v1/reports/{job_id}`
    GetReport,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 8] = [
        Self::GetInvoice,
        Self::ListInvoices,
        Self::DeleteInvoice,
        Self::PayInvoice,
        Self::ListMembers,
        Self::ExportInvoices,
        Self::StartReport,
        Self::GetReport,
    ];

    /// Its `operationId`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.row().0
    }

    /// Its method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        self.row().1
    }

    /// Its path template.
    #[must_use]
    pub const fn path(self) -> &'static str {
        self.row().2
    }

    /// The operation that a matched request is for.
    pub(crate) fn find(method: &str, path: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.method() == method && operation.path() == path)
    }

    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::GetInvoice => ("getInvoice", "GET", "/v1/invoices/{invoice_id}"),
            Self::ListInvoices => ("listInvoices", "GET", "/v1/invoices"),
            Self::DeleteInvoice => ("deleteInvoice", "DELETE", "/v1/invoices/{invoice_id}"),
            Self::PayInvoice => ("payInvoice", "POST", "/v1/invoices/{invoice_id}/payments"),
            Self::ListMembers => ("listMembers", "GET", "/v1/members"),
            Self::ExportInvoices => ("exportInvoices", "GET", "/v1/export"),
            Self::StartReport => ("startReport", "POST", "/v1/reports"),
            Self::GetReport => ("getReport", "GET", "/v1/reports/{job_id}"),
        }
    }

    fn handler(self) -> MethodRouter<Arc<Service>> {
        match self {
            Self::GetInvoice => get(invoice::show),
            Self::ListInvoices => get(invoice::list),
            Self::DeleteInvoice => delete(invoice::remove),
            Self::PayInvoice => post(payment::book),
            Self::ListMembers => get(tenant::members),
            Self::ExportInvoices => get(tenant::export),
            Self::StartReport => post(report::start),
            Self::GetReport => get(report::show),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A router with every operation and nothing else.
pub(crate) fn routes() -> Router<Arc<Service>> {
    Operation::ALL
        .into_iter()
        .fold(Router::new(), |router, operation| {
            router.route(operation.path(), operation.handler())
        })
}
