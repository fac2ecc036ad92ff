//! Whether a reviewed tool may be offered: what its document suggests it needs an approval for, and the approvals that
//! the configuration has. It never lowers anything: what the document suggests is held until a person answers for it.

use std::fmt;

use config::{Approval, Approved, ToolSettings};
use jiff::Timestamp;
use jiff::civil::Date;
use model::{Caller, Class, Exclusion};
use openapi::{Evidence, EvidenceKind, Inference, Shown, Strength};

use crate::live::Drift;
use crate::observation::Observation;

/// One thing that a tool needs an approval for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What has to be approved.
    pub what: Approved,
    /// The class that the document suggests, where it is higher than the declared one.
    pub class: Option<Class>,
    /// What in the document suggests it. `None` where only the declared class does.
    pub evidence: Option<Evidence>,
}

/// Why a tool is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// What it needs.
    pub need: Need,
    /// What is the matter with the approval.
    pub state: HoldState,
}

/// What is the matter with an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldState {
    /// There is none.
    Missing,
    /// It ended with this day.
    Expired(Date),
    /// It is not for this caller.
    NotForCaller,
}

/// What speaks against offering a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection<'t> {
    /// The server behind it no longer says what was approved. No approval in the configuration is for that.
    Drifted(Drift),
    /// A probe contradicts its declared class. No approval is for that.
    Observed(&'t Observation),
    /// An approval is missing, has ended, or is for others.
    Unanswered(Hold),
}

/// What a tool needs approvals for.
///
/// A tool that lets only chosen parts of the answer leave is not judged by the rest of it.
pub(crate) fn needs(bounds: &ToolSettings, inference: &Inference) -> Vec<Need> {
    let mut needs = Vec::new();
    let (inferred, returned) = match &bounds.returns {
        Some(returns) => {
            let returned = returned(returns);
            let shown = returned.as_ref().map(|_| Class::SensitiveRead);
            (inference.class_without_answer().max(shown), returned)
        }
        None => (inference.class(), None),
    };
    if let Some(class) = inferred.filter(|inferred| *inferred > bounds.class) {
        let of_answer = returned.filter(|_| class == Class::SensitiveRead);
        needs.push(Need {
            what: Approved::Class,
            class: Some(class),
            evidence: of_answer.or_else(|| inference.best(class).cloned()),
        });
    }
    let mut exclusions = inference.exclusions();
    // A tool that is declared to change something does; one that is declared not to needs an approval of its class.
    exclusions.remove(&Exclusion::Mutations);
    if bounds.class.changes_state() {
        exclusions.insert(Exclusion::Mutations);
    }
    needs.extend(exclusions.into_iter().map(|exclusion| Need {
        what: Approved::Exclusion(exclusion),
        class: None,
        evidence: inference.best_for(exclusion).cloned(),
    }));
    needs
}

/// The first part that leaves and whose name is that of something sensitive.
fn returned(returns: &[(String, String)]) -> Option<Evidence> {
    let (name, path) = returns
        .iter()
        .find(|(_, path)| openapi::is_sensitive_name(path))?;
    Some(Evidence {
        kind: EvidenceKind::Answer,
        says: Shown::Class(Class::SensitiveRead),
        strength: Strength::Weak,
        pointer: format!("returns.{name}"),
        quote: path.clone(),
    })
}

/// The needs that no approval meets at this time, for this caller; without one, for anybody.
pub(crate) fn holds<'t>(
    needs: &'t [Need],
    approvals: &'t [Approval],
    caller: Option<&'t Caller>,
    now: Timestamp,
) -> impl Iterator<Item = Hold> + 't {
    needs.iter().filter_map(move |need| {
        let approval = approvals.iter().find(|approval| approval.what == need.what);
        let state = match approval {
            None => HoldState::Missing,
            Some(approval) if !approval.holds(now) => HoldState::Expired(approval.until),
            Some(approval) if caller.is_some_and(|caller| !approval.covers(caller)) => {
                HoldState::NotForCaller
            }
            Some(_) => return None,
        };
        Some(Hold {
            need: need.clone(),
            state,
        })
    })
}

/// What is needed, with the evidence.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.what, self.class) {
            (Approved::Class, Some(class)) => write!(f, "the document suggests class `{class}`")?,
            (Approved::Class, None) => f.write_str("the document suggests a higher class")?,
            (Approved::Exclusion(exclusion), _) => write!(
                f,
                "it {}, and such operations are left out by default",
                exclusion.meaning()
            )?,
        }
        match &self.evidence {
            Some(evidence) => write!(f, " (`{}` at {})", evidence.quote, evidence.pointer),
            None => Ok(()),
        }
    }
}

impl Hold {
    /// What would clear it, for the operator.
    #[must_use]
    pub fn clears(&self) -> String {
        let what = self.need.what;
        match (self.state, self.need.class) {
            (HoldState::Missing, class) => {
                let declare = class.map(|class| format!("declare `class = \"{class}\"`, or "));
                format!(
                    "{}add `approval.{what} = {{ by = \"WHO\", because = \"WHY\", until = \"YYYY-MM-DD\", for = [\"role:NAME\"] }}`",
                    declare.unwrap_or_default()
                )
            }
            (HoldState::Expired(until), _) => {
                format!("`approval.{what}` ended on {until}, so somebody has to approve it again")
            }
            (HoldState::NotForCaller, _) => format!("`approval.{what}` is not for this caller"),
        }
    }
}

/// Why it is held, and what would clear it, for the operator.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.need, self.clears())
    }
}

/// What it is, and what would clear it, for the operator.
impl fmt::Display for Objection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drifted(drift) => drift.fmt(f),
            Self::Observed(observed) => write!(f, "{observed}; {}", observed.clears()),
            Self::Unanswered(hold) => hold.fmt(f),
        }
    }
}
