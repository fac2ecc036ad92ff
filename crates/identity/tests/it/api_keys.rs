//! API keys: made, presented, altered, revoked, expired.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use identity::{
    ConfiguredCaller, ISSUER_OF_KEYS, KeyDirectory, KeyEntry, KeyFault, KeyRecord, Lookup, NewKey,
    Unauthenticated, generate_key, looks_like_key, verify_key,
};
use jiff::Timestamp;
use model::{Caller, CallerName, KeyId, Object, Subject};
use secrecy::ExposeSecret as _;

use crate::signing::at;

pub(crate) struct Directory(HashMap<String, Lookup>);

impl KeyDirectory for Directory {
    fn find(&self, id: &KeyId) -> Lookup {
        self.0.get(id.as_str()).cloned().unwrap_or(Lookup::Absent)
    }
}

fn name(text: &str) -> CallerName {
    CallerName::parse(text).unwrap()
}

fn person(text: &str) -> Arc<ConfiguredCaller> {
    Arc::new(ConfiguredCaller {
        name: name(text),
        caller: Arc::new(Caller {
            issuer: ISSUER_OF_KEYS.to_owned(),
            subject: Subject::parse(text).unwrap(),
            tenant: None,
            roles: BTreeSet::new(),
            client: None,
        }),
        claims: Arc::new(Object::new()),
    })
}

fn made(expires: Option<Timestamp>) -> (String, KeyRecord) {
    let NewKey { shown, record } = generate_key(name("ci"), at(0), expires).unwrap();
    (shown.expose_secret().to_owned(), record)
}

pub(crate) fn directory(records: &[&KeyRecord]) -> Directory {
    Directory(
        records
            .iter()
            .map(|record| {
                let entry = KeyEntry {
                    record: (*record).clone(),
                    caller: person(record.caller.as_str()),
                };
                (record.id.to_string(), Lookup::Found(Arc::new(entry)))
            })
            .collect(),
    )
}

#[test]
fn a_key_that_was_made_is_good_and_is_stored_as_a_digest_only() {
    let (shown, record) = made(Some(at(60)));
    let rest = shown.strip_prefix("th_").unwrap();
    let (id, secret) = rest.split_once('_').unwrap();
    assert_eq!(id, record.id.as_str());
    assert_eq!(secret.len(), 43);
    let stored = serde_json::to_string(&record).unwrap();
    assert!(!stored.contains(secret), "{stored}");
    assert_eq!(serde_json::from_str::<KeyRecord>(&stored).unwrap(), record);

    let principal = verify_key(&shown, &directory(&[&record]), at(0)).unwrap();
    assert_eq!(principal.caller().subject.as_str(), "ci");
    assert_eq!(principal.credential().to_string(), format!("key:{id}"));
    assert_eq!(principal.expires(), Some(at(60)));
    assert_eq!(principal.key(), principal.caller().key());
}

#[test]
fn keys_are_never_alike_and_never_printed() {
    let (one, two) = (made(None), made(None));
    assert_ne!(one.0, two.0);
    assert_ne!(one.1.id, two.1.id);
    assert_ne!(one.1.hash, two.1.hash);
    let new = generate_key(name("ci"), at(0), None).unwrap();
    let secret = new
        .shown
        .expose_secret()
        .splitn(3, '_')
        .nth(2)
        .unwrap()
        .to_owned();
    assert!(!format!("{new:?}").contains(&secret));
}

#[test]
fn the_digest_can_be_recomputed_from_its_description() {
    // The 32 secret bytes behind the tag and a zero byte: what another program needs to make a record.
    let (shown, record) = made(None);
    let secret = shown.splitn(3, '_').nth(2).unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, secret).unwrap();
    assert_eq!(record.hash, model::Digest::of("tollhouse/api-key/v1", &[&bytes]));
}

#[test]
fn a_key_with_any_one_character_altered_is_refused() {
    let (shown, record) = made(None);
    let directory = directory(&[&record]);
    assert!(verify_key(&shown, &directory, at(0)).is_ok());
    for position in 0..shown.len() {
        for replacement in ['A', 'b', '0', '-', '_', '=', ' '] {
            let mut altered: Vec<char> = shown.chars().collect();
            if altered[position] == replacement {
                continue;
            }
            altered[position] = replacement;
            let altered: String = altered.into_iter().collect();
            let verdict = verify_key(&altered, &directory, at(0));
            assert!(verdict.is_err(), "{position} {replacement:?}");
        }
    }
}

#[test]
fn the_last_character_has_one_spelling() {
    // 43 characters carry two bits more than 32 bytes; a lax reader would take four spellings for one key.
    let (shown, record) = made(None);
    let directory = directory(&[&record]);
    let accepted = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['-', '_'])
        .filter(|last| {
            let mut text = shown.clone();
            text.pop();
            text.push(*last);
            verify_key(&text, &directory, at(0)).is_ok()
        })
        .count();
    assert_eq!(accepted, 1);
}

#[test]
fn texts_that_share_a_beginning_with_a_key_are_refused() {
    let (shown, record) = made(None);
    let directory = directory(&[&record]);
    let (head, secret) = shown.split_at(shown.len() - 43);
    for text in [
        String::new(),
        "th_".to_owned(),
        "th__".to_owned(),
        head.to_owned(),
        shown[..shown.len() - 1].to_owned(),
        format!("{shown}A"),
        format!("{shown}="),
        format!(" {shown}"),
        format!("{shown} "),
        shown.replacen("th_", "TH_", 1),
        shown.replacen("th_", "th-", 1),
        shown.replacen("th_", "", 1),
        format!("th_{}_{secret}", "x".repeat(33)),
        format!("th_{}é_{secret}", record.id),
        format!("th_{}", secret),
    ] {
        assert!(
            matches!(
                verify_key(&text, &directory, at(0)),
                Err(Unauthenticated::Malformed { .. } | Unauthenticated::TooLong { .. })
            ),
            "{text:?}"
        );
    }
    assert!(matches!(
        verify_key(&"th_".repeat(1_000), &directory, at(0)),
        Err(Unauthenticated::TooLong { .. })
    ));
}

#[test]
fn an_id_that_begins_like_another_is_another() {
    let (shown, record) = made(None);
    let secret = &shown[shown.len() - 43..];
    let longer = KeyRecord {
        id: KeyId::parse(&format!("{}0", record.id)).unwrap(),
        hash: made(None).1.hash,
        ..record.clone()
    };
    let both = directory(&[&record, &longer]);
    assert!(verify_key(&shown, &both, at(0)).is_ok());
    assert!(matches!(
        verify_key(&format!("th_{}_{secret}", longer.id), &both, at(0)),
        Err(Unauthenticated::KeyMismatch { key }) if key == longer.id
    ));
    let shorter = &record.id.as_str()[..15];
    assert!(matches!(
        verify_key(&format!("th_{shorter}_{secret}"), &both, at(0)),
        Err(Unauthenticated::KeyUnknown { .. })
    ));
}

#[test]
fn one_keys_secret_does_not_open_another() {
    let (one, first) = made(None);
    let (two, second) = made(None);
    let both = directory(&[&first, &second]);
    let crossed = format!("th_{}_{}", first.id, &two[two.len() - 43..]);
    assert!(verify_key(&one, &both, at(0)).is_ok());
    assert_eq!(
        verify_key(&crossed, &both, at(0)).unwrap_err(),
        Unauthenticated::KeyMismatch { key: first.id }
    );
}

#[test]
fn a_directory_that_answers_with_another_keys_record_lends_nothing() {
    let (shown, record) = made(None);
    let entry = KeyEntry {
        record: KeyRecord {
            id: KeyId::parse("other").unwrap(),
            ..record.clone()
        },
        caller: person("ci"),
    };
    let directory = Directory(HashMap::from([(
        record.id.to_string(),
        Lookup::Found(Arc::new(entry)),
    )]));
    assert!(matches!(
        verify_key(&shown, &directory, at(0)),
        Err(Unauthenticated::KeyMismatch { .. })
    ));
}

#[test]
fn revoked_expired_unknown_orphaned_and_stale_are_each_refused_as_such() {
    let (shown, record) = made(Some(at(60)));
    let id = record.id.clone();
    let check = |directory: &Directory, offset: i64| verify_key(&shown, directory, at(offset));

    let good = directory(&[&record]);
    assert!(check(&good, 59).is_ok());
    assert_eq!(
        check(&good, 60).unwrap_err(),
        Unauthenticated::KeyExpired {
            key: id.clone(),
            at: at(60)
        }
    );
    // A revocation holds whatever its time says, so that a wrong clock cannot lift it.
    for revoked in [-1, 0, 1_000] {
        let record = KeyRecord {
            revoked: Some(at(revoked)),
            ..record.clone()
        };
        assert_eq!(
            check(&directory(&[&record]), 0).unwrap_err(),
            Unauthenticated::KeyRevoked {
                key: id.clone(),
                at: at(revoked)
            }
        );
    }
    assert_eq!(
        check(&directory(&[]), 0).unwrap_err(),
        Unauthenticated::KeyUnknown { key: id.clone() }
    );
    let stale = Directory(HashMap::from([(id.to_string(), Lookup::Stale)]));
    assert_eq!(check(&stale, 0).unwrap_err(), Unauthenticated::DirectoryStale);
    let orphaned = Directory(HashMap::from([(id.to_string(), Lookup::Orphaned(name("ci")))]));
    assert!(matches!(
        check(&orphaned, 0),
        Err(Unauthenticated::CallerUnknown { .. })
    ));
    let mistaken = Directory(HashMap::from([(
        id.to_string(),
        Lookup::Found(Arc::new(KeyEntry {
            record: record.clone(),
            caller: person("somebody-else"),
        })),
    )]));
    assert!(matches!(
        check(&mistaken, 0),
        Err(Unauthenticated::CallerUnknown { .. })
    ));
}

#[test]
fn whoever_lacks_the_secret_does_not_learn_that_a_key_was_revoked() {
    let (_, record) = made(None);
    let revoked = KeyRecord {
        revoked: Some(at(0)),
        expires: Some(at(-1)),
        ..record
    };
    let guessed = format!("th_{}_{}", revoked.id, "A".repeat(43));
    assert!(matches!(
        verify_key(&guessed, &directory(&[&revoked]), at(0)),
        Err(Unauthenticated::KeyMismatch { .. })
    ));
}

#[test]
fn a_key_that_would_be_dead_at_birth_is_not_made() {
    for offset in [-1, 0] {
        assert_eq!(
            generate_key(name("ci"), at(0), Some(at(offset))).unwrap_err(),
            KeyFault::Expired {
                expires: at(offset),
                now: at(0)
            }
        );
    }
    assert!(generate_key(name("ci"), at(0), Some(at(1))).is_ok());
}

#[test]
fn keys_and_tokens_are_told_apart_by_their_beginning() {
    assert!(looks_like_key(&made(None).0));
    for text in ["", "th", "eyJhbGciOiJSUzI1NiJ9.e30.x", "TH_x", " th_x"] {
        assert!(!looks_like_key(text), "{text:?}");
    }
}
