//! A target: a URL on this machine. A load generator that can be pointed anywhere is a weapon; this one cannot.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

/// Where load goes.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Invariant: loopback.
    address: SocketAddr,
    host: HeaderValue,
    path: PathAndQuery,
}

impl Place {
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value of the `Host` header.
    pub(crate) const fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// The request target in origin form, as HTTP/1.1 sends it.
    pub(crate) fn target(&self) -> Uri {
        Uri::from(self.path.clone())
    }
}

impl FromStr for Place {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let uri: Uri = text
            .parse()
            .with_context(|| format!("target `{text}` is no URL; write http://127.0.0.1:PORT/PATH"))?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            bail!("target `{text}` is not plain HTTP; write http://127.0.0.1:PORT/PATH");
        }
        let authority = uri
            .authority()
            .filter(|authority| !authority.as_str().contains('@'))
            .with_context(|| {
                format!("target `{text}` has a user or no host; write http://127.0.0.1:PORT/PATH")
            })?;
        let port = authority
            .port_u16()
            .with_context(|| format!("target `{text}` has no port; write http://127.0.0.1:PORT/PATH"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        // The name is not resolved: a hosts file could point it elsewhere.
        let ip = match host {
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            _ => host.parse().ok(),
        };
        match ip.filter(IpAddr::is_loopback) {
            Some(ip) => Ok(Self {
                address: SocketAddr::new(ip, port),
                host: HeaderValue::from_str(authority.as_str())?,
                path: uri
                    .path_and_query()
                    .cloned()
                    .unwrap_or_else(|| PathAndQuery::from_static("/")),
            }),
            None => bail!("target `{text}` is not on this machine; only loopback addresses are accepted"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.address, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_on_this_machine_or_is_refused() {
        for (text, address) in [
            ("http://127.0.0.1:80/mcp", "127.0.0.1:80"),
            ("http://127.9.9.9:1/", "127.9.9.9:1"),
            ("http://localhost:8080", "127.0.0.1:8080"),
            ("http://[::1]:8080/x?y=1", "[::1]:8080"),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!(place.address().to_string(), address, "{text}");
        }
        for text in [
            "http://192.0.2.1:80/",
            "http://10.0.0.1:80/",
            "http://0.0.0.0:80/",
            "http://169.254.169.254:80/",
            "http://[2001:db8::1]:80/",
            "http://[::ffff:10.0.0.1]:80/",
            "http://example.com:80/",
            "http://localhost.example.com:80/",
            "http://2130706433:80/",
            "http://127.1:80/",
            "http://127.0.0.1@example.com:80/",
            "http://user@127.0.0.1:80/",
            "http://127.0.0.1/",
            "https://127.0.0.1:443/",
            "127.0.0.1:80",
            "/mcp",
            "",
        ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
