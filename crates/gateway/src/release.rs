//! What came back, checked before it may leave: size, form, rows, projection, schema, credentials.
//!
//! The answer of an upstream is untrusted data. Only what is built here anew goes on; no byte is passed through.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catalog::{Operation, Tool};
use model::{
    Aim, CallId, Content, JsonLimits, Limits, Media, MediaKind, Object, Refusal, RefusalCode, Reply, Target,
    Value, parse_foreign,
};
use upstream::{Answer, Far};

use crate::arguments::Schemas;
use crate::problem::{self, status_text};
use crate::rows::Rows;

/// Proof that this result was checked and may go to the caller.
///
/// It cannot be written down by hand:
/// ```compile_fail,E0451
/// let forged = gateway::Released { delivery: gateway::Delivery::Reply(model::Reply::text("x")) };
/// ```
/// nor copied:
/// ```compile_fail,E0308
/// fn twice(one: &gateway::Released) -> gateway::Released { one.clone() }
/// ```
/// nor made of nothing:
/// ```compile_fail,E0277
/// let forged: gateway::Released = Default::default();
/// ```
#[must_use = "a result that was checked is to be sent"]
#[derive(Debug)]
pub struct Released {
    /// Invariant: checked by `check`.
    delivery: Delivery,
}

/// What may be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    /// The result of a tool.
    Reply(Reply),
    /// A prompt: the result of its server, whole.
    Prompt(Object),
    /// What a resource holds: the result of its server, whole.
    Contents(Object),
    /// Values of an argument: the result of its server, whole.
    Completion(Object),
    /// That its server tells from now on when a resource changes.
    Followed,
}

impl Released {
    /// What may be sent.
    #[must_use]
    pub fn into_delivery(self) -> Delivery {
        self.delivery
    }

    /// What may be sent, to look at.
    #[must_use]
    pub const fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The result, where it is that of a tool.
    #[must_use]
    pub const fn reply(&self) -> Option<&Reply> {
        match &self.delivery {
            Delivery::Reply(reply) => Some(reply),
            Delivery::Prompt(_) | Delivery::Contents(_) | Delivery::Completion(_) | Delivery::Followed => {
                None
            }
        }
    }
}

/// Everything that an answer is checked against.
pub(crate) struct Checks<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) aim: &'a Aim,
    pub(crate) target: Option<&'a Target>,
    pub(crate) rows: Option<&'a Rows>,
    pub(crate) schemas: &'a Schemas,
    pub(crate) far: &'a Far,
    pub(crate) limits: &'a Limits,
    pub(crate) call: CallId,
}

impl Checks<'_> {
    /// Checks an answer and makes of it what may leave.
    pub(crate) fn release(&self, answer: &Answer) -> Result<Released, Refusal> {
        let reply = if answer.is_success() {
            self.success(answer)?
        } else {
            self.failure(answer)?
        };
        self.checked(reply)
    }

    /// The last checks of a reply, whatever it was made of.
    pub(crate) fn checked(&self, reply: Reply) -> Result<Released, Refusal> {
        self.hides_credentials(&reply)?;
        self.fits(&reply)?;
        Ok(Released {
            delivery: Delivery::Reply(reply),
        })
    }

    /// What a server gave, whole, once no credential stands in it and it is not too long.
    pub(crate) fn whole(&self, object: Object, make: fn(Object) -> Delivery) -> Result<Released, Refusal> {
        if self.is_revealed_in_object(&object) {
            return Err(revealed());
        }
        self.fits_beside(length(&object))?;
        Ok(Released {
            delivery: make(object),
        })
    }

    /// Work that failed, as a failure that a model can act on: its state, and what a problem document says.
    pub(crate) fn failed_work(&self, state: &str, answer: &Answer) -> Result<Released, Refusal> {
        let mut text = format!("the service says that the work has failed (`{state}`)");
        self.add_problem(&mut text, answer)?;
        let reply = Reply::failure(text);
        self.checked(reply)
    }

    fn success(&self, answer: &Answer) -> Result<Reply, Refusal> {
        if answer.body.is_empty() {
            return self.nothing(answer);
        }
        if !answer.is_json() {
            return self.other(answer);
        }
        let value = self.own_rows(answer)?;
        self.structured(value)
    }

    /// The answer as JSON, without rows of other owners.
    pub(crate) fn own_rows(&self, answer: &Answer) -> Result<Value, Refusal> {
        let value = parse_foreign(&answer.body, self.json_limits())
            .map_err(|fault| invalid(format!("the answer is not JSON that may pass: {fault}")))?;
        self.own_rows_of(value)
    }

    /// A value without rows of other owners.
    pub(crate) fn own_rows_of(&self, mut value: Value) -> Result<Value, Refusal> {
        if let Some(rows) = self.rows {
            let Some(owner) = self.target.and_then(|target| target.owner.as_ref()) else {
                return Err(invalid(
                    "rows are to be filtered and the caller's scope is not known",
                ));
            };
            let removed = rows.filter(&mut value, owner).map_err(invalid)?;
            if removed > 0 {
                tracing::warn!(tool = %self.tool.name(), removed, "rows of other owners were taken out of an answer");
            }
        }
        Ok(value)
    }

    /// The parts of a JSON answer that leave, in the form that the tool promises.
    pub(crate) fn structured(&self, mut value: Value) -> Result<Reply, Refusal> {
        let taken = self
            .tool
            .operation()
            .map_or(0, |operation| operation.write_only().take_from(&mut value));
        if taken > 0 {
            tracing::warn!(tool = %self.tool.name(), taken, "fields that are only written were taken out of an answer");
        }
        if let Some(projection) = self.tool.projection() {
            value = projection
                .apply(&value)
                .map_err(|fault| invalid(fault.to_string()))?;
        }
        self.schemas
            .check_result(self.tool, &value)
            .map_err(|faults| invalid(format!("the answer does not fit its schema: {faults}")))?;
        // As text, a credential could be spelled in the escapes of JSON.
        self.hides_credentials_in(&value)?;
        // Structured content goes out where a schema promises it; else the text says all there is (TOOL-06).
        if self.has_output_schema() {
            Ok(Reply::structured(value))
        } else {
            Ok(Reply::text(value.to_string()))
        }
    }

    /// A success without a body. A tool that promises an object says an empty one, where its document lets it.
    fn nothing(&self, answer: &Answer) -> Result<Reply, Refusal> {
        let text = format!("done ({})", status_text(answer.status));
        let promises = self.rows.is_some() || self.tool.projection().is_some() || self.has_output_schema();
        if !promises {
            return Ok(Reply::text(text));
        }
        let value = Value::Object(Object::new());
        if !self.tool.operation().is_some_and(Operation::may_be_empty)
            || self.schemas.check_result(self.tool, &value).is_err()
        {
            return Err(invalid("the answer has no body, and the tool promises one"));
        }
        Ok(Reply {
            structured: self.has_output_schema().then_some(value),
            ..Reply::text(text)
        })
    }

    /// An answer that is not JSON: text as it is, all else as media, where the document declares it.
    fn other(&self, answer: &Answer) -> Result<Reply, Refusal> {
        let media = answer.media_type.as_deref().unwrap_or("no media type");
        if self.rows.is_some() || self.tool.projection().is_some() || self.has_output_schema() {
            return Err(invalid(format!("the tool promises JSON; the answer is {media}")));
        }
        if media.starts_with("text/") || (is_text(media) && self.answers_with(media)) {
            return match std::str::from_utf8(&answer.body) {
                Ok(text) => Ok(Reply::text(text)),
                Err(_) => Err(invalid("the answer is not UTF-8")),
            };
        }
        if !self.answers_with(media) {
            return Err(invalid(format!(
                "an answer of {media} is not passed on, because the document does not declare it"
            )));
        }
        if self.far.reveals(&answer.body) {
            return Err(revealed());
        }
        let kind = match media.split('/').next() {
            Some("image") => MediaKind::Image,
            Some("audio") => MediaKind::Audio,
            Some(_) | None => MediaKind::Other,
        };
        Ok(Reply {
            content: vec![Content::Media(Media {
                kind,
                media_type: media.to_owned(),
                data: STANDARD.encode(&answer.body),
                bytes: answer.body.len(),
                uri: format!("urn:uuid:{}", self.call),
            })],
            ..Reply::text("")
        })
    }

    /// An error of the service, as a failure that a model can act on: the operator's words, or what a problem document
    /// says in its known fields.
    fn failure(&self, answer: &Answer) -> Result<Reply, Refusal> {
        if (300..400).contains(&answer.status) {
            return Err(invalid(format!(
                "the answer is a redirect ({}) and is not followed",
                answer.status
            )));
        }
        let mut text = format!("the service answered {}", status_text(answer.status));
        if let Some(written) = problem::written(&self.tool.bounds().errors, answer.status) {
            text.push_str(&format!(": {written}"));
        } else {
            self.add_problem(&mut text, answer)?;
        }
        // A time that is over helps nobody.
        if let Some(after) = answer.retry_after.filter(|after| !after.is_zero()) {
            text.push_str(&problem::again(after));
        }
        Ok(Reply::failure(text))
    }

    /// Adds what a problem document says.
    fn add_problem(&self, text: &mut String, answer: &Answer) -> Result<(), Refusal> {
        if answer.is_json()
            && let Ok(problem) = parse_foreign(&answer.body, self.json_limits())
        {
            for (index, said) in problem::sentences(&problem).into_iter().enumerate() {
                // Before it is cut: half a credential is not found any more, and too much all the same.
                if self.far.reveals(said.as_bytes()) {
                    return Err(revealed());
                }
                text.push_str(if index == 0 { ": " } else { "; " });
                text.push_str(&problem::cut(said));
            }
        }
        Ok(())
    }

    /// A service that repeats what it was sent must not tell an agent our credential.
    fn hides_credentials(&self, reply: &Reply) -> Result<(), Refusal> {
        let in_text = reply.content.iter().any(|content| match content {
            Content::Text(text) => self.far.reveals(text.as_bytes()),
            // Its bytes were looked at before they became base64.
            Content::Media(_) => false,
            Content::Carried(block) => self.is_revealed_in_object(block),
        });
        if in_text {
            return Err(revealed());
        }
        reply
            .structured
            .as_ref()
            .map_or(Ok(()), |value| self.hides_credentials_in(value))
    }

    fn hides_credentials_in(&self, value: &Value) -> Result<(), Refusal> {
        if self.is_revealed_in(value) {
            Err(revealed())
        } else {
            Ok(())
        }
    }

    fn is_revealed_in(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => self.far.reveals(text.as_bytes()),
            Value::Array(items) => items.iter().any(|item| self.is_revealed_in(item)),
            Value::Object(object) => self.is_revealed_in_object(object),
        }
    }

    pub(crate) fn is_revealed_in_object(&self, object: &Object) -> bool {
        object
            .iter()
            .any(|(key, item)| self.far.reveals(key.as_bytes()) || self.is_revealed_in(item))
    }

    /// What is carried beside the content is bounded like it.
    pub(crate) fn fits_beside(&self, bytes: usize) -> Result<(), Refusal> {
        if bytes > self.limits.result_bytes_max {
            return Err(invalid(format!(
                "the result has {bytes} bytes beside its content; at most {} leave",
                self.limits.result_bytes_max
            )));
        }
        Ok(())
    }

    fn fits(&self, reply: &Reply) -> Result<(), Refusal> {
        let bytes: usize = reply
            .content
            .iter()
            .map(|content| match content {
                Content::Text(text) => text.len(),
                Content::Media(media) => media.data.len(),
                Content::Carried(block) => length(block),
            })
            .sum();
        if bytes > self.limits.result_bytes_max {
            return Err(invalid(format!(
                "the result has {bytes} bytes; at most {} leave",
                self.limits.result_bytes_max
            )));
        }
        Ok(())
    }

    fn answers_with(&self, media: &str) -> bool {
        self.tool
            .operation()
            .is_some_and(|operation| operation.answers_with(media))
    }

    pub(crate) fn has_output_schema(&self) -> bool {
        self.tool.definition().output_schema.is_some()
    }

    pub(crate) const fn json_limits(&self) -> JsonLimits {
        JsonLimits {
            bytes_max: self.limits.upstream_body_bytes_max,
            depth_max: self.limits.json_depth_max,
        }
    }
}

/// The bytes of the texts of a block, which are nearly all of it.
pub(crate) fn length(object: &Object) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of).sum(),
            Value::Object(object) => length(object),
        }
    }
    object.iter().map(|(key, value)| key.len() + of(value)).sum()
}

fn revealed() -> Refusal {
    Refusal::new(
        RefusalCode::ResultWithheld,
        "the answer repeats the credential of the upstream and was withheld",
    )
}

pub(crate) fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::ResultInvalid, why)
}

/// Media types beside `text/…` that are text.
fn is_text(media_type: &str) -> bool {
    media_type.ends_with("+xml")
        || matches!(
            media_type,
            "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/x-ndjson"
                | "application/javascript"
        )
}
