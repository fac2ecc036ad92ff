//! Prompts, resources and templates of an MCP server as things that can be admitted, decided about and recorded like tools.
//!
//! Their arguments have a schema of our own: those that a prompt declares, or `uri` and the variables of a template. All of
//! them are texts.

use std::sync::Arc;

use config::ToolSettings;
use model::{Object, UpstreamName, Value};
use openapi::Inference;
use serde_json::json;
use wire::{Definition, Item, Surface};

use crate::abilities::Abilities;
use crate::live::Live;
use crate::lock::ApprovedDefinition;
use crate::pin;
use crate::server_tool::ServerTool;
use crate::standing;
use crate::template::Template;
use crate::tool::{ReviewFault, Source, Tool, hints};

/// The argument that holds the URI of what is read.
pub(crate) const URI: &str = "uri";
/// How many arguments a prompt declares.
const ARGUMENTS_MAX: usize = 64;

impl Tool {
    /// Makes what can be admitted of a prompt, a resource or a template as it was approved, and the bounds that a person
    /// set.
    ///
    /// # Errors
    /// [`ReviewFault`] where the two do not fit together, or the definition cannot be used.
    pub fn of_offer(
        upstream: &UpstreamName,
        bounds: &ToolSettings,
        surface: Surface,
        approved: &ApprovedDefinition,
        abilities: Abilities,
    ) -> Result<Self, ReviewFault> {
        let unusable = |why: String| ReviewFault::Unusable {
            key: bounds.key.clone(),
            name: bounds.operation.clone(),
            why,
        };
        let template = match surface {
            Surface::Templates => Some(Template::parse(&bounds.operation).map_err(unusable)?),
            Surface::Tools | Surface::Prompts | Surface::Resources => None,
        };
        let schema = match (&template, surface) {
            (Some(template), _) => of_template(template),
            (None, Surface::Prompts) => of_prompt(&approved.definition).map_err(unusable)?,
            (None, _) => json!({
                "type": "object",
                "properties": { URI: { "type": "string", "const": bounds.operation } },
                "required": [URI],
                "additionalProperties": false,
            }),
        };
        let argument_names: Vec<String> = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default();
        Self::check_bounds(bounds, &argument_names)?;
        let item = item(surface, bounds, &approved.definition);
        let text = |key: &str| item.whole.get(key).and_then(Value::as_str).map(str::to_owned);
        let definition = Definition {
            name: bounds.name.clone(),
            title: text("title"),
            description: text("description").unwrap_or_default(),
            input_schema: Arc::new(schema.clone()),
            output_schema: None,
            hints: hints(bounds.class, true),
            others: Object::new(),
        };
        let inference = Inference::default();
        let digest = approved.digest();
        let pin = pin::of_server(upstream, bounds, (surface, &definition), digest);
        Ok(Self {
            upstream: upstream.clone(),
            bounds: bounds.clone(),
            definition: Arc::new(definition),
            source: Source::Server(Box::new(ServerTool {
                surface,
                has_invalid_headers: false,
                name: bounds.operation.clone(),
                digest,
                closed_schema: schema,
                live: Live::default(),
                abilities: Abilities {
                    completes: abilities.completes
                        && matches!(surface, Surface::Prompts | Surface::Templates)
                        && !argument_names.is_empty(),
                    subscribes: abilities.subscribes
                        && matches!(surface, Surface::Resources | Surface::Templates),
                    logs: abilities.logs,
                },
                mirrors: false,
                item: Some(Arc::new(item)),
                template,
            })),
            argument_names,
            projection: None,
            needs: standing::needs(bounds, &inference),
            inference,
            observed: None,
            contract: None,
            pin,
        })
    }
}

/// How it is listed: the whole definition, by the public name where it is a prompt, in the words of the operator where he has
/// some.
fn item(surface: Surface, bounds: &ToolSettings, approved: &Object) -> Item {
    let mut whole = approved.clone();
    if surface == Surface::Prompts {
        whole.insert("name".to_owned(), bounds.name.as_str().into());
    }
    for (key, text) in [("title", &bounds.title), ("description", &bounds.description)] {
        if let Some(text) = text {
            whole.insert(key.to_owned(), text.as_str().into());
        }
    }
    Item { surface, whole }
}

fn of_template(template: &Template) -> Value {
    let text = json!({ "type": "string" });
    let names = std::iter::once(URI).chain(template.variables());
    let properties: Object = names.map(|name| (name.to_owned(), text.clone())).collect();
    let required: Vec<&str> = std::iter::once(URI).chain(template.required()).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn of_prompt(definition: &Object) -> Result<Value, String> {
    let mut properties = Object::new();
    let mut required = Vec::new();
    let none = Vec::new();
    let arguments = match definition.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Array(arguments)) => arguments,
        Some(_) => return Err("its `arguments` are no array".to_owned()),
    };
    if arguments.len() > ARGUMENTS_MAX {
        return Err(format!("it has more than {ARGUMENTS_MAX} arguments"));
    }
    for (index, argument) in arguments.iter().enumerate() {
        let name = argument.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| format!("its argument {index} has no `name`"))?;
        let mut schema = json!({ "type": "string" });
        if let (Some(text), Some(schema)) = (
            argument.get("description").filter(|text| text.is_string()),
            schema.as_object_mut(),
        ) {
            schema.insert("description".to_owned(), text.clone());
        }
        if properties.insert(name.to_owned(), schema).is_some() {
            return Err(format!("its argument {index} has the name of another"));
        }
        if argument.get("required") == Some(&Value::Bool(true)) {
            required.push(name);
        }
    }
    Ok(
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(value: &Value) -> Result<Value, String> {
        of_prompt(value.as_object().unwrap())
    }

    #[test]
    fn the_arguments_of_a_prompt_are_those_that_it_declares_and_no_others() {
        let schema = prompt(&json!({ "name": "p", "arguments": [
            { "name": "a", "description": "the first", "required": true }, { "name": "b" },
        ]}))
        .unwrap();
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": { "a": { "type": "string", "description": "the first" }, "b": { "type": "string" } },
                "required": ["a"],
                "additionalProperties": false,
            })
        );
        assert_eq!(prompt(&json!({ "name": "p" })).unwrap()["properties"], json!({}));
        for arguments in [
            json!({}),
            json!([{}]),
            json!([{ "name": 1 }]),
            json!([{ "name": "a" }, { "name": "a" }]),
        ] {
            assert!(
                prompt(&json!({ "name": "p", "arguments": arguments })).is_err(),
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_prompt_has_arguments_up_to_the_limit_and_not_past_it() {
        let of = |count: usize| {
            let arguments: Vec<Value> = (0..count).map(|n| json!({ "name": n.to_string() })).collect();
            prompt(&json!({ "name": "p", "arguments": arguments }))
        };
        assert!(of(ARGUMENTS_MAX).is_ok());
        assert!(of(ARGUMENTS_MAX + 1).is_err());
    }

    #[test]
    fn a_read_of_a_template_has_its_uri_and_its_variables() {
        let schema = of_template(&Template::parse("a://t/{id}{?q}").unwrap());
        assert_eq!(schema["required"], json!(["uri", "id"]));
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["uri", "id", "q"]);
    }
}
