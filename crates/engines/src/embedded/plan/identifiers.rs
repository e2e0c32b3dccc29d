//! Resolves names in a statement that differ from existing names only in case.
//!
//! Names are case-sensitive. But if an unquoted name does not exist, and exactly one available name differs only in
//! case, it refers to that one.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, ObjectName, Query, Select, SelectItem, Statement, TableAlias, TableFactor, Visit, VisitMut,
    Visitor, VisitorMut,
};

/// Replaces the unquoted names of `statement` by the existing names. `columns` are the columns of its tables.
pub(crate) fn resolve_case<'a>(statement: &mut Statement, columns: impl Iterator<Item = &'a str>) {
    let mut names = KnownNames::default();
    columns.for_each(|column| names.add(column));
    // The visitor never stops early.
    let _ = Visit::visit(statement, &mut names);
    let _ = VisitMut::visit(statement, &mut names);
}

#[derive(Default)]
struct KnownNames {
    exact: HashSet<String>,
    /// `None` if several names differ only in case.
    by_folded: HashMap<String, Option<String>>,
}

impl KnownNames {
    fn add(&mut self, name: &str) {
        if !self.exact.insert(name.to_owned()) {
            return;
        }
        let only = self.by_folded.entry(name.to_lowercase());
        only.and_modify(|name| *name = None).or_insert_with(|| Some(name.to_owned()));
    }

    fn add_alias(&mut self, alias: &TableAlias) {
        self.add(&alias.name.value);
        alias.columns.iter().for_each(|column| self.add(&column.name.value));
    }

    fn correct_case(&self, identifier: &mut Ident) {
        if identifier.quote_style.is_some() || self.exact.contains(&identifier.value) {
            return;
        }
        if let Some(Some(name)) = self.by_folded.get(&identifier.value.to_lowercase()) {
            identifier.value.clone_from(name);
        }
    }
}

impl Visitor for KnownNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let ctes: &[Cte] = query.with.as_ref().map_or(&[], |with| &with.cte_tables);
        ctes.iter().for_each(|cte| self.add_alias(&cte.alias));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.add(&alias.value);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if let Some(name) = relation.0.last().and_then(|part| part.as_ident()) {
            self.add(&name.value);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::NestedJoin { alias, .. }
            | TableFactor::Pivot { alias, .. }
            | TableFactor::Unpivot { alias, .. } => alias.as_ref(),
            _ => None,
        };
        alias.into_iter().for_each(|alias| self.add_alias(alias));
        ControlFlow::Continue(())
    }
}

impl VisitorMut for KnownNames {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(identifier) => self.correct_case(identifier),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(|part| self.correct_case(part)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sql::SqlDialect;

    fn resolved(sql: &str) -> String {
        let mut statement = tidegate_sql::Statement::parse(sql, SqlDialect::DataFusion).unwrap().ast().unwrap().clone();
        resolve_case(&mut statement, ["tailNum", "dest", "Dest", "year"].into_iter());
        statement.to_string()
    }

    #[test]
    fn corrects_case_of_unambiguous_names() {
        assert_eq!(resolved("SELECT TAILNUM FROM f"), "SELECT tailNum FROM f");
        assert_eq!(resolved("SELECT \"TAILNUM\" FROM f"), "SELECT \"TAILNUM\" FROM f");
        assert_eq!(resolved("SELECT DEST FROM f"), "SELECT DEST FROM f");
        assert_eq!(
            resolved("SELECT F.Year AS Jahr FROM f ORDER BY jahr"),
            "SELECT f.year AS Jahr FROM f ORDER BY Jahr"
        );
        assert_eq!(resolved("SELECT Count(*) FROM f"), "SELECT Count(*) FROM f");
    }
}
