//! Approvals: who answers for it that a tool is offered although it is left out by default, or of a lower class than
//! its document suggests. Whether a tool needs one is found by the catalogue, which reads the document.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::Offset;
use model::{Caller, Exclusion, Role, Subject, TenantId};

use crate::fault::{FaultKind, Wrong, wrong};
use crate::reading::Reading;
use crate::text;
use crate::view::View;

/// One approval of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// What is approved.
    pub what: Approved,
    /// Who answers for it.
    pub by: String,
    /// Why.
    pub because: String,
    /// The last day on which it holds, in UTC.
    pub until: Date,
    /// For whom. Never empty.
    pub audience: Vec<Audience>,
}

/// What an approval approves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Approved {
    /// A declared class that is lower than the one that the document suggests.
    Class,
    /// An operation that is left out by default.
    Exclusion(Exclusion),
}

/// For whom an approval holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Whomever the rules permit.
    Everyone,
    /// Callers with this role.
    Role(Role),
    /// Callers of this organisation.
    Tenant(TenantId),
    /// This caller.
    Subject(Subject),
}

impl Approved {
    /// The word that the configuration has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Exclusion(exclusion) => exclusion.as_str(),
        }
    }
}

impl fmt::Display for Approved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Approval {
    /// Whether it still holds at a time.
    #[must_use]
    pub fn holds(&self, now: jiff::Timestamp) -> bool {
        Offset::UTC.to_datetime(now).date() <= self.until
    }

    /// Whether it is for this caller.
    #[must_use]
    pub fn covers(&self, caller: &Caller) -> bool {
        self.audience.iter().any(|audience| match audience {
            Audience::Everyone => true,
            Audience::Role(role) => caller.roles.contains(role),
            Audience::Tenant(tenant) => caller.tenant.as_ref() == Some(tenant),
            Audience::Subject(subject) => caller.subject == *subject,
        })
    }
}

impl Audience {
    /// Reads `everyone`, `role:NAME`, `tenant:NAME` or `subject:NAME`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        let named = |fault: model::NameFault| text::of_name(&fault);
        match text.split_once(':') {
            None if text == "everyone" => Ok(Self::Everyone),
            Some(("role", name)) => Role::parse(name).map(Self::Role).map_err(named),
            Some(("tenant", name)) => TenantId::parse(name).map(Self::Tenant).map_err(named),
            Some(("subject", name)) => Subject::parse(name).map(Self::Subject).map_err(named),
            Some(_) | None => Err(wrong("names nobody")),
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("everyone"),
            Self::Role(role) => write!(f, "role:{role}"),
            Self::Tenant(tenant) => write!(f, "tenant:{tenant}"),
            Self::Subject(subject) => write!(f, "subject:{subject}"),
        }
    }
}

/// The approvals of a tool, in a fixed order.
pub(crate) fn read(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Vec<Approval>> {
    let Some(approvals) = view.table("approval") else {
        return Some(Vec::new());
    };
    let all = std::iter::once(Approved::Class).chain(Exclusion::ALL.map(Approved::Exclusion));
    let written: Vec<_> = all
        .filter_map(|what| Some((what, approvals.table(what.as_str())?)))
        .map(|(what, view)| one(reading, what, &view))
        .collect();
    written.into_iter().collect()
}

fn one(reading: &mut Reading<'_>, what: Approved, view: &View<'_>) -> Option<Approval> {
    let audience = view
        .texts("for")
        .iter()
        .map(|placed| Audience::parse(&placed.text).ok())
        .collect::<Option<Vec<_>>>();
    let approval = Approval {
        what,
        by: view.text("by")?,
        because: view.text("because")?,
        until: view.parsed("until", text::date)?,
        audience: audience?,
    };
    if !approval.holds(reading.world.now()) {
        let warning = reading.fault_at(
            view,
            "until",
            FaultKind::Expired,
            format!("this approval ended on {}", approval.until),
        );
        reading
            .warnings
            .push(warning.hint("the tool is held until somebody approves it again"));
    }
    Some(approval)
}
