//! Forms of a statement that DataFusion's planner lacks, turned into forms that it has.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::sql::sqlparser::ast::{Expr, Statement, VisitMut, VisitorMut};

mod aliases;
mod names;
pub(crate) mod set_returning;

pub use aliases::shown_schema;

use crate::{aggregate, array, cast, json, number, text, time};

/// Rewrites `statement` in place. It must have passed the policy for statements: what is rewritten calls functions
/// that the policy does not know.
///
/// # Errors
/// `Plan` or `NotImplemented` with what to write instead, for forms that are refused.
pub fn rewrite(statement: &mut Statement) -> Result<()> {
    if let Statement::Query(query) = statement {
        aliases::name_columns(query);
    }
    match VisitMut::visit(statement, &mut Syntax) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// The planners of what may stand in FROM.
pub(crate) fn relation_planners() -> Vec<Arc<dyn RelationPlanner>> {
    Vec::new()
}

type RewriteSyntax = fn(&mut Expr) -> Result<()>;

/// Each rewrites what is its own.
const FAMILIES: [RewriteSyntax; 7] = [
    time::rewrite_syntax,
    text::rewrite_syntax,
    json::rewrite_syntax,
    array::rewrite_syntax,
    number::rewrite_syntax,
    cast::rewrite_syntax,
    aggregate::rewrite_syntax,
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
