//! What the rules of a tool leave open while only the caller is known.
//!
//! A call needs three things: some permit that holds, no forbid that holds, and no rule that fails. A tool is hidden
//! only where one of the three is out of reach for every call. Conditions are cut at `&&`, `||`, `!` and `if` into
//! leaves. A leaf that reads only the caller and the tool is evaluated by Cedar, as in a decision; any other may come
//! out in every way. What can come of the whole then follows from what can come of its leaves.

use cedar_policy::pst::{
    ActionConstraint, BinaryOp, Clause, Effect, EntityOrSlot, Expr, Literal, PolicyID, PrincipalConstraint,
    ResourceConstraint, StaticPolicy, Template, UnaryOp, Var,
};
use cedar_policy::{AuthorizationError, Authorizer, PolicyId, PolicySet};
use model::Caller;

use crate::question::Case;
use crate::vocabulary::CALLER;

/// The ways in which a condition can come out: any of yes, no and failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ways {
    yes: bool,
    no: bool,
    fail: bool,
}

/// One rule, as far as it can be told before a call.
#[derive(Debug)]
pub(crate) struct Outlook {
    permit: bool,
    condition: Tree,
}

/// A condition, cut into leaves.
#[derive(Debug)]
enum Tree {
    Leaf(Leaf),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
}

/// A part of a condition without parts of its own.
#[derive(Debug)]
enum Leaf {
    Always(bool),
    /// Cedar knows, under this number.
    Known(usize),
    /// Depends on the call. It fails in any case where the caller lacks what it reads of them.
    Open {
        tenant: bool,
        client: bool,
    },
}

/// The leaves of several rules that Cedar can evaluate, each as a little rule of its own.
#[derive(Default)]
pub(crate) struct Leaves {
    set: PolicySet,
    count: usize,
}

/// What Cedar said about leaves, for one caller and one tool.
pub(crate) struct Known<'a> {
    caller: &'a Caller,
    hold: Vec<usize>,
    fail: Vec<usize>,
}

/// What is possible so far.
#[derive(Debug, Default)]
pub(crate) struct Prospect {
    /// Some permit may hold.
    permit: bool,
    /// Every call is forbidden, or meets a rule that fails.
    closed: bool,
}

// === impl Prospect ===

impl Prospect {
    /// Takes one more rule in.
    pub(crate) fn weigh(&mut self, rule: &Outlook, known: &Known<'_>) {
        let ways = rule.condition.ways(known);
        if rule.permit {
            self.permit |= ways.yes;
            self.closed |= !(ways.yes || ways.no);
        } else {
            self.closed |= !ways.no;
        }
    }

    /// Whether some call might be permitted.
    pub(crate) const fn is_open(&self) -> bool {
        self.permit && !self.closed
    }
}

// === impl Leaves ===

impl Leaves {
    /// Evaluates every leaf. Nothing is asked where there is none.
    pub(crate) fn ask<'a>(&self, authorizer: &Authorizer, case: &Case, caller: &'a Caller) -> Known<'a> {
        let number = |id: &PolicyId| AsRef::<str>::as_ref(id).parse::<usize>().ok();
        let (mut hold, mut fail) = (Vec::new(), Vec::new());
        if self.count > 0 {
            let response = authorizer.is_authorized(&case.request, &self.set, &case.entities);
            hold.extend(response.diagnostics().reason().filter_map(number));
            let failures = response.diagnostics().errors();
            fail.extend(
                failures
                    .filter_map(|AuthorizationError::PolicyEvaluationError(error)| number(error.policy_id())),
            );
        }
        Known { caller, hold, fail }
    }

    /// The leaf as a rule `permit (principal …, action, resource) when { … }`; open where Cedar does not take it.
    fn add(&mut self, principal: PrincipalConstraint, condition: Option<&Expr>) -> Leaf {
        let number = self.count;
        let open = Leaf::Open {
            tenant: false,
            client: false,
        };
        let template = Template::new(
            PolicyID(number.to_string().into()),
            Effect::Permit,
            principal,
            ActionConstraint::Any,
            ResourceConstraint::Any,
        );
        let clauses: Vec<Clause> = condition
            .map(|condition| Clause::When(condition.clone().into()))
            .into_iter()
            .collect();
        let rule = template
            .try_with_clauses(clauses)
            .ok()
            .and_then(|template| StaticPolicy::try_from(template).ok());
        let rule = rule
            .and_then(|rule| cedar_policy::Policy::from_pst(cedar_policy::pst::Policy::Static(rule)).ok());
        if rule.is_some_and(|rule| self.set.add(rule).is_ok()) {
            self.count += 1;
            Leaf::Known(number)
        } else {
            open
        }
    }
}

// === impl Outlook ===

impl Outlook {
    /// `asks_which_resource`: the scope names one thing, and which a call is about is open.
    pub(crate) fn of(rule: &Template, asks_which_resource: bool, leaves: &mut Leaves) -> Self {
        let mut condition = Tree::Leaf(scope(&rule.principal, leaves));
        if asks_which_resource {
            condition = condition.and(Tree::Leaf(Leaf::Open {
                tenant: false,
                client: false,
            }));
        }
        for clause in rule.clauses() {
            condition = condition.and(match clause {
                Clause::When(expr) => Tree::of(expr, leaves),
                Clause::Unless(expr) => Tree::Not(Box::new(Tree::of(expr, leaves))),
            });
        }
        Self {
            permit: match rule.effect {
                Effect::Permit => true,
                Effect::Forbid => false,
            },
            condition,
        }
    }
}

fn scope(principal: &PrincipalConstraint, leaves: &mut Leaves) -> Leaf {
    match principal {
        PrincipalConstraint::Any => Leaf::Always(true),
        PrincipalConstraint::Is(kind) => Leaf::Always(kind.to_string() == CALLER),
        PrincipalConstraint::Eq(EntityOrSlot::Entity(_))
        | PrincipalConstraint::In(EntityOrSlot::Entity(_))
        | PrincipalConstraint::IsIn(_, EntityOrSlot::Entity(_)) => leaves.add(principal.clone(), None),
        PrincipalConstraint::Eq(EntityOrSlot::Slot(_))
        | PrincipalConstraint::In(EntityOrSlot::Slot(_))
        | PrincipalConstraint::IsIn(_, EntityOrSlot::Slot(_)) => Leaf::Open {
            tenant: false,
            client: false,
        },
    }
}

// === impl Tree ===

impl Tree {
    /// The recursion is as deep as the rule's tree, which is bounded before parsing.
    fn of(expr: &Expr, leaves: &mut Leaves) -> Self {
        match expr {
            Expr::UnaryOp {
                op: UnaryOp::Not,
                expr,
            } => Self::Not(Box::new(Self::of(expr, leaves))),
            Expr::BinaryOp {
                op: BinaryOp::And,
                left,
                right,
            } => Self::of(left, leaves).and(Self::of(right, leaves)),
            Expr::BinaryOp {
                op: BinaryOp::Or,
                left,
                right,
            } => Self::Or(
                Box::new(Self::of(left, leaves)),
                Box::new(Self::of(right, leaves)),
            ),
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => Self::If(
                Box::new(Self::of(cond, leaves)),
                Box::new(Self::of(then_expr, leaves)),
                Box::new(Self::of(else_expr, leaves)),
            ),
            Expr::Literal(Literal::Bool(value)) => Self::Leaf(Leaf::Always(*value)),
            leaf if told_by_caller(leaf) => Self::Leaf(leaves.add(PrincipalConstraint::Any, Some(leaf))),
            leaf => Self::Leaf(Leaf::Open {
                tenant: always_reads(leaf, "tenant"),
                client: always_reads(leaf, "client"),
            }),
        }
    }

    fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    /// `&&` and `||` look at the right only where the left does not settle it, as Cedar does.
    fn ways(&self, known: &Known<'_>) -> Ways {
        match self {
            Self::Leaf(leaf) => leaf.ways(known),
            Self::Not(inner) => inner.ways(known).not(),
            Self::And(left, right) => left.ways(known).then(|| right.ways(known), Ways::never),
            Self::Or(left, right) => left.ways(known).then(Ways::always, || right.ways(known)),
            Self::If(test, yes, no) => test.ways(known).then(|| yes.ways(known), || no.ways(known)),
        }
    }
}

impl Leaf {
    fn ways(&self, known: &Known<'_>) -> Ways {
        let only_fail = Ways {
            yes: false,
            no: false,
            fail: true,
        };
        match self {
            Self::Always(true) => Ways::always(),
            Self::Always(false) => Ways::never(),
            Self::Known(number) if known.fail.contains(number) => only_fail,
            Self::Known(number) if known.hold.contains(number) => Ways::always(),
            Self::Known(_) => Ways::never(),
            Self::Open { tenant, client } => {
                let lacks =
                    (*tenant && known.caller.tenant.is_none()) || (*client && known.caller.client.is_none());
                if lacks {
                    only_fail
                } else {
                    Ways {
                        yes: true,
                        no: true,
                        fail: true,
                    }
                }
            }
        }
    }
}

impl Ways {
    const fn always() -> Self {
        Self {
            yes: true,
            no: false,
            fail: false,
        }
    }

    const fn never() -> Self {
        Self {
            yes: false,
            no: true,
            fail: false,
        }
    }

    const fn not(self) -> Self {
        Self {
            yes: self.no,
            no: self.yes,
            fail: self.fail,
        }
    }

    /// What can come of `if self then yes else no`.
    fn then(self, yes: impl FnOnce() -> Self, no: impl FnOnce() -> Self) -> Self {
        let none = Self {
            yes: false,
            no: false,
            fail: false,
        };
        let yes = if self.yes { yes() } else { none };
        let no = if self.no { no() } else { none };
        Self {
            yes: yes.yes || no.yes,
            no: yes.no || no.no,
            fail: self.fail || yes.fail || no.fail,
        }
    }
}

// === which leaves can be told ===

/// Whether an expression has one value for all calls of a tool by a caller.
///
/// The type of the resource is one for each tool. An entity that is written out may be the very resource of a call,
/// so what is read from it is open.
fn told_by_caller(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Var(Var::Principal | Var::Action) => true,
        Expr::Var(Var::Resource | Var::Context) => false,
        Expr::GetAttr { expr, attr } => match &**expr {
            Expr::Var(Var::Principal) => true,
            Expr::Var(Var::Context) => matches!(attr.as_str(), "class" | "upstream"),
            _ => false,
        },
        Expr::HasAttr { expr, attrs } => matches!(&**expr, Expr::Var(Var::Principal)) && attrs.len() == 1,
        Expr::Is {
            expr, in_expr: None, ..
        } if matches!(&**expr, Expr::Var(Var::Resource)) => true,
        Expr::Is { expr, in_expr, .. } => {
            told_by_caller(expr) && in_expr.as_ref().is_none_or(|within| told_by_caller(within))
        }
        Expr::UnaryOp { expr, .. } | Expr::Like { expr, .. } => told_by_caller(expr),
        Expr::BinaryOp { left, right, .. } => told_by_caller(left) && told_by_caller(right),
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => told_by_caller(cond) && told_by_caller(then_expr) && told_by_caller(else_expr),
        Expr::Set(items) => items.iter().all(|item| told_by_caller(item)),
        Expr::Record(fields) => fields.values().all(|field| told_by_caller(field)),
        // Slots, unknowns, and what Cedar may yet add.
        _ => false,
    }
}

/// Whether every evaluation of an expression reads this attribute of the caller. `&&`, `||` and `if` may stop before.
fn always_reads(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::GetAttr { expr, attr } => {
            (matches!(&**expr, Expr::Var(Var::Principal)) && attr == name) || always_reads(expr, name)
        }
        Expr::BinaryOp {
            op: BinaryOp::And | BinaryOp::Or,
            left,
            ..
        } => always_reads(left, name),
        Expr::BinaryOp { left, right, .. } => always_reads(left, name) || always_reads(right, name),
        Expr::UnaryOp { expr, .. } | Expr::HasAttr { expr, .. } | Expr::Like { expr, .. } => {
            always_reads(expr, name)
        }
        Expr::IfThenElse { cond, .. } => always_reads(cond, name),
        Expr::Set(items) => items.iter().any(|item| always_reads(item, name)),
        _ => false,
    }
}
