//! Access tokens: what each of them must say, who must have signed it, and what is read out of it.

use e2e::issuer::{Issuer, unsigned};
use e2e::orders;
use e2e::service::Service;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::{
    AUDIENCE, EXPIRED, MALFORMED, Post, REFUSED, assert_served, assert_turned_away, call, config, over,
};

const EARLY: &str = "the access token is not valid yet";
const ELSEWHERE: &str = "the access token is not for this server";
const OTHER_TYPE: &str = "the token is not an access token";

#[tokio::test]
async fn auth_06_a_token_that_does_not_hold_is_refused_and_the_service_is_not_asked() {
    let post = Post::build().await;
    let now = Timestamp::now().as_second();
    for (what, claims) in [
        ("good", json!({})),
        (
            "one of several audiences",
            json!({"aud":["https://else.example",AUDIENCE]}),
        ),
        ("just ended, within the leeway", json!({"exp":now - 1})),
        (
            "about to begin, within the leeway",
            json!({"nbf":now + 5,"iat":now + 5}),
        ),
        ("a fraction of a second", json!({"exp":now as f64 + 60.5})),
        ("no roles", json!({"roles":null})),
    ] {
        assert_served(what, &post.bearer(&post.token(claims)).await);
    }
    let served = post.service.count();
    assert_eq!(served, 6);

    let cases = [
        ("expired", json!({"exp":now - 3_600}), EXPIRED),
        ("expired, just past the leeway", json!({"exp":now - 40}), EXPIRED),
        ("not yet", json!({"nbf":now + 3_600}), EARLY),
        ("issued in the future", json!({"iat":now + 3_600}), EARLY),
        ("without end", json!({"exp":null}), REFUSED),
        (
            "an end that is a text",
            json!({"exp":(now + 60).to_string()}),
            REFUSED,
        ),
        (
            "an end that no clock shows",
            json!({"exp":9_007_199_254_740_991_i64}),
            REFUSED,
        ),
        ("an end beyond all bounds", json!({"exp":1e300}), MALFORMED),
        ("a beginning that is a text", json!({"nbf":"now"}), REFUSED),
        (
            "another audience",
            json!({"aud":"https://other.example/mcp"}),
            ELSEWHERE,
        ),
        (
            "a slash behind the audience",
            json!({"aud":format!("{AUDIENCE}/")}),
            ELSEWHERE,
        ),
        (
            "an audience without its path",
            json!({"aud":"https://gate.example"}),
            ELSEWHERE,
        ),
        (
            "a longer audience",
            json!({"aud":format!("{AUDIENCE}2")}),
            ELSEWHERE,
        ),
        (
            "the audience in capitals",
            json!({"aud":AUDIENCE.to_uppercase()}),
            ELSEWHERE,
        ),
        (
            "the audience without TLS",
            json!({"aud":AUDIENCE.replace("https", "http")}),
            ELSEWHERE,
        ),
        (
            "the audience with a port",
            json!({"aud":"https://gate.example:443/mcp"}),
            ELSEWHERE,
        ),
        (
            "the audience with a space",
            json!({"aud":format!(" {AUDIENCE}")}),
            ELSEWHERE,
        ),
        (
            "the address that it listens on",
            json!({"aud":post.gate.url}),
            ELSEWHERE,
        ),
        (
            "several other audiences",
            json!({"aud":["https://a.example","https://b.example"]}),
            ELSEWHERE,
        ),
        ("no audience in a list", json!({"aud":[]}), ELSEWHERE),
        ("no audience", json!({"aud":null}), REFUSED),
        (
            "an audience that is no text",
            json!({"aud":{"is":AUDIENCE}}),
            REFUSED,
        ),
        (
            "a number among the audiences",
            json!({"aud":[AUDIENCE, 7]}),
            REFUSED,
        ),
        ("another issuer", json!({"iss":"https://other.example"}), REFUSED),
        (
            "a slash behind the issuer",
            json!({"iss":format!("{}/", post.issuer.url)}),
            REFUSED,
        ),
        ("no issuer", json!({"iss":null}), REFUSED),
        (
            "an issuer that is a list",
            json!({"iss":[post.issuer.url]}),
            REFUSED,
        ),
        (
            "the issuer of configured callers",
            json!({"iss":"configuration"}),
            REFUSED,
        ),
        ("no subject", json!({"sub":null}), REFUSED),
        ("an empty subject", json!({"sub":""}), REFUSED),
        ("a subject that is a number", json!({"sub":7}), REFUSED),
        ("a subject with a line break", json!({"sub":"ada\nbob"}), REFUSED),
        (
            "a subject with a hidden character",
            json!({"sub":"ada\u{200b}"}),
            REFUSED,
        ),
        ("a tenant that is a number", json!({"org_id":7}), REFUSED),
        ("a tenant that is a list", json!({"org_id":["north"]}), REFUSED),
        ("a tenant with a space", json!({"org_id":"north south"}), REFUSED),
        ("roles that are a number", json!({"roles":7}), REFUSED),
        ("a role that is a number", json!({"roles":["member", 7]}), REFUSED),
        (
            "a claim of the operator's that is an object",
            json!({"accounts":{"o-1":true}}),
            REFUSED,
        ),
    ];
    for (what, claims, description) in cases {
        assert_turned_away(what, &post.bearer(&post.token(claims)).await, Some(description));
    }
    assert_eq!(post.service.count(), served);
    let ledger = post.house.ledger().await;
    assert_eq!(ledger.of_kind("intent").len(), served);
    assert!(ledger.refusals().iter().all(|code| *code == "unauthenticated"));
    post.close().await;
}

#[tokio::test]
async fn auth_06_a_token_that_the_issuers_key_did_not_sign_as_it_must_is_refused() {
    let post = Post::build().await;
    let other = Issuer::start().await;
    let kid = post.issuer.kid();
    let claims = post.issuer.claims(over(json!({})));
    let header = |more: Value| {
        let mut header = json!({"alg":"ES256","typ":"JWT","kid":kid});
        let object = header.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        object.retain(|_, value| !value.is_null());
        header
    };
    let sign = |more: Value| post.issuer.signed(&header(more), &claims);
    for more in [
        json!({}),
        json!({"typ":"at+jwt"}),
        json!({"typ":"application/at+jwt"}),
        json!({"typ":null}),
        json!({"kid":null}),
        // Where keys are said to be is never looked at.
        json!({"jku":format!("{}/jwks.json", other.url)}),
    ] {
        assert_served(&more.to_string(), &post.bearer(&sign(more.clone())).await);
    }
    let served = post.service.count();

    // What an attacker knows is the public key; with it as a shared secret, anybody could sign.
    let (pem, point) = post.issuer.public_key();
    let with_secret = |alg: &str, algorithm, secret: &[u8]| {
        let message = unsigned(&header(json!({"alg":alg})).to_string(), &claims.to_string());
        let key = EncodingKey::from_secret(secret).unwrap();
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, algorithm).unwrap();
        format!("{message}.{signature}")
    };
    let good = sign(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let foreign = other.signed(&header(json!({})), &claims);
    let foreign_signature = foreign.rsplit('.').next().unwrap();
    let payload = |claims: &Value| {
        unsigned("", &claims.to_string())
            .trim_start_matches('.')
            .to_owned()
    };
    let mallory = payload(&post.issuer.claims(over(json!({"org_id":"south"}))));
    let none = |alg: &str| unsigned(&header(json!({"alg":alg})).to_string(), &claims.to_string());
    let twice = claims.to_string().replacen('{', "{\"org_id\":\"south\",", 1);
    let attackers_key = other.signed(
        &header(json!({"jwk":{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},"jku":format!("{}/jwks.json", other.url),"kid":"theirs"})),
        &claims,
    );
    let cases = [
        ("no signature, alg none", format!("{}.", none("none")), REFUSED),
        ("no signature, alg None", format!("{}.", none("None")), REFUSED),
        (
            "a signature, alg none",
            format!("{}.{}", none("none"), parts[2]),
            REFUSED,
        ),
        (
            "HS256 with the public key as PEM",
            with_secret("HS256", Algorithm::HS256, pem.as_bytes()),
            REFUSED,
        ),
        (
            "HS256 with the point of the public key",
            with_secret("HS256", Algorithm::HS256, &point),
            REFUSED,
        ),
        (
            "HS512 with the public key as PEM",
            with_secret("HS512", Algorithm::HS512, pem.as_bytes()),
            REFUSED,
        ),
        (
            "ES256 by name, HS256 in fact",
            with_secret("ES256", Algorithm::HS256, pem.as_bytes()),
            REFUSED,
        ),
        ("RS256 by name", sign(json!({"alg":"RS256"})), REFUSED),
        ("ES384 by name", sign(json!({"alg":"ES384"})), REFUSED),
        ("an unknown algorithm", sign(json!({"alg":"XX999"})), REFUSED),
        ("no algorithm", sign(json!({"alg":null})), MALFORMED),
        (
            "an algorithm that is no text",
            sign(json!({"alg":["ES256"]})),
            MALFORMED,
        ),
        ("an unknown key", sign(json!({"kid":"nobody"})), REFUSED),
        ("a key id that is no text", sign(json!({"kid":7})), MALFORMED),
        ("something critical", sign(json!({"crit":["exp"]})), REFUSED),
        ("an unencoded payload", sign(json!({"b64":false})), REFUSED),
        (
            "a proof of possession",
            sign(json!({"typ":"dpop+jwt"})),
            OTHER_TYPE,
        ),
        (
            "an id assertion",
            sign(json!({"typ":"oauth-id-jag+jwt"})),
            OTHER_TYPE,
        ),
        ("the key of another issuer", foreign.clone(), REFUSED),
        ("a key that the token brings along", attackers_key, REFUSED),
        (
            "another signature",
            format!("{}.{}.{foreign_signature}", parts[0], parts[1]),
            REFUSED,
        ),
        ("no signature", format!("{}.{}.", parts[0], parts[1]), REFUSED),
        (
            "half a signature",
            format!("{}.{}.{}", parts[0], parts[1], &parts[2][..40]),
            REFUSED,
        ),
        (
            "an altered payload",
            format!("{}.{mallory}.{}", parts[0], parts[2]),
            REFUSED,
        ),
        (
            "a claim that stands twice",
            post.issuer.signed_text(&header(json!({})).to_string(), &twice),
            MALFORMED,
        ),
        ("two parts", format!("{}.{}", parts[0], parts[1]), MALFORMED),
        ("four parts", format!("{good}.{}", parts[2]), MALFORMED),
        (
            "a payload that is a list",
            post.issuer.signed_text(&header(json!({})).to_string(), "[]"),
            MALFORMED,
        ),
        ("nonsense", "nonsense".to_owned(), MALFORMED),
        ("the header alone", parts[0].to_owned(), MALFORMED),
        ("padding", format!("{good}="), MALFORMED),
    ];
    for (what, token, description) in cases {
        assert_turned_away(what, &post.bearer(&token).await, Some(description));
    }
    assert_eq!(post.service.count(), served);
    assert_eq!(other.fetches(), 0, "nobody asks where a token says that keys are");
    // A refusal does not poison what is remembered of good tokens.
    assert_served("good again", &post.bearer(&good).await);
    post.close().await;
}

#[tokio::test]
async fn a_token_is_read_at_its_longest_and_not_one_byte_past_it() {
    // The claims are padded until the token has a length that can grow by exactly one byte.
    let issuer = Issuer::start().await;
    let padded = |length: usize| issuer.token(over(json!({"pad":"x".repeat(length)})));
    let (max, over) = (1_500..1_520)
        .map(|length| (padded(length), padded(length + 1)))
        .find(|(one, next)| next.len() == one.len() + 1)
        .unwrap();
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let limits = format!("{}\n[limits]\ntoken_bytes_max = {}\n", config(&issuer), max.len());
    house.write("tollhouse.toml", limits);
    let gate = house.serve().await;
    assert_served(
        "at the limit",
        &call(&gate.url, &[&format!("Bearer {max}")]).await,
    );
    let answer = call(&gate.url, &[&format!("Bearer {over}")]).await;
    assert_turned_away("one past it", &answer, Some(MALFORMED));
    gate.logged(&format!(
        "the credential has {} bytes; at most {} are read",
        over.len(),
        max.len()
    ))
    .await;
    assert_eq!(service.count(), 1);
    gate.close().await;
}

#[tokio::test]
async fn claims_mean_what_the_operator_says_they_mean() {
    let post = Post::with(|config| {
        config.replace(
            "claims = { subject = \"sub\", tenant = \"org_id\", roles = \"roles\", client = \"azp\", extra = [\"accounts\"] }",
            "claims = { subject = \"sub\", tenant = \"org.id\", roles = \"realm_access.roles\", client = \"azp\" }",
        )
    })
    .await;
    for (roles, expected) in [
        (json!(["member", "auditor"]), json!(["auditor", "member"])),
        (json!("member auditor"), json!(["auditor", "member"])),
        (json!("member"), json!(["member"])),
    ] {
        let token = post.token(json!({
            "org":{"id":"north"}, "realm_access":{"roles":roles}, "azp":"ide",
            // What the operator did not name means nothing.
            "org_id":"south", "roles":["admin"], "tenant":"south",
        }));
        assert_served("claims", &post.bearer(&token).await);
        let ledger = post.house.ledger().await;
        let actor = &ledger.of_kind("intent").last().unwrap()["actor"];
        assert_eq!(
            *actor,
            json!({"client":"ide","issuer":"corp","roles":expected,"subject":"ada","tenant":"north"})
        );
    }
    // Without a tenant there is no owner who could be the same, so that for this caller there is no such tool.
    let answer = post
        .bearer(&post.token(json!({"realm_access":{"roles":["member"]}})))
        .await;
    assert_eq!(
        answer.json()["error"]["message"],
        "unknown tool `orders_read`",
        "{}",
        answer.text()
    );
    assert_eq!(post.house.ledger().await.refusals(), ["not-permitted"]);
    // A path through something that is no object is a fault, not an absence.
    let answer = post.bearer(&post.token(json!({"org":"north"}))).await;
    assert_turned_away("a text on the way", &answer, Some(REFUSED));
    assert_eq!(post.service.count(), 3);
    post.close().await;
}

#[tokio::test]
async fn auth_17_a_token_that_lacks_a_scope_is_told_which() {
    let post = Post::with(|config| {
        config.replace("key_set =", "scopes_required = [\"tickets\", \"mcp\"]\nkey_set =")
    })
    .await;
    for scopes in [
        json!({"scope":"mcp tickets other"}),
        json!({"scp":["tickets","mcp"]}),
    ] {
        assert_served(
            &scopes.to_string(),
            &post.bearer(&post.token(scopes.clone())).await,
        );
    }
    for scopes in [
        json!({}),
        json!({"scope":"tickets"}),
        json!({"scope":"tickets-mcp"}),
        json!({"scope":"TICKETS MCP"}),
        json!({"scp":["tickets mcp"]}),
    ] {
        let answer = post.bearer(&post.token(scopes.clone())).await;
        assert_eq!(answer.status, 403, "{scopes}: {}", answer.text());
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("Bearer error=\"insufficient_scope\"")
                && challenge.contains("scope=\"tickets mcp\"")
                && challenge.contains("resource_metadata="),
            "{scopes}: {challenge}"
        );
        assert_eq!(answer.json()["error"], "insufficient_scope", "{scopes}");
    }
    // AUTH-04: whoever has no token learns what to ask for, and a bad token is not told that it lacks a scope.
    let answer = post.call(&[]).await;
    assert!(
        answer
            .header("www-authenticate")
            .unwrap()
            .contains("scope=\"tickets mcp\"")
    );
    let answer = post
        .bearer(&post.token(json!({"aud":"https://other.example"})))
        .await;
    assert_turned_away("another audience", &answer, Some(ELSEWHERE));
    assert_eq!(post.service.count(), 2);
    post.close().await;
}
