//! `tollhouse.lock`: what a person approved of MCP servers, one by one, as a file for version control.
//!
//! It holds the whole definitions, so that a difference can be shown word by word, and so that it stays known while
//! its server is down. A digest that does not belong to its definition makes the file unusable: somebody edited it.

use std::collections::BTreeMap;

use model::{Digest, JsonLimits, Object, UpstreamName, Value, parse_foreign};
use serde::{Deserialize, Serialize};
use wire::Surface;

use crate::abilities::Abilities;
use crate::pin;

/// The version of this form.
const VERSION: u32 = 1;
/// The largest file that is read, in bytes.
pub const LOCK_BYTES_MAX: usize = 64 << 20;

/// The approvals of all servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    servers: BTreeMap<UpstreamName, LockedServer>,
}

/// What was approved of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    #[serde(default)]
    tools: BTreeMap<String, ApprovedDefinition>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    prompts: BTreeMap<String, ApprovedDefinition>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<String, ApprovedDefinition>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    templates: BTreeMap<String, ApprovedDefinition>,
    /// Whether it completed arguments when it was approved.
    #[serde(default, skip_serializing_if = "is_false")]
    completes: bool,
    /// Whether it logged to its clients.
    #[serde(default, skip_serializing_if = "is_false")]
    logs: bool,
    /// Whether it told when a resource changes.
    #[serde(default, skip_serializing_if = "is_false")]
    subscribes: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde hands over")]
const fn is_false(truth: &bool) -> bool {
    !*truth
}

impl LockedServer {
    /// What it could do beside lists and calls when it was approved.
    #[must_use]
    pub const fn abilities(&self) -> Abilities {
        Abilities {
            completes: self.completes,
            logs: self.logs,
            subscribes: self.subscribes,
        }
    }

    /// Notes what it can do beside lists and calls.
    pub const fn set_abilities(&mut self, abilities: Abilities) {
        let Abilities {
            completes,
            logs,
            subscribes,
        } = abilities;
        self.completes = completes;
        self.logs = logs;
        self.subscribes = subscribes;
    }

    /// What was approved of a kind, by the server's own names, URIs or templates.
    #[must_use]
    pub const fn of(&self, surface: Surface) -> &BTreeMap<String, ApprovedDefinition> {
        match surface {
            Surface::Tools => &self.tools,
            Surface::Prompts => &self.prompts,
            Surface::Resources => &self.resources,
            Surface::Templates => &self.templates,
        }
    }

    /// The same, to change it.
    pub const fn of_mut(&mut self, surface: Surface) -> &mut BTreeMap<String, ApprovedDefinition> {
        match surface {
            Surface::Tools => &mut self.tools,
            Surface::Prompts => &mut self.prompts,
            Surface::Resources => &mut self.resources,
            Surface::Templates => &mut self.templates,
        }
    }
}

/// One approved definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedDefinition {
    digest: Digest,
    /// When it was approved: a time in UTC, RFC 3339.
    pub at: String,
    /// Who approved it, as they say.
    pub by: String,
    /// The whole definition, as the server gave it.
    pub definition: Object,
}

/// Why a file is no lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockFault {
    /// It is not JSON of this form.
    #[error("it is not a lock file: {0}")]
    Syntax(String),
    /// It is of another version.
    #[error("it is of version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// A definition was changed after it was approved.
    #[error("the definition of `{name}` of `{server}` is not the one that was approved; approve it again")]
    Edited {
        /// The server.
        server: UpstreamName,
        /// The server's own name of it.
        name: String,
    },
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            version: VERSION,
            servers: BTreeMap::new(),
        }
    }
}

impl Lock {
    /// Reads a file.
    ///
    /// # Errors
    /// [`LockFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, LockFault> {
        let limits = JsonLimits {
            bytes_max: LOCK_BYTES_MAX,
            depth_max: 120,
        };
        let syntax = |text: String| LockFault::Syntax(text);
        let value = parse_foreign(bytes, limits).map_err(|fault| syntax(fault.to_string()))?;
        let version = value.get("version").and_then(Value::as_u64);
        if let Some(other) = version.filter(|version| *version != u64::from(VERSION)) {
            return Err(LockFault::Version(u32::try_from(other).unwrap_or(u32::MAX)));
        }
        let lock: Self = serde_json::from_value(value).map_err(|error| syntax(error.to_string()))?;
        for (server, locked) in &lock.servers {
            for surface in Surface::ALL {
                for (name, approved) in locked.of(surface) {
                    let own = approved.definition.get(surface.key()).and_then(Value::as_str);
                    if pin::definition(surface, &approved.definition) != approved.digest || own != Some(name)
                    {
                        return Err(LockFault::Edited {
                            server: server.clone(),
                            name: name.clone(),
                        });
                    }
                }
            }
        }
        Ok(lock)
    }

    /// The file: JSON that a person can read, sorted by name, with a line end.
    #[must_use]
    pub fn write(&self) -> String {
        // Serialising our own shape into memory cannot fail: keys are texts, and nothing in it is fallible.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// What was approved of a server.
    #[must_use]
    pub fn server(&self, name: &UpstreamName) -> Option<&LockedServer> {
        self.servers.get(name)
    }

    /// What was approved of a server, to change it.
    pub fn server_mut(&mut self, name: &UpstreamName) -> &mut LockedServer {
        self.servers.entry(name.clone()).or_default()
    }

    /// The servers, by name.
    pub fn servers(&self) -> impl Iterator<Item = (&UpstreamName, &LockedServer)> {
        self.servers.iter()
    }
}

impl ApprovedDefinition {
    /// A definition, approved now.
    #[must_use]
    pub fn new(surface: Surface, definition: Object, at: jiff::Timestamp, by: &str) -> Self {
        Self {
            digest: pin::definition(surface, &definition),
            at: at.to_string(),
            by: by.to_owned(),
            definition,
        }
    }

    /// The digest of the whole definition.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether this is what was approved.
    #[must_use]
    pub fn is(&self, surface: Surface, definition: &Object) -> bool {
        pin::definition(surface, definition) == self.digest
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lock() -> (Lock, UpstreamName) {
        let name = UpstreamName::parse("files").unwrap();
        let mut lock = Lock::default();
        let Value::Object(definition) = json!({
            "name": "read", "inputSchema": { "type": "object", "z": 1, "a": 1.10 }, "vendor": { "b": 1, "a": 2 }
        }) else {
            panic!()
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        let tool = ApprovedDefinition::new(Surface::Tools, definition, at, "somebody");
        let server = lock.server_mut(&name);
        server.of_mut(Surface::Tools).insert("read".to_owned(), tool);
        let Value::Object(definition) = json!({ "uri": "a:b", "name": "B" }) else {
            panic!()
        };
        let resource = ApprovedDefinition::new(Surface::Resources, definition, at, "somebody");
        server
            .of_mut(Surface::Resources)
            .insert("a:b".to_owned(), resource);
        (lock, name)
    }

    #[test]
    fn a_lock_reads_back_whole() {
        let (lock, name) = lock();
        let text = lock.write();
        assert_eq!(Lock::parse(text.as_bytes()).unwrap(), lock);
        assert!(lock.server(&name).is_some());
    }

    #[test]
    fn an_edited_definition_is_not_approved() {
        let (lock, _) = lock();
        let text = lock.write();
        for (from, to) in [
            ("\"z\": 1", "\"z\": 2"),
            ("\"vendor\"", "\"vendors\""),
            ("\"name\": \"read\"", "\"name\": \"write\""),
            ("\"read\": {", "\"reads\": {"),
            ("\"uri\": \"a:b\"", "\"uri\": \"a:c\""),
            ("\"a:b\": {", "\"a:c\": {"),
        ] {
            let edited = text.replace(from, to);
            assert_ne!(edited, text);
            assert!(
                matches!(Lock::parse(edited.as_bytes()), Err(LockFault::Edited { .. })),
                "{from}"
            );
        }
        // The order of members is no change of what is said.
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(Lock::parse(value.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn another_form_is_told() {
        let (lock, _) = lock();
        let newer = lock.write().replace("\"version\": 1", "\"version\": 2");
        assert_eq!(Lock::parse(newer.as_bytes()), Err(LockFault::Version(2)));
        for text in ["", "[]", "{}", "{\"version\":1,\"servers\":{},\"more\":1}"] {
            assert!(
                matches!(Lock::parse(text.as_bytes()), Err(LockFault::Syntax(_))),
                "{text}"
            );
        }
    }
}
