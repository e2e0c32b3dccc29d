//! Determines which catalogs a statement needs, before any of their rows are built.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{DataType, Expr, Ident, ObjectName, Statement, Visitor};

use super::functions::is_function;
use super::relation::relation_name;
use crate::walk::walk;

/// Relations whose rows describe columns.
const COLUMN_RELATIONS: &[&str] = &[
    "information_schema.column_privileges",
    "information_schema.columns",
    "information_schema.role_column_grants",
    "pg_catalog.pg_attribute",
];

/// The parts of the catalogs that a statement needs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CatalogNeeds {
    /// The full names of the catalogs that the statement may read.
    pub relations: BTreeSet<&'static str>,
    /// Whether the statement needs columns, and not only tables.
    pub columns: bool,
    functions: bool,
}

/// Returns the parts of the catalogs that `statement` needs; `None` if it needs none.
pub fn find_catalog_needs(statement: &Statement) -> Option<CatalogNeeds> {
    let mut needs = CatalogNeeds::default();
    // The visitor never breaks.
    let _ = walk(statement, &mut needs);
    (needs != CatalogNeeds::default()).then_some(needs)
}

fn parts(name: &ObjectName) -> Vec<&Ident> {
    name.0.iter().filter_map(|part| part.as_ident()).collect()
}

impl Visitor for CatalogNeeds {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let found = match parts(name).as_slice() {
            [name] => relation_name(None, &name.value),
            [.., schema, name] => relation_name(Some(&schema.value), &name.value),
            [] => None,
        };
        if let Some(relation) = found {
            self.relations.insert(relation);
            self.columns |= COLUMN_RELATIONS.contains(&relation);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => {
                let name = parts(&function.name).last().map(|last| last.value.to_lowercase()).unwrap_or_default();
                self.functions |= is_function(&name);
                self.columns |= name == "has_column_privilege";
            }
            Expr::Identifier(name) => self.functions |= is_function(&name.value.to_lowercase()),
            Expr::Cast { data_type: DataType::Regclass, .. } => self.functions = true,
            Expr::Cast { data_type: DataType::Custom(name, _), .. } => {
                let of = parts(name).last().map(|last| last.value.to_lowercase()).unwrap_or_default();
                self.functions |= of.starts_with("reg");
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
