//! What the header of a POST says about bodies: the media type that it has, those that its client takes, and its trace.

use http::{HeaderMap, header};

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let media = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

/// Whether a client takes a media type. One that says nothing takes everything (RFC 9110 section 12.5.1).
pub(crate) fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let mut said = false;
    for value in headers.get_all(header::ACCEPT) {
        said = true;
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let range = parts.next().unwrap_or_default();
            let refused = parts.any(|parameter| {
                parameter
                    .strip_prefix("q=")
                    .is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
            });
            let family = media.split('/').next().unwrap_or_default();
            let fits = range.eq_ignore_ascii_case(media)
                || range == "*/*"
                || range
                    .strip_suffix("/*")
                    .is_some_and(|range| range.eq_ignore_ascii_case(family));
            if fits && !refused {
                return true;
            }
        }
    }
    !said
}

/// The trace that a request belongs to, from its header; one in the body is for the wire.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all("traceparent").iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value
            .to_str()
            .ok()
            .filter(|text| wire::is_traceparent(text))
            .map(str::to_owned),
        (Some(_) | None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_a_client_accepts_is_read_as_http_says() {
        let accepts = |accept: &[&str], media: &str| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, HeaderValue::from_str(value).unwrap());
            }
            accepts(&headers, media)
        };
        for accept in [
            &["application/json, text/event-stream"][..],
            &["application/json", "text/event-stream"],
            &["*/*"],
            &["text/event-stream;q=0.5, application/*"],
            &[],
        ] {
            assert!(
                accepts(accept, "application/json") && accepts(accept, "text/event-stream")
                    || accept.len() == 1,
                "{accept:?}"
            );
        }
        assert!(accepts(&["application/*"], "application/json"));
        assert!(!accepts(&["application/*"], "text/event-stream"));
        assert!(!accepts(&["text/html"], "application/json"));
        assert!(!accepts(&["application/json;q=0"], "application/json"));
    }

    #[test]
    fn a_message_is_json_by_its_type_and_nothing_else() {
        let is_json = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            }
            is_json(&headers)
        };
        assert!(is_json(&["application/json"]) && is_json(&["Application/JSON; charset=utf-8"]));
        assert!(!is_json(&[]) && !is_json(&["text/plain"]) && !is_json(&["application/json", "text/plain"]));
        assert!(!is_json(&["application/x-www-form-urlencoded"]));
    }
}
