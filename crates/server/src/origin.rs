//! `Host` and `Origin`: a browser on the same machine must not be talked into calling the gate (DNS rebinding).
//!
//! Both are checked before anything else of a request is looked at (C1 step 1). Sources: HL-18, HM-12, SEC-07, SEC-12;
//! Fetch standard, "CORS protocol".

use std::net::SocketAddr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Uri};
use url::Url;

/// The longest name of a header that a preflight allows.
const NAME_MAX: usize = 96;

/// Which hosts this server answers for, and whose pages may call it.
#[derive(Debug, Clone)]
pub struct Neighbours {
    /// `host` or `host:port`, in lower case.
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a request is turned away before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stray {
    /// No `Host`, or more than one.
    HostMissing,
    /// A `Host` that this server does not answer for.
    HostForeign,
    /// An `Origin` whose pages may not call.
    OriginForeign,
}

impl Neighbours {
    /// What follows from the configuration and the address that was bound.
    ///
    /// `hosts` are further values of `Host`; `origins` are web origins as browsers spell them.
    #[must_use]
    pub fn new(bound: SocketAddr, public_url: &Url, hosts: &[String], origins: &[String]) -> Self {
        let mut known = Vec::new();
        if !bound.ip().is_unspecified() {
            known.push(bound.to_string());
        }
        if bound.ip().to_canonical().is_loopback() {
            known.push(format!("localhost:{}", bound.port()));
            known.push(format!("127.0.0.1:{}", bound.port()));
            known.push(format!("[::1]:{}", bound.port()));
        }
        if let Some(host) = public_url.host_str() {
            known.push(match public_url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            });
        }
        known.extend(hosts.iter().cloned());
        let mut known: Vec<String> = known.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        known.sort_unstable();
        known.dedup();
        Self {
            hosts: known,
            origins: origins.to_vec(),
        }
    }

    /// Checks both headers.
    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Stray> {
        let host = match (uri.authority(), single(headers, HOST)) {
            // HTTP/2 puts it into the request line; HTTP/1 may, and then both must agree.
            (Some(authority), Ok(None)) => authority.as_str(),
            (Some(authority), Ok(Some(host))) if authority.as_str() == host => host,
            (None, Ok(Some(host))) => host,
            (Some(_) | None, Ok(_) | Err(())) => return Err(Stray::HostMissing),
        };
        if !self.knows_host(host) {
            return Err(Stray::HostForeign);
        }
        match single(headers, ORIGIN) {
            // No browser, or a request of the same site that browsers send without one.
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.allows_origin(origin) => Ok(()),
            // `null` is an origin like any other that was not allowed.
            Ok(Some(_)) | Err(()) => Err(Stray::OriginForeign),
        }
    }

    fn knows_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.hosts.binary_search(&host).is_ok()
    }

    /// An origin is allowed if it was configured, or if it is this server itself.
    fn allows_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed == origin) {
            return true;
        }
        let host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.knows_host(host))
    }

    /// The headers that let a page of an allowed origin read the answer.
    pub(crate) fn cors(headers: &HeaderMap, answer: &mut HeaderMap) {
        let Some(origin) = headers.get(ORIGIN) else { return };
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        answer.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
        );
        answer.append(VARY, HeaderValue::from_static("Origin"));
    }

    /// The headers that answer a preflight. Headers that repeat arguments are allowed as they are asked for: which of them
    /// count is known to the tools.
    pub(crate) fn preflight(request: &HeaderMap, answer: &mut HeaderMap) {
        answer.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, DELETE"),
        );
        answer.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(
                "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, \
                 Last-Event-ID",
            ),
        );
        let asked = request.get(ACCESS_CONTROL_REQUEST_HEADERS);
        let asked = asked.and_then(|names| names.to_str().ok()).unwrap_or_default();
        for name in asked.split(',').map(str::trim) {
            if name.len() < NAME_MAX
                && name.to_ascii_lowercase().starts_with(wire::header::PARAM)
                && let Ok(name) = HeaderValue::from_str(name)
            {
                answer.append(ACCESS_CONTROL_ALLOW_HEADERS, name);
            }
        }
        answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}

/// The value of a header that may come once.
fn single(headers: &HeaderMap, name: http::HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbours(bound: &str) -> Neighbours {
        let url = Url::parse("https://mcp.example.com").unwrap();
        Neighbours::new(
            bound.parse().unwrap(),
            &url,
            &["Internal.example:8443".to_owned()],
            &["https://app.example.com".to_owned()],
        )
    }

    fn check(bound: &str, host: &[&str], origin: &[&str]) -> Result<(), Stray> {
        let mut headers = HeaderMap::new();
        for value in host {
            headers.append(HOST, HeaderValue::from_str(value).unwrap());
        }
        for value in origin {
            headers.append(ORIGIN, HeaderValue::from_str(value).unwrap());
        }
        neighbours(bound).check(&headers, &Uri::from_static("/mcp"))
    }

    #[test]
    fn sec_07_only_known_hosts_are_answered_for() {
        let local = "127.0.0.1:7300";
        for host in [
            "127.0.0.1:7300",
            "localhost:7300",
            "LOCALHOST:7300",
            "[::1]:7300",
            "mcp.example.com",
            "internal.example:8443",
        ] {
            assert_eq!(check(local, &[host], &[]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:7301",
            "localhost.evil.example:7300",
            "mcp.example.com:80",
            "127.0.0.1:7300.",
            "",
        ] {
            assert_eq!(check(local, &[host], &[]), Err(Stray::HostForeign), "{host}");
        }
        assert_eq!(check(local, &[], &[]), Err(Stray::HostMissing));
        assert_eq!(
            check(local, &["localhost:7300", "localhost:7300"], &[]),
            Err(Stray::HostMissing)
        );
    }

    #[test]
    fn a_server_on_every_address_answers_for_its_public_name_only() {
        assert_eq!(check("0.0.0.0:7300", &["mcp.example.com"], &[]), Ok(()));
        for host in ["0.0.0.0:7300", "localhost:7300", "10.0.0.5:7300"] {
            assert_eq!(
                check("0.0.0.0:7300", &[host], &[]),
                Err(Stray::HostForeign),
                "{host}"
            );
        }
    }

    #[test]
    fn hl_18_hm_12_only_allowed_origins_and_none_at_all_may_call() {
        let (local, host) = ("127.0.0.1:7300", "127.0.0.1:7300");
        for origin in [
            "https://app.example.com",
            "http://localhost:7300",
            "https://mcp.example.com",
        ] {
            assert_eq!(check(local, &[host], &[origin]), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "http://evil.example",
            "https://app.example.com.evil.example",
            "https://app.example.com/",
            "http://app.example.com",
            "http://localhost:3000",
            "file://",
            "",
        ] {
            assert_eq!(
                check(local, &[host], &[origin]),
                Err(Stray::OriginForeign),
                "{origin:?}"
            );
        }
        assert_eq!(
            check(
                local,
                &[host],
                &["https://app.example.com", "https://app.example.com"]
            ),
            Err(Stray::OriginForeign)
        );
    }

    #[test]
    fn a_request_line_and_a_host_header_that_disagree_are_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost:7300"));
        let neighbours = neighbours("127.0.0.1:7300");
        assert_eq!(
            neighbours.check(&headers, &Uri::from_static("http://localhost:7300/mcp")),
            Ok(())
        );
        assert_eq!(
            neighbours.check(&headers, &Uri::from_static("http://evil.example/mcp")),
            Err(Stray::HostMissing)
        );
        assert_eq!(
            neighbours.check(&HeaderMap::new(), &Uri::from_static("http://localhost:7300/mcp")),
            Ok(())
        );
    }
}
