//! Tokens that were verified before: remembered only while nothing has changed.
//!
//! Whether a verdict came from memory can be seen from outside by the `Arc` of the caller: a fresh verification makes
//! a new one.

use std::sync::Arc;

use identity::{Tokens, Unauthenticated};
use model::{Caller, Limits};
use serde_json::json;

use crate::signing::{Desk, at, claims, issuer};

fn caller_at(desk: &Desk, token: &str, offset: i64) -> Result<Arc<Caller>, Unauthenticated> {
    desk.tokens
        .verify(token, &desk.sets, at(offset))
        .map(|principal| principal.shared())
}

#[test]
fn a_token_is_remembered_for_less_than_a_minute() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    let first = caller_at(&desk, &token, 0).unwrap();
    for offset in [0, 1, 59] {
        assert!(
            Arc::ptr_eq(&first, &caller_at(&desk, &token, offset).unwrap()),
            "{offset}"
        );
    }
    let second = caller_at(&desk, &token, 60).unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(first, second);
    assert!(Arc::ptr_eq(&second, &caller_at(&desk, &token, 61).unwrap()));
}

#[test]
fn a_remembered_token_that_has_ended_is_refused() {
    let desk = Desk::new();
    let token = desk
        .signer
        .token(&claims(json!({"exp": crate::signing::NOW + 5})));
    let first = caller_at(&desk, &token, 0).unwrap();
    assert!(Arc::ptr_eq(&first, &caller_at(&desk, &token, 4).unwrap()));
    // From its end on it is not remembered, only tolerated within the leeway.
    assert!(!Arc::ptr_eq(&first, &caller_at(&desk, &token, 5).unwrap()));
    assert!(matches!(
        caller_at(&desk, &token, 36),
        Err(Unauthenticated::Expired { .. })
    ));
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_valid_again() {
    let desk = Desk::new();
    let token = desk
        .signer
        .token(&claims(json!({"nbf": crate::signing::NOW, "iat": null})));
    caller_at(&desk, &token, 0).unwrap();
    assert!(matches!(
        caller_at(&desk, &token, -31),
        Err(Unauthenticated::NotYetValid { .. })
    ));
}

#[test]
fn a_key_that_was_taken_out_of_the_set_ends_its_tokens_at_once() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    caller_at(&desk, &token, 0).unwrap();
    desk.sets
        .put("corp", &[crate::signing::Signer::other().jwk(Some("k9"))]);
    assert!(matches!(
        caller_at(&desk, &token, 1),
        Err(Unauthenticated::UnknownKey { .. })
    ));
    desk.sets.put("corp", &[desk.signer.jwk(Some("k1"))]);
    caller_at(&desk, &token, 2).unwrap();
    desk.sets.remove("corp");
    assert!(matches!(
        caller_at(&desk, &token, 3),
        Err(Unauthenticated::NoKeySet { .. })
    ));
}

#[test]
fn a_refused_token_is_not_remembered_and_no_other_token_profits() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    caller_at(&desk, &token, 0).unwrap();
    let mut altered = token.clone().into_bytes();
    // A character in the middle of the payload.
    let middle = token.find('.').unwrap() + 40;
    altered[middle] = if altered[middle] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).unwrap();
    for _ in 0..2 {
        assert!(caller_at(&desk, &altered, 0).is_err());
    }
}

#[test]
fn another_judge_remembers_nothing_of_the_first() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    caller_at(&desk, &token, 0).unwrap();
    let mut stricter = issuer();
    stricter.audience = vec!["elsewhere".to_owned()];
    let tokens = Tokens::new(vec![stricter], &Limits::default());
    assert!(matches!(
        tokens.verify(&token, &desk.sets, at(0)),
        Err(Unauthenticated::WrongAudience { .. })
    ));
}
