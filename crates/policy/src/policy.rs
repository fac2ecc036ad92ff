//! The decision: rules and facts in, a permission or a denial out. No clock, no network, no files.
//!
//! One function answers whether a call may be made, and the same rules with unknown arguments answer whether a tool
//! may be seen. How rules get here is in `load.rs`; what they can say is in the documentation of the crate.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use cedar_policy::{AuthorizationError, Authorizer, Decision, EvaluationError, PolicyId, PolicySet};
use model::{Caller, Digest, Limits, RuleId, ToolName};

use crate::action::Action;
use crate::fault::PolicyFault;
use crate::leeway::{Leeway, Leeways};
use crate::listing::{Answers, Known, LeafSet, Leaves, Outlook, Prospect};
use crate::load::{PolicyFile, load_on_a_large_stack};
use crate::question::{Case, Form, Question, Types, Unfit, caller_id};
use crate::reads::Reads;
use crate::rule::{Effect, Rule, RuleSummary};
use crate::verdict::{Denied, DeniedWhy, Permitted, Verdict};

/// A set of rules over a set of tools, checked as a whole and never changed afterwards.
///
/// To change a rule or a tool, load another one and put it in this one's place.
pub struct Policy {
    state: State,
}

enum State {
    /// Refuses everything.
    Sealed {
        why: String,
        version: Digest,
    },
    Open(Box<Table>),
}

/// Everything that was worked out at load.
pub(crate) struct Table {
    version: Digest,
    schema: String,
    types: Types,
    seats: HashMap<ToolName, Seat>,
    /// Rules that no enabled tool can meet at this moment.
    idle: Vec<RuleSummary>,
    authorizer: Authorizer,
    /// What was worked out since.
    leeways: Leeways,
}

/// One tool: how questions about it are put, and to which rules.
pub(crate) struct Seat {
    number: usize,
    form: Form,
    buckets: Vec<Arc<Bucket>>,
}

/// Rules that apply to the same tools.
///
/// Each rule is in one bucket and each tool stands before a few, so a decision evaluates only rules that can apply,
/// and memory grows with the number of rules, not of rules times tools.
#[derive(Default)]
pub(crate) struct Bucket {
    rules: HashMap<PolicyId, (usize, RuleSummary)>,
    reads: Vec<Reads>,
    outlooks: Vec<(Outlook, cedar_policy::Policy)>,
    leaves: Leaves,
}

/// What may be shown to one caller. It remembers what rules say about the caller alone, and lives as long as one answer.
#[derive(Debug)]
pub struct Listing<'a> {
    policy: &'a Policy,
    caller: &'a Caller,
    /// By the address of the bucket. The policy is borrowed, so none can go away and its address come back as another's.
    of_caller: HashMap<usize, Answers>,
}

// === impl Policy ===

impl Policy {
    /// Loads a policy with the limits that hold where nothing is configured.
    ///
    /// `files`: in any order; their paths are shown in messages and are part of the version.
    /// `actions`: every enabled tool; rules can name no other.
    ///
    /// No rules at all is a policy too: it permits nothing, and [`is_empty`](Self::is_empty) says so.
    ///
    /// # Errors
    /// Every fault at once, in the order of their places, at most [`FAULTS_MAX`](crate::FAULTS_MAX): see
    /// [`PolicyFaultKind`](crate::PolicyFaultKind).
    pub fn load(files: &[PolicyFile], actions: &[Action]) -> Result<Self, Vec<PolicyFault>> {
        Self::load_within(files, actions, &Limits::default())
    }

    /// Loads a policy. `limits.config_bytes_max` bounds each file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_within(
        files: &[PolicyFile],
        actions: &[Action],
        limits: &Limits,
    ) -> Result<Self, Vec<PolicyFault>> {
        Ok(Self {
            state: State::Open(Box::new(load_on_a_large_stack(files, actions, limits)?)),
        })
    }

    /// A policy that refuses everything and says why: for when there is none that loads.
    #[must_use]
    pub fn sealed(why: String) -> Self {
        let version = Digest::of("tollhouse/policy/sealed/v1", &[why.as_bytes()]);
        Self {
            state: State::Sealed { why, version },
        }
    }

    /// Decides one question. `subject` is what the permission will be for; it is given back inside the proof, and
    /// dropped on a no.
    ///
    /// A forbid beats every permit. A rule of the tool that cannot be evaluated denies, whether it permits or forbids,
    /// and even where another rule permits: it might have forbidden.
    ///
    /// # Errors
    /// [`Denied`], with the reason and the rules that took part.
    pub fn decide<T>(&self, subject: T, question: &Question<'_>) -> Result<Permitted<T>, Denied> {
        match self.judge(question) {
            Ok(verdict) => Ok(Permitted::new(subject, verdict)),
            Err(why) => Err(Denied {
                why,
                policy: self.version(),
            }),
        }
    }

    /// Permits what needs no more than that the tool may be shown to the caller: to ask which values an argument may have,
    /// while the arguments are not all there. See [`listable`](Self::listable).
    ///
    /// # Errors
    /// [`Denied`], as of [`decide`](Self::decide).
    pub fn decide_listable<T>(
        &self,
        subject: T,
        caller: &Caller,
        tool: &ToolName,
    ) -> Result<Permitted<T>, Denied> {
        let denied = |why: DeniedWhy| Denied {
            why,
            policy: self.version(),
        };
        if let State::Sealed { why, .. } = &self.state {
            return Err(denied(DeniedWhy::Sealed(why.clone())));
        }
        if !self.listable(caller, tool) {
            return Err(denied(DeniedWhy::NothingPermits));
        }
        let permits = self.rules_for(tool).into_iter();
        let permits = permits.filter(|rule| rule.effect == Effect::Permit);
        let verdict = Verdict {
            rules: permits.map(|rule| rule.id).collect(),
            policy: self.version(),
        };
        Ok(Permitted::new(subject, verdict))
    }

    /// Whether to show a tool to a caller: false only where every call would be refused, whatever its arguments,
    /// target, facts and time.
    ///
    /// True promises nothing. It is the same rules that decide, with everything but the caller unknown. For more than
    /// one tool, [`listing`](Self::listing) is faster.
    #[must_use]
    pub fn listable(&self, caller: &Caller, tool: &ToolName) -> bool {
        self.listing(caller).shows(tool)
    }

    /// What may be shown to one caller, for asking about many tools.
    #[must_use]
    pub fn listing<'a>(&'a self, caller: &'a Caller) -> Listing<'a> {
        Listing {
            policy: self,
            caller,
            of_caller: HashMap::new(),
        }
    }

    /// The version: a digest over the paths and texts of all files and over the generated schema, so that it
    /// changes with the rules and with what they can see of the tools.
    #[must_use]
    pub const fn version(&self) -> Digest {
        match &self.state {
            State::Sealed { version, .. } => *version,
            State::Open(table) => table.version,
        }
    }

    /// The Cedar schema of all enabled tools, in Cedar's own syntax, for editors. Empty for a sealed policy.
    #[must_use]
    pub fn schema_text(&self) -> &str {
        match &self.state {
            State::Sealed { .. } => "",
            State::Open(table) => &table.schema,
        }
    }

    /// The rules that take part in every decision about a tool, in the order of the files.
    #[must_use]
    pub fn rules_for(&self, tool: &ToolName) -> Vec<RuleSummary> {
        let State::Open(table) = &self.state else {
            return Vec::new();
        };
        let Some(seat) = table.seats.get(tool) else {
            return Vec::new();
        };
        in_order(
            seat.buckets
                .iter()
                .flat_map(|bucket| bucket.rules.values().map(|(order, rule)| (*order, rule.clone()))),
        )
    }

    /// The rules that no enabled tool can meet at this moment, as a guard for a class without tools. What they read was
    /// not checked against any tool.
    #[must_use]
    pub fn idle_rules(&self) -> &[RuleSummary] {
        match &self.state {
            State::Sealed { .. } => &[],
            State::Open(table) => &table.idle,
        }
    }

    /// Whether there is no rule at all, so that nothing is permitted. Also true of a sealed policy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.state {
            State::Sealed { .. } => true,
            State::Open(table) => {
                table.idle.is_empty() && table.seats.values().all(|seat| seat.buckets.is_empty())
            }
        }
    }

    /// Why this policy refuses everything, if it does.
    #[must_use]
    pub fn sealed_why(&self) -> Option<&str> {
        match &self.state {
            State::Sealed { why, .. } => Some(why),
            State::Open(_) => None,
        }
    }

    fn judge(&self, question: &Question<'_>) -> Result<Verdict, DeniedWhy> {
        match &self.state {
            State::Sealed { why, .. } => Err(DeniedWhy::Sealed(why.clone())),
            State::Open(table) => {
                let seat = table.seats.get(question.tool).ok_or(DeniedWhy::UnknownAction)?;
                let leeway = table
                    .leeways
                    .of(seat.number, question.caller, || {
                        seat.leeway(table, question.caller)
                    })
                    .map_err(DeniedWhy::Unfit)?;
                let case = seat
                    .form
                    .case(&leeway.party, question)
                    .map_err(DeniedWhy::Unfit)?;
                let rules = seat.ask(&table.authorizer, &leeway.open, &case).answer()?;
                Ok(Verdict {
                    rules,
                    policy: table.version,
                })
            }
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Sealed { why, .. } => f.debug_struct("Policy").field("sealed", why).finish(),
            State::Open(table) => f
                .debug_struct("Policy")
                .field("version", &table.version)
                .field("tools", &table.seats.len())
                .finish_non_exhaustive(),
        }
    }
}

// === impl Table ===

impl Table {
    pub(crate) fn new(version: Digest, schema: String, types: Types, idle: Vec<RuleSummary>) -> Self {
        Self {
            version,
            schema,
            types,
            seats: HashMap::new(),
            idle,
            authorizer: Authorizer::new(),
            leeways: Leeways::default(),
        }
    }

    pub(crate) const fn types(&self) -> &Types {
        &self.types
    }

    pub(crate) fn seat(&mut self, tool: ToolName, form: Form, buckets: Vec<Arc<Bucket>>) {
        let seat = Seat {
            number: self.seats.len(),
            form,
            buckets,
        };
        self.seats.insert(tool, seat);
    }
}

// === impl Listing ===

impl Listing<'_> {
    /// As [`Policy::listable`].
    #[must_use]
    pub fn shows(&mut self, tool: &ToolName) -> bool {
        match &self.policy.state {
            State::Sealed { .. } => false,
            // About a caller whose id could be another's, nothing can be asked and nothing is shown.
            State::Open(_) if caller_id(self.caller).is_err() => false,
            State::Open(table) => match table.seats.get(tool) {
                None => false,
                Some(seat) => seat
                    .prospect(table, self.caller, &mut self.of_caller)
                    .is_some_and(|prospect| prospect.is_open()),
            },
        }
    }
}

// === impl Seat ===

/// What the rules of a tool said. The lists have the order of each rule; the verdict rests on the flags alone.
#[derive(Default)]
struct Said {
    permitted: bool,
    forbidden: bool,
    failed: bool,
    permits: Vec<(usize, RuleId)>,
    forbids: Vec<(usize, RuleId)>,
    failures: Vec<(usize, (RuleId, String))>,
}

impl Seat {
    /// What the rules leave open; `None` for a caller about whom no question can be asked.
    fn prospect(
        &self,
        table: &Table,
        caller: &Caller,
        remembered: &mut HashMap<usize, Answers>,
    ) -> Option<Prospect> {
        let mut prospect = Prospect::default();
        self.look_ahead(table, caller, remembered, |outlook, _, known| {
            prospect.weigh(outlook, known);
            Ok(())
        })
        .ok()?;
        Some(prospect)
    }

    /// The rules that can still say something once the caller is known: what holds of none of a caller's calls and fails
    /// in none takes part in no decision about them.
    fn leeway(&self, table: &Table, caller: &Caller) -> Result<Leeway, Unfit> {
        let mut open = PolicySet::new();
        self.look_ahead(table, caller, &mut HashMap::new(), |outlook, rule, known| {
            if outlook.is_settled(known) {
                return Ok(());
            }
            open.add(rule.clone()).map_err(|error| error.to_string())
        })?;
        Ok(Leeway {
            party: self.form.party(&table.types, caller)?,
            open,
        })
    }

    /// Looks at each rule with what is known before a call.
    fn look_ahead(
        &self,
        table: &Table,
        caller: &Caller,
        remembered: &mut HashMap<usize, Answers>,
        mut look: impl FnMut(&Outlook, &cedar_policy::Policy, Known<'_>) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        // A case takes longer to put together than most tools need it for.
        let case = OnceCell::new();
        let ask = |leaves: &LeafSet| {
            if leaves.is_empty() {
                return Ok(Answers::default());
            }
            let case = case.get_or_init(|| self.form.open_case(&table.types, caller));
            case.as_ref()
                .map(|case| leaves.ask(&table.authorizer, case))
                .map_err(Unfit::clone)
        };
        for bucket in &self.buckets {
            let of_caller = match remembered.entry(Arc::as_ptr(bucket).addr()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(ask(&bucket.leaves.of_caller)?),
            };
            let of_tool = ask(&bucket.leaves.of_tool)?;
            let known = Known {
                caller,
                of_caller,
                of_tool: &of_tool,
            };
            for (outlook, rule) in &bucket.outlooks {
                look(outlook, rule, known)?;
            }
        }
        Ok(())
    }

    fn ask(&self, authorizer: &Authorizer, open: &PolicySet, case: &Case) -> Said {
        let mut said = Said::default();
        let response = authorizer.is_authorized(&case.request, open, &case.entities);
        // Cedar gives as reasons the permits of a yes and the forbids of a no; a no without any is its default.
        let reasons = response.diagnostics().reason();
        match response.decision() {
            Decision::Allow => {
                said.permitted = true;
                said.permits.extend(reasons.filter_map(|id| self.named(id)));
            }
            Decision::Deny => {
                let mut reasons = reasons.peekable();
                said.forbidden = reasons.peek().is_some();
                said.forbids.extend(reasons.filter_map(|id| self.named(id)));
            }
        }
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            said.failed = true;
            let named = self.named(error.policy_id());
            said.failures
                .extend(named.map(|(order, rule)| (order, (rule, reason(error.inner())))));
        }
        said
    }

    fn named(&self, id: &PolicyId) -> Option<(usize, RuleId)> {
        self.buckets.iter().find_map(|bucket| bucket.named(id))
    }
}

impl Said {
    fn answer(self) -> Result<Vec<RuleId>, DeniedWhy> {
        match (self.forbidden, self.failed, self.permitted) {
            // A forbid beats any permit.
            (true, _, _) => Err(DeniedWhy::Forbidden(in_order(self.forbids))),
            // A rule that could not be evaluated may have been a forbid. Cedar would skip it.
            (false, true, _) => Err(DeniedWhy::RuleFailed(in_order(self.failures))),
            (false, false, true) => Ok(in_order(self.permits)),
            // Nothing said yes.
            (false, false, false) => Err(DeniedWhy::NothingPermits),
        }
    }
}

// === impl Bucket ===

impl Bucket {
    /// Adds a rule, the `order`th of all files.
    ///
    /// # Errors
    /// Cedar's, where it cannot put the rule together again; a defect.
    pub(crate) fn add(&mut self, order: usize, summary: RuleSummary, rule: &Rule<'_>) -> Result<(), String> {
        let policy = rule.settled()?;
        self.rules.insert(policy.id().clone(), (order, summary));
        self.reads.push(rule.reads.clone());
        self.outlooks.push((rule.outlook(&mut self.leaves), policy));
        Ok(())
    }

    pub(crate) fn reads(&self) -> impl Iterator<Item = &Reads> {
        self.reads.iter()
    }

    fn named(&self, id: &PolicyId) -> Option<(usize, RuleId)> {
        self.rules.get(id).map(|(order, rule)| (*order, rule.id.clone()))
    }
}

/// Why a rule failed, in words without values: the text goes to the ledger, and Cedar's own would take the numbers of
/// a sum and the ids of callers and things along.
fn reason(error: &EvaluationError) -> String {
    let said = error.to_string();
    match error {
        // ``Caller::"corp/ada"` does not have the attribute `tenant``
        EvaluationError::EntityAttrDoesNotExist(_) => {
            let kind = said
                .trim_start_matches('`')
                .split("::")
                .next()
                .unwrap_or_default();
            let what = said.rsplit("does not have the ").next().unwrap_or_default();
            format!("the `{kind}` does not have the {what}")
        }
        EvaluationError::EntityDoesNotExist(_) => {
            "it reads from something that is neither the caller nor the resource".to_owned()
        }
        EvaluationError::IntegerOverflow(_) => "a number is beyond 64 bits".to_owned(),
        EvaluationError::FailedExtensionFunctionExecution(error) => {
            format!("`{}` failed", error.extension_name())
        }
        EvaluationError::RecursionLimit(_) => "it is too deep for what is left of the stack".to_owned(),
        // Only types and names that stand in the rule.
        EvaluationError::RecordAttrDoesNotExist(_)
        | EvaluationError::TypeError(_)
        | EvaluationError::WrongNumArguments(_) => said,
        // What cannot come of a rule that was validated, and what Cedar may yet add.
        _ => "it is not a rule that can be evaluated".to_owned(),
    }
}

fn in_order<T>(numbered: impl IntoIterator<Item = (usize, T)>) -> Vec<T> {
    let mut numbered: Vec<(usize, T)> = numbered.into_iter().collect();
    numbered.sort_by_key(|(order, _)| *order);
    numbered.into_iter().map(|(_, item)| item).collect()
}
