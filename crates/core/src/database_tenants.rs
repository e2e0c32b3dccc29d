//! Which databases are whose: those of some tenants are not there for anybody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::access::{Access, PrincipalRule};
use crate::principal::{AuthMethod, Principal};

/// Whose the databases of a node are. The default keeps none from anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseTenants {
    tenants: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl DatabaseTenants {
    /// The tenants of each database that is not everybody's.
    pub fn new(tenants: impl IntoIterator<Item = (String, BTreeSet<String>)>) -> Self {
        Self { tenants: Arc::new(tenants.into_iter().collect()) }
    }

    /// Whether the database of that name is there for `principal`: it is everybody's, or of the tenant of `principal`. To
    /// the user of the process, whose files they are, it always is.
    pub fn admits(&self, database: &str, principal: &Principal) -> bool {
        let Some(tenants) = self.tenants.get(database) else { return true };
        let is_of_one = principal.tenant.as_ref().is_some_and(|tenant| tenants.contains(tenant));
        is_of_one || principal.auth_method == AuthMethod::Process
    }

    /// What an entry demands that carries the right to the database of that name: `access`, and to be of one of its
    /// tenants.
    #[must_use]
    pub fn restrict(&self, database: &str, access: Access) -> Access {
        if !self.tenants.contains_key(database) {
            return access;
        }
        let (tenancy, database) = (self.clone(), database.to_owned());
        let admits = move |principal: &Principal| tenancy.admits(&database, principal);
        let only_for = match access.principal_rule {
            Some(others) => others.and(admits),
            None => PrincipalRule::new(admits),
        };
        Access { principal_rule: Some(only_for), ..access }
    }
}
