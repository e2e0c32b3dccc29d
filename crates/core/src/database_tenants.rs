//! The tenants of databases. A database with tenants does not exist for all other callers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::access::{Access, PrincipalRule};
use crate::principal::{AuthMethod, Principal};

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
        let is_of_one = principal.tenant.as_ref().is_some_and(|tenant| tenants.contains(tenant));
        is_of_one || principal.auth_method == AuthMethod::Process
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
