//! Which addresses may be connected to: the public internet, and what the operator adds to it.
//!
//! Only addresses are judged here, never names: a name can mean something else a moment later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The addresses that may be connected to.
///
/// By default the public internet: every IPv4 address outside the special blocks below, and the IPv6 addresses of
/// 2000::/3 outside them. Everything else is refused unless an allowed network contains it. Two things need more than
/// a network that contains them:
///
/// - The address of a cloud's metadata service is permitted only by naming that single host (`/32`, `/128`).
/// - An IPv6 address that stands for an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible) is permitted only by a
///   network inside that form's own block, and then the IPv4 address is judged too; or by naming the single host.
///   `::ffff:a.b.c.d` is judged as `a.b.c.d`.
///
/// ```
/// use egress::Network;
/// let inside = "10.20.0.5".parse().unwrap();
/// assert!(Network::public().permits(inside).is_err());
/// assert!(Network::allowing(vec!["10.20.0.0/16".parse().unwrap()]).permits(inside).is_ok());
/// ```
///
/// Source: IANA special-purpose address registries (RFC 6890); SEC-04.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Network {
    allowed_v4: Vec<Ipv4Net>,
    allowed_v6: Vec<Ipv6Net>,
}

/// An address that may not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address `{address}` is {kind}; {}", hint(*kind))]
pub struct AddressFault {
    /// The address.
    pub address: IpAddr,
    /// What kind of address it is.
    pub kind: AddressKind,
}

/// What kind of address is refused by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// No address in particular: `0.0.0.0/8`, `::`. Many systems take it for themselves.
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network (RFC 1918).
    Private,
    /// Between provider and customer (RFC 6598, `100.64.0.0/10`).
    Shared,
    /// This link only.
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// IETF protocol assignments: `192.0.0.0/24`, the relays of 6to4, `2001::/23` with ORCHID.
    Protocol,
    /// Documentation and examples.
    Documentation,
    /// Benchmarks.
    Benchmarking,
    /// Many receivers.
    Multicast,
    /// All receivers of a link.
    Broadcast,
    /// Reserved, unassigned or not reachable from everywhere.
    Reserved,
    /// An IPv4 address behind a translator (NAT64).
    Nat64,
    /// An IPv4 address as 6to4 writes it.
    SixToFour,
    /// An IPv4 address as Teredo writes it.
    Teredo,
    /// An IPv4-compatible IPv6 address.
    V4Compatible,
    /// A private IPv6 network (unique local, RFC 4193).
    UniqueLocal,
    /// A private IPv6 network of the old kind (site-local).
    SiteLocal,
    /// Addresses whose traffic is thrown away.
    Discard,
}

impl Network {
    /// The public internet and nothing else.
    #[must_use]
    pub fn public() -> Self {
        Self::default()
    }

    /// The public internet and these networks.
    #[must_use]
    pub fn allowing(nets: Vec<IpNet>) -> Self {
        let mut network = Self::default();
        for net in nets {
            match net {
                IpNet::V4(net) => network.allowed_v4.push(net),
                IpNet::V6(net) => match unmapped(net) {
                    // Addresses are unmapped before they are judged, so the network must be too.
                    Some(net) => network.allowed_v4.push(net),
                    None => network.allowed_v6.push(net),
                },
            }
        }
        network
    }

    /// Judges an address.
    ///
    /// # Errors
    /// [`AddressFault`] with the kind of the address.
    pub fn permits(&self, ip: IpAddr) -> Result<(), AddressFault> {
        let refused = match ip {
            IpAddr::V4(v4) => self.refusal_v4(v4),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => self.refusal_v4(v4),
                None => self.refusal_v6(v6),
            },
        };
        match refused {
            None => Ok(()),
            Some(kind) => Err(AddressFault { address: ip, kind }),
        }
    }

    fn refusal_v4(&self, ip: Ipv4Addr) -> Option<AddressKind> {
        let single = |net: &&Ipv4Net| net.prefix_len() == 32 && net.addr() == ip;
        if METADATA_V4.contains(&ip) {
            return match self.allowed_v4.iter().find(single) {
                Some(_) => None,
                None => Some(AddressKind::Metadata),
            };
        }
        let (_, kind) = BLOCKS_V4.iter().find(|(net, _)| net.contains(&ip))?;
        match self.allowed_v4.iter().find(|net| net.contains(&ip)) {
            Some(_) => None,
            None => Some(*kind),
        }
    }

    fn refusal_v6(&self, ip: Ipv6Addr) -> Option<AddressKind> {
        let single = |net: &&Ipv6Net| net.prefix_len() == 128 && net.addr() == ip;
        if self.allowed_v6.iter().any(|net| single(&net)) {
            return None;
        }
        if METADATA_V6.contains(&ip) {
            return Some(AddressKind::Metadata);
        }
        let (block, kind) = match BLOCKS_V6.iter().find(|(net, _)| net.contains(&ip)) {
            Some((block, kind)) => (*block, *kind),
            None if GLOBAL_V6.contains(&ip) => return None,
            None => (EVERYTHING_V6, AddressKind::Reserved),
        };
        let mut allowing = self.allowed_v6.iter().filter(|net| net.contains(&ip));
        let Some(embedded) = embedded(kind, ip) else {
            return match allowing.next() {
                Some(_) => None,
                None => Some(kind),
            };
        };
        // A wide network, `::/0` above all, does not mean the IPv4 internet behind a translator.
        if !allowing.any(|net| block.contains(net)) {
            return Some(kind);
        }
        embedded.into_iter().flatten().find_map(|v4| self.refusal_v4(v4))
    }
}

/// The IPv4 addresses that an IPv6 address of this kind stands for; `None` for other kinds.
fn embedded(kind: AddressKind, ip: Ipv6Addr) -> Option<[Option<Ipv4Addr>; 2]> {
    let [_, _, a2, a3, a4, a5, a6, a7, _, _, _, _, c0, c1, c2, c3] = ip.octets();
    let low = Ipv4Addr::new(c0, c1, c2, c3);
    match kind {
        AddressKind::Nat64 | AddressKind::V4Compatible => Some([Some(low), None]),
        AddressKind::SixToFour => Some([Some(Ipv4Addr::new(a2, a3, a4, a5)), None]),
        // The server in clear, the client with every bit turned over (RFC 4380 section 4).
        AddressKind::Teredo => Some([
            Some(Ipv4Addr::new(a4, a5, a6, a7)),
            Some(Ipv4Addr::from_bits(!low.to_bits())),
        ]),
        AddressKind::Unspecified
        | AddressKind::Loopback
        | AddressKind::Private
        | AddressKind::Shared
        | AddressKind::LinkLocal
        | AddressKind::Metadata
        | AddressKind::Protocol
        | AddressKind::Documentation
        | AddressKind::Benchmarking
        | AddressKind::Multicast
        | AddressKind::Broadcast
        | AddressKind::Reserved
        | AddressKind::UniqueLocal
        | AddressKind::SiteLocal
        | AddressKind::Discard => None,
    }
}

/// A network of `::ffff:a.b.c.d` addresses as the IPv4 network that it is.
fn unmapped(net: Ipv6Net) -> Option<Ipv4Net> {
    let prefix = net.prefix_len().checked_sub(96)?;
    Ipv4Net::new(net.addr().to_ipv4_mapped()?, prefix).ok()
}

// === the table ===

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(first: [u16; 4], prefix: u8) -> Ipv6Net {
    let [a, b, c, d] = first;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix)
}

/// Metadata services by address: most clouds; ECS and EKS; Alibaba; Oracle; Azure's WireServer, which lies in public
/// space; Tencent; Scaleway.
const METADATA_V4: [Ipv4Addr; 8] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(169, 254, 42, 42),
];

/// The same over IPv6: EC2, EKS, Google, Scaleway, OpenStack.
const METADATA_V6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// IPv4 blocks that are not the public internet; the narrower block of two comes first.
const BLOCKS_V4: [(Ipv4Net, AddressKind); 17] = [
    (v4(0, 0, 0, 0, 8), AddressKind::Unspecified),
    (v4(10, 0, 0, 0, 8), AddressKind::Private),
    (v4(100, 64, 0, 0, 10), AddressKind::Shared),
    (v4(127, 0, 0, 0, 8), AddressKind::Loopback),
    (v4(169, 254, 0, 0, 16), AddressKind::LinkLocal),
    (v4(172, 16, 0, 0, 12), AddressKind::Private),
    (v4(192, 0, 0, 0, 24), AddressKind::Protocol),
    (v4(192, 0, 2, 0, 24), AddressKind::Documentation),
    (v4(192, 88, 99, 0, 24), AddressKind::Protocol),
    (v4(192, 168, 0, 0, 16), AddressKind::Private),
    (v4(198, 18, 0, 0, 15), AddressKind::Benchmarking),
    (v4(198, 51, 100, 0, 24), AddressKind::Documentation),
    (v4(203, 0, 113, 0, 24), AddressKind::Documentation),
    (v4(233, 252, 0, 0, 24), AddressKind::Documentation),
    (v4(224, 0, 0, 0, 4), AddressKind::Multicast),
    (v4(255, 255, 255, 255, 32), AddressKind::Broadcast),
    (v4(240, 0, 0, 0, 4), AddressKind::Reserved),
];

/// The only part of IPv6 that is given out for the public internet.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0], 3);

const EVERYTHING_V6: Ipv6Net = v6([0, 0, 0, 0], 0);

/// IPv6 blocks that have a name of their own; what is in none of them and outside 2000::/3 is reserved.
const BLOCKS_V6: [(Ipv6Net, AddressKind); 20] = [
    (v6([0, 0, 0, 0], 128), AddressKind::Unspecified),
    (
        Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128),
        AddressKind::Loopback,
    ),
    (v6([0, 0, 0, 0], 96), AddressKind::V4Compatible),
    (v6([0x64, 0xff9b, 0, 0], 96), AddressKind::Nat64),
    (v6([0x64, 0xff9b, 1, 0], 48), AddressKind::Nat64),
    (v6([0x100, 0, 0, 0], 64), AddressKind::Discard),
    (v6([0x100, 0, 0, 1], 64), AddressKind::Discard),
    (v6([0x2001, 0, 0, 0], 32), AddressKind::Teredo),
    (v6([0x2001, 2, 0, 0], 48), AddressKind::Benchmarking),
    // ORCHID, ORCHIDv2 and the rest of the assignments; nothing in here is a web server.
    (v6([0x2001, 0, 0, 0], 23), AddressKind::Protocol),
    (v6([0x2001, 0xdb8, 0, 0], 32), AddressKind::Documentation),
    (v6([0x2002, 0, 0, 0], 16), AddressKind::SixToFour),
    (v6([0x3ffe, 0, 0, 0], 16), AddressKind::Reserved),
    (v6([0x3fff, 0, 0, 0], 20), AddressKind::Documentation),
    (v6([0x5f00, 0, 0, 0], 16), AddressKind::Reserved),
    (v6([0xfc00, 0, 0, 0], 7), AddressKind::UniqueLocal),
    (v6([0xfe80, 0, 0, 0], 10), AddressKind::LinkLocal),
    (v6([0xfec0, 0, 0, 0], 10), AddressKind::SiteLocal),
    (v6([0xff00, 0, 0, 0], 8), AddressKind::Multicast),
    (v6([0x4000, 0, 0, 0], 2), AddressKind::Reserved),
];

// === the words ===

impl std::fmt::Display for AddressKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "this machine",
            Self::Private => "private",
            Self::Shared => "shared between a provider and its customers",
            Self::LinkLocal => "local to the link",
            Self::Metadata => "a cloud's metadata service",
            Self::Protocol => "assigned to a protocol",
            Self::Documentation => "for documentation",
            Self::Benchmarking => "for benchmarks",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Reserved => "reserved",
            Self::Nat64 => "an IPv4 address behind a translator",
            Self::SixToFour => "of 6to4",
            Self::Teredo => "of Teredo",
            Self::V4Compatible => "an IPv4-compatible one",
            Self::UniqueLocal => "private (unique local)",
            Self::SiteLocal => "private (site-local)",
            Self::Discard => "thrown away",
        })
    }
}

const fn hint(kind: AddressKind) -> &'static str {
    match kind {
        AddressKind::Metadata => {
            "it gives out credentials, and is allowed only by naming this single host in `network.allow`"
        }
        AddressKind::Nat64 | AddressKind::SixToFour | AddressKind::Teredo | AddressKind::V4Compatible => {
            "if it is meant, name a network inside this form's own block in `network.allow`"
        }
        AddressKind::Unspecified
        | AddressKind::Loopback
        | AddressKind::Private
        | AddressKind::Shared
        | AddressKind::LinkLocal
        | AddressKind::Protocol
        | AddressKind::Documentation
        | AddressKind::Benchmarking
        | AddressKind::Multicast
        | AddressKind::Broadcast
        | AddressKind::Reserved
        | AddressKind::UniqueLocal
        | AddressKind::SiteLocal
        | AddressKind::Discard => "if it is meant, add its network to `network.allow`",
    }
}
