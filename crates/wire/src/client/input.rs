//! A result that is not the end: the server wants something of the client first (MRTR-02), and what it gets for it.

use model::{Object, Value};

use crate::inquiry::{Inquiry, InquiryFault};

/// What a server wants before it goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// What it asks, by its own keys, as it stands there. May be empty where there is a state (MRTR-04).
    pub requests: Object,
    /// What goes back to it byte for byte, and only if it was given.
    pub state: Option<String>,
}

/// What a server gets for it, with the same request and a new id (MRTR-04).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputResponses {
    /// The bare results, by its keys.
    pub responses: Object,
    /// Its state.
    pub state: Option<String>,
}

impl InputRequired {
    /// Reads the members of a result whose type says that it is one of these.
    pub(super) fn read(mut result: Object) -> Result<Self, &'static str> {
        let requests = match result.shift_remove("inputRequests") {
            None => Object::new(),
            Some(Value::Object(requests)) => requests,
            Some(_) => return Err("has `inputRequests` that are no object"),
        };
        let state = match result.shift_remove("requestState") {
            None => None,
            Some(Value::String(state)) => Some(state),
            Some(_) => return Err("has a `requestState` that is no text"),
        };
        if requests.is_empty() && state.is_none() {
            return Err("asks for input and names none");
        }
        Ok(Self { requests, state })
    }

    /// What it asks, each with its key, in its order.
    ///
    /// # Errors
    /// The key, and what is wrong with what stands there (MRTR-03).
    pub fn inquiries(&self) -> Result<Vec<(String, Inquiry)>, (String, InquiryFault)> {
        let entries = self.requests.iter();
        entries
            .map(|(key, entry)| {
                let method = entry.get("method").and_then(Value::as_str).unwrap_or_default();
                let params = match entry.get("params") {
                    Some(Value::Object(params)) => params.clone(),
                    Some(_) | None => Object::new(),
                };
                let read = Inquiry::of(method, params);
                read.map(|inquiry| (key.clone(), inquiry))
                    .map_err(|fault| (key.chars().take(64).collect(), fault))
            })
            .collect()
    }
}
