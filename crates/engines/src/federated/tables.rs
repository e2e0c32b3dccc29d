//! The names that a statement may use for the tables of the members.
//!
//! `member.table`, or `member.schema.table` if the member has schemas or folders.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::{Error, ErrorKind};

use super::exec::MemberExec;
use super::member::MemberTable;
use crate::embedded::{CATALOG, StatementScope, SystemCatalogs};

/// The tables that a statement names, by their names in the statement.
#[derive(Debug, Clone)]
pub(super) struct MemberTables {
    pub(super) database: Arc<str>,
    /// By the parts of their names, the member first.
    pub(super) tables: Arc<HashMap<Vec<String>, MemberTable>>,
    pub(super) catalogs: SystemCatalogs,
}

impl MemberTables {
    pub(super) fn parts(reference: &TableReference) -> Vec<String> {
        let catalog = reference.catalog().filter(|catalog| *catalog != CATALOG);
        let parts = [catalog, reference.schema(), Some(reference.table())];
        parts.into_iter().flatten().map(str::to_owned).collect()
    }

    pub(super) fn is_bare(reference: &TableReference) -> bool {
        reference.schema().is_none() && !reference.table().contains('.')
    }

    fn catalog_relation(&self, parts: &[&str]) -> Option<Arc<dyn TableProvider>> {
        match parts {
            [name] => self.catalogs.relation(None, name),
            [schema, name] => self.catalogs.relation(Some(schema), name),
            _ => None,
        }
    }
}

impl StatementScope for MemberTables {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        Self::is_bare(reference)
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        let parts = Self::parts(reference);
        if let Some(table) = self.tables.get(&parts) {
            return Ok(table.schema.clone());
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.catalog_relation(&parts).map(|relation| relation.schema()).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no table {:?}", reference.to_string()))
                .with_hint("Write the database name before the table: database.table.")
        })
    }

    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        let all = [catalog, schema, table];
        let parts = match (catalog == CATALOG, *schema == *self.database) {
            // A name without a schema is looked up in the schema of this database.
            (true, true) => &all[2..],
            (true, false) => &all[1..],
            (false, _) => &all[..],
        };
        let owned: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        match self.tables.get(&owned) {
            Some(table) => Some(Arc::new(table.clone())),
            None => self.catalog_relation(parts),
        }
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn member_queries(&self, plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        let mut queries = Vec::new();
        // The visitor never fails.
        let _ = plan.apply(|node| {
            queries.extend(node.downcast_ref::<MemberExec>().map(MemberExec::describe_query));
            Ok(TreeNodeRecursion::Continue)
        });
        queries
    }
}
