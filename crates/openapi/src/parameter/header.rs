//! Headers as parameters: which ones belong to the gateway, to the connection or to the operator, and never to a caller.
//! How a value is written is in `serial`.

use super::malformed;
use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::reference::Located;
use crate::text::excerpt;

/// Headers that OpenAPI itself says are described elsewhere. Source: OpenAPI 3.1.1 section 4.8.12.1.
const DESCRIBED_ELSEWHERE: [&str; 3] = ["accept", "authorization", "content-type"];

/// Headers that the gateway, its operator or the connection own: who speaks, where to, how the message is framed, and
/// which method it really is. Sources: RFC 9110 sections 7.2, 7.6.1 and 7.8, RFC 7239; `*` stands for any ending.
const RESERVED: [&str; 33] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-transfer-encoding",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "last-event-id",
    "mcp-*",
    "max-forwards",
    "origin",
    "proxy-*",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-client-ip",
    "x-forwarded-*",
    "x-forwarded",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-*",
    "x-real-ip",
    "x-rewrite-url",
];

/// Headers by which services are told who is calling, or that they may believe it. A caller who could set one would be
/// whoever it likes.
const IDENTITY: [&str; 30] = [
    "api-key",
    "apikey",
    "remote-user",
    "sudo",
    "x-access-token",
    "x-act-as",
    "x-api-key",
    "x-auth-token",
    "x-authenticated-user",
    "x-client-cert",
    "x-forwarded-user",
    "x-groups",
    "x-impersonate",
    "x-impersonate-user",
    "x-on-behalf-of",
    "x-org-id",
    "x-organization-id",
    "x-principal",
    "x-remote-user",
    "x-role",
    "x-roles",
    "x-subject",
    "x-sudo",
    "x-tenant",
    "x-tenant-id",
    "x-tenantid",
    "x-user",
    "x-user-email",
    "x-user-id",
    "x-username",
];

/// Whether a header tells a service who is calling.
pub(super) fn is_identity_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    IDENTITY.contains(&name.as_str())
}

/// Whether no caller may set a header.
pub(crate) fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    DESCRIBED_ELSEWHERE.contains(&name.as_str())
        || RESERVED.iter().any(|reserved| match reserved.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *reserved,
        })
}

/// Whether a caller may set a header; where none may, the finding is made.
pub(super) fn may_set_header(
    found: &Located<'_>,
    name: &str,
    required: bool,
    findings: &mut Findings,
) -> bool {
    let shown = excerpt(name);
    if !is_token(name) {
        findings.block(malformed(
            &found.pointer,
            &format!("`{shown}` is no name of a header"),
        ));
        return false;
    }
    if !is_reserved_header(name) {
        return true;
    }
    let is_described_elsewhere = DESCRIBED_ELSEWHERE
        .iter()
        .any(|described| name.eq_ignore_ascii_case(described));
    if required && !is_described_elsewhere {
        findings.block(Blocker::new(
            BlockerCause::ParameterReserved,
            &found.pointer,
            format!("the header `{shown}` is required, and no caller may set it"),
            "let the API do without it, or take it from the operator",
        ));
    } else {
        findings.note(
            NoteKind::ParameterIgnored,
            &found.pointer,
            format!("the header `{shown}` was left out: no caller may set it"),
        );
    }
    false
}

/// A token of RFC 9110 section 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_gateway_and_the_connection_are_reserved_in_every_case() {
        for name in [
            "Authorization",
            "accept",
            "CONTENT-TYPE",
            "Cookie",
            "Host",
            "content-length",
            "Proxy-Authorization",
            "proxy-connection",
            "Mcp-Session-Id",
            "mcp-name",
            "X-Forwarded-For",
            "X-Forwarded-Anything",
            "Forwarded",
            "Transfer-Encoding",
            "TE",
            "Connection",
            "Upgrade",
            "X-HTTP-Method-Override",
        ] {
            assert!(is_reserved_header(name), "{name}");
        }
        for name in [
            "If-Match",
            "X-Tenant",
            "Idempotency-Key",
            "X-Request-Id",
            "Accept-Language",
            "Range",
        ] {
            assert!(!is_reserved_header(name), "{name}");
        }
    }

    #[test]
    fn a_header_name_is_a_token() {
        assert!(is_token("X-A_b.1"));
        for name in ["", "a b", "a:b", "a\r\nb", "ä", "a\0", "a(b)"] {
            assert!(!is_token(name), "{name:?}");
        }
    }
}
