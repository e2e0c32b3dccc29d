//! Columns that are texts in a plan, because the engine does not have their type: PostgreSQL's `numeric` without a scale,
//! enums, `citext` and others.
//!
//! As texts they have another order, and some are equal in other cases. So a statement casts such a column before it
//! compares it in a way that differs.

use datafusion::arrow::datatypes::Field;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};
use tidegate_core::{Error, ErrorKind};
use tidegate_pgsql::for_each_part;
use tidegate_query::{ExtensionType, field_type_name, is_foreign_text};
use tidegate_sql::SqlDialect;

/// The comparison of two values: only whether they are equal, or which is the first.
#[derive(Clone, Copy)]
enum Comparison {
    Equality,
    Order,
}

/// Refuses a plan that compares values as texts, if their own type compares them in another way.
pub(super) fn check_text_comparisons(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        if let LogicalPlan::Distinct(Distinct::All(input)) = node {
            let mut fields = input.schema().fields().iter();
            fields.try_for_each(|field| check_column(field, field.name(), Comparison::Equality))?;
        }
        check_operands(&keys_of_node(node), Comparison::Equality, &schema)?;
        if let LogicalPlan::Sort(sort) = node {
            let keys: Vec<&Expr> = sort.expr.iter().map(|key| &key.expr).collect();
            check_operands(&keys, Comparison::Order, &schema)?;
        }
        for_each_part(node, |part| {
            check_operands(&equated_parts(part), Comparison::Equality, &schema)?;
            check_operands(&ordered_parts(part), Comparison::Order, &schema)
        })
    })?;
    Ok(())
}

fn check_operands(operands: &[&Expr], comparison: Comparison, schema: &DFSchema) -> Result<()> {
    operands.iter().try_for_each(|operand| check_operand(operand, comparison, schema))
}

fn check_operand(operand: &Expr, comparison: Comparison, schema: &DFSchema) -> Result<()> {
    match operand {
        Expr::Alias(alias) => check_operand(&alias.expr, comparison, schema),
        Expr::Column(column) => match schema.maybe_index_of_column(column) {
            Some(index) => check_column(schema.field(index), &column.name, comparison),
            None => Ok(()),
        },
        Expr::OuterReferenceColumn(field, column) => check_column(field, &column.name, comparison),
        _ => Ok(()),
    }
}

fn check_column(field: &Field, column: &str, comparison: Comparison) -> Result<()> {
    let is_number = ExtensionType::from_field(field) == Some(ExtensionType::Number);
    if !is_number && !is_foreign_text(field) {
        return Ok(());
    }
    let quoted = SqlDialect::DataFusion.quote_identifier(column);
    let (reason, hint) = match (comparison, field_type_name(field).as_str()) {
        _ if is_number => (
            "is numeric without a scale, which is a text here: it cannot be compared, ordered or grouped".to_owned(),
            format!("Cast it: {quoted}::numeric(38,6), or {quoted}::double precision."),
        ),
        (_, "citext") => (
            "is citext in its database, and a text here, where letter case matters".to_owned(),
            format!("Compare it in lower case: lower({quoted}::text)."),
        ),
        (Comparison::Order, name) => (
            format!("is {name} in its database, and a text here, with another order"),
            format!("For the order of its texts, cast it: {quoted}::text. For its own, query its database directly."),
        ),
        (Comparison::Equality, _) => return Ok(()),
    };
    let error = Error::new(ErrorKind::InvalidArguments, format!("column {column:?} {reason}")).with_hint(hint);
    Err(DataFusionError::External(Box::new(error)))
}

/// The expressions by which `node` groups or joins rows.
fn keys_of_node(node: &LogicalPlan) -> Vec<&Expr> {
    match node {
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

/// The operands of `part` that must be equal to others.
fn equated_parts(part: &Expr) -> Vec<&Expr> {
    use Operator as Op;
    match part {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Op::Eq | Op::NotEq | Op::IsDistinctFrom | Op::IsNotDistinctFrom,
            right,
        }) => vec![&**left, &**right],
        Expr::InList(list) => std::iter::once(&*list.expr).chain(&list.list).collect(),
        Expr::InSubquery(condition) => vec![&*condition.expr],
        Expr::SetComparison(comparison) => vec![&*comparison.expr],
        Expr::Case(case) => case.expr.as_deref().into_iter().collect(),
        Expr::ScalarFunction(call) if call.func.name() == "nullif" => call.args.iter().collect(),
        Expr::AggregateFunction(call)
            if call.params.distinct || matches!(call.func.name(), "mode" | "approx_distinct") =>
        {
            call.params.args.iter().collect()
        }
        Expr::WindowFunction(call) => call.params.partition_by.iter().collect(),
        _ => Vec::new(),
    }
}

/// The operands of `part` that it orders.
fn ordered_parts(part: &Expr) -> Vec<&Expr> {
    use Operator as Op;
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op: Op::Lt | Op::LtEq | Op::Gt | Op::GtEq, right }) => {
            vec![&**left, &**right]
        }
        Expr::Between(between) => vec![&*between.expr, &*between.low, &*between.high],
        Expr::ScalarFunction(call) if matches!(call.func.name(), "greatest" | "least") => call.args.iter().collect(),
        Expr::AggregateFunction(call) => {
            let keys = call.params.order_by.iter().map(|key| &key.expr);
            extremes(call.func.name(), &call.params.args).iter().chain(keys).collect()
        }
        Expr::WindowFunction(call) => {
            let keys = call.params.order_by.iter().map(|key| &key.expr);
            extremes(call.fun.name(), &call.params.args).iter().chain(keys).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments of `function` if it is an aggregate that returns the first or the last of them.
fn extremes<'e>(function: &str, args: &'e [Expr]) -> &'e [Expr] {
    if matches!(function, "min" | "max") { args } else { &[] }
}
