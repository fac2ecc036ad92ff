//! What a server asks of whoever is behind a client, and what a client lets itself be asked: elicitation, sampling, roots.
//!
//! Words without an era: the same inquiry is a request of its own in the legacy era and an entry of `inputRequests` in the
//! stateless one. What a reader's revision does not know is translated where that loses nothing, and is refused where it
//! would (C2, C4). Who may be asked by whom is not decided here.

mod form;
mod older;
mod profile;

use bytes::Bytes;
use model::{JsonLimits, Object, Value, parse_foreign};
use serde_json::json;

use crate::revision::{Era, Revision};

pub use profile::Profile;

/// One thing that a server asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Inquiry {
    kind: InquiryKind,
    params: Object,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InquiryKind {
    /// A form to be filled in by a person (ELIC-02).
    Form,
    /// A page to be opened by a person (ELIC-05).
    Url,
    /// A completion of the client's model (SAMP-01).
    Sampling,
    /// The folders of the client (ROOT-01).
    Roots,
}

/// Why a request of a server is not put to anybody: the error that it gets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct InquiryFault {
    /// The code of the error.
    pub code: i32,
    /// Its text.
    pub text: String,
}

/// How an inquiry ended.
#[derive(Debug, Clone, PartialEq)]
pub enum InquiryReply {
    /// With a result that was checked by [`Inquiry::read_result`].
    Result(Object),
    /// With an error of the client, or because the client cannot be asked this.
    Error {
        /// The code of the error.
        code: i32,
        /// What it says.
        text: String,
    },
    /// Nobody answered: the time is over, or the caller is gone.
    Nothing,
}

const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
/// Where an inquiry says which upstream it comes from.
const UPSTREAM: &str = "io.tollhouse/upstream";

impl InquiryKind {
    /// The method by which it is asked.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Whether a person is asked, who has words for a refusal (ELIC-03).
    #[must_use]
    pub const fn is_elicitation(self) -> bool {
        match self {
            Self::Form | Self::Url => true,
            Self::Sampling | Self::Roots => false,
        }
    }
}

impl Inquiry {
    /// Reads a request of a server.
    ///
    /// What belongs to its hop is taken out: `_meta`, `task`, `elicitationId` (C3). So is a wish for the context of other
    /// servers, because behind the gate "this server" would be all of them (SAMP-05 lets a client do that).
    ///
    /// # Errors
    /// [`InquiryFault`] with -32601 for a method that is none of these, and -32602 for parameters that do not fit.
    pub fn read(method: &str, params: Option<&Bytes>, limits: JsonLimits) -> Result<Self, InquiryFault> {
        let params = match params.map(|bytes| parse_foreign(bytes, limits)) {
            None => Object::new(),
            Some(Ok(Value::Object(params))) => params,
            Some(Ok(_)) => return Err(invalid("`params` is an object")),
            Some(Err(fault)) => return Err(invalid(format!("`params` is not JSON that may pass: {fault}"))),
        };
        Self::of(method, params)
    }

    /// Reads the method and the parameters of an entry of `inputRequests` (MRTR-03).
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of(method: &str, mut params: Object) -> Result<Self, InquiryFault> {
        for key in ["_meta", "task", "elicitationId"] {
            params.shift_remove(key);
        }
        let text = |params: &Object, key: &str| match params.get(key) {
            Some(Value::String(_)) => Ok(()),
            Some(_) | None => Err(invalid(format!("`{key}` is a string"))),
        };
        let kind = match method {
            "elicitation/create" => {
                text(&params, "message")?;
                match params.shift_remove("mode") {
                    None => InquiryKind::Form,
                    Some(Value::String(mode)) if mode == "form" => InquiryKind::Form,
                    Some(Value::String(mode)) if mode == "url" => InquiryKind::Url,
                    Some(_) => return Err(invalid("`mode` is `form` or `url`")),
                }
            }
            "sampling/createMessage" => InquiryKind::Sampling,
            "roots/list" => InquiryKind::Roots,
            _ => {
                return Err(InquiryFault {
                    code: METHOD_NOT_FOUND,
                    text: "this client does not serve requests of this kind".to_owned(),
                });
            }
        };
        match kind {
            InquiryKind::Form => form::is_usable(params.get("requestedSchema")).map_err(invalid)?,
            InquiryKind::Url => {
                let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
                let is_page = ["https://", "http://"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme));
                // What else a program may open can act by itself.
                if !is_page || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
                    return Err(invalid("`url` is an address with http or https"));
                }
            }
            InquiryKind::Sampling => {
                params.shift_remove("includeContext");
                let is_whole = params.get("messages").is_some_and(Value::is_array)
                    && params.get("maxTokens").is_some_and(Value::is_number);
                if !is_whole {
                    return Err(invalid("`messages` is an array, and `maxTokens` a number"));
                }
            }
            InquiryKind::Roots => params.clear(),
        }
        Ok(Self { kind, params })
    }

    /// What is asked.
    #[must_use]
    pub const fn kind(&self) -> InquiryKind {
        self.kind
    }

    /// Its parameters, in the newest form.
    #[must_use]
    pub const fn params(&self) -> &Object {
        &self.params
    }

    /// What somebody has to be able to do to be asked this.
    #[must_use]
    pub fn needs(&self) -> Profile {
        match self.kind {
            InquiryKind::Form => Profile::FORM,
            InquiryKind::Url => Profile::URL,
            InquiryKind::Roots => Profile::ROOTS,
            InquiryKind::Sampling if older::has_tools(&self.params) => Profile::SAMPLING.or(Profile::TOOLS),
            InquiryKind::Sampling => Profile::SAMPLING,
        }
    }

    /// Whether a client with this profile may be asked.
    ///
    /// # Errors
    /// The error that the server gets: -32601 where the method was not declared at all, -32602 where the mode or the tools
    /// were not (ELIC-10, SAMP-02).
    pub fn fits(&self, profile: Profile) -> Result<(), InquiryFault> {
        if profile.has(self.needs()) {
            return Ok(());
        }
        let method_is_declared = match self.kind {
            InquiryKind::Form | InquiryKind::Url => profile.has(Profile::FORM) || profile.has(Profile::URL),
            InquiryKind::Sampling => profile.has(Profile::SAMPLING),
            InquiryKind::Roots => false,
        };
        let code = if method_is_declared {
            INVALID_PARAMS
        } else {
            METHOD_NOT_FOUND
        };
        Err(InquiryFault {
            code,
            text: "this client has not declared that it can be asked this".to_owned(),
        })
    }

    /// The same, with the upstream that asks: always for programs, and at the start of what a person reads where
    /// `shown`.
    #[must_use]
    pub fn from_upstream(mut self, upstream: &str, shown: bool) -> Self {
        if shown && let Some(Value::String(message)) = self.params.get_mut("message") {
            *message = format!("[{upstream}] {message}");
        }
        self.params
            .insert("_meta".to_owned(), json!({ UPSTREAM: upstream }));
        self
    }

    /// As a request to a client of the legacy era. `id` is ours; it also names a page that a person is sent to, where the
    /// revision demands a name for it (ELIC-05).
    ///
    /// # Errors
    /// What this revision cannot ask, in words; nothing is made up in its place (HOP-10).
    pub fn request(&self, revision: Revision, id: i64) -> Result<Bytes, String> {
        let mut params = older::params(self.kind, &self.params, revision)?;
        if self.kind == InquiryKind::Url {
            params.insert("mode".to_owned(), json!("url"));
            params.insert("elicitationId".to_owned(), json!(format!("ask-{id}")));
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": self.kind.method(), "params": params });
        Ok(Bytes::from(message.to_string()))
    }

    /// As an entry of `inputRequests` (MRTR-03).
    #[must_use]
    pub fn entry(&self) -> Value {
        let mut params = self.params.clone();
        match self.kind {
            InquiryKind::Form => params.insert("mode".to_owned(), json!("form")),
            InquiryKind::Url => params.insert("mode".to_owned(), json!("url")),
            InquiryKind::Sampling | InquiryKind::Roots => None,
        };
        json!({ "method": self.kind.method(), "params": params })
    }

    /// Reads the result of a client.
    ///
    /// # Errors
    /// What is wrong with it, in words: its form, or a content that the form does not ask for (C5).
    pub fn read_result(&self, result: &Value) -> Result<Object, String> {
        let Value::Object(result) = result else {
            return Err("a result is an object".to_owned());
        };
        match self.kind {
            InquiryKind::Form | InquiryKind::Url => self.read_choice(result),
            InquiryKind::Sampling => {
                let is_whole = result.get("role").is_some_and(Value::is_string)
                    && result.get("model").is_some_and(Value::is_string)
                    && result
                        .get("content")
                        .is_some_and(|content| content.is_object() || content.is_array());
                if !is_whole {
                    return Err("a result of sampling has `role`, `content` and `model`".to_owned());
                }
                let mut result = result.clone();
                for key in ["_meta", "resultType"] {
                    result.shift_remove(key);
                }
                Ok(result)
            }
            InquiryKind::Roots => {
                let is_root = |root: &Value| {
                    let uri = root.get("uri").and_then(Value::as_str);
                    uri.is_some_and(|uri| uri.starts_with("file://"))
                };
                match result.get("roots") {
                    Some(Value::Array(roots)) if roots.iter().all(is_root) => {
                        Ok(Object::from_iter([("roots".to_owned(), json!(roots))]))
                    }
                    Some(_) | None => Err("`roots` is an array of objects with a `uri` of files".to_owned()),
                }
            }
        }
    }

    fn read_choice(&self, result: &Object) -> Result<Object, String> {
        let action = match result.get("action").and_then(Value::as_str) {
            Some(action @ ("accept" | "decline" | "cancel")) => action,
            Some(_) | None => return Err("`action` is `accept`, `decline` or `cancel`".to_owned()),
        };
        let mut choice = Object::from_iter([("action".to_owned(), json!(action))]);
        if action == "accept" && self.kind == InquiryKind::Form {
            let none = Value::Object(Object::new());
            let content = result.get("content").unwrap_or(&none);
            form::fits(self.params.get("requestedSchema"), content)?;
            choice.insert("content".to_owned(), content.clone());
        }
        Ok(choice)
    }

    /// The result that a server gets for a reply, in its revision; the error where there is none.
    ///
    /// A person who was not reached has cancelled, as far as a server can be told; for what a program was asked there is
    /// no such word (C2, C5).
    ///
    /// # Errors
    /// [`InquiryFault`], the error that it gets.
    pub fn result_for(&self, revision: Revision, reply: InquiryReply) -> Result<Value, InquiryFault> {
        match reply {
            InquiryReply::Result(mut result) => {
                if self.kind == InquiryKind::Sampling {
                    older::collapse(&mut result, revision)
                        .map_err(|text| InquiryFault { code: -32_603, text })?;
                }
                Ok(Value::Object(result))
            }
            InquiryReply::Error { .. } | InquiryReply::Nothing if self.kind.is_elicitation() => {
                Ok(json!({ "action": "cancel" }))
            }
            InquiryReply::Error { code, text } => Err(InquiryFault { code, text }),
            InquiryReply::Nothing => Err(InquiryFault {
                code: -32_603,
                text: "nobody answered".to_owned(),
            }),
        }
    }

    /// Fields of a form whose names or titles ask for a secret, which belongs on a page (ELIC-04).
    #[must_use]
    pub fn asks_for_a_secret(&self) -> bool {
        self.kind == InquiryKind::Form && form::asks_for_a_secret(self.params.get("requestedSchema"))
    }
}

/// An error of a client, as it may go on to a server.
#[must_use]
pub fn error_of(error: &Value) -> InquiryReply {
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .and_then(|code| i32::try_from(code).ok());
    let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
    InquiryReply::Error {
        code: code.unwrap_or(-32_603),
        text: text.chars().take(1_024).collect(),
    }
}

/// Whether clients of this revision are asked by requests of ours.
#[must_use]
pub const fn is_asked_by_request(revision: Revision) -> bool {
    matches!(revision.era(), Era::Legacy)
}

fn invalid(text: impl Into<String>) -> InquiryFault {
    InquiryFault {
        code: INVALID_PARAMS,
        text: text.into(),
    }
}

#[cfg(test)]
mod tests;
