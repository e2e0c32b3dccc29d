//! Networks whose proxies are trusted.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address, or a network with a prefix length: `10.0.0.5`, `10.1.0.0/16`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrustedNetwork {
    first: IpAddr,
    bits: u8,
}

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrustedNetworkError(String);

impl TrustedNetwork {
    /// Whether `address` is in the network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && first_bits(address, self.bits) == self.first
    }
}

impl FromStr for TrustedNetwork {
    type Err = TrustedNetworkError;

    fn from_str(text: &str) -> Result<Self, TrustedNetworkError> {
        let malformed = || {
            let problem = format!("{text:?} is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8");
            TrustedNetworkError(problem)
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| malformed())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits.unwrap_or(bits_max);
        if bits > bits_max {
            return Err(malformed());
        }
        if bits == 0 {
            let problem = format!("{text:?} contains every address; list the addresses of your proxies");
            return Err(TrustedNetworkError(problem));
        }
        let network = Self { first: first_bits(address, bits), bits };
        if network.first != address {
            let problem = format!("{text:?} has bits set after the first {bits}; did you mean {network}?");
            return Err(TrustedNetworkError(problem));
        }
        // Peers are compared in canonical form, so an IPv4-mapped address would never match.
        if bits == bits_max { Ok(Self::from_address(address.to_canonical())) } else { Ok(network) }
    }
}

impl TrustedNetwork {
    fn from_address(address: IpAddr) -> Self {
        Self { first: address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl fmt::Display for TrustedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// `address` with only its first `bits` bits (at least one) set.
fn first_bits(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() & (u32::MAX << (32 - bits.clamp(1, 32)))).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << (128 - bits.clamp(1, 128)))).into()),
    }
}
