//! One function per fuzz target: it takes any bytes, and panics where something is not as it must be.
//!
//! They are called by the fuzzer, and by `cargo test` with every file of the corpora. What must hold is said here by
//! other means than the rooms use themselves: a second parser, a second order, a second way round.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use audit::VerifyOptions;
use config::PaperWorld;
use identity::{Algorithm, ClaimMap, Issuer, KeySet, KeySets, Tokens};
use jiff::Timestamp;
use model::{Class, Exclusion, IssuerName, JsonLimits, Limits, Value};
use openapi::{Absent, Document, DocumentLimits, Reading, Sources};
use wire::header::{Field, Fields};
use wire::http::{Post, Reject, Sorted};
use wire::sse::{Event, Reader, SseFault};
use wire::stdio::Line;
use wire::{Inbound, Revision};

/// A target takes any bytes, and panics where something is not as it must be.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus.
pub const TARGETS: [(&str, Target); 9] = [
    ("jsonrpc", jsonrpc),
    ("sse", sse),
    ("json", json),
    ("config", config),
    ("openapi", openapi),
    ("review", review),
    ("policy", policy),
    ("ledger", ledger),
    ("token", token),
];

/// Header lines, an empty line, a body: sorted as a POST and as a line, in every revision.
///
/// What comes out as a request was one beyond doubt: I-JSON, with a method and an id (BASE-04).
pub fn jsonrpc(data: &[u8]) {
    let limits = Limits {
        body_bytes_max: 1 << 16,
        ..Limits::default()
    };
    let (headers, body) = match data.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (&data[..0], data),
    };
    if body.len() > limits.body_bytes_max {
        return;
    }
    let headers = Headers::read(headers);
    let sort = || wire::http::sort(&headers, body, &limits);
    match sort() {
        Ok(Sorted::Stateless { revision, inbound }) => {
            assert!(!revision.has_sessions(), "{revision:?} stands alone");
            judge(&inbound, body, &limits);
        }
        Ok(Sorted::Opening { .. }) => assert!(is_request(body, &limits), "an opening without an id"),
        Ok(Sorted::InSession(_)) => {}
        Err(reject) => judge_reject(&reject),
    }
    for revision in Revision::ALL {
        // A session is of a revision with sessions; a line can be of any.
        if revision.has_sessions()
            && let Ok(Sorted::InSession(pending)) = sort()
        {
            match pending.bind(revision, &limits) {
                Ok(Post::One(inbound)) => judge(&inbound, body, &limits),
                Ok(Post::Batch(batch)) => judge_batch(&batch, body, revision, &limits),
                Err(reject) => judge_reject(&reject),
            }
        }
        if !body.contains(&b'\n') {
            for session in [None, Some(revision)] {
                match wire::stdio::sort(body, session, &limits) {
                    Line::One { inbound, .. } => judge(&inbound, body, &limits),
                    Line::Batch { messages, revision } => judge_batch(&messages, body, revision, &limits),
                    Line::Opening { .. } => assert!(is_request(body, &limits), "an opening without an id"),
                }
            }
        }
    }
}

/// An error of the protocol, in an answer like any other, or one of HTTP; never a fault of ours.
fn judge_reject(reject: &Reject) {
    assert!(
        reject.status == 200 || (400..500).contains(&reject.status),
        "{reject:?}"
    );
}

fn judge(inbound: &Inbound, body: &[u8], limits: &Limits) {
    if let Inbound::Request(request) = inbound {
        assert!(
            is_request(body, limits),
            "{request:?} of {:?}",
            String::from_utf8_lossy(body)
        );
    }
}

fn judge_batch(batch: &[Inbound], body: &[u8], revision: Revision, limits: &Limits) {
    assert!(revision.has_batches() && !batch.is_empty());
    let requests = batch
        .iter()
        .filter(|inbound| matches!(inbound, Inbound::Request(_)))
        .count();
    if requests > 0 {
        let texts: Vec<&serde_json::value::RawValue> =
            serde_json::from_slice(body).expect("a batch is an array");
        let read = texts
            .iter()
            .filter(|text| is_request(text.get().as_bytes(), limits))
            .count();
        assert!(requests <= read, "{batch:?}");
    }
}

/// Whether bytes are a request beyond doubt: every reader finds the same method and the same id.
fn is_request(body: &[u8], limits: &Limits) -> bool {
    let json = JsonLimits {
        bytes_max: limits.body_bytes_max,
        depth_max: limits.json_depth_max,
    };
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let id = message
        .get("id")
        .is_some_and(|id| id.is_string() || id.is_number());
    let method = message.get("method").is_some_and(Value::is_string);
    model::check(body, json).is_ok() && id && method && message["jsonrpc"] == "2.0"
}

/// Header fields as they stand on lines, `name: value`.
struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    fn read(text: &[u8]) -> Self {
        let field = |line: &[u8]| {
            let at = line.iter().position(|byte| *byte == b':')?;
            let name = String::from_utf8_lossy(&line[..at]).to_ascii_lowercase();
            Some((name, line[at + 1..].trim_ascii().to_vec()))
        };
        Self(text.split(|byte| *byte == b'\n').filter_map(field).collect())
    }
}

impl Fields for Headers {
    fn field(&self, name: &str) -> Field<'_> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        match (found.next(), found.next()) {
            (None, _) => Field::Absent,
            (Some((_, value)), None) => Field::One(value),
            (Some(_), Some(_)) => Field::Many,
        }
    }
}

/// A stream of events: chunks that end anywhere make no difference, and what is written is read back.
pub fn sse(data: &[u8]) {
    for limit in [48, 1 << 16] {
        let whole = read_events(data, data.len().max(1), limit);
        for size in [1, 2, 3, 7, 64] {
            let chunked = read_events(data, size, limit);
            match (&whole, &chunked) {
                (Ok(whole), Ok(chunked)) => assert_eq!(whole, chunked, "in chunks of {size}"),
                (Err(whole), Err(chunked)) => assert_eq!(whole, chunked, "in chunks of {size}"),
                (whole, chunked) => panic!("in chunks of {size}: {whole:?}, {chunked:?}"),
            }
        }
        for event in whole.into_iter().flatten() {
            let bytes = event.name.len() + event.data.len() + event.id.map_or(0, |id| id.len());
            assert!(bytes <= limit, "an event past the limit");
        }
    }
    let id = "1-2";
    if let Ok(text) = std::str::from_utf8(data)
        && !text.contains('\r')
    {
        let written = wire::sse::event(Some(id), data);
        let read = read_events(&written, 5, usize::MAX).expect("what is written can be read");
        let texts: Vec<(&[u8], Option<&str>)> = read
            .iter()
            .map(|event| (&*event.data, event.id.as_deref()))
            .collect();
        assert_eq!(texts, [(text.as_bytes(), Some(id))]);
    }
}

fn read_events(data: &[u8], size: usize, limit: usize) -> Result<Vec<Event>, SseFault> {
    let mut reader = Reader::new(limit);
    let mut events = Vec::new();
    for chunk in data.chunks(size) {
        reader.feed(chunk.to_vec().into());
        while let Some(event) = reader.read()? {
            assert!(std::str::from_utf8(&event.data).is_ok(), "data that is no text");
            events.push(event);
        }
    }
    Ok(events)
}

/// JSON: the strict readers agree with each other and with the usual one, and canonical bytes are stable.
pub fn json(data: &[u8]) {
    let limits = JsonLimits {
        bytes_max: 1 << 16,
        depth_max: 32,
    };
    let parsed = model::parse(data, limits);
    let checked = model::check(data, limits);
    assert_eq!(
        parsed.as_ref().err(),
        checked.as_ref().err(),
        "parse and check disagree"
    );
    let Ok(value) = parsed else { return };
    // The usual reader takes an object whose first key is one of its own for something else; ours must not.
    if !String::from_utf8_lossy(&model::canonical(&value)).contains("$serde_json") {
        let usual: Value = serde_json::from_slice(data).expect("what is strict is JSON");
        assert_eq!(usual, value);
    }
    assert_eq!(model::parse_foreign(data, limits).as_ref(), Ok(&value));
    let canonical = model::canonical(&value);
    let again = model::parse(&canonical, limits).expect("canonical bytes are strict");
    assert_eq!(
        model::canonical(&again),
        canonical,
        "canonical bytes are not stable"
    );
    let _ = model::shape(&value);
}

/// A secret in the environment of a configuration. It must not come out in any fault.
const CANARY: &str = "canary-7d1f0c";

/// A configuration: every text gives settings or faults, each with a place in the text, none with a secret.
pub fn config(data: &[u8]) {
    let world = PaperWorld {
        now: Timestamp::from_second(1_800_000_000).expect("a time"),
        ..PaperWorld::default()
    }
    .with_file("tollhouse.toml", data)
    .with_file("openapi.yaml", "openapi: 3.1.0")
    .with_file("policy/rules.cedar", "")
    .with_file("owners.toml", "a = \"north\"")
    .with_file("secret", CANARY)
    .with_variable("SECRET", CANARY)
    .with_variable("DIRECTORY_URL", "sqlite:directory.db");
    let lines = data.split(|byte| *byte == b'\n').count();
    let faults = match config::load(Path::new("tollhouse.toml"), &world) {
        Ok(loaded) => {
            let again = config::load(Path::new("tollhouse.toml"), &world).expect("the same text loads again");
            assert_eq!(again.settings.digest, loaded.settings.digest);
            loaded.warnings
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "no settings and no fault");
            faults
        }
    };
    for fault in &faults {
        let text = fault.to_string();
        assert!(!text.contains(CANARY), "{text}");
        assert!(!text.contains('\n') && !text.contains('\u{1b}'), "{text:?}");
        if fault.file == "tollhouse.toml"
            && let Some(line) = fault.line
        {
            assert!((1..=lines).contains(&line), "{text}");
        }
    }
}

/// An OpenAPI document: every operation becomes a tool or blockers, every request keeps its form, twice the same.
pub fn openapi(data: &[u8]) {
    let limits = DocumentLimits {
        bytes_max: 1 << 18,
        depth_max: 48,
        nodes_max: 50_000,
        files_max: 16,
    };
    let met = openapi::exercise(data, &limits);
    if let Some(met) = &met {
        assert!(met.violations.is_empty(), "{:#?}", met.violations);
    }
    assert_eq!(openapi::exercise(data, &limits), met);
}

/// A document, an overlay and another file, with lines of `%%%` in between: what is read is looked at for danger.
///
/// What changes something by its method is never shown as less; what changes something is a mutation and nothing else is;
/// a document that nobody can read without its overlay is not made readable twice in different ways.
pub fn review(data: &[u8]) {
    let mut parts =
        data.split(|byte| *byte == b'\n')
            .fold(vec![Vec::new()], |mut parts: Vec<Vec<u8>>, line| {
                if line == b"%%%" && parts.len() < 3 {
                    parts.push(Vec::new());
                } else if let Some(part) = parts.last_mut() {
                    part.extend_from_slice(line);
                    part.push(b'\n');
                }
                parts
            });
    parts.resize(3, Vec::new());
    let files = OneFile(&parts[2]);
    let overlays: &[&[u8]] = if parts[1].is_empty() { &[] } else { &[&parts[1]] };
    let reading = Reading {
        limits: DocumentLimits {
            bytes_max: 1 << 18,
            depth_max: 48,
            nodes_max: 50_000,
            files_max: 16,
        },
        path: "api.yaml",
        sources: &files,
        overlays,
    };
    let Ok(document) = Document::read_with(&parts[0], &reading) else {
        return;
    };
    for operation in document.operations() {
        let inference = document.inference(&operation);
        let class = inference.class();
        let changes = class.is_some_and(Class::changes_state);
        assert!(
            changes || operation.key().method().is_safe(),
            "{operation:?} {inference:?}"
        );
        assert_eq!(
            inference.exclusions().contains(&Exclusion::Mutations),
            changes,
            "{inference:?}"
        );
        assert!(inference.class_without_answer() <= class, "{inference:?}");
        for evidence in &inference.evidence {
            assert!(!evidence.pointer.is_empty(), "{evidence:?}");
        }
        assert_eq!(document.inference(&operation), inference);
    }
    let again = Document::read_with(&parts[0], &reading).expect("what was read once is read again");
    assert_eq!(again.digest(), document.digest());
    assert_eq!(again.overlaid(), document.overlaid());
}

/// One file beside a document, under every name.
struct OneFile<'f>(&'f [u8]);

impl Sources for OneFile<'_> {
    fn file(&self, path: &str) -> Result<Vec<u8>, Absent> {
        assert!(
            path.split('/').all(|step| !matches!(step, "" | "." | "..")) && !path.contains('\\'),
            "a path that leads out: {path:?}"
        );
        if self.0.is_empty() {
            return Err(Absent {
                text: "there is no such file".to_owned(),
                clears: "add it".to_owned(),
            });
        }
        Ok(self.0.to_vec())
    }
}

/// A policy: it loads or has faults, and a tool that may be called is never hidden.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // Debug builds of Cedar's evaluator need far more stack than a thread of a test has.
    let bytes = if cfg!(debug_assertions) { 64 << 20 } else { 2 << 20 };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes);
        let thread = thread
            .spawn_scoped(scope, || policy::read_anything(text))
            .expect("a thread");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// An export of a ledger: there is a report, and no key that nobody has ever signed it.
pub fn ledger(data: &[u8]) {
    // The public key of RFC 8037, appendix A. Its private key is public too, and has signed no ledger.
    let foreign: audit::PublicKey = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        .parse()
        .expect("a key");
    for partial in [false, true] {
        let verify = |pinned_key| audit::verify(Cursor::new(data), VerifyOptions { pinned_key, partial });
        let Ok(report) = verify(None) else { continue };
        assert_eq!(report.sound(), report.faults_total == 0, "{report:?}");
        assert!(report.faults_total >= u64::try_from(report.faults.len()).unwrap_or(u64::MAX));
        assert!(report.unknown_total >= u64::try_from(report.unknown.len()).unwrap_or(u64::MAX));
        let pinned = verify(Some(foreign)).expect("there was a report before");
        if !report.sound() {
            assert!(!pinned.sound(), "another demand cannot make an export sound");
        }
        assert!(
            !pinned.sound() || report.keys.is_empty(),
            "signed with a key that never signed"
        );
    }
}

const ISSUER: &str = "https://idp.example.com";
const AUDIENCE: &str = "https://mcp.example.com/mcp";

/// Public keys of the examples in RFC 7515 (appendices A.2, A.3) and RFC 8037 (appendix A).
const KEY_SET: &str = r#"{"keys":[
{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
{"kty":"EC","crv":"P-256","kid":"ec","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},
{"kty":"RSA","kid":"rsa","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvK-DK5mzN8AlRZ0JwWnzrHYQk2LK7cLaS3ZOiwp6bQBJFVzFpRwbyFQyUCCLzGiNHw"}
]}"#;

/// A token, or a key set: whatever stands there, nobody is authenticated who has no signature of the issuer.
pub fn token(data: &[u8]) {
    static JUDGE: LazyLock<(Tokens, OneSet)> = LazyLock::new(judge_of_tokens);
    let limits = Limits::default();
    if let Ok(set) = KeySet::parse(data, &limits) {
        let _ = set.key_ids().count() + set.skipped().len();
    }
    let _ = KeySet::parse_file(data, &limits);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = identity::looks_like_key(text);
    let (tokens, sets) = &*JUDGE;
    for now in [0, 1_800_000_000] {
        let now = Timestamp::from_second(now).expect("a time");
        for text in [text, text.trim_end()] {
            let Err(fault) = tokens.verify(text, sets, now) else {
                panic!("a token that nobody signed holds: {text}");
            };
            assert!(!fault.to_string().contains('\n'), "{fault}");
        }
    }
}

struct OneSet(HashMap<IssuerName, Arc<KeySet>>);

impl KeySets for OneSet {
    fn key_set(&self, issuer: &IssuerName) -> Option<Arc<KeySet>> {
        self.0.get(issuer).map(Arc::clone)
    }
}

fn judge_of_tokens() -> (Tokens, OneSet) {
    let limits = Limits::default();
    let name = IssuerName::parse("corp").expect("a name");
    let set = KeySet::parse(KEY_SET.as_bytes(), &limits).expect("a key set");
    assert_eq!(set.key_ids().count(), 3, "{:?}", set.skipped());
    let issuer = Issuer {
        name: name.clone(),
        issuer: ISSUER.to_owned(),
        audience: vec![AUDIENCE.to_owned()],
        algorithms: vec![
            Algorithm::Rs256,
            Algorithm::Ps256,
            Algorithm::Es256,
            Algorithm::EdDsa,
        ],
        claims: ClaimMap {
            subject: "sub".to_owned(),
            tenant: Some("org_id".to_owned()),
            roles: Some("roles".to_owned()),
            client: Some("azp".to_owned()),
            extra: vec!["accounts".to_owned()],
        },
        leeway: Duration::from_secs(30),
        scopes_required: Vec::new(),
    };
    (
        Tokens::new(vec![issuer], &limits),
        OneSet([(name, Arc::new(set))].into()),
    )
}
