//! What a rule reads and names, and the ways of reading that Cedar's validator lets pass and we do not.
//!
//! Two such ways would let a rule say something else than its reader thinks:
//! `has` on a name that does not exist is simply false to Cedar, so `unless { context.arguments has amuont }` would
//! forbid nothing; and a record that is compared as a whole holds only what rules can read of it. Both are faults
//! here. What remains reads single attributes along plain paths, so this file also knows exactly which parts of a
//! question each rule needs.

use std::collections::BTreeSet;

use cedar_policy::pst::{
    BinaryOp, Clause, EntityOrSlot, EntityUID, Expr, Literal, PrincipalConstraint, ResourceConstraint,
    Template, UnaryOp, Var,
};

use crate::fault::nearest;
use crate::shape::{Found, Record, Shape};
use crate::vocabulary::{ACTION, CALLER_ATTRIBUTES, RESOURCE_ATTRIBUTES, Vocabulary};

/// What one rule reads and names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Paths below `context`, whether a value is read there or only asked for.
    pub(crate) context: BTreeSet<Vec<String>>,
    /// Attributes of entities, of whichever.
    pub(crate) attributes: BTreeSet<String>,
    /// Whether the condition looks at `action`, beyond the scope.
    pub(crate) action: bool,
    /// Types of entities that are named, in the scope or the condition.
    pub(crate) types: BTreeSet<String>,
    /// Actions that are named, in the scope or the condition.
    pub(crate) actions: BTreeSet<String>,
    asked: Vec<Asked>,
    whole: BTreeSet<Vec<String>>,
    strange: BTreeSet<Strange>,
}

/// One `has`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    of: Base,
    name: String,
    /// The words from `has` to the name.
    near: Vec<String>,
}

/// What stands before a dot or a `has`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Principal,
    Resource,
    /// A path below `context`.
    Context(Vec<String>),
    /// Any other expression.
    Other,
}

/// Parts of the language that have no use here and could surprise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strange {
    HasTag,
    GetTag,
    Unknown,
    Slot,
    New,
}

/// A way of reading that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misread {
    /// Words that stand next to each other in the rule's text at the offending place.
    pub(crate) near: Vec<String>,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

// === impl Reads ===

impl Reads {
    /// Walks one rule. The recursion is as deep as the rule's tree, which is bounded before parsing.
    pub(crate) fn of(rule: &Template) -> Self {
        let mut reads = Self::default();
        match &rule.principal {
            PrincipalConstraint::Any => {}
            PrincipalConstraint::Eq(who) | PrincipalConstraint::In(who) => reads.scope(who),
            PrincipalConstraint::Is(kind) => reads.type_named(&kind.to_string()),
            PrincipalConstraint::IsIn(kind, who) => {
                reads.type_named(&kind.to_string());
                reads.scope(who);
            }
        }
        match &rule.action {
            cedar_policy::pst::ActionConstraint::Any => {}
            cedar_policy::pst::ActionConstraint::Eq(action) => reads.entity(action),
            cedar_policy::pst::ActionConstraint::In(actions) => {
                for action in actions {
                    reads.entity(action);
                }
            }
        }
        match &rule.resource {
            ResourceConstraint::Any => {}
            ResourceConstraint::Eq(what) | ResourceConstraint::In(what) => reads.scope(what),
            ResourceConstraint::Is(kind) => reads.type_named(&kind.to_string()),
            ResourceConstraint::IsIn(kind, what) => {
                reads.type_named(&kind.to_string());
                reads.scope(what);
            }
        }
        for clause in rule.clauses() {
            match clause {
                Clause::When(condition) | Clause::Unless(condition) => reads.value(condition),
            }
        }
        reads
    }

    /// Every way of reading that is refused, given the tools that the rule can apply to.
    pub(crate) fn misread(&self, vocabulary: &Vocabulary, tools: &[usize]) -> Vec<Misread> {
        let contexts: Vec<&Record> = tools
            .iter()
            .filter_map(|&index| vocabulary.tools.get(index))
            .map(|tool| &tool.context)
            .collect();
        self.asked
            .iter()
            .filter_map(|asked| asked.misread(&contexts))
            .chain(self.whole.iter().filter_map(|path| whole(path, &contexts)))
            .chain(self.strange.iter().map(|strange| strange.misread()))
            .collect()
    }

    fn scope(&mut self, who: &EntityOrSlot) {
        match who {
            EntityOrSlot::Entity(entity) => self.entity(entity),
            EntityOrSlot::Slot(_) => {
                self.strange.insert(Strange::Slot);
            }
        }
    }

    fn entity(&mut self, entity: &EntityUID) {
        let kind = entity.ty.to_string();
        if kind == ACTION {
            self.actions.insert(entity.eid.to_string());
        } else {
            self.type_named(&kind);
        }
    }

    fn type_named(&mut self, name: &str) {
        self.types.insert(name.to_owned());
    }

    /// An expression whose value is used.
    fn value(&mut self, expr: &Expr) {
        match self.base(expr) {
            Base::Context(path) => {
                self.whole.insert(path.clone());
                self.context.insert(path);
            }
            Base::Principal | Base::Resource | Base::Other => {}
        }
    }

    /// An expression that something is read from.
    fn base(&mut self, expr: &Expr) -> Base {
        match expr {
            Expr::Var(Var::Principal) => return Base::Principal,
            Expr::Var(Var::Resource) => return Base::Resource,
            Expr::Var(Var::Context) => return Base::Context(Vec::new()),
            Expr::Var(Var::Action) => self.action = true,
            Expr::Literal(Literal::EntityUID(entity)) => self.entity(entity),
            Expr::Literal(_) => {}
            Expr::GetAttr { expr, attr } => match self.base(expr) {
                Base::Context(mut path) => {
                    path.push(attr.to_string());
                    return Base::Context(path);
                }
                Base::Principal | Base::Resource | Base::Other => {
                    self.attributes.insert(attr.to_string());
                }
            },
            Expr::HasAttr { expr, attrs } => self.asked(expr, attrs.iter().map(ToString::to_string)),
            Expr::UnaryOp { op, expr } => {
                self.unary(*op);
                self.value(expr);
            }
            Expr::BinaryOp { op, left, right } => {
                self.binary(*op);
                self.value(left);
                self.value(right);
            }
            Expr::Like { expr, pattern: _ } => self.value(expr),
            Expr::Is {
                expr,
                entity_type,
                in_expr,
            } => {
                self.type_named(&entity_type.to_string());
                self.value(expr);
                if let Some(within) = in_expr {
                    self.value(within);
                }
            }
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => {
                self.value(cond);
                self.value(then_expr);
                self.value(else_expr);
            }
            Expr::Set(items) => {
                for item in items {
                    self.value(item);
                }
            }
            Expr::Record(fields) => {
                for field in fields.values() {
                    self.value(field);
                }
            }
            Expr::Slot(_) => {
                self.strange.insert(Strange::Slot);
            }
            Expr::Unknown { .. } => {
                self.strange.insert(Strange::Unknown);
            }
            // Cedar's enum may grow. What we do not know we do not load.
            _ => {
                self.strange.insert(Strange::New);
            }
        }
        Base::Other
    }

    /// `a has b.c` asks for `b` of `a`, then for `c` of `a.b`.
    fn asked(&mut self, expr: &Expr, names: impl Iterator<Item = String>) {
        let mut of = self.base(expr);
        let mut near = Vec::new();
        for name in names {
            near.push(if near.is_empty() { "has" } else { "." }.to_owned());
            near.push(name.clone());
            self.asked.push(Asked {
                of: of.clone(),
                name: name.clone(),
                near: near.clone(),
            });
            of = match of {
                Base::Context(mut path) => {
                    path.push(name);
                    self.context.insert(path.clone());
                    Base::Context(path)
                }
                Base::Principal | Base::Resource | Base::Other => {
                    self.attributes.insert(name);
                    Base::Other
                }
            };
        }
    }

    fn unary(&mut self, op: UnaryOp) {
        match op {
            UnaryOp::Not
            | UnaryOp::Neg
            | UnaryOp::IsEmpty
            | UnaryOp::Datetime
            | UnaryOp::Decimal
            | UnaryOp::Duration
            | UnaryOp::Ip
            | UnaryOp::IsIPv4
            | UnaryOp::IsIPV6
            | UnaryOp::IsLoopback
            | UnaryOp::IsMulticast
            | UnaryOp::ToDate
            | UnaryOp::ToTime
            | UnaryOp::ToMilliseconds
            | UnaryOp::ToSeconds
            | UnaryOp::ToMinutes
            | UnaryOp::ToHours
            | UnaryOp::ToDays => {}
            _ => {
                self.strange.insert(Strange::New);
            }
        }
    }

    fn binary(&mut self, op: BinaryOp) {
        match op {
            BinaryOp::Eq
            | BinaryOp::NotEq
            | BinaryOp::Less
            | BinaryOp::LessEq
            | BinaryOp::Greater
            | BinaryOp::GreaterEq
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::In
            | BinaryOp::Contains
            | BinaryOp::ContainsAll
            | BinaryOp::ContainsAny
            | BinaryOp::IsInRange
            | BinaryOp::Offset
            | BinaryOp::DurationSince
            | BinaryOp::DecimalLessThan
            | BinaryOp::DecimalLessEq
            | BinaryOp::DecimalGreater
            | BinaryOp::DecimalGreaterEq => {}
            BinaryOp::GetTag => {
                self.strange.insert(Strange::GetTag);
            }
            BinaryOp::HasTag => {
                self.strange.insert(Strange::HasTag);
            }
            _ => {
                self.strange.insert(Strange::New);
            }
        }
    }
}

// === what is refused ===

impl Asked {
    fn misread(&self, contexts: &[&Record]) -> Option<Misread> {
        let known: Vec<&str> = match &self.of {
            Base::Context(path) => return self.misread_in(path, contexts),
            Base::Principal => CALLER_ATTRIBUTES.to_vec(),
            Base::Resource => RESOURCE_ATTRIBUTES.to_vec(),
            Base::Other => CALLER_ATTRIBUTES.into_iter().chain(RESOURCE_ATTRIBUTES).collect(),
        };
        (!known.contains(&self.name.as_str())).then(|| self.no_such(&known))
    }

    /// An argument must be readable in every tool that has it, and some tool must have it.
    fn misread_in(&self, above: &[String], contexts: &[&Record]) -> Option<Misread> {
        let path: Vec<String> = above.iter().chain([&self.name]).cloned().collect();
        let found: Vec<Found<'_>> = contexts.iter().map(|context| context.find(&path)).collect();
        let left_out = found.iter().find_map(|found| match found {
            Found::LeftOut(why) => Some(*why),
            Found::Shape { .. } | Found::Nothing => None,
        });
        if let Some(why) = left_out {
            return Some(Misread {
                near: self.near.clone(),
                text: format!("rules cannot read `{}`", shown(&path)),
                hint: Some(why.to_owned()),
            });
        }
        if contexts.is_empty() || found.iter().any(|found| matches!(found, Found::Shape { .. })) {
            return None;
        }
        let known: Vec<&str> = contexts
            .iter()
            .filter_map(|context| record_at(context, above))
            .flat_map(|record| record.readable().map(|(name, _, _)| name))
            .collect();
        Some(self.no_such(&known))
    }

    fn no_such(&self, known: &[&str]) -> Misread {
        let hint = nearest(&self.name, known.iter().copied()).map_or_else(
            || "`has` would always be false".to_owned(),
            |name| format!("did you mean `{name}`?"),
        );
        Misread {
            near: self.near.clone(),
            text: format!("no attribute `{}` can be there", self.name.escape_debug()),
            hint: Some(hint),
        }
    }
}

/// A record as a whole, or nothing to object to.
fn whole(path: &[String], contexts: &[&Record]) -> Option<Misread> {
    contexts
        .iter()
        .any(|context| record_at(context, path).is_some())
        .then(|| Misread {
            near: std::iter::once("context")
                .chain(path.iter().flat_map(|name| [".", name]))
                .map(str::to_owned)
                .collect(),
            text: format!("`{}` is used as a whole", shown(path)),
            hint: Some("rules see only a part of it; compare its attributes one by one".to_owned()),
        })
}

fn record_at<'a>(context: &'a Record, path: &[String]) -> Option<&'a Record> {
    if path.is_empty() {
        return Some(context);
    }
    match context.find(path) {
        Found::Shape {
            shape: Shape::Record(record),
            ..
        } => Some(record),
        Found::Shape {
            shape: Shape::One(_) | Shape::SetOf(_),
            ..
        }
        | Found::LeftOut(_)
        | Found::Nothing => None,
    }
}

fn shown(path: &[String]) -> String {
    std::iter::once("context")
        .chain(path.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(".")
        .escape_debug()
        .to_string()
}

impl Strange {
    fn misread(self) -> Misread {
        let (near, text, hint) = match self {
            Self::HasTag => (
                "hasTag",
                "callers and resources have no tags",
                "use their attributes",
            ),
            Self::GetTag => (
                "getTag",
                "callers and resources have no tags",
                "use their attributes",
            ),
            Self::Unknown => (
                "unknown",
                "`unknown` is not part of the language of rules",
                "remove it",
            ),
            Self::Slot => (
                "?",
                "a rule with a slot is a template",
                "name the principal or resource",
            ),
            Self::New => (
                "when",
                "this rule uses a part of Cedar that is not supported here",
                "remove it",
            ),
        };
        Misread {
            near: vec![near.to_owned()],
            text: text.to_owned(),
            hint: Some(hint.to_owned()),
        }
    }
}
