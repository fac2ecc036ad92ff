//! From the claims of a verified token to a caller, by the operator's claim map.
//!
//! Nothing here is a check of the token itself; what is configured and of the wrong type is refused, never guessed.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use model::{Caller, ClientId, Object, Role, Subject, TenantId, Value};

use crate::issuer::Issuer;
use crate::unauthenticated::Unauthenticated;

/// The caller that the claims describe.
pub(crate) fn caller(issuer: &Issuer, claims: &Object) -> Result<Caller, Unauthenticated> {
    const SUBJECT: &str = "a text of 1 to 256 printable characters";
    let map = &issuer.claims;
    let subject = find(claims, &map.subject)?
        .and_then(Value::as_str)
        .and_then(|text| Subject::parse(text).ok())
        .ok_or_else(|| invalid(&map.subject, SUBJECT))?;
    let tenant = optional(claims, map.tenant.as_deref(), |text| TenantId::parse(text).ok())?;
    let client = optional(claims, map.client.as_deref(), |text| ClientId::parse(text).ok())?;
    let roles = match &map.roles {
        None => BTreeSet::new(),
        Some(name) => roles(claims, name)?,
    };
    Ok(Caller {
        issuer: issuer.name.as_str().to_owned(),
        subject,
        tenant,
        roles,
        client,
    })
}

/// The further claims that the operator asked for, under the names that he wrote.
pub(crate) fn extra(issuer: &Issuer, claims: &Object) -> Result<Object, Unauthenticated> {
    let mut extra = Object::new();
    for name in &issuer.claims.extra {
        let Some(value) = find(claims, name)? else {
            continue;
        };
        let fits = match value {
            Value::String(_) => true,
            Value::Array(items) => items.iter().all(Value::is_string),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        };
        if !fits {
            return Err(invalid(name, "a text or an array of texts"));
        }
        extra.insert(name.clone(), value.clone());
    }
    Ok(extra)
}

/// The scopes of a token: `scope` as RFC 9068 has it, and `scp` as some issuers do.
pub(crate) fn scopes(claims: &Object) -> Result<BTreeSet<&str>, Unauthenticated> {
    let mut scopes = BTreeSet::new();
    for name in ["scope", "scp"] {
        if let Some(value) = claims.get(name) {
            scopes.extend(words(value).ok_or_else(|| invalid(name, WORDS))?);
        }
    }
    Ok(scopes)
}

/// Whether the token is for one of these audiences.
pub(crate) fn audience_fits(claims: &Object, audience: &[String]) -> Result<bool, Unauthenticated> {
    const AUDIENCE: &str = "a text or an array of texts";
    let ours = |text: &str| audience.iter().any(|own| own == text);
    match claims.get("aud") {
        Some(Value::String(text)) => Ok(ours(text)),
        Some(Value::Array(items)) => {
            let mut found = false;
            for item in items {
                found |= ours(item.as_str().ok_or_else(|| invalid("aud", AUDIENCE))?);
            }
            Ok(found)
        }
        Some(_) | None => Err(invalid("aud", AUDIENCE)),
    }
}

/// A claim that is a time: seconds since 1970, whole or not (RFC 7519 section 2, NumericDate).
pub(crate) fn time(claims: &Object, name: &str) -> Result<Option<Timestamp>, Unauthenticated> {
    const TIME: &str = "a number of seconds since 1970, before the year 10000";
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let number = value.as_number().ok_or_else(|| invalid(name, TIME))?;
    let timestamp = match (number.as_i64(), number.as_f64()) {
        (Some(seconds), _) => Timestamp::from_second(seconds).ok(),
        (None, Some(seconds)) => SignedDuration::try_from_secs_f64(seconds)
            .and_then(Timestamp::from_duration)
            .ok(),
        (None, None) => None,
    };
    timestamp.map(Some).ok_or_else(|| invalid(name, TIME))
}

pub(crate) fn invalid(claim: &str, expected: &'static str) -> Unauthenticated {
    Unauthenticated::ClaimInvalid {
        claim: claim.to_owned(),
        expected,
    }
}

const WORDS: &str = "an array of texts, or one text with spaces between";

fn optional<T>(
    claims: &Object,
    name: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Unauthenticated> {
    let Some(name) = name else { return Ok(None) };
    let Some(value) = find(claims, name)? else {
        return Ok(None);
    };
    value
        .as_str()
        .and_then(parse)
        .map(Some)
        .ok_or_else(|| invalid(name, "a short text without spaces and without hidden characters"))
}

fn roles(claims: &Object, name: &str) -> Result<BTreeSet<Role>, Unauthenticated> {
    const ROLE: &str = "roles of 1 to 256 printable characters";
    let Some(value) = find(claims, name)? else {
        return Ok(BTreeSet::new());
    };
    words(value)
        .ok_or_else(|| invalid(name, WORDS))?
        .into_iter()
        .map(|word| Role::parse(word).map_err(|_| invalid(name, ROLE)))
        .collect()
}

/// The items of an array of texts, or the words of a text.
fn words(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(text.split(' ').filter(|word| !word.is_empty()).collect()),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Finds a claim: first by the whole name, then by its dots.
///
/// `Ok(None)` only where a name is missing on the way; something else than an object on the way is a fault, because
/// the claim was meant to be there.
fn find<'a>(claims: &'a Object, name: &str) -> Result<Option<&'a Value>, Unauthenticated> {
    if let Some(value) = claims.get(name) {
        return Ok(Some(value));
    }
    let Some((path, last)) = name.rsplit_once('.') else {
        return Ok(None);
    };
    let mut object = claims;
    for part in path.split('.') {
        match object.get(part) {
            None => return Ok(None),
            Some(Value::Object(inner)) => object = inner,
            Some(_) => return Err(invalid(name, "an object on the way to the claim")),
        }
    }
    Ok(object.get(last))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_claim_is_found_by_its_whole_name_then_by_its_dots() {
        let claims = object(json!({
            "sub": "ada",
            "https://example.com/roles": ["literal"],
            "realm_access": {"roles": ["nested"], "deep": {"er": "x"}},
            "a.b": "literal wins",
            "a": {"b": "nested loses"},
            "text": "x",
        }));
        let found = |name: &str| find(&claims, name).unwrap().cloned();
        assert_eq!(found("sub"), Some(json!("ada")));
        assert_eq!(found("https://example.com/roles"), Some(json!(["literal"])));
        assert_eq!(found("realm_access.roles"), Some(json!(["nested"])));
        assert_eq!(found("realm_access.deep.er"), Some(json!("x")));
        assert_eq!(found("a.b"), Some(json!("literal wins")));
        for absent in ["nobody", "realm_access.nobody", "nobody.roles", "", ".", "sub."] {
            if absent == "sub." {
                assert!(find(&claims, absent).is_err());
            } else {
                assert_eq!(found(absent), None, "{absent:?}");
            }
        }
        assert!(find(&claims, "text.roles").is_err(), "a text on the way");
    }

    #[test]
    fn a_time_is_a_number_that_a_clock_can_show() {
        let read = |value: Value| time(&object(json!({ "exp": value })), "exp");
        assert_eq!(read(json!(0)).unwrap(), Some(Timestamp::UNIX_EPOCH));
        assert_eq!(
            read(json!(1.5)).unwrap(),
            Some(Timestamp::from_millisecond(1_500).unwrap())
        );
        assert!(read(json!(253_402_207_200_i64)).is_ok());
        for value in [
            json!("1"),
            json!(null),
            json!(true),
            json!([1]),
            json!(9_007_199_254_740_991_i64),
            json!(1e300),
            json!(-1e300),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
        assert_eq!(time(&Object::new(), "exp"), Ok(None));
    }

    #[test]
    fn an_audience_is_compared_as_text() {
        let ours = ["https://mcp.example.com/mcp".to_owned(), "mcp".to_owned()];
        let fits = |aud: Value| audience_fits(&object(json!({ "aud": aud })), &ours);
        for aud in [
            json!("mcp"),
            json!(["other", "https://mcp.example.com/mcp"]),
            json!(["mcp"]),
        ] {
            assert_eq!(fits(aud.clone()), Ok(true), "{aud}");
        }
        for aud in [
            json!(""),
            json!([]),
            json!("MCP"),
            json!("https://mcp.example.com/mcp/"),
            json!("https://mcp.example.com"),
            json!(["other"]),
        ] {
            assert_eq!(fits(aud.clone()), Ok(false), "{aud}");
        }
        for aud in [json!(7), json!(null), json!({"mcp": true}), json!(["mcp", 7])] {
            assert!(fits(aud.clone()).is_err(), "{aud}");
        }
        assert!(audience_fits(&Object::new(), &ours).is_err());
        assert_eq!(audience_fits(&object(json!({"aud": "mcp"})), &[]), Ok(false));
    }
}
