//! Plans `EXCEPT ALL` and `INTERSECT ALL`, which count equal rows.
//!
//! In the syntax tree they are represented by a parenthesized join of the two sides with a special alias. The plan groups
//! the rows of both sides, counts the rows of each side, and repeats each group as often as the operation requires.

use datafusion::common::{Column, Result, plan_err};
use datafusion::functions::core::expr_fn::least;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_nested::expr_fn::gen_series;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Query, SetExpr, SetOperator, SetQuantifier, TableAlias, TableFactor,
    TableWithJoins,
};

use super::parse;

const EXCEPT: &str = "except all\u{1}";
const INTERSECT: &str = "intersect all\u{1}";

/// Replaces `body`, if it is such an operation, with a query of the join that represents it.
pub(super) fn rewrite(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier: SetQuantifier::All, left, right } = body else { return Ok(()) };
    let name = match op {
        SetOperator::Except | SetOperator::Minus => EXCEPT,
        SetOperator::Intersect => INTERSECT,
        SetOperator::Union => return Ok(()),
    };
    let side = |side: &SetExpr| -> Result<TableFactor> {
        let mut subquery = Box::new(parse::parse_query("SELECT 1")?);
        match side {
            SetExpr::Query(query) => subquery = query.clone(),
            other => subquery.body = Box::new(other.clone()),
        }
        Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })
    };
    let join =
        Join { relation: side(right)?, global: false, join_operator: JoinOperator::CrossJoin(JoinConstraint::None) };
    let both = TableWithJoins { relation: side(left)?, joins: vec![join] };
    let alias = TableAlias { name: name.into(), columns: Vec::new(), explicit: true, at: None };
    let relation = TableFactor::NestedJoin { table_with_joins: Box::new(both), alias: Some(alias) };
    let Query { body: of_join, .. } = parse::select_all(TableWithJoins { relation, joins: Vec::new() })?;
    *body = *of_join;
    Ok(())
}

/// Plans `relation` if it represents a set operation.
pub(super) fn plan(relation: &TableFactor, context: &mut dyn RelationPlannerContext) -> Result<Option<LogicalPlan>> {
    let TableFactor::NestedJoin { table_with_joins: both, alias: Some(alias) } = relation else { return Ok(None) };
    let is_except = alias.name.value == EXCEPT;
    if !is_except && alias.name.value != INTERSECT {
        return Ok(None);
    }
    let [join] = both.joins.as_slice() else { return Ok(None) };
    let left = context.plan(both.relation.clone())?;
    let right = context.plan(join.relation.clone())?;
    let names: Vec<String> = left.schema().fields().iter().map(|field| field.name().clone()).collect();
    if right.schema().fields().len() != names.len() {
        let operation = if is_except { "EXCEPT" } else { "INTERSECT" };
        return plan_err!("each {operation} query must have the same number of columns");
    }
    let key = |index: usize| format!("key\u{1}{index}");
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let numbered = |plan: LogicalPlan, of_left: i64| -> Result<LogicalPlan> {
        let keys = plan.schema().columns().into_iter().enumerate();
        let mut output: Vec<Expr> = keys.map(|(index, column)| Expr::Column(column).alias(key(index))).collect();
        output.push(lit(of_left).alias("left\u{1}"));
        output.push(lit(1 - of_left).alias("right\u{1}"));
        LogicalPlanBuilder::from(plan).project(output)?.build()
    };
    let keys: Vec<Expr> = (0..names.len()).map(|index| column(&key(index))).collect();
    let (of_left, of_right) = (column("lefts\u{1}"), column("rights\u{1}"));
    let copies = if is_except { of_left - of_right } else { least(vec![of_left, of_right]) };
    let counts = [sum(column("left\u{1}")).alias("lefts\u{1}"), sum(column("right\u{1}")).alias("rights\u{1}")];
    let mut repeated = keys.clone();
    repeated.push(gen_series(lit(1_i64), copies.clone(), lit(1_i64)).alias("copy\u{1}"));
    let output = keys.iter().cloned().zip(names).map(|(key, name)| key.alias(name));
    LogicalPlanBuilder::from(numbered(left, 1)?)
        .union(numbered(right, 0)?)?
        .aggregate(keys.clone(), counts)?
        .filter(copies.gt(lit(0_i64)))?
        .project(repeated)?
        .unnest_column("copy\u{1}")?
        .project(output)?
        .build()
        .map(Some)
}
