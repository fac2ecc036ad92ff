//! What a server says of itself when a conversation is opened or before there is one, and which revision it is spoken to in.

use bytes::Bytes;
use model::{JsonLimits, Object, Value, parse_foreign};

use crate::client::heard::ServerError;
use crate::context::{Identity, identity_of};
use crate::revision::{Era, Revision};
use crate::surface::Surface;

/// What a server says of itself, and the revision in which it is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The revision of everything that follows.
    pub revision: Revision,
    /// What it can do, whole.
    pub capabilities: Object,
    /// The program, if it says. Proof of nothing (BASE-16).
    pub server: Option<Identity>,
    /// What a model should know before it uses the server. Untrusted.
    pub instructions: Option<String>,
}

/// Why what a server says of itself cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpeningFault {
    /// It speaks no revision that we know.
    #[error("the server speaks {}, and none of these is known here", .0.join(", "))]
    Versions(Vec<String>),
    /// The answer has not the form that the revision demands.
    #[error("the answer to `{method}` {what}")]
    Form {
        /// The method.
        method: &'static str,
        /// What is wrong.
        what: String,
    },
}

/// What the answer to a probe with `server/discover` shows (LIFE-D05 to LIFE-D08).
#[derive(Debug, Clone, PartialEq)]
pub enum Probed {
    /// The server is of the stateless era, and this is what it says of itself.
    Modern(Opened),
    /// It is of the stateless era and does not serve the revision of the probe; these it serves.
    Other(Vec<Revision>),
    /// Nothing shows the stateless era: open a conversation.
    Legacy,
}

/// The answer to a probe.
#[derive(Debug)]
pub enum Answered<'a> {
    /// A result.
    Result(&'a Bytes),
    /// An error.
    Error(&'a ServerError),
    /// Nothing in time, or something that is no answer.
    Nothing,
}

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// What the answer to a probe shows.
///
/// # Errors
/// [`OpeningFault::Versions`] where it is of the stateless era and speaks nothing that we know.
pub fn probed(answered: &Answered<'_>, limits: JsonLimits) -> Result<Probed, OpeningFault> {
    match answered {
        Answered::Result(result) => match Opened::discovered(result, limits) {
            Ok(Found::Served(opened)) => Ok(Probed::Modern(opened)),
            Ok(Found::Others(versions)) => chosen(&versions),
            // A result that is no discovery is an old server that answers everything.
            Err(_) => Ok(Probed::Legacy),
        },
        // No code but this one is evidence, and only with a list (LIFE-D05, LIFE-D08, G6).
        Answered::Error(error) if error.code == -32_022 => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported"));
            let versions: Vec<String> = supported
                .and_then(Value::as_array)
                .map(|versions| {
                    versions
                        .iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default();
            if versions.is_empty() {
                return Ok(Probed::Legacy);
            }
            chosen(&versions)
        }
        Answered::Error(_) | Answered::Nothing => Ok(Probed::Legacy),
    }
}

/// Of the revisions that a server of the stateless era names, those that we know; a legacy one is reached by its own
/// opening (G10).
fn chosen(versions: &[String]) -> Result<Probed, OpeningFault> {
    let known: Vec<Revision> = versions.iter().filter_map(|text| Revision::parse(text)).collect();
    let modern: Vec<Revision> = known
        .iter()
        .copied()
        .filter(|revision| !revision.has_sessions())
        .collect();
    if !modern.is_empty() {
        return Ok(Probed::Other(modern));
    }
    if known.is_empty() {
        return Err(OpeningFault::Versions(
            versions
                .iter()
                .take(8)
                .map(|text| text.chars().take(32).collect())
                .collect(),
        ));
    }
    Ok(Probed::Legacy)
}

enum Found {
    Served(Opened),
    Others(Vec<String>),
}

impl Opened {
    /// Reads the result of `initialize`.
    ///
    /// # Errors
    /// [`OpeningFault`]: a version that we do not know or that has no sessions (LIFE-L05), or another form.
    pub fn initialized(result: &Bytes, limits: JsonLimits) -> Result<Self, OpeningFault> {
        let mut object = object_of(result, INITIALIZE, limits)?;
        let version = member(&object, "protocolVersion", INITIALIZE)?;
        let revision = Revision::parse(&version)
            .filter(|revision| revision.has_sessions())
            .ok_or_else(|| OpeningFault::Versions(vec![version.chars().take(32).collect()]))?;
        let server = object.get("serverInfo").and_then(|info| identity_of(info).ok());
        Self::of(&mut object, revision, server, INITIALIZE)
    }

    /// Reads the result of `server/discover`, as answer to a request in the stateless era.
    fn discovered(result: &Bytes, limits: JsonLimits) -> Result<Found, OpeningFault> {
        let mut object = object_of(result, DISCOVER, limits)?;
        let Some(Value::Array(versions)) = object.get("supportedVersions") else {
            return Err(form(DISCOVER, "has no `supportedVersions`"));
        };
        let versions: Vec<String> = versions
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let served = Revision::NEWEST_STATELESS;
        if !versions.iter().any(|version| version == served.as_str()) {
            return Ok(Found::Others(versions));
        }
        const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
        let info = object.get("_meta").and_then(|meta| meta.get(SERVER_INFO));
        // G4: servers of before the release say it in the body.
        let info = info.or_else(|| object.get("serverInfo"));
        let server = info.and_then(|info| identity_of(info).ok());
        Self::of(&mut object, served, server, DISCOVER).map(Found::Served)
    }

    fn of(
        object: &mut Object,
        revision: Revision,
        server: Option<Identity>,
        method: &'static str,
    ) -> Result<Self, OpeningFault> {
        let capabilities = match object.shift_remove("capabilities") {
            Some(Value::Object(capabilities)) => capabilities,
            _ => return Err(form(method, "has no `capabilities`, which are an object")),
        };
        let instructions = match object.shift_remove("instructions") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            revision,
            capabilities,
            server,
            instructions,
        })
    }

    /// Whether the server says that it has something to list.
    #[must_use]
    pub fn lists(&self, surface: Surface) -> bool {
        self.capabilities
            .get(surface.capability())
            .is_some_and(Value::is_object)
    }

    /// Whether it says that it tells when a list changes.
    #[must_use]
    pub fn tells_changes(&self, surface: Surface) -> bool {
        self.capabilities
            .get(surface.capability())
            .and_then(|capability| capability.get("listChanged"))
            == Some(&Value::Bool(true))
    }

    /// Whether every request has to describe itself.
    #[must_use]
    pub const fn is_stateless(&self) -> bool {
        matches!(self.revision.era(), Era::Modern)
    }
}

fn object_of(result: &Bytes, method: &'static str, limits: JsonLimits) -> Result<Object, OpeningFault> {
    match parse_foreign(result, limits) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(form(method, "is no object")),
        Err(fault) => Err(form(method, format!("is not JSON that may pass: {fault}"))),
    }
}

fn member(object: &Object, key: &str, method: &'static str) -> Result<String, OpeningFault> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(form(method, format!("has no `{key}`, which is a text"))),
    }
}

fn form(method: &'static str, what: impl Into<String>) -> OpeningFault {
    OpeningFault::Form {
        method,
        what: what.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 4_096,
        depth_max: 16,
    };

    fn bytes(value: &Value) -> Bytes {
        Bytes::from(value.to_string())
    }

    fn error(code: i64, data: Value) -> ServerError {
        ServerError {
            code,
            text: String::new(),
            data: Some(data),
        }
    }

    #[test]
    fn life_l04_the_answered_version_counts_if_it_is_one_that_has_sessions() {
        for (version, expected) in [
            ("2024-11-05", Some(Revision::V2024_11_05)),
            ("2025-11-25", Some(Revision::V2025_11_25)),
            ("2026-07-28", None),
            ("2023-01-01", None),
        ] {
            let result = bytes(&json!({
                "protocolVersion": version,
                "capabilities": { "tools": { "listChanged": true }, "x": {} },
                "serverInfo": { "name": "a", "version": "1" },
                "instructions": "do",
            }));
            let opened = Opened::initialized(&result, LIMITS);
            assert_eq!(opened.as_ref().ok().map(|opened| opened.revision), expected);
            if let Ok(opened) = opened {
                assert!(opened.lists(Surface::Tools) && opened.tells_changes(Surface::Tools));
                assert!(!opened.lists(Surface::Prompts));
                assert!(
                    opened.capabilities.contains_key("x"),
                    "BASE-26: unknown keys are kept"
                );
                assert_eq!(opened.instructions.as_deref(), Some("do"));
            }
        }
        assert!(Opened::initialized(&bytes(&json!({ "protocolVersion": "2025-11-25" })), LIMITS).is_err());
    }

    #[test]
    fn life_d05_only_a_discovery_or_its_own_error_shows_the_stateless_era() {
        let discovery = bytes(&json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28", "2025-11-25"],
            "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "a", "version": "1" } },
        }));
        let Ok(Probed::Modern(opened)) = probed(&Answered::Result(&discovery), LIMITS) else {
            panic!()
        };
        assert_eq!(opened.revision, Revision::V2026_07_28);
        assert_eq!(opened.server.unwrap().name, "a");

        let other = error(-32_022, json!({ "supported": ["2026-07-28"], "requested": "x" }));
        assert_eq!(
            probed(&Answered::Error(&other), LIMITS),
            Ok(Probed::Other(vec![Revision::V2026_07_28]))
        );
        // G10: a legacy entry means its own opening.
        let legacy = error(-32_022, json!({ "supported": ["2025-11-25"], "requested": "x" }));
        assert_eq!(probed(&Answered::Error(&legacy), LIMITS), Ok(Probed::Legacy));
        let unknown = error(-32_022, json!({ "supported": ["2031-01-01"] }));
        assert!(probed(&Answered::Error(&unknown), LIMITS).is_err());

        for code in [-32_601, -32_602, -32_600, -32_020, -32_021, -32_000, 0] {
            let error = error(code, json!({ "supported": ["2026-07-28"] }));
            assert_eq!(
                probed(&Answered::Error(&error), LIMITS),
                Ok(Probed::Legacy),
                "LIFE-D08: {code}"
            );
        }
        let bare = error(-32_022, json!({}));
        assert_eq!(probed(&Answered::Error(&bare), LIMITS), Ok(Probed::Legacy));
        assert_eq!(probed(&Answered::Nothing, LIMITS), Ok(Probed::Legacy));
        assert_eq!(
            probed(&Answered::Result(&bytes(&json!({}))), LIMITS),
            Ok(Probed::Legacy)
        );
    }
}
