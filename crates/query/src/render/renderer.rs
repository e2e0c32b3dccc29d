//! The renderer of a query: its tables, and what it collects.

use sqlparser::ast::{Expr, SelectItem};
use tidegate_core::Violation;
use tidegate_sql::{Parameter, SqlDialect};

use super::scope::TableScope;

pub(super) struct QueryRenderer {
    pub(super) dialect: SqlDialect,
    pub(super) scope: TableScope,
    pub(super) violations: Vec<Violation>,
    pub(super) parameters: Vec<Parameter>,
}

pub(super) struct OutputColumn {
    pub(super) item: SelectItem,
    pub(super) name: Option<String>,
    pub(super) expr: Option<Expr>,
    pub(super) is_aggregate: bool,
    /// The position in `select`.
    pub(super) index: usize,
}

impl QueryRenderer {
    /// The column that `name` refers to; adds a violation when there is none.
    pub(super) fn resolve_column(&mut self, path: &str, name: &str) -> Option<Expr> {
        match self.scope.resolve(name) {
            Ok(position) => Some(self.scope.column_expression(position, self.dialect)),
            Err(reason) => {
                self.add_violation(path, reason);
                None
            }
        }
    }

    pub(super) fn add_violation(&mut self, path: &str, message: impl Into<String>) {
        let violation = Violation { path: path.to_owned(), message: message.into() };
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }
}
