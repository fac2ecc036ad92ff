//! Every limit, in one table: its name, unit, default, bounds and reason. The configuration reads this table.
//!
//! A limit says how much of something Tollhouse takes before it refuses. None can be switched off.

use std::time::Duration;

/// In what a limit is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; the configuration also takes `64KiB`, `4MiB`.
    Bytes,
    /// A number of things.
    Count,
    /// Milliseconds; the configuration takes `250ms`, `5s`, `2m`, `1h`.
    Millis,
}

/// One row of the table of limits.
#[derive(Debug, Clone, Copy)]
pub struct LimitKey {
    /// The key in `[limits]`.
    pub name: &'static str,
    /// What is counted.
    pub unit: Unit,
    /// The value where nothing is configured.
    pub default: u64,
    /// The smallest value allowed.
    pub min: u64,
    /// The largest value allowed.
    pub max: u64,
    /// What is limited and what happens past it.
    pub doc: &'static str,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

/// A limit that was set out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is {found}; write a value from {min} to {max}")]
pub struct LimitFault {
    /// The key.
    pub name: &'static str,
    /// The value that was asked for.
    pub found: u64,
    /// The smallest value allowed.
    pub min: u64,
    /// The largest value allowed.
    pub max: u64,
}

impl LimitKey {
    /// The key with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        LIMITS.iter().find(|key| key.name == name)
    }

    /// The value in force.
    #[must_use]
    pub fn get(&self, limits: &Limits) -> u64 {
        (self.get)(limits)
    }

    /// Sets the limit.
    ///
    /// # Errors
    /// [`LimitFault`] where the value is out of bounds; nothing is changed then.
    pub fn set(&self, limits: &mut Limits, value: u64) -> Result<(), LimitFault> {
        if value < self.min || value > self.max {
            return Err(LimitFault {
                name: self.name,
                found: value,
                min: self.min,
                max: self.max,
            });
        }
        (self.set)(limits, value);
        Ok(())
    }
}

trait Stored: Copy {
    fn load(value: u64) -> Self;
    fn save(self) -> u64;
}
impl Stored for usize {
    fn load(value: u64) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }
    fn save(self) -> u64 {
        u64::try_from(self).unwrap_or(u64::MAX)
    }
}
impl Stored for Duration {
    fn load(value: u64) -> Self {
        Self::from_millis(value)
    }
    fn save(self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX)
    }
}

macro_rules! limits {
    ($( $name:ident: $kind:ty, $unit:ident, $default:expr, $min:expr, $max:expr, $doc:literal; )*) => {
        /// The limits in force.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits { $( #[doc = $doc] pub $name: $kind, )* }

        /// The table of limits, in the order of the road.
        pub const LIMITS: &[LimitKey] = &[ $( LimitKey {
            name: stringify!($name),
            unit: Unit::$unit,
            default: $default,
            min: $min,
            max: $max,
            doc: $doc,
            get: |limits| Stored::save(limits.$name),
            set: |limits, value| limits.$name = Stored::load(value),
        }, )* ];

        impl Default for Limits {
            fn default() -> Self {
                Self { $( $name: <$kind as Stored>::load($default), )* }
            }
        }
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

limits! {
    connections_max: usize, Count, 1_024, 1, 1_000_000, "Open connections of agents; one more waits until another closes.";
    headers_bytes_max: usize, Bytes, 32 * KIB, 8 * KIB, MIB, "All headers of one request together; more is answered 431.";
    headers_timeout: Duration, Millis, 10 * SECOND, 10, 10 * MINUTE, "How long a client may take to send its headers.";
    body_bytes_max: usize, Bytes, 4 * MIB, KIB, 256 * MIB, "One message from an agent: an HTTP body or a line on stdio; more is answered 413.";
    body_timeout: Duration, Millis, 30 * SECOND, 10, HOUR, "How long a client may take to send a body.";
    token_bytes_max: usize, Bytes, 16 * KIB, 64, MIB, "The longest bearer token that is looked at.";
    json_depth_max: usize, Count, 64, 4, 120, "The deepest nesting of arrays and objects in a message or an upstream's answer.";
    batch_messages_max: usize, Count, 32, 1, 10_000, "Messages in one batch, in the revision that has batches.";
    sessions_max: usize, Count, 10_000, 1, 10_000_000, "Sessions of all callers; the next `initialize` is refused.";
    sessions_per_caller_max: usize, Count, 256, 1, 1_000_000, "Sessions of one caller; the next `initialize` is refused.";
    session_idle_timeout: Duration, Millis, 30 * MINUTE, SECOND, 24 * HOUR, "A session that nobody used for this long ends.";
    subscriptions_max: usize, Count, 10_000, 1, 1_000_000, "Open subscriptions of the stateless era, of all callers; the next one is refused.";
    subscriptions_per_caller_max: usize, Count, 32, 1, 1_000_000, "Open subscriptions of one caller; the next one is refused.";
    resource_subscriptions_max: usize, Count, 256, 1, 100_000, "Resources of whose changes one session or one subscription is told; the next one is refused.";
    streams_per_session_max: usize, Count, 8, 1, 1_000, "Listening streams of one session open at once.";
    replay_events_max: usize, Count, 256, 1, 100_000, "Events kept per session for clients that resume a stream; older ones go first.";
    replay_bytes_max: usize, Bytes, 4 * MIB, KIB, 1_024 * MIB, "Bytes of events kept per session for clients that resume a stream; older ones go first.";
    keep_alive_interval: Duration, Millis, 15 * SECOND, 50, 10 * MINUTE, "How often an idle event stream carries a comment, so that proxies keep it open.";
    calls_max: usize, Count, 512, 1, 1_000_000, "Calls running at once, of all callers; the next is refused.";
    calls_per_caller_max: usize, Count, 64, 1, 1_000_000, "Calls running at once of one caller; the next is refused.";
    call_timeout: Duration, Millis, 30 * SECOND, 1, HOUR, "The deadline of a call whose tool sets none, from the first byte to the answer.";
    call_timeout_max: Duration, Millis, 10 * MINUTE, 1, 24 * HOUR, "The longest deadline that a tool may set.";
    source_timeout: Duration, Millis, 2 * SECOND, 1, MINUTE, "How long a source of facts may take; later is a no.";
    progress_interval: Duration, Millis, 5 * SECOND, 10, 10 * MINUTE, "How often a running call reports progress to a client that asked for it.";
    tools_max: usize, Count, 1_000, 1, 100_000, "Enabled tools; more is a fault of the configuration.";
    tools_list_bytes_max: usize, Bytes, 256 * KIB, KIB, 64 * MIB, "The list of all enabled tools of one document; with more, `tollhouse review` says that it is not ready, `tollhouse check` warns, and both say which budgets of the upstream would make it fit.";
    tools_per_page: usize, Count, 100, 1, 10_000, "Tools on one page of `tools/list`.";
    arguments_bytes_max: usize, Bytes, MIB, 256, 64 * MIB, "The arguments of one call.";
    upstream_connect_timeout: Duration, Millis, 5 * SECOND, 1, 5 * MINUTE, "How long a connection to an upstream may take, with its TLS handshake.";
    upstream_body_bytes_max: usize, Bytes, 8 * MIB, 256, 1_024 * MIB, "The answer of an upstream, after which it is cut off and withheld.";
    upstream_headers_bytes_max: usize, Bytes, 64 * KIB, 8 * KIB, MIB, "The headers of an upstream's answer.";
    upstream_probe_timeout: Duration, Millis, 5 * SECOND, 10, MINUTE, "How long an MCP server may leave the first question unanswered before it is taken for one of the older kind.";
    upstream_list_age_max: Duration, Millis, MINUTE, 0, 24 * HOUR, "How old the list of an MCP server's tools may be when one of them is called; an older one is read again first.";
    upstream_sessions_max: usize, Count, 1_000, 1, 1_000_000, "Open conversations with one MCP server; the next call that needs one is refused.";
    upstream_stream_bytes_max: usize, Bytes, 64 * MIB, 256, 16 * 1_024 * MIB, "All events of an MCP server that belong to one call; more ends the call. On a stream that belongs to none, what comes between two messages.";
    upstream_stream_messages_max: usize, Count, 10_000, 1, 10_000_000, "Messages of an MCP server that belong to one call; one more ends the call.";
    upstream_idle_timeout: Duration, Millis, 5 * MINUTE, 10, 24 * HOUR, "How long an event stream of an MCP server may be silent, comments included; then it is taken for broken.";
    upstream_resumes_max: usize, Count, 5, 0, 1_000, "Tries in a row to take up an event stream of an MCP server that broke.";
    upstream_retry_max: Duration, Millis, MINUTE, 50, HOUR, "The longest pause that an MCP server may ask for before its event stream is taken up again; one that asks for more is given up.";
    upstream_connections_max: usize, Count, 256, 1, 100_000, "Idle connections kept to one upstream.";
    asks_at_once_max: usize, Count, 8, 1, 1_000, "Questions of an MCP server that wait for answers in one call; the next is refused to the server.";
    asks_per_call_max: usize, Count, 64, 1, 10_000, "Questions of an MCP server in one call; the next is refused to the server.";
    ask_rounds_max: usize, Count, 10, 1, 1_000, "Rounds of questions in which an MCP server of the stateless era answers one call; one more ends the call.";
    ask_time_max: Duration, Millis, 4 * MINUTE, 1, 24 * HOUR, "How long a call may wait for answers to questions of its server, all together and beside its deadline; later, nobody answered.";
    parks_max: usize, Count, 1_000, 1, 1_000_000, "Calls of the stateless era that wait for their client to answer questions; in the next one, nobody answers.";
    parks_per_caller_max: usize, Count, 32, 1, 1_000_000, "The same, of one caller.";
    children_max: usize, Count, 256, 1, 100_000, "Children of all servers that are started; the call that needs one more is refused.";
    child_noise_lines_max: usize, Count, 100, 0, 100_000, "Lines in a row on a child's standard output that are no messages; one more ends the child.";
    child_log_bytes_max: usize, Bytes, 64 * KIB, KIB, 64 * MIB, "What is logged of one child's standard error in a minute; more is left out.";
    result_bytes_max: usize, Bytes, MIB, 256, 256 * MIB, "A result on its way to an agent; more is withheld.";
    config_bytes_max: usize, Bytes, MIB, KIB, 64 * MIB, "A configuration or policy file.";
    document_bytes_max: usize, Bytes, 64 * MIB, KIB, 1_024 * MIB, "An OpenAPI document, with its other files.";
    document_files_max: usize, Count, 10_000, 1, 1_000_000, "Other files of one OpenAPI document; operations that need one more are blocked.";
    ledger_queue_max: usize, Count, 4_096, 1, 1_000_000, "Ledger entries waiting to be written; the next call waits, until its deadline.";
    ledger_batch_max: usize, Count, 128, 1, 1_000, "Ledger entries written in one transaction.";
    ledger_timeout: Duration, Millis, 5 * SECOND, 10, 5 * MINUTE, "How long a call waits for its record before it is refused.";
    key_set_bytes_max: usize, Bytes, MIB, KIB, 16 * MIB, "The key set of a token issuer.";
    keys_refresh_interval: Duration, Millis, SECOND, 50, MINUTE, "How often added and revoked API keys are read again: a revoked key works no longer than this.";
    drain_timeout: Duration, Millis, 30 * SECOND, 0, HOUR, "How long running calls may take to end when the gate closes.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_within_its_bounds_and_every_row_is_documented() {
        let limits = Limits::default();
        for key in LIMITS {
            assert!(key.min <= key.default && key.default <= key.max, "{}", key.name);
            assert_eq!(key.get(&limits), key.default, "{}", key.name);
            assert!(key.doc.ends_with('.'), "{}", key.name);
            assert_eq!(LimitKey::find(key.name).map(|k| k.name), Some(key.name));
        }
    }

    #[test]
    fn a_limit_is_set_at_its_bounds_and_refused_past_them() {
        for key in LIMITS {
            let mut limits = Limits::default();
            for value in [key.min, key.max] {
                key.set(&mut limits, value).unwrap();
                assert_eq!(key.get(&limits), value, "{}", key.name);
            }
            let before = limits.clone();
            assert!(key.set(&mut limits, key.max + 1).is_err(), "{}", key.name);
            if let Some(below) = key.min.checked_sub(1) {
                assert!(key.set(&mut limits, below).is_err(), "{}", key.name);
            }
            assert_eq!(limits, before, "{}", key.name);
        }
    }
}
