//! How callers over HTTP show who they are: API keys and token issuers, as configured. It verifies nothing.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::IpNet;
use model::IssuerName;
use url::{Host, Url};

use crate::address::{self, KeySetPlace};
use crate::fault::FaultKind;
use crate::key::one_of;
use crate::reading::{DocumentFile, Reading};
use crate::table::ALGORITHMS;
use crate::view::View;

/// `[identity]`.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentitySettings {
    /// Whether API keys are accepted.
    pub api_keys: bool,
    /// The issuers of access tokens, in the order of the file.
    pub issuers: Vec<IssuerSettings>,
}

/// `[identity.issuer.<name>]`.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuerSettings {
    /// Its name in the configuration.
    pub name: IssuerName,
    /// The exact `iss` of its tokens.
    pub issuer: String,
    /// One of these must be in `aud`. The resource where nothing is written.
    pub audience: Vec<String>,
    /// Whether `audience` is the default and follows the resource.
    pub(crate) audience_follows: bool,
    /// The signature algorithms that are accepted. Never empty.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Where its public keys are.
    pub key_set: KeySetSetting,
    /// How long a key set from a URL is used.
    pub key_set_max_age: Duration,
    /// How far its clock may be off.
    pub leeway: Duration,
    /// Scopes that a token must have, all of them.
    pub scopes_required: Vec<String>,
    /// Which claims mean what.
    pub claims: ClaimSettings,
    /// Where the key set may be.
    pub network: NetworkSettings,
    /// Whom to trust.
    pub tls: TlsSettings,
}

/// Where the public keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySetSetting {
    /// At a URL: https, or http on this machine.
    Url(Url),
    /// In a file, already read: at most `key_set_bytes_max` bytes.
    File(DocumentFile),
}

/// Which claims of a token mean what. Names are as configured; dots are resolved by the reader of the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimSettings {
    /// Who calls.
    pub subject: String,
    /// The organisation.
    pub tenant: Option<String>,
    /// Roles or groups.
    pub roles: Option<String>,
    /// The client program.
    pub client: Option<String>,
    /// Further claims to keep.
    pub extra: Vec<String>,
}

/// Addresses beyond the public internet that may be connected to. Empty: none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkSettings {
    /// Networks without host bits; never all addresses.
    pub allow: Vec<IpNet>,
}

/// Whom to trust in a TLS handshake, beyond the system's authorities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsSettings {
    /// Certificates in PEM, already read.
    pub ca: Option<DocumentFile>,
}

macro_rules! algorithms {
    ($( $name:ident = $text:literal, $doc:literal; )*) => {
        /// An algorithm that a token may be signed with (RFC 7518, RFC 8037).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SignatureAlgorithm { $( #[doc = $doc] $name, )* }

        impl SignatureAlgorithm {
            /// Every algorithm that can be configured.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )* ];

            /// Its name, as `alg` spells it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => $text, )* }
            }
        }
    };
}

algorithms! {
    Rs256 = "RS256", "RSASSA-PKCS1-v1_5 with SHA-256.";
    Rs384 = "RS384", "RSASSA-PKCS1-v1_5 with SHA-384.";
    Rs512 = "RS512", "RSASSA-PKCS1-v1_5 with SHA-512.";
    Ps256 = "PS256", "RSASSA-PSS with SHA-256.";
    Ps384 = "PS384", "RSASSA-PSS with SHA-384.";
    Ps512 = "PS512", "RSASSA-PSS with SHA-512.";
    Es256 = "ES256", "ECDSA on P-256.";
    Es384 = "ES384", "ECDSA on P-384.";
    EdDsa = "EdDSA", "Ed25519.";
    Hs256 = "HS256", "HMAC with SHA-256: who can verify can also sign.";
    Hs384 = "HS384", "HMAC with SHA-384: who can verify can also sign.";
    Hs512 = "HS512", "HMAC with SHA-512: who can verify can also sign.";
}

impl SignatureAlgorithm {
    /// Whether the key that verifies is the key that signs.
    #[must_use]
    pub const fn symmetric(self) -> bool {
        match self {
            Self::Hs256 | Self::Hs384 | Self::Hs512 => true,
            Self::Rs256
            | Self::Rs384
            | Self::Rs512
            | Self::Ps256
            | Self::Ps384
            | Self::Ps512
            | Self::Es256
            | Self::Es384
            | Self::EdDsa => false,
        }
    }
}

/// `[identity]` and its issuers. `resource` is their default audience.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    root: &View<'_>,
    resource: Option<&str>,
) -> Option<IdentitySettings> {
    /// The words by which callers with an API key, and callers of the configuration, are told from those of issuers.
    const TAKEN: [&str; 2] = ["key", "configuration"];
    let view = root.table_or_defaults("identity")?;
    let mut issuers: Vec<IssuerSettings> = Vec::new();
    for (name, view) in view.named("issuer") {
        if TAKEN.contains(&name) {
            let problem = format!("`{name}` is how the ledger calls callers that no issuer vouches for");
            let fault = reading.fault_at(&view, "issuer", FaultKind::WrongValue, problem);
            reading.faults.push(fault.hint("give the issuer another name"));
        }
        let Some(issuer) = issuer(reading, name, &view, resource) else {
            continue;
        };
        if let Some(first) = issuers.iter().find(|other| other.issuer == issuer.issuer) {
            let problem = format!("`{}` is the issuer of `{}`, too", issuer.issuer, first.name);
            let fault = reading.fault_at(&view, "issuer", FaultKind::Conflict, problem);
            reading.faults.push(
                fault.hint("a token must belong to one issuer; give one table several audiences instead"),
            );
        }
        issuers.push(issuer);
    }
    Some(IdentitySettings {
        api_keys: view.truth("api_keys")?,
        issuers,
    })
}

fn issuer(
    reading: &mut Reading<'_>,
    name: &str,
    view: &View<'_>,
    resource: Option<&str>,
) -> Option<IssuerSettings> {
    let algorithms: Vec<SignatureAlgorithm> = view
        .texts("algorithms")
        .iter()
        .filter_map(|placed| {
            SignatureAlgorithm::ALL
                .iter()
                .copied()
                .find(|algorithm| algorithm.as_str() == placed.text)
        })
        .collect();
    let key_set = match view.parsed("key_set", address::key_set) {
        Some(KeySetPlace::Url(url)) => {
            symmetric(reading, view, &algorithms);
            Some(KeySetSetting::Url(url))
        }
        Some(KeySetPlace::File(path)) => {
            let max = reading.limits.key_set_bytes_max;
            reading
                .file_of(view, "key_set", &path, max, FaultKind::Unreadable)
                .map(KeySetSetting::File)
        }
        None => None,
    };
    let claims = view.table_or_defaults("claims").and_then(|claims| {
        Some(ClaimSettings {
            subject: claims.text("subject")?,
            tenant: claims.text("tenant"),
            roles: claims.text("roles"),
            client: claims.text("client"),
            extra: claims
                .texts("extra")
                .into_iter()
                .map(|placed| placed.text)
                .collect(),
        })
    });
    let (network, tls) = (network(view), tls(reading, view));
    if let Some(KeySetSetting::Url(url)) = &key_set {
        reachable(reading, view, "key_set", url, &network);
    }
    let audience: Vec<String> = view
        .texts("audience")
        .into_iter()
        .map(|placed| placed.text)
        .collect();
    let audience_follows = !view.has("audience");
    Some(IssuerSettings {
        name: IssuerName::parse(name).ok()?,
        issuer: view.text("issuer")?,
        audience: if audience_follows {
            vec![resource?.to_owned()]
        } else {
            audience
        },
        audience_follows,
        algorithms,
        key_set: key_set?,
        key_set_max_age: view.duration("key_set_max_age")?,
        leeway: view.duration("leeway")?,
        scopes_required: view
            .texts("scopes_required")
            .into_iter()
            .map(|placed| placed.text)
            .collect(),
        claims: claims?,
        network,
        tls,
    })
}

fn symmetric(reading: &mut Reading<'_>, view: &View<'_>, algorithms: &[SignatureAlgorithm]) {
    if let Some(algorithm) = algorithms.iter().find(|algorithm| algorithm.symmetric()) {
        let problem = format!(
            "`{}` needs a secret key, and a key set at a URL is public",
            algorithm.as_str()
        );
        let asymmetric: Vec<&str> = ALGORITHMS
            .iter()
            .copied()
            .filter(|name| !name.starts_with("HS"))
            .collect();
        let fault = reading.fault_at(view, "algorithms", FaultKind::Unsafe, problem);
        reading.faults.push(
            fault
                .expected(one_of(&asymmetric))
                .hint("or keep the key set in a file"),
        );
    }
}

/// The `network` of an issuer or an upstream.
pub(crate) fn network(view: &View<'_>) -> NetworkSettings {
    let allow = view
        .table("network")
        .map(|network| network.texts("allow"))
        .unwrap_or_default();
    NetworkSettings {
        allow: allow
            .iter()
            .filter_map(|placed| address::network(&placed.text).ok())
            .collect(),
    }
}

/// An address on this machine or in a private network needs an entry in `network`. The dialer judges that for every
/// address of every name; a destination that plainly is one is worth a word before the first call fails.
pub(crate) fn reachable(
    reading: &mut Reading<'_>,
    view: &View<'_>,
    key: &str,
    url: &Url,
    network: &NetworkSettings,
) {
    let address = match url.host() {
        Some(Host::Domain("localhost")) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(Host::Ipv4(address)) if address.is_loopback() || address.is_private() => IpAddr::V4(address),
        Some(Host::Ipv6(address)) if address.is_loopback() || address.is_unique_local() => {
            IpAddr::V6(address)
        }
        Some(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)) | None => return,
    };
    if !network.allow.iter().any(|net| net.contains(&address)) {
        let problem =
            format!("`{address}` is no address of the public internet, and connecting to it will be refused");
        let warning = reading.fault_at(view, key, FaultKind::Ineffective, problem);
        reading
            .warnings
            .push(warning.expected(format!("`network = {{ allow = [\"{address}\"] }}`, too")));
    }
}

/// The `tls` of an issuer or an upstream, with the file of its authorities.
pub(crate) fn tls(reading: &mut Reading<'_>, view: &View<'_>) -> TlsSettings {
    let Some(tls) = view.table("tls") else {
        return TlsSettings::default();
    };
    let Some(path) = tls.text("ca") else {
        return TlsSettings::default();
    };
    let max = reading.limits.config_bytes_max;
    let ca = reading.file_of(&tls, "ca", &path, max, FaultKind::Unreadable);
    if let Some(file) = &ca
        && !file
            .bytes
            .windows(27)
            .any(|window| window == b"-----BEGIN CERTIFICATE-----")
    {
        let fault = reading.fault_at(
            &tls,
            "ca",
            FaultKind::WrongValue,
            format!("`{}` holds no certificate", file.path),
        );
        reading
            .faults
            .push(fault.hint("a file of authorities is PEM and has lines `-----BEGIN CERTIFICATE-----`"));
    }
    TlsSettings { ca }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_keys_lists_every_algorithm() {
        let all: Vec<&str> = SignatureAlgorithm::ALL
            .iter()
            .map(|algorithm| algorithm.as_str())
            .collect();
        assert_eq!(all, ALGORITHMS);
        assert!(
            SignatureAlgorithm::ALL
                .iter()
                .all(|algorithm| algorithm.symmetric() == algorithm.as_str().starts_with("HS"))
        );
    }
}
