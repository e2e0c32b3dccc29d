//! What a call must hold and where it may come from, asked in one function at list and at call.

use std::net::IpAddr;

use crate::error::{Error, ErrorKind};
use crate::principal::{Origin, Principal, Proof, TransportKind};

/// The demands of one registry entry. The default demands nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Permissions that the principal must hold, **all** of them.
    pub permissions: Vec<String>,
    /// Where a call may come from.
    pub acl: Acl,
}

/// Where a call may come from. `None` means anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acl {
    /// The adapters that may reach the entry.
    pub transports: Option<Vec<TransportKind>>,
    /// The networks that may reach the entry. A call without a network (stdio) is local and passes.
    pub networks: Option<Vec<Network>>,
}

/// An address range: the first `prefix_bits` bits of `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Any address of the range.
    pub address: IpAddr,
    /// How many leading bits count, at most 32 (IPv4) or 128 (IPv6).
    pub prefix_bits: u8,
}

impl Network {
    /// Whether `peer` lies in the range. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn contains(&self, peer: IpAddr) -> bool {
        match (self.address.to_canonical(), peer.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(peer)) => {
                let shift = 32 - u32::from(self.prefix_bits.min(32));
                (u64::from(network.to_bits()) >> shift) == (u64::from(peer.to_bits()) >> shift)
            }
            (IpAddr::V6(network), IpAddr::V6(peer)) => {
                let shift = 128 - u32::from(self.prefix_bits.min(128));
                network.to_bits().checked_shr(shift) == peer.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

impl Access {
    /// Asks whether `principal` may reach an entry from `origin`.
    ///
    /// # Errors
    /// `Unauthenticated` when an anonymous caller lacks a permission, else `Forbidden`. The
    /// message names nothing of the target: a registry turns both into "not found" for entries
    /// that are hidden from the caller.
    pub fn authorize(&self, principal: &Principal, origin: Origin) -> Result<(), Error> {
        if !self.permissions.iter().all(|permission| principal.permissions.contains(permission)) {
            let kind = match principal.proof {
                Proof::Anonymous => ErrorKind::Unauthenticated,
                Proof::Process => ErrorKind::Forbidden,
            };
            return Err(Error::new(kind, "the caller lacks a permission"));
        }
        if !self.acl.allows(origin) {
            return Err(Error::new(ErrorKind::Forbidden, "not reachable from here"));
        }
        Ok(())
    }
}

impl Acl {
    fn allows(&self, origin: Origin) -> bool {
        let transport = self.transports.as_ref().is_none_or(|allowed| allowed.contains(&origin.transport));
        let network = match (&self.networks, origin.peer) {
            (Some(allowed), Some(peer)) => allowed.iter().any(|network| network.contains(peer)),
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        transport && network
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses_only() {
        let network = |address: &str, prefix_bits| Network { address: address.parse().unwrap(), prefix_bits };
        let contains = |network: Network, peer: &str| network.contains(peer.parse().unwrap());
        assert!(contains(network("10.0.0.0", 8), "10.255.3.1"));
        assert!(contains(network("10.0.0.0", 8), "::ffff:10.1.1.1"));
        assert!(!contains(network("10.0.0.0", 8), "11.0.0.1"));
        assert!(contains(network("0.0.0.0", 0), "203.0.113.9"));
        assert!(contains(network("::", 0), "2001:db8::1"));
        assert!(contains(network("2001:db8::", 32), "2001:db8:1::1"));
        assert!(!contains(network("2001:db8::", 32), "2001:db9::1"));
        assert!(!contains(network("::", 0), "203.0.113.9"));
    }
}
