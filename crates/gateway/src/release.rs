//! What came back, checked before it may leave: size, form, rows, projection, schema, credentials.
//!
//! The answer of an upstream is untrusted data. Only what is built here anew goes on; no byte is passed through.

use catalog::Tool;
use model::{Content, JsonLimits, Limits, Refusal, RefusalCode, Reply, Target, Value, parse_foreign};
use upstream::{Answer, Service};

use crate::arguments::Schemas;
use crate::rows::Rows;

/// Proof that this result was checked and may go to the caller.
///
/// It cannot be written down by hand:
/// ```compile_fail,E0451
/// let forged = gateway::Released { reply: model::Reply::text("x") };
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
    reply: Reply,
}

impl Released {
    /// What may be sent.
    #[must_use]
    pub fn into_reply(self) -> Reply {
        self.reply
    }

    /// What may be sent, to look at.
    #[must_use]
    pub const fn reply(&self) -> &Reply {
        &self.reply
    }
}

/// Everything that an answer is checked against.
pub(crate) struct Checks<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) target: Option<&'a Target>,
    pub(crate) rows: Option<&'a Rows>,
    pub(crate) schemas: &'a Schemas,
    pub(crate) service: &'a Service,
    pub(crate) limits: &'a Limits,
}

impl Checks<'_> {
    /// Checks an answer and makes of it what may leave.
    pub(crate) fn release(&self, answer: &Answer) -> Result<Released, Refusal> {
        let reply = if answer.is_success() {
            self.success(answer)?
        } else {
            self.failure(answer)?
        };
        self.hides_credentials(&reply)?;
        self.fits(&reply)?;
        Ok(Released { reply })
    }

    /// Work that failed, as a failure that a model can act on: its state, and what a problem document says.
    pub(crate) fn failed_work(&self, state: &str, answer: &Answer) -> Result<Released, Refusal> {
        let mut text = format!("the service says that the work has failed (`{state}`)");
        self.add_problem(&mut text, answer)?;
        let reply = Reply::failure(text);
        self.hides_credentials(&reply)?;
        self.fits(&reply)?;
        Ok(Released { reply })
    }

    fn success(&self, answer: &Answer) -> Result<Reply, Refusal> {
        if answer.body.is_empty() {
            if self.rows.is_some() || self.tool.projection().is_some() || self.has_output_schema() {
                return Err(invalid("the answer has no body, and the tool promises one"));
            }
            return Ok(Reply::text(format!("done ({})", status_text(answer.status))));
        }
        if !answer.is_json() {
            return self.text(answer);
        }
        let mut value = parse_foreign(&answer.body, self.json_limits())
            .map_err(|fault| invalid(format!("the answer is not JSON that may pass: {fault}")))?;
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

    fn text(&self, answer: &Answer) -> Result<Reply, Refusal> {
        let media = answer.media_type.as_deref().unwrap_or("no media type");
        if self.rows.is_some() || self.tool.projection().is_some() || self.has_output_schema() {
            return Err(invalid(format!("the tool promises JSON; the answer is {media}")));
        }
        if !media.starts_with("text/") {
            return Err(invalid(format!("an answer of {media} is not passed on")));
        }
        match std::str::from_utf8(&answer.body) {
            Ok(text) => Ok(Reply::text(text)),
            Err(_) => Err(invalid("the answer is not UTF-8")),
        }
    }

    /// An error of the service, as a failure that a model can act on: the status, and what a problem document says in
    /// its known fields. Free text of servers, which holds stack traces, stays here.
    fn failure(&self, answer: &Answer) -> Result<Reply, Refusal> {
        if (300..400).contains(&answer.status) {
            return Err(invalid(format!(
                "the answer is a redirect ({}) and is not followed",
                answer.status
            )));
        }
        let mut text = format!("the service answered {}", status_text(answer.status));
        self.add_problem(&mut text, answer)?;
        Ok(Reply::failure(text))
    }

    /// Adds what a problem document says.
    fn add_problem(&self, text: &mut String, answer: &Answer) -> Result<(), Refusal> {
        if answer.is_json()
            && let Ok(problem) = parse_foreign(&answer.body, self.json_limits())
            && let Some(said) = problem_text(&problem)
        {
            // Before it is cut: half a credential is not found any more, and too much all the same.
            if self.service.reveals(said.as_bytes()) {
                return Err(revealed());
            }
            text.push_str(": ");
            text.push_str(&cut(said));
        }
        Ok(())
    }

    /// A service that repeats what it was sent must not tell an agent our credential.
    fn hides_credentials(&self, reply: &Reply) -> Result<(), Refusal> {
        let in_text = reply.content.iter().any(|content| match content {
            Content::Text(text) => self.service.reveals(text.as_bytes()),
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
            Value::String(text) => self.service.reveals(text.as_bytes()),
            Value::Array(items) => items.iter().any(|item| self.is_revealed_in(item)),
            Value::Object(object) => object
                .iter()
                .any(|(key, item)| self.service.reveals(key.as_bytes()) || self.is_revealed_in(item)),
        }
    }

    fn fits(&self, reply: &Reply) -> Result<(), Refusal> {
        let bytes: usize = reply
            .content
            .iter()
            .map(|content| match content {
                Content::Text(text) => text.len(),
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

    fn has_output_schema(&self) -> bool {
        self.tool.definition().output_schema.is_some()
    }

    const fn json_limits(&self) -> JsonLimits {
        JsonLimits {
            bytes_max: self.limits.upstream_body_bytes_max,
            depth_max: self.limits.json_depth_max,
        }
    }
}

fn revealed() -> Refusal {
    Refusal::new(
        RefusalCode::ResultWithheld,
        "the answer repeats the credential of the upstream and was withheld",
    )
}

fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::ResultInvalid, why)
}

/// The longest text of a problem document that is told.
const PROBLEM_CHARACTERS_MAX: usize = 300;

/// What a problem document says, from the fields where services put a sentence for people (RFC 9457; `error.message`
/// and `message` in common use).
fn problem_text(problem: &Value) -> Option<String> {
    const FIELDS: [&str; 7] = [
        "/detail",
        "/title",
        "/error/message",
        "/message",
        "/error_description",
        "/errors/0/message",
        "/error",
    ];
    let said = FIELDS
        .iter()
        .find_map(|field| problem.pointer(field).and_then(Value::as_str))?;
    let text = said
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .filter(|c| !matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}'))
        .collect();
    (!looks_like_a_trace(said)).then_some(text)
}

/// The beginning of a text.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(PROBLEM_CHARACTERS_MAX) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// A message that carries a stack trace tells of the inside of the service and nothing that a model could act on.
fn looks_like_a_trace(text: &str) -> bool {
    text.contains("\n    at ")
        || text.contains("\n\tat ")
        || text.contains("Traceback (most recent call last)")
        || text.contains("stack backtrace:")
        || text.contains("panicked at ")
}

/// A status with the words that RFC 9110 gives it, for the ones that a model meets.
fn status_text(status: u16) -> String {
    let words = match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        423 => "Locked",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return status.to_string(),
    };
    format!("{status} {words}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_is_told_from_its_known_fields_only() {
        for (problem, said) in [
            (
                json!({"title":"Out of stock","detail":"only 3 left"}),
                Some("only 3 left"),
            ),
            (
                json!({"error":{"code":7,"message":"no such invoice"}}),
                Some("no such invoice"),
            ),
            (json!({"error":"invalid_request"}), Some("invalid_request")),
            (json!({"errors":[{"message":"bad date"}]}), Some("bad date")),
            (json!({"stack":"at main.js:1","debug":"secret"}), None),
            (json!(["x"]), None),
            (json!({"message": 7}), None),
        ] {
            assert_eq!(problem_text(&problem).as_deref(), said, "{problem}");
        }
    }

    #[test]
    fn a_stack_trace_and_hidden_characters_do_not_leave() {
        let trace = "TypeError: x\n    at Object.<anonymous> (/srv/app/index.js:10:5)";
        assert_eq!(problem_text(&json!({ "message": trace })), None);
        assert_eq!(
            problem_text(&json!({ "message": "Traceback (most recent call last):\n File" })),
            None
        );
        assert_eq!(
            problem_text(&json!({"message":"a\u{200B}b\u{202E}c\nd\u{E0041}"})).as_deref(),
            Some("abc d")
        );
    }

    #[test]
    fn a_long_problem_is_cut_at_its_limit() {
        let text = |length: usize| cut("x".repeat(length));
        assert_eq!(text(300), "x".repeat(300));
        assert_eq!(text(301), format!("{}…", "x".repeat(300)));
    }
}
