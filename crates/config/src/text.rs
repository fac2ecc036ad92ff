//! Judges of plain texts: names, headers, prose, dates. Each says what is wrong, and leaves out the text itself, which
//! may be secret.

use jiff::civil::Date;
use model::NameFault;

use crate::fault::{Wrong, wrong};

// === names ===

/// The same verdict without the words that name the subject, which may be secret here.
pub(crate) fn of_name(fault: &NameFault) -> Wrong {
    match fault {
        NameFault::Empty { expected, .. } => wrong("is empty").expected(*expected),
        NameFault::Long { length, max, .. } => {
            wrong(format!("has {length} bytes; at most {max} are allowed"))
        }
        NameFault::Character {
            character,
            at,
            expected,
            ..
        } => wrong(format!("has the character {character:?} at byte {at}")).expected(*expected),
    }
}

/// The name of an environment variable, behind `env:`.
pub(crate) fn variable(name: &str) -> Result<(), Wrong> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.len() > 256 || !name.bytes().all(fits) {
        return Err(
            wrong("names no variable").expected("env: and letters, digits and `_`, as env:BILLING_TOKEN")
        );
    }
    Ok(())
}

/// Argument names of generated tools: `^[A-Za-z0-9_.-]{1,64}$`.
pub(crate) fn argument(text: &str) -> Result<(), Wrong> {
    bounded(text, 64)?;
    only(text, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
    })
}

/// A status code of an error, or all of a hundred.
pub(crate) fn error_status(text: &str) -> Result<(), Wrong> {
    let is_code = text.len() == 3 && text.parse::<u16>().is_ok_and(|code| (400..=599).contains(&code));
    if is_code || matches!(text, "4xx" | "5xx") {
        Ok(())
    } else {
        Err(wrong("is no status of an error"))
    }
}

/// A media type without parameters.
pub(crate) fn media_type(text: &str) -> Result<(), Wrong> {
    bounded(text, 128)?;
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    match text.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => Ok(()),
        Some(_) | None => Err(wrong("is no media type")),
    }
}

/// The name of the top-level argument that `invoiceId` or `$.invoiceId` means.
pub(crate) fn resource_id(text: &str) -> Result<String, Wrong> {
    let Some(name) = text.strip_prefix('$') else {
        argument(text)?;
        return Ok(text.to_owned());
    };
    match name.strip_prefix('.') {
        Some(name) if !name.contains('.') => {
            argument(name)?;
            Ok(name.to_owned())
        }
        // A value deeper in the arguments could be absent, or stand there more than once.
        Some(_) | None => Err(wrong("is not a top-level argument")),
    }
}

/// A name that policies can use behind a dot.
pub(crate) fn fact_name(text: &str) -> Result<(), Wrong> {
    bounded(text, 64)?;
    only(text, |c| c.is_ascii_alphanumeric() || c == '_')?;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong("begins with a digit"));
    }
    if CEDAR_WORDS.contains(&text) || text.starts_with("__cedar") {
        return Err(wrong("is a word of the policy language").expected("another name"));
    }
    Ok(())
}

const CEDAR_WORDS: [&str; 9] = ["true", "false", "if", "then", "else", "in", "is", "like", "has"];

/// An OAuth scope (RFC 6749 section 3.3) that a resource may ask for (AUTH-19).
pub(crate) fn scope_name(text: &str) -> Result<(), Wrong> {
    bounded(text, 256)?;
    if text == "offline_access" {
        return Err(wrong("asks for a refresh token and permits nothing")
            .hint("leave it out; a client that wants one asks its authorization server"));
    }
    only(text, |c| c.is_ascii_graphic() && c != '"' && c != '\\')
}

// === MCP servers ===

/// A program or an argument, as it is handed to the system: no shell reads it.
pub(crate) fn command_word(text: &str) -> Result<(), Wrong> {
    // An empty argument is one, so only the length and NUL, which the system cannot pass on, are judged.
    if text.len() > 32_768 {
        return Err(wrong(format!(
            "has {} bytes; at most 32768 are allowed",
            text.len()
        )));
    }
    if text.contains('\0') {
        return Err(wrong("has the character '\\0'"));
    }
    Ok(())
}

/// Whether a text can be the URI of a resource, or a template of such, in a configuration.
#[must_use]
pub fn is_resource_uri(text: &str) -> bool {
    resource_uri(text).is_ok()
}

/// The URI of a resource, or a template of such: a scheme, and no character that a URI cannot have.
pub(crate) fn resource_uri(text: &str) -> Result<(), Wrong> {
    bounded(text, 2_048)?;
    if let Some(at) = text.chars().position(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong(format!(
            "has a space or a control character at position {}",
            at + 1
        )));
    }
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    if scheme.is_some_and(is_scheme) {
        Ok(())
    } else {
        Err(wrong("has no scheme, as `file:`"))
    }
}

/// The name of a variable in the environment of a child.
pub(crate) fn variable_name(text: &str) -> Result<(), Wrong> {
    bounded(text, 256)?;
    only(text, |c| c.is_ascii_alphanumeric() || c == '_')?;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong("begins with a digit"));
    }
    Ok(())
}

/// The value of a variable in the environment of a child.
pub(crate) fn variable_value(text: &str) -> Result<(), Wrong> {
    if text.len() > 32_768 {
        return Err(wrong(format!(
            "has {} bytes; at most 32768 are allowed",
            text.len()
        )));
    }
    match text.chars().position(char::is_control) {
        Some(at) => Err(wrong(format!("has a control character at position {}", at + 1))),
        None => Ok(()),
    }
}

/// Whether the name of a variable or header says that a secret is in it.
pub(crate) fn names_a_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase().replace('_', "-");
    lower.ends_with("-key") || CREDENTIAL_WORDS.iter().any(|word| lower.contains(word))
}

/// A revision of MCP, as far as its spelling goes; the room that speaks them knows which there are.
pub(crate) fn revision(text: &str) -> Result<(), Wrong> {
    if text == "auto" {
        return Ok(());
    }
    date(text)
        .map(drop)
        .map_err(|_| wrong("is no date of a revision"))
}

/// A code of a report: words of small letters with `-` between them, and parts with `.` between them.
pub(crate) fn blocker_code(text: &str) -> Result<(), Wrong> {
    bounded(text, 64)?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if text.split(['.', '-']).all(is_word) {
        Ok(())
    } else {
        Err(wrong("is no code of a report"))
    }
}

// === headers and credentials ===

/// A header that is neither reserved nor the place of a credential.
pub(crate) fn plain_header_name(text: &str) -> Result<(), Wrong> {
    header_name(text)?;
    let lower = text.to_ascii_lowercase();
    if lower == "authorization" || CREDENTIAL_WORDS.iter().any(|word| lower.contains(word)) {
        return Err(wrong("is the name of a credential").hint("use `credential`, which is never shown"));
    }
    Ok(())
}

/// RFC 9110 section 5.1: a token.
pub(crate) fn header_name(text: &str) -> Result<(), Wrong> {
    bounded(text, 128)?;
    only(text, |c| {
        c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
    })?;
    let lower = text.to_ascii_lowercase();
    if RESERVED_HEADERS.contains(&lower.as_str())
        || RESERVED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
    {
        return Err(wrong("is set by Tollhouse or by the connection"));
    }
    Ok(())
}

const CREDENTIAL_WORDS: [&str; 6] = ["token", "secret", "api-key", "apikey", "password", "session"];

/// Headers that Tollhouse or the connection sets, or that would tell an upstream something untrue.
const RESERVED_HEADERS: [&str; 21] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "set-cookie",
    "te",
    "trailer",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-real-ip",
];
const RESERVED_PREFIXES: [&str; 3] = ["proxy-", "mcp-", "x-forwarded-"];

pub(crate) fn header_value(text: &str) -> Result<(), Wrong> {
    bounded(text, 4_096)?;
    if text.chars().any(|c| !(c.is_ascii_graphic() || c == ' ')) || text.trim() != text {
        return Err(wrong("has characters that a header cannot have"));
    }
    Ok(())
}

/// The name of a query parameter, of characters that are never encoded.
pub(crate) fn query_name(text: &str) -> Result<(), Wrong> {
    bounded(text, 128)?;
    only(text, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '~' | '-')
    })
}

/// A parameter of a token request that is not one of those that Tollhouse sets (RFC 6749 section 4.4.2).
pub(crate) fn token_parameter(text: &str) -> Result<(), Wrong> {
    query_name(text)?;
    let set = [
        "grant_type",
        "scope",
        "client_id",
        "client_secret",
        "client_assertion",
        "client_assertion_type",
    ];
    if set.contains(&text) {
        return Err(wrong("is set by Tollhouse"));
    }
    Ok(())
}

/// RFC 6265 section 4.1.1: a token.
pub(crate) fn cookie_name(text: &str) -> Result<(), Wrong> {
    bounded(text, 128)?;
    only(text, |c| {
        c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
    })
}

/// A private key, as far as its first line goes; the room that uses it reads it.
pub(crate) fn private_key(text: &str) -> Result<(), Wrong> {
    bounded(text, 65_536)?;
    if text.starts_with("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        Ok(())
    } else {
        Err(wrong("is no private key in PEM"))
    }
}

/// RFC 7617 section 2: the first colon ends the user name.
pub(crate) fn username(text: &str) -> Result<(), Wrong> {
    printable_line(text)?;
    if text.contains(':') {
        Err(wrong("has a colon"))
    } else {
        Ok(())
    }
}

pub(crate) fn visible(text: &str) -> Result<(), Wrong> {
    bounded(text, 16_384)?;
    match text.chars().position(|c| !c.is_ascii_graphic()) {
        Some(at) => Err(wrong(format!(
            "has a character at position {} that is no visible ASCII",
            at + 1
        ))),
        None => Ok(()),
    }
}

pub(crate) fn printable_line(text: &str) -> Result<(), Wrong> {
    bounded(text, 1_024)?;
    match text.chars().position(char::is_control) {
        Some(at) => Err(wrong(format!("has a control character at position {}", at + 1))),
        None => Ok(()),
    }
}

// === prose, paths, dates ===

/// Text that a person or a model reads. Characters that are not seen could tell a model what no reviewer reads.
pub(crate) fn prose(text: &str, max: usize, lines: bool) -> Result<(), Wrong> {
    bounded(text, max)?;
    if text.trim().is_empty() {
        return Err(wrong("is empty"));
    }
    let unseen = |c: char| {
        (c.is_control() && !(lines && c == '\n'))
            || matches!(c,
                '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
    };
    match text.chars().find(|c| unseen(*c)) {
        Some(character) => Err(wrong(format!(
            "has the character {character:?}, which is not seen"
        ))),
        None => Ok(()),
    }
}

/// A JSONPath, as far as its first character goes; the room that applies it parses it.
pub(crate) fn json_path(text: &str) -> Result<(), Wrong> {
    prose(text, 256, false)?;
    if text.starts_with('$') {
        Ok(())
    } else {
        Err(wrong("does not begin with `$`"))
    }
}

/// Arguments of a call. The room that calls reads them again, with its own limits.
pub(crate) fn json_object(text: &str) -> Result<(), Wrong> {
    bounded(text, 65_536)?;
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text)
        .map(drop)
        .map_err(|_| wrong("is no JSON object"))
}

pub(crate) fn path(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err(wrong("is empty"));
    }
    if let Some(character) = text.chars().find(|c| c.is_control()) {
        return Err(wrong(format!("has the character {character:?}")));
    }
    if text.starts_with("~/") {
        return Err(wrong("begins with `~`, which only a shell expands"));
    }
    if text.starts_with("file:") {
        return Err(wrong("begins with `file:`").expected("the path itself"));
    }
    Ok(())
}

pub(crate) fn date(text: &str) -> Result<Date, Wrong> {
    if text.len() != 10 {
        return Err(wrong("is no date"));
    }
    text.parse::<Date>().map_err(|_| wrong("is no date"))
}

// === helpers ===

fn bounded(text: &str, max: usize) -> Result<(), Wrong> {
    match text.len() {
        0 => Err(wrong("is empty")),
        length if length > max => Err(wrong(format!("has {length} bytes; at most {max} are allowed"))),
        _ => Ok(()),
    }
}

fn only(text: &str, fits: fn(char) -> bool) -> Result<(), Wrong> {
    match text.chars().find(|c| !fits(*c)) {
        Some(character) => Err(wrong(format!("has the character {character:?}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::*;

    fn check(form: &Form, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!((form.judge)(text), Ok(()), "{} {text:?}", form.what);
        }
        for text in bad {
            assert!((form.judge)(text).is_err(), "{} {text:?}", form.what);
        }
    }

    #[test]
    fn auth_19_a_scope_is_a_permission_and_no_refresh_token() {
        check(
            &SCOPE_NAME,
            &["invoices", "invoices:read", "offline_access:x", "offline"],
            &["", "a b", "a\"b", "offline_access"],
        );
    }

    #[test]
    fn header_names_that_the_connection_or_a_credential_owns_are_refused() {
        check(
            &HEADER_NAME,
            &["X-Env", "x-tenant-hint", "Api-Version", "!#$%&'*+-.^_`|~"],
            &[
                "",
                "X Env",
                "X:Env",
                "Ünv",
                "X\r\nY",
                "Host",
                "HOST",
                "content-length",
                "Content-Type",
                "Accept",
                "Cookie",
                "Set-Cookie",
                "Proxy-Anything",
                "Mcp-Session-Id",
                "X-Forwarded-For",
                "Forwarded",
                "Transfer-Encoding",
                "Authorization",
                "X-API-Key",
                "X-Auth-Token",
                "x-client-secret",
            ],
        );
        check(
            &KEY_HEADER,
            &["X-API-Key", "Authorization", "X-Auth-Token"],
            &["Host", "Cookie", "X Y", "Mcp-Name"],
        );
    }

    #[test]
    fn header_values_and_tokens_cannot_break_a_line() {
        check(
            &HEADER_VALUE,
            &["prod", "a b", "a;b=\"c\""],
            &["", " a", "a ", "a\nb", "a\r\nX: y", "ü", "a\tb", "\u{0}"],
        );
        check(&BEARER, &["abc.def-_~+/=", "{}"], &["", "a b", "a\n", "ü", " a"]);
        check(&PASSWORD, &["päss wörd"], &["", "a\nb", "\u{7}"]);
        check(&USERNAME, &["u", "ü"], &["", "a:b"]);
    }

    #[test]
    fn what_a_model_reads_has_no_character_that_a_reviewer_cannot_see() {
        check(
            &DESCRIPTION,
            &["Status of one invoice.\nOf your own.", "Größe ✓"],
            &[
                "",
                "  ",
                "a\u{200B}b",
                "a\u{202E}b",
                "a\u{E0041}",
                "a\tb",
                "a\u{FEFF}",
            ],
        );
        check(&TITLE, &["Invoice status"], &["two\nlines"]);
        let long = |length: usize| "a".repeat(length);
        check(&TITLE, &[&long(128)], &[&long(129)]);
        check(&DESCRIPTION, &[&long(4_096)], &[&long(4_097)]);
    }

    #[test]
    fn the_id_of_a_resource_is_a_top_level_argument() {
        for (text, expected) in [
            ("invoiceId", "invoiceId"),
            ("$.invoiceId", "invoiceId"),
            ("invoice.id", "invoice.id"),
        ] {
            assert_eq!(resource_id(text).unwrap(), expected);
        }
        check(
            &RESOURCE_ID,
            &[],
            &["", "$", "$.", "$.a.b", "$['a']", "$..a", "$.a[0]", "a b", "$.*"],
        );
    }

    #[test]
    fn other_forms_accept_what_they_describe_and_nothing_near_it() {
        check(
            &FACT_NAME,
            &["member", "_x1"],
            &["", "1x", "a-b", "has", "like", "ü"],
        );
        check(
            &DATE,
            &["2027-01-31", "2028-02-29"],
            &[
                "",
                "2027-02-29",
                "2027-1-31",
                "31.01.2027",
                "2027-01-31T00:00",
                "20270131",
            ],
        );
        check(
            &JSON_PATH,
            &["$.status", "$", "$.a[0]['b c']"],
            &["", "status", " $.a", "$.a\n"],
        );
        check(
            &PATH,
            &["a.yaml", "/etc/a", "../a b"],
            &["", "a\nb", "~/a", "file:a", "a\u{0}"],
        );
        check(&SCOPE_NAME, &["invoices:read"], &["", "a b", "a\"b", "a\\b"]);
        check(
            &CLAIM_NAME,
            &["sub", "realm_access.roles", "https://x.example/roles"],
            &["", "a\u{200B}"],
        );
        check(&OPERATION, &["getInvoice", "GET /invoices/{id}"], &["", "a\nb"]);
        check(
            &COOKIE_NAME,
            &["session", "__Host-id"],
            &["", "a b", "a=b", "a;b", "ü"],
        );
        check(
            &JSON_OBJECT,
            &["{}", "{\"a\":[1]}"],
            &["", "[]", "7", "{", "{\"a\":}", "{} x"],
        );
        check(
            &TOKEN_PARAMETER,
            &["audience", "resource"],
            &["", "a b", "scope", "client_id", "client_secret", "grant_type"],
        );
        check(
            &PRIVATE_KEY,
            &["-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----"],
            &["", "MC4=", "-----BEGIN CERTIFICATE-----\nMC4="],
        );
        check(&QUERY_NAME, &["key", "api_key"], &["", "a b", "a&b", "a=b", "ü"]);
    }
}
