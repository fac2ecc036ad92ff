//! `tollhouse keys`: API keys of the callers that the configuration names.

use identity::{KeyFault, generate_key};
use jiff::{SignedDuration, Timestamp};
use model::{CallerName, KeyId};
use secrecy::ExposeSecret as _;
use serde_json::json;
use store::KeyRow;

use crate::cli::{KeysAdd, KeysList, KeysRevoke};
use crate::failure::Failure;
use crate::print::{self, say, tell};
use crate::{house, log};

/// How a key begins.
const KEY_PREFIX: &str = "th_";

pub(crate) async fn add(args: KeysAdd) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let caller = house::caller(&settings, &args.caller)?;
    let now = Timestamp::now();
    let expires = args.expires.as_deref().map(|text| end(text, now)).transpose()?;
    let made = generate_key(caller.name.clone(), now, expires).map_err(|fault| match fault {
        KeyFault::Random(_) => Failure::Internal(fault.to_string()),
        KeyFault::Expired { .. } => Failure::Input(fault.to_string()),
    })?;
    let row = KeyRow {
        id: made.record.id.clone(),
        hash: made.record.hash,
        caller: made.record.caller.clone(),
        added: made.record.added,
        expires: made.record.expires,
        revoked: None,
        note: args.note.clone(),
    };
    let store = house::store(&settings).await?;
    store.keys_add(&row).await.map_err(|fault| unavailable(&fault))?;
    store.close().await;
    if args.format.json {
        print::json(
            &json!({ "id": row.id, "caller": row.caller, "expires": row.expires, "key": made.shown.expose_secret() }),
        );
    } else {
        tell!(
            "key `{}` of caller `{}`; it is shown this once and stored nowhere:",
            row.id,
            row.caller
        );
        say!("{}", made.shown.expose_secret());
    }
    Ok(())
}

pub(crate) async fn list(args: KeysList) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let store = house::store(&settings).await?;
    let rows = store.keys_list().await.map_err(|fault| unavailable(&fault))?;
    store.close().await;
    let now = Timestamp::now();
    let callers = house::callers(&settings, identity::ISSUER_OF_KEYS);
    let state = |row: &KeyRow| {
        if row.revoked.is_some() {
            "revoked"
        } else if row.expires.is_some_and(|expires| expires <= now) {
            "expired"
        } else if !callers.contains_key::<CallerName>(&row.caller) {
            "no such caller"
        } else {
            "good"
        }
    };
    if args.format.json {
        let keys: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "id": row.id,
                    "caller": row.caller,
                    "state": state(row),
                    "added": row.added,
                    "expires": row.expires,
                    "revoked": row.revoked,
                    "note": row.note,
                })
            })
            .collect();
        print::json(&keys);
    } else if rows.is_empty() {
        tell!("there are no keys; make one with `tollhouse keys add CALLER`");
    } else {
        let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"));
        let rows = rows
            .iter()
            .map(|row| {
                vec![
                    row.id.to_string(),
                    row.caller.to_string(),
                    state(row).to_owned(),
                    time(Some(row.added)),
                    time(row.expires),
                    row.note.clone().unwrap_or_default(),
                ]
            })
            .collect();
        print::table(&["id", "caller", "state", "added", "expires", "note"], rows);
    }
    Ok(())
}

pub(crate) async fn revoke(args: KeysRevoke) -> Result<(), Failure> {
    log::start_quiet();
    let settings = super::settings(&args.path)?;
    let id = id(&args.id)?;
    let store = house::store(&settings).await?;
    let known = store
        .keys_revoke(&id, Timestamp::now())
        .await
        .map_err(|fault| unavailable(&fault))?;
    store.close().await;
    if !known {
        return Err(Failure::Input(format!(
            "there is no key `{id}` that was not revoked; see `tollhouse keys list`"
        )));
    }
    let within = settings.limits.keys_refresh_interval.as_millis();
    say!("key `{id}` is revoked; running servers refuse it within {within} ms");
    Ok(())
}

/// The id of a key, as `keys list` shows it.
fn id(text: &str) -> Result<KeyId, Failure> {
    // Whoever has the whole key at hand pastes that. Its secret part must not be repeated.
    if let Some(rest) = text.strip_prefix(KEY_PREFIX) {
        let id = rest.split_once('_').map_or(rest, |(id, _)| id);
        return Err(Failure::Input(match KeyId::parse(id) {
            Ok(id) => format!("this is a key and not its id; write `{id}`"),
            Err(_) => "this is no id of a key; see `tollhouse keys list`".to_owned(),
        }));
    }
    KeyId::parse(text).map_err(|fault| Failure::Input(fault.to_string()))
}

/// A point in time, written as one or as a duration from now.
fn end(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let wrong = || {
        Failure::Input(format!(
            "`{text}` is no end; write a time as 2027-01-31T00:00:00Z, or a duration as 90d or 12h"
        ))
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let hours = match unit {
        "d" => number.checked_mul(24),
        "h" => Some(number),
        _ => None,
    };
    let hours = hours
        .filter(|hours| (1..=24 * 36_500).contains(hours))
        .ok_or_else(wrong)?;
    now.checked_add(SignedDuration::from_hours(hours))
        .map_err(|_| wrong())
}

fn unavailable(fault: &store::StoreFault) -> Failure {
    Failure::Unavailable(format!("the keys cannot be read or written: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_key_in_place_of_its_id_is_not_repeated() {
        assert_eq!(id("bcf0ad6e2981ae5f").unwrap().as_str(), "bcf0ad6e2981ae5f");
        for (text, expected) in [
            ("th_abc_SECRET", "this is a key and not its id; write `abc`"),
            ("th_abc", "this is a key and not its id; write `abc`"),
            ("th_SEC-RET", "this is no id of a key; see `tollhouse keys list`"),
            ("", "key id is empty; write letters and digits, at most 32"),
        ] {
            assert_eq!(id(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn an_end_is_a_time_or_a_duration_and_nothing_else() {
        let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2027-01-31T00:00:00Z", "2027-01-31T00:00:00Z"),
            ("1d", "2026-12-01T00:00:00Z"),
            ("12h", "2026-11-30T12:00:00Z"),
        ] {
            assert_eq!(end(text, now).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "",
            "d",
            "0d",
            "-1d",
            "1",
            "90 days",
            "99999999d",
            "tomorrow",
            "1ü",
        ] {
            assert!(end(text, now).is_err(), "{text}");
        }
    }
}
