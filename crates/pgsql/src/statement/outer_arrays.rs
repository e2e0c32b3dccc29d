//! `ARRAY[…]` in subqueries and in functions of FROM, whose elements may be columns of outer queries.
//!
//! DataFusion plans an array literal without the columns of outer queries, but the arguments of a call with them.
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Array, Expr, Query, Statement, TableFactor, VisitorMut};

use crate::syntax::call;
use crate::untyped_literals::ARRAY;
use crate::walk::{Stop, any_expression, walk_mut};

/// Turns array literals that may contain columns of outer queries into calls.
pub(super) fn rewrite_arrays(statement: &mut Statement) {
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
