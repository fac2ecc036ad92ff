//! What a server logs to its client: levels, messages, and which of them somebody wants. Nothing is remembered here.
//!
//! Source: LOG-01 to LOG-03.

use bytes::Bytes;
use model::Value;
use serde_json::json;

/// How much a message matters (RFC 5424). The later, the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// What happens in order.
    Info,
    /// What happens in order and is worth a look.
    Notice,
    /// What may become a fault.
    Warning,
    /// What has failed.
    Error,
    /// A part of the server has failed.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// The server cannot be used.
    Emergency,
}

impl LogLevel {
    /// All of them, the least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// As it is written in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// The names of all levels, for people.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

/// Which messages somebody wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFilter {
    /// None: a request of the stateless era that names no level (LOG-03).
    #[default]
    Nothing,
    /// Those of this level, and those that matter more.
    From(LogLevel),
    /// All that the server says by itself: a session in which no level was set (LOG-02).
    Everything,
}

impl LogFilter {
    /// Whether a message of this level is wanted.
    #[must_use]
    pub fn passes(self, level: LogLevel) -> bool {
        match self {
            Self::Nothing => false,
            Self::From(least) => level >= least,
            Self::Everything => true,
        }
    }
}

/// One message for a log (`notifications/message`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// How much it matters.
    pub level: LogLevel,
    /// Which part of the server says it. Untrusted.
    pub logger: Option<String>,
    /// What it says. Untrusted.
    pub data: Value,
}

impl LogMessage {
    /// As a notification, which is the same in every revision.
    #[must_use]
    pub fn notification(&self) -> Bytes {
        let mut params = json!({ "level": self.level.as_str(), "data": self.data });
        if let (Some(logger), Some(params)) = (&self.logger, params.as_object_mut()) {
            params.insert("logger".to_owned(), logger.as_str().into());
        }
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        Bytes::from(message.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_01_the_levels_are_those_of_the_protocol_in_their_order() {
        let names = LogLevel::ALL.map(LogLevel::as_str);
        assert_eq!(
            names,
            [
                "debug",
                "info",
                "notice",
                "warning",
                "error",
                "critical",
                "alert",
                "emergency"
            ]
        );
        assert!(LogLevel::ALL.is_sorted());
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::parse(level.as_str()), Some(level));
        }
        for text in ["", "Debug", "warn", "trace", "info "] {
            assert_eq!(LogLevel::parse(text), None, "{text}");
        }
    }

    #[test]
    fn log_03_a_filter_passes_its_level_and_what_matters_more() {
        for level in LogLevel::ALL {
            assert!(!LogFilter::Nothing.passes(level) && LogFilter::Everything.passes(level));
            assert_eq!(
                LogFilter::From(LogLevel::Warning).passes(level),
                level >= LogLevel::Warning
            );
        }
    }
}
