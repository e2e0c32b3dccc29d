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
#[non_exhaustive]
pub enum TrustedNetworkError {
    /// The text is neither an address nor a network.
    #[error("{0:?} is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8")]
    Malformed(String),
    /// Bits after the prefix are set, so the meaning is unclear.
    #[error("{text:?} has bits set after the first {bits}; did you mean {meant}?")]
    TooManyBits {
        /// The text.
        text: String,
        /// The prefix length.
        bits: u8,
        /// The network without the extra bits.
        meant: TrustedNetwork,
    },
    /// The network contains every address.
    #[error("{0:?} contains every address; list the addresses of your proxies")]
    Everybody(String),
}

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
        let malformed = || TrustedNetworkError::Malformed(text.to_owned());
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
            return Err(TrustedNetworkError::Everybody(text.to_owned()));
        }
        let network = Self { first: first_bits(address, bits), bits };
        if network.first != address {
            return Err(TrustedNetworkError::TooManyBits { text: text.to_owned(), bits, meant: network });
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
