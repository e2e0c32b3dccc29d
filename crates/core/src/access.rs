//! What a call must hold and where it may come from, asked in one function at list and at call.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::caller::Caller;
use crate::error::{Error, ErrorKind};
use crate::principal::{AuthMethod, CallOrigin, Principal, TransportKind};

/// The demands of one registry entry, beside that the caller's roles let it reach the entry's name.
/// The default demands nothing more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Access names that the principal must hold, **all** of them.
    pub names: Vec<String>,
    /// The only toolset through whose door the entry is reached; none for any door.
    pub toolset: Option<String>,
    /// Where a call may come from.
    pub acl: Acl,
    /// Whether the caller must have shown who it is. Lists hide the entry from those who have not; who calls it all the
    /// same is told to.
    pub requires_authentication: bool,
    /// OAuth scopes that the caller's token must carry, **all** of them, or broader ones that imply them. Lists show the
    /// entry all the same, and who calls it without is told which: so a client can ask its user for more (step-up). Only
    /// tokens have scopes; who proves itself otherwise is not asked for any, and who shows nothing is asked who it is.
    pub scopes: Vec<String>,
    /// Whom it is for beyond that, where whoever brought the entry has rights of its own: those of a database's roles.
    pub principal_rule: Option<PrincipalRule>,
}

/// Whom an entry is for, by a rule of whoever brought it. Must be cheap: it is asked for each entry of a list.
#[derive(Clone)]
pub struct PrincipalRule(Arc<dyn Fn(&Principal) -> bool + Send + Sync>);

impl PrincipalRule {
    /// Those for whom `rule` is true.
    pub fn new(rule: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }

    /// Those of these for whom `rule` is true, too.
    #[must_use]
    pub fn and(self, rule: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |principal| self.allows_principal(principal) && rule(principal))
    }

    fn allows_principal(&self, principal: &Principal) -> bool {
        (self.0)(principal)
    }
}

impl fmt::Debug for PrincipalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrincipalRule(..)")
    }
}

impl PartialEq for PrincipalRule {
    /// Rules are equal when they are the same.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PrincipalRule {}

/// Where a call may come from. `None` means anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acl {
    /// The adapters that may reach the entry.
    pub transports: Option<Vec<TransportKind>>,
    /// The networks that may reach the entry. A call without a network (stdio) is local and passes.
    pub networks: Option<Vec<IpNetwork>>,
}

/// An address range: the first `prefix_bits` bits of `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    /// Any address of the range.
    pub address: IpAddr,
    /// How many leading bits count, at most 32 (IPv4) or 128 (IPv6).
    pub prefix_bits: u8,
}

impl IpNetwork {
    /// Reads `10.0.0.0/8`, or a single address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = bits.unwrap_or(bits_max);
        (prefix_bits <= bits_max).then_some(Self { address, prefix_bits })
    }

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
    /// Asks whether `caller` may reach the entry of that name.
    ///
    /// # Errors
    /// `AuthenticationError` when an anonymous caller lacks an access name or scopes, else `Forbidden`. A registry turns
    /// both into "not found" for entries that are hidden from the caller, but for those that ask who it is, or for
    /// scopes.
    pub fn authorize(&self, name: &str, caller: &Caller) -> Result<(), Error> {
        self.check_reachable(name, caller)?;
        // Else whoever lacks a scope would only have to show nothing.
        let asks_who = self.requires_authentication || !self.scopes.is_empty();
        if asks_who && caller.principal.auth_method == AuthMethod::Anonymous {
            let message = format!("{name:?} requires authentication");
            let error = Error::new(ErrorKind::Unauthenticated, message).with_hint("Send an API key or a token.");
            // A token that a client gets for this call is then enough for it.
            return Err(error.with_scopes(caller.principal.implied_scopes.minimal(&self.scopes)));
        }
        self.require_scopes(name, &caller.principal)
    }

    fn require_scopes(&self, name: &str, principal: &Principal) -> Result<(), Error> {
        if self.scopes.is_empty() || principal.auth_method != AuthMethod::Token || principal.has_scopes(&self.scopes) {
            return Ok(());
        }
        // A client that asks for these gets the others with them.
        let needed = principal.implied_scopes.minimal(&self.scopes);
        let message = format!("{name:?} needs a token with the scopes: {}", needed.join(" "));
        Err(Error::new(ErrorKind::Forbidden, message).with_scopes(needed))
    }

    /// Whether `caller` may know that there is the entry of that name: whoever reaches it, or would with a proof of who
    /// it is or with more scopes.
    pub(crate) fn is_discoverable_by(&self, name: &str, caller: &Caller) -> bool {
        self.check_reachable(name, caller).is_ok()
    }

    /// Whether `caller` may see the entry of that name in lists: also if its token lacks scopes.
    pub(crate) fn is_listed_for(&self, name: &str, caller: &Caller) -> bool {
        let has_shown_itself = !self.requires_authentication || caller.principal.auth_method != AuthMethod::Anonymous;
        has_shown_itself && self.check_reachable(name, caller).is_ok()
    }

    fn check_reachable(&self, name: &str, caller: &Caller) -> Result<(), Error> {
        let grants = &caller.principal.grants;
        if let Some(missing) = self.names.iter().find(|name| !grants.access.includes(name)) {
            let kind = match caller.principal.auth_method {
                AuthMethod::Anonymous => ErrorKind::Unauthenticated,
                _ => ErrorKind::Forbidden,
            };
            return Err(Error::new(kind, format!("none of the caller's roles grants the access {missing:?}")));
        }
        if !grants.entries.includes(name) {
            return Err(Error::new(ErrorKind::Forbidden, "no toolset of the caller's roles contains it"));
        }
        if !self.is_in_toolset(name, caller) {
            return Err(Error::new(ErrorKind::Forbidden, "it is not in the toolset of this endpoint"));
        }
        if !self.acl.allows(caller.origin) {
            return Err(Error::new(ErrorKind::Forbidden, "it cannot be called over this transport or from this network"));
        }
        if self.principal_rule.as_ref().is_some_and(|only_for| !only_for.allows_principal(&caller.principal)) {
            return Err(Error::new(ErrorKind::Forbidden, "it is reserved for other callers"));
        }
        Ok(())
    }

    /// Whether it demands nothing of who calls and from where.
    pub(crate) fn is_unrestricted(&self) -> bool {
        let asks_for_nothing = self.names.is_empty() && self.scopes.is_empty() && !self.requires_authentication;
        asks_for_nothing && self.acl == Acl::default() && self.principal_rule.is_none()
    }

    fn is_in_toolset(&self, name: &str, caller: &Caller) -> bool {
        let http_state = caller.toolset.as_ref();
        let is_in_toolset = http_state.is_none_or(|toolset| toolset.entries.includes(name));
        let is_its_door =
            self.toolset.as_ref().is_none_or(|only| http_state.is_some_and(|toolset| toolset.name == *only));
        is_in_toolset && is_its_door
    }
}

impl Acl {
    fn allows(&self, origin: CallOrigin) -> bool {
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
    fn network_contains_only_its_addresses() {
        let network = |address: &str, prefix_bits: u8| IpNetwork::parse(&format!("{address}/{prefix_bits}")).unwrap();
        let contains = |network: IpNetwork, peer: &str| network.contains(peer.parse().unwrap());
        assert!(contains(network("10.0.0.0", 8), "10.255.3.1"));
        assert!(contains(network("10.0.0.0", 8), "::ffff:10.1.1.1"));
        assert!(!contains(network("10.0.0.0", 8), "11.0.0.1"));
        assert!(contains(network("0.0.0.0", 0), "203.0.113.9"));
        assert!(contains(network("::", 0), "2001:db8::1"));
        assert!(contains(network("2001:db8::", 32), "2001:db8:1::1"));
        assert!(!contains(network("2001:db8::", 32), "2001:db9::1"));
        assert!(!contains(network("::", 0), "203.0.113.9"));
        assert!(contains(IpNetwork::parse("192.0.2.7").unwrap(), "192.0.2.7"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "office", "::/129", "10.0.0.0/"] {
            assert!(IpNetwork::parse(wrong).is_none(), "{wrong}");
        }
    }
}
