//! What an upstream answered: bytes from outside, with what is needed to check them.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, header};

/// An answer, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type of the body, in lower case and without parameters.
    pub media_type: Option<String>,
    /// What `Retry-After` says.
    pub retry_after: Option<Duration>,
    /// The values of `Link`, one behind the other.
    pub link: Option<String>,
    /// The body; at most `upstream_body_bytes_max` bytes.
    pub body: Bytes,
}

impl Answer {
    /// Whether the status says that it worked.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Whether the body says that it is JSON (RFC 6839 for `+json`).
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.media_type
            .as_deref()
            .is_some_and(|media| media == "application/json" || media.ends_with("+json"))
    }
}

/// What `Retry-After` says, in seconds or as a date (RFC 9110 section 10.2.3).
///
/// A date is taken against the service's own `Date`, so that no clock has to agree with another; without one it says
/// nothing. A date that has passed is no time at all.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let after = text(header::RETRY_AFTER)?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(after).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE)?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_time_to_try_again_is_read_as_seconds_or_as_a_date_of_the_services_own_clock() {
        const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (after, date, expected) in [
            ("120", None, Some(120)),
            ("0", Some(NOW), Some(0)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(NOW), Some(120)),
            ("Sunday, 06-Nov-94 08:51:37 GMT", Some(NOW), Some(120)),
            ("Sun, 06 Nov 1994 08:40:00 GMT", Some(NOW), Some(0)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", None, None),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some("yesterday"), None),
            ("-1", Some(NOW), None),
            ("soon", Some(NOW), None),
            ("1.5", Some(NOW), None),
            ("", Some(NOW), None),
            ("99999999999999999999999", Some(NOW), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(after));
            if let Some(date) = date {
                headers.insert(header::DATE, HeaderValue::from_static(date));
            }
            assert_eq!(
                retry_after(&headers),
                expected.map(Duration::from_secs),
                "{after:?} at {date:?}"
            );
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
