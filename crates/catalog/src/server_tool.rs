//! What an MCP server behind the gate offers: the definition that a person approved, whole, and what the server says now.
//! How tools are made of it; prompts and resources are `offer.rs`'s.

use std::sync::Arc;

use config::ToolSettings;
use model::{Digest, Object, UpstreamName, Value};
use openapi::infer_tool;
use wire::client::{mirrors, published};
use wire::{Definition, Item, Surface};

use crate::abilities::Abilities;
use crate::live::{Drift, Live};
use crate::lock::ApprovedDefinition;
use crate::pin;
use crate::standing;
use crate::template::Template;
use crate::tool::{ReviewFault, Source, Tool, hints};

/// The tool, prompt, resource or template of a server behind one of ours.
#[derive(Debug)]
pub struct ServerTool {
    pub(crate) surface: Surface,
    pub(crate) name: String,
    pub(crate) digest: Digest,
    pub(crate) closed_schema: Value,
    pub(crate) live: Live,
    /// How it is listed, where it is no tool.
    pub(crate) item: Option<Arc<Item>>,
    /// What its URIs are made of, where it is a template.
    pub(crate) template: Option<Template>,
    pub(crate) abilities: Abilities,
    /// Whether its schema wants an argument in a header in a way that is not valid.
    pub(crate) has_invalid_headers: bool,
    /// Whether arguments of it stand in headers too.
    pub(crate) mirrors: bool,
}

impl ServerTool {
    /// What it is.
    #[must_use]
    pub const fn surface(&self) -> Surface {
        self.surface
    }

    /// How it is listed. `None`: it is a tool.
    #[must_use]
    pub const fn item(&self) -> Option<&Arc<Item>> {
        self.item.as_ref()
    }

    /// Whether the server completes its arguments.
    #[must_use]
    pub const fn completes(&self) -> bool {
        self.abilities.completes
    }

    /// Whether the server tells when it changes.
    #[must_use]
    pub const fn subscribes(&self) -> bool {
        self.abilities.subscribes
    }

    /// Whether the server logs to its clients.
    #[must_use]
    pub const fn logs(&self) -> bool {
        self.abilities.logs
    }

    /// Whether arguments of it have to stand in headers too (HM-14).
    #[must_use]
    pub const fn mirrors(&self) -> bool {
        self.mirrors
    }

    /// How exactly it fits a URI, and the values of its variables that the URI holds; `None`: it does not. One resource
    /// fits better than any template.
    pub(crate) fn reads(&self, uri: &str) -> Option<(usize, Object)> {
        match self.surface {
            Surface::Tools | Surface::Prompts => None,
            Surface::Resources => (self.name == uri).then(|| (usize::MAX, Object::new())),
            Surface::Templates => {
                let template = self.template.as_ref()?;
                Some((template.literal(), template.values(uri)?))
            }
        }
    }

    /// The server's own name of it: of a resource its URI, of a template the template.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of the whole definition that was approved.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The input schema without room for arguments that it does not declare.
    #[must_use]
    pub(crate) const fn closed_schema(&self) -> &Value {
        &self.closed_schema
    }

    /// How the server departs from what was approved, as it was seen last.
    #[must_use]
    pub fn drift(&self) -> Option<Drift> {
        self.live.drift()
    }

    /// Holds what the server says now against what was approved; `None`: it has no such tool. `has_headers`: arguments are
    /// mirrored into headers on the way to it. Gives whether that is news.
    pub fn compare(&self, said: Option<&Object>, has_headers: bool) -> bool {
        let drift = match said {
            None => Some(Drift::Gone),
            Some(definition)
                if pin::definition(self.surface, definition) == self.digest
                    && has_headers
                    && self.has_invalid_headers =>
            {
                Some(Drift::Headers)
            }
            Some(definition) if pin::definition(self.surface, definition) == self.digest => None,
            Some(_) => Some(Drift::Changed),
        };
        self.live.note(drift)
    }
}

impl Tool {
    /// Makes a tool of a server's tool as it was approved, and the bounds that a person set.
    ///
    /// # Errors
    /// [`ReviewFault`] where the two do not fit together.
    pub fn of_server(
        upstream: &UpstreamName,
        bounds: &ToolSettings,
        approved: &ApprovedDefinition,
        abilities: Abilities,
    ) -> Result<Self, ReviewFault> {
        let projection = Self::projection_of(bounds)?;
        let whole = &approved.definition;
        let input = whole.get("inputSchema").filter(|schema| schema.is_object());
        let Some(input) = input else {
            return Err(ReviewFault::NoSchema {
                key: bounds.key.clone(),
                tool: bounds.operation.clone(),
            });
        };
        let argument_names = declared(input);
        Self::check_bounds(bounds, &argument_names)?;
        let text = |key: &str| whole.get(key).and_then(Value::as_str).map(str::to_owned);
        let title = whole.get("annotations").and_then(|hints| hints.get("title"));
        let definition = Definition {
            name: bounds.name.clone(),
            // TOOL-10.
            title: bounds
                .title
                .clone()
                .or_else(|| text("title"))
                .or_else(|| title.and_then(Value::as_str).map(str::to_owned)),
            description: bounds
                .description
                .clone()
                .or_else(|| text("description"))
                .unwrap_or_default(),
            // HM-19.
            input_schema: Arc::new(published(input)),
            // A projection makes another form of the answer, which the server's schema says nothing of.
            output_schema: match &projection {
                None => whole
                    .get("outputSchema")
                    .filter(|schema| schema.is_object())
                    .cloned()
                    .map(Arc::new),
                Some(_) => None,
            },
            hints: hints(bounds.class, idempotent(whole)),
            others: others(whole),
        };
        let inference = infer_tool(whole);
        let digest = approved.digest();
        let pin = pin::of_server(upstream, bounds, (Surface::Tools, &definition), digest);
        Ok(Self {
            upstream: upstream.clone(),
            bounds: bounds.clone(),
            definition: Arc::new(definition),
            argument_names,
            projection,
            source: Source::Server(Box::new(ServerTool {
                has_invalid_headers: published(input) != *input,
                surface: Surface::Tools,
                item: None,
                template: None,
                abilities: Abilities {
                    logs: abilities.logs,
                    ..Abilities::default()
                },
                mirrors: mirrors(input),
                name: bounds.operation.clone(),
                digest,
                closed_schema: closed(input),
                live: Live::default(),
            })),
            needs: standing::needs(bounds, &inference),
            inference,
            observed: None,
            contract: None,
            pin,
        })
    }
}

/// The arguments that a schema declares at its root.
fn declared(schema: &Value) -> Vec<String> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default()
}

/// The schema without room for undeclared arguments.
///
/// Most servers leave their schemas open and declare every argument all the same; what they do not declare, nobody has
/// reviewed. A schema that says itself what further arguments may be is left as it is, and so is one that puts its
/// arguments together from parts, where the root does not know them.
fn closed(schema: &Value) -> Value {
    const SAYS_ITSELF: [&str; 10] = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependentSchemas",
        "$ref",
        "$dynamicRef",
    ];
    let mut closed = schema.clone();
    if let Some(object) = closed.as_object_mut()
        && !SAYS_ITSELF.iter().any(|key| object.contains_key(*key))
    {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    closed
}

fn idempotent(whole: &Object) -> bool {
    whole
        .get("annotations")
        .and_then(|hints| hints.get("idempotentHint"))
        == Some(&Value::Bool(true))
}

/// What the definition holds beside what we write ourselves. Tasks are not carried, so nothing is said of them.
fn others(whole: &Object) -> Object {
    const WRITTEN: [&str; 7] = [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "execution",
    ];
    whole
        .iter()
        .filter(|(key, _)| !WRITTEN.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_closed_at_its_root_unless_it_says_itself_what_more_there_may_be() {
        for (schema, is_closed) in [
            (json!({ "type": "object" }), true),
            (json!({ "type": "object", "properties": { "a": {} } }), true),
            (json!({ "type": "object", "additionalProperties": true }), false),
            (
                json!({ "type": "object", "additionalProperties": { "type": "string" } }),
                false,
            ),
            (
                json!({ "type": "object", "patternProperties": { "^x": {} } }),
                false,
            ),
            (json!({ "type": "object", "allOf": [{}] }), false),
        ] {
            let closed = closed(&schema);
            assert_eq!(
                closed.get("additionalProperties") == Some(&json!(false)),
                is_closed,
                "{schema}"
            );
            if !is_closed {
                assert_eq!(closed, schema);
            }
        }
    }
}
