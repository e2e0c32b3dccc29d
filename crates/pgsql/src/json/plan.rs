//! Rewrites expressions with JSON once the types of a plan are resolved.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ExprSchema, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, InList, Sort, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
};

use super::{input, operator_functions};
use crate::function::call;
use crate::json_type::{JsonKind, holds_json, is_json_extension, json_kind};

/// Rewrites an expression of JSON values that DataFusion evaluates differently from PostgreSQL.
pub(crate) fn convert_expression(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::Cast(cast) => convert_cast(cast, schema),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let kinds = (kind_in(&left, schema), kind_in(&right, schema));
            if kinds == (None, None) {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            if kinds != (Some(JsonKind::Jsonb), Some(JsonKind::Jsonb)) {
                return plan_err!("values of json are compared as jsonb: write value::jsonb on both sides");
            }
            let key = |side: Expr| Box::new(sort_key(side));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: key(*left), op, right: key(*right) })))
        }
        Expr::InList(InList { expr, list, negated }) if kind_in(&expr, schema).is_some() => {
            if kind_in(&expr, schema) == Some(JsonKind::Json) {
                return plan_err!("values of json are compared as jsonb: write value::jsonb");
            }
            let list = list.into_iter().map(sort_key).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(sort_key(*expr)), list, negated })))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let mut changed = order_by_keys(&mut params.order_by, schema)?;
            if params.distinct && func.name() == "count" {
                changed |= compare_by_keys(&mut params.args, schema);
            }
            let expression = Expr::AggregateFunction(AggregateFunction { func, params });
            Ok(Transformed::new_transformed(expression, changed))
        }
        Expr::WindowFunction(function) => {
            let WindowFunction { fun, mut params } = *function;
            let mut changed = order_by_keys(&mut params.order_by, schema)?;
            changed |= compare_by_keys(&mut params.partition_by, schema);
            let expression = Expr::from(WindowFunction { fun, params });
            Ok(Transformed::new_transformed(expression, changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn sort_key(document: Expr) -> Expr {
    call(operator_functions::sort_key(), vec![document])
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn kind_in(expression: &Expr, schema: &DFSchema) -> Option<JsonKind> {
    expression.get_type(schema).ok().and_then(|data_type| json_kind(&data_type))
}

/// Whether equality and order of `expression` are those of documents: it is a `jsonb`, or a column of documents in a file,
/// whose texts differ where the documents are equal.
fn is_document(expression: &Expr, schema: &DFSchema) -> bool {
    match expression {
        Expr::Alias(alias) => is_document(&alias.expr, schema),
        Expr::Column(column) if schema.field_from_column(column).is_ok_and(|field| is_json_extension(field)) => true,
        other => kind_in(other, schema) == Some(JsonKind::Jsonb),
    }
}

fn convert_cast(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(from) = kind_in(&cast.expr, schema) else { return Ok(Transformed::no(Expr::Cast(cast))) };
    let value = vec![*cast.expr];
    let target = cast.field.data_type().clone();
    let to_target = |expression: Expr| Expr::Cast(Cast::new(Box::new(expression), target.clone()));
    Ok(Transformed::yes(match (&target, from) {
        (DataType::Utf8, _) => call(input::to_text(), value),
        (DataType::LargeUtf8 | DataType::Utf8View, _) => to_target(call(input::to_text(), value)),
        (other, JsonKind::Jsonb) if other.is_integer() => to_target(call(input::to_integer(), value)),
        (other, JsonKind::Jsonb) if other.is_numeric() => to_target(call(input::to_number(), value)),
        (DataType::Boolean, JsonKind::Jsonb) => call(input::to_boolean(), value),
        (other, _) if json_kind(other) == Some(from) => value.into_iter().next().unwrap_or_default(),
        (other, _) => {
            let name = from.name();
            return plan_err!("cannot cast type {name} to {other}; take text with ->> or #>> '{{}}', and cast that");
        }
    }))
}

/// Replaces documents with their sort keys. Returns whether it replaced any.
fn order_by_keys(sorts: &mut [Sort], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for sort in sorts {
        if is_document(&sort.expr, schema) {
            sort.expr = sort_key(sort.expr.clone());
            changed = true;
        } else if kind_in(&sort.expr, schema) == Some(JsonKind::Json) {
            return plan_err!("could not identify an ordering operator for type json; write ::jsonb");
        }
    }
    Ok(changed)
}

/// Replaces documents whose equality matters by their sort keys. Returns whether it replaced any.
fn compare_by_keys(values: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for value in values.iter_mut().filter(|value| is_document(value, schema)) {
        *value = sort_key(value.clone());
        changed = true;
    }
    changed
}

/// Orders documents as `jsonb`, and refuses orders and groups of `json`, which PostgreSQL cannot compare.
pub(crate) fn order_documents(node: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Sort(mut sort) => {
            order_by_keys(&mut sort.expr, schema)?;
            Ok(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_document(left, schema) && is_document(right, schema) {
                    *left = sort_key(left.clone());
                    *right = sort_key(right.clone());
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Aggregate(aggregate) => {
            if aggregate.group_expr.iter().any(|group| kind_in(group, schema) == Some(JsonKind::Json)) {
                return plan_err!("could not identify an equality operator for type json; write ::jsonb");
            }
            Ok(LogicalPlan::Aggregate(aggregate))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            if input.schema().fields().iter().any(|field| json_kind(field.data_type()) == Some(JsonKind::Json)) {
                return plan_err!("could not identify an equality operator for type json; write ::jsonb");
            }
            Ok(LogicalPlan::Distinct(Distinct::All(input)))
        }
        other => Ok(other),
    }
}

/// Converts JSON values in the output of `plan` to marked text.
pub(crate) fn show_json_as_text(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = plan.schema().clone();
    if !schema.fields().iter().any(|field| holds_json(field.data_type())) {
        return Ok(plan);
    }
    let columns = schema.iter().map(|(qualifier, field)| {
        let column = Expr::from((qualifier, field));
        if holds_json(field.data_type()) {
            call(input::output_function(), vec![column]).alias_qualified(qualifier.cloned(), field.name())
        } else {
            column
        }
    });
    LogicalPlanBuilder::from(plan).project(columns.collect::<Vec<_>>())?.build()
}

/// Groups documents by their sort keys: `1` and `1.0` are equal values of `jsonb` with different texts. Each group
/// returns its first document. The types of `node` must be known.
pub(crate) fn group_by_document_keys(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Aggregate(aggregate) if has_documents(&aggregate) => group_by_keys(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let aggregate = Aggregate::try_new(input.clone(), columns, Vec::new())?;
            if has_documents(&aggregate) {
                group_by_keys(aggregate)
            } else {
                Ok(LogicalPlan::Distinct(Distinct::All(input)))
            }
        }
        other => Ok(other),
    }
}

fn has_documents(aggregate: &Aggregate) -> bool {
    aggregate.group_expr.iter().any(|group| is_document(group, aggregate.input.schema()))
}

fn group_by_keys(aggregate: Aggregate) -> Result<LogicalPlan> {
    let mut output: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
    let mut groups = Vec::new();
    let mut values = aggregate.aggr_expr.clone();
    for (index, group) in aggregate.group_expr.iter().enumerate() {
        if !is_document(group, aggregate.input.schema()) {
            groups.push(group.clone());
            continue;
        }
        let document = group.clone().unalias();
        let name = format!("document\u{1}{index}");
        groups.push(sort_key(document.clone()).alias(format!("key\u{1}{index}")));
        values.push(first_value(document, vec![]).alias(&name));
        let (qualifier, field) = aggregate.schema.qualified_field(index);
        output[index] = Expr::Column(Column::new_unqualified(name)).alias_qualified(qualifier.cloned(), field.name());
    }
    LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).aggregate(groups, values)?.project(output)?.build()
}
