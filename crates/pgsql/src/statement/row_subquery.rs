//! Replaces `(a, b) IN (SELECT …)` with EXISTS, and rewrites other comparisons of a row with a subquery.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, SelectItem, TableAlias, TableFactor};

use super::{parse, row_comparison};
use crate::syntax::{binary, boolean, nested, not, quoted, without_parentheses};

/// The alias of the subquery.
const ALIAS: &str = "rows in\u{1}";

/// Rewrites the parts of `condition` for which false and NULL have the same effect.
pub(super) fn rewrite_condition(condition: &mut Expr) -> Result<()> {
    let mut pending = vec![condition];
    while let Some(condition) = pending.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => pending.extend([right.as_mut(), left.as_mut()]),
            Expr::Nested(inner) => pending.push(inner),
            Expr::InSubquery { expr, subquery, negated } => {
                let Some(values) = row_comparison::row_values(expr) else { continue };
                let equal = rows_equal(&values);
                let is_met = if *negated { Expr::IsNotFalse(Box::new(equal)) } else { equal };
                *condition =
                    Expr::Exists { subquery: select_matching_rows(subquery, values.len(), is_met)?, negated: *negated };
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rewrites `(a, b) = (SELECT x, y …)`, and with other operators or ANY and ALL.
pub(super) fn rewrite_comparison(expression: &mut Expr) -> Result<()> {
    let (left, op, subquery) = match &*expression {
        Expr::BinaryOp { left, op, right } => (left, op, right),
        Expr::AnyOp { left, compare_op: op @ BinaryOperator::Eq, right, .. }
        | Expr::AllOp { left, compare_op: op @ BinaryOperator::NotEq, right } => (left, op, right),
        _ => return Ok(()),
    };
    let (Some(values), Expr::Subquery(subquery)) = (row_comparison::row_values(left), without_parentheses(subquery))
    else {
        return Ok(());
    };
    if !matches!(&*expression, Expr::BinaryOp { .. }) {
        let negated = *op == BinaryOperator::NotEq;
        *expression = Expr::InSubquery { expr: left.clone(), subquery: subquery.clone(), negated };
        return rewrite_value(expression);
    }
    let columns = (0..values.len()).map(|index| Expr::CompoundIdentifier(vec![quoted(ALIAS), quoted(column(index))]));
    let compared = binary(Expr::Tuple(values.clone()), op.clone(), Expr::Tuple(columns.collect()));
    let mut outer = select_matching_rows(subquery, values.len(), boolean(true))?;
    parse::change_select(&mut outer, |select| {
        select.projection = vec![SelectItem::ExprWithAlias { expr: compared, alias: quoted("compared") }];
    });
    *expression = Expr::Subquery(outer);
    Ok(())
}

/// Rewrites `expression` with a result of NULL where a comparison with NULL could decide.
pub(super) fn rewrite_value(expression: &mut Expr) -> Result<()> {
    let Expr::InSubquery { expr, subquery, negated } = expression else { return Ok(()) };
    let Some(values) = row_comparison::row_values(expr) else { return Ok(()) };
    let equal = rows_equal(&values);
    let unknown = Expr::IsNull(Box::new(nested(equal.clone())));
    let is_there = Expr::Exists { subquery: select_matching_rows(subquery, values.len(), equal)?, negated: false };
    let may_be_there =
        Expr::Exists { subquery: select_matching_rows(subquery, values.len(), unknown)?, negated: false };
    let mut outcome =
        parse::parse_expression("CASE WHEN a THEN true WHEN b THEN CAST(NULL AS boolean) ELSE false END")?;
    if let Expr::Case { conditions, .. } = &mut outcome {
        for (when, condition) in conditions.iter_mut().zip([is_there, may_be_there]) {
            when.condition = condition;
        }
    }
    if *negated {
        outcome = not(outcome);
    }
    *expression = outcome;
    Ok(())
}

/// Builds the condition that the values are those of a row of the subquery.
fn rows_equal(values: &[Expr]) -> Expr {
    let pairs = values.iter().enumerate().map(|(index, value)| {
        let column = Expr::CompoundIdentifier(vec![quoted(ALIAS), quoted(column(index))]);
        binary(column, BinaryOperator::Eq, nested(value.clone()))
    });
    let all = pairs.reduce(|left, right| binary(left, BinaryOperator::And, right));
    nested(all.unwrap_or_else(|| Expr::Tuple(Vec::new())))
}

fn column(index: usize) -> String {
    format!("{}\u{1}in", index + 1)
}

/// Selects the rows of `subquery`, which has `columns` columns, that meet `condition`.
fn select_matching_rows(subquery: &Query, columns: usize, condition: Expr) -> Result<Box<Query>> {
    let mut outer = parse::parse_query("SELECT 1 FROM (SELECT 1) AS t WHERE true")?;
    parse::put_subquery(&mut outer, &mut subquery.clone());
    let names: Vec<String> = (0..columns).map(column).collect();
    parse::change_select(&mut outer, |select| {
        select.selection = Some(condition);
        for from in &mut select.from {
            if let TableFactor::Derived { alias, .. } = &mut from.relation {
                *alias = Some(parse::table_alias(ALIAS, &names));
            }
        }
    });
    Ok(Box::new(outer))
}

/// Fails if an alias of this module names another number of columns.
pub(super) fn check_columns(alias: &TableAlias, columns: usize) -> Result<()> {
    if alias.name.value == ALIAS && alias.columns.len() != columns {
        let few_or_many = if columns < alias.columns.len() { "few" } else { "many" };
        return plan_err!("subquery has too {few_or_many} columns");
    }
    Ok(())
}
