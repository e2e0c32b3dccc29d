//! The number of grouping sets, and ROLLUP and CUBE of several columns at once: `ROLLUP (a, (b, c))`.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, Statement, VisitorMut};

use crate::syntax::{break_on_error, into_result};
use crate::walk::{Stop, walk_mut};

/// The most elements of a CUBE, and the most grouping sets, as in PostgreSQL. Each row is grouped once for each set.
const CUBE_MAX: usize = 12;
const SETS_MAX: usize = 1 << CUBE_MAX;

/// Refuses GROUP BY with too many grouping sets, before they are listed.
pub(super) fn check_statement(statement: &mut Statement) -> Result<()> {
    into_result(walk_mut(statement, &mut SetCounter))
}

struct SetCounter;

impl VisitorMut for SetCounter {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let GroupByExpr::Expressions(groups, _) = &select.group_by else { return ControlFlow::Continue(()) };
        break_on_error(check_groups(groups))
    }
}

/// The sets of several elements are combined, each with each.
fn check_groups(groups: &[Expr]) -> Result<()> {
    let mut sets: usize = 1;
    for group in groups {
        let own = match group {
            Expr::Cube(elements) if elements.len() > CUBE_MAX => {
                return plan_err!(
                    "CUBE is limited to {CUBE_MAX} elements; list the sets that you need with GROUPING SETS"
                );
            }
            Expr::Cube(elements) => 1 << elements.len(),
            Expr::Rollup(elements) => elements.len() + 1,
            Expr::GroupingSets(listed) => listed.len(),
            _ => 1,
        };
        sets = sets.saturating_mul(own);
    }
    if sets > SETS_MAX {
        return plan_err!(
            "GROUP BY is limited to {SETS_MAX} grouping sets; list those that you need with GROUPING SETS"
        );
    }
    Ok(())
}

/// Rewrites ROLLUP and CUBE of several columns, which the planner does not support, into grouping sets.
pub(super) fn rewrite_syntax(expression: &mut Expr) {
    let sets = match expression {
        Expr::Rollup(elements) if elements.iter().any(|element| element.len() != 1) => {
            (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
        }
        Expr::Cube(elements) if elements.iter().any(|element| element.len() != 1) => {
            (0..1_usize << elements.len()).rev().map(|chosen| subset(elements, chosen)).collect()
        }
        _ => return,
    };
    *expression = Expr::GroupingSets(sets);
}

/// Returns the elements whose bits are set in `chosen`.
fn subset(elements: &[Vec<Expr>], chosen: usize) -> Vec<Expr> {
    let bits = (0..elements.len()).filter(|bit| chosen & (1 << bit) != 0);
    bits.flat_map(|bit| elements[bit].clone()).collect()
}
