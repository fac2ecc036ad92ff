//! The command `token`: an issuer that exists for one measurement. It writes its key set and one access token, and is gone.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use serde_json::{Map, Value, json};

use crate::Verdict;

/// Longer than any measurement.
const LIFETIME_SECONDS: u64 = 86_400;

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// Write `keys.json` and `token` into this folder
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,

    /// The `iss` of the token
    #[arg(long, value_name = "URL")]
    issuer: String,

    /// The `aud` of the token
    #[arg(long, value_name = "URL")]
    audience: String,

    /// A further claim, with JSON as value; may be given several times
    #[arg(long = "claim", value_name = "NAME=JSON", value_parser = claim)]
    claims: Vec<(String, Value)>,
}

/// Parses `roles=["member"]`.
fn claim(text: &str) -> Result<(String, Value), String> {
    text.split_once('=')
        .and_then(|(name, value)| Some((name.to_owned(), serde_json::from_str(value).ok()?)))
        .ok_or_else(|| format!("claim `{text}` is none; write NAME=JSON, as roles=[\"member\"]"))
}

pub(crate) fn token(options: &TokenOptions) -> anyhow::Result<Verdict> {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("no key could be made")?;
    // An uncompressed point: a byte 4, then x and y.
    let point = pair.der_bytes();
    let (Some(x), Some(y)) = (point.get(1..33), point.get(33..65)) else {
        bail!("the key has a form that is not expected");
    };
    let keys = json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "bench",
        "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
    }] });
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut claims = Map::from_iter([
        ("iss".to_owned(), json!(options.issuer)),
        ("aud".to_owned(), json!(options.audience)),
        ("sub".to_owned(), json!("bench")),
        ("iat".to_owned(), json!(now)),
        ("exp".to_owned(), json!(now.saturating_add(LIFETIME_SECONDS))),
    ]);
    claims.extend(options.claims.iter().cloned());
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some("bench".to_owned());
    let key = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes())?;
    let token = jsonwebtoken::encode(&header, &claims, &key)?;
    write(&options.folder.join("keys.json"), &keys.to_string())?;
    write(&options.folder.join("token"), &token)?;
    Ok(Verdict::Sound)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_a_name_and_json() {
        assert_eq!(
            claim(r#"roles=["a","b=c"]"#),
            Ok(("roles".to_owned(), json!(["a", "b=c"])))
        );
        for wrong in ["roles", "roles=member", "="] {
            assert!(claim(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_token_is_signed_with_a_key_of_the_set() {
        let folder = tempfile::tempdir().unwrap();
        let options = TokenOptions {
            folder: folder.path().to_owned(),
            issuer: "https://issuer.example".to_owned(),
            audience: "https://gate.example/mcp".to_owned(),
            claims: vec![("org_id".to_owned(), json!("north"))],
        };
        token(&options).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let set: jsonwebtoken::jwk::JwkSet = serde_json::from_str(&read("keys.json")).unwrap();
        let key = jsonwebtoken::DecodingKey::from_jwk(set.find("bench").unwrap()).unwrap();
        let mut validation = jsonwebtoken::Validation::new(Algorithm::ES256);
        validation.set_audience(&["https://gate.example/mcp"]);
        let decoded = jsonwebtoken::decode::<Value>(read("token"), &key, &validation).unwrap();
        assert_eq!(decoded.claims["org_id"], "north");
        assert_eq!(decoded.claims["iss"], "https://issuer.example");
    }
}
