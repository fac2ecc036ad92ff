//! Where a redirect may lead: to another path of the same origin, and nowhere else.
//!
//! The credentials of a request are meant for one origin. The next URI is built from the scheme and authority of the
//! request and only the path and query of the answer, so that it cannot name another host even if the comparison erred.

use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Uri};
use url::Url;

/// Why a redirect was not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectFault {
    /// The answer does not say where to.
    #[error("it has no readable `Location`")]
    NoLocation,
    /// It leads to another scheme, host or port.
    #[error("it leads to another origin, `{origin}`")]
    OtherOrigin {
        /// Scheme, host and port that it names; never a path, which may hold a secret.
        origin: String,
    },
    /// The request was not a GET or HEAD.
    #[error("a `{method}` request is not repeated elsewhere")]
    Method {
        /// The method.
        method: String,
    },
    /// One more than allowed.
    #[error("it is one more than the {max} that are followed")]
    TooMany {
        /// How many are followed.
        max: u8,
    },
}

/// Whether a status means that the answer is elsewhere. 304 and 300 are answers of their own.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The URI of the next request.
pub(crate) fn next(method: &Method, uri: &Uri, location: Option<&HeaderValue>) -> Result<Uri, RedirectFault> {
    if *method != Method::GET && *method != Method::HEAD {
        return Err(RedirectFault::Method {
            method: method.to_string(),
        });
    }
    let location = location
        .and_then(|value| value.to_str().ok())
        .ok_or(RedirectFault::NoLocation)?;
    let here = Url::parse(&uri.to_string()).map_err(|_| RedirectFault::NoLocation)?;
    let there = here.join(location).map_err(|_| RedirectFault::NoLocation)?;
    let same_origin = here.scheme() == there.scheme()
        && here.host() == there.host()
        && here.port_or_known_default() == there.port_or_known_default();
    if !same_origin || !there.username().is_empty() || there.password().is_some() {
        return Err(RedirectFault::OtherOrigin {
            origin: there.origin().ascii_serialization(),
        });
    }
    let target = match there.query() {
        None => there.path().parse::<PathAndQuery>(),
        Some(query) => format!("{}?{query}", there.path()).parse(),
    };
    let target = target.map_err(|_| RedirectFault::NoLocation)?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).map_err(|_| RedirectFault::NoLocation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "https://h.example:8443/a/b?c=d";

    fn check(location: &str) -> Result<String, RedirectFault> {
        let location = HeaderValue::from_bytes(location.as_bytes()).unwrap();
        next(&Method::GET, &HERE.parse().unwrap(), Some(&location)).map(|uri| uri.to_string())
    }

    #[test]
    fn another_path_of_the_same_origin_is_followed() {
        for (location, uri) in [
            ("/x", "https://h.example:8443/x"),
            ("x?y#z", "https://h.example:8443/a/x?y"),
            ("?q", "https://h.example:8443/a/b?q"),
            ("../../..", "https://h.example:8443/"),
            ("", "https://h.example:8443/a/b?c=d"),
            ("https://h.example:8443/x", "https://h.example:8443/x"),
            ("https://H.EXAMPLE:8443", "https://h.example:8443/"),
            ("//h.example:8443/x", "https://h.example:8443/x"),
        ] {
            assert_eq!(check(location).as_deref(), Ok(uri), "{location}");
        }
    }

    #[test]
    fn another_origin_is_refused_in_every_spelling() {
        for (location, origin) in [
            ("https://h.example/x", "https://h.example"),
            ("http://h.example:8443/x", "http://h.example:8443"),
            ("https://h.example:8444/x", "https://h.example:8444"),
            ("https://evil.example:8443/x", "https://evil.example:8443"),
            (
                "https://h.example.evil.example:8443/",
                "https://h.example.evil.example:8443",
            ),
            ("//evil.example/x", "https://evil.example"),
            ("\\\\evil.example/x", "https://evil.example"),
            ("/\\evil.example/x", "https://evil.example"),
            ("/\t/evil.example/x", "https://evil.example"),
            ("https://user:secret@h.example:8443/x", "https://h.example:8443"),
            ("https://h.example:8443@evil.example/x", "https://evil.example"),
            ("http://2130706433/", "http://127.0.0.1"),
            (
                "http://169.254.169.254/latest/meta-data",
                "http://169.254.169.254",
            ),
            ("file:///etc/passwd", "null"),
            ("javascript:alert(1)", "null"),
        ] {
            assert_eq!(
                check(location),
                Err(RedirectFault::OtherOrigin {
                    origin: origin.to_owned()
                }),
                "{location:?}"
            );
        }
    }

    #[test]
    fn a_redirect_without_a_readable_location_is_refused() {
        let uri = HERE.parse().unwrap();
        assert_eq!(next(&Method::GET, &uri, None), Err(RedirectFault::NoLocation));
        assert_eq!(check("https://[::1"), Err(RedirectFault::NoLocation));
        assert_eq!(check("/\u{fc}"), Err(RedirectFault::NoLocation));
    }

    #[test]
    fn only_reading_requests_are_repeated() {
        let uri = HERE.parse().unwrap();
        let location = HeaderValue::from_static("/x");
        assert!(next(&Method::HEAD, &uri, Some(&location)).is_ok());
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::PATCH,
            Method::OPTIONS,
        ] {
            assert_eq!(
                next(&method, &uri, Some(&location)),
                Err(RedirectFault::Method {
                    method: method.to_string()
                })
            );
        }
    }

    #[test]
    fn only_five_statuses_mean_elsewhere() {
        let redirects: Vec<_> = (100..600)
            .filter(|status| is_redirect(StatusCode::from_u16(*status).unwrap()))
            .collect();
        assert_eq!(redirects, [301, 302, 303, 307, 308]);
    }
}
