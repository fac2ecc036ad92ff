//! One rule: from its text to a parsed policy with an id, a place and a scope. Whether it is sound is for `check.rs`.

use std::collections::BTreeSet;
use std::ops::Range;

use cedar_policy::ffi::DetailedError;
use cedar_policy::pst::{
    self, ActionConstraint, EntityOrSlot, EntityType, EntityUID, ResourceConstraint, StaticPolicy, Template,
};
use cedar_policy::{ParseErrors, PolicyId};
use model::{NameFault, RuleId};

use crate::fault::{Finding, PolicyFaultKind, nearest};
use crate::listing::{Leaves, Outlook};
use crate::reads::Reads;
use crate::scan::{DEPTH_MAX, Statement, tokens};
use crate::vocabulary::{TOOL, Tool, Vocabulary};

/// A rule as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSummary {
    /// What its `@id` says, else the file's name, `#`, and its number in the file, counted from 0.
    pub id: RuleId,
    /// What it does where it applies.
    pub effect: Effect,
    /// The path of its file, as it was given with the text.
    pub file: String,
    /// The line where it starts, counted from 1.
    pub line: usize,
}

/// What a rule does where it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It says yes.
    Permit,
    /// It says no, whatever others say.
    Forbid,
}

/// A parsed rule.
#[derive(Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) id: RuleId,
    pub(crate) effect: Effect,
    pub(crate) policy: cedar_policy::Policy,
    pub(crate) reads: Reads,
    template: Template,
    statement: Statement<'a>,
}

/// The tools that a rule's scope admits, by their index, ascending. None only where there is no tool at this moment
/// that it could admit, as of a class without tools.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) tools: Vec<usize>,
}

/// The longest list of faults that one rule contributes: what follows is mostly a consequence.
const FAULTS_PER_RULE_MAX: usize = 20;

// === impl Rule ===

impl<'a> Rule<'a> {
    /// Parses one statement, the `number`th of its file.
    ///
    /// # Errors
    /// Everything that is wrong with the text alone.
    pub(crate) fn parse(statement: Statement<'a>, number: usize, path: &str) -> Result<Self, Vec<Finding>> {
        let finding = |words: &[&str], kind, text: String, hint: &str| {
            vec![Finding::new(near(&statement, words), kind, text, hint.to_owned())]
        };
        if statement.depth > DEPTH_MAX {
            let text = format!(
                "this rule is {} operators and brackets deep; at most {DEPTH_MAX} are read",
                statement.depth
            );
            return Err(finding(
                &[],
                PolicyFaultKind::Limit,
                text,
                "split it, or write [\"a\", \"b\"].contains(…) for a long chain of `||`",
            ));
        }
        let parsed = cedar_policy::Policy::parse(Some(PolicyId::new("rule")), statement.text)
            .map_err(|errors| unparsed(&errors, &statement))?;
        let id = rule_id(&parsed, number, path).map_err(|fault| {
            let hint = "give it an id, as @id(\"members-read-invoices\")";
            let id = parsed.annotation("id").unwrap_or_default();
            let words: &[&str] = if id.is_empty() {
                &["@", "id"]
            } else {
                &["@", "id", "(", id]
            };
            finding(words, PolicyFaultKind::RuleId, fault.to_string(), hint)
        })?;
        // Cedar has a function of this name for itself, and it is the one thing that its syntax tree cannot hold.
        let template = parsed
            .to_pst()
            .map(|policy| policy.body().clone())
            .map_err(|error| {
                finding(
                    &["unknown"],
                    PolicyFaultKind::Syntax,
                    error.to_string(),
                    "this is not part of the language of rules",
                )
            })?;
        Ok(Self {
            effect: match parsed.effect() {
                cedar_policy::Effect::Permit => Effect::Permit,
                cedar_policy::Effect::Forbid => Effect::Forbid,
            },
            policy: parsed.new_id(PolicyId::new(id.as_str())),
            reads: Reads::of(&template),
            id,
            template,
            statement,
        })
    }

    /// Where it starts, in bytes of its file.
    pub(crate) const fn start(&self) -> usize {
        self.statement.start
    }

    /// Where these words stand next to each other; the rule's start where they do not.
    pub(crate) fn near(&self, words: &[&str]) -> usize {
        near(&self.statement, words)
    }

    /// The tools that the scope admits, by action and by type of resource.
    ///
    /// # Errors
    /// Names of actions that do not exist, a group where a tool is needed, and a scope that admits nothing.
    pub(crate) fn scope(&self, vocabulary: &Vocabulary) -> Result<Scope, Vec<Finding>> {
        let (named, vacant) = match &self.template.action {
            ActionConstraint::Any => ((0..vocabulary.tools.len()).collect(), true),
            ActionConstraint::Eq(action) => (
                vec![self.one(action, vocabulary).map_err(|finding| vec![finding])?],
                false,
            ),
            ActionConstraint::In(actions) => self.members(actions, vocabulary)?,
        };
        if named.is_empty() && vacant {
            return Ok(Scope { tools: named });
        }
        let tools: Vec<usize> = named
            .into_iter()
            .filter(|&index| vocabulary.tools.get(index).is_some_and(|tool| self.admits(tool)))
            .collect();
        if tools.is_empty() {
            return Err(vec![Finding::new(
                self.start(),
                PolicyFaultKind::Impossible,
                "this rule can never apply",
                "no tool that it is about has such a resource".to_owned(),
            )]);
        }
        Ok(Scope { tools })
    }

    fn one(&self, action: &EntityUID, vocabulary: &Vocabulary) -> Result<usize, Finding> {
        let name = action.eid.as_str();
        if let Some(index) = vocabulary.tool(name) {
            return Ok(index);
        }
        if vocabulary.group(name).is_some() {
            return Err(Finding::new(
                self.near(&["Action", "::", name]),
                PolicyFaultKind::Impossible,
                format!("`{name}` is a group of tools, so no call is equal to it"),
                format!("write action in Action::\"{name}\""),
            ));
        }
        Err(self.unknown_action(name, vocabulary))
    }

    /// The members, ascending, and whether some group has none at this moment.
    fn members(
        &self,
        actions: &[EntityUID],
        vocabulary: &Vocabulary,
    ) -> Result<(Vec<usize>, bool), Vec<Finding>> {
        let mut tools = BTreeSet::new();
        let mut vacant = false;
        let mut findings = Vec::new();
        for action in actions {
            match (vocabulary.tool(&action.eid), vocabulary.group(&action.eid)) {
                (Some(index), _) => {
                    tools.insert(index);
                }
                (None, Some(members)) => {
                    vacant |= members.is_empty();
                    tools.extend(members);
                }
                (None, None) => findings.push(self.unknown_action(&action.eid, vocabulary)),
            }
        }
        if findings.is_empty() {
            Ok((tools.into_iter().collect(), vacant))
        } else {
            Err(findings)
        }
    }

    /// Names in the rule, beyond the actions of its scope, that stand for nothing.
    pub(crate) fn unknown_names(&self, vocabulary: &Vocabulary) -> Vec<Finding> {
        let in_scope = |name: &str| match &self.template.action {
            ActionConstraint::Any => false,
            ActionConstraint::Eq(action) => action.eid == name,
            ActionConstraint::In(actions) => actions.iter().any(|action| action.eid == name),
        };
        let known = |name: &str| vocabulary.tool(name).is_some() || vocabulary.group(name).is_some();
        let actions = self
            .reads
            .actions
            .iter()
            .filter(|name| !in_scope(name) && !known(name));
        let types = self.reads.types.iter().filter(|name| !vocabulary.has_type(name));
        actions
            .map(|name| self.unknown_action(name, vocabulary))
            .chain(types.map(|name| self.unknown_type(name, vocabulary)))
            .collect()
    }

    fn unknown_action(&self, name: &str, vocabulary: &Vocabulary) -> Finding {
        let text = match name.split_once(':') {
            Some(("class", class)) => format!("`{}` is no class of tools", class.escape_debug()),
            Some(("upstream", upstream)) => {
                format!("no upstream `{}` has an enabled tool", upstream.escape_debug())
            }
            Some(_) | None => format!("no enabled tool is called `{}`", name.escape_debug()),
        };
        let hint = nearest(name, vocabulary.action_names()).map_or_else(
            || "a rule may name only tools that are enabled".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
        Finding::new(
            self.near(&["Action", "::", name]),
            PolicyFaultKind::UnknownName,
            text,
            hint,
        )
    }

    fn unknown_type(&self, name: &str, vocabulary: &Vocabulary) -> Finding {
        let first = name.split("::").next().unwrap_or_default();
        let hint = nearest(name, vocabulary.type_names()).map_or_else(
            || "a rule may name only `Caller`, `Tool` and the types of resources of enabled tools".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
        let text = format!("there is no type `{name}`");
        Finding::new(self.near(&[first]), PolicyFaultKind::UnknownName, text, hint)
    }

    /// The rule as it is evaluated for the tools that its scope admits: what the scope says about the action and
    /// about the type of the resource holds for every one of them, so it is left away.
    ///
    /// # Errors
    /// Cedar's, where it cannot put its own syntax tree together again; a defect.
    pub(crate) fn settled(&self) -> Result<cedar_policy::Policy, String> {
        let mut template = self.template.clone();
        template.action = ActionConstraint::Any;
        if !self.asks_which_resource() {
            template.resource = ResourceConstraint::Any;
        }
        let settled = StaticPolicy::try_from(template).map_err(|error| error.to_string())?;
        let settled = cedar_policy::Policy::from_pst(pst::Policy::Static(settled))
            .map_err(|error| error.to_string())?;
        Ok(settled.new_id(PolicyId::new(self.id.as_str())))
    }

    /// What can be told of it while only the caller is known.
    pub(crate) fn outlook(&self, leaves: &mut Leaves) -> Outlook {
        Outlook::of(&self.template, self.asks_which_resource(), leaves)
    }

    /// Whether the scope asks for one thing of its type, beyond the type. A tool that is its own resource is one.
    fn asks_which_resource(&self) -> bool {
        match &self.template.resource {
            ResourceConstraint::Any | ResourceConstraint::Is(_) => false,
            ResourceConstraint::Eq(what)
            | ResourceConstraint::In(what)
            | ResourceConstraint::IsIn(_, what) => match what {
                EntityOrSlot::Entity(what) => what.ty.to_string() != TOOL,
                EntityOrSlot::Slot(_) => true,
            },
        }
    }

    /// Whether the scope's resource can be the resource of this tool.
    fn admits(&self, tool: &Tool) -> bool {
        let is = |kind: &EntityType| kind.to_string() == tool.resource_type();
        // Resources have no parents, so `in` holds for the thing itself and for nothing else.
        let can_be = |what: &EntityOrSlot| match what {
            EntityOrSlot::Entity(what) => {
                is(&what.ty) && (tool.resource.is_some() || what.eid == tool.name.as_str())
            }
            EntityOrSlot::Slot(_) => false,
        };
        match &self.template.resource {
            ResourceConstraint::Any => true,
            ResourceConstraint::Eq(what) | ResourceConstraint::In(what) => can_be(what),
            ResourceConstraint::Is(kind) => is(kind),
            ResourceConstraint::IsIn(kind, what) => is(kind) && can_be(what),
        }
    }
}

/// What Cedar's parser says about a statement.
fn unparsed(errors: &ParseErrors, statement: &Statement<'_>) -> Vec<Finding> {
    let template = tokens(statement.text).any(|token| token.text == "?");
    let kind = if template {
        PolicyFaultKind::Template
    } else {
        PolicyFaultKind::Syntax
    };
    errors
        .iter()
        .take(FAULTS_PER_RULE_MAX)
        .map(|error| {
            let told = Told::of(&DetailedError::from(error));
            Finding::new(statement.start + told.span.start, kind, told.text, told.hint)
        })
        .collect()
}

fn rule_id(policy: &cedar_policy::Policy, number: usize, path: &str) -> Result<RuleId, NameFault> {
    match policy.annotation("id") {
        Some(id) => RuleId::parse(id),
        None => {
            let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
            RuleId::parse(&format!("{name}#{number}"))
        }
    }
}

/// Where these words stand next to each other, in bytes of the file; else where the last of them stands, as where a
/// path is written with brackets; else where the statement starts.
fn near(statement: &Statement<'_>, words: &[&str]) -> usize {
    let last = words
        .len()
        .checked_sub(1)
        .and_then(|last| words.get(last..))
        .unwrap_or_default();
    let found = [words, last]
        .into_iter()
        .filter(|words| !words.is_empty())
        .find_map(|words| find(statement.text, words));
    statement.start + found.unwrap_or_default()
}

/// Where these words stand next to each other in a rule's text. Points at the last of them.
fn find(text: &str, words: &[&str]) -> Option<usize> {
    let tokens: Vec<_> = tokens(text).collect();
    tokens
        .windows(words.len().max(1))
        .find(|window| {
            window
                .iter()
                .zip(words)
                .all(|(token, word)| says(token.text, word))
        })
        .and_then(<[_]>::last)
        .map(|token| token.start)
}

/// Whether a token is this word, bare or in quotes.
fn says(token: &str, word: &str) -> bool {
    token == word
        || token
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .is_some_and(|inner| inner == word || inner == word.escape_debug().to_string())
}

// === what Cedar says ===

/// An error or a warning of Cedar, in our own form.
pub(crate) struct Told {
    /// In bytes of the rule's text.
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

impl Told {
    pub(crate) fn of(error: &DetailedError) -> Self {
        let label = error.source_locations.first();
        Self {
            span: label.map_or(0..0, |label| label.loc.start..label.loc.end),
            text: plain(&error.message),
            hint: error
                .help
                .as_deref()
                .or_else(|| label?.label.as_deref())
                .map(plain),
        }
    }
}

/// Cedar's words without the name of the rule, which the place says, and without names of its own insides.
fn plain(text: &str) -> String {
    let text = text
        .strip_prefix("for policy `")
        .and_then(|rest| rest.split_once("`, "))
        .map_or(text, |(_, rest)| rest);
    text.replace("__cedar::internal::AnyEntity", "an entity")
        .replace("__cedar::internal::OpenRecord{}", "a record")
        .replace("__cedar::", "")
}
