//! Who clears what is in the way of operations: names for a reviewer to go to, and days until when. A name grants nothing
//! and clears nothing; which blockers there are is found by the review.

use std::cmp::Reverse;

use jiff::civil::Date;
use jiff::tz::Offset;

use crate::text;
use crate::view::View;

/// The code that stands for every blocker.
const ANY: &str = "any";

/// `[upstream.<name>.blocker.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockerSettings {
    /// A code of a report as `schema.over-budget`, its part before the dot, or `any`.
    pub code: String,
    /// A person, or a team.
    pub owner: String,
    /// The last day, in UTC, on which it may still be in the way.
    pub due: Option<Date>,
}

impl BlockerSettings {
    /// Whether it speaks of blockers with this code.
    #[must_use]
    pub fn covers(&self, code: &str) -> bool {
        self.code == ANY
            || code
                .strip_prefix(self.code.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// The one that says most exactly who clears blockers with this code.
    #[must_use]
    pub fn of<'s>(all: &'s [Self], code: &str) -> Option<&'s Self> {
        all.iter()
            .filter(|one| one.covers(code))
            .min_by_key(|one| (one.code == ANY, Reverse(one.code.len())))
    }

    /// Whether the day has passed.
    #[must_use]
    pub fn is_overdue(&self, now: jiff::Timestamp) -> bool {
        self.due
            .is_some_and(|due| Offset::UTC.to_datetime(now).date() > due)
    }
}

/// All of an upstream, in the order of the file.
pub(crate) fn read(view: &View<'_>) -> Option<Vec<BlockerSettings>> {
    view.named("blocker")
        .into_iter()
        .map(|(code, view)| {
            Some(BlockerSettings {
                code: code.to_owned(),
                owner: view.text("owner")?,
                due: if view.has("due") {
                    Some(view.parsed("due", text::date)?)
                } else {
                    None
                },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(code: &str) -> BlockerSettings {
        BlockerSettings {
            code: code.to_owned(),
            owner: format!("whoever clears {code}"),
            due: text::date("2027-01-31").ok(),
        }
    }

    #[test]
    fn the_most_exact_name_is_the_one_who_clears_it() {
        let all = ["any", "schema", "schema.over-budget"].map(named);
        for (code, expected) in [
            ("schema.over-budget", "schema.over-budget"),
            ("schema.malformed", "schema"),
            ("schemata.malformed", "any"),
            ("path.malformed", "any"),
        ] {
            let found = BlockerSettings::of(&all, code).unwrap();
            assert_eq!(found.code, expected, "{code}");
        }
        assert_eq!(
            BlockerSettings::of(&[named("schema.over")], "schema.over-budget"),
            None
        );
    }

    #[test]
    fn a_day_has_passed_when_the_next_one_begins() {
        let one = named("any");
        for (time, expected) in [("2027-01-31T23:59:59Z", false), ("2027-02-01T00:00:00Z", true)] {
            assert_eq!(one.is_overdue(time.parse().unwrap()), expected, "{time}");
        }
        let open = BlockerSettings { due: None, ..one };
        assert!(!open.is_overdue("2999-01-01T00:00:00Z".parse().unwrap()));
    }
}
