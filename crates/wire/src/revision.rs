//! The five revisions of MCP, as an ordered enum, and what differs between them as facts that other rooms may ask.
//!
//! A revision is parsed exactly and never compared as text. An unknown one is unsupported, not "the newest" (ADR 0006).

use std::fmt;

/// A dated revision of MCP, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

/// The two ways in which a conversation is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, then a session.
    Legacy,
    /// Every request describes itself.
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision that is opened by `initialize`: what a client that asks for an unknown one is offered
    /// (LIFE-L04, LIFE-D03).
    pub const NEWEST_WITH_SESSIONS: Self = Self::V2025_11_25;

    /// The newest revision that needs no session.
    pub const NEWEST_STATELESS: Self = Self::V2026_07_28;

    /// Reads a revision, exactly as the specification writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The revision as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// How a conversation in this revision is opened.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Whether conversations have a session (HL-12) or every request stands alone (BASE-17).
    #[must_use]
    pub const fn has_sessions(self) -> bool {
        matches!(self.era(), Era::Legacy)
    }

    /// Whether an array of messages is one body (BASE-07); everywhere else it is an error (BASE-10).
    #[must_use]
    pub const fn has_batches(self) -> bool {
        match self {
            Self::V2025_03_26 => true,
            Self::V2024_11_05 | Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => false,
        }
    }

    /// Whether closing the answer's stream cancels the request (HM-09) or means nothing (HL-07).
    #[must_use]
    pub const fn disconnect_cancels(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Whether events of a stream carry ids, so that a client may resume it (HL-11; gone by HM-11).
    #[must_use]
    pub const fn has_resumption(self) -> bool {
        matches!(self.era(), Era::Legacy)
    }

    /// Whether a stream starts with an empty event that carries an id (HL-06).
    #[must_use]
    pub const fn primes_streams(self) -> bool {
        match self {
            Self::V2025_11_25 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2026_07_28 => false,
        }
    }

    /// Whether an error may lack an id (BASE-06). Where it may not, an unreadable message gets no body.
    #[must_use]
    pub const fn has_errors_without_id(self) -> bool {
        match self {
            Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
        }
    }

    /// Whether results can hold audio (TOOL-07); images and embedded resources are in every revision.
    #[must_use]
    pub const fn has_audio(self) -> bool {
        match self {
            Self::V2024_11_05 => false,
            Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }

    /// Whether results can link to resources; with that came the times of annotations (C4).
    #[must_use]
    pub const fn has_resource_links(self) -> bool {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 => false,
            Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }

    /// Whether a completion is told the other arguments.
    #[must_use]
    pub const fn has_completion_context(self) -> bool {
        self.has_resource_links()
    }

    /// Whether `completions` is a capability; the method is older than it.
    #[must_use]
    pub const fn has_completions(self) -> bool {
        self.has_audio()
    }

    /// Whether names have titles beside them.
    #[must_use]
    pub const fn has_titles(self) -> bool {
        self.has_resource_links()
    }

    /// Whether definitions and blocks can have icons (C4).
    #[must_use]
    pub const fn has_icons(self) -> bool {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
            Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }

    /// Whether servers can ask a person (ELIC-01).
    #[must_use]
    pub const fn has_elicitation(self) -> bool {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 => false,
            Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }

    /// Whether elicitation has modes; with them came tools within sampling, several blocks in one of its messages, and
    /// richer forms (ELIC-01, ELIC-02, SAMP-02, SAMP-04).
    #[must_use]
    pub const fn has_modes_of_elicitation(self) -> bool {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
            Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }

    /// Whether progress notifications have a `message` (PROG-02).
    #[must_use]
    pub const fn has_progress_messages(self) -> bool {
        match self {
            Self::V2024_11_05 => false,
            Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a text has the form of a dated revision that is at least as new as the first stateless one.
///
/// Only for choosing which error an unknown version gets (C1 step 6); nothing is served by this.
pub(crate) fn claims_modern(text: &str) -> bool {
    let dated = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    dated && text >= Revision::NEWEST_STATELESS.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_read_exactly_or_not_at_all() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        for text in [
            "",
            "2025-06-19",
            "2026-07-28 ",
            "2026-7-28",
            "latest",
            "2099-01-01",
            "2024-11-05\0",
        ] {
            assert_eq!(Revision::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_a_date_can_claim_to_be_modern() {
        for (text, modern) in [
            ("2026-07-28", true),
            ("2031-01-01", true),
            ("2025-11-25", false),
            ("9999", false),
            ("zzzz-zz-zz", false),
            ("2026-07-28x", false),
            ("DRAFT-2026", false),
        ] {
            assert_eq!(claims_modern(text), modern, "{text}");
        }
    }

    #[test]
    fn batches_exist_in_exactly_one_revision() {
        let with: Vec<_> = Revision::ALL
            .into_iter()
            .filter(|r| r.has_batches())
            .map(Revision::as_str)
            .collect();
        assert_eq!(with, ["2025-03-26"]);
    }
}
