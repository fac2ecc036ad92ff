//! What the launcher says to the gate: one line, the first on standard error, before anything foreign runs.

use serde_json::{Value, json};

/// The longest line. It holds one sentence with a path.
pub(crate) const REPORT_BYTES_MAX: usize = 16 << 10;

const MARK: &str = "tollhouse-launch ";

/// How much of the declared sandbox holds for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Nothing was declared, or nothing of it could be applied and the operator allowed that.
    None,
    /// A part of it; the operator allowed that.
    Partial,
    /// All of it.
    Full,
}

impl Protection {
    /// The word for it in facts and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }

    /// The protection with this word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::Partial, Self::Full]
            .into_iter()
            .find(|protection| protection.as_str() == text)
    }
}

/// What became of the launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command is about to run.
    Ready(Protection),
    /// It does not run.
    Refused(String),
}

impl Report {
    /// The line.
    pub(crate) fn line(&self) -> String {
        let value = match self {
            Self::Ready(protection) => json!({ "sandbox": protection.as_str() }),
            Self::Refused(why) => json!({ "refused": why }),
        };
        format!("{MARK}{value}\n")
    }

    /// Writes the line to standard error.
    pub(crate) fn say(&self) {
        use std::io::Write as _;
        #[expect(
            clippy::disallowed_methods,
            reason = "in the process of the launcher standard error leads to the gate, not to a terminal"
        )]
        let mut error = std::io::stderr();
        // Without the gate there is nobody to tell, and the warden ends everything.
        let _ = error.write_all(self.line().as_bytes());
    }

    /// Reads the line; `None` where it is none.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?.strip_prefix(MARK)?;
        let value: Value = serde_json::from_str(text).ok()?;
        if let Some(why) = value.get("refused").and_then(Value::as_str) {
            return Some(Self::Refused(why.to_owned()));
        }
        let word = value.get("sandbox").and_then(Value::as_str)?;
        Protection::parse(word).map(Self::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line_that_reads_as_what_it_was() {
        let reports = [
            Report::Ready(Protection::None),
            Report::Ready(Protection::Partial),
            Report::Ready(Protection::Full),
            Report::Refused("`/a\nb` is \"not\" there".to_owned()),
        ];
        for report in reports {
            let line = report.line();
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert_eq!(Report::read(line.trim_end().as_bytes()), Some(report));
        }
    }

    #[test]
    fn what_is_no_report_is_none() {
        for line in [
            "",
            "hello",
            "tollhouse-launch",
            "tollhouse-launch {}",
            "tollhouse-launch {\"sandbox\":\"complete\"}",
            " tollhouse-launch {\"sandbox\":\"full\"}",
        ] {
            assert_eq!(Report::read(line.as_bytes()), None, "{line:?}");
        }
    }
}
