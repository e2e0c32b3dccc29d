//! Live tables as functions: their descriptions, and readings with parameters, which SQL does not have.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::Database as _;
use tidegate_system::{SystemTableDescription, SystemValue};

use super::database::SystemDatabase;

impl SystemDatabase {
    /// The descriptions of the tables that `principal` may use as functions, by name.
    pub fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription> {
        self.visible_tables(principal).map(|(_, table)| table.offered.table.description()).collect()
    }

    /// This database with `parameters`, which are those of the table `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the function is hidden or absent; `Forbidden` if a row policy
    /// restricts the table.
    pub fn with_parameters(
        &self,
        name: &str,
        parameters: BTreeMap<String, SystemValue>,
        principal: &Principal,
    ) -> Result<Self, Error> {
        let (name, _) = self.visible_table(name, principal)?;
        if self.is_restricted(name, principal) {
            let message = format!("a row policy restricts {name:?} for you, so that it is no function");
            let hint = format!("Read it with the tool sql: SELECT * FROM {}.{name}.", self.name());
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint(hint));
        }
        let mut database = self.clone();
        database.parameters = Arc::new(parameters);
        Ok(database)
    }
}
