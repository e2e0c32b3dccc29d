//! Which databases are whose: those of some tenants are not there for anybody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::principal::{Principal, Proof};

/// Whose the databases of a node are. The default keeps none from anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenancy {
    tenants: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl Tenancy {
    /// The tenants of each database that is not everybody's.
    pub fn new(tenants: impl IntoIterator<Item = (String, BTreeSet<String>)>) -> Self {
        Self { tenants: Arc::new(tenants.into_iter().collect()) }
    }

    /// Whether the database of that name is there for `principal`: it is everybody's, or of the tenant of `principal`. To
    /// the user of the process, whose files they are, it always is.
    pub fn admits(&self, database: &str, principal: &Principal) -> bool {
        let Some(tenants) = self.tenants.get(database) else { return true };
        let is_of_one = principal.tenant.as_ref().is_some_and(|tenant| tenants.contains(tenant));
        is_of_one || principal.proof == Proof::Process
    }

    /// Whether the database of that name is everybody's.
    pub fn is_open(&self, database: &str) -> bool {
        !self.tenants.contains_key(database)
    }
}
