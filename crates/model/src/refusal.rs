//! A no: what the agent may read of it, what the operator reads, and whose fault it was.
//!
//! The agent's text is static, so that no rule, host, path, token or upstream text can leak through it. The one
//! exception, [`Refusal::detail`], is made from the caller's own arguments and the tool's published schema; where a server
//! can say only by an error that something failed, from its words, which are untrusted data like its results.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Object, Value};

/// Who has to change something before a retry can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The caller: another call, other arguments, another identity.
    Caller,
    /// The service behind the tool.
    Upstream,
    /// Tollhouse itself or its operator.
    Gateway,
}

macro_rules! refusals {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $text:literal, $fault:ident, $agent:literal; )*) => {
        /// Why a call was refused. Part of the contract: written to the ledger, listed in `docs/refusals.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum RefusalCode { $( $(#[doc = $doc])+ $variant, )* }

        impl RefusalCode {
            /// Every code, in the order of the road.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The code as the ledger writes it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }

            /// Whose fault it is.
            #[must_use]
            pub const fn fault(self) -> Fault {
                match self { $( Self::$variant => Fault::$fault, )* }
            }

            /// What the agent reads.
            #[must_use]
            pub const fn for_agent(self) -> &'static str {
                match self { $( Self::$variant => $agent, )* }
            }

            /// What happened, for people, as `docs/refusals.md` has it.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),+).trim_ascii(), )* }
            }
        }
    };
}

refusals! {
    /// Nobody that this gate knows: no credential, or one that does not hold.
    Unauthenticated = "unauthenticated", Caller, "not authenticated";
    /// No such tool, or none that this caller may see. The agent cannot tell which.
    UnknownTool = "unknown-tool", Caller, "unknown tool";
    /// The tool exists and is held: not enabled, drifted, withdrawn or refused. Reads as unknown to the agent.
    Held = "held", Caller, "unknown tool";
    /// The server behind the gate has no such resource, as it says.
    NoResource = "no-resource", Upstream, "resource not found";
    /// The server behind the gate answered with an error, where only a result can say that something failed.
    UpstreamError = "upstream-error", Upstream, "the server answered with an error";
    /// The same, and it says that the parameters are at fault.
    UpstreamParams = "upstream-params", Caller, "the server refuses the parameters";
    /// The arguments do not fit the pinned input schema.
    ArgumentsInvalid = "arguments-invalid", Caller, "the arguments do not fit the input schema of this tool";
    /// The thing that the call names is not known to the source of owners. Reads as not permitted.
    OwnerUnknown = "owner-unknown", Caller, "not permitted: no rule allows this call";
    /// A source of facts failed or was too slow; an error of a source is a no.
    SourceFailed = "source-failed", Gateway, "a check that this call needs could not be made, so the call was not made; try again later";
    /// No rule said yes, a rule said no, or a rule could not be evaluated.
    NotPermitted = "not-permitted", Caller, "not permitted: no rule allows this call";
    /// The tool changes state and there is no person to ask.
    ConsentMissing = "consent-missing", Caller, "this tool changes state and needs the approval of a person; nobody can be asked here, so the call was not made";
    /// Too many calls at once, of this caller or of all.
    TooBusy = "too-busy", Gateway, "too many calls are running; wait for one to end, then try again";
    /// The gate is closing and takes no new calls.
    Draining = "draining", Gateway, "the gateway is shutting down; try again in a moment";
    /// The intent could not be written; no record, no call.
    LedgerUnavailable = "ledger-unavailable", Gateway, "the call could not be recorded, so it was not made; try again later";
    /// The arguments cannot be put into a request without changing its path, origin or header structure.
    RequestUnsafe = "request-unsafe", Caller, "an argument cannot be sent safely";
    /// The destination is not an address that this upstream may use.
    DestinationRefused = "destination-refused", Gateway, "the service behind this tool could not be reached";
    /// There is no token to call the upstream with: its token endpoint failed. Nothing was sent to the upstream.
    CredentialUnavailable = "credential-unavailable", Upstream, "the gateway could not sign in to the service behind this tool; nothing was sent to it; try again later";
    /// No connection to the upstream: nothing was sent.
    UpstreamUnreachable = "upstream-unreachable", Upstream, "the service behind this tool could not be reached; nothing was sent";
    /// The connection broke after bytes had left.
    UpstreamBroken = "upstream-broken", Upstream, "the connection to the service behind this tool broke; whether it acted is unknown";
    /// The deadline passed.
    UpstreamTimeout = "upstream-timeout", Upstream, "the service behind this tool did not answer in time; whether it acted is unknown";
    /// Work was started at the upstream, and its answers do not say what became of it.
    WorkUnknown = "work-unknown", Upstream, "the work was started, and the service does not say what became of it; do not start it again blindly";
    /// The server of the tool asked the client for something that it did not give.
    AskUnanswered = "ask-unanswered", Caller, "the tool asked this client for something and got no answer that it can go on with; whether it has acted is unknown";
    /// The server of the tool needs something of the client that the client has not declared.
    CapabilityMissing = "capability-missing", Caller, "the tool needs something that this client has not declared that it can do";
    /// The caller cancelled.
    Cancelled = "cancelled", Caller, "the call was cancelled";
    /// The answer was not what the document promises: too large, not JSON, another schema, a redirect.
    ResultInvalid = "result-invalid", Upstream, "the answer of the service failed a check and was withheld";
    /// The answer held something that must not leave: a credential of the gateway.
    ResultWithheld = "result-withheld", Gateway, "the answer of the service failed a check and was withheld";
    /// The outcome could not be written; the answer is withheld.
    OutcomeUnrecorded = "outcome-unrecorded", Gateway, "the call was made, but its outcome could not be recorded, so the answer is withheld; do not repeat it blindly";
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RefusalCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A refusal on its way to the caller and to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: RefusalCode,
    detail: Option<String>,
    for_operator: String,
    for_log: Option<String>,
    needed: Option<Box<Object>>,
}

impl Refusal {
    /// A refusal with the whole story for the operator. `for_operator` may hold hosts and rules, never a secret.
    #[must_use]
    pub fn new(code: RefusalCode, for_operator: impl Into<String>) -> Self {
        Self {
            code,
            detail: None,
            for_operator: for_operator.into(),
            for_log: None,
            needed: None,
        }
    }

    /// Adds the capabilities that a client would have to declare; the agent reads them too.
    #[must_use]
    pub fn with_needed(self, needed: Object) -> Self {
        let detail = Value::Object(needed.clone()).to_string();
        Self {
            needed: Some(Box::new(needed)),
            ..self.with_detail(detail)
        }
    }

    /// The capabilities that a client would have to declare.
    #[must_use]
    pub fn needed(&self) -> Option<&Object> {
        self.needed.as_deref()
    }

    /// Adds what the agent needs to do better: made from its own arguments and the published schema, or from the words of
    /// the server that it asks, held against every credential before; nothing else.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what a log may keep, where the whole story repeats something that the caller said.
    #[must_use]
    pub fn with_log(mut self, for_log: impl Into<String>) -> Self {
        self.for_log = Some(for_log.into());
        self
    }

    /// The code.
    #[must_use]
    pub const fn code(&self) -> RefusalCode {
        self.code
    }

    /// What the agent may know beyond the code's own text.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// What the agent reads: the code's text, and the detail behind a colon.
    #[must_use]
    pub fn for_agent(&self) -> String {
        match &self.detail {
            None => self.code.for_agent().to_owned(),
            Some(detail) => format!("{}: {detail}", self.code.for_agent()),
        }
    }

    /// What the operator reads who asks.
    #[must_use]
    pub fn for_operator(&self) -> &str {
        &self.for_operator
    }

    /// What a log keeps.
    #[must_use]
    pub fn for_log(&self) -> &str {
        self.for_log.as_deref().unwrap_or(&self.for_operator)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.for_operator)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_words() {
        let mut words: Vec<_> = RefusalCode::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), RefusalCode::ALL.len());
    }

    #[test]
    fn what_the_agent_must_not_tell_apart_reads_the_same() {
        assert_eq!(
            RefusalCode::Held.for_agent(),
            RefusalCode::UnknownTool.for_agent()
        );
        assert_eq!(
            RefusalCode::OwnerUnknown.for_agent(),
            RefusalCode::NotPermitted.for_agent()
        );
        assert_eq!(
            RefusalCode::ResultWithheld.for_agent(),
            RefusalCode::ResultInvalid.for_agent()
        );
    }

    #[test]
    fn the_operators_text_never_reaches_the_agent() {
        let refusal = Refusal::new(
            RefusalCode::NotPermitted,
            "forbid rule `secret-rule` at host.internal",
        );
        assert!(!refusal.for_agent().contains("secret-rule"));
        let refusal = refusal.with_detail("`limit` is 500; at most 100");
        assert!(refusal.for_agent().ends_with(": `limit` is 500; at most 100"));
        assert_eq!(refusal.for_log(), refusal.for_operator());
        assert_eq!(refusal.with_log("a limit").for_log(), "a limit");
    }
}
