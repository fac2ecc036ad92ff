//! The header that brings a credential, the header that asks for one, and the document that says where to get it.

use identity::{Algorithm, ResourceMetadata, Unauthenticated, bearer, challenge};
use model::{CallerName, IssuerName, KeyId};
use serde_json::{Value, json};

use crate::signing::at;

const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

/// One of each.
fn all() -> Vec<Unauthenticated> {
    let issuer = IssuerName::parse("corp").unwrap();
    let key = KeyId::parse("k1").unwrap();
    vec![
        Unauthenticated::Missing,
        Unauthenticated::OtherScheme,
        Unauthenticated::Malformed { what: "x" },
        Unauthenticated::TooLong { length: 2, max: 1 },
        Unauthenticated::UnknownIssuer {
            iss: "secret-iss".to_owned(),
        },
        Unauthenticated::NoKeySet {
            issuer: issuer.clone(),
        },
        Unauthenticated::UnknownKey {
            issuer: issuer.clone(),
            kid: Some("secret-kid".to_owned()),
        },
        Unauthenticated::UnknownKey {
            issuer: issuer.clone(),
            kid: None,
        },
        Unauthenticated::AlgorithmRefused {
            alg: "secret-alg".to_owned(),
            allowed: vec![Algorithm::Rs256],
        },
        Unauthenticated::AlgorithmRefused {
            alg: "secret-alg".to_owned(),
            allowed: vec![],
        },
        Unauthenticated::BadSignature {
            issuer: issuer.clone(),
        },
        Unauthenticated::Expired {
            issuer: issuer.clone(),
            at: at(0),
        },
        Unauthenticated::NotYetValid {
            issuer: issuer.clone(),
            at: at(0),
        },
        Unauthenticated::WrongAudience {
            issuer,
            expected: vec!["secret-aud".to_owned()],
        },
        Unauthenticated::WrongType {
            typ: "secret-typ".to_owned(),
        },
        Unauthenticated::Critical { parameter: "crit" },
        Unauthenticated::ClaimInvalid {
            claim: "secret-claim".to_owned(),
            expected: "x",
        },
        Unauthenticated::ScopeMissing {
            scopes: vec!["a".to_owned(), "b".to_owned()],
        },
        Unauthenticated::KeyUnknown { key: key.clone() },
        Unauthenticated::KeyMismatch { key: key.clone() },
        Unauthenticated::KeyRevoked {
            key: key.clone(),
            at: at(0),
        },
        Unauthenticated::KeyExpired {
            key: key.clone(),
            at: at(0),
        },
        Unauthenticated::DirectoryStale,
        Unauthenticated::CallerUnknown {
            key,
            caller: CallerName::parse("ci").unwrap(),
        },
    ]
}

#[test]
fn a_bearer_token_is_taken_out_of_its_header() {
    for (header, token) in [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER abc", "abc"),
        ("Bearer   abc", "abc"),
        ("Bearer abc==", "abc=="),
        ("Bearer aZ09-._~+/=", "aZ09-._~+/="),
    ] {
        assert_eq!(bearer(Some(header.as_bytes())), Ok(token), "{header}");
    }
}

#[test]
fn what_is_not_exactly_one_token_is_refused() {
    assert_eq!(bearer(None), Err(Unauthenticated::Missing));
    for header in [
        "",
        "Basic YTpi",
        "abc",
        "Bearerabc",
        "Bearer\tabc",
        "Bea rer abc",
        " Bearer abc",
        "DPoP abc",
    ] {
        assert_eq!(
            bearer(Some(header.as_bytes())),
            Err(Unauthenticated::OtherScheme),
            "{header:?}"
        );
    }
    for header in [
        &b"Bearer"[..],
        b"Bearer ",
        b"Bearer    ",
        b"Bearer abc def",
        b"Bearer abc, Bearer def",
        b"Bearer abc,def",
        b"Bearer abc ",
        b"Bearer a\tb",
        b"Bearer \"abc\"",
        b"Bearer =",
        b"Bearer a=b",
        b"Bearer token=abc",
        b"Bearer abc\r\n",
        b"Bearer \xc3\xa4",
        b"Bearer \xff",
        b"Bearer a%20b",
    ] {
        assert!(
            matches!(bearer(Some(header)), Err(Unauthenticated::Malformed { .. })),
            "{header:?}"
        );
    }
}

#[test]
fn the_status_says_whose_turn_it_is() {
    for fault in all() {
        let expected = match fault {
            Unauthenticated::ScopeMissing { .. } => 403,
            Unauthenticated::NoKeySet { .. } | Unauthenticated::DirectoryStale => 503,
            _ => 401,
        };
        assert_eq!(fault.status(), expected, "{fault:?}");
    }
}

#[test]
fn the_caller_reads_static_words_and_the_operator_reads_all() {
    for fault in all() {
        let shown = challenge(Some(METADATA), &fault, None);
        for hidden in ["secret", "corp", "k1", "ci\""] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        let text = fault.for_operator();
        assert!(!text.ends_with('.') && !text.is_empty(), "{text}");
        assert_eq!(text, fault.to_string());
    }
    let unknown = Unauthenticated::UnknownIssuer {
        iss: "secret-iss".to_owned(),
    };
    assert!(unknown.for_operator().contains("`secret-iss`"));
}

#[test]
fn a_challenge_names_no_error_where_no_credential_was_presented() {
    for fault in [Unauthenticated::Missing, Unauthenticated::OtherScheme] {
        assert_eq!(
            challenge(Some(METADATA), &fault, Some("mcp:call mcp:list")),
            format!(r#"Bearer scope="mcp:call mcp:list", resource_metadata="{METADATA}""#)
        );
        assert_eq!(challenge(None, &fault, None), r#"Bearer realm="tollhouse""#);
        assert_eq!(challenge(None, &fault, Some("")), r#"Bearer realm="tollhouse""#);
    }
    assert_eq!(
        challenge(Some(METADATA), &Unauthenticated::Malformed { what: "x" }, None),
        format!(
            r#"Bearer error="invalid_token", error_description="the credential is malformed", resource_metadata="{METADATA}""#
        )
    );
}

#[test]
fn missing_scopes_are_all_named_at_once() {
    let fault = Unauthenticated::ScopeMissing {
        scopes: vec!["mcp:call".to_owned(), "mcp:list".to_owned()],
    };
    assert_eq!(
        challenge(Some(METADATA), &fault, Some("ignored")),
        format!(
            r#"Bearer error="insufficient_scope", error_description="the access token lacks a scope that is needed here", scope="mcp:call mcp:list", resource_metadata="{METADATA}""#
        )
    );
}

#[test]
fn a_configured_text_cannot_leave_its_quotes() {
    let value = challenge(
        Some("https://x/\"\\\r\nSet-Cookie: a=b\u{e9}"),
        &Unauthenticated::Missing,
        Some("a\" realm=\"x\0"),
    );
    assert_eq!(
        value,
        r#"Bearer scope="a\" realm=\"x", resource_metadata="https://x/\"\\Set-Cookie: a=b""#
    );
}

#[test]
fn the_metadata_document_is_that_of_rfc_9728() {
    let mut metadata = ResourceMetadata::new(
        "https://mcp.example.com/mcp",
        vec!["https://idp.example.com".to_owned()],
    );
    let read = |metadata: &ResourceMetadata| serde_json::from_str::<Value>(&metadata.to_json()).unwrap();
    assert_eq!(
        read(&metadata),
        json!({
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["https://idp.example.com"],
            "bearer_methods_supported": ["header"],
        })
    );
    metadata.scopes_supported = vec!["mcp:call".to_owned()];
    metadata.resource_name = Some("Invoices".to_owned());
    metadata.resource_documentation = Some("https://example.com/docs".to_owned());
    assert_eq!(
        read(&metadata),
        json!({
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["https://idp.example.com"],
            "scopes_supported": ["mcp:call"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Invoices",
            "resource_documentation": "https://example.com/docs",
        })
    );
}
