//! What a server last said of a tool, held against what was approved of it.
//!
//! It is compared on every listing, and looked at before every call, so that a tool that changed in the middle of a
//! session is stopped before a client hears of it.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the server last said.
#[derive(Debug, Default)]
pub(crate) struct Live(AtomicU8);

/// How a server departs from what was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// It defines the tool in another way.
    Changed,
    /// It has no such tool any more.
    Gone,
    /// It wants arguments in headers in a way that the protocol does not have, where headers count (HM-19).
    Headers,
}

const SAME: u8 = 0;
const CHANGED: u8 = 1;
const GONE: u8 = 2;
const HEADERS: u8 = 3;

impl Live {
    /// Takes note of what was said. Gives whether that is news.
    pub(crate) fn note(&self, drift: Option<Drift>) -> bool {
        let now = match drift {
            None => SAME,
            Some(Drift::Changed) => CHANGED,
            Some(Drift::Gone) => GONE,
            Some(Drift::Headers) => HEADERS,
        };
        self.0.swap(now, Ordering::AcqRel) != now
    }

    pub(crate) fn drift(&self) -> Option<Drift> {
        match self.0.load(Ordering::Acquire) {
            SAME => None,
            GONE => Some(Drift::Gone),
            HEADERS => Some(Drift::Headers),
            _ => Some(Drift::Changed),
        }
    }
}

/// What it is, and what would clear it, for the operator.
impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => {
                "the server no longer defines this tool as it was approved; look at `tollhouse pins diff`, then approve \
                 it again or correct the server"
            }
            Self::Gone => "the server no longer has this tool",
            Self::Headers => {
                "its schema has an `x-mcp-header` that is not valid, and such a tool must not be called over HTTP; correct \
                 the server"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_counts_and_only_a_change_is_news() {
        let live = Live::default();
        assert_eq!(live.drift(), None);
        assert!(!live.note(None));
        for drift in [Drift::Changed, Drift::Gone, Drift::Headers] {
            assert!(live.note(Some(drift)));
            assert!(!live.note(Some(drift)));
            assert_eq!(live.drift(), Some(drift));
        }
        assert!(live.note(None));
        assert_eq!(live.drift(), None);
    }
}
