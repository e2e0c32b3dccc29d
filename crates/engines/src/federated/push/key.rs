//! Translates the keys of groups and of orders to the SQL of a member.

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable, SortExpr};

use super::comparison::ComparisonSemantics;
use super::expression::ColumnLookup;
use super::translator::Translator;

impl Translator {
    /// Translates the key of a group. `None` if other rows could be in a group.
    pub(super) fn translate_key(&mut self, key: &Expr, terms: ColumnLookup<'_>, schema: &DFSchema) -> Option<String> {
        if let Expr::Column(column) = key {
            let term = terms(column).filter(|term| self.comparison_semantics(term) >= ComparisonSemantics::Equal)?;
            return Some(term.sql);
        }
        // Only the same engine has the same functions; floats may be equal in one step and different in another.
        let data_type = key.get_type(schema).ok()?;
        if !self.is_own_engine() || data_type.is_floating() || data_type.is_nested() {
            return None;
        }
        self.translate_own(key, terms)
    }

    /// Translates the key of an order. `None` if the member could order other rows first.
    pub(super) fn translate_sort_key(&mut self, key: &SortExpr, terms: ColumnLookup<'_>) -> Option<String> {
        let written = match &key.expr {
            // The same engine orders all values as here, floats too.
            expr if self.is_own_engine() => self.translate_own(expr, terms)?,
            Expr::Column(column) => {
                let term = terms(column)?;
                (self.comparison_semantics(&term) == ComparisonSemantics::Ordered).then_some(term.sql)?
            }
            _ => return None,
        };
        let direction = if key.asc { "ASC" } else { "DESC" };
        let nulls = if key.nulls_first { "FIRST" } else { "LAST" };
        Some(format!("{written} {direction} NULLS {nulls}"))
    }
}
