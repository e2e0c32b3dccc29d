//! The database of system tables as the functions of the built-in tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Error, Principal};
use tidegate_engines::SystemDatabase;
use tidegate_query::Database;
use tidegate_system::{SystemTableDescription, SystemValue};
use tidegate_tools::TableFunctions;

/// The functions of a database.
pub(crate) struct SystemFunctions(Arc<SystemDatabase>);

impl SystemFunctions {
    pub(crate) fn offer(database: Arc<SystemDatabase>) -> Arc<dyn TableFunctions> {
        Arc::new(Self(database))
    }
}

impl TableFunctions for SystemFunctions {
    fn database(&self) -> &str {
        self.0.name()
    }

    fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription> {
        self.0.functions(principal)
    }

    fn grants_sensitive(&self, principal: &Principal) -> bool {
        self.0.grants_sensitive(principal)
    }

    fn with_parameters(
        &self,
        name: &str,
        parameters: BTreeMap<String, SystemValue>,
        principal: &Principal,
    ) -> Result<Arc<dyn Database>, Error> {
        Ok(Arc::new(self.0.with_parameters(name, parameters, principal)?))
    }
}
