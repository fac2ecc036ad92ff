//! What an MCP server answered to a call, checked before it may leave: its form, its schema, rows, parts, credentials, size.
//!
//! Blocks are carried whole, with all members that they came with; what leaves is what was looked at. Nothing is repaired.

use model::{Aim, Beside, Content, Object, Refusal, RefusalCode, Reply, Value, parse_foreign};
use upstream::Said;
use wire::Surface;
use wire::client::{Called, Carried, Ended, ServerError};

use crate::release::{Checks, Delivery, Released, invalid, length};

/// The longest text of an error that is passed on, in characters.
const TEXT_MAX: usize = 1_024;

impl Checks<'_> {
    /// Checks what a server said and makes of it what may leave. Also gives whether the tool says that it failed.
    pub(crate) fn release_said(&self, said: Said) -> (bool, Result<Released, Refusal>) {
        match said {
            Said::Ended(Ended::Complete(called)) => (called.is_error, self.complete(*called)),
            // The peer goes on until there is an end; this is none.
            Said::Ended(Ended::InputRequired(_)) => (
                true,
                Err(broken("the server asks for input, and nobody took it up")),
            ),
            Said::Ended(Ended::Other(kind)) => (
                true,
                Err(broken(format!(
                    "the server answers with a result of kind {kind:?}"
                ))),
            ),
            Said::Carried(Carried::Complete(object)) => (false, self.whole(object, self.delivers())),
            Said::Carried(Carried::InputRequired(_)) => (
                true,
                Err(broken(
                    "the server asks for input, for which nothing was declared to it",
                )),
            ),
            Said::Carried(Carried::Other(kind)) => (
                true,
                Err(broken(format!(
                    "the server answers with a result of kind {kind:?}"
                ))),
            ),
            Said::Error(error) if self.tool.surface() != Surface::Tools => (true, Err(self.refused(&error))),
            // In every revision a model can act on words better than on a code (TOOL-08; C3, arguments that do not fit).
            Said::Error(error) => {
                let text = format!("the server answered with error {}: {}", error.code, error.text);
                (true, self.checked(Reply::failure(text)))
            }
        }
    }

    fn delivers(&self) -> fn(Object) -> Delivery {
        match (self.aim, self.tool.surface()) {
            (Aim::Complete { .. }, _) => Delivery::Completion,
            (Aim::Follow, _) => |_| Delivery::Followed,
            (Aim::Use, Surface::Prompts) => Delivery::Prompt,
            (Aim::Use, Surface::Tools | Surface::Resources | Surface::Templates) => Delivery::Contents,
        }
    }

    /// An error of a server, where only an error can say that something failed (C9).
    fn refused(&self, error: &ServerError) -> Refusal {
        let reads = matches!(self.tool.surface(), Surface::Resources | Surface::Templates);
        let names_uri = error.data.as_ref().is_some_and(|data| data.get("uri").is_some());
        let code = match error.code {
            -32_002 if reads => RefusalCode::NoResource,
            -32_602 if reads && names_uri => RefusalCode::NoResource,
            -32_602 => RefusalCode::UpstreamParams,
            _ => RefusalCode::UpstreamError,
        };
        let text: String = error.text.chars().take(TEXT_MAX).collect();
        let refusal = Refusal::new(code, format!("the server answered with error {}", error.code));
        if code == RefusalCode::NoResource || self.far.reveals(text.as_bytes()) {
            return refusal;
        }
        refusal.with_detail(text)
    }

    fn complete(&self, called: Called) -> Result<Released, Refusal> {
        let Called {
            content,
            structured,
            is_error,
            meta,
            others,
        } = called;
        let chooses = self.rows.is_some() || self.tool.projection().is_some();
        if chooses && !is_error {
            let value = match structured {
                Some(value) => value,
                None => self.only_text(&content)?,
            };
            let value = self.own_rows_of(value)?;
            // What was not chosen does not leave beside it, either.
            return self.checked(self.structured(value)?);
        }
        match &structured {
            Some(value) => self
                .schemas
                .check_result(self.tool, value)
                .map_err(|faults| invalid(format!("the result does not fit its schema: {faults}")))?,
            // TOOL-06. A failure has another form than a result.
            None if self.has_output_schema() && !is_error => {
                return Err(invalid("the tool promises structured content, and there is none"));
            }
            None => {}
        }
        if self.is_revealed_in_object(&meta) || self.is_revealed_in_object(&others) {
            return Err(Refusal::new(
                RefusalCode::ResultWithheld,
                "the result repeats the credential of the upstream and was withheld",
            ));
        }
        let beside = length(&meta) + length(&others) + structured.as_ref().map_or(0, size);
        self.fits_beside(beside)?;
        self.checked(Reply {
            content: content.into_iter().map(Content::Carried).collect(),
            structured,
            is_error,
            beside: Beside { meta, others },
        })
    }

    /// The one text of a result, as JSON.
    fn only_text(&self, content: &[Object]) -> Result<Value, Refusal> {
        let text = match content {
            [only] if only.get("type").and_then(Value::as_str) == Some("text") => {
                only.get("text").and_then(Value::as_str)
            }
            _ => None,
        };
        let Some(text) = text else {
            return Err(invalid(
                "parts of the result are to be chosen, and it is neither structured nor one text",
            ));
        };
        parse_foreign(text.as_bytes(), self.json_limits()).map_err(|fault| {
            invalid(format!(
                "parts of the result are to be chosen, and its text is no JSON: {fault}"
            ))
        })
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(object) => length(object),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

fn broken(why: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::UpstreamBroken, why)
}
