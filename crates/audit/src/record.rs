//! What exactly is written down: the facts of a call as the gateway has them, and the one function per kind of entry that
//! makes its text of them. What must not be kept is left out here, before anything is hashed.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use model::{Arguments, CallId, Caller, Class, Digest, Object, Refusal, RuleId, Target, Value, canonical};
use store::LedgerHead;

use crate::EntryKind;
use crate::body::{Body, Members, push_string};
use crate::keyed::{DigestKey, DigestKind};
use crate::recorded::Ticket;
use crate::signing::PublicKey;

/// The facts of one call, for its intent or its refusal.
///
/// Of `arguments` and `target` only keyed digests, types and declared names are kept. It has no `Debug`, because it
/// holds their values.
pub struct Record<'a> {
    /// The call.
    pub call: CallId,
    /// Who calls, where that is known.
    pub actor: Option<&'a Caller>,
    /// Which credential it was, in a form that names it and does not show it.
    pub credential: Option<String>,
    /// How it came: `http` or `stdio`.
    pub transport: &'static str,
    /// The method of the protocol, as asked; at most [`TEXT_CHARACTERS_MAX`] characters are kept.
    pub method: &'a str,
    /// The tool, as asked; at most [`TEXT_CHARACTERS_MAX`] characters are kept.
    pub tool: Option<&'a str>,
    /// Its class. A call of no known class is recorded like one that changes state.
    pub class: Option<Class>,
    /// The digest of the reviewed definition that the call goes to.
    pub pin: Option<Digest>,
    /// The thing that it names. Its type and owner are kept, its id only as a keyed digest.
    pub target: Option<&'a Target>,
    /// Its arguments. A keyed digest and the shape are kept.
    pub arguments: Option<&'a Arguments>,
    /// The argument names that may be written down, at any depth: those of the published schema. Others are data of the
    /// caller; they are counted. `None`: all are.
    pub declared: Option<&'a [String]>,
    /// The version of the policy. An intent takes it from the verdict instead.
    pub policy: Option<Digest>,
    /// The rules that decided. An intent takes them from the verdict instead.
    pub rules: &'a [RuleId],
    /// The consent or waiver under which it is made, as the operator wrote it.
    pub consent: Option<Value>,
    /// The trace id; at most [`TEXT_CHARACTERS_MAX`] characters are kept.
    pub trace: Option<&'a str>,
    /// When. Kept to the microsecond.
    pub time: Timestamp,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeState {
    /// The upstream did it.
    Done,
    /// It was not done, or the upstream says that it failed.
    Failed,
    /// Whether it was done is not known: the connection broke, the time was up, the call was abandoned.
    Unknown,
}

/// The facts of how a call ended. It has no `Debug`, because it holds the result.
pub struct Outcome<'a> {
    /// How it ended.
    pub state: OutcomeState,
    /// Why it was refused or withheld after its intent was written. Only code and fault are kept: the operator's text and the
    /// agent's may quote arguments.
    pub refusal: Option<&'a Refusal>,
    /// The upstream's status code.
    pub status: Option<u16>,
    /// How many requests may have reached the upstream.
    pub upstream_requests: u32,
    /// The length of the result, in bytes.
    pub result_bytes: Option<u64>,
    /// The result as it went to the caller. A keyed digest is kept.
    pub result: Option<&'a [u8]>,
    /// How long the call took. Kept to the microsecond.
    pub duration: Duration,
    /// When it ended. Kept to the microsecond.
    pub time: Timestamp,
}

/// The most characters that are kept of a text that a caller sets.
pub const TEXT_CHARACTERS_MAX: usize = 128;

/// An entry that does not yet know its place: its text, and what is looked up by.
pub(crate) struct Content {
    pub(crate) kind: EntryKind,
    pub(crate) call: Option<CallId>,
    pub(crate) time: Timestamp,
    /// The class by which it is made durable; `None` counts as changing state.
    pub(crate) changes_state: bool,
    pub(crate) body: Body,
}

impl OutcomeState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Unknown];

    /// The word in the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

// === the entries of a call ===

pub(crate) fn intent(record: &Record<'_>, verdict: &policy::Verdict, key: &DigestKey) -> Content {
    Content {
        kind: EntryKind::Intent,
        call: Some(record.call),
        time: record.time,
        changes_state: changes_state(record.class),
        body: call(
            EntryKind::Intent,
            record,
            &verdict.rules,
            Some(verdict.policy),
            None,
            key,
        ),
    }
}

pub(crate) fn refusal(record: &Record<'_>, refusal: &Refusal, rules: &[RuleId], key: &DigestKey) -> Content {
    let rules = if rules.is_empty() { record.rules } else { rules };
    Content {
        kind: EntryKind::Refusal,
        call: Some(record.call),
        time: record.time,
        // Nothing was sent, and nothing will be.
        changes_state: false,
        body: call(
            EntryKind::Refusal,
            record,
            rules,
            record.policy,
            Some(refusal),
            key,
        ),
    }
}

pub(crate) fn outcome(ticket: &Ticket, outcome: &Outcome<'_>, key: &DigestKey) -> Content {
    let body = Body::write(|m| {
        m.plain("call", ticket.call);
        m.chain();
        m.number(
            "duration_us",
            u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX),
        );
        if let Some(refusal) = outcome.refusal {
            fault(m, refusal);
        }
        m.string("kind", EntryKind::Outcome.as_str());
        if let Some(refusal) = outcome.refusal {
            m.string("refusal", refusal.code().as_str());
        }
        if outcome.result_bytes.is_some() || outcome.result.is_some() {
            m.object("result", |m| {
                if let Some(bytes) = outcome.result_bytes {
                    m.number("bytes", bytes);
                }
                if let Some(result) = outcome.result {
                    m.plain("digest", key.digest(DigestKind::Result, result));
                }
            });
        }
        m.seq();
        m.string("state", outcome.state.as_str());
        if let Some(status) = outcome.status {
            m.number("status", u64::from(status));
        }
        time(m, outcome.time);
        m.string_if("tool", ticket.tool.as_deref());
        m.number("upstream_requests", u64::from(outcome.upstream_requests));
    });
    ended(ticket, outcome.time, body)
}

/// The outcome of a call whose ticket was dropped.
pub(crate) fn abandoned(ticket: &Ticket) -> Content {
    let now = Timestamp::now();
    let body = Body::write(|m| {
        m.truth("abandoned", true);
        m.plain("call", ticket.call);
        m.chain();
        m.string("kind", EntryKind::Outcome.as_str());
        m.seq();
        m.string("state", OutcomeState::Unknown.as_str());
        time(m, now);
        m.string_if("tool", ticket.tool.as_deref());
    });
    ended(ticket, now, body)
}

fn ended(ticket: &Ticket, time: Timestamp, body: Body) -> Content {
    Content {
        kind: EntryKind::Outcome,
        call: Some(ticket.call),
        time,
        changes_state: changes_state(ticket.class),
        body,
    }
}

/// An intent or a refusal.
fn call(
    kind: EntryKind,
    record: &Record<'_>,
    rules: &[RuleId],
    policy: Option<Digest>,
    refusal: Option<&Refusal>,
    key: &DigestKey,
) -> Body {
    Body::write(|m| {
        if let Some(caller) = record.actor {
            m.object("actor", |m| actor(m, caller));
        }
        if let Some(given) = record.arguments {
            m.object("arguments", |m| {
                arguments(m, given, record.declared.unwrap_or_default(), key)
            });
        }
        m.plain("call", record.call);
        m.chain();
        m.string_if("class", record.class.map(Class::as_str));
        if let Some(consent) = &record.consent {
            m.canonical("consent", |text| {
                text.push_str(std::str::from_utf8(&canonical(consent)).unwrap_or("null"));
            });
        }
        m.string_if("credential", record.credential.as_deref().map(clip));
        if let Some(refusal) = refusal {
            fault(m, refusal);
        }
        m.string("kind", kind.as_str());
        m.string("method", clip(record.method));
        if let Some(pin) = record.pin {
            m.plain("pin", pin);
        }
        if let Some(policy) = policy {
            m.plain("policy", policy);
        }
        if let Some(refusal) = refusal {
            m.string("refusal", refusal.code().as_str());
        }
        m.strings("rules", rules.iter().map(RuleId::as_str));
        m.seq();
        if let Some(target) = record.target {
            m.object("target", |m| {
                m.plain(
                    "id",
                    key.digest(DigestKind::Target(target.kind.as_str()), target.id.as_bytes()),
                );
                m.string_if("owner", target.owner.as_ref().map(model::TenantId::as_str));
                m.string("type", target.kind.as_str());
            });
        }
        time(m, record.time);
        m.string_if("tool", record.tool.map(clip));
        m.string_if("trace", record.trace.map(clip));
        m.string("transport", record.transport);
        if refusal.is_some() {
            // Refused before anything was sent. A call that was refused later has an intent and an outcome.
            m.number("upstream_requests", 0);
        }
    })
}

// === the entries of a chain ===

/// What a process says when it begins a chain.
pub(crate) struct Start<'a> {
    pub(crate) build: &'a str,
    pub(crate) replica: &'a str,
    pub(crate) key: PublicKey,
    /// The last entries of other chains that no start has named.
    pub(crate) heads: &'a [LedgerHead],
}

pub(crate) fn start(start: &Start<'_>) -> Content {
    of_chain(EntryKind::Start, |m, now| {
        m.string("build", clip(start.build));
        m.chain();
        m.canonical("heads", |text| {
            text.push('[');
            for (index, head) in start.heads.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let _ = write!(
                    text,
                    "{comma}{{\"chain\":\"{}\",\"hash\":\"{}\",\"seq\":{}}}",
                    head.chain, head.hash, head.seq
                );
            }
            text.push(']');
        });
        m.plain("key", start.key);
        m.string("kind", EntryKind::Start.as_str());
        m.string("replica", clip(start.replica));
        m.seq();
        time(m, now);
    })
}

pub(crate) fn checkpoint(signature: &str) -> Content {
    of_chain(EntryKind::Checkpoint, |m, now| {
        m.chain();
        m.string("kind", EntryKind::Checkpoint.as_str());
        m.seq();
        m.string("signature", signature);
        time(m, now);
    })
}

pub(crate) fn stop() -> Content {
    of_chain(EntryKind::Stop, |m, now| {
        m.chain();
        m.string("kind", EntryKind::Stop.as_str());
        m.seq();
        time(m, now);
    })
}

fn of_chain(kind: EntryKind, members: impl FnOnce(&mut Members<'_>, Timestamp)) -> Content {
    let now = Timestamp::now();
    Content {
        kind,
        call: None,
        time: now,
        changes_state: true,
        body: Body::write(|m| members(m, now)),
    }
}

// === the parts ===

fn changes_state(class: Option<Class>) -> bool {
    class.is_none_or(Class::changes_state)
}

fn time(m: &mut Members<'_>, time: Timestamp) {
    m.plain("time", format_args!("{time:.6}"));
}

fn fault(m: &mut Members<'_>, refusal: &Refusal) {
    m.string(
        "fault",
        match refusal.code().fault() {
            model::Fault::Caller => "caller",
            model::Fault::Upstream => "upstream",
            model::Fault::Gateway => "gateway",
        },
    );
}

fn actor(m: &mut Members<'_>, caller: &Caller) {
    m.string_if("client", caller.client.as_ref().map(model::ClientId::as_str));
    m.string("issuer", &caller.issuer);
    if !caller.roles.is_empty() {
        m.strings("roles", caller.roles.iter().map(model::Role::as_str));
    }
    m.string("subject", caller.subject.as_str());
    m.string_if("tenant", caller.tenant.as_ref().map(model::TenantId::as_str));
}

fn arguments(m: &mut Members<'_>, arguments: &Arguments, declared: &[String], key: &DigestKey) {
    let mut undeclared = 0;
    m.plain(
        "digest",
        key.digest(DigestKind::Arguments, &arguments.canonical()),
    );
    m.canonical("shape", |text| {
        push_object(text, arguments.object(), declared, SHAPE_DEPTH, &mut undeclared)
    });
    if undeclared > 0 {
        m.number("undeclared", undeclared);
    }
}

fn clip(text: &str) -> &str {
    match text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        None => text,
        Some((at, _)) => text.get(..at).unwrap_or_default(),
    }
}

// === shapes ===

/// The same bounds as [`model::shape`] has.
const SHAPE_DEPTH: usize = 4;
const SHAPE_ITEMS: usize = 3;
const SHAPE_KEYS: usize = 64;

/// The shape of a value, as [`model::shape`] makes it, but with declared names only, and written in canonical order at once.
fn push_shape(text: &mut String, value: &Value, declared: &[String], depth: usize, undeclared: &mut u64) {
    match value {
        Value::Null => text.push_str("\"null\""),
        Value::Bool(_) => text.push_str("\"boolean\""),
        Value::Number(number) if number.is_f64() => text.push_str("\"number\""),
        Value::Number(_) => text.push_str("\"integer\""),
        Value::String(_) => text.push_str("\"string\""),
        Value::Array(_) | Value::Object(_) if depth == 0 => text.push_str("\"…\""),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().take(SHAPE_ITEMS).enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_shape(text, item, declared, depth - 1, undeclared);
            }
            text.push(']');
        }
        Value::Object(object) => push_object(text, object, declared, depth, undeclared),
    }
}

fn push_object(text: &mut String, object: &Object, declared: &[String], depth: usize, undeclared: &mut u64) {
    let mut members: Vec<(&String, &Value)> = object
        .iter()
        .filter(|(name, _)| declared.contains(name))
        .collect();
    *undeclared += u64::try_from(object.len() - members.len()).unwrap_or(u64::MAX);
    members.truncate(SHAPE_KEYS);
    members.sort_by(|(one, _), (two, _)| one.encode_utf16().cmp(two.encode_utf16()));
    text.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_string(text, name);
        text.push(':');
        push_shape(text, value, declared, depth.saturating_sub(1), undeclared);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use model::JsonLimits;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 100_000,
        depth_max: 32,
    };

    fn shape_of(value: &Value, declared: &[String]) -> (String, u64) {
        let (mut text, mut undeclared) = (String::new(), 0);
        push_shape(&mut text, value, declared, SHAPE_DEPTH, &mut undeclared);
        (text, undeclared)
    }

    fn names(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| names(item, into)),
            Value::Object(object) => object.iter().for_each(|(name, item)| {
                into.push(name.clone());
                names(item, into);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1_000_000_i64..1_000_000).prop_map(Value::from),
            Just(json!(0.5)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn with_every_name_declared_the_shape_is_that_of_the_model(value in any_json()) {
            let mut declared = Vec::new();
            names(&value, &mut declared);
            let (text, undeclared) = shape_of(&value, &declared);
            let expected = canonical(&model::shape(&value));
            prop_assert_eq!(text.as_bytes(), expected.as_slice());
            prop_assert_eq!(undeclared, 0);
        }
    }

    #[test]
    fn a_name_that_is_not_declared_is_counted_and_not_kept_at_any_depth() {
        let value = json!({"id": "a", "canary": 1, "filter": {"id": {"canary": [{"x": 1}]}, "canary2": null}, "list": [{"canary": 1, "id": 2}]});
        let declared = ["id".to_owned(), "filter".to_owned(), "list".to_owned()];
        assert_eq!(
            shape_of(&value, &declared),
            (
                r#"{"filter":{"id":{}},"id":"string","list":[{"id":"integer"}]}"#.to_owned(),
                4
            )
        );
        assert_eq!(shape_of(&value, &[]), ("{}".to_owned(), 4));
    }

    #[test]
    fn a_shape_is_bounded() {
        let many: Object = (0..1_000).map(|n| (format!("k{n}"), Value::from(1))).collect();
        let declared: Vec<String> = many.keys().cloned().collect();
        let (text, _) = shape_of(&Value::Object(many), &declared);
        assert_eq!(text.matches("integer").count(), SHAPE_KEYS);
        let (text, _) = shape_of(&json!([1, 2, 3, 4, 5]), &[]);
        assert_eq!(text.matches("integer").count(), SHAPE_ITEMS);
        let deep = Arguments::parse(
            format!("{{\"a\":{}1{}}}", "[".repeat(20), "]".repeat(20)).as_bytes(),
            LIMITS,
        )
        .unwrap();
        let (text, _) = shape_of(&Value::Object(deep.object().clone()), &["a".to_owned()]);
        assert_eq!(text, r#"{"a":[[["…"]]]}"#);
    }

    #[test]
    fn a_callers_text_is_kept_up_to_its_limit_and_cut_between_characters() {
        for (length, kept) in [(0, 0), (127, 127), (128, 128), (129, 128), (10_000, 128)] {
            assert_eq!(clip(&"ü".repeat(length)).chars().count(), kept);
        }
    }
}
