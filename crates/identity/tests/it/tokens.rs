//! Tokens with real signatures: who is let in, and every way to be refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::{Algorithm, ClaimMap, Issuer, Tokens, Unauthenticated};
use jsonwebtoken::Algorithm as Jose;
use model::{IssuerName, Limits};
use serde_json::{Value, json};

use crate::signing::{AUD, Desk, ISS, LEEWAY, NOW, Sets, Signer, at, claims, encoded, issuer};

fn corp() -> IssuerName {
    IssuerName::parse("corp").unwrap()
}

#[test]
fn every_algorithm_is_verified_with_a_real_key() {
    for jose in [
        Jose::RS256,
        Jose::RS384,
        Jose::RS512,
        Jose::PS256,
        Jose::PS384,
        Jose::PS512,
        Jose::ES256,
        Jose::ES384,
        Jose::EdDSA,
        Jose::HS256,
        Jose::HS384,
        Jose::HS512,
    ] {
        let signer = Signer::new(jose);
        let sets = Sets::of("corp", &[signer.jwk(Some("k1"))]);
        let all = Issuer {
            algorithms: Algorithm::ALL.to_vec(),
            ..issuer()
        };
        let tokens = Tokens::new(vec![all], &Limits::default());
        let token = signer.token(&claims(json!({})));
        let principal = tokens.verify(&token, &sets, at(0)).unwrap();
        assert_eq!(principal.caller().subject.as_str(), "ada", "{jose:?}");

        // The same key, another algorithm in the header: the signature is not what it says.
        let altered = replace_header(&token, &json!({"alg": "HS256", "kid": "k1"}));
        if jose != Jose::HS256 {
            assert!(tokens.verify(&altered, &sets, at(0)).is_err(), "{jose:?}");
        }
        // One altered bit of the signature.
        let (head, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[5] ^= 1;
        let altered = format!("{head}.{}", encoded(bytes));
        assert_eq!(
            tokens.verify(&altered, &sets, at(0)).unwrap_err(),
            Unauthenticated::BadSignature { issuer: corp() },
            "{jose:?}"
        );
    }
}

fn replace_header(token: &str, header: &Value) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", encoded(header.to_string()))
}

#[test]
fn the_principal_is_what_the_claim_map_says() {
    let principal = Desk::new().on(json!({})).unwrap();
    let caller = principal.caller();
    assert_eq!(caller.issuer, "corp");
    assert_eq!(caller.subject.as_str(), "ada");
    assert_eq!(caller.tenant.as_ref().unwrap().as_str(), "north");
    assert_eq!(caller.client.as_ref().unwrap().as_str(), "ide");
    let roles: Vec<_> = caller.roles.iter().map(model::Role::as_str).collect();
    assert_eq!(roles, ["member", "on call"]);
    assert_eq!(principal.key(), caller.key());
    assert_eq!(principal.credential().to_string(), "token:corp");
    assert_eq!(principal.expires(), Some(at(300)));
    assert!(principal.claims().is_empty(), "only what was asked for");
}

#[test]
fn claims_are_read_by_the_names_that_the_operator_wrote() {
    let desk = Desk::with(Issuer {
        claims: ClaimMap {
            subject: "https://example.com/id".to_owned(),
            tenant: Some("context.tenant".to_owned()),
            roles: Some("realm_access.roles".to_owned()),
            client: None,
            extra: vec!["department".to_owned(), "groups".to_owned(), "absent".to_owned()],
        },
        ..issuer()
    });
    let principal = desk
        .on(json!({
            "https://example.com/id": "ada@example.com",
            "context": {"tenant": "south"},
            "department": "finance",
        }))
        .unwrap();
    let caller = principal.caller();
    assert_eq!(caller.subject.as_str(), "ada@example.com");
    assert_eq!(caller.tenant.as_ref().unwrap().as_str(), "south");
    assert_eq!(caller.client, None);
    let roles: Vec<_> = caller.roles.iter().map(model::Role::as_str).collect();
    assert_eq!(roles, ["nested"]);
    let mut extra = principal.claims().clone();
    assert_eq!(extra.remove("department"), Some(json!("finance")));
    assert_eq!(extra.remove("groups"), Some(json!(["member", "on call"])));
    assert!(extra.is_empty());
}

#[test]
fn roles_may_be_one_text_with_spaces_between() {
    let principal = Desk::new().on(json!({"groups": " a  b a"})).unwrap();
    let roles: Vec<_> = principal.caller().roles.iter().map(model::Role::as_str).collect();
    assert_eq!(roles, ["a", "b"]);
}

#[test]
fn claims_that_are_absent_give_nothing_and_a_missing_subject_is_refused() {
    let desk = Desk::new();
    let principal = desk
        .on(json!({"org": null, "groups": null, "azp": null}))
        .unwrap();
    assert_eq!(principal.caller().tenant, None);
    assert_eq!(principal.caller().client, None);
    assert!(principal.caller().roles.is_empty());
    assert!(matches!(
        desk.on(json!({"sub": null})),
        Err(Unauthenticated::ClaimInvalid { claim, .. }) if claim == "sub"
    ));
}

#[test]
fn claims_of_the_wrong_type_are_refused_by_name() {
    let desk = Desk::with(Issuer {
        claims: ClaimMap {
            extra: vec!["department".to_owned()],
            ..issuer().claims
        },
        scopes_required: vec!["mcp".to_owned()],
        ..issuer()
    });
    for (name, value) in [
        ("sub", json!(7)),
        ("sub", json!("")),
        ("sub", json!(["ada"])),
        ("sub", json!({"id": "ada"})),
        ("sub", json!("a\u{202E}b")),
        ("sub", json!("x".repeat(257))),
        ("org", json!(["north"])),
        ("org", json!(7)),
        ("org", json!(false)),
        ("org", json!("")),
        ("org", json!("no rth")),
        ("groups", json!(7)),
        ("groups", json!({"a": true})),
        ("groups", json!(["a", 7])),
        ("groups", json!(["a", ""])),
        ("groups", json!([["a"]])),
        ("azp", json!(["ide"])),
        ("department", json!(7)),
        ("department", json!(true)),
        ("department", json!(["a", null])),
        ("department", json!({"a": "b"})),
        ("scope", json!(7)),
        ("scp", json!(["mcp", 7])),
        ("aud", json!(7)),
        ("aud", json!([AUD, 7])),
        ("iss", json!([ISS])),
        ("exp", json!("1900000000")),
        ("exp", json!(true)),
        ("exp", json!([NOW + 300])),
        ("nbf", json!("0")),
        ("iat", json!({})),
    ] {
        match desk.on(json!({"scope": "mcp", name: value.clone()})) {
            Err(Unauthenticated::ClaimInvalid { claim, .. }) => assert_eq!(claim, name, "{value}"),
            other => panic!("{name} {value}: {other:?}"),
        }
    }
    assert!(desk.on(json!({"scope": "mcp", "department": "finance"})).is_ok());
}

#[test]
fn a_null_where_a_tenant_should_stand_is_refused() {
    let desk = Desk::new();
    let mut with_null = claims(json!({}));
    with_null["org"] = Value::Null;
    assert!(matches!(
        desk.verify(&desk.signer.token(&with_null)),
        Err(Unauthenticated::ClaimInvalid { claim, .. }) if claim == "org"
    ));
}

#[test]
fn a_token_is_good_within_the_leeway_and_not_one_second_past_it() {
    let desk = Desk::new();
    for (changes, good) in [
        (json!({"exp": NOW + 1}), true),
        (json!({"exp": NOW}), true),
        (json!({"exp": NOW - LEEWAY + 1}), true),
        (json!({"exp": NOW - LEEWAY}), false),
        (json!({"exp": NOW - LEEWAY - 1}), false),
        (json!({"exp": 0}), false),
        (json!({"exp": -1}), false),
        (json!({"nbf": NOW + LEEWAY}), true),
        (json!({"nbf": NOW + LEEWAY + 1}), false),
        (json!({"iat": NOW + LEEWAY}), true),
        (json!({"iat": NOW + LEEWAY + 1}), false),
        (json!({"iat": null, "nbf": null}), true),
    ] {
        let verdict = desk.on(changes.clone());
        assert_eq!(verdict.is_ok(), good, "{changes}: {verdict:?}");
        match verdict {
            Ok(_) => {}
            Err(Unauthenticated::Expired { .. }) => assert!(changes.get("exp").is_some()),
            Err(Unauthenticated::NotYetValid { .. }) => assert!(changes.get("exp").is_none()),
            Err(other) => panic!("{changes}: {other:?}"),
        }
    }
    assert!(matches!(
        desk.on(json!({"exp": null})),
        Err(Unauthenticated::ClaimInvalid { claim, .. }) if claim == "exp"
    ));
}

#[test]
fn a_token_for_somebody_else_is_refused() {
    let desk = Desk::new();
    for aud in [json!(AUD), json!("second-name"), json!(["x", AUD]), json!([AUD])] {
        assert!(desk.on(json!({"aud": aud.clone()})).is_ok(), "{aud}");
    }
    for aud in [
        json!("https://other.example.com/mcp"),
        json!("https://mcp.example.com/mcp/"),
        json!("https://mcp.example.com"),
        json!("HTTPS://mcp.example.com/mcp"),
        json!("account"),
        json!(["a", "b"]),
        json!([]),
        json!(""),
    ] {
        assert!(
            matches!(
                desk.on(json!({"aud": aud.clone()})),
                Err(Unauthenticated::WrongAudience { .. })
            ),
            "{aud}"
        );
    }
    assert!(matches!(
        desk.on(json!({"aud": null})),
        Err(Unauthenticated::ClaimInvalid { claim, .. }) if claim == "aud"
    ));
    let nobody = Desk::with(Issuer {
        audience: Vec::new(),
        ..issuer()
    });
    assert!(matches!(
        nobody.on(json!({})),
        Err(Unauthenticated::WrongAudience { .. })
    ));
}

#[test]
fn auth_12_the_issuer_is_compared_byte_for_byte() {
    let desk = Desk::new();
    for iss in [
        "https://idp.example.com/realms/corp/",
        "https://idp.example.com/realms/Corp",
        "http://idp.example.com/realms/corp",
        "https://idp.example.com/realms/corp ",
        "",
    ] {
        assert!(
            matches!(
                desk.on(json!({ "iss": iss })),
                Err(Unauthenticated::UnknownIssuer { .. })
            ),
            "{iss:?}"
        );
    }
    assert!(matches!(
        desk.on(json!({"iss": null})),
        Err(Unauthenticated::ClaimInvalid { claim, .. }) if claim == "iss"
    ));
}

#[test]
fn one_issuers_key_does_not_sign_for_another() {
    let other = Issuer {
        name: IssuerName::parse("other").unwrap(),
        issuer: "https://other.example.com".to_owned(),
        algorithms: vec![Algorithm::Es256],
        ..issuer()
    };
    let desk = Desk::new();
    let tokens = Tokens::new(vec![issuer(), other], &Limits::default());
    let ours = Signer::new(Jose::RS256);
    let theirs = Signer::new(Jose::ES256);
    // They publish an RSA key too, for whatever purpose; the operator allowed their elliptic one only.
    desk.sets
        .put("other", &[theirs.jwk(Some("k2")), ours.jwk(Some("k1"))]);

    let good = theirs.sign(
        r#"{"alg":"ES256","kid":"k2"}"#,
        &claims(json!({"iss": "https://other.example.com"})).to_string(),
    );
    let principal = tokens.verify(&good, &desk.sets, at(0)).unwrap();
    assert_eq!(principal.caller().issuer, "other");

    // Their key, our name; and a key of theirs with an algorithm that only we allow.
    let forged = theirs.token(&claims(json!({})));
    assert!(tokens.verify(&forged, &desk.sets, at(0)).is_err());
    let crossed = ours.token(&claims(json!({"iss": "https://other.example.com"})));
    assert!(matches!(
        tokens.verify(&crossed, &desk.sets, at(0)),
        Err(Unauthenticated::AlgorithmRefused { allowed, .. }) if allowed == [Algorithm::Es256]
    ));
}

#[test]
fn algorithms_that_are_not_allowed_are_refused_before_anything_else() {
    let desk = Desk::new();
    for alg in [
        "none", "None", "NONE", "nOnE", "", "RS384", "HS256", "XX", "rs256",
    ] {
        assert!(
            matches!(
                desk.on_header(&json!({"alg": alg, "kid": "k1"})),
                Err(Unauthenticated::AlgorithmRefused { .. })
            ),
            "{alg:?}"
        );
    }
    for header in [
        json!({"kid": "k1"}),
        json!({"alg": 7}),
        json!({"alg": ["RS256"]}),
        json!({"alg": null}),
    ] {
        assert!(
            matches!(desk.on_header(&header), Err(Unauthenticated::Malformed { .. })),
            "{header}"
        );
    }
    // `none` with nothing behind the last dot, the classic form.
    let payload = encoded(claims(json!({})).to_string());
    let token = format!("{}.{payload}.", encoded(r#"{"alg":"none"}"#));
    assert!(matches!(
        desk.verify(&token),
        Err(Unauthenticated::AlgorithmRefused { .. })
    ));
    // An allowed algorithm with an empty signature.
    let token = format!("{}.{payload}.", encoded(r#"{"alg":"RS256","kid":"k1"}"#));
    assert!(matches!(
        desk.verify(&token),
        Err(Unauthenticated::BadSignature { .. })
    ));
    // Nothing is allowed: nobody comes in.
    let closed = Desk::with(Issuer {
        algorithms: Vec::new(),
        ..issuer()
    });
    assert!(matches!(
        closed.on(json!({})),
        Err(Unauthenticated::AlgorithmRefused { .. })
    ));
}

#[test]
fn a_public_key_is_no_shared_secret() {
    // The attack on verifiers that let the token choose: HS256 with the RSA public key as the secret.
    let jwk = Signer::new(Jose::RS256).jwk(Some("k1"));
    let modulus = URL_SAFE_NO_PAD.decode(jwk["n"].as_str().unwrap()).unwrap();
    for secret in [modulus.as_slice(), jwk.to_string().as_bytes()] {
        let forger = Signer {
            jose: Jose::HS256,
            key: jsonwebtoken::EncodingKey::from_secret(secret).unwrap(),
        };
        let token = forger.token(&claims(json!({})));
        assert!(matches!(
            Desk::new().verify(&token),
            Err(Unauthenticated::AlgorithmRefused { .. })
        ));
        // Even where an operator allows both kinds, an RSA key verifies no HMAC.
        let both = Desk::with(Issuer {
            algorithms: vec![Algorithm::Rs256, Algorithm::Hs256],
            ..issuer()
        });
        assert!(matches!(
            both.verify(&token),
            Err(Unauthenticated::AlgorithmRefused { allowed, .. }) if !allowed.is_empty()
        ));
    }
}

#[test]
fn a_key_that_the_token_brings_along_is_not_looked_at() {
    let desk = Desk::new();
    let forger = Signer::other();
    for header in [
        json!({"alg": "RS256", "kid": "k1", "jwk": forger.jwk(Some("k1"))}),
        json!({"alg": "RS256", "kid": "k1", "jku": "https://evil.example.com/keys"}),
        json!({"alg": "RS256", "kid": "k1", "x5u": "https://evil.example.com/cert"}),
    ] {
        let token = forger.sign(&header.to_string(), &claims(json!({})).to_string());
        assert_eq!(
            desk.verify(&token).unwrap_err(),
            Unauthenticated::BadSignature { issuer: corp() },
            "{header}"
        );
    }
}

#[test]
fn an_altered_payload_is_refused() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    let parts: Vec<&str> = token.split('.').collect();
    let payload = encoded(claims(json!({"sub": "eve"})).to_string());
    let altered = format!("{}.{payload}.{}", parts[0], parts[2]);
    assert_eq!(
        desk.verify(&altered).unwrap_err(),
        Unauthenticated::BadSignature { issuer: corp() }
    );
}

#[test]
fn a_kid_that_the_set_does_not_have_is_named_so_that_the_set_can_be_fetched_again() {
    let desk = Desk::new();
    assert_eq!(
        desk.on_header(&json!({"alg": "RS256", "kid": "k2"})).unwrap_err(),
        Unauthenticated::UnknownKey {
            issuer: corp(),
            kid: Some("k2".to_owned())
        }
    );
    assert!(
        desk.on_header(&json!({"alg": "RS256"})).is_ok(),
        "there is only one"
    );
    assert!(matches!(
        desk.on_header(&json!({"alg": "RS256", "kid": 7})),
        Err(Unauthenticated::Malformed { .. })
    ));
    desk.sets.put(
        "corp",
        &[desk.signer.jwk(Some("k1")), Signer::other().jwk(Some("k2"))],
    );
    assert_eq!(
        desk.on_header(&json!({"alg": "RS256"})).unwrap_err(),
        Unauthenticated::UnknownKey {
            issuer: corp(),
            kid: None
        }
    );
    desk.sets.remove("corp");
    assert_eq!(
        desk.on(json!({})).unwrap_err(),
        Unauthenticated::NoKeySet { issuer: corp() }
    );
}

#[test]
fn only_an_access_token_is_taken() {
    let desk = Desk::new();
    for typ in [
        "JWT",
        "jwt",
        "at+jwt",
        "AT+JWT",
        "application/at+jwt",
        "Application/JWT",
    ] {
        let verdict = desk.on_header(&json!({"alg": "RS256", "kid": "k1", "typ": typ}));
        assert!(verdict.is_ok(), "{typ}: {verdict:?}");
    }
    for typ in [
        json!("oauth-id-jag+jwt"),
        json!("dpop+jwt"),
        json!("logout+jwt"),
        json!("JOSE"),
        json!(""),
        json!("application/"),
        json!("application/application/jwt"),
        json!(7),
        json!(null),
    ] {
        assert!(
            matches!(
                desk.on_header(&json!({"alg": "RS256", "kid": "k1", "typ": typ.clone()})),
                Err(Unauthenticated::WrongType { .. })
            ),
            "{typ}"
        );
    }
}

#[test]
fn a_header_that_must_be_understood_is_refused() {
    let desk = Desk::new();
    for (header, parameter) in [
        (
            json!({"alg": "RS256", "kid": "k1", "crit": ["exp"], "exp": 1}),
            "crit",
        ),
        (json!({"alg": "RS256", "kid": "k1", "crit": []}), "crit"),
        (
            json!({"alg": "RS256", "kid": "k1", "crit": ["b64"], "b64": true}),
            "crit",
        ),
        (json!({"alg": "RS256", "kid": "k1", "b64": false}), "b64"),
    ] {
        assert_eq!(
            desk.on_header(&header).unwrap_err(),
            Unauthenticated::Critical { parameter },
            "{header}"
        );
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_in_header_and_payload() {
    let desk = Desk::new();
    let good_header = r#"{"alg":"RS256","kid":"k1"}"#;
    let good_payload = claims(json!({})).to_string();
    assert!(desk.verify(&desk.signer.sign(good_header, &good_payload)).is_ok());
    let twice = good_payload.replacen('{', r#"{"sub":"eve","#, 1);
    let nested = good_payload.replacen('{', r#"{"x":{"a":1,"a":2},"#, 1);
    for (header, payload) in [
        (
            r#"{"alg":"none","alg":"RS256","kid":"k1"}"#,
            good_payload.as_str(),
        ),
        (r#"{"alg":"RS256","kid":"k1","kid":"k1"}"#, good_payload.as_str()),
        (good_header, twice.as_str()),
        (good_header, nested.as_str()),
    ] {
        assert!(
            matches!(
                desk.verify(&desk.signer.sign(header, payload)),
                Err(Unauthenticated::Malformed { .. })
            ),
            "{header} {payload}"
        );
    }
}

#[test]
fn what_is_no_compact_signature_is_malformed() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    let (head, signature) = token.rsplit_once('.').unwrap();
    let payload = encoded("[1]");
    let header = encoded(r#"{"alg":"RS256","kid":"k1"}"#);
    for text in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        "a".to_owned(),
        head.to_owned(),
        format!("{token}."),
        format!("{token}.x"),
        format!("{token}.x.y"),
        format!("{token}="),
        format!(" {token}"),
        format!("{token}\n"),
        format!("{head}.{signature}!"),
        format!("{header}.{payload}.{signature}"),
        format!("{header}.{}.{signature}", encoded("not json")),
        format!("{header}.!.{signature}"),
        format!("{}.{payload}.{signature}", encoded("7")),
        r#"{"protected":"","payload":"","signature":""}"#.to_owned(),
    ] {
        let verdict = desk.verify(&text);
        assert!(
            matches!(verdict, Err(Unauthenticated::Malformed { .. })),
            "{text:?}: {verdict:?}"
        );
    }
}

#[test]
fn a_token_is_read_at_its_greatest_length_and_not_one_byte_past_it() {
    let desk = Desk::new();
    let token = desk.signer.token(&claims(json!({})));
    let limits = |max: usize| Limits {
        token_bytes_max: max,
        ..Limits::default()
    };
    let at_max = Tokens::new(vec![issuer()], &limits(token.len()));
    assert!(at_max.verify(&token, &desk.sets, at(0)).is_ok());
    let below = Tokens::new(vec![issuer()], &limits(token.len() - 1));
    assert_eq!(
        below.verify(&token, &desk.sets, at(0)).unwrap_err(),
        Unauthenticated::TooLong {
            length: token.len(),
            max: token.len() - 1
        }
    );
}

#[test]
fn nesting_is_bounded_by_the_limit() {
    let nested = |depth: usize| {
        let deep: Value =
            serde_json::from_str(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).unwrap();
        claims(json!({ "deep": deep }))
    };
    let desk = Desk::new();
    let limits = Limits {
        json_depth_max: 8,
        ..Limits::default()
    };
    let tokens = Tokens::new(vec![issuer()], &limits);
    let verify = |depth| tokens.verify(&desk.signer.token(&nested(depth)), &desk.sets, at(0));
    assert!(verify(7).is_ok());
    assert!(matches!(verify(8), Err(Unauthenticated::Malformed { .. })));
}

#[test]
fn required_scopes_are_all_needed_and_named_together() {
    let desk = Desk::with(Issuer {
        scopes_required: vec!["mcp:call".to_owned(), "mcp:list".to_owned()],
        ..issuer()
    });
    for good in [
        json!({"scope": "mcp:call mcp:list"}),
        json!({"scope": "x mcp:list  mcp:call"}),
        json!({"scope": ["mcp:call", "mcp:list"]}),
        json!({"scp": ["mcp:call", "mcp:list"]}),
        json!({"scp": "mcp:call mcp:list"}),
        json!({"scope": "mcp:call", "scp": ["mcp:list"]}),
    ] {
        assert!(desk.on(good.clone()).is_ok(), "{good}");
    }
    for lacking in [
        json!({}),
        json!({"scope": ""}),
        json!({"scope": "mcp:call"}),
        json!({"scope": "mcp:callmcp:list"}),
        json!({"scope": "MCP:call mcp:list"}),
        json!({"scp": []}),
    ] {
        let fault = desk.on(lacking.clone()).unwrap_err();
        assert_eq!(
            fault,
            Unauthenticated::ScopeMissing {
                scopes: vec!["mcp:call".to_owned(), "mcp:list".to_owned()]
            },
            "{lacking}"
        );
        assert_eq!(fault.status(), 403);
    }
    // A token that is wrong in another way does not learn which scopes there are.
    assert!(matches!(
        desk.on(json!({"aud": "other"})),
        Err(Unauthenticated::WrongAudience { .. })
    ));
}

#[test]
fn an_issuer_cannot_take_the_name_of_another_kind_of_credential() {
    for name in ["key", "configuration"] {
        let desk = Desk::with(Issuer {
            name: IssuerName::parse(name).unwrap(),
            ..issuer()
        });
        assert!(desk.tokens.issuers().is_empty());
        assert!(desk.on(json!({})).is_err(), "{name}");
    }
}

#[test]
fn no_error_holds_any_part_of_the_token() {
    let desk = Desk::new();
    let canary = "canary77canary77";
    let forger = Signer::other();
    for token in [
        format!("{canary}.{canary}.{canary}"),
        forger.token(&claims(json!({"sub": canary, "aud": canary, "exp": 1}))),
        desk.signer.token(&claims(json!({"sub": canary, "aud": canary}))),
        desk.signer.token(&claims(json!({"org": [canary]}))),
        desk.signer.token(&claims(json!({"sub": canary, "exp": 1}))),
    ] {
        let fault = desk.verify(&token).unwrap_err();
        for shown in [format!("{fault:?}"), fault.to_string(), fault.for_operator()] {
            assert!(!shown.contains(canary), "{shown}");
            for part in token.split('.') {
                assert!(!shown.contains(part), "{shown}");
            }
        }
    }
}
