//! Tokens that Tollhouse gets for itself: OAuth 2.0 client credentials (RFC 6749 section 4.4), kept until shortly before
//! they expire, got once for all calls that wait. It attaches nothing; that is `credential.rs`.
//!
//! The token endpoint is the operator's word, never the document's: whoever could choose it would be sent the secret.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use config::{ClientMethod, OAuthSettings, TokenEndpoint};
use egress::{Client, ClientOptions, EgressFault, Network};
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use model::{JsonLimits, Limits, Value, parse_foreign};
use percent_encoding::utf8_percent_encode;
use secrecy::ExposeSecret as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

use crate::credential::{CredentialFault, Needles, STRICT, sensitive};

/// The longest answer of a token endpoint that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The longest token that is used.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// How long a failure is believed: calls that come meanwhile are told the same, and the endpoint is not asked again.
const BACK_OFF: Duration = Duration::from_secs(1);

/// A token is not used in the last part of its life, so that it does not expire on the way.
const MARGIN_MAX: Duration = Duration::from_secs(30);

/// What holds where the endpoint does not say how long a token lives, and the longest life that is believed.
const LIFE_UNSAID: Duration = Duration::from_secs(300);
const LIFE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// How long the answer of a discovery document is believed.
const DISCOVERY_LIFE: Duration = Duration::from_secs(3_600);

/// Tokens beyond those in use that are still looked for in answers.
const PAST_TOKENS_MAX: usize = 8;

/// Where one credential's tokens come from.
pub(crate) struct TokenSource {
    client: Client,
    endpoint: TokenEndpoint,
    authorization: Option<HeaderValue>,
    /// The body of a request but for the scopes.
    body: String,
    fixed_scopes: Option<Vec<String>>,
    timeout: Duration,
    grants: Mutex<HashMap<String, Arc<Grant>>>,
    discovered: Mutex<Option<(Uri, Instant)>>,
    /// The newest tokens, those in use among them.
    seen: ArcSwap<Vec<Arc<Token>>>,
    secrets: Needles,
}

/// A token in use.
pub(crate) struct Token {
    pub(crate) authorization: HeaderValue,
    needles: Needles,
    fresh_until: Instant,
}

/// The token for one set of scopes.
struct Grant {
    scope: String,
    /// Who has it may ask the endpoint. Not a lock around anything: it is only ever waited for, and whoever is dropped
    /// while asking gives it back, so that the next one asks.
    turn: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Arc<Token>>,
    failed: Option<(Instant, TokenFault)>,
}

/// Why there is no token. Names no secret and nothing that the endpoint said in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// No answer.
    #[error("the token endpoint gave no answer: {0}")]
    Egress(#[from] EgressFault),
    /// It answered that there is none.
    #[error("the token endpoint answered {status}{}", said(.error))]
    Refused {
        /// Its status.
        status: u16,
        /// The error of RFC 6749 section 5.2 that it gave.
        error: Option<&'static str>,
    },
    /// What it answered is no token.
    #[error("the answer of the token endpoint is no token: {0}")]
    Shape(&'static str),
    /// The document of OpenID Connect cannot be used.
    #[error("the discovery document cannot be used: {0}")]
    Discovery(&'static str),
}

fn said(error: &Option<&'static str>) -> String {
    error.map_or_else(String::new, |error| format!(" (`{error}`)"))
}

/// The errors of RFC 6749 section 5.2. Another text of the endpoint could hold anything.
const ERRORS: [&str; 6] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
];

impl TokenSource {
    /// Sets a source up; asks for nothing.
    pub(crate) fn new(settings: &OAuthSettings, limits: &Limits) -> Result<Self, CredentialFault> {
        let network = Network::allowing(settings.network.allow.clone());
        let mut options = ClientOptions::new(network, limits);
        options.ca_pem = settings.tls.ca.as_ref().map(|file| file.bytes.clone());
        let client = Client::new(options).map_err(CredentialFault::Client)?;
        let secret = settings.client_secret.expose_secret();
        let (id, encoded) = (form(&settings.client_id), form(secret));
        let mut body = "grant_type=client_credentials".to_owned();
        let pair = STANDARD.encode(format!("{id}:{encoded}"));
        let authorization = match settings.method {
            ClientMethod::Basic => Some(sensitive(&format!("Basic {pair}"))?),
            ClientMethod::Post => {
                body.push_str(&format!("&client_id={id}&client_secret={encoded}"));
                None
            }
        };
        for (name, value) in &settings.parameters {
            body.push_str(&format!("&{}={}", form(name), form(value)));
        }
        Ok(Self {
            client,
            endpoint: settings.endpoint.clone(),
            authorization,
            body,
            fixed_scopes: settings.scopes.clone(),
            timeout: settings.timeout,
            grants: Mutex::default(),
            discovered: Mutex::default(),
            seen: ArcSwap::default(),
            secrets: Needles::of(&[secret, &pair]),
        })
    }

    /// A token for these scopes that is fresh for a while.
    ///
    /// Dropping the future leaves the endpoint to the next one who waits.
    ///
    /// # Errors
    /// [`TokenFault`], also the one of a moment ago.
    pub(crate) async fn token(&self, scopes: &[String], deadline: Instant) -> Result<Arc<Token>, TokenFault> {
        let late = TokenFault::Egress(EgressFault::Timeout {
            sent: false,
            phase: egress::Phase::Connect,
        });
        match tokio::time::timeout_at(deadline, self.wait(scopes)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(late),
        }
    }

    async fn wait(&self, scopes: &[String]) -> Result<Arc<Token>, TokenFault> {
        let grant = self.grant(scopes);
        if let Some(known) = grant.known() {
            return known;
        }
        // It is never closed, and if it were, asking without a turn would still be right.
        let _turn = grant.turn.acquire().await;
        // Whoever had the turn before may have got it for all.
        if let Some(known) = grant.known() {
            return known;
        }
        let outcome = self.fetch(&grant.scope).await;
        let mut state = grant.lock();
        match &outcome {
            Ok(token) => {
                *state = State {
                    token: Some(Arc::clone(token)),
                    failed: None,
                };
                drop(state);
                self.remember(token);
            }
            Err(fault) => state.failed = Some((Instant::now() + BACK_OFF, fault.clone())),
        }
        outcome
    }

    /// Gives up a token that the service did not take. Another one that was got meanwhile stays.
    pub(crate) fn reject(&self, scopes: &[String], token: &Arc<Token>) {
        let grant = self.grant(scopes);
        let mut state = grant.lock();
        if state
            .token
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, token))
        {
            state.token = None;
        }
    }

    /// Whether bytes repeat the secret, or a token of late.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.secrets.are_in(bytes) || self.seen.load().iter().any(|token| token.needles.are_in(bytes))
    }

    /// Scopes come from documents and the configuration, never from a caller, so there are not many sets of them.
    fn grant(&self, scopes: &[String]) -> Arc<Grant> {
        let scope = self.fixed_scopes.as_deref().unwrap_or(scopes).join(" ");
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let grant = grants.entry(scope.clone()).or_insert_with(|| {
            Arc::new(Grant {
                scope,
                turn: Semaphore::new(1),
                state: Mutex::default(),
            })
        });
        Arc::clone(grant)
    }

    fn remember(&self, token: &Arc<Token>) {
        let grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.seen.rcu(|seen| {
            let kept = seen.iter().rev().take(grants + PAST_TOKENS_MAX).rev();
            kept.chain([token]).cloned().collect::<Vec<_>>()
        });
    }

    async fn fetch(&self, scope: &str) -> Result<Arc<Token>, TokenFault> {
        let deadline = Instant::now() + self.timeout;
        let uri = self.endpoint(deadline).await?;
        let mut body = self.body.clone();
        if !scope.is_empty() {
            body.push_str(&format!("&scope={}", form(scope)));
        }
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("tollhouse/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        // Its life begins when it is asked for: what the way takes is lost, not won.
        let asked = Instant::now();
        let answer = self.client.send(request, deadline).await?;
        let status = answer.status.as_u16();
        let body = answer.read(ANSWER_BYTES_MAX, deadline).await?;
        if status != 200 {
            let error = json(&body).and_then(|body| {
                let said = body.get("error")?.as_str()?.to_owned();
                ERRORS.iter().find(|error| **error == said).copied()
            });
            return Err(TokenFault::Refused { status, error });
        }
        tracing::debug!(scope, "a token was got");
        token(&body, asked)
    }

    async fn endpoint(&self, deadline: Instant) -> Result<Uri, TokenFault> {
        let url = match &self.endpoint {
            TokenEndpoint::Url(url) => return uri(url),
            TokenEndpoint::Discovery(url) => url,
        };
        let known = self.discovered().clone();
        if let Some((uri, until)) = known
            && Instant::now() < until
        {
            return Ok(uri);
        }
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = uri(url)?;
        request
            .headers_mut()
            .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let answer = self.client.send(request, deadline).await?;
        if answer.status.as_u16() != 200 {
            return Err(TokenFault::Discovery("it is not there"));
        }
        let body = answer.read(ANSWER_BYTES_MAX, deadline).await?;
        let found = discovered(url, &body)?;
        *self.discovered() = Some((found.clone(), Instant::now() + DISCOVERY_LIFE));
        Ok(found)
    }

    fn discovered(&self) -> std::sync::MutexGuard<'_, Option<(Uri, Instant)>> {
        self.discovered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

// === impl Grant ===

impl Grant {
    /// The token in use, or the fault of a moment ago.
    fn known(&self) -> Option<Result<Arc<Token>, TokenFault>> {
        let state = self.lock();
        let now = Instant::now();
        if let Some(token) = state.token.as_ref().filter(|token| now < token.fresh_until) {
            return Some(Ok(Arc::clone(token)));
        }
        let (until, fault) = state.failed.as_ref()?;
        (now < *until).then(|| Err(fault.clone()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === what comes back ===

/// Reads the answer of RFC 6749 section 5.1.
fn token(body: &[u8], asked: Instant) -> Result<Arc<Token>, TokenFault> {
    let body = json(body).ok_or(TokenFault::Shape("it is no JSON"))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let is_bearer = text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer {
        return Err(TokenFault::Shape("its `token_type` is not `Bearer`"));
    }
    let access = text("access_token").ok_or(TokenFault::Shape("it has no `access_token`"))?;
    let is_plain = !access.is_empty()
        && access.len() <= TOKEN_BYTES_MAX
        && access.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain {
        return Err(TokenFault::Shape(
            "its `access_token` cannot stand in a header, or is too long",
        ));
    }
    let life = match body.get("expires_in") {
        None | Some(Value::Null) => LIFE_UNSAID,
        // Some servers write the number as a text.
        Some(life) => life
            .as_u64()
            .or_else(|| life.as_str()?.parse().ok())
            .map(Duration::from_secs)
            .ok_or(TokenFault::Shape("its `expires_in` is no number of seconds"))?
            .min(LIFE_MAX),
    };
    Ok(Arc::new(Token {
        authorization: sensitive(&format!("Bearer {access}"))
            .map_err(|_| TokenFault::Shape("its `access_token` cannot stand in a header"))?,
        needles: Needles::of(&[access]),
        fresh_until: asked + life - MARGIN_MAX.min(life / 10),
    }))
}

/// Reads a document of OpenID Connect Discovery 1.0: its issuer is the one whose document was asked for (section 4.3),
/// and the secret goes nowhere that the operator could not have written.
fn discovered(asked: &Url, body: &[u8]) -> Result<Uri, TokenFault> {
    const WELL_KNOWN: &str = "/.well-known/openid-configuration";
    let body = json(body).ok_or(TokenFault::Discovery("it is no JSON"))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let issuer = text("issuer").ok_or(TokenFault::Discovery("it names no issuer"))?;
    if format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/')) != asked.as_str() {
        return Err(TokenFault::Discovery("its issuer is another one"));
    }
    let endpoint = text("token_endpoint").ok_or(TokenFault::Discovery("it names no token endpoint"))?;
    let endpoint = Url::parse(endpoint).map_err(|_| TokenFault::Discovery("its token endpoint is no URL"))?;
    let is_safe = endpoint.scheme() == "https"
        // Only an operator who wrote such a URL himself allows one: this very machine without TLS.
        || (asked.scheme() == "http" && endpoint.origin() == asked.origin());
    if !is_safe || !endpoint.username().is_empty() || endpoint.password().is_some() {
        return Err(TokenFault::Discovery(
            "its token endpoint is not https, or has a user name",
        ));
    }
    uri(&endpoint)
}

fn uri(url: &Url) -> Result<Uri, TokenFault> {
    let mut url = url.clone();
    url.set_fragment(None);
    url.as_str()
        .parse()
        .map_err(|_| TokenFault::Shape("its URL cannot be asked"))
}

fn json(body: &[u8]) -> Option<Value> {
    let limits = JsonLimits {
        bytes_max: ANSWER_BYTES_MAX,
        depth_max: 16,
    };
    parse_foreign(body, limits).ok()
}

/// A text in `application/x-www-form-urlencoded` (RFC 6749 appendix B): all but unreserved characters escaped.
fn form(text: &str) -> String {
    utf8_percent_encode(text, STRICT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Arc<Token>, TokenFault> {
        token(body.as_bytes(), Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_used_until_shortly_before_it_expires() {
        for (life, fresh) in [
            ("\"expires_in\":3600", 3_570),
            ("\"expires_in\":\"100\"", 90),
            ("\"expires_in\":10", 9),
            ("\"expires_in\":0", 0),
            ("\"expires_in\":99999999999", 24 * 3_600 - 30),
            ("\"expires_in\":null", 270),
            ("\"x\":1", 270),
        ] {
            let body = format!("{{\"access_token\":\"abcdefgh\",\"token_type\":\"bearer\",{life}}}");
            let token = read(&body).unwrap();
            assert_eq!(
                token.fresh_until - Instant::now(),
                Duration::from_secs(fresh),
                "{life}"
            );
            assert!(token.authorization.is_sensitive());
        }
    }

    #[test]
    fn what_is_no_bearer_token_is_none() {
        let long = "x".repeat(TOKEN_BYTES_MAX);
        let of = |token: &str| format!("{{\"access_token\":\"{token}\",\"token_type\":\"Bearer\"}}");
        assert!(read(&of(&long)).is_ok());
        for body in [
            of(&format!("{long}x")),
            of(""),
            of("a b"),
            of("a\\r\\nX: y"),
            of("\u{fc}"),
            "{\"access_token\":\"abc\"}".to_owned(),
            "{\"access_token\":\"abc\",\"token_type\":\"mac\"}".to_owned(),
            "{\"access_token\":7,\"token_type\":\"Bearer\"}".to_owned(),
            "{\"access_token\":\"abc\",\"token_type\":\"Bearer\",\"expires_in\":-1}".to_owned(),
            "access_token=abc&token_type=Bearer".to_owned(),
            "[]".to_owned(),
            String::new(),
        ] {
            assert!(matches!(read(&body), Err(TokenFault::Shape(_))), "{body}");
        }
    }

    #[test]
    fn a_discovery_document_names_its_own_issuer_and_a_safe_endpoint() {
        let asked = |text: &str| Url::parse(&format!("{text}/.well-known/openid-configuration")).unwrap();
        let of = |issuer: &str, endpoint: &str| {
            format!("{{\"issuer\":\"{issuer}\",\"token_endpoint\":\"{endpoint}\"}}")
        };
        for (from, issuer, endpoint, good) in [
            (
                "https://id.test/r",
                "https://id.test/r",
                "https://token.test/t",
                true,
            ),
            ("https://id.test", "https://id.test/", "https://id.test/t", true),
            (
                "http://127.0.0.1:9",
                "http://127.0.0.1:9",
                "http://127.0.0.1:9/t",
                true,
            ),
            (
                "http://127.0.0.1:9",
                "http://127.0.0.1:9",
                "http://127.0.0.1:8/t",
                false,
            ),
            (
                "https://id.test",
                "https://other.test",
                "https://id.test/t",
                false,
            ),
            ("https://id.test", "https://id.test", "http://id.test/t", false),
            (
                "https://id.test",
                "https://id.test",
                "https://u:p@id.test/t",
                false,
            ),
            ("https://id.test", "https://id.test", "file:///etc/passwd", false),
            ("https://id.test", "https://id.test", "", false),
        ] {
            let found = discovered(&asked(from), of(issuer, endpoint).as_bytes());
            assert_eq!(found.is_ok(), good, "{from} {issuer} {endpoint}: {found:?}");
        }
    }
}
