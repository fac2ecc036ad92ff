//! What a request says about itself beside its parameters: who the client is, what it can do, where progress goes.
//!
//! Nothing in it is proof of anything (BASE-16): it is kept for answers, traces and the ledger, never for permission.

use model::{JsonLimits, Object, Value};

use crate::envelope::{Params, ParamsShape, object_of};
use crate::failure::Failure;
use crate::id::Token;
use crate::log::LogLevel;
use crate::retry::Retry;

/// Reserved `_meta` keys of the stateless era (BASE-13 to BASE-20).
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Name and version of a program, as it states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name; at most 256 bytes are kept.
    pub name: String,
    /// Its version; at most 256 bytes are kept.
    pub version: String,
}

/// What came with a request beside its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// Where progress goes, if the client wants it (PROG-01).
    pub progress: Option<Token>,
    /// The client program, if it says (BASE-14). In the legacy era it stands in the session.
    pub client: Option<Identity>,
    /// What the client can do (BASE-13). In the legacy era it stands in the session.
    pub capabilities: Object,
    /// W3C trace context (BASE-20): `traceparent`, if it has that form.
    pub traceparent: Option<String>,
    /// What it takes up, where it is the next round of a call that asked something (MRTR-04). Never in the legacy era.
    pub retry: Option<Box<Retry>>,
    /// From which level on its client wants to have logged to it (LOG-03). In the legacy era it stands in the session.
    pub log_level: Option<LogLevel>,
}

/// The `_meta` of a message, read once.
#[derive(Debug, Default)]
pub(crate) struct Meta(pub(crate) Object);

impl Meta {
    pub(crate) fn read(params: &Params<'_>, limits: JsonLimits) -> Result<Self, Failure> {
        match params.meta {
            None => Ok(Self::default()),
            Some(raw) => object_of(raw, "_meta", limits)
                .map(Self)
                .map_err(Failure::InvalidParams),
        }
    }

    /// The protocol version that the request claims, if it claims one at all.
    pub(crate) fn claim(&self) -> Option<&Value> {
        self.0.get(PROTOCOL_VERSION)
    }

    /// The context of a request in the legacy era: only progress and trace are its own.
    pub(crate) fn legacy(&self) -> Result<Context, Failure> {
        Ok(Context {
            progress: self.progress()?,
            traceparent: self.traceparent(),
            ..Context::default()
        })
    }

    /// The context of a self-describing request (BASE-13, BASE-15).
    pub(crate) fn modern(&self) -> Result<Context, Failure> {
        let capabilities = match self.0.get(CLIENT_CAPABILITIES) {
            Some(Value::Object(object)) => object.clone(),
            Some(_) => {
                return Err(Failure::MetaInvalid(format!(
                    "`{CLIENT_CAPABILITIES}` is an object"
                )));
            }
            None => {
                return Err(Failure::MetaInvalid(format!(
                    "`_meta` has no `{CLIENT_CAPABILITIES}`; it may be {{}}"
                )));
            }
        };
        let client = match self.0.get(CLIENT_INFO) {
            None => None,
            Some(value) => Some(
                identity_of(value)
                    .map_err(|text| Failure::MetaInvalid(format!("`{CLIENT_INFO}`: {text}")))?,
            ),
        };
        let log_level = match self.0.get(LOG_LEVEL) {
            None => None,
            Some(level) => {
                let known = level.as_str().and_then(LogLevel::parse);
                let fault =
                    || Failure::InvalidParams(format!("`{LOG_LEVEL}` is one of {}", LogLevel::names()));
                Some(known.ok_or_else(fault)?)
            }
        };
        Ok(Context {
            progress: self.progress()?,
            client,
            capabilities,
            traceparent: self.traceparent(),
            retry: None,
            log_level,
        })
    }

    fn progress(&self) -> Result<Option<Token>, Failure> {
        self.0
            .get("progressToken")
            .map(|value| {
                Token::of(value).map_err(|fault| Failure::InvalidParams(format!("`progressToken`: {fault}")))
            })
            .transpose()
    }

    fn traceparent(&self) -> Option<String> {
        self.0
            .get("traceparent")
            .and_then(Value::as_str)
            .filter(|text| is_traceparent(text))
            .map(str::to_owned)
    }
}

/// Whether the parameters can hold what a method needs: absent, or an object.
pub(crate) fn params_are_object(params: &Params<'_>) -> Result<(), Failure> {
    match params.shape {
        ParamsShape::Absent | ParamsShape::Object => Ok(()),
        ParamsShape::Other => Err(Failure::InvalidParams("`params` is an object".to_owned())),
    }
}

/// Reads an `Implementation` object.
pub(crate) fn identity_of(value: &Value) -> Result<Identity, String> {
    let text = |key: &str| match value.get(key) {
        Some(Value::String(text)) => Ok(text
            .chars()
            .filter(|c| !c.is_control())
            .take(128)
            .collect::<String>()),
        Some(_) => Err(format!("`{key}` is a string")),
        None => Err(format!("`{key}` is missing")),
    };
    if !value.is_object() {
        return Err("an object with `name` and `version`".to_owned());
    }
    Ok(Identity {
        name: text("name")?,
        version: text("version")?,
    })
}

/// W3C Trace Context, version 00: `00-<32 hex>-<16 hex>-<2 hex>`, lower case, ids not zero.
#[must_use]
pub fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let zero = |part: &str| part.bytes().all(|b| b == b'0');
    match text.split('-').collect::<Vec<_>>().as_slice() {
        [version, trace, parent, flags] => {
            *version == "00"
                && hex(trace, 32)
                && hex(parent, 16)
                && hex(flags, 2)
                && !zero(trace)
                && !zero(parent)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_20_only_a_well_formed_traceparent_is_kept() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_traceparent(good));
        for text in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            &format!("{good}-x"),
        ] {
            assert!(!is_traceparent(text), "{text}");
        }
    }
}
