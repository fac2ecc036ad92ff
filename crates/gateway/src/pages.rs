//! The pages of a list: which one follows, and how several become one answer.
//!
//! What names the next page comes from the service and is untrusted: it becomes the value of one argument and nothing else,
//! is checked against the schema of the tool as a caller's would be, and is written into the request by the same plan.

use std::sync::Arc;

use catalog::{Operation, Tool};
use config::{PagesBy, PagesSettings};
use model::{Arguments, CallId, Content, JsonLimits, Limits, Object, Refusal, Reply, Value, parse_foreign};
use serde_json_path::JsonPath;
use upstream::{Answer, Followed, Outgoing, Service};

use crate::arguments::Schemas;
use crate::release::{Checks, Released, invalid};

/// The longest name of a page that is told, in bytes.
const TOLD_BYTES_MAX: usize = 256;

/// How the pages of one tool are read.
#[derive(Debug)]
pub(crate) struct Pages {
    argument: String,
    asked: String,
    items: JsonPath,
    max: u64,
    by: By,
}

#[derive(Debug)]
enum By {
    Cursor(JsonPath),
    Link,
    Number(u64),
}

/// Why pages cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is no JSONPath: {why}")]
pub(crate) struct PagesFault {
    path: String,
    why: String,
}

impl Pages {
    pub(crate) fn parse(settings: &PagesSettings) -> Result<Self, PagesFault> {
        let parse = |path: &str| {
            JsonPath::parse(path).map_err(|error| PagesFault {
                path: path.to_owned(),
                why: error.to_string(),
            })
        };
        Ok(Self {
            argument: settings.argument.clone(),
            asked: settings.asked.clone(),
            items: parse(&settings.items)?,
            max: settings.pages_max,
            by: match &settings.by {
                PagesBy::Cursor(path) => By::Cursor(parse(path)?),
                PagesBy::Link => By::Link,
                PagesBy::Number(first) => By::Number(*first),
            },
        })
    }

    /// The list of rows in a page, as a pointer.
    fn list(&self, page: &Value) -> Result<String, String> {
        let found = self.items.query_located(page);
        let mut places = found.iter().map(|node| node.location().to_json_pointer());
        match (places.next(), places.next()) {
            (Some(place), None) if page.pointer(&place).is_some_and(Value::is_array) => Ok(place),
            _ => Err("the answer has not exactly one list where `pages.items` points".to_owned()),
        }
    }

    /// The pages as one: the last one, with the rows of all of them.
    fn joined(&self, pages: Vec<Value>) -> Result<Value, String> {
        let mut rows = Vec::new();
        let mut last = Value::Null;
        for mut page in pages {
            let place = self.list(&page)?;
            if let Some(Value::Array(list)) = page.pointer_mut(&place) {
                rows.append(list);
            }
            last = page;
        }
        let place = self.list(&last)?;
        if let Some(list) = last.pointer_mut(&place) {
            *list = Value::Array(rows);
        }
        Ok(last)
    }
}

/// The pages of one call, while they come.
pub(crate) struct Reading<'g> {
    pages: &'g Pages,
    tool: &'g Tool,
    operation: &'g Operation,
    service: &'g Service,
    schemas: &'g Schemas,
    json: JsonLimits,
    call: CallId,
    /// The arguments of the page that is being read, as the request has them.
    arguments: Object,
    injected: Object,
    left: u64,
    /// What names the page behind the last one.
    next: Option<Value>,
    fault: Option<String>,
}

impl<'g> Reading<'g> {
    /// The reading of a call that was checked and is about to be sent.
    pub(crate) fn new(
        pages: &'g Pages,
        (tool, operation, service): (&'g Tool, &'g Operation, &'g Service),
        schemas: &'g Schemas,
        limits: &Limits,
        (call, arguments, injected): (CallId, &Arc<Arguments>, &Object),
    ) -> Self {
        let mut arguments = arguments.object().clone();
        let asked = arguments.shift_remove(&pages.asked);
        Self {
            pages,
            tool,
            operation,
            service,
            schemas,
            json: JsonLimits {
                bytes_max: limits.upstream_body_bytes_max,
                depth_max: limits.json_depth_max,
            },
            call,
            arguments,
            injected: injected.clone(),
            left: asked
                .and_then(|asked| asked.as_u64())
                .unwrap_or(1)
                .clamp(1, pages.max),
            next: None,
            fault: None,
        }
    }

    /// What follows a page.
    pub(crate) fn follow(&mut self, answer: &Answer, request: &Outgoing) -> Followed {
        self.left = self.left.saturating_sub(1);
        self.next = None;
        if !answer.is_success() || !answer.is_json() {
            return Followed::End;
        }
        match self.named(answer, request) {
            Err(fault) => {
                self.fault = Some(fault);
                Followed::End
            }
            Ok(None) => Followed::End,
            Ok(Some((arguments, next))) => {
                self.next = Some(next);
                if self.left == 0 {
                    return Followed::End;
                }
                let page = (self.tool, self.operation);
                match self
                    .service
                    .prepare_page(page, self.call, &arguments, &self.injected)
                {
                    Ok(outgoing) => {
                        self.arguments = arguments;
                        Followed::By(Box::new(outgoing))
                    }
                    Err(fault) => {
                        self.fault = Some(format!("the next page cannot be asked for: {fault}"));
                        Followed::End
                    }
                }
            }
        }
    }

    /// The arguments of the next page, and what names it there. `None` where there is none.
    fn named(&self, answer: &Answer, request: &Outgoing) -> Result<Option<(Object, Value)>, String> {
        let argument = &self.pages.argument;
        let name = match &self.pages.by {
            By::Link => {
                let query = self.service.next_query(answer, request)?;
                let wire = self.operation.plan().query_name(argument);
                match query {
                    None => None,
                    Some(query) => {
                        let named = query.into_iter().find(|(name, _)| Some(name.as_str()) == wire);
                        let (_, value) = named.ok_or("the link to the next page does not name it")?;
                        Some(Value::String(value))
                    }
                }
            }
            By::Cursor(path) => {
                let page = self.page(answer)?;
                match path.query(&page).at_most_one() {
                    Ok(found) => found.filter(|found| !is_nothing(found)).cloned(),
                    Err(_) => return Err("the answer names more than one next page".to_owned()),
                }
            }
            By::Number(first) => {
                let page = self.page(answer)?;
                let place = self.pages.list(&page)?;
                let is_last = page
                    .pointer(&place)
                    .and_then(Value::as_array)
                    .is_none_or(Vec::is_empty);
                let here = match self.arguments.get(argument) {
                    None => *first,
                    Some(here) => here
                        .as_u64()
                        .or_else(|| here.as_str()?.parse().ok())
                        .ok_or("the page has no number")?,
                };
                (!is_last).then(|| Value::from(here.saturating_add(1)))
            }
        };
        let Some(name) = name else { return Ok(None) };
        if self.arguments.get(argument) == Some(&name) {
            return Err("the answer names itself as the next page".to_owned());
        }
        // A link holds texts; what they mean, the schema says.
        let number = name
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
            .map(Value::from);
        let text = name.as_u64().map(|number| Value::String(number.to_string()));
        for value in std::iter::once(name).chain(number).chain(text) {
            let mut arguments = self.arguments.clone();
            arguments.insert(argument.clone(), value.clone());
            let whole = Value::Object(arguments);
            if self.schemas.takes(self.tool, &whole)
                && let Value::Object(arguments) = whole
            {
                return Ok(Some((arguments, value)));
            }
        }
        Err(format!("what names the next page is no value of `{argument}`"))
    }

    fn page(&self, answer: &Answer) -> Result<Value, String> {
        parse_foreign(&answer.body, self.json)
            .map_err(|fault| format!("the answer is not JSON that may pass: {fault}"))
    }

    /// Checks the pages, each for itself and all together, and makes of them what may leave.
    pub(crate) fn release(&self, answers: &[Answer], checks: &Checks<'_>) -> Result<Released, Refusal> {
        let odd = answers
            .iter()
            .find(|answer| !answer.is_success() || !answer.is_json() || answer.body.is_empty());
        if let Some(odd) = odd {
            return checks.release(odd);
        }
        if let Some(fault) = &self.fault {
            return Err(invalid(fault.clone()));
        }
        let pages: Vec<Value> = answers
            .iter()
            .map(|answer| checks.own_rows(answer))
            .collect::<Result<_, _>>()?;
        let mut reply = checks.structured(self.pages.joined(pages).map_err(invalid)?)?;
        self.tell_next(&mut reply);
        checks.checked(reply)
    }

    /// A model that sees the end of what it asked for must know whether there is more.
    fn tell_next(&self, reply: &mut Reply) {
        let Some(next) = &self.next else { return };
        let next = next.to_string();
        let text = if next.len() <= TOLD_BYTES_MAX {
            format!(
                "there is another page: call again with `{}` = {next}",
                self.pages.argument
            )
        } else {
            "there is another page".to_owned()
        };
        reply.content.push(Content::Text(text));
    }
}

/// What services write where there is no next page.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pages(items: &str) -> Pages {
        Pages::parse(&PagesSettings {
            argument: "cursor".to_owned(),
            asked: "pages".to_owned(),
            items: items.to_owned(),
            pages_max: 3,
            by: PagesBy::Cursor("$.next".to_owned()),
        })
        .unwrap()
    }

    #[test]
    fn pages_become_the_last_one_with_the_rows_of_all() {
        let first = json!({"rows": [1, 2], "next": "b", "total": 3});
        let second = json!({"rows": [3], "next": null, "total": 3});
        assert_eq!(
            pages("$.rows").joined(vec![first, second]).unwrap(),
            json!({"rows": [1, 2, 3], "next": null, "total": 3})
        );
        assert_eq!(
            pages("$").joined(vec![json!([1]), json!([2])]).unwrap(),
            json!([1, 2])
        );
        for page in [json!({}), json!({"rows": 1}), json!({"rows": {"a": []}})] {
            assert!(pages("$.rows").joined(vec![page]).is_err());
        }
        assert!(pages("$.*").joined(vec![json!({"a": [], "b": []})]).is_err());
    }

    #[test]
    fn nothing_is_told_from_a_name() {
        for nothing in [json!(null), json!(false), json!("")] {
            assert!(is_nothing(&nothing));
        }
        for name in [json!(0), json!("0"), json!(true)] {
            assert!(!is_nothing(&name));
        }
    }
}
