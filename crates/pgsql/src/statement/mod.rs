//! Forms of a statement that DataFusion's planner lacks, turned into forms that it has.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, Statement, TableFactor, VisitMut, VisitorMut};

mod aliases;
mod columns;
mod counted_sets;
mod cte_names;
mod forms;
mod having;
mod limit;
mod merged;
mod merged_names;
mod names;
mod parse;
mod record;
mod refused;
mod relation;
mod row_in;
mod rows;
mod sample;
mod series;
pub(crate) mod set_returning;
mod whole_row;

pub use aliases::shown_schema;
pub use columns::TableColumns;
pub use forms::ROWS_FROM;
pub(crate) use limit::Limits;
pub(crate) use names::column_name;

use crate::{aggregate, array, cast, catalog, json, number, text, time, untyped};

/// Rewrites `statement` in place; `tables` tells the columns of the tables that it names. It must have passed the policy
/// for statements: the rewritten statement calls functions that the policy has no entry for.
///
/// # Errors
/// `Plan` or `NotImplemented` with what to write instead, for forms that are refused.
pub fn rewrite(statement: &mut Statement, tables: TableColumns<'_>) -> Result<()> {
    if let Statement::Query(query) = statement
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        cast::rewrite_character_columns(select);
    }
    cte_names::rename(statement);
    merged::rewrite_joins(statement, tables)?;
    catalog::rewrite_statement(statement);
    broken_off(VisitMut::visit(statement, &mut Forms))?;
    aggregate::rewrite_statement(statement)?;
    if let Statement::Query(query) = statement {
        refused::check_records(&query.body)?;
        aliases::name_columns(query);
    }
    broken_off(VisitMut::visit(statement, &mut Syntax))
}

/// Rewrites an expression that stands by itself.
fn rewrite_expression(expression: &mut Expr) -> Result<()> {
    broken_off(VisitMut::visit(expression, &mut Syntax))
}

fn broken_off(flow: ControlFlow<Box<DataFusionError>>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

fn go_on(result: Result<()>) -> ControlFlow<Box<DataFusionError>> {
    result.map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue)
}

/// The scalar functions that only statements of ours call.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![series::series(), limit::with_ties()]
}

/// The planners of what may stand in FROM.
pub(crate) fn relation_planners() -> Vec<Arc<dyn RelationPlanner>> {
    vec![Arc::new(relation::FromPlanner)]
}

/// Each rewrites expressions by what stands around them.
const OUTER_FIRST: [RewriteSyntax; 4] =
    [forms::rewrite_expression, cast::rewrite_characters, number::rewrite_bits, array::rewrite_literals];

/// Rewrites queries and what stands in FROM, outer ones first.
struct Forms;

impl VisitorMut for Forms {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        untyped::type_values(query);
        cast::rewrite_character_keys(query);
        go_on(forms::rewrite_query(query))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        go_on(forms::rewrite_factor(factor))
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        for rewrite in OUTER_FIRST {
            if let Err(error) = rewrite(expression) {
                return ControlFlow::Break(Box::new(error));
            }
        }
        ControlFlow::Continue(())
    }
}

type RewriteSyntax = fn(&mut Expr) -> Result<()>;

/// Each rewrites what is its own.
const FAMILIES: [RewriteSyntax; 10] = [
    rows::rewrite_comparison,
    forms::rewrite_rows,
    time::rewrite_syntax,
    text::rewrite_syntax,
    json::rewrite_syntax,
    array::rewrite_syntax,
    number::rewrite_syntax,
    cast::rewrite_syntax,
    aggregate::rewrite_syntax,
    untyped::rewrite_case,
];

/// Rewrites expressions, inner ones first.
struct Syntax;

impl VisitorMut for Syntax {
    type Break = Box<DataFusionError>;

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        for rewrite_syntax in FAMILIES {
            if let Err(error) = rewrite_syntax(expression) {
                return ControlFlow::Break(Box::new(error));
            }
        }
        ControlFlow::Continue(())
    }
}
