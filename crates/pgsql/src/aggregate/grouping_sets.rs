//! ROLLUP and CUBE of several columns at once: `ROLLUP (a, (b, c))`.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::Expr;

/// The most elements of a CUBE; each doubles the number of grouping sets.
const CUBE_MAX: usize = 12;

/// Rewrites ROLLUP and CUBE of several columns, which the planner does not support, into grouping sets.
pub(super) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    let sets = match expression {
        Expr::Rollup(elements) if elements.iter().any(|element| element.len() != 1) => {
            (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
        }
        Expr::Cube(elements) if elements.iter().any(|element| element.len() != 1) => {
            if elements.len() > CUBE_MAX {
                return plan_err!(
                    "CUBE is limited to {CUBE_MAX} elements; list the sets that you need with GROUPING SETS"
                );
            }
            (0..1_usize << elements.len()).rev().map(|chosen| subset(elements, chosen)).collect()
        }
        _ => return Ok(()),
    };
    *expression = Expr::GroupingSets(sets);
    Ok(())
}

/// Returns the elements whose bits are set in `chosen`.
fn subset(elements: &[Vec<Expr>], chosen: usize) -> Vec<Expr> {
    let bits = (0..elements.len()).filter(|bit| chosen & (1 << bit) != 0);
    bits.flat_map(|bit| elements[bit].clone()).collect()
}
