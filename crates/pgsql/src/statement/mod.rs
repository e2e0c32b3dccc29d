//! Rewrites forms of a statement that DataFusion's planner does not support into forms that it supports.
//!
//! `ARRAY[…]` in subqueries and in functions of FROM may have columns of outer queries as elements. DataFusion plans an array
//! literal without the columns of outer queries, but the arguments of a call with them ([`rewrite_arrays`]).
//! `docs/decisions/upstream` has the text to be filed, and says when that can go.

mod aliases;
mod call_forms;
mod columns;
mod join_using;
mod limit;
mod query_forms;
mod relation;
mod row_comparison;
mod series;
mod sorted_rows;
mod whole_row;

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::sql::sqlparser::ast::{
    Array, Expr, Query, Select, SelectItem, SetExpr, Statement, TableFactor, VisitMut, VisitorMut,
};

use crate::column_names::column_name;
use crate::syntax::{break_on_error, call, into_result, quoted};
use crate::untyped_literals::{self, ARRAY};
use crate::walk::{Stop, any_expression, walk_mut};
use crate::{aggregate, array, cast, catalog, json, number, text, time};

pub use aliases::output_schema;
pub use columns::TableColumns;
pub(crate) use limit::{is_limit_with_ties, rewrite_limit};
pub use query_forms::ROWS_FROM;

/// Rewrites `statement` in place. `tables` returns the columns of the tables that it names.
///
/// The statement must have passed the statement policy before: the rewritten statement calls functions that the policy
/// does not list.
///
/// # Errors
/// `Plan` or `NotImplemented`, with what to write instead, for forms that are refused.
pub fn rewrite(statement: &mut Statement, tables: TableColumns<'_>) -> Result<()> {
    if let Statement::Query(query) = statement
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        cast::rewrite_character_columns(select);
    }
    aliases::rename_ctes(statement);
    join_using::rewrite_joins(statement, tables)?;
    catalog::rewrite_statement(statement);
    into_result(walk_mut(statement, &mut FormRewriter::default()))?;
    aggregate::rewrite_statement(statement)?;
    if let Statement::Query(query) = statement {
        query_forms::check_records(&query.body)?;
        aliases::name_columns(query);
    }
    rewrite_expressions(statement)?;
    rewrite_arrays(statement);
    number::mark_literals(statement)
}

/// Rewrites expressions, inner ones first.
fn rewrite_expressions(node: &mut impl VisitMut) -> Result<()> {
    into_result(walk_mut(node, &mut ExpressionRewriter))
}

/// Returns the scalar functions that only rewritten statements call.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![series::series_function(), limit::with_ties()]
}

/// Returns the planners of relations in FROM.
pub(crate) fn relation_planners() -> Vec<Arc<dyn RelationPlanner>> {
    vec![Arc::new(relation::FromPlanner)]
}

/// Rewrites that depend on the enclosing expression.
const OUTER_FIRST: [RewriteSyntax; 4] =
    [query_forms::rewrite_expression, cast::rewrite_characters, number::rewrite_bits, array::rewrite_literals];

/// Rewrites expressions, inner ones first.
struct ExpressionRewriter;

impl VisitorMut for ExpressionRewriter {
    type Break = Stop;

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        break_on_error(INNER_FIRST.iter().try_for_each(|rewrite| rewrite(expression)))
    }
}

/// Rewrites queries and FROM, outer ones first. Columns keep the names of what was written.
#[derive(Default)]
struct FormRewriter {
    /// The names of the columns without an alias, for each SELECT around the node.
    names: Vec<Vec<Option<String>>>,
}

impl VisitorMut for FormRewriter {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        untyped_literals::type_values(query);
        cast::rewrite_character_keys(query);
        break_on_error(query_forms::rewrite_query(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        self.names.push(select.projection.iter().map(name_without_alias).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for (item, name) in select.projection.iter_mut().zip(self.names.pop().unwrap_or_default()) {
            if let Some(name) = name
                && let SelectItem::UnnamedExpr(expression) = &*item
                && column_name(expression) != name
            {
                *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: quoted(name) };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        break_on_error(query_forms::rewrite_factor(factor))
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        break_on_error(OUTER_FIRST.iter().try_for_each(|rewrite| rewrite(expression)))
    }
}

fn name_without_alias(item: &SelectItem) -> Option<String> {
    if let SelectItem::UnnamedExpr(expression) = item { Some(column_name(expression)) } else { None }
}

type RewriteSyntax = fn(&mut Expr) -> Result<()>;

/// Rewrites that depend only on the expression itself.
const INNER_FIRST: [RewriteSyntax; 11] = [
    call_forms::rewrite_call,
    row_comparison::rewrite_comparison,
    query_forms::rewrite_rows,
    time::rewrite_syntax,
    text::rewrite_syntax,
    json::rewrite_syntax,
    array::rewrite_syntax,
    number::rewrite_syntax,
    cast::rewrite_syntax,
    aggregate::rewrite_syntax,
    untyped_literals::rewrite_case,
];

/// Turns array literals that may contain columns of outer queries into calls.
fn rewrite_arrays(statement: &mut Statement) {
    // The visitor never breaks.
    let _ = walk_mut(statement, &mut ArrayRewriter { queries: 0, functions: 0 });
}

struct ArrayRewriter {
    /// Queries around the current node.
    queries: usize,
    /// Functions in FROM around it.
    functions: usize,
}

impl VisitorMut for ArrayRewriter {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Stop> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Stop> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        self.functions += usize::from(matches!(factor, TableFactor::Function { .. }));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        self.functions -= usize::from(matches!(factor, TableFactor::Function { .. }));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        if (self.queries > 1 || self.functions > 0)
            && let Expr::Array(Array { elem, .. }) = expression
            && has_column(elem)
        {
            *expression = call(ARRAY, std::mem::take(elem));
        }
        ControlFlow::Continue(())
    }
}

fn has_column(elements: &[Expr]) -> bool {
    let is_column = |part: &Expr| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    elements.iter().any(|element| any_expression(element, is_column))
}
