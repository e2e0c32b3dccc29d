//! Determines which catalogs a statement needs, before any of their rows are built.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Statement, Visitor};

use super::functions::is_function;
use super::relation::relation_name;
use super::syntax::is_keyword_function;
use crate::syntax::last_identifier;
use crate::walk::walk;

/// Relations whose rows describe columns.
const COLUMN_RELATIONS: &[&str] =
    &["information_schema.column_privileges", "information_schema.columns", "information_schema.role_column_grants"];

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

impl Visitor for CatalogNeeds {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let found = match parts.as_slice() {
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
        self.functions |= match expression {
            Expr::Function(function) => {
                last_identifier(&function.name).is_some_and(|name| is_function(&name.value.to_lowercase()))
            }
            Expr::Identifier(name) => is_keyword_function(name),
            _ => false,
        };
        ControlFlow::Continue(())
    }
}
