//! The table of addresses: what is public, what is not, and what an operator's entry changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use egress::{AddressKind, Network};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn allowing(nets: &[&str]) -> Network {
    Network::allowing(nets.iter().map(|net| net.parse().unwrap()).collect())
}

fn kind(network: &Network, text: &str) -> Option<AddressKind> {
    network.permits(ip(text)).err().map(|fault| fault.kind)
}

/// Every block that is refused by default, with its first and last address beside what lies just outside.
#[test]
fn special_addresses_are_refused_and_their_neighbours_are_not() {
    use AddressKind as K;
    let public = Network::public();
    for (text, expected) in [
        // --- public
        ("1.1.1.1", None),
        ("8.8.8.8", None),
        ("9.255.255.255", None),
        ("11.0.0.0", None),
        ("93.184.215.14", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("128.0.0.0", None),
        ("169.253.255.255", None),
        ("169.255.0.0", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("191.255.255.255", None),
        ("192.0.1.0", None),
        ("192.0.3.0", None),
        ("192.31.196.1", None),
        ("192.88.98.255", None),
        ("192.88.100.0", None),
        ("192.167.255.255", None),
        ("192.169.0.0", None),
        ("198.17.255.255", None),
        ("198.20.0.0", None),
        ("198.51.99.255", None),
        ("198.51.101.0", None),
        ("203.0.112.255", None),
        ("203.0.114.0", None),
        ("223.255.255.255", None),
        ("2001:200::1", None),
        ("2001:4860:4860::8888", None),
        ("2001:db7:ffff::1", None),
        ("2001:db9::", None),
        ("2003::", None),
        ("2606:4700:4700::1111", None),
        ("2a00:1450:4001::1", None),
        ("::ffff:1.1.1.1", None),
        // --- unspecified, loopback
        ("0.0.0.0", Some(K::Unspecified)),
        ("0.0.0.1", Some(K::Unspecified)),
        ("0.255.255.255", Some(K::Unspecified)),
        ("127.0.0.0", Some(K::Loopback)),
        ("127.0.0.1", Some(K::Loopback)),
        ("127.255.255.255", Some(K::Loopback)),
        ("::", Some(K::Unspecified)),
        ("::1", Some(K::Loopback)),
        // --- private and shared
        ("10.0.0.0", Some(K::Private)),
        ("10.255.255.255", Some(K::Private)),
        ("172.16.0.0", Some(K::Private)),
        ("172.31.255.255", Some(K::Private)),
        ("192.168.0.0", Some(K::Private)),
        ("192.168.255.255", Some(K::Private)),
        ("100.64.0.0", Some(K::Shared)),
        ("100.127.255.255", Some(K::Shared)),
        ("fc00::", Some(K::UniqueLocal)),
        ("fd12:3456::1", Some(K::UniqueLocal)),
        ("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some(K::UniqueLocal)),
        ("fec0::1", Some(K::SiteLocal)),
        ("feff::1", Some(K::SiteLocal)),
        // --- link-local
        ("169.254.0.0", Some(K::LinkLocal)),
        ("169.254.255.255", Some(K::LinkLocal)),
        ("fe80::1", Some(K::LinkLocal)),
        ("febf:ffff::1", Some(K::LinkLocal)),
        // --- metadata
        ("169.254.169.254", Some(K::Metadata)),
        ("169.254.170.2", Some(K::Metadata)),
        ("169.254.170.23", Some(K::Metadata)),
        ("100.100.100.200", Some(K::Metadata)),
        ("192.0.0.192", Some(K::Metadata)),
        ("168.63.129.16", Some(K::Metadata)),
        ("fd00:ec2::254", Some(K::Metadata)),
        ("fd20:ce::254", Some(K::Metadata)),
        ("fe80::a9fe:a9fe", Some(K::Metadata)),
        ("::ffff:169.254.169.254", Some(K::Metadata)),
        // --- for documents, benchmarks and protocols
        ("192.0.0.0", Some(K::Protocol)),
        ("192.0.0.255", Some(K::Protocol)),
        ("192.88.99.1", Some(K::Protocol)),
        ("192.0.2.1", Some(K::Documentation)),
        ("198.51.100.255", Some(K::Documentation)),
        ("203.0.113.0", Some(K::Documentation)),
        ("233.252.0.1", Some(K::Documentation)),
        ("2001:db8::1", Some(K::Documentation)),
        ("3fff::1", Some(K::Documentation)),
        ("3fff:fff::1", Some(K::Documentation)),
        ("198.18.0.0", Some(K::Benchmarking)),
        ("198.19.255.255", Some(K::Benchmarking)),
        ("2001:2::1", Some(K::Benchmarking)),
        ("2001:10::1", Some(K::Protocol)),
        ("2001:20::1", Some(K::Protocol)),
        ("2001:1ff::1", Some(K::Protocol)),
        // --- many receivers, none, reserved
        ("224.0.0.1", Some(K::Multicast)),
        ("239.255.255.255", Some(K::Multicast)),
        ("ff02::1", Some(K::Multicast)),
        ("255.255.255.255", Some(K::Broadcast)),
        ("240.0.0.0", Some(K::Reserved)),
        ("255.255.255.254", Some(K::Reserved)),
        ("100::1", Some(K::Discard)),
        ("100:0:0:1::1", Some(K::Discard)),
        ("100:0:0:2::1", Some(K::Reserved)),
        ("1fff::1", Some(K::Reserved)),
        ("3ffe::1", Some(K::Reserved)),
        ("4000::1", Some(K::Reserved)),
        ("5f00::1", Some(K::Reserved)),
        ("8000::1", Some(K::Reserved)),
        ("fe00::1", Some(K::Reserved)),
        ("::ffff:0:127.0.0.1", Some(K::Reserved)),
        // --- forms that stand for an IPv4 address, whatever address that is
        ("64:ff9b::7f00:1", Some(K::Nat64)),
        ("64:ff9b::101:101", Some(K::Nat64)),
        ("64:ff9b:1::a00:1", Some(K::Nat64)),
        ("64:ff9b:2::1", Some(K::Reserved)),
        ("2002:7f00:1::", Some(K::SixToFour)),
        ("2002:101:101::1", Some(K::SixToFour)),
        ("2001::1", Some(K::Teredo)),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Some(K::Teredo)),
        ("::7f00:1", Some(K::V4Compatible)),
        ("::101:101", Some(K::V4Compatible)),
        ("::ffff:127.0.0.1", Some(K::Loopback)),
        ("::ffff:10.0.0.1", Some(K::Private)),
        ("::ffff:0.0.0.0", Some(K::Unspecified)),
    ] {
        assert_eq!(kind(&public, text), expected, "{text}");
    }
}

#[test]
fn an_entry_permits_exactly_its_network() {
    let network = allowing(&["10.20.0.0/16", "fd12::/16", "127.0.0.1/32"]);
    for text in [
        "10.20.0.0",
        "10.20.255.255",
        "::ffff:10.20.0.1",
        "fd12::1",
        "127.0.0.1",
        "1.1.1.1",
    ] {
        assert_eq!(kind(&network, text), None, "{text}");
    }
    for text in [
        "10.19.255.255",
        "10.21.0.0",
        "fd13::1",
        "127.0.0.2",
        "192.168.0.1",
        "::1",
        "0.0.0.0",
    ] {
        assert!(kind(&network, text).is_some(), "{text}");
    }
}

#[test]
fn an_entry_with_host_bits_means_its_network() {
    let network = allowing(&["10.20.30.40/16"]);
    assert_eq!(kind(&network, "10.20.0.1"), None);
    assert!(kind(&network, "10.21.0.1").is_some());
}

#[test]
fn metadata_services_are_permitted_only_by_naming_the_single_host() {
    for (net, host) in [
        ("169.254.0.0/16", "169.254.169.254"),
        ("169.254.169.254/31", "169.254.169.254"),
        ("0.0.0.0/0", "169.254.169.254"),
        ("0.0.0.0/0", "168.63.129.16"),
        ("0.0.0.0/0", "100.100.100.200"),
        ("0.0.0.0/0", "::ffff:169.254.169.254"),
        ("::ffff:0.0.0.0/96", "169.254.169.254"),
        ("fd00::/8", "fd00:ec2::254"),
        ("fd00:ec2::254/127", "fd00:ec2::254"),
        ("::/0", "fd00:ec2::254"),
        ("fe80::/10", "fe80::a9fe:a9fe"),
    ] {
        assert_eq!(
            kind(&allowing(&[net]), host),
            Some(AddressKind::Metadata),
            "{net} {host}"
        );
    }
    for (net, host) in [
        ("169.254.169.254/32", "169.254.169.254"),
        ("169.254.169.254/32", "::ffff:169.254.169.254"),
        ("::ffff:169.254.169.254/128", "169.254.169.254"),
        ("fd00:ec2::254/128", "fd00:ec2::254"),
    ] {
        assert_eq!(kind(&allowing(&[net]), host), None, "{net} {host}");
    }
    let one = allowing(&["169.254.169.254/32"]);
    assert!(kind(&one, "169.254.169.253").is_some());
    assert!(kind(&one, "169.254.170.2").is_some());
}

#[test]
fn a_mapped_entry_is_an_entry_for_ipv4() {
    let network = allowing(&["::ffff:10.0.0.0/104"]);
    assert_eq!(kind(&network, "10.9.9.9"), None);
    assert_eq!(kind(&network, "::ffff:10.9.9.9"), None);
    assert!(kind(&network, "11.0.0.0").is_none(), "public all the same");
    assert!(kind(&network, "127.0.0.1").is_some());
    // Wider than the mapped block: says nothing of IPv4.
    assert!(kind(&allowing(&["::/0"]), "10.0.0.1").is_some());
    assert!(kind(&allowing(&["::/0"]), "::ffff:10.0.0.1").is_some());
}

#[test]
fn an_embedded_address_needs_an_entry_of_its_own_form_and_is_judged_itself() {
    use AddressKind as K;
    for (nets, text, expected) in [
        // A wide entry, or one for the inner address, does not open a form.
        (&["::/0"][..], "64:ff9b::101:101", Some(K::Nat64)),
        (&["::/0"], "2002:101:101::1", Some(K::SixToFour)),
        (&["::/0"], "::101:101", Some(K::V4Compatible)),
        (&["2000::/3"], "2001::1", Some(K::Teredo)),
        (&["127.0.0.0/8"], "64:ff9b::7f00:1", Some(K::Nat64)),
        (&["64:ff9b::/32"], "64:ff9b::101:101", Some(K::Nat64)),
        // An entry inside the form's block opens it for public addresses.
        (&["64:ff9b::/96"], "64:ff9b::101:101", None),
        (&["64:ff9b:1::/48"], "64:ff9b:1::101:101", None),
        (&["2002::/16"], "2002:101:101::1", None),
        (&["2001::/32"], "2001:0:101:101:0:0:fefe:fefe", None),
        // The inner address is judged all the same.
        (&["64:ff9b::/96"], "64:ff9b::7f00:1", Some(K::Loopback)),
        (&["64:ff9b::/96"], "64:ff9b::a9fe:a9fe", Some(K::Metadata)),
        (&["64:ff9b:1::/48"], "64:ff9b:1::a00:1", Some(K::Private)),
        (&["2002::/16"], "2002:a00:1::1", Some(K::Private)),
        (&["2001::/32"], "2001:0:a00:1:0:0:fefe:fefe", Some(K::Private)),
        (&["2001::/32"], "2001:0:101:101:0:0:80ff:fffe", Some(K::Loopback)),
        (&["64:ff9b::/96", "10.0.0.0/8"], "64:ff9b::a00:1", None),
        // A single host is what it says.
        (&["64:ff9b::a9fe:a9fe/128"], "64:ff9b::a9fe:a9fe", None),
        (&["64:ff9b::a9fe:a9fe/128"], "64:ff9b::a9fe:a9ff", Some(K::Nat64)),
    ] {
        assert_eq!(kind(&allowing(nets), text), expected, "{nets:?} {text}");
    }
}

#[test]
fn a_fault_names_address_kind_and_remedy() {
    let text = |address: &str| Network::public().permits(ip(address)).unwrap_err().to_string();
    assert_eq!(
        text("10.0.0.5"),
        "the address `10.0.0.5` is private; if it is meant, add its network to `network.allow`"
    );
    assert!(text("169.254.169.254").contains("only by naming this single host"));
    assert!(text("64:ff9b::1").contains("this form's own block"));
}

const REFUSED_V4: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

const REFUSED_V6: &[&str] = &[
    "::/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "4000::/2",
    "8000::/1",
];

proptest! {
    #[test]
    fn every_address_of_a_refused_ipv4_block_is_refused(block in prop::sample::select(REFUSED_V4), bits in any::<u32>()) {
        let net: Ipv4Net = block.parse().unwrap();
        let address = Ipv4Addr::from_bits(net.network().to_bits() | (bits & net.hostmask().to_bits()));
        prop_assert!(Network::public().permits(address.into()).is_err(), "{}", address);
        prop_assert!(Network::public().permits(address.to_ipv6_mapped().into()).is_err(), "{}", address);
    }

    #[test]
    fn every_address_of_a_refused_ipv6_block_is_refused(block in prop::sample::select(REFUSED_V6), bits in any::<u128>()) {
        let net: Ipv6Net = block.parse().unwrap();
        let address = Ipv6Addr::from_bits(net.network().to_bits() | (bits & net.hostmask().to_bits()));
        prop_assert!(Network::public().permits(address.into()).is_err(), "{}", address);
    }

    #[test]
    fn a_mapped_address_has_the_verdict_of_its_ipv4_address(bits in any::<u32>(), net in any::<u32>(), prefix in 0_u8..=32) {
        let address = Ipv4Addr::from_bits(bits);
        let net = IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(net), prefix).unwrap());
        for network in [Network::public(), Network::allowing(vec![net])] {
            let plain = network.permits(address.into()).map_err(|fault| fault.kind);
            let mapped = network.permits(address.to_ipv6_mapped().into()).map_err(|fault| fault.kind);
            prop_assert_eq!(plain, mapped, "{}", address);
        }
    }

    #[test]
    fn an_entry_never_takes_anything_away_and_adds_only_itself(bits in any::<u128>(), net in any::<u128>(), prefix in 0_u8..=128) {
        let address = Ipv6Addr::from_bits(bits);
        let net = Ipv6Net::new(Ipv6Addr::from_bits(net), prefix).unwrap();
        let before = Network::public().permits(address.into());
        let after = Network::allowing(vec![IpNet::V6(net)]).permits(address.into());
        prop_assert!(before.is_err() || after.is_ok());
        prop_assert!(before.is_ok() || after.is_err() || net.contains(&address));
    }
}
