//! The host of a URL: a name or an address in exactly one spelling.
//!
//! Operating systems read `0x7f.1`, `2130706433`, `0177.0.0.1` and `127.1` as 127.0.0.1, and URL readers turn full-width
//! digits and percent-encoding into them. A filter that reads a host otherwise than the resolver is no filter, so what
//! is not plainly a name or an address is refused. Names are judged by their addresses later, in `network`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host that has one meaning only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// A DNS name in lower case.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Why a text is no host to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostFault {
    /// There is none.
    #[error("there is no host")]
    Empty,
    /// An IPv4 address in a spelling that readers disagree about.
    #[error("it is a number, but no IPv4 address; write all four parts in decimal, as 192.0.2.1")]
    OddAddress,
    /// Brackets around something else than an IPv6 address.
    #[error("in brackets stands an IPv6 address, without a zone; as [2001:db8::1]")]
    OddIpv6,
    /// A percent sign.
    #[error("it is percent-encoded; write the characters themselves")]
    Encoded,
    /// Characters outside ASCII.
    #[error("it has characters outside ASCII; write an international name in its `xn--` form")]
    NotAscii,
    /// A dot at the end.
    #[error("it ends with a dot; leave the dot out")]
    TrailingDot,
    /// Not a DNS name.
    #[error(
        "it is no DNS name: parts of 1 to 63 letters, digits, `-` and `_`, at most 253 characters together"
    )]
    Name,
}

impl Host {
    /// Reads the host part of a URL, IPv6 addresses in their brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, HostFault> {
        if text.is_empty() {
            return Err(HostFault::Empty);
        }
        if let Some(inner) = text.strip_prefix('[') {
            return inner
                .strip_suffix(']')
                .and_then(|inner| inner.parse::<Ipv6Addr>().ok())
                .map(|ip| Self::Address(ip.into()))
                .ok_or(HostFault::OddIpv6);
        }
        if !text.is_ascii() {
            return Err(HostFault::NotAscii);
        }
        if text.contains('%') {
            return Err(HostFault::Encoded);
        }
        if text.ends_with('.') {
            return Err(HostFault::TrailingDot);
        }
        if text.len() > 253 || !text.split('.').all(is_label) {
            return Err(HostFault::Name);
        }
        let last = text.rsplit('.').next().unwrap_or(text);
        if is_number(last) {
            // The strict reader of the standard library: four decimal parts without leading zeros.
            return text
                .parse::<Ipv4Addr>()
                .map(|ip| Self::Address(ip.into()))
                .map_err(|_| HostFault::OddAddress);
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

/// The host as it stands in a URL.
impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Address(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

fn is_label(label: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&label.len())
        && label.bytes().all(fits)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Whether the last part of a host makes readers take the whole for an IPv4 address (WHATWG URL, "ends in a number";
/// `inet_aton` agrees).
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read_in_their_one_spelling() {
        for (text, shown) in [
            ("example.com", "example.com"),
            ("EXAMPLE.Com", "example.com"),
            ("localhost", "localhost"),
            ("billing_api.internal", "billing_api.internal"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("1.example", "1.example"),
            ("0x7f.example", "0x7f.example"),
            ("0xfg", "0xfg"),
            ("4chan", "4chan"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
            ("[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"),
        ] {
            assert_eq!(Host::parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn every_spelling_that_readers_disagree_about_is_refused() {
        for (text, fault) in [
            ("", HostFault::Empty),
            ("0x7f.1", HostFault::OddAddress),
            ("0x7f000001", HostFault::OddAddress),
            ("0X7F000001", HostFault::OddAddress),
            ("0x", HostFault::OddAddress),
            ("2130706433", HostFault::OddAddress),
            ("0177.0.0.1", HostFault::OddAddress),
            ("017700000001", HostFault::OddAddress),
            ("127.1", HostFault::OddAddress),
            ("127.0.1", HostFault::OddAddress),
            ("127.0.0.01", HostFault::OddAddress),
            ("127.0.0.0x1", HostFault::OddAddress),
            ("256.0.0.1", HostFault::OddAddress),
            ("1.2.3.4.5", HostFault::OddAddress),
            ("example.1", HostFault::OddAddress),
            ("0", HostFault::OddAddress),
            ("127.0.0.1.", HostFault::TrailingDot),
            ("example.com.", HostFault::TrailingDot),
            (".", HostFault::TrailingDot),
            ("%31%32%37.0.0.1", HostFault::Encoded),
            ("127.0.0.1%00.example.com", HostFault::Encoded),
            ("\u{ff11}\u{ff12}\u{ff17}.0.0.1", HostFault::NotAscii),
            ("127\u{3002}0\u{3002}0\u{3002}1", HostFault::NotAscii),
            ("b\u{fc}cher.example", HostFault::NotAscii),
            ("\u{2460}.example", HostFault::NotAscii),
            ("[::1", HostFault::OddIpv6),
            ("[127.0.0.1]", HostFault::OddIpv6),
            ("[fe80::1%25eth0]", HostFault::OddIpv6),
            ("[fe80::1%eth0]", HostFault::OddIpv6),
            ("[]", HostFault::OddIpv6),
            ("[::1]x", HostFault::OddIpv6),
            ("::1", HostFault::Name),
            ("a..b", HostFault::Name),
            (".a", HostFault::Name),
            ("-a.b", HostFault::Name),
            ("a-.b", HostFault::Name),
            ("a b", HostFault::Name),
            ("a/b", HostFault::Name),
            ("a@b", HostFault::Name),
            ("a\\b", HostFault::Name),
            ("a\tb", HostFault::Name),
            ("*", HostFault::Name),
        ] {
            assert_eq!(Host::parse(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_accepted_at_its_limits_and_not_past_them() {
        let label = "a".repeat(63);
        assert!(Host::parse(&label).is_ok());
        assert_eq!(Host::parse(&"a".repeat(64)), Err(HostFault::Name));
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(longest.len(), 253);
        assert!(Host::parse(&longest).is_ok());
        assert_eq!(Host::parse(&format!("{longest}a")), Err(HostFault::Name));
    }
}
