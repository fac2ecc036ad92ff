//! The HTTP words around a credential: taking it out of a header, asking for it, and saying where to get one.
//!
//! Pure text in and out; which header, path and status they travel on is the server's matter.

use serde::Serialize;

use crate::unauthenticated::Unauthenticated;

/// Takes the token out of an `Authorization` header.
///
/// The scheme may be written in any case; behind it stands exactly one token of the characters that RFC 6750 allows.
/// More than one `Authorization` header is for the server to refuse.
///
/// # Errors
/// `Missing` without a header, `OtherScheme` for another scheme, `Malformed` for everything else.
///
/// ```
/// assert_eq!(identity::bearer(Some(b"bearer abc.def")), Ok("abc.def"));
/// assert!(identity::bearer(Some(b"Bearer abc def")).is_err());
/// ```
///
/// Source: RFC 6750 section 2.1, RFC 9110 section 11.
pub fn bearer(header: Option<&[u8]>) -> Result<&str, Unauthenticated> {
    const MALFORMED: Unauthenticated = Unauthenticated::Malformed {
        what: "the `Authorization` header is `Bearer`, a space and one token",
    };
    let header = header.ok_or(Unauthenticated::Missing)?;
    let header = std::str::from_utf8(header).map_err(|_| MALFORMED)?;
    let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unauthenticated::OtherScheme);
    }
    let token = rest.trim_start_matches(' ');
    let body = token.trim_end_matches('=');
    let fits =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    if body.is_empty() || !body.bytes().all(fits) {
        return Err(MALFORMED);
    }
    Ok(token)
}

/// The value of a `WWW-Authenticate` header.
///
/// `metadata_url` is where the [`ResourceMetadata`] of this server can be read; `scope` is what to ask for, as scopes
/// with spaces between. Where `cause` lacks scopes, those are named instead, because they are what helps. There is no
/// `error` where no credential was presented.
///
/// ```
/// use identity::{Unauthenticated, challenge};
/// assert_eq!(
///     challenge(Some("https://mcp.example.com/.well-known/oauth-protected-resource/mcp"), &Unauthenticated::Missing, None),
///     r#"Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp""#,
/// );
/// ```
///
/// Source: RFC 6750 section 3, RFC 9728 section 5.1; AUTH-02, AUTH-04, AUTH-17.
#[must_use]
pub fn challenge(metadata_url: Option<&str>, cause: &Unauthenticated, scope: Option<&str>) -> String {
    let mut value = String::from(SCHEME);
    if let Some((error, description)) = cause.for_caller() {
        parameter(&mut value, "error", error);
        parameter(&mut value, "error_description", description);
    }
    let missing = match cause {
        Unauthenticated::ScopeMissing { scopes } => Some(scopes.join(" ")),
        _ => None,
    };
    if let Some(scope) = missing.as_deref().or(scope).filter(|scope| !scope.is_empty()) {
        parameter(&mut value, "scope", scope);
    }
    if let Some(url) = metadata_url {
        parameter(&mut value, "resource_metadata", url);
    }
    if value == SCHEME {
        // RFC 6750 asks for at least one parameter behind the scheme.
        parameter(&mut value, "realm", "tollhouse");
    }
    value
}

const SCHEME: &str = "Bearer";

fn parameter(value: &mut String, name: &str, text: &str) {
    value.push_str(if value == SCHEME { " " } else { ", " });
    value.push_str(name);
    value.push('=');
    quote(value, text);
}

/// Appends a quoted-string (RFC 9110 section 5.6.4). What cannot stand in one is left out, line breaks above all:
/// a value from the configuration must not start a header of its own.
fn quote(value: &mut String, text: &str) {
    value.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                value.push('\\');
                value.push(character);
            }
            ' '..='~' => value.push(character),
            _ => {}
        }
    }
    value.push('"');
}

/// The protected resource metadata of this server: where tokens for it come from.
///
/// Shape: `{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://idp.example.com"],
/// "bearer_methods_supported":["header"]}`; fields without a value are left out.
///
/// Source: RFC 9728 section 2; AUTH-02, AUTH-03; no `offline_access` among the scopes (AUTH-19).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourceMetadata {
    /// The server's own URL, the same that tokens carry as `aud`. No fragment, no trailing slash.
    pub resource: String,
    /// The issuers' URLs. MCP asks for at least one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// The scopes that a client may ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// How a token is sent: always `header`, never the query (AUTH-01).
    pub bearer_methods_supported: [&'static str; 1],
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// A page for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
}

impl ResourceMetadata {
    /// The metadata of this resource, with its issuers' URLs and nothing optional.
    #[must_use]
    pub fn new(resource: impl Into<String>, authorization_servers: Vec<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers,
            scopes_supported: Vec::new(),
            bearer_methods_supported: ["header"],
            resource_name: None,
            resource_documentation: None,
        }
    }

    /// The JSON text that the well-known path answers with.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings and arrays of strings always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
