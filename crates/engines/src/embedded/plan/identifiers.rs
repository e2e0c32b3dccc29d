//! Resolves names in a statement that differ from existing names only in case.
//!
//! Names are case-sensitive. But if an unquoted name does not exist, and exactly one available name differs only in
//! case, it refers to that one. An unquoted alias of a column gets lower case, as in PostgreSQL, unless a column of a table
//! has that name in another case: then ORDER BY could not distinguish the two.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, Statement,
    TableAlias, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};

/// Replaces the unquoted names of `statement` by the existing names. `columns` are the columns of its tables.
pub(crate) fn resolve_case<'a>(statement: &mut Statement, columns: impl Iterator<Item = &'a str>) {
    let mut names = KnownNames::default();
    for column in columns {
        names.add(column);
        if column != column.to_lowercase() {
            names.mixed_case.insert(column.to_lowercase());
        }
    }
    // The visitor never stops early.
    let _ = Visit::visit(statement, &mut names);
    let _ = VisitMut::visit(statement, &mut names);
}

#[derive(Default)]
struct KnownNames {
    exact: HashSet<String>,
    /// `None` if several names differ only in case.
    by_folded: HashMap<String, Option<String>>,
    /// In lower case, the columns of tables that have other letters.
    mixed_case: HashSet<String>,
}

/// Whether `factor` is a call. One without columns has a column that is called as the call.
fn is_function(factor: &TableFactor) -> bool {
    matches!(
        factor,
        TableFactor::Table { args: Some(_), .. } | TableFactor::Function { .. } | TableFactor::UNNEST { .. }
    )
}

impl KnownNames {
    fn add(&mut self, name: &str) {
        if !self.exact.insert(name.to_owned()) {
            return;
        }
        let only = self.by_folded.entry(name.to_lowercase());
        only.and_modify(|name| *name = None).or_insert_with(|| Some(name.to_owned()));
    }

    fn add_column_alias(&mut self, alias: &Ident) {
        let name = self.folded(alias);
        self.add(&name);
    }

    fn add_alias(&mut self, alias: &TableAlias, is_function: bool) {
        if is_function {
            self.add_column_alias(&alias.name);
        } else {
            self.add(&alias.name.value);
        }
        alias.columns.iter().for_each(|column| self.add_column_alias(&column.name));
    }

    /// Returns the name that the alias of a column gets.
    fn folded(&self, alias: &Ident) -> String {
        if alias.quote_style.is_some() || self.mixed_case.contains(&alias.value.to_lowercase()) {
            return alias.value.clone();
        }
        alias.value.to_ascii_lowercase()
    }

    fn fold(&self, alias: &mut Ident) {
        alias.value = self.folded(alias);
    }

    fn correct_case(&self, identifier: &mut Ident) {
        if identifier.quote_style.is_some() || self.exact.contains(&identifier.value) {
            return;
        }
        if let Some(Some(name)) = self.by_folded.get(&identifier.value.to_lowercase()) {
            identifier.value.clone_from(name);
        }
    }

    fn correct_name(&self, name: &mut ObjectName) {
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(identifier) = part {
                self.correct_case(identifier);
            }
        }
    }

    /// Corrects the columns of USING.
    fn correct_joins(&self, from: &mut TableWithJoins) {
        for join in &mut from.joins {
            if let JoinOperator::Join(JoinConstraint::Using(columns))
            | JoinOperator::Inner(JoinConstraint::Using(columns))
            | JoinOperator::Left(JoinConstraint::Using(columns))
            | JoinOperator::LeftOuter(JoinConstraint::Using(columns))
            | JoinOperator::Right(JoinConstraint::Using(columns))
            | JoinOperator::RightOuter(JoinConstraint::Using(columns))
            | JoinOperator::FullOuter(JoinConstraint::Using(columns)) = &mut join.join_operator
            {
                columns.iter_mut().for_each(|column| self.correct_name(column));
            }
        }
    }

    /// Corrects the columns that `*` leaves out or replaces.
    fn correct_options(&self, options: &mut WildcardAdditionalOptions) {
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(column)) => self.correct_name(column),
            Some(ExcludeSelectItem::Multiple(columns)) => {
                columns.iter_mut().for_each(|column| self.correct_name(column));
            }
            None => {}
        }
        if let Some(except) = &mut options.opt_except {
            self.correct_case(&mut except.first_element);
            except.additional_elements.iter_mut().for_each(|column| self.correct_case(column));
        }
        for replaced in options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items) {
            self.correct_case(&mut replaced.column_name);
        }
    }
}

impl Visitor for KnownNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let ctes: &[Cte] = query.with.as_ref().map_or(&[], |with| &with.cte_tables);
        ctes.iter().for_each(|cte| self.add_alias(&cte.alias, false));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.add_column_alias(alias);
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
        alias.into_iter().for_each(|alias| self.add_alias(alias, is_function(factor)));
        ControlFlow::Continue(())
    }
}

impl VisitorMut for KnownNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let ctes = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        ctes.flat_map(|cte| &mut cte.alias.columns).for_each(|column| self.fold(&mut column.name));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => self.fold(alias),
                SelectItem::Wildcard(options) => self.correct_options(options),
                SelectItem::QualifiedWildcard(kind, options) => {
                    if let SelectItemQualifiedWildcardKind::ObjectName(table) = kind {
                        self.correct_name(table);
                    }
                    self.correct_options(options);
                }
                _ => {}
            }
        }
        select.from.iter_mut().for_each(|from| self.correct_joins(from));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.correct_joins(table_with_joins);
        }
        let is_function = is_function(factor);
        let (TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. }) = factor
        else {
            return ControlFlow::Continue(());
        };
        if is_function {
            self.fold(&mut alias.name);
        }
        alias.columns.iter_mut().for_each(|column| self.fold(&mut column.name));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(identifier) => self.correct_case(identifier),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(|part| self.correct_case(part)),
            Expr::QualifiedWildcard(table, _) => self.correct_name(table),
            Expr::Function(Function { args: FunctionArguments::List(list), .. }) => {
                for argument in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) = argument {
                        self.correct_name(table);
                    }
                }
            }
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
            "SELECT f.year AS jahr FROM f ORDER BY jahr"
        );
        assert_eq!(resolved("SELECT 1 AS \"Jahr\" FROM f"), "SELECT 1 AS \"Jahr\" FROM f");
        assert_eq!(
            resolved("SELECT lower(tailNum) AS TailNum FROM f ORDER BY TailNum"),
            "SELECT lower(tailNum) AS TailNum FROM f ORDER BY TailNum"
        );
        assert_eq!(resolved("SELECT T.X FROM (VALUES (1)) AS T (X)"), "SELECT T.x FROM (VALUES (1)) AS T (x)");
        assert_eq!(resolved("SELECT G FROM generate_series(1, 2) AS G"), "SELECT g FROM generate_series(1, 2) AS g");
        assert_eq!(
            resolved("SELECT G.*, count(G.*) FROM generate_series(1, 2) AS G"),
            "SELECT g.*, count(g.*) FROM generate_series(1, 2) AS g"
        );
        assert_eq!(
            resolved("SELECT * EXCLUDE (B) FROM (SELECT 1 AS Id, 2 AS B) AS s JOIN (SELECT 1 AS ID) AS t USING (Id)"),
            "SELECT * EXCLUDE (b) FROM (SELECT 1 AS id, 2 AS b) AS s JOIN (SELECT 1 AS id) AS t USING(id)"
        );
        assert_eq!(resolved("SELECT Count(*) FROM f"), "SELECT Count(*) FROM f");
    }
}
