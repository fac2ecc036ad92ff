//! The next round of a call that asked something: the state that was given out, and the answers (MRTR-04). And the round
//! itself, as it is told to a client.
//!
//! What the state stands for, and whether the answers fit, is known to whoever gave it out.

use bytes::Bytes;
use model::{Limits, Object, Value};
use serde_json::json;

use crate::answer::Server;
use crate::ask::json_limits;
use crate::envelope::{Params, object_of, text_of};
use crate::failure::Failure;
use crate::id::Id;
use crate::revision::Revision;

/// What a request takes up.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// The state, byte for byte. Hostile until it is known (MRTR-06).
    pub state: String,
    /// The answers, by the keys of their questions. Untrusted.
    pub responses: Object,
}

impl Retry {
    /// The requests that can be answered with a round of questions (MRTR-01).
    #[must_use]
    pub fn is_on(method: &str) -> bool {
        matches!(method, "tools/call" | "prompts/get" | "resources/read")
    }

    pub(crate) fn read(method: &str, params: &Params<'_>, limits: &Limits) -> Result<Option<Self>, Failure> {
        if !Self::is_on(method) {
            return Ok(None);
        }
        let responses = params
            .input_responses
            .map(|raw| object_of(raw, "inputResponses", json_limits(limits)))
            .transpose()
            .map_err(Failure::InvalidParams)?;
        match (params.request_state, responses) {
            // Every round that is asked here has a state: answers without one belong to nothing, and are ignored (MRTR-07).
            (None, _) => Ok(None),
            (Some(state), responses) => Ok(Some(Self {
                state: text_of(state, "requestState").map_err(Failure::InvalidParams)?,
                responses: responses.unwrap_or_default(),
            })),
        }
    }
}

impl Server {
    /// The answer to a request that cannot go on before its client has answered (MRTR-02).
    ///
    /// `requests`: what [`crate::Inquiry::entry`] gives, by keys that are new in this request.
    #[must_use]
    pub fn input_required(&self, revision: Revision, id: &Id, requests: &Object, state: &str) -> Bytes {
        let mut meta = Object::new();
        self.sign(revision, &mut meta);
        let message = json!({
            "jsonrpc": "2.0",
            "id": id,
            "result": {
                "resultType": "input_required",
                "inputRequests": Value::Object(requests.clone()),
                "requestState": state,
                "_meta": meta,
            },
        });
        Bytes::from(message.to_string())
    }
}
