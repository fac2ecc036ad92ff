//! Words to bytes, in the revision of the reader: results, errors, progress, batches.
//!
//! What a revision does not know is left out (C4); what the stateless era demands of every result is added (BASE-11,
//! BASE-16, CACHE-01). Nothing here decides what may be said.

use bytes::Bytes;
use model::{Content, Object, Reply, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::block::{Blocks, Messages, have_text};
use crate::context::Identity;
use crate::definition::{Definition, Page, knows_structured};
use crate::failure::Failure;
use crate::http::offered;
use crate::id::{Id, Token};
use crate::item::{Item, ItemPage};
use crate::revision::{Era, Revision};

/// What is answered to an [`crate::Ask`].
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// To `initialize`: the conversation is open.
    Opened(Offers),
    /// To `server/discover`.
    Discovered(Offers),
    /// To `ping`, and to whatever only has to be heard.
    Heard,
    /// To `tools/list`.
    Tools(Page),
    /// To the other lists.
    Items(ItemPage),
    /// To `prompts/get`: a checked result, whole.
    Prompt(Object),
    /// To `resources/read`: a checked result, whole.
    Contents(Object),
    /// To `completion/complete`: a checked result, whole.
    Completed(Object),
    /// To `tools/call`: a checked reply, or a refusal that the model can read.
    Called(Reply),
}

/// What there is beside tools, for this caller in this place: no more is said to be there than can be carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// Prompts.
    pub prompts: bool,
    /// Resources or templates.
    pub resources: bool,
    /// Arguments that can be completed.
    pub completions: bool,
    /// Whether changes of lists are told.
    pub changes: bool,
    /// Whether changes of single resources are told.
    pub updates: bool,
    /// Messages for a log.
    pub logs: bool,
}

/// Who answers, and how long answers may be kept: the same for every message of a server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Name and version of this program.
    pub identity: Identity,
    /// The title that people read.
    pub title: String,
    /// What a model should know before it uses the tools.
    pub instructions: Option<String>,
    /// How long a client may keep lists and discovery, in milliseconds (CACHE-01).
    pub ttl_ms: u64,
}

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl Server {
    /// The answer to a request.
    ///
    /// Gives one JSON-RPC response object, without a line end.
    #[must_use]
    pub fn result(&self, revision: Revision, id: &Id, said: &Said) -> Bytes {
        message(&Response {
            jsonrpc: "2.0",
            id,
            result: Body {
                server: self,
                revision,
                said,
            },
        })
    }

    fn implementation(&self, revision: Revision) -> Value {
        match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 => {
                json!({ "name": self.identity.name, "version": self.identity.version })
            }
            Revision::V2025_06_18 | Revision::V2025_11_25 | Revision::V2026_07_28 => {
                json!({ "name": self.identity.name, "title": self.title, "version": self.identity.version })
            }
        }
    }

    /// Says in a `_meta` who answers.
    pub(crate) fn sign(&self, revision: Revision, meta: &mut Object) {
        meta.insert(SERVER_INFO.to_owned(), self.implementation(revision));
    }

    fn capabilities(revision: Revision, offers: Offers) -> Value {
        let list = || match offers.changes {
            true => json!({ "listChanged": true }),
            false => json!({}),
        };
        let mut capabilities = Object::new();
        capabilities.insert("tools".to_owned(), list());
        if offers.prompts {
            capabilities.insert("prompts".to_owned(), list());
        }
        if offers.resources {
            let mut resources = list();
            if let Some(resources) = resources.as_object_mut().filter(|_| offers.updates) {
                resources.insert("subscribe".to_owned(), Value::Bool(true));
            }
            capabilities.insert("resources".to_owned(), resources);
        }
        if offers.completions && revision.has_completions() {
            capabilities.insert("completions".to_owned(), json!({}));
        }
        if offers.logs {
            capabilities.insert("logging".to_owned(), json!({}));
        }
        Value::Object(capabilities)
    }
}

/// An error. `None` where the revision has no form for it: an error without an id in the revisions that demand one.
#[must_use]
pub fn error(revision: Revision, id: Option<&Id>, failure: &Failure) -> Option<Bytes> {
    if id.is_none() && !revision.has_errors_without_id() {
        return None;
    }
    Some(message(&ErrorResponse {
        jsonrpc: "2.0",
        id,
        error: ErrorBody {
            code: failure.code(revision),
            message: failure.to_string(),
            data: failure.data(),
        },
    }))
}

/// An answer, and the HTTP status where it is the whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The status.
    pub status: u16,
    /// One JSON-RPC response.
    pub body: Bytes,
}

impl Written {
    /// A result.
    #[must_use]
    pub const fn result(body: Bytes) -> Self {
        Self { status: 200, body }
    }

    /// An error. `None` where the revision has no form for it, as of [`error`].
    #[must_use]
    pub fn error(revision: Revision, id: Option<&Id>, failure: &Failure) -> Option<Self> {
        let status = failure.status(revision);
        error(revision, id, failure).map(|body| Self { status, body })
    }
}

/// How far something is: `done` of `total`, where that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step<'a> {
    /// How much is done. Finite.
    pub done: f64,
    /// Of how much. Finite.
    pub total: Option<f64>,
    /// In words.
    pub text: Option<&'a str>,
}

/// A progress notification (PROG-02). The words are left out where the revision does not know them.
#[must_use]
pub fn progress(revision: Revision, token: &Token, step: Step<'_>) -> Bytes {
    message(&Notification {
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: ProgressParams {
            token,
            progress: plain(step.done),
            total: step.total.map(plain),
            message: step.text.filter(|_| revision.has_progress_messages()),
        },
    })
}

/// A number as most people write it: without a fraction where it has none.
fn plain(number: f64) -> Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        // A whole number within ±(2^53 - 1) is exact as an integer.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and within the bounds of i64"
        )]
        return Value::from(number as i64);
    }
    Value::from(number)
}

/// Several answers as the one body of a batch (BASE-09).
#[must_use]
pub fn batch(answers: &[Bytes]) -> Bytes {
    let mut body = Vec::with_capacity(answers.iter().map(|answer| answer.len() + 1).sum::<usize>() + 2);
    body.push(b'[');
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(answer);
    }
    body.push(b']');
    Bytes::from(body)
}

// === shapes ===

fn message(value: &impl Serialize) -> Bytes {
    // Serialising our own shapes into memory cannot fail: keys are strings, floats are finite, nothing is fallible.
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: Body<'a>,
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    error: ErrorBody,
}

#[derive(Serialize)]
struct ErrorBody {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: ProgressParams<'a>,
}

#[derive(Serialize)]
struct ProgressParams<'a> {
    #[serde(rename = "progressToken")]
    token: &'a Token,
    progress: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

struct Body<'a> {
    server: &'a Server,
    revision: Revision,
    said: &'a Said,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            server,
            revision,
            said,
        } = *self;
        let modern = match revision.era() {
            Era::Modern => true,
            Era::Legacy => false,
        };
        let mut map = serializer.serialize_map(None)?;
        if modern {
            map.serialize_entry("resultType", "complete")?;
        }
        match said {
            Said::Opened(offers) => {
                map.serialize_entry("protocolVersion", revision.as_str())?;
                map.serialize_entry("capabilities", &Server::capabilities(revision, *offers))?;
                map.serialize_entry("serverInfo", &server.implementation(revision))?;
                if let Some(instructions) = &server.instructions {
                    map.serialize_entry("instructions", instructions)?;
                }
            }
            Said::Discovered(offers) => {
                let versions: Vec<_> = offered().into_iter().map(Revision::as_str).collect();
                map.serialize_entry("supportedVersions", &versions)?;
                map.serialize_entry("capabilities", &Server::capabilities(revision, *offers))?;
                if let Some(instructions) = &server.instructions {
                    map.serialize_entry("instructions", instructions)?;
                }
            }
            Said::Heard => {}
            Said::Tools(page) => {
                let name = |tool: &'_ Definition| -> String {
                    let whole = tool.name.as_str();
                    whole.get(page.left_out..).unwrap_or(whole).to_owned()
                };
                let tools: Vec<Object> = page
                    .tools
                    .iter()
                    .map(|tool| tool.write_as(revision, &name(tool)))
                    .collect();
                map.serialize_entry("tools", &tools)?;
                if let Some(next) = &page.next {
                    map.serialize_entry("nextCursor", next)?;
                }
            }
            Said::Items(page) => {
                let write = |item: &std::sync::Arc<Item>| item.write(revision, page.left_out);
                let items: Vec<Object> = page.items.iter().map(write).collect();
                map.serialize_entry(page.surface.member(), &items)?;
                if let Some(next) = &page.next {
                    map.serialize_entry("nextCursor", next)?;
                }
            }
            Said::Prompt(object) => self.prompt(&mut map, object)?,
            Said::Contents(object) | Said::Completed(object) => whole(&mut map, object)?,
            Said::Called(reply) => self.called(&mut map, reply)?,
        }
        if modern {
            // CACHE-01: only on results that may be kept. What one caller may see is not for another's cache.
            match said {
                Said::Discovered(_) | Said::Tools(_) | Said::Items(_) => {
                    map.serialize_entry("ttlMs", &server.ttl_ms)?;
                    map.serialize_entry("cacheScope", "private")?;
                }
                // What its server does not let anybody keep, nobody keeps (C3).
                Said::Contents(object) => {
                    let kept = object.get("ttlMs").filter(|ttl| ttl.is_u64());
                    map.serialize_entry("ttlMs", kept.unwrap_or(&Value::from(0)))?;
                    map.serialize_entry("cacheScope", "private")?;
                }
                Said::Opened(_) | Said::Heard | Said::Called(_) | Said::Prompt(_) | Said::Completed(_) => {}
            }
        }
        let mut meta = match said {
            Said::Called(reply) => reply.beside.meta.clone(),
            Said::Prompt(object) | Said::Contents(object) | Said::Completed(object) => {
                let meta = object.get("_meta").and_then(Value::as_object);
                meta.cloned().unwrap_or_default()
            }
            Said::Opened(_) | Said::Discovered(_) | Said::Heard | Said::Tools(_) | Said::Items(_) => {
                Object::new()
            }
        };
        if modern {
            meta.insert(SERVER_INFO.to_owned(), server.implementation(revision));
        }
        if !meta.is_empty() {
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

/// Members of a result that are written here, whatever a server calls its own.
const WRITTEN: [&str; 4] = ["resultType", "_meta", "ttlMs", "cacheScope"];

/// Every member of a result of a server but those that are written here.
fn whole<M: SerializeMap>(map: &mut M, object: &Object) -> Result<(), M::Error> {
    let others = object.iter().filter(|(key, _)| !WRITTEN.contains(&key.as_str()));
    for (key, value) in others {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

impl Body<'_> {
    /// The messages of a prompt: each with its block as the reader's revision has it.
    fn prompt<M: SerializeMap>(&self, map: &mut M, object: &Object) -> Result<(), M::Error> {
        let others = object.iter().filter(|(key, _)| !WRITTEN.contains(&key.as_str()));
        for (key, value) in others {
            match value.as_array() {
                Some(messages) if key == "messages" => {
                    map.serialize_entry(key, &Messages(messages, self.revision))?;
                }
                Some(_) | None => map.serialize_entry(key, value)?,
            }
        }
        Ok(())
    }

    fn called<M: SerializeMap>(&self, map: &mut M, reply: &Reply) -> Result<(), M::Error> {
        let revision = self.revision;
        let structured = reply.structured.as_ref();
        let is_known = structured.is_some_and(|value| knows_structured(revision, value));
        match structured {
            // TOOL-06: a reader that does not know structured content reads it as text.
            Some(value) if !is_known && !have_text(&reply.content) => {
                let mut content = reply.content.clone();
                content.push(Content::Text(value.to_string()));
                map.serialize_entry("content", &Blocks(&content, revision))?;
            }
            Some(_) | None => map.serialize_entry("content", &Blocks(&reply.content, revision))?,
        }
        if let Some(value) = structured.filter(|_| is_known) {
            map.serialize_entry("structuredContent", value)?;
        }
        if reply.is_error {
            map.serialize_entry("isError", &true)?;
        }
        // Members that we write ourselves are not written twice, whatever a server calls its own.
        const OF_A_CALL: [&str; 3] = ["content", "structuredContent", "isError"];
        for (key, value) in &reply.beside.others {
            if !WRITTEN.contains(&key.as_str()) && !OF_A_CALL.contains(&key.as_str()) {
                map.serialize_entry(key, value)?;
            }
        }
        Ok(())
    }
}
