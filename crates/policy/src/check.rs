//! Whether a rule is sound for the tools that it can apply to: our own checks, then Cedar's validator.
//!
//! Cedar's validator takes time in proportion to rules times actions. So each rule is validated by itself, against a
//! schema of a few tools that stand for all that it can apply to: two tools look alike to a rule when whatever it
//! reads of them has the same type.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cedar_policy::ffi::DetailedError;
use cedar_policy::{
    PolicySet, Schema, ValidationError, ValidationMode, ValidationResult, ValidationWarning, Validator,
};

use crate::fault::{Finding, PolicyFaultKind};
use crate::load::{Filed, REPORT};
use crate::rule::{Rule, Scope, Told};
use crate::shape::{Found, Shape};
use crate::vocabulary::{Tool, Vocabulary};

/// A rule, and the tools that it can apply to.
pub(crate) struct Placed<'a> {
    pub(crate) rule: Rule<'a>,
    pub(crate) scope: Scope,
    /// The index of its file.
    pub(crate) file: usize,
}

/// Finds the tools of each rule and validates it for them.
pub(crate) fn place<'a>(
    rules: Vec<(usize, Rule<'a>)>,
    vocabulary: &Vocabulary,
) -> (Vec<Placed<'a>>, Vec<Filed>) {
    let mut validators = Validators {
        vocabulary,
        made: HashMap::new(),
    };
    let mut placed = Vec::new();
    let mut found = Vec::new();
    for (file, rule) in rules {
        let mut findings = rule.unknown_names(vocabulary);
        let unnamed = !findings.is_empty();
        match rule.scope(vocabulary) {
            Ok(scope) => {
                findings.extend(validators.check(&rule, &scope.tools, unnamed));
                placed.push(Placed { rule, scope, file });
            }
            // A scope that admits nothing because of a name that stands for nothing is one fault, not two.
            Err(more) => findings.extend(
                more.into_iter()
                    .filter(|one| !unnamed || one.kind != PolicyFaultKind::Impossible),
            ),
        }
        found.extend(findings.into_iter().map(|finding| (file, finding)));
    }
    (placed, found)
}

/// Tools that stand for others, and what else a rule names: types and actions.
type SchemaKey = (Vec<usize>, BTreeSet<String>, BTreeSet<String>);

/// The validators made so far. Most rules share one.
struct Validators<'c> {
    vocabulary: &'c Vocabulary,
    made: HashMap<SchemaKey, Result<Validator, String>>,
}

impl Validators<'_> {
    /// Everything that is wrong with one rule, given the tools it can apply to. `unnamed`: it names something that
    /// does not exist, which was told, and of which some of what Cedar says would be a consequence.
    fn check(&mut self, rule: &Rule<'_>, tools: &[usize], unnamed: bool) -> Vec<Finding> {
        let mut found: Vec<Finding> = rule
            .reads
            .misread(self.vocabulary, tools)
            .into_iter()
            .map(|misread| {
                let words: Vec<&str> = misread.near.iter().map(String::as_str).collect();
                Finding::new(
                    rule.near(&words),
                    PolicyFaultKind::Attribute,
                    misread.text,
                    misread.hint,
                )
            })
            .collect();
        if tools.is_empty() {
            return found;
        }
        match self.validate(rule, tools) {
            Err(error) => {
                let text = format!("the tools that this rule is about cannot be put into a schema: {error}");
                found.push(Finding::new(
                    rule.start(),
                    PolicyFaultKind::Tool,
                    text,
                    REPORT.to_owned(),
                ));
            }
            Ok(result) => {
                for error in result.validation_errors() {
                    let kind = kind_of(error);
                    let told = Told::of(&DetailedError::from(error));
                    let span = rule.start() + told.span.start..rule.start() + told.span.end;
                    let said = found.iter().any(|finding| span.contains(&finding.offset));
                    let told_before = unnamed && kind == PolicyFaultKind::UnknownName;
                    if !said && !told_before {
                        let hint = left_out(&told.text, self.vocabulary, rule, tools).or(told.hint);
                        found.push(Finding::new(span.start, kind, told.text, hint));
                    }
                }
                if found.is_empty() && !unnamed && result.validation_warnings().any(is_impossible) {
                    found.push(Finding::new(
                        rule.start(),
                        PolicyFaultKind::Impossible,
                        "this rule can never apply",
                        "its condition is false for every call that its scope admits".to_owned(),
                    ));
                }
            }
        }
        found
    }

    fn validate(&mut self, rule: &Rule<'_>, tools: &[usize]) -> Result<ValidationResult, String> {
        let set = PolicySet::from_policies([rule.policy.clone()]).map_err(|error| error.to_string())?;
        Ok(self
            .validator(rule, tools)?
            .validate(&set, ValidationMode::Strict))
    }

    fn validator(&mut self, rule: &Rule<'_>, tools: &[usize]) -> Result<&Validator, String> {
        let representatives = representatives(self.vocabulary, rule, tools);
        let key = (
            representatives,
            rule.reads.types.clone(),
            rule.reads.actions.clone(),
        );
        let vocabulary = self.vocabulary;
        self.made
            .entry(key)
            .or_insert_with_key(|(tools, types, actions)| {
                let text = vocabulary.schema_of(tools, types, actions);
                Schema::from_cedarschema_str(&text)
                    .map(|(schema, _)| Validator::new(schema))
                    .map_err(|error| error.to_string())
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// One tool for each way that the rule can see a tool.
///
/// Cedar types a rule once for each action, and what it finds depends on the action only through the type of the
/// resource, the types at the paths that the rule reads, and the action's name where the condition looks at it.
fn representatives(vocabulary: &Vocabulary, rule: &Rule<'_>, tools: &[usize]) -> Vec<usize> {
    if rule.reads.action {
        return tools.to_vec();
    }
    let mut seen = BTreeMap::new();
    for &index in tools {
        if let Some(tool) = vocabulary.tools.get(index) {
            let looks: Vec<Vec<Look<'_>>> = rule.reads.context.iter().map(|path| look(tool, path)).collect();
            seen.entry((tool.resource_type(), looks)).or_insert(index);
        }
    }
    let mut representatives: Vec<usize> = seen.into_values().collect();
    representatives.sort_unstable();
    representatives
}

/// What a rule sees at one step of a path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Look<'a> {
    Nothing,
    Record { required: bool },
    Value { shape: &'a Shape, required: bool },
}

fn look<'a>(tool: &'a Tool, path: &[String]) -> Vec<Look<'a>> {
    (1..=path.len())
        .filter_map(|length| path.get(..length))
        .map(|path| match tool.context.find(path) {
            Found::Nothing | Found::LeftOut(_) => Look::Nothing,
            Found::Shape {
                shape: Shape::Record(_),
                required,
            } => Look::Record { required },
            Found::Shape {
                shape: shape @ (Shape::One(_) | Shape::SetOf(_)),
                required,
            } => Look::Value { shape, required },
        })
        .collect()
}

/// Why rules cannot read an argument that Cedar says is not there, where that is so.
fn left_out(text: &str, vocabulary: &Vocabulary, rule: &Rule<'_>, tools: &[usize]) -> Option<String> {
    let missing = text.strip_prefix("attribute `")?.split('`').next()?;
    let path = rule.reads.context.iter().find(|path| path.join(".") == missing)?;
    tools
        .iter()
        .filter_map(|&index| vocabulary.tools.get(index))
        .find_map(|tool| match tool.find(path) {
            Found::LeftOut(why) => Some(format!("`{}` has it, and rules cannot read it: {why}", tool.name)),
            Found::Shape { .. } | Found::Nothing => None,
        })
}

fn kind_of(error: &ValidationError) -> PolicyFaultKind {
    match error {
        ValidationError::UnrecognizedEntityType(_) | ValidationError::UnrecognizedActionId(_) => {
            PolicyFaultKind::UnknownName
        }
        ValidationError::UnsafeAttributeAccess(_)
        | ValidationError::UnsafeOptionalAttributeAccess(_)
        | ValidationError::UnsafeTagAccess(_)
        | ValidationError::NoTagsAllowed(_) => PolicyFaultKind::Attribute,
        ValidationError::InvalidActionApplication(_) => PolicyFaultKind::Impossible,
        // Types that do not fit, in one of the many ways that Cedar tells apart and may yet add to.
        _ => PolicyFaultKind::Type,
    }
}

/// Hidden characters are ours to find, in comments too; mixed scripts are how many people write.
fn is_impossible(warning: &ValidationWarning) -> bool {
    matches!(
        warning,
        ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_)
    )
}
