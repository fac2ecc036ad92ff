//! One enabled tool, as whoever loads a policy describes it. What rules can say about it is in `vocabulary.rs`.

use model::{Class, ResourceType, ToolName, UpstreamName, Value};

/// One enabled tool, as policies see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The public name: rules write `Action::"<tool>"`.
    pub tool: ToolName,
    /// Its upstream: rules write `action in Action::"upstream:<upstream>"`.
    pub upstream: UpstreamName,
    /// Its class, as the reviewer declared it: rules write `action in Action::"class:<class>"`.
    pub class: Class,
    /// The type of the thing that a call names. `None`: the resource is the tool itself, `Tool::"<tool>"`.
    pub resource: Option<ResourceType>,
    /// The JSON Schema of the arguments, a flat object. Which properties rules can read of it is in the
    /// documentation of this crate.
    pub input_schema: Value,
    /// The facts that are looked up before each call, by the name after `context.facts.`.
    pub facts: Vec<(String, FactType)>,
}

/// The type of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FactType {
    /// Yes or no; `Bool` in rules.
    Truth,
    /// A whole number; `Long` in rules.
    Integer,
    /// A text; `String` in rules.
    Text,
}
