//! What words say about an operation: verbs that change state, and names of things that are left out by default. Tables
//! only; where the words stand is judged in `inference`.

use model::Exclusion;

use super::word::Word;

/// Verbs that take something away for good.
pub(crate) const DESTROYS: &[&str] = &[
    "delete",
    "remove",
    "destroy",
    "purge",
    "drop",
    "terminate",
    "revoke",
    "wipe",
    "erase",
    "truncate",
    "kill",
    "uninstall",
    "deregister",
    "unregister",
    "expunge",
    "shred",
    "deprovision",
    "deletecollection",
];

/// Verbs that change state, and are hardly ever nouns.
pub(crate) const CHANGES: &[&str] = &[
    "create",
    "update",
    "add",
    "modify",
    "edit",
    "insert",
    "upsert",
    "replace",
    "rename",
    "enable",
    "disable",
    "activate",
    "deactivate",
    "reactivate",
    "start",
    "stop",
    "restart",
    "reboot",
    "cancel",
    "approve",
    "reject",
    "assign",
    "unassign",
    "attach",
    "detach",
    "associate",
    "disassociate",
    "register",
    "submit",
    "send",
    "resend",
    "upload",
    "publish",
    "unpublish",
    "invite",
    "grant",
    "merge",
    "reset",
    "rotate",
    "regenerate",
    "allocate",
    "provision",
    "launch",
    "execute",
    "exec",
    "invoke",
    "trigger",
    "pay",
    "refund",
    "capture",
    "authorize",
    "accept",
    "decline",
    "void",
    "reopen",
    "resume",
    "suspend",
    "unlock",
    "subscribe",
    "unsubscribe",
    "unmark",
    "restore",
    "apply",
    "deploy",
    "configure",
    "increase",
    "decrease",
    "ban",
    "unban",
    "unblock",
    "mute",
    "unmute",
    "impersonate",
    "save",
    "reorder",
    "unschedule",
    "unarchive",
    "rollback",
    "reprocess",
    "requeue",
    "enqueue",
    "acknowledge",
    "unlink",
    "unfollow",
    "failover",
    "promote",
    "demote",
    "withdraw",
    "deposit",
    "unsuspend",
    "overwrite",
    "patch",
    "write",
];

/// Verbs that change state where a name begins with them, and nouns elsewhere.
pub(crate) const CHANGES_IN_FRONT: &[&str] = &[
    "set",
    "put",
    "post",
    "import",
    "archive",
    "transfer",
    "store",
    "release",
    "block",
    "lock",
    "schedule",
    "build",
    "run",
    "process",
    "copy",
    "move",
    "share",
    "order",
    "clear",
    "mark",
    "close",
    "request",
    "charge",
    "sync",
    "make",
    "change",
    "join",
    "leave",
    "follow",
    "star",
    "pin",
    "unpin",
    "link",
    "comment",
    "reply",
    "book",
    "purchase",
    "buy",
    "sell",
    "issue",
    "confirm",
    "complete",
    "finish",
    "begin",
    "open",
    "swap",
    "pause",
    "load",
    "flush",
    "rebuild",
    "reserve",
    "scale",
    "resize",
    "migrate",
    "convert",
    "connect",
    "disconnect",
    "redeem",
    "advertise",
    "bundle",
    "monitor",
    "unmonitor",
    "react",
    "vote",
];

/// Verbs of reading: what stands behind one in a name is not what the operation does.
pub(crate) const READS: &[&str] = &[
    "get", "list", "read", "find", "search", "fetch", "describe", "show", "count", "query", "retrieve",
    "lookup", "view", "check", "head", "browse", "filter", "select", "preview", "index", "is", "has", "poll",
    "watch", "download", "export",
];

/// Sequences of words, without the endings of plurals, that name what is left out by default.
const NAMES: &[(Exclusion, &[&[&str]])] = &[
    (
        Exclusion::Keys,
        &[
            &["secret"],
            &["credential"],
            &["password"],
            &["passwd"],
            &["token"],
            &["apikey"],
            &["api", "key"],
            &["access", "key"],
            &["ssh", "key"],
            &["gpg", "key"],
            &["deploy", "key"],
            &["signing", "key"],
            &["private", "key"],
            &["encryption", "key"],
            &["public", "key"],
            &["key", "pair"],
            &["keypair"],
            &["kms"],
            &["vault"],
            &["otp"],
            &["totp"],
            &["mfa"],
            &["passkey"],
            &["certificate"],
        ],
    ),
    (
        Exclusion::Exports,
        &[
            &["export"],
            &["dump"],
            &["bulk"],
            &["backup"],
            &["audit", "log"],
            &["audit", "event"],
        ],
    ),
    (
        Exclusion::Billing,
        &[
            &["billing"],
            &["invoice"],
            &["payment"],
            &["payout"],
            &["refund"],
            &["charge"],
            &["bank"],
            &["iban"],
            &["credit", "card"],
            &["debit", "card"],
            &["checkout"],
            &["wallet"],
            &["payroll"],
            &["salary"],
            &["money"],
            &["purchase"],
            &["mandate"],
            &["balance"],
        ],
    ),
    (
        Exclusion::Administration,
        &[
            &["admin"],
            &["administrator"],
            &["administration"],
            &["permission"],
            &["role"],
            &["membership"],
            &["invitation"],
            &["invite"],
            &["sso"],
            &["saml"],
            &["scim"],
            &["iam"],
            &["acl"],
            &["privilege"],
            &["superuser"],
        ],
    ),
    (
        Exclusion::Impersonation,
        &[
            &["impersonate"],
            &["impersonation"],
            &["impersonated"],
            &["masquerade"],
            &["sudo"],
            &["login", "as"],
            &["act", "as"],
            &["sign", "in", "as"],
            &["assume", "role"],
            &["on", "behalf", "of"],
        ],
    ),
    (Exclusion::Webhooks, &[&["webhook"], &["hook"], &["callback"]]),
    (
        Exclusion::Execution,
        &[
            &["exec"],
            &["execute"],
            &["eval"],
            &["shell"],
            &["command"],
            &["proxy"],
            &["portforward"],
            &["port", "forward"],
            &["script"],
            &["invoke"],
            &["terminal"],
            &["rpc"],
        ],
    ),
    (Exclusion::Files, &[&["upload"], &["download"], &["attachment"]]),
    (
        Exclusion::Queries,
        &[
            &["graphql"],
            &["sql"],
            &["soql"],
            &["cypher"],
            &["promql"],
            &["raw", "query"],
            &["run", "query"],
            &["execute", "query"],
        ],
    ),
];

/// Words for people; an operation that ends in one of them lists them.
const PEOPLE: &[&str] = &[
    "member",
    "user",
    "people",
    "person",
    "employee",
    "contact",
    "customer",
    "collaborator",
    "subscriber",
    "participant",
    "attendee",
    "patient",
    "staff",
    "guest",
    "follower",
    "assignee",
    "stargazer",
    "student",
    "candidate",
    "lead",
];

/// Fields of an answer that make a reading sensitive.
const SENSITIVE: &[&[&str]] = &[
    &["password"],
    &["passwd"],
    &["passphrase"],
    &["secret"],
    &["token"],
    &["apikey"],
    &["api", "key"],
    &["private", "key"],
    &["access", "key"],
    &["credential"],
    &["ssn"],
    &["social", "security"],
    &["iban"],
    &["account", "number"],
    &["card", "number"],
    &["routing", "number"],
    &["cvv"],
    &["cvc"],
    &["passport"],
    &["national", "id"],
    &["tax", "id"],
    &["date", "of", "birth"],
    &["birth", "date"],
    &["birthdate"],
    &["dob"],
    &["salary"],
    &["diagnosis"],
    &["email"],
    &["phone"],
    &["phone", "number"],
    &["mobile"],
];

/// Words before `token` that make it a place in a list and no secret.
const PLACES: &[&str] = &[
    "page",
    "next",
    "previous",
    "prev",
    "continuation",
    "continue",
    "sync",
    "cursor",
    "pagination",
    "delta",
    "skip",
    "resume",
    "scroll",
    "marker",
];

/// Arguments that name an address.
const ADDRESSES: &[&[&str]] = &[&["url"], &["uri"], &["webhook"], &["callback"]];

/// Arguments that hold a query in a language of its own.
const LANGUAGES: &[&[&str]] = &[
    &["sql"],
    &["soql"],
    &["jql"],
    &["cql"],
    &["kql"],
    &["aql"],
    &["nrql"],
    &["promql"],
    &["graphql"],
    &["cypher"],
];

/// Phrases of a text that say that there is no way back.
pub(crate) const FOR_GOOD: &[&str] = &[
    "cannot be undone",
    "can't be undone",
    "can not be undone",
    "irreversibl",
    "permanently delet",
    "permanently remov",
];

/// Whether the words hold a sequence that names what is left out by default, and where: as index and length.
pub(crate) fn named<'w>(words: &'w [Word<'w>]) -> impl Iterator<Item = (Exclusion, usize, usize)> + 'w {
    (0..words.len()).flat_map(move |at| {
        NAMES.iter().flat_map(move |(exclusion, sequences)| {
            sequences
                .iter()
                .filter(move |sequence| begins(words, at, sequence))
                .map(move |sequence| (*exclusion, at, sequence.len()))
        })
    })
}

/// Whether a word is one for people.
pub(crate) fn is_people(word: &Word<'_>) -> bool {
    PEOPLE.contains(&word.singular.as_str())
}

/// Whether the name of a field says that what it holds is sensitive.
pub(crate) fn is_sensitive(words: &[Word<'_>]) -> bool {
    (0..words.len()).any(|at| {
        SENSITIVE
            .iter()
            .any(|sequence| begins_as_written(words, at, sequence))
            && !(words.get(at).is_some_and(|word| word.lower == "token") && is_place(words, at))
    })
}

fn is_place(words: &[Word<'_>], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|before| words.get(before))
        .is_some_and(|before| PLACES.contains(&before.lower.as_str()))
}

/// Whether a `token` in a name is a place in a list and no secret.
pub(crate) fn is_place_token(words: &[Word<'_>], at: usize) -> bool {
    words.get(at).is_some_and(|word| word.singular == "token") && is_place(words, at)
}

/// Whether the name of an argument ends in a word for an address.
pub(crate) fn is_address(words: &[Word<'_>]) -> bool {
    ends(words, ADDRESSES)
}

/// Whether the name of an argument is that of a language for queries.
pub(crate) fn is_language(words: &[Word<'_>]) -> bool {
    ends(words, LANGUAGES)
}

fn ends(words: &[Word<'_>], sequences: &[&[&str]]) -> bool {
    sequences.iter().any(|sequence| {
        words
            .len()
            .checked_sub(sequence.len())
            .is_some_and(|at| begins(words, at, sequence))
    })
}

fn begins(words: &[Word<'_>], at: usize, sequence: &[&str]) -> bool {
    words.get(at..at + sequence.len()).is_some_and(|words| {
        words
            .iter()
            .zip(sequence)
            .all(|(word, wanted)| word.singular == *wanted || word.lower == *wanted)
    })
}

/// The same for fields, where `tokens` are most often counted and no secret.
fn begins_as_written(words: &[Word<'_>], at: usize, sequence: &[&str]) -> bool {
    match sequence {
        ["token"] => words.get(at).is_some_and(|word| word.lower == "token"),
        _ => begins(words, at, sequence),
    }
}
