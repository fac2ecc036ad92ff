//! The operation of an OpenAPI document behind a tool: how a call becomes a request, and what may come back.

use model::Digest;
use openapi::{Note, RequestPlan, WriteOnly};

use crate::access::Access;
use crate::work::LongRunning;

/// The operation behind a tool.
#[derive(Debug)]
pub struct Operation {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    pub(crate) answers: Vec<String>,
    pub(crate) may_be_empty: bool,
    pub(crate) write_only: WriteOnly,
    pub(crate) plan: RequestPlan,
    pub(crate) access: Access,
    pub(crate) long_running: Option<LongRunning>,
    pub(crate) notes: Vec<Note>,
}

impl Operation {
    /// Method and path, as `GET /invoices/{id}`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of everything in the document that it depends on.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether the document declares a media type, beside JSON, for a successful answer.
    #[must_use]
    pub fn answers_with(&self, media_type: &str) -> bool {
        self.answers.iter().any(|declared| {
            declared == media_type
                || declared
                    .strip_suffix('*')
                    .is_some_and(|range| range.ends_with('/') && media_type.starts_with(range))
        })
    }

    /// Whether a success can be without a body.
    #[must_use]
    pub const fn may_be_empty(&self) -> bool {
        self.may_be_empty
    }

    /// The fields that are only written and leave with no answer.
    #[must_use]
    pub const fn write_only(&self) -> &WriteOnly {
        &self.write_only
    }

    /// How a call becomes a request.
    #[must_use]
    pub const fn plan(&self) -> &RequestPlan {
        &self.plan
    }

    /// Which credentials of the upstream its requests carry.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// How its work is looked after, where it takes longer than one request.
    #[must_use]
    pub const fn long_running(&self) -> Option<&LongRunning> {
        self.long_running.as_ref()
    }

    /// What a reviewer should know of it.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}
