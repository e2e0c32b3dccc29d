//! `(a, b) IN (SELECT …)`, as EXISTS, and other comparisons of a row with a subquery.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, TableAlias, TableFactor, UnaryOperator, Value,
};

use super::{parse, row_comparison};

/// The alias of the subquery.
const ALIAS: &str = "rows in\u{1}";

/// Rewrites those of the conditions of `condition` of which only the truth matters.
pub(super) fn rewrite_condition(condition: &mut Expr) -> Result<()> {
    let mut left_to_see = vec![condition];
    while let Some(condition) = left_to_see.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                left_to_see.extend([right.as_mut(), left.as_mut()])
            }
            Expr::Nested(inner) => left_to_see.push(inner),
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
    let (Some(values), Some(subquery)) = (row_comparison::row_values(left), subquery_of(subquery)) else {
        return Ok(());
    };
    if !matches!(&*expression, Expr::BinaryOp { .. }) {
        let negated = *op == BinaryOperator::NotEq;
        *expression = Expr::InSubquery { expr: left.clone(), subquery: Box::new(subquery.clone()), negated };
        return rewrite_value(expression);
    }
    let columns = (0..values.len()).map(|index| Expr::CompoundIdentifier(vec![name(ALIAS), name(&column(index))]));
    let compared = Expr::BinaryOp {
        left: Box::new(Expr::Tuple(values.clone())),
        op: op.clone(),
        right: Box::new(Expr::Tuple(columns.collect())),
    };
    let mut outer = select_matching_rows(subquery, values.len(), Expr::value(Value::Boolean(true)))?;
    parse::change_select(&mut outer, |select| {
        select.projection = vec![SelectItem::ExprWithAlias { expr: compared, alias: name("compared") }];
    });
    *expression = Expr::Subquery(outer);
    Ok(())
}

fn subquery_of(expression: &Expr) -> Option<&Query> {
    match expression {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => subquery_of(inner),
        _ => None,
    }
}

/// Rewrites `expression`: true, false, or NULL where a comparison with NULL could decide.
pub(super) fn rewrite_value(expression: &mut Expr) -> Result<()> {
    let Expr::InSubquery { expr, subquery, negated } = expression else { return Ok(()) };
    let Some(values) = row_comparison::row_values(expr) else { return Ok(()) };
    let equal = rows_equal(&values);
    let unknown = Expr::IsNull(Box::new(Expr::Nested(Box::new(equal.clone()))));
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
        outcome = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(outcome))) };
    }
    *expression = outcome;
    Ok(())
}

/// Whether the values are those of a row of the subquery.
fn rows_equal(values: &[Expr]) -> Expr {
    let pairs = values.iter().enumerate().map(|(index, value)| Expr::BinaryOp {
        left: Box::new(Expr::CompoundIdentifier(vec![name(ALIAS), name(&column(index))])),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::Nested(Box::new(value.clone()))),
    });
    let all = pairs.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    });
    Expr::Nested(Box::new(all.unwrap_or_else(|| Expr::Tuple(Vec::new()))))
}

fn name(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn column(index: usize) -> String {
    format!("{}\u{1}in", index + 1)
}

/// The rows of `subquery`, of so many columns, that meet `condition`.
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

/// Refuses an alias of ours for rows of another number of columns.
pub(super) fn check_columns(alias: &TableAlias, columns: usize) -> Result<()> {
    if alias.name.value == ALIAS && alias.columns.len() != columns {
        let few_or_many = if columns < alias.columns.len() { "few" } else { "many" };
        return plan_err!("subquery has too {few_or_many} columns");
    }
    Ok(())
}
