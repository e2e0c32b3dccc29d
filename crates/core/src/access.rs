//! Access control of registry entries, databases and rows. Lists and calls apply the same check.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::grants::{AllowedNames, Grants};
use crate::principal::{AuthMethod, CallOrigin, Caller, Principal, Toolset, TransportKind};

/// What an entry requires of a caller, in addition to a toolset of the caller's roles that contains the entry. The
/// default requires nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Access names that the principal must hold, **all** of them.
    pub names: Vec<String>,
    /// The only toolset whose endpoint includes the entry, for callers that may use this endpoint; `None` for any
    /// endpoint.
    pub toolset: Option<String>,
    /// Whether callers that may write rows have the entry without a toolset that contains it, as devices that only send
    /// rows.
    pub is_for_senders: bool,
    /// Whether the entry reads databases that the caller names, by the caller's right to them. A declared entry has a right
    /// of its own to its database.
    pub reads_caller_databases: bool,
    /// The transports and networks that a call may come from.
    pub acl: Acl,
    /// Whether only authenticated callers may call the entry. Lists hide it from anonymous callers; a call by one fails
    /// with `Unauthenticated`.
    pub requires_authentication: bool,
    /// OAuth scopes that the caller's token must carry, **all** of them, or broader scopes that imply them. Lists
    /// include the entry without them, and the error of a call names the missing scopes, so that a client can request
    /// them (step-up). They apply to tokens only: callers with other credentials need none, and anonymous callers must
    /// authenticate.
    pub scopes: Vec<String>,
    /// A further rule on principals, set by the provider of the entry; for example the roles of a database.
    pub principal_rule: Option<PrincipalRule>,
    /// The entry that this one calls for its callers, who need the rights to both.
    pub calls: Option<Arc<CalledEntry>>,
}

/// An entry that another one calls, and what it requires of a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalledEntry {
    /// Its name.
    pub name: String,
    /// What it requires.
    pub access: Access,
}

/// A predicate on principals, set by the provider of an entry. It is evaluated for each entry of a list, so it must be
/// cheap.
#[derive(Clone)]
pub struct PrincipalRule(Arc<dyn Fn(&Principal) -> bool + Send + Sync>);

impl PrincipalRule {
    /// A rule that allows the principals for which `rule` returns true.
    pub fn new(rule: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }

    /// Restricts this rule to principals for which `rule` returns true as well.
    #[must_use]
    pub fn and(self, rule: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |principal| self.allows_principal(principal) && rule(principal))
    }

    /// Whether the rule allows `principal`.
    pub fn allows_principal(&self, principal: &Principal) -> bool {
        (self.0)(principal)
    }
}

crate::impl_debug!(PrincipalRule, "PrincipalRule(..)");

impl PartialEq for PrincipalRule {
    /// Two rules are equal only if they are the same object.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PrincipalRule {}

/// The transports and networks that a call may come from. `None` means any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acl {
    /// The transports that can reach the entry.
    pub transports: Option<Vec<TransportKind>>,
    /// The networks that can reach the entry. A call without a peer address (stdio) is local and always passes.
    pub networks: Option<Vec<IpNetwork>>,
}

/// An address range: the first `prefix_bits` bits of `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    /// Any address of the range.
    pub address: IpAddr,
    /// The number of leading bits that count: at most 32 (IPv4) or 128 (IPv6).
    pub prefix_bits: u8,
}

impl IpNetwork {
    /// Parses `10.0.0.0/8`, or a single address.
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

    /// Whether `peer` is in the range. An IPv4 address mapped into IPv6 counts as IPv4.
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
    /// Checks whether `caller` may call the entry `name`.
    ///
    /// # Errors
    /// `Unauthenticated` if an anonymous caller lacks an access name or scopes, else `Forbidden`. A registry turns both
    /// into `NotFound` for entries that are hidden from the caller, except entries that require authentication or
    /// scopes.
    pub fn authorize(&self, name: &str, caller: &Caller) -> Result<(), Error> {
        self.check_reachable(name, caller)?;
        self.check_credentials(name, caller)?;
        // A client that obtains more scopes then calls this entry again.
        self.called_access().map_or(Ok(()), |called| called.check_credentials(name, caller))
    }

    fn check_credentials(&self, name: &str, caller: &Caller) -> Result<(), Error> {
        // Scopes imply authentication: otherwise a caller without scopes could omit its token.
        let requires_authentication = self.requires_authentication || !self.scopes.is_empty();
        if requires_authentication && caller.principal.auth_method == AuthMethod::Anonymous {
            let message = format!("{name:?} requires authentication");
            let error = Error::new(ErrorKind::Unauthenticated, message).with_hint("Send an API key or a token.");
            // With these scopes, a token that a client obtains for this call is sufficient.
            return Err(error.with_scopes(caller.principal.implied_scopes.minimal(&self.scopes)));
        }
        self.require_scopes(name, &caller.principal)
    }

    fn require_scopes(&self, name: &str, principal: &Principal) -> Result<(), Error> {
        if self.scopes.is_empty() || principal.auth_method != AuthMethod::Token || principal.has_scopes(&self.scopes) {
            return Ok(());
        }
        // These scopes imply the others, so a client needs to request only these.
        let needed = principal.implied_scopes.minimal(&self.scopes);
        let message = format!("{name:?} needs a token with the scopes: {}", needed.join(" "));
        Err(Error::new(ErrorKind::Forbidden, message).with_scopes(needed))
    }

    /// Whether `caller` may learn that the entry `name` exists. True also if the caller would only need to authenticate
    /// or to obtain more scopes.
    pub fn is_discoverable_by(&self, name: &str, caller: &Caller) -> bool {
        self.check_reachable(name, caller).is_ok()
    }

    /// Whether lists show the entry `name` to `caller`. Missing scopes do not hide it.
    pub fn is_listed_for(&self, name: &str, caller: &Caller) -> bool {
        let called_requires = self.called_access().is_some_and(|called| called.requires_authentication);
        let requires_authentication = self.requires_authentication || called_requires;
        let satisfies_authentication =
            !requires_authentication || caller.principal.auth_method != AuthMethod::Anonymous;
        satisfies_authentication && self.check_reachable(name, caller).is_ok()
    }

    fn called_access(&self) -> Option<&Self> {
        self.calls.as_deref().map(|called| &called.access)
    }

    fn check_reachable(&self, name: &str, caller: &Caller) -> Result<(), Error> {
        self.check_reachable_at(caller.toolset.as_ref(), name, caller)?;
        let Some(called) = self.calls.as_deref() else { return Ok(()) };
        // The endpoint must include only the entry itself, so that it can offer that without the other one.
        called.access.check_reachable_at(None, &called.name, caller).map_err(|error| {
            Error::new(error.kind(), format!("{:?}, which it calls: {}", called.name, error.message()))
        })
    }

    fn check_reachable_at(&self, endpoint: Option<&Arc<Toolset>>, name: &str, caller: &Caller) -> Result<(), Error> {
        let grants = &caller.principal.grants;
        if let Some(missing) = self.names.iter().find(|name| !grants.access.includes(name)) {
            let kind = match caller.principal.auth_method {
                AuthMethod::Anonymous => ErrorKind::Unauthenticated,
                _ => ErrorKind::Forbidden,
            };
            return Err(Error::new(kind, format!("none of the caller's roles grants the access {missing:?}")));
        }
        let forbidden = |message: &str| Err(Error::new(ErrorKind::Forbidden, message));
        if !self.is_granted(name, grants) {
            return forbidden("no toolset of the caller's roles contains it");
        }
        if !self.is_in_toolset(name, endpoint) {
            return forbidden("it is not in the toolset of this endpoint");
        }
        if !self.acl.allows(caller.origin) {
            return forbidden("it cannot be called over this transport or from this network");
        }
        if self.principal_rule.as_ref().is_some_and(|rule| !rule.allows_principal(&caller.principal)) {
            return forbidden("it is reserved for other callers");
        }
        Ok(())
    }

    fn is_granted(&self, name: &str, grants: &Grants) -> bool {
        let by_endpoint = self.toolset.as_ref().is_some_and(|only| grants.toolsets.includes(only));
        let by_rows = self.is_for_senders && grants.ingest != AllowedNames::NOTHING;
        grants.entries.includes(name) || by_endpoint || by_rows
    }

    /// Whether it requires nothing of the caller, the transport and the network.
    pub fn is_unrestricted(&self) -> bool {
        let requires_nothing = self.names.is_empty() && self.scopes.is_empty() && !self.requires_authentication;
        let called_requires_nothing = self.called_access().is_none_or(Self::is_unrestricted);
        requires_nothing && called_requires_nothing && self.acl == Acl::default() && self.principal_rule.is_none()
    }

    /// Whether it depends on the address of the caller.
    pub fn depends_on_networks(&self) -> bool {
        self.acl.networks.is_some() || self.called_access().is_some_and(Self::depends_on_networks)
    }

    /// Whether lists show the entry depending on more of the principal than its grants.
    pub fn depends_on_principals(&self) -> bool {
        let depends_itself = self.requires_authentication || self.principal_rule.is_some();
        depends_itself || self.called_access().is_some_and(Self::depends_on_principals)
    }

    fn is_in_toolset(&self, name: &str, endpoint: Option<&Arc<Toolset>>) -> bool {
        let is_in_toolset = endpoint.is_none_or(|toolset| toolset.entries.includes(name));
        let is_its_endpoint =
            self.toolset.as_ref().is_none_or(|only| endpoint.is_some_and(|toolset| toolset.name == *only));
        is_in_toolset && is_its_endpoint
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

/// The databases that belong to tenants. By default every database is open to all callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseTenants {
    tenants: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl DatabaseTenants {
    /// Takes the tenants of each database that is not open to all callers.
    pub fn new(tenants: impl IntoIterator<Item = (String, BTreeSet<String>)>) -> Self {
        Self { tenants: Arc::new(tenants.into_iter().collect()) }
    }

    /// Whether the database exists for `principal`: it is open to all callers, or belongs to the principal's tenant. It
    /// always exists for the user of the process.
    pub fn admits(&self, database: &str, principal: &Principal) -> bool {
        let Some(tenants) = self.tenants.get(database) else { return true };
        let is_of_tenant = principal.tenant.as_ref().is_some_and(|tenant| tenants.contains(tenant));
        is_of_tenant || principal.auth_method == AuthMethod::Process
    }

    /// Adds the condition to `access` that the caller may see the database, for entries that give access to it.
    #[must_use]
    pub fn restrict(&self, database: &str, access: Access) -> Access {
        if !self.tenants.contains_key(database) {
            return access;
        }
        let (tenancy, database) = (self.clone(), database.to_owned());
        let admits = move |principal: &Principal| tenancy.admits(&database, principal);
        let principal_rule = match access.principal_rule {
            Some(others) => others.and(admits),
            None => PrincipalRule::new(admits),
        };
        Access { principal_rule: Some(principal_rule), ..access }
    }
}

/// The fingerprints of the row policies of all databases as they apply to a principal. Stored results and tasks are
/// visible only to callers with the same fingerprint. The default is that of a node without policies.
#[derive(Clone, Default)]
pub struct RowPolicyFingerprints(Option<Arc<FingerprintFn>>);

type FingerprintFn = dyn Fn(&Principal) -> u64 + Send + Sync;

impl RowPolicyFingerprints {
    /// Uses `fingerprint`. It must return the same value, in every process, while the policies and the principal's values in
    /// them are the same, and zero if no policy applies. It must be cheap, because it runs for each request of a task.
    pub fn new(fingerprint: impl Fn(&Principal) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(fingerprint)))
    }

    /// The fingerprint of `principal`.
    pub fn fingerprint_for(&self, principal: &Principal) -> u64 {
        self.0.as_ref().map_or(0, |fingerprint| fingerprint(principal))
    }
}

crate::impl_debug!(RowPolicyFingerprints, "RowPolicyFingerprints(..)");

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
        for invalid in ["", "10.0.0.0/33", "10.0.0/8", "office", "::/129", "10.0.0.0/"] {
            assert!(IpNetwork::parse(invalid).is_none(), "{invalid}");
        }
    }
}
