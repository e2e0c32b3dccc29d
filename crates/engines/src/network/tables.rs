//! The names that a statement may use for the tables of a network: `table`, `public.table`, `network.table`; and
//! `schema.table` if the nodes have schemas or folders.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::{Error, Principal};
use tidegate_pgsql::{PUBLIC_SCHEMA, VisibleObjects, VisibleTable};
use tidegate_sql::Statement;

use super::nodes::KnownTables;
use super::united_table::UnitedTable;
use crate::embedded::{CATALOG, StatementScope, SystemCatalogs, to_core_error};
use crate::federated::{MemberExec, MemberQueryContext};

/// The tables of a network, for one statement.
#[derive(Debug, Clone)]
pub(super) struct NetworkTables {
    pub(super) network: Arc<str>,
    pub(super) known: Arc<KnownTables>,
    pub(super) catalogs: SystemCatalogs,
    pub(super) context: MemberQueryContext,
}

impl NetworkTables {
    pub(super) fn new(
        network: &Arc<str>,
        known: Arc<KnownTables>,
        statement: &Statement,
        context: MemberQueryContext,
        principal: &Principal,
    ) -> Result<Self, Error> {
        let catalogs = match SystemCatalogs::find_needs(statement) {
            Some(needs) => {
                let objects = visible_objects(network, &known, principal);
                SystemCatalogs::new(&needs, objects).map_err(|error| to_core_error(&error, network))?
            }
            None => SystemCatalogs::default(),
        };
        Ok(Self { network: network.clone(), known, catalogs, context })
    }

    /// The full name of the table of `reference` in the network.
    pub(super) fn table_name(&self, reference: &TableReference) -> String {
        let is_own = |schema: &str| schema == PUBLIC_SCHEMA || *schema == *self.network;
        match reference.schema().filter(|schema| !is_own(schema)) {
            Some(schema) => format!("{schema}.{}", reference.table()),
            None => reference.table().to_owned(),
        }
    }

    pub(super) fn find(&self, reference: &TableReference) -> Result<&UnitedTable, Error> {
        self.known.table(&self.table_name(reference), &self.network)
    }

    fn relation(&self, reference: &TableReference) -> Option<Arc<dyn TableProvider>> {
        let schema = reference.schema().filter(|schema| **schema != *self.network);
        self.catalogs.relation(schema, reference.table())
    }
}

fn visible_objects(network: &str, known: &KnownTables, principal: &Principal) -> VisibleObjects {
    let tables = known.tables.iter().map(|(name, united)| VisibleTable {
        schema: PUBLIC_SCHEMA.to_owned(),
        name: name.clone(),
        columns: united.schema.fields().to_vec(),
    });
    VisibleObjects::new(network, &principal.subject, tables.collect())
}

/// The leaves of `plan`.
pub(super) fn node_queries(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let mut leaves = Vec::new();
    // The visitor never fails.
    let _ = plan.apply(|node| {
        if node.downcast_ref::<MemberExec>().is_some() {
            leaves.push(node.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    leaves
}

impl StatementScope for NetworkTables {
    fn database(&self) -> &Arc<str> {
        &self.network
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.schema().is_none() && self.find(reference).is_err()
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        match (self.find(reference), self.relation(reference)) {
            (Ok(table), _) => table.check_holds(&self.network).map(|()| table.schema.clone()),
            (Err(_), Some(relation)) => Ok(relation.schema()),
            (Err(error), None) => Err(error),
        }
    }

    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        if catalog != CATALOG && *catalog != *self.network {
            return None;
        }
        let reference = match *schema == *self.network {
            true => TableReference::bare(table),
            false => TableReference::partial(schema, table),
        };
        match self.find(&reference) {
            // The plan was built for these columns.
            Ok(table) => Some(Arc::new(ViewTable::new(table.plan(&self.context).ok()?, None))),
            Err(_) => self.relation(&reference),
        }
    }

    fn member_queries(&self, plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        let queries = node_queries(plan);
        queries.iter().filter_map(|leaf| Some(leaf.downcast_ref::<MemberExec>()?.describe_query())).collect()
    }
}
