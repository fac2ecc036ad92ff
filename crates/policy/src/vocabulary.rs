//! What rules can name: tools, groups, types and what can be read of each; and the Cedar schema that says so.
//!
//! It is made once, from what a reviewer enabled. Nothing a caller sends can add a word to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use model::{Class, ResourceType, ToolName, UpstreamName};

use crate::action::{Action, FactType};
use crate::fault::{Place, PolicyFault, PolicyFaultKind};
use crate::shape::{Found, Record, Scalar, Shape};

/// The type of the caller.
pub(crate) const CALLER: &str = "Caller";
/// The type of a resource that is a tool itself.
pub(crate) const TOOL: &str = "Tool";
/// The type of all actions.
pub(crate) const ACTION: &str = "Action";
/// What rules can read of a caller.
pub(crate) const CALLER_ATTRIBUTES: [&str; 5] = ["subject", "issuer", "tenant", "client", "roles"];
/// What rules can read of a resource that is not a tool.
pub(crate) const RESOURCE_ATTRIBUTES: [&str; 2] = ["id", "owner"];

/// Names that a resource type cannot have, and that stand in quotes in a schema: our own types, Cedar's own types, its
/// reserved words, and the words of its schemas.
const RESERVED: &str = "Caller Tool Action Bool Boolean Long String Set Record Entity Extension EntityOrCommon \
    datetime decimal duration ipaddr true false if then else in is like has entity action type namespace appliesTo \
    principal resource context attributes tags enum external";

fn reserved(name: &str) -> bool {
    RESERVED.split_whitespace().any(|word| word == name)
}

/// One tool, reduced to what rules can say about it.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: ToolName,
    pub(crate) upstream: UpstreamName,
    pub(crate) class: Class,
    pub(crate) resource: Option<ResourceType>,
    /// Everything under `context`.
    pub(crate) context: Record,
}

/// All enabled tools, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
    /// The members of each group.
    groups: BTreeMap<String, Vec<usize>>,
    types: BTreeSet<String>,
}

// === impl Tool ===

impl Tool {
    fn of(action: &Action) -> Self {
        let facts = action.facts.iter().map(|(name, kind)| {
            let scalar = match kind {
                FactType::Truth => Scalar::Truth,
                FactType::Integer => Scalar::Integer,
                FactType::Text => Scalar::Text,
            };
            (name.as_str(), Shape::One(scalar))
        });
        let context = Record::all_required([
            ("class", Shape::One(Scalar::Text)),
            ("upstream", Shape::One(Scalar::Text)),
            ("now", Shape::One(Scalar::Instant)),
            (
                "arguments",
                Shape::Record(Record::of_arguments(&action.input_schema)),
            ),
            ("facts", Shape::Record(Record::all_required(facts))),
        ]);
        Self {
            name: action.tool.clone(),
            upstream: action.upstream.clone(),
            class: action.class,
            resource: action.resource.clone(),
            context,
        }
    }

    /// The type of its resource.
    pub(crate) fn resource_type(&self) -> &str {
        self.resource.as_ref().map_or(TOOL, ResourceType::as_str)
    }

    /// The groups that its action is in.
    pub(crate) fn groups(&self) -> [String; 2] {
        [class_group(self.class), format!("upstream:{}", self.upstream)]
    }

    /// What a path below `context` leads to.
    pub(crate) fn find(&self, path: &[String]) -> Found<'_> {
        self.context.find(path)
    }
}

fn class_group(class: Class) -> String {
    format!("class:{class}")
}

// === impl Vocabulary ===

impl Vocabulary {
    /// Takes the tools in.
    ///
    /// # Errors
    /// Every tool that stands twice, every resource type that cannot be one, every fact that stands twice.
    pub(crate) fn new(actions: &[Action]) -> Result<Self, Vec<PolicyFault>> {
        let mut faults = Vec::new();
        let mut tools: Vec<Tool> = actions.iter().map(Tool::of).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        for action in actions {
            faults.extend(faults_of(action));
        }
        for (one, other) in tools.iter().zip(tools.iter().skip(1)) {
            if one.name == other.name {
                faults.push(fault(
                    &one.name,
                    "two enabled tools have this name".to_owned(),
                    "rename one of them",
                ));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }

        let mut vocabulary = Self {
            tools,
            // A guard against a class may be written before there is a tool of that class.
            groups: Class::ALL
                .into_iter()
                .map(|class| (class_group(class), Vec::new()))
                .collect(),
            ..Self::default()
        };
        for (index, tool) in vocabulary.tools.iter().enumerate() {
            vocabulary.by_name.insert(tool.name.as_str().to_owned(), index);
            for group in tool.groups() {
                vocabulary.groups.entry(group).or_default().push(index);
            }
            if let Some(kind) = &tool.resource {
                vocabulary.types.insert(kind.as_str().to_owned());
            }
        }
        Ok(vocabulary)
    }

    /// The index of the tool with this name.
    pub(crate) fn tool(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The members of a group; `None` where there is no such group.
    pub(crate) fn group(&self, name: &str) -> Option<&[usize]> {
        self.groups.get(name).map(Vec::as_slice)
    }

    /// Every tool and group by name, for suggestions.
    pub(crate) fn action_names(&self) -> impl Iterator<Item = &str> {
        self.tools
            .iter()
            .map(|tool| tool.name.as_str())
            .chain(self.groups.keys().map(String::as_str))
    }

    /// Every type that an entity can have, for suggestions.
    pub(crate) fn type_names(&self) -> impl Iterator<Item = &str> {
        [CALLER, TOOL, ACTION]
            .into_iter()
            .chain(self.types.iter().map(String::as_str))
    }

    /// Whether an entity can have this type.
    pub(crate) fn has_type(&self, name: &str) -> bool {
        self.type_names().any(|known| known == name)
    }

    /// The schema of everything, as an editor wants it.
    pub(crate) fn schema(&self) -> String {
        let everything: Vec<usize> = (0..self.tools.len()).collect();
        let groups = self.groups.keys().cloned().collect();
        self.schema_of(&everything, &self.types, &groups)
    }

    /// The schema of some tools, and of types and actions that a rule names besides.
    ///
    /// A named action that is none of `tools` is declared without anything that it applies to.
    pub(crate) fn schema_of(
        &self,
        tools: &[usize],
        types: &BTreeSet<String>,
        actions: &BTreeSet<String>,
    ) -> String {
        let tools: Vec<&Tool> = tools.iter().filter_map(|&index| self.tools.get(index)).collect();
        let types: BTreeSet<&str> = tools
            .iter()
            .filter_map(|tool| tool.resource.as_ref().map(ResourceType::as_str))
            .chain(
                types
                    .iter()
                    .map(String::as_str)
                    .filter(|name| self.types.contains(*name)),
            )
            .collect();
        let whole: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        // A tool that is only named keeps its groups: a rule may ask whether it is in one.
        let named = actions.iter().filter_map(|name| self.tools.get(self.tool(name)?));
        let bare: BTreeSet<String> = tools
            .iter()
            .copied()
            .chain(named)
            .flat_map(Tool::groups)
            .chain(actions.iter().cloned())
            .filter(|name| !whole.contains(name.as_str()))
            .collect();

        let mut text = String::from(
            "entity Caller = {\n  subject: String,\n  issuer: String,\n  tenant: String,\n  client: String,\n  roles: Set<String>\n};\nentity Tool;\n",
        );
        for name in types {
            line(
                &mut text,
                format_args!("entity {name} = {{\n  id: String,\n  owner: String\n}};"),
            );
        }
        for name in &bare {
            match self.tool(name).and_then(|index| self.tools.get(index)) {
                Some(tool) => line(
                    &mut text,
                    format_args!("action {} in {};", quoted(name), group_list(tool)),
                ),
                None => line(&mut text, format_args!("action {};", quoted(name))),
            }
        }
        for tool in tools {
            line(
                &mut text,
                format_args!(
                    "action {} in {} appliesTo {{\n  principal: [{CALLER}],\n  resource: [{}],\n  context: {}\n}};",
                    quoted(tool.name.as_str()),
                    group_list(tool),
                    tool.resource_type(),
                    Braces {
                        record: &tool.context,
                        depth: 1
                    },
                ),
            );
        }
        text
    }
}

fn faults_of(action: &Action) -> impl Iterator<Item = PolicyFault> {
    let kind = action
        .resource
        .as_ref()
        .filter(|kind| reserved(kind.as_str()))
        .map(|kind| {
            fault(
                &action.tool,
                format!("the resource type `{kind}` has a meaning of its own in rules"),
                "choose another name, as `Invoice`",
            )
        });
    let mut seen = BTreeSet::new();
    let facts: Vec<_> = action
        .facts
        .iter()
        .filter(|(name, _)| !seen.insert(name.as_str()))
        .map(|(name, _)| {
            fault(
                &action.tool,
                format!("the fact `{}` is declared twice", name.escape_debug()),
                "rename one of them",
            )
        })
        .collect();
    kind.into_iter().chain(facts)
}

fn fault(tool: &ToolName, text: String, hint: &str) -> PolicyFault {
    PolicyFault {
        place: Place::Tool(tool.clone()),
        kind: PolicyFaultKind::Tool,
        text,
        hint: Some(hint.to_owned()),
    }
}

// === the schema's text ===

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{what}");
}

fn group_list(tool: &Tool) -> String {
    let [class, upstream] = tool.groups();
    format!("[{}, {}]", quoted(&class), quoted(&upstream))
}

/// A text in Cedar's quotes. Rust's escapes are Cedar's.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}

/// A record type in braces, indented.
struct Braces<'a> {
    record: &'a Record,
    depth: usize,
}

impl std::fmt::Display for Braces<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("{")?;
        for (index, (name, shape, required)) in self.record.readable().enumerate() {
            f.write_str(if index == 0 { "\n" } else { ",\n" })?;
            write!(f, "{:1$}", "", 2 * (self.depth + 1))?;
            if plain(name) {
                f.write_str(name)?;
            } else {
                f.write_str(&quoted(name))?;
            }
            f.write_str(if required { ": " } else { "?: " })?;
            match shape {
                Shape::One(scalar) => f.write_str(scalar.cedar())?,
                Shape::SetOf(scalar) => write!(f, "Set<{}>", scalar.cedar())?,
                Shape::Record(record) => Braces {
                    record,
                    depth: self.depth + 1,
                }
                .fmt(f)?,
            }
        }
        if self.record.readable().next().is_some() {
            write!(f, "\n{:1$}", "", 2 * self.depth)?;
        }
        f.write_str("}")
    }
}

/// Whether a name may stand without quotes in a record of a schema and behind a dot in a rule.
fn plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with("__")
        && !reserved(name)
}
