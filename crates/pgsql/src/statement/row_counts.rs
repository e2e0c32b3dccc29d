//! `count(t.*)`, which counts the rows of a table that there are: beside an outer join, or distinct ones.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinOperator,
    OrderByExpr, Query, Select, SelectItem, TableFactor, VisitMut, VisitorMut,
};

use super::columns::{Scope, name_of, only_part};
use super::parse;
use crate::syntax::is_named;

/// A column that is true in each row of its table.
const IS_THERE: &str = "is there\u{1}";

/// Rewrites the counts of rows of `select`.
pub(super) fn rewrite(select: &mut Select, order_by: &mut [OrderByExpr], scope: &mut Scope<'_>) -> Result<()> {
    let joins = select.from.iter().flat_map(|from| &from.joins);
    let has_outer_join = joins.into_iter().any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    });
    let mut tables = Vec::new();
    for from in &select.from {
        for factor in std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)) {
            tables.extend(name_of(factor).map(|name| (name.value, scope.of_factor(factor))));
        }
    }
    let mut counts = Counts { has_outer_join, tables, marked: Vec::new(), depth: 0, unknown: None };
    // It never breaks off.
    let _ = VisitMut::visit(&mut select.projection, &mut counts);
    let _ = VisitMut::visit(&mut select.having, &mut counts);
    for order in order_by {
        let _ = VisitMut::visit(order, &mut counts);
    }
    let has_wildcard = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    for table in counts.marked {
        if has_wildcard || !mark(select, &table)? {
            counts.unknown = Some(table);
        }
    }
    match counts.unknown {
        Some(table) => plan_err!(
            "count({table}.*) of rows that an outer join may fill with NULL, or of distinct rows, is not supported \
             here; instead count a column that is never NULL, for instance count({table}.id)"
        ),
        None => Ok(()),
    }
}

/// Adds the column that tells of rows to the table.
fn mark(select: &mut Select, table: &str) -> Result<bool> {
    for from in &mut select.from {
        for factor in std::iter::once(&mut from.relation).chain(from.joins.iter_mut().map(|join| &mut join.relation)) {
            let Some(name) = name_of(factor).filter(|name| name.value == table) else { continue };
            let (columns, mut inner) = match factor {
                TableFactor::Table { args: None, alias, .. } | TableFactor::Derived { lateral: false, alias, .. } => {
                    (alias.take().map(|alias| alias.columns).unwrap_or_default(), factor.clone())
                }
                _ => return Ok(false),
            };
            if let TableFactor::Derived { alias, .. } = &mut inner {
                *alias = Some(parse::alias("rows of table", &[]));
            }
            let mut subquery = Box::new(parse::query(&format!("SELECT *, true AS \"{IS_THERE}\" FROM t"))?);
            parse::change_select(&mut subquery, |select| {
                if let Some(from) = select.from.first_mut() {
                    from.relation = inner;
                }
            });
            let alias = datafusion::sql::sqlparser::ast::TableAlias { columns, ..parse::alias(&name.value, &[]) };
            *factor = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
            return Ok(true);
        }
    }
    Ok(false)
}

struct Counts {
    has_outer_join: bool,
    tables: Vec<(String, Option<Vec<String>>)>,
    /// The tables that need the column.
    marked: Vec<String>,
    depth: usize,
    unknown: Option<String>,
}

impl Counts {
    /// What is counted in place of the rows of `table`.
    fn counted(&mut self, table: &str, is_distinct: bool) -> Option<Expr> {
        let (_, columns) = self.tables.iter().find(|(name, _)| name == table)?;
        let column =
            |name: &str| Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), Ident::with_quote('"', name)]);
        let row = match columns {
            Some(columns) => Some(Expr::Tuple(columns.iter().map(|name| column(name)).collect())),
            None => None,
        };
        if !self.has_outer_join {
            return row;
        }
        if !self.marked.iter().any(|marked| marked == table) {
            self.marked.push(table.to_owned());
        }
        if !is_distinct {
            return Some(column(IS_THERE));
        }
        let mut of_rows = parse::expression("CASE WHEN a THEN b END").ok()?;
        if let Expr::Case { conditions, .. } = &mut of_rows
            && let Some(when) = conditions.first_mut()
        {
            when.condition = column(IS_THERE);
            when.result = row?;
        }
        Some(of_rows)
    }
}

impl VisitorMut for Counts {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expression
            && is_named(name, "count")
            && let [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))] = list.args.as_slice()
        {
            let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            if !is_distinct && !self.has_outer_join {
                return ControlFlow::Continue(());
            }
            let table = only_part(table).map(|table| table.value).unwrap_or_default();
            match self.counted(&table, is_distinct) {
                Some(counted) => list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(counted))],
                None => self.unknown = Some(table),
            }
        }
        ControlFlow::Continue(())
    }
}
