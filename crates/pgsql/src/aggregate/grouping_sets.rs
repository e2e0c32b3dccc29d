//! The number of grouping sets, lists of columns: `ROLLUP (a, (b, c))`, `GROUP BY (a, b)`, and several columns of one
//! expression.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Statement, Value, VisitorMut};

use crate::in_list;
use crate::syntax::{break_on_error, call, into_result, take};
use crate::walk::{Stop, walk_mut};

/// The most elements of a CUBE, and the most grouping sets, as in PostgreSQL. Each row is grouped once for each set.
const CUBE_MAX: usize = 12;
const SETS_MAX: usize = 1 << CUBE_MAX;

/// Refuses GROUP BY with too many grouping sets, before they are listed, and separates columns of one expression.
pub(super) fn rewrite_statement(statement: &mut Statement) -> Result<()> {
    into_result(walk_mut(statement, &mut SetRewriter))
}

struct SetRewriter;

impl VisitorMut for SetRewriter {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return ControlFlow::Continue(()) };
        *groups = take_elements(std::mem::take(groups));
        break_on_error(check_groups(groups))?;
        separate_columns(select);
        ControlFlow::Continue(())
    }
}

/// Returns the elements of lists in `groups`: `GROUP BY (a, b)` is `GROUP BY a, b`. An empty list is the empty grouping set.
fn take_elements(groups: Vec<Expr>) -> Vec<Expr> {
    let elements = |group: Expr| match group {
        Expr::Tuple(listed) if !listed.is_empty() => take_elements(listed),
        other => vec![other],
    };
    groups.into_iter().flat_map(elements).collect()
}

/// Makes the expressions of output columns different that are equal and grouped apart, because each is NULL in the sets
/// without it: `SELECT a AS x, a AS y … GROUP BY x, ROLLUP (y)`.
fn separate_columns(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return };
    if !groups.iter().any(|group| matches!(group, Expr::Cube(_) | Expr::Rollup(_) | Expr::GroupingSets(_))) {
        return;
    }
    let elements = groups.iter().flat_map(|group| match group {
        Expr::Cube(listed) | Expr::Rollup(listed) | Expr::GroupingSets(listed) => {
            listed.iter().flatten().collect::<Vec<_>>()
        }
        plain => vec![plain],
    });
    let (mut seen, mut repeated): (Vec<(Option<usize>, Expr)>, Vec<usize>) = (Vec::new(), Vec::new());
    for element in elements {
        let output = find_output(element, &select.projection);
        let expression = match output.and_then(|position| select.projection.get(position)) {
            Some(SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr)) => expr,
            _ => element,
        };
        let is_known = seen.iter().any(|(other, _)| output.is_some() && *other == output);
        if !is_known && seen.iter().any(|(_, other)| other == expression) {
            repeated.extend(output);
        }
        seen.push((output, expression.clone()));
    }
    for position in repeated {
        if let Some(SelectItem::ExprWithAlias { expr, .. }) = select.projection.get_mut(position) {
            *expr = call(in_list::VALUE_OF_ROW, vec![take(expr)]);
        }
    }
}

/// Returns the position of the output column that an element of GROUP BY refers to: by its alias, its number, or its
/// expression.
fn find_output(element: &Expr, projection: &[SelectItem]) -> Option<usize> {
    let by_alias = |name: &str| {
        let is_named =
            |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == name);
        projection.iter().position(is_named)
    };
    let by_expression = || {
        projection.iter().position(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr == element,
            _ => false,
        })
    };
    match element {
        Expr::Identifier(name) => by_alias(&name.value).or_else(by_expression),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.to_string().parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => by_expression(),
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
