//! The credentials of Tollhouse towards an upstream, as configured: one for every request, or one for each security
//! scheme of the document. Whether the document has these schemes is known only to the room that reads documents.

use std::time::Duration;

use model::SecretText;
use url::Url;

use crate::address;
use crate::fault::FaultKind;
use crate::identity::{NetworkSettings, TlsSettings, network, reachable, tls};
use crate::reading::{DocumentFile, Reading};
use crate::view::View;

/// How Tollhouse identifies itself to one upstream. `Debug` shows no secret.
#[derive(Debug, Clone, Default)]
pub enum CredentialSettings {
    /// Not at all.
    #[default]
    None,
    /// By one credential on every request.
    Every(CredentialSetting),
    /// By those that an operation asks for: the name of a security scheme of the document, and the credential for it, in
    /// the order of the file.
    Schemes(Vec<(String, CredentialSetting)>),
}

/// A credential of Tollhouse towards one upstream. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub enum CredentialSetting {
    /// `Authorization: Bearer …`. Visible ASCII.
    Bearer(SecretText),
    /// `Authorization: Basic …` (RFC 7617).
    Basic {
        /// The user name, without a colon.
        username: String,
        /// The password.
        password: SecretText,
    },
    /// A key in a header.
    KeyHeader {
        /// The header.
        header: String,
        /// The key. Visible ASCII.
        value: SecretText,
    },
    /// A key in the query.
    KeyQuery {
        /// The parameter.
        parameter: String,
        /// The key. Visible ASCII; not encoded yet.
        value: SecretText,
    },
    /// A key in a cookie.
    KeyCookie {
        /// The cookie.
        cookie: String,
        /// The key. Visible ASCII.
        value: SecretText,
    },
    /// A token that Tollhouse gets for itself (OAuth 2.0 client credentials, RFC 6749 section 4.4).
    OAuth2(Box<OAuthSettings>),
    /// A certificate of Tollhouse, shown in the TLS handshake.
    MutualTls {
        /// The certificate and those between it and an authority, in PEM.
        certificate: DocumentFile,
        /// Its private key, in PEM.
        key: SecretText,
    },
    /// Something outside Tollhouse identifies it, as a service mesh does.
    Outside {
        /// What does, for people.
        by: String,
    },
}

/// Where and how tokens are got. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct OAuthSettings {
    /// Where.
    pub endpoint: TokenEndpoint,
    /// Who Tollhouse is there.
    pub client_id: String,
    /// How it shows that.
    pub client_secret: SecretText,
    /// How the secret travels.
    pub method: ClientMethod,
    /// The scopes that are asked for; `None`: those that the operation requires.
    pub scopes: Option<Vec<String>>,
    /// Further parameters of the token request, in the order of the file. None of them is one of RFC 6749.
    pub parameters: Vec<(String, String)>,
    /// How long a token may take.
    pub timeout: Duration,
    /// Where the token endpoint may be, beyond the public internet.
    pub network: NetworkSettings,
    /// Whom to trust there.
    pub tls: TlsSettings,
}

/// Where tokens are got: https, or http on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenEndpoint {
    /// Here.
    Url(Url),
    /// Where this document of OpenID Connect says.
    Discovery(Url),
}

/// How a client shows its secret at a token endpoint (RFC 6749 section 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMethod {
    /// In `Authorization: Basic`.
    Basic,
    /// In the body.
    Post,
}

/// `credential` and `credentials` of an upstream. `None` where one of them cannot be read; its faults are known.
pub(crate) fn read(reading: &mut Reading<'_>, upstream: &View<'_>) -> Option<CredentialSettings> {
    if upstream.has("credential") || !upstream.has("credentials") {
        return read_every(reading, upstream);
    }
    let schemes: Vec<_> = upstream
        .named("credentials")
        .into_iter()
        .map(|(scheme, view)| Some((scheme.to_owned(), one(reading, &view)?)))
        .collect();
    let schemes = schemes.into_iter().collect::<Option<_>>()?;
    Some(CredentialSettings::Schemes(schemes))
}

/// `credential` of an upstream: one for every request, or none.
pub(crate) fn read_every(reading: &mut Reading<'_>, upstream: &View<'_>) -> Option<CredentialSettings> {
    match upstream.table("credential") {
        Some(view) => one(reading, &view).map(CredentialSettings::Every),
        None => Some(CredentialSettings::None),
    }
}

fn one(reading: &mut Reading<'_>, view: &View<'_>) -> Option<CredentialSetting> {
    if view.has("bearer") {
        let token = reading.resolve(view, "bearer")?.into_secret();
        return Some(CredentialSetting::Bearer(token));
    }
    if let Some(basic) = view.table("basic") {
        let (username, password) = (
            reading.resolve(&basic, "username"),
            reading.resolve(&basic, "password"),
        );
        return Some(CredentialSetting::Basic {
            username: username?.text,
            password: password?.into_secret(),
        });
    }
    if let Some(oauth2) = view.table("oauth2") {
        return oauth(reading, &oauth2).map(|settings| CredentialSetting::OAuth2(Box::new(settings)));
    }
    if let Some(mutual) = view.table("mutual_tls") {
        let certificate = mutual.text("certificate").and_then(|path| {
            let max = reading.limits.config_bytes_max;
            reading.file_of(&mutual, "certificate", &path, max, FaultKind::Unreadable)
        });
        let key = reading.resolve(&mutual, "key");
        return Some(CredentialSetting::MutualTls {
            certificate: certificate?,
            key: key?.into_secret(),
        });
    }
    if let Some(by) = view.text("outside") {
        return Some(CredentialSetting::Outside { by });
    }
    let key = view.table("api_key")?;
    let value = reading.resolve(&key, "value")?.into_secret();
    match (key.text("header"), key.text("query"), key.text("cookie")) {
        (Some(header), _, _) => Some(CredentialSetting::KeyHeader { header, value }),
        (None, Some(parameter), _) => Some(CredentialSetting::KeyQuery { parameter, value }),
        (None, None, Some(cookie)) => Some(CredentialSetting::KeyCookie { cookie, value }),
        (None, None, None) => None,
    }
}

fn oauth(reading: &mut Reading<'_>, view: &View<'_>) -> Option<OAuthSettings> {
    let (network, tls) = (network(view), tls(reading, view));
    let mut url = |name: &str| {
        if !view.has(name) {
            return None;
        }
        let url = reading
            .resolve(view, name)
            .and_then(|resolved| address::endpoint(&resolved.text).ok())?;
        reachable(reading, view, name, &url, &network);
        Some(url)
    };
    let (token_url, discovery) = (url("token_url"), url("discovery"));
    let client_id = reading.resolve(view, "client_id");
    let client_secret = reading.resolve(view, "client_secret");
    let scopes = view.has("scopes").then(|| {
        let scopes = view.texts("scopes").into_iter();
        scopes.map(|placed| placed.text).collect()
    });
    let parameters = view.named_texts("parameters").into_iter();
    let parameters = parameters
        .filter_map(|(name, texts, _)| {
            texts
                .into_iter()
                .next()
                .map(|value| (name.to_owned(), value.text))
        })
        .collect();
    Some(OAuthSettings {
        endpoint: token_url
            .map(TokenEndpoint::Url)
            .or(discovery.map(TokenEndpoint::Discovery))?,
        client_id: client_id?.text,
        client_secret: client_secret?.into_secret(),
        method: view.parsed("method", method)?,
        scopes,
        parameters,
        timeout: view.duration("timeout")?,
        network,
        tls,
    })
}

fn method(text: &str) -> Result<ClientMethod, ()> {
    match text {
        "basic" => Ok(ClientMethod::Basic),
        "post" => Ok(ClientMethod::Post),
        _ => Err(()),
    }
}
