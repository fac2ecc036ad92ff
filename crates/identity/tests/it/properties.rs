//! Random and nearly right bytes: nothing panics, nothing but the one good token or key verifies.

use std::sync::LazyLock;

use identity::{KeySet, bearer, generate_key, verify_key};
use model::{CallerName, Limits};
use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::api_keys::directory;
use crate::signing::{Desk, at, claims, encoded};

static DESK: LazyLock<Desk> = LazyLock::new(Desk::new);
static TOKEN: LazyLock<String> = LazyLock::new(|| DESK.signer.token(&claims(json!({}))));

#[test]
fn the_good_token_is_good() {
    assert!(DESK.verify(&TOKEN).is_ok());
}

proptest! {
    #[test]
    fn random_text_never_verifies(text in any::<String>()) {
        prop_assert!(DESK.verify(&text).is_err());
        prop_assert!(verify_key(&text, &directory(&[]), at(0)).is_err());
    }

    #[test]
    fn three_random_parts_never_verify(
        header in prop::collection::vec(any::<u8>(), 0..80),
        payload in prop::collection::vec(any::<u8>(), 0..80),
        signature in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let text = format!("{}.{}.{}", encoded(header), encoded(payload), encoded(signature));
        prop_assert!(DESK.verify(&text).is_err());
    }

    #[test]
    fn a_good_header_with_random_claims_and_signature_never_verifies(
        payload in r#"\{("iss":"https://idp.example.com/realms/corp",)?("[a-z]{1,3}":("[a-z]{0,4}"|[0-9]{1,10}|null|\[\]),){0,5}"exp":[0-9]{1,10}\}"#,
        signature in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let header = encoded(r#"{"alg":"RS256","kid":"k1"}"#);
        let text = format!("{header}.{}.{}", encoded(payload), encoded(signature));
        prop_assert!(DESK.verify(&text).is_err());
    }

    #[test]
    fn a_good_token_with_one_byte_replaced_never_verifies(position in any::<prop::sample::Index>(), byte in any::<char>()) {
        let mut characters: Vec<char> = TOKEN.chars().collect();
        let position = position.index(characters.len());
        prop_assume!(characters[position] != byte);
        characters[position] = byte;
        let altered: String = characters.into_iter().collect();
        prop_assert!(DESK.verify(&altered).is_err(), "{}", altered);
    }

    #[test]
    fn a_good_token_that_is_cut_never_verifies(position in any::<prop::sample::Index>()) {
        let cut = position.index(TOKEN.len());
        prop_assert!(DESK.verify(&TOKEN[..cut]).is_err());
    }

    #[test]
    fn a_good_key_with_one_character_replaced_never_verifies(position in any::<prop::sample::Index>(), byte in any::<char>()) {
        let new = generate_key(CallerName::parse("ci").unwrap(), at(0), None).unwrap();
        let mut characters: Vec<char> = new.shown.expose_secret().chars().collect();
        let position = position.index(characters.len());
        prop_assume!(characters[position] != byte);
        characters[position] = byte;
        let altered: String = characters.into_iter().collect();
        prop_assert!(verify_key(&altered, &directory(&[&new.record]), at(0)).is_err());
    }

    #[test]
    fn a_random_header_never_panics_and_gives_only_what_it_may_hold(header in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(token) = bearer(Some(&header)) {
            prop_assert!(!token.is_empty() && token.is_ascii() && !token.contains([' ', ',', '"']));
        }
    }

    #[test]
    fn a_random_key_set_never_panics(text in r#"\{"keys":\[(\{("(kty|n|e|x|y|crv|k|kid|alg|use|key_ops)":("(RSA|EC|OKP|oct|AQAB|sig)"|7|\[\]|null),?){0,6}\},?){0,3}\]\}"#) {
        let _ = KeySet::parse(text.as_bytes(), &Limits::default());
        let _ = KeySet::parse_file(text.as_bytes(), &Limits::default());
    }
}
