//! What the rules of a tool leave open while only the caller is known.
//!
//! A call needs three things: some permit that holds, no forbid that holds, and no rule that fails. A tool is hidden
//! only where one of the three is out of reach for every call. Conditions are cut at `&&`, `||`, `!` and `if` into
//! leaves. A leaf that reads only the caller and the tool is evaluated by Cedar, as in a decision; any other may come
//! out in every way. What can come of the whole then follows from what can come of its leaves.
//!
//! Most leaves read the caller alone. They are the same for every tool, so a listing asks for them once.

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
    /// Cedar knows, of the caller alone, under this number.
    OfCaller(usize),
    /// Cedar knows, of the caller and the tool, under this number.
    OfTool(usize),
    /// Depends on the call. It fails in any case where the caller lacks what it reads of them.
    Open {
        tenant: bool,
        client: bool,
    },
}

/// The leaves of several rules that Cedar can evaluate, each as a little rule of its own.
#[derive(Default)]
pub(crate) struct Leaves {
    pub(crate) of_caller: LeafSet,
    pub(crate) of_tool: LeafSet,
}

/// Leaves that are asked together, numbered from 0.
#[derive(Default)]
pub(crate) struct LeafSet {
    set: PolicySet,
    count: usize,
}

/// What Cedar said about a set of leaves, by their number.
#[derive(Debug, Default)]
pub(crate) struct Answers(Vec<Ways>);

/// Everything that is known about the leaves of a set of rules, for one caller and one tool.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) of_caller: &'a Answers,
    pub(crate) of_tool: &'a Answers,
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
    pub(crate) fn weigh(&mut self, rule: &Outlook, known: Known<'_>) {
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
    /// Takes a leaf in, where it can be told.
    fn add(&mut self, principal: PrincipalConstraint, condition: Option<&Expr>) -> Leaf {
        let number = match condition.map_or(Teller::Caller, teller) {
            Teller::Caller => self.of_caller.add(principal, condition).map(Leaf::OfCaller),
            Teller::Tool => self.of_tool.add(principal, condition).map(Leaf::OfTool),
            Teller::Nobody => None,
        };
        let reads = |name| condition.is_some_and(|condition| always_reads(condition, name));
        number.unwrap_or_else(|| Leaf::Open {
            tenant: reads("tenant"),
            client: reads("client"),
        })
    }
}

impl LeafSet {
    /// Whether there is nothing to ask.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Evaluates every leaf.
    pub(crate) fn ask(&self, authorizer: &Authorizer, case: &Case) -> Answers {
        let response = authorizer.is_authorized(&case.request, &self.set, &case.entities);
        let mut answers = vec![Ways::never(); self.count];
        let mut tell = |id: &PolicyId, ways| {
            let number = AsRef::<str>::as_ref(id).parse::<usize>().ok();
            if let Some(answer) = number.and_then(|number| answers.get_mut(number)) {
                *answer = ways;
            }
        };
        for leaf in response.diagnostics().reason() {
            tell(leaf, Ways::always());
        }
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            tell(error.policy_id(), Ways::failing());
        }
        Answers(answers)
    }

    /// Adds the leaf as a rule `permit (principal …, action, resource) when { … }`. `None` where Cedar does not take it.
    fn add(&mut self, principal: PrincipalConstraint, condition: Option<&Expr>) -> Option<usize> {
        let number = self.count;
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
        let rule = StaticPolicy::try_from(template.try_with_clauses(clauses).ok()?).ok()?;
        let rule = cedar_policy::Policy::from_pst(cedar_policy::pst::Policy::Static(rule)).ok()?;
        self.set.add(rule).ok()?;
        self.count += 1;
        Some(number)
    }
}

// === impl Outlook ===

impl Outlook {
    /// Whether the rule can be left out of every decision about this caller and this tool: it holds for no call, and fails
    /// in none.
    pub(crate) fn is_settled(&self, known: Known<'_>) -> bool {
        self.condition.ways(known) == Ways::never()
    }

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
            leaf => Self::Leaf(leaves.add(PrincipalConstraint::Any, Some(leaf))),
        }
    }

    fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    /// `&&` and `||` look at the right only where the left does not settle it, as Cedar does.
    fn ways(&self, known: Known<'_>) -> Ways {
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
    fn ways(&self, known: Known<'_>) -> Ways {
        match self {
            Self::Always(true) => Ways::always(),
            Self::Always(false) => Ways::never(),
            Self::OfCaller(number) => known.of_caller.ways(*number),
            Self::OfTool(number) => known.of_tool.ways(*number),
            Self::Open { tenant, client } => {
                let lacks =
                    (*tenant && known.caller.tenant.is_none()) || (*client && known.caller.client.is_none());
                if lacks { Ways::failing() } else { Ways::open() }
            }
        }
    }
}

impl Answers {
    fn ways(&self, number: usize) -> Ways {
        self.0.get(number).copied().unwrap_or(Ways::open())
    }
}

impl Ways {
    const fn open() -> Self {
        Self {
            yes: true,
            no: true,
            fail: true,
        }
    }

    const fn failing() -> Self {
        Self {
            yes: false,
            no: false,
            fail: true,
        }
    }

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

/// Who settles an expression, before there is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Teller {
    /// One value for all calls by a caller.
    Caller,
    /// One value for all calls of a tool by a caller.
    Tool,
    /// It depends on the call.
    Nobody,
}

/// Who settles an expression. The type of the resource is one for each tool. An entity that is written out
/// may be the very resource of a call, so what is read from it depends on the call.
fn teller(expr: &Expr) -> Teller {
    match expr {
        Expr::Literal(_) | Expr::Var(Var::Principal) => Teller::Caller,
        Expr::Var(Var::Action) => Teller::Tool,
        Expr::Var(Var::Resource | Var::Context) => Teller::Nobody,
        Expr::GetAttr { expr, attr } => match (&**expr, attr.as_str()) {
            (Expr::Var(Var::Principal), _) => Teller::Caller,
            (Expr::Var(Var::Context), "class" | "upstream") => Teller::Tool,
            _ => Teller::Nobody,
        },
        Expr::HasAttr { expr, attrs } => match &**expr {
            Expr::Var(Var::Principal) if attrs.len() == 1 => Teller::Caller,
            _ => Teller::Nobody,
        },
        Expr::Is {
            expr, in_expr: None, ..
        } if matches!(&**expr, Expr::Var(Var::Resource)) => Teller::Tool,
        Expr::Is { expr, in_expr, .. } => all([&**expr].into_iter().chain(in_expr.as_deref())),
        Expr::UnaryOp { expr, .. } | Expr::Like { expr, .. } => teller(expr),
        Expr::BinaryOp { left, right, .. } => all([&**left, &**right]),
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => all([&**cond, &**then_expr, &**else_expr]),
        Expr::Set(items) => all(items.iter().map(|item| &**item)),
        Expr::Record(fields) => all(fields.values().map(|field| &**field)),
        // Slots, unknowns, and what Cedar may yet add.
        _ => Teller::Nobody,
    }
}

fn all<'a>(parts: impl IntoIterator<Item = &'a Expr>) -> Teller {
    parts.into_iter().map(teller).max().unwrap_or(Teller::Caller)
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
