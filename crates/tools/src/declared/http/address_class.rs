//! Classification of IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressClass {
    Public,
    Loopback,
    Private,
    /// Link-local and metadata addresses, and addresses that do not belong to one host. No API has such an address.
    Forbidden,
}

/// Metadata services of clouds outside the link-local networks: Alibaba, Azure.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
/// The same for AWS and Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// Classifies `address`. IPv6 forms of an IPv4 address count as IPv4.
pub(super) fn classify_address(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => embedded_ipv4(address).map_or_else(|| classify_v6(address), classify_v4),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Forbidden;
    }
    match address.octets() {
        [127, ..] => AddressClass::Loopback,
        // "This network", link-local, multicast, reserved and broadcast.
        [0, ..] | [169, 254, ..] | [224..=255, ..] => AddressClass::Forbidden,
        // RFC 1918, shared address space, protocol assignments, benchmarks.
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => {
            AddressClass::Private
        }
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Forbidden;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Link-local, multicast, and Teredo, which embeds another address.
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] | [0x2001, 0, ..] => AddressClass::Forbidden,
        // Unique local, the deprecated site-local, and NAT64 with a local prefix.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

/// The IPv4 address in an IPv6 address: mapped, compatible, NAT64 (RFC 6052) and 6to4. This includes the unspecified
/// address, but not loopback.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [high, low] = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => return None,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] => [high, low],
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [high, low],
        [0x2002, high, low, ..] => [high, low],
        _ => return None,
    };
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_addresses_in_every_notation() {
        let all = [
            (AddressClass::Public, ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "172.32.0.1"]),
            (AddressClass::Loopback, ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]),
            (AddressClass::Loopback, ["::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "127.255.255.255"]),
            (AddressClass::Private, ["10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"]),
            (AddressClass::Private, ["fc00::1", "fdff::1", "fec0::1", "::ffff:10.0.0.1"]),
            (AddressClass::Forbidden, ["169.254.169.254", "::ffff:169.254.1.1", "fe80::1", "febf::1"]),
            (AddressClass::Forbidden, ["0.0.0.0", "::", "255.255.255.255", "ff02::1"]),
            (AddressClass::Forbidden, ["100.100.100.200", "168.63.129.16", "fd00:ec2::254", "224.0.0.1"]),
        ];
        for (address_class, addresses) in all {
            for address in addresses {
                assert_eq!(classify_address(address.parse().unwrap()), address_class, "{address}");
            }
        }
    }
}
