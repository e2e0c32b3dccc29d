//! Which part of the network an address lies in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which part of the network an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbourhood {
    /// The internet.
    Public,
    /// This machine.
    Loopback,
    /// A network of the house.
    Private,
    /// Link-local and metadata addresses, and what is no address of one host: nothing that an API lives at.
    OffLimits,
}

/// Where clouds serve credentials to their machines, outside the link-local networks: Alibaba, Azure.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
/// The same of AWS and Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// Which part of the network `address` lies in. IPv6 forms that stand for an IPv4 address count as that.
pub(super) fn neighbourhood(address: IpAddr) -> Neighbourhood {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => embedded(address).map_or_else(|| of_v6(address), of_v4),
    }
}

fn of_v4(address: Ipv4Addr) -> Neighbourhood {
    if METADATA_V4.contains(&address) {
        return Neighbourhood::OffLimits;
    }
    match address.octets() {
        [127, ..] => Neighbourhood::Loopback,
        // "This network", link-local, multicast, reserved and broadcast.
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Neighbourhood::OffLimits,
        // RFC 1918, shared address space, protocol assignments, benchmarks.
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => {
            Neighbourhood::Private
        }
        _ => Neighbourhood::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Neighbourhood {
    if METADATA_V6.contains(&address) {
        return Neighbourhood::OffLimits;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Neighbourhood::Loopback,
        // Link-local, multicast, and Teredo, which hides an address of its own.
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] | [0x2001, 0, ..] => Neighbourhood::OffLimits,
        // Unique local and the site-local that was before it; NAT64 of a network's own choice.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => Neighbourhood::Private,
        _ => Neighbourhood::Public,
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64 (RFC 6052) and 6to4. The unspecified
/// address is one of them, loopback is not.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
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
    fn addresses_lie_where_they_lie_in_whatever_form() {
        let all = [
            (Neighbourhood::Public, ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "172.32.0.1"]),
            (Neighbourhood::Loopback, ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]),
            (Neighbourhood::Loopback, ["::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "127.255.255.255"]),
            (Neighbourhood::Private, ["10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"]),
            (Neighbourhood::Private, ["fc00::1", "fdff::1", "fec0::1", "::ffff:10.0.0.1"]),
            (Neighbourhood::OffLimits, ["169.254.169.254", "::ffff:169.254.1.1", "fe80::1", "febf::1"]),
            (Neighbourhood::OffLimits, ["0.0.0.0", "::", "255.255.255.255", "ff02::1"]),
            (Neighbourhood::OffLimits, ["100.100.100.200", "168.63.129.16", "fd00:ec2::254", "224.0.0.1"]),
        ];
        for (wanted, addresses) in all {
            for address in addresses {
                assert_eq!(neighbourhood(address.parse().unwrap()), wanted, "{address}");
            }
        }
    }
}
