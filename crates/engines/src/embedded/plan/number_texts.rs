//! Numbers that are texts in a plan, because no type of the engine has all their digits: PostgreSQL's `numeric` without a
//! scale.
//!
//! As texts they have another order, and equal numbers may be written differently. So a statement casts such a column
//! before it compares, orders or groups it.

use datafusion::arrow::datatypes::Field;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};
use tidegate_core::{Error, ErrorKind};
use tidegate_pgsql::for_each_part;
use tidegate_query::ExtensionType;
use tidegate_sql::SqlDialect;

/// Refuses a plan that compares numbers as texts.
pub(super) fn check_number_texts(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        check_compared(&keys_of_node(node), &schema)?;
        if let LogicalPlan::Distinct(Distinct::All(input)) = node
            && let Some(field) = input.schema().fields().iter().find(|field| is_number_text(field))
        {
            return Err(comparison_error(field.name()));
        }
        for_each_part(node, |part| check_compared(&compared_parts(part), &schema))
    })?;
    Ok(())
}

fn check_compared(expressions: &[&Expr], schema: &DFSchema) -> Result<()> {
    match expressions.iter().find_map(|expression| find_number_text(expression, schema)) {
        Some(column) => Err(comparison_error(column)),
        None => Ok(()),
    }
}

fn comparison_error(column: &str) -> DataFusionError {
    let message = format!(
        "column {column:?} is numeric without a scale, which is a text here: it cannot be compared, ordered or grouped"
    );
    let quoted = SqlDialect::DataFusion.quote_identifier(column);
    let hint = format!("Cast it: {quoted}::numeric(38,6), or {quoted}::double precision.");
    DataFusionError::External(Box::new(Error::new(ErrorKind::InvalidArguments, message).with_hint(hint)))
}

/// The name of the column that `expression` is, if its values are numbers as texts.
fn find_number_text<'e>(expression: &'e Expr, schema: &DFSchema) -> Option<&'e str> {
    let (is_number_text, column) = match expression {
        Expr::Alias(alias) => return find_number_text(&alias.expr, schema),
        Expr::Column(column) => (is_number_text(schema.field(schema.maybe_index_of_column(column)?)), column),
        Expr::OuterReferenceColumn(field, column) => (is_number_text(field), column),
        _ => return None,
    };
    is_number_text.then_some(column.name.as_str())
}

fn is_number_text(field: &Field) -> bool {
    ExtensionType::from_field(field) == Some(ExtensionType::Number)
}

/// The expressions by which `node` sorts, groups or joins rows.
fn keys_of_node(node: &LogicalPlan) -> Vec<&Expr> {
    match node {
        LogicalPlan::Sort(sort) => sort.expr.iter().map(|key| &key.expr).collect(),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().flat_map(keys_of_group).collect(),
        LogicalPlan::Distinct(Distinct::On(distinct)) => distinct.on_expr.iter().collect(),
        LogicalPlan::Join(join) => join.on.iter().flat_map(|(left, right)| [left, right]).collect(),
        _ => Vec::new(),
    }
}

fn keys_of_group(group: &Expr) -> Vec<&Expr> {
    match group {
        Expr::GroupingSet(sets) => sets.distinct_expr(),
        key => vec![key],
    }
}

/// The operands of `part` that it compares.
fn compared_parts(part: &Expr) -> Vec<&Expr> {
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => vec![&**left, &**right],
        Expr::Between(between) => vec![&*between.expr, &*between.low, &*between.high],
        Expr::InList(list) => std::iter::once(&*list.expr).chain(&list.list).collect(),
        Expr::InSubquery(condition) => vec![&*condition.expr],
        Expr::SetComparison(comparison) => vec![&*comparison.expr],
        Expr::Case(case) => case.expr.as_deref().into_iter().collect(),
        Expr::ScalarFunction(call) if matches!(call.func.name(), "greatest" | "least" | "nullif") => {
            call.args.iter().collect()
        }
        Expr::AggregateFunction(call) => {
            let args = compared_args(call.func.name(), call.params.distinct, &call.params.args);
            args.iter().chain(call.params.order_by.iter().map(|key| &key.expr)).collect()
        }
        Expr::WindowFunction(call) => {
            let params = &call.params;
            let args = compared_args(call.fun.name(), params.distinct, &params.args);
            let order = params.order_by.iter().map(|key| &key.expr);
            args.iter().chain(&params.partition_by).chain(order).collect()
        }
        _ => Vec::new(),
    }
}

fn compared_args<'e>(function: &str, is_distinct: bool, args: &'e [Expr]) -> &'e [Expr] {
    if is_distinct || matches!(function, "min" | "max" | "mode" | "approx_distinct") { args } else { &[] }
}

fn is_comparison(op: Operator) -> bool {
    use Operator as Op;
    matches!(
        op,
        Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::IsDistinctFrom | Op::IsNotDistinctFrom
    )
}
