//! The key sets of token issuers: fetched, kept for a while, fetched once for many who wait.
//!
//! A set that could not be fetched in time is not used beyond its age: then tokens of that issuer are refused. Which
//! key fits which token is decided in `identity`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use egress::Client;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use identity::{KeySet, KeySets};
use model::{IssuerName, Limits};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long one fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after a fetch an unknown key does not cause another: whoever sends made-up key ids must not be able to make
/// us ask the issuer each time.
const PAUSE: Duration = Duration::from_secs(10);

/// Where the key set of an issuer comes from.
#[derive(Debug, Clone)]
pub enum KeySetSource {
    /// It was in a file, read at start.
    Fixed(Arc<KeySet>),
    /// It is fetched.
    Url {
        /// The client, with the network that the issuer may be in.
        client: Client,
        /// The address.
        uri: Uri,
        /// How long a set is used.
        age_max: Duration,
    },
}

/// Keeps the key sets of all issuers.
pub struct KeySetKeeper {
    kept: HashMap<IssuerName, Kept>,
    limits: Limits,
}

struct Kept {
    source: KeySetSource,
    current: ArcSwapOption<Fetched>,
    /// When the last fetch began. Held during a fetch, so that there is one at a time.
    last: Mutex<Option<Instant>>,
}

struct Fetched {
    set: Arc<KeySet>,
    at: Instant,
}

impl KeySetKeeper {
    /// A keeper of these sets. Fetches nothing yet.
    #[must_use]
    pub fn new(sources: HashMap<IssuerName, KeySetSource>, limits: &Limits) -> Self {
        let kept = sources
            .into_iter()
            .map(|(name, source)| {
                let current = ArcSwapOption::empty();
                if let KeySetSource::Fixed(set) = &source {
                    current.store(Some(Arc::new(Fetched {
                        set: Arc::clone(set),
                        at: Instant::now(),
                    })));
                }
                (
                    name,
                    Kept {
                        source,
                        current,
                        last: Mutex::new(None),
                    },
                )
            })
            .collect();
        Self {
            kept,
            limits: limits.clone(),
        }
    }

    /// Fetches the set of an issuer anew, unless that was just done. Many who ask at once cause one fetch.
    ///
    /// Gives whether a set was fetched since this was called or shortly before: whether looking again can help.
    pub async fn refresh(&self, issuer: &IssuerName) -> bool {
        let Some(kept) = self.kept.get(issuer) else {
            return false;
        };
        let KeySetSource::Url { client, uri, .. } = &kept.source else {
            return false;
        };
        let asked = Instant::now();
        let mut last = kept.last.lock().await;
        // Whoever waited for the lock gets what the one before fetched.
        let fetched_meanwhile = kept
            .current
            .load()
            .as_ref()
            .is_some_and(|fetched| fetched.at >= asked);
        if fetched_meanwhile {
            return true;
        }
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return false;
        }
        *last = Some(asked);
        match fetch(client, uri, &self.limits).await {
            Ok(set) => {
                kept.current.store(Some(Arc::new(Fetched {
                    set: Arc::new(set),
                    at: Instant::now(),
                })));
                tracing::info!(%issuer, "the key set was fetched");
                true
            }
            Err(why) => {
                tracing::warn!(%issuer, %why, "the key set could not be fetched");
                false
            }
        }
    }

    /// Fetches every set that is missing or past four fifths of its age. For a task that comes by now and then.
    pub async fn refresh_aged(&self) {
        for (issuer, kept) in &self.kept {
            let KeySetSource::Url { age_max, .. } = &kept.source else {
                continue;
            };
            let fresh = kept
                .current
                .load()
                .as_ref()
                .is_some_and(|fetched| fetched.at.elapsed() < *age_max * 4 / 5);
            if !fresh {
                self.refresh(issuer).await;
            }
        }
    }
}

impl KeySets for KeySetKeeper {
    fn key_set(&self, issuer: &IssuerName) -> Option<Arc<KeySet>> {
        let kept = self.kept.get(issuer)?;
        let current = kept.current.load();
        let fetched = current.as_ref()?;
        match &kept.source {
            KeySetSource::Fixed(_) => Some(Arc::clone(&fetched.set)),
            KeySetSource::Url { age_max, .. } => {
                (fetched.at.elapsed() < *age_max).then(|| Arc::clone(&fetched.set))
            }
        }
    }
}

impl fmt::Debug for KeySetKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySetKeeper")
            .field("issuers", &self.kept.len())
            .finish()
    }
}

async fn fetch(client: &Client, uri: &Uri, limits: &Limits) -> Result<KeySet, String> {
    let deadline = Instant::now() + FETCH_TIMEOUT;
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(
        header::ACCEPT,
        HeaderValue::from_static("application/json, application/jwk-set+json"),
    );
    let answer = client
        .send(request, deadline)
        .await
        .map_err(|fault| fault.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!("the issuer answered {}", answer.status.as_u16()));
    }
    let body = answer
        .read(limits.key_set_bytes_max, deadline)
        .await
        .map_err(|fault| fault.to_string())?;
    KeySet::parse(&body, limits).map_err(|fault| fault.to_string())
}
