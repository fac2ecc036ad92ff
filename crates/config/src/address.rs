//! Addresses, URLs, hosts, networks and databases in the configuration. Judged here, resolved and connected elsewhere.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use url::{Host, Url};

use crate::fault::{Wrong, wrong};

/// The address to listen on. A name could mean several addresses, or another one tomorrow.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, Wrong> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if text.parse::<IpAddr>().is_ok() {
        let hint = if text.contains(':') {
            format!("[{text}]:7300")
        } else {
            format!("{text}:7300")
        };
        return Err(wrong("has no port").expected(format!("ADDRESS:PORT, as {hint}")));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let has_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if host.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("has no address").expected("ADDRESS:PORT, as 127.0.0.1:7300"));
    }
    if has_port && port.parse::<u16>().is_err() {
        return Err(wrong("has a port past 65535"));
    }
    if host.starts_with(|c: char| c.is_ascii_alphabetic()) && !host.contains([':', '/']) {
        let problem = if has_port {
            "is a name, not an address"
        } else {
            "has no port"
        };
        return Err(wrong(problem).expected(format!(
            "ADDRESS:PORT, as 127.0.0.1:{}",
            if has_port { port } else { "7300" }
        )));
    }
    Err(wrong("is no address"))
}

/// The URL under which agents reach Tollhouse, in exactly its normal form: tokens are compared with it as text.
pub(crate) fn public_url(text: &str) -> Result<Url, Wrong> {
    let url = web(text)?;
    let normal = url.as_str().trim_end_matches('/');
    if text != normal {
        let problem = if text.trim_end_matches('/') == normal {
            "has a slash at its end"
        } else {
            "is not in its normal form"
        };
        return Err(wrong(problem).expected(format!("`{normal}`")));
    }
    Ok(url)
}

/// One value of the `Host` header.
pub(crate) fn host(text: &str) -> Result<(), Wrong> {
    if text.contains("://") {
        return Err(wrong("has a scheme"));
    }
    if text.contains(['/', '@', '?', '#', '*']) || text.chars().any(char::is_whitespace) || text.is_empty() {
        return Err(wrong("is no host"));
    }
    // Read as the host of a URL with another default port, so that every port stays visible.
    let url = Url::parse(&format!("ftp://{text}")).map_err(|_| wrong("is no host"))?;
    let mut normal = url.host_str().unwrap_or_default().to_owned();
    if let Some((_, port)) = text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        if port.is_empty() {
            return Err(wrong("has no port behind its colon"));
        }
        normal = format!("{normal}:{port}");
    }
    if normal == text {
        Ok(())
    } else {
        Err(wrong("is not in its normal form").expected(format!("`{normal}`")))
    }
}

/// One value of the `Origin` header, exactly as a browser sends it (RFC 6454 section 6.2).
pub(crate) fn origin(text: &str) -> Result<(), Wrong> {
    if text == "*" || text == "null" {
        return Err(wrong("would let every page in"));
    }
    let url = Url::parse(text).map_err(|_| wrong("is no origin"))?;
    let host = url
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| wrong("has no host"))?;
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let normal = format!("{}://{host}{port}", url.scheme());
    if normal == text {
        Ok(())
    } else {
        Err(wrong("is not in its normal form").expected(format!("`{normal}`")))
    }
}

/// Where an upstream is. The dialer judges the host again; here its spelling is judged, so that a slip is reported with
/// all the others: a host that means another one than it seems to, as `127.1`, is not what a reviewer read.
pub(crate) fn destination(text: &str) -> Result<(), Wrong> {
    plain_host(text, &web(text)?)
}

/// Where an MCP server is: one URL, which may have a query.
pub(crate) fn endpoint_of_server(text: &str) -> Result<(), Wrong> {
    plain_host(text, &web_with_query(text)?)
}

fn plain_host(text: &str, url: &Url) -> Result<(), Wrong> {
    let written = text.split(['/', '?']).nth(2).unwrap_or_default();
    let written = written.strip_suffix(':').unwrap_or(written);
    let (host, port) = match (url.host(), written.rsplit_once(':')) {
        // Brackets hold colons of their own, and every spelling of such an address is plain to see.
        (Some(Host::Ipv6(_)) | None, _) => return Ok(()),
        (Some(_), Some((host, port))) => (host, format!(":{port}")),
        (Some(_), None) => (written, String::new()),
    };
    if host.ends_with('.') {
        return Err(wrong("has a host that ends with a dot").hint("leave the dot out"));
    }
    let normal = url.host_str().unwrap_or_default();
    if host.eq_ignore_ascii_case(normal) {
        Ok(())
    } else {
        Err(wrong("has a host in an odd spelling")
            .expected(format!("the host as it is meant, as {normal}{port}")))
    }
}

/// The `iss` of an issuer. Compared as text, so kept as text.
pub(crate) fn issuer(text: &str) -> Result<(), Wrong> {
    let url = web(text)?;
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err(wrong("is not https").hint("only an issuer on this machine may be reached without TLS"));
    }
    Ok(())
}

/// Where the key set of an issuer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySetPlace {
    Url(Url),
    File(String),
}

pub(crate) fn key_set(text: &str) -> Result<KeySetPlace, Wrong> {
    if let Some(path) = text.strip_prefix("file:") {
        return if path.is_empty() {
            Err(wrong("names no file"))
        } else {
            Ok(KeySetPlace::File(path.to_owned()))
        };
    }
    let url = Url::parse(text).map_err(|_| wrong("is no URL and no file"))?;
    if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
        return Err(wrong("is no URL and no file"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("has a user name, a password or a fragment"));
    }
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err(wrong("is not https").hint("who can change the key set can sign any token"));
    }
    Ok(KeySetPlace::Url(url))
}

/// Where a secret of Tollhouse is sent to: over TLS, or inside this machine.
pub(crate) fn endpoint(text: &str) -> Result<Url, Wrong> {
    let url = Url::parse(text).map_err(|_| wrong("is no URL"))?;
    if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
        return Err(wrong("is no URL that begins with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("has a user name, a password or a fragment"));
    }
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err(wrong("is not https").hint("the secret that is sent there could be read on the way"));
    }
    Ok(url)
}

/// A network, or a single address as a network of one.
pub(crate) fn network(text: &str) -> Result<IpNet, Wrong> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net,
        Err(_) => IpNet::from(text.parse::<IpAddr>().map_err(|_| wrong("is no network"))?),
    };
    if net.prefix_len() == 0 {
        return Err(wrong("allows every address").expected("the networks that are meant, as 10.20.0.0/16"));
    }
    if net.trunc() != net {
        return Err(wrong("has bits behind its prefix")
            .expected(format!("`{}`, or a single address without a prefix", net.trunc())));
    }
    Ok(net)
}

/// Where a database is, as text. What the URL of a server says is judged further by the room that connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite(String),
    Postgres {
        /// Whether the text holds a password.
        password: bool,
    },
}

pub(crate) fn database(text: &str) -> Result<Database, Wrong> {
    if let Some(rest) = text.strip_prefix("sqlite:") {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path == ":memory:" {
            return Err(wrong("is in memory, and forgets everything").expected("sqlite:FILE"));
        }
        if path.is_empty() {
            return Err(wrong("names no file"));
        }
        if path.contains(['?', '#']) || path.chars().any(char::is_control) {
            return Err(wrong("has a `?`, a `#` or a control character in its path"));
        }
        return Ok(Database::Sqlite(path.to_owned()));
    }
    if !(text.starts_with("postgres://") || text.starts_with("postgresql://")) {
        return Err(wrong("is neither sqlite: nor postgres:"));
    }
    let url = Url::parse(text).map_err(|_| wrong("is no URL"))?;
    let parameter = |name: &str| {
        url.query_pairs()
            .any(|(key, value)| key == name && !value.is_empty())
    };
    if url.host_str().is_none_or(str::is_empty) && !parameter("host") && !parameter("hostaddr") {
        return Err(wrong("has no host"));
    }
    Ok(Database::Postgres {
        password: url.password().is_some() || parameter("password"),
    })
}

/// Whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// A URL without the parts that may hold a secret: user, password, query, fragment.
pub(crate) fn redacted(text: &str) -> String {
    let bare = text.split(['?', '#']).next().unwrap_or_default();
    match (bare.split_once("://"), bare.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://***@{rest}"),
        (None, Some((_, rest))) => format!("***@{rest}"),
        (_, None) => bare.to_owned(),
    }
}

fn web(text: &str) -> Result<Url, Wrong> {
    let url = web_with_query(text)?;
    if url.query().is_some() {
        return Err(wrong("has a query"));
    }
    Ok(url)
}

fn web_with_query(text: &str) -> Result<Url, Wrong> {
    let url = Url::parse(text).map_err(|_| wrong("is no URL"))?;
    if !matches!(url.scheme(), "https" | "http")
        || !(text.starts_with("http://") || text.starts_with("https://"))
    {
        return Err(wrong("is no URL that begins with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has a user name or a password"));
    }
    if url.fragment().is_some() {
        return Err(wrong("has a fragment"));
    }
    if text
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || c == '\\')
    {
        return Err(wrong("has a space, a control character or a backslash"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listen_address_is_an_address_and_a_port_and_each_slip_has_its_own_words() {
        for text in [
            "127.0.0.1:7300",
            "[::1]:7300",
            "0.0.0.0:80",
            "127.0.0.1:0",
            "[fe80::1%2]:80",
        ] {
            assert!(listen(text).is_ok(), "{text}");
        }
        for (text, problem) in [
            ("localhost", "has no port"),
            ("localhost:7300", "is a name, not an address"),
            ("mcp.example.com:443", "is a name, not an address"),
            ("127.0.0.1", "has no port"),
            ("::1", "has no port"),
            ("7300", "has no address"),
            (":7300", "has no address"),
            ("", "has no address"),
            ("127.0.0.1:99999", "has a port past 65535"),
            ("127.0.0.1:x", "is no address"),
            ("http://127.0.0.1:80", "is no address"),
            ("127.1:80", "is no address"),
        ] {
            assert_eq!(listen(text).unwrap_err().problem, problem, "{text}");
        }
    }

    #[test]
    fn a_public_url_is_taken_only_in_its_normal_form() {
        for text in [
            "http://127.0.0.1:7300",
            "https://mcp.example.com",
            "https://h.example/base",
            "http://[::1]:80/a/b",
        ] {
            let expected = if text == "http://[::1]:80/a/b" {
                Err(())
            } else {
                Ok(())
            };
            assert_eq!(public_url(text).map(drop).map_err(drop), expected, "{text}");
        }
        for (text, problem) in [
            ("https://h.example/", "has a slash at its end"),
            ("https://h.example/a/", "has a slash at its end"),
            ("https://H.example", "is not in its normal form"),
            ("https://h.example:443", "is not in its normal form"),
            ("https://h.example/a/../b", "is not in its normal form"),
            ("https://h.example?x", "has a query"),
            ("https://h.example#x", "has a fragment"),
            ("https://u:p@h.example", "has a user name or a password"),
            ("h.example", "is no URL"),
            (
                "ftp://h.example",
                "is no URL that begins with https:// or http://",
            ),
            (
                "https:h.example",
                "is no URL that begins with https:// or http://",
            ),
            (
                "https://h.example\\x",
                "has a space, a control character or a backslash",
            ),
        ] {
            assert_eq!(public_url(text).unwrap_err().problem, problem, "{text}");
        }
    }

    #[test]
    fn hosts_and_origins_are_taken_as_headers_spell_them() {
        for text in [
            "mcp.example.com",
            "mcp.example.com:8443",
            "10.0.0.1:80",
            "[::1]",
            "[::1]:7300",
            "localhost",
        ] {
            assert_eq!(host(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "https://a",
            "a/b",
            "u@a",
            "A.example",
            "*",
            "*.example.com",
            "a:99999",
            "a b",
            "::1",
            "0x7f.1",
            "a:",
        ] {
            assert!(host(text).is_err(), "{text}");
        }
        for text in [
            "https://app.example.com",
            "http://localhost:6274",
            "vscode-webview://abc",
        ] {
            assert_eq!(origin(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "*",
            "null",
            "app.example.com",
            "https://App.example.com",
            "https://a/",
            "https://a:443",
            "https://a/b",
            "https://u@a",
            "file:///x",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_destination_names_its_host_as_it_is_meant() {
        for text in [
            "http://127.0.0.1:1",
            "http://127.0.0.1/a:b",
            "https://Billing.Internal:8443/api",
            "https://billing.internal:443",
            "http://[::1]:80",
            "http://[0:0::1]",
            "http://xn--bcher-kva.example",
        ] {
            assert_eq!(destination(text), Ok(()), "{text}");
        }
        for (text, problem) in [
            ("http://2130706433", "has a host in an odd spelling"),
            ("http://0x7f.1:80/a", "has a host in an odd spelling"),
            ("http://0177.0.0.1", "has a host in an odd spelling"),
            ("http://127.0.0.01", "has a host in an odd spelling"),
            ("http://%31%32%37.0.0.1", "has a host in an odd spelling"),
            ("http://\u{ff11}27.0.0.1", "has a host in an odd spelling"),
            ("http://b\u{fc}cher.example", "has a host in an odd spelling"),
            ("http://127.0.0.1.", "has a host that ends with a dot"),
            ("http://localhost.:80", "has a host that ends with a dot"),
        ] {
            assert_eq!(destination(text).unwrap_err().problem, problem, "{text}");
        }
    }

    #[test]
    fn issuers_and_key_sets_are_reached_over_tls_except_on_this_machine() {
        for text in [
            "https://idp.example.com",
            "https://idp.example.com/realms/x",
            "http://localhost:8080",
            "http://127.0.0.1:1/x",
            "http://[::1]",
        ] {
            assert!(
                issuer(text).is_ok() && key_set(text).is_ok() && endpoint(text).is_ok(),
                "{text}"
            );
        }
        for text in [
            "http://idp.example.com",
            "http://10.0.0.1",
            "ftp://idp.example.com",
            "idp",
            "",
            "https://u:p@idp.example.com",
            "http://localhost.example.com",
        ] {
            assert!(
                issuer(text).is_err() && key_set(text).is_err() && endpoint(text).is_err(),
                "{text}"
            );
        }
        assert_eq!(
            key_set("file:keys.json"),
            Ok(KeySetPlace::File("keys.json".into()))
        );
        assert!(key_set("file:").is_err() && key_set("keys.json").is_err());
    }

    #[test]
    fn a_network_is_named_exactly() {
        for (text, expected) in [
            ("10.20.0.0/16", "10.20.0.0/16"),
            ("10.0.0.5", "10.0.0.5/32"),
            ("fd00::/8", "fd00::/8"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), expected);
        }
        for text in [
            "",
            "10.20.0.1/16",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/33",
            "internal",
            "10.0.0.0/255.0.0.0",
            "10.1",
        ] {
            assert!(network(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_database_is_a_file_or_a_server_with_a_host() {
        assert_eq!(database("sqlite:a.db"), Ok(Database::Sqlite("a.db".into())));
        assert_eq!(
            database("sqlite:///var/a.db"),
            Ok(Database::Sqlite("/var/a.db".into()))
        );
        for (text, password) in [
            ("postgres://directory", false),
            ("postgresql://u@h:5432/db", false),
            ("postgres://u:p@h/db", true),
            ("postgres://h/db?password=p", true),
            ("postgres:///db?host=/run/postgresql", false),
        ] {
            assert_eq!(database(text), Ok(Database::Postgres { password }), "{text}");
        }
        for text in [
            "",
            "a.db",
            "sqlite:",
            "sqlite://",
            "sqlite::memory:",
            "sqlite:a.db?mode=ro",
            "mysql://h/db",
            "postgres:///db",
            "postgres:h",
            "postgres://h:x/db",
        ] {
            assert!(database(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_may_be_secret_in_a_url_is_not_shown() {
        for text in [
            "https://u:canary@h.example/p?t=canary#canary",
            "u:canary@h",
            "x://a@canary@h?canary",
        ] {
            assert!(!redacted(text).contains("canary"), "{text} {}", redacted(text));
        }
        assert_eq!(redacted("https://u:p@h.example/p?t=1"), "https://***@h.example/p");
        assert_eq!(redacted("https://h.example/p"), "https://h.example/p");
    }
}
