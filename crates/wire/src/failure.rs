//! Protocol errors: code, HTTP status and data, per revision. A tool that failed is a result, not one of these (TOOL-08).

use model::{Object, Value};
use serde_json::json;

use crate::revision::{Era, Revision};

/// Why a message is answered with a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The bytes are not JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// JSON, but no message that may be served.
    #[error("{0}")]
    InvalidRequest(String),
    /// No such method, or one behind a capability that is not advertised.
    #[error("method `{0}` is not served here")]
    MethodNotFound(String),
    /// The parameters do not fit the method.
    #[error("{0}")]
    InvalidParams(String),
    /// No such tool, or none for this caller; the two read the same.
    #[error("unknown tool `{0}`")]
    UnknownTool(String),
    /// No such prompt, or none for this caller; the two read the same.
    #[error("unknown prompt `{0}`")]
    UnknownPrompt(String),
    /// No such resource, or none for this caller; the two read the same.
    #[error("resource not found: `{0}`")]
    NoResource(String),
    /// An error of the server behind the gate, in its words, where they may pass.
    #[error("{text}")]
    Upstream {
        /// Whether the server says that the parameters are at fault.
        is_params: bool,
        /// Its words.
        text: String,
    },
    /// A refusal of something that has no form of a failed result.
    #[error("{0}")]
    Refused(String),
    /// A cursor that was not ours or has expired (PAG-03).
    #[error("the cursor is not valid; start again without one")]
    BadCursor,
    /// Required request metadata is missing or malformed (BASE-15).
    #[error("{0}")]
    MetaInvalid(String),
    /// A header is missing, malformed, or says something else than the body (HM-04).
    #[error("{0}")]
    HeaderMismatch(String),
    /// The request needs a client capability that it does not declare (BASE-18).
    #[error("the client does not declare a capability that this request needs")]
    MissingCapability(Object),
    /// A protocol version that is not served (LIFE-M02).
    #[error("protocol version `{requested}` is not served this way")]
    UnsupportedVersion {
        /// What was asked for.
        requested: String,
        /// What is served instead.
        supported: Vec<Revision>,
    },
    /// Something went wrong on our side; the text is static and tells nothing of it.
    #[error("{0}")]
    Internal(&'static str),
    /// What is wrong with a request whose method exists. Where nothing here serves it, that counts more (LIFE-M05).
    #[error("{failure}")]
    Of {
        /// The method.
        method: String,
        /// What is wrong.
        failure: Box<Failure>,
    },
}

impl Failure {
    /// The same, with the method of its request.
    pub(crate) fn of(self, method: &str) -> Self {
        match self {
            // There is nothing that could count more.
            Self::MethodNotFound(_) | Self::Of { .. } => self,
            failure => Self::Of {
                method: quoted(method),
                failure: Box::new(failure),
            },
        }
    }

    /// The failure where `serves` says which methods are served: a method that is not served there is not found.
    #[must_use]
    pub fn where_served(self, serves: impl FnOnce(&str) -> bool) -> Self {
        match self {
            Self::Of { method, .. } if !serves(&method) => Self::MethodNotFound(method),
            Self::Of { failure, .. } => *failure,
            failure => failure,
        }
    }

    /// The JSON-RPC code (A8, C9).
    #[must_use]
    pub fn code(&self, revision: Revision) -> i32 {
        match self {
            Self::NoResource(_) => match revision.era() {
                Era::Modern => -32_602,
                Era::Legacy => -32_002,
            },
            Self::Upstream { is_params: true, .. } | Self::UnknownPrompt(_) => -32_602,
            Self::Upstream { is_params: false, .. } | Self::Refused(_) => -32_603,
            Self::Syntax(_) => -32_700,
            Self::InvalidRequest(_) => -32_600,
            Self::MethodNotFound(_) => -32_601,
            Self::InvalidParams(_) | Self::UnknownTool(_) | Self::BadCursor | Self::MetaInvalid(_) => -32_602,
            Self::Internal(_) => -32_603,
            Self::HeaderMismatch(_) => -32_020,
            Self::MissingCapability(_) => -32_021,
            Self::UnsupportedVersion { .. } => -32_022,
            Self::Of { failure, .. } => failure.code(revision),
        }
    }

    /// The HTTP status that the error rides on, where it is the whole answer (A8; G7 for what is left open).
    ///
    /// In the legacy era 404 means a lost session (HL-14), so an unknown method is told with 200 there.
    #[must_use]
    pub fn status(&self, revision: Revision) -> u16 {
        match self {
            Self::Syntax(_)
            | Self::InvalidRequest(_)
            | Self::MetaInvalid(_)
            | Self::HeaderMismatch(_)
            | Self::MissingCapability(_)
            | Self::UnsupportedVersion { .. } => 400,
            Self::MethodNotFound(_) => match revision.era() {
                Era::Modern => 404,
                Era::Legacy => 200,
            },
            Self::InvalidParams(_)
            | Self::UnknownTool(_)
            | Self::UnknownPrompt(_)
            | Self::NoResource(_)
            | Self::Upstream { .. }
            | Self::Refused(_)
            | Self::BadCursor
            | Self::Internal(_) => 200,
            Self::Of { failure, .. } => failure.status(revision),
        }
    }

    /// The `data` of the error, where it has one.
    #[must_use]
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::MissingCapability(required) => Some(json!({ "requiredCapabilities": required })),
            Self::UnsupportedVersion { requested, supported } => {
                let supported: Vec<_> = supported.iter().map(|revision| revision.as_str()).collect();
                Some(json!({ "supported": supported, "requested": requested }))
            }
            Self::NoResource(uri) => Some(json!({ "uri": uri })),
            Self::Of { failure, .. } => failure.data(),
            Self::Syntax(_)
            | Self::InvalidRequest(_)
            | Self::MethodNotFound(_)
            | Self::InvalidParams(_)
            | Self::UnknownTool(_)
            | Self::UnknownPrompt(_)
            | Self::Upstream { .. }
            | Self::Refused(_)
            | Self::BadCursor
            | Self::MetaInvalid(_)
            | Self::HeaderMismatch(_)
            | Self::Internal(_) => None,
        }
    }
}

/// What a client may have said, shortened for an error text.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 64;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stay_out_of_the_ranges_that_are_not_ours() {
        let all = [
            Failure::Syntax(String::new()),
            Failure::InvalidRequest(String::new()),
            Failure::MethodNotFound(String::new()),
            Failure::InvalidParams(String::new()),
            Failure::UnknownTool(String::new()),
            Failure::UnknownPrompt(String::new()),
            Failure::NoResource(String::new()),
            Failure::Upstream {
                is_params: true,
                text: String::new(),
            },
            Failure::Upstream {
                is_params: false,
                text: String::new(),
            },
            Failure::Refused(String::new()),
            Failure::BadCursor,
            Failure::MetaInvalid(String::new()),
            Failure::HeaderMismatch(String::new()),
            Failure::MissingCapability(Object::new()),
            Failure::UnsupportedVersion {
                requested: String::new(),
                supported: vec![],
            },
            Failure::Internal(""),
        ];
        for failure in all {
            let code = failure.code(Revision::NEWEST_STATELESS);
            // -32000..-32019 is the range of old SDKs, -32023..-32099 is reserved (A8).
            assert!(
                (-32_700..=-32_600).contains(&code) || (-32_022..=-32_020).contains(&code),
                "{code}"
            );
        }
    }

    #[test]
    fn an_unknown_method_is_404_only_where_404_does_not_mean_a_lost_session() {
        let failure = Failure::MethodNotFound("x".to_owned());
        for revision in Revision::ALL {
            assert_eq!(
                failure.status(revision) == 404,
                !revision.has_sessions(),
                "{revision}"
            );
        }
    }
}
