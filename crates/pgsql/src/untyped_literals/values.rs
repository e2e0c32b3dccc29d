//! Untyped literals and numerics in VALUES, and untyped literals in the first branch of a CASE.
//!
//! The types of the values in a row are known only after planning, when DataFusion requires all rows to agree. So a
//! literal becomes a call with the values beside it, of which only the types are used, and so does a numeric that may be
//! beside a floating-point number. The planner takes the type of a CASE from its first branch.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, Expr as PlanExpr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature,
    Volatility,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, Query, SetExpr, TypedString, UnaryOperator, Value, Values, Visitor,
};

use super::{becomes_float, common_type, parse_value};
use crate::function::FieldFunction;
use crate::list::innermost_type;
use crate::number;
use crate::syntax::{call, take, without_parentheses};
use crate::walk::walk;

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "untyped*";
/// The name of the function that converts a numeric beside a floating-point number to one.
const NUMBER: &str = "number*";
/// The maximum number of values beside a literal or a numeric whose types are examined.
const SIBLINGS_MAX: usize = 16;

/// Gives the literals and numerics in VALUES of `query` itself the type of the values in other rows.
pub(crate) fn type_values(query: &mut Query) {
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Values(values) => type_rows(values),
            SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_mut(), right.as_mut()]),
            _ => {}
        }
    }
}

/// Gives the literal of the first branch of a CASE the type of a branch that follows.
pub(crate) fn rewrite_case(expression: &mut Expr) -> Result<()> {
    let Expr::Case { conditions, else_result, .. } = expression else { return Ok(()) };
    let branches = || conditions.iter().map(|branch| &branch.result).chain(else_result.as_deref());
    if !branches().find(|branch| !is_null(branch)).is_some_and(is_string) {
        return Ok(());
    }
    let typed = branches().find(|branch| !is_string(branch) && !is_null(branch)).cloned();
    if let Some(sibling) = typed.filter(|sibling| is_small(sibling, SIBLINGS_MAX))
        && let Some(first) = conditions.iter_mut().map(|branch| &mut branch.result).find(|branch| !is_null(branch))
    {
        *first = call(NAME, vec![take(first), sibling]);
    }
    Ok(())
}

/// Returns the value that replaces `call` if it is a call of a function of this module.
pub(super) fn resolve_value(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<PlanExpr>> {
    if call.func.name() == NUMBER {
        return resolve_number(call, schema);
    }
    if call.func.name() != NAME {
        return Ok(None);
    }
    let types = call.args.iter().skip(1).map(|arg| arg.get_type(schema)).collect::<Result<Vec<_>>>()?;
    Ok(match call.args.first() {
        Some(PlanExpr::Literal(ScalarValue::Utf8(Some(text)), metadata)) => {
            let data_type = literal_type(text, &types)?;
            // All rows of VALUES have one type, including its number of digits.
            let value = parse_value(text, &data_type)?.cast_to(&data_type)?;
            Some(PlanExpr::Literal(value, metadata.clone()))
        }
        _ => None,
    })
}

fn resolve_number(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<PlanExpr>> {
    let types = call.args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let data_type = number_type(&types)?;
    Ok(call.args.first().cloned().zip(types.first()).map(|(value, own)| match data_type {
        Some(float) if becomes_float(own, &float) => number::widen_operand(value, &float),
        _ => value,
    }))
}

fn type_rows(values: &mut Values) {
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let own = || values.rows.iter().filter_map(|row| row.content.get(column));
        // Of the values as they are written: a call of a literal contains others.
        let floats = floats_beside_numerics(own());
        if own().any(is_string)
            && let Some(siblings) = sibling_values(own()).filter(|siblings| !siblings.is_empty())
        {
            replace_values(values, column, NAME, &siblings, is_string);
        }
        if !floats.is_empty() {
            let may_be_numeric = |value: &Expr| matches!(number_kind(value), NumberKind::Numeric | NumberKind::Unknown);
            replace_values(values, column, NUMBER, &floats, |value| {
                may_be_numeric(value) && !is_call_of_literal(value)
            });
        }
    }
}

/// Replaces the values of a column that `is_replaced` selects with calls of `function`, with the values `siblings` beside
/// them.
fn replace_values(
    values: &mut Values,
    column: usize,
    function: &str,
    siblings: &[Expr],
    is_replaced: impl Fn(&Expr) -> bool,
) {
    for row in &mut values.rows {
        if let Some(value) = row.content.get_mut(column).filter(|value| is_replaced(value)) {
            *value = call(function, [vec![take(value)], siblings.to_vec()].concat());
        }
    }
}

fn is_call_of_literal(value: &Expr) -> bool {
    matches!(value, Expr::Function(function) if function.name.to_string() == NAME)
}

/// What is known of the type of a value before planning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Float,
    Numeric,
    /// A number of any type, an array of numbers, or another value.
    Unknown,
    Other,
}

fn number_kind(value: &Expr) -> NumberKind {
    match without_parentheses(value) {
        Expr::Value(value) => match &value.value {
            // It is a double if a numeric has too few digits.
            Value::Number(number, _) if number.contains(['e', 'E']) => NumberKind::Unknown,
            Value::Number(number, _) if number.parse::<i64>().is_err() => NumberKind::Numeric,
            _ => NumberKind::Other,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => number_kind(expr),
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => match data_type {
            ast::DataType::Numeric(_) | ast::DataType::Decimal(_) | ast::DataType::Dec(_) => NumberKind::Numeric,
            ast::DataType::Real
            | ast::DataType::Float4
            | ast::DataType::Float8
            | ast::DataType::Float(_)
            | ast::DataType::DoublePrecision
            | ast::DataType::Double(_) => NumberKind::Float,
            ast::DataType::Array(_) => NumberKind::Unknown,
            _ => NumberKind::Other,
        },
        Expr::BinaryOp { op, .. } if is_arithmetic(op) => NumberKind::Unknown,
        Expr::UnaryOp { .. }
        | Expr::Array(_)
        | Expr::Function(_)
        | Expr::Case { .. }
        | Expr::Extract { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. }
        | Expr::Subquery(_)
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_) => NumberKind::Unknown,
        _ => NumberKind::Other,
    }
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, PGExp, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo | PGExp)
}

/// Returns a value of each type in `column` that may be a floating-point number; none if no numeric can be beside one.
fn floats_beside_numerics<'a>(column: impl Iterator<Item = &'a Expr>) -> Vec<Expr> {
    let mut seen = HashSet::new();
    let (mut floats, mut has_numeric) = (Vec::new(), false);
    for value in column {
        let kind = number_kind(value);
        match kind {
            NumberKind::Float | NumberKind::Unknown if is_small(value, usize::MAX) => {
                if seen.insert(type_key(value)) {
                    floats.push((kind, value));
                }
            }
            // A subquery is not repeated for its type.
            NumberKind::Numeric | NumberKind::Unknown => has_numeric = true,
            NumberKind::Float | NumberKind::Other => {}
        }
    }
    let has_unknown = floats.iter().any(|(kind, _)| *kind == NumberKind::Unknown);
    if !(has_numeric || has_unknown && floats.len() > 1) {
        return Vec::new();
    }
    floats.sort_by_key(|(kind, _)| *kind == NumberKind::Unknown);
    floats.into_iter().take(SIBLINGS_MAX).map(|(_, value)| value.clone()).collect()
}

/// Returns a value of each type in `column`; `None` if there may be other types.
fn sibling_values<'a>(column: impl Iterator<Item = &'a Expr>) -> Option<Vec<Expr>> {
    let (mut seen, mut siblings) = (HashSet::new(), Vec::new());
    for value in column.filter(|value| !is_string(value) && !is_null(value)) {
        if seen.insert(type_key(value)) {
            if siblings.len() == SIBLINGS_MAX || !is_small(value, usize::MAX) {
                return None;
            }
            siblings.push(value.clone());
        }
    }
    Some(siblings)
}

/// Returns a key that is equal for values of the same type.
fn type_key(value: &Expr) -> String {
    match without_parentheses(value) {
        Expr::Cast { data_type, .. } => format!("::{data_type}"),
        Expr::TypedString(typed) => format!("::{}", typed.data_type),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) if number.parse::<i32>().is_err() => number.clone(),
            Value::Number(..) => "integer".to_owned(),
            Value::Boolean(_) => "boolean".to_owned(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

fn is_string(value: &Expr) -> bool {
    match without_parentheses(value) {
        Expr::Value(value) => matches!(
            value.value,
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::DollarQuotedString(_)
        ),
        _ => false,
    }
}

fn is_null(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if value.value == Value::Null)
}

/// Whether `value` contains no query, and at most `expressions_max` expressions.
fn is_small(value: &Expr, expressions_max: usize) -> bool {
    walk(value, &mut SizeCheck { remaining: expressions_max }).is_continue()
}

struct SizeCheck {
    remaining: usize,
}

impl Visitor for SizeCheck {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

/// Returns the type of the literal `text` beside values of the types `siblings`. A numeric type also has room for the
/// literal's digits.
fn literal_type(text: &str, siblings: &[DataType]) -> Result<DataType> {
    let common = common_type("VALUES", siblings)?.unwrap_or(DataType::Utf8);
    if !common.is_decimal() {
        return Ok(common);
    }
    let own = parse_value(text, &common)?.data_type();
    Ok(type_union_resolution(&[common.clone(), own]).unwrap_or(common))
}

/// Returns the type of a column with values of `types` if it is that of a floating-point number, or of arrays of them.
fn number_type(types: &[DataType]) -> Result<Option<DataType>> {
    Ok(common_type("VALUES", types)?.filter(|common| innermost_type(common).is_floating()))
}

pub(super) fn functions() -> [ScalarUDF; 2] {
    let signature = Signature::variadic_any(Volatility::Immutable);
    [
        FieldFunction::new(NAME, signature.clone(), literal_field, invoke_literal),
        FieldFunction::new(NUMBER, signature, number_field, |_| plan_err!("{NUMBER} was not resolved")),
    ]
}

/// Returns the field of a text that is parsed as a value of the type of the other arguments.
fn literal_field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let Some(Some(ScalarValue::Utf8(Some(text)))) = args.scalar_arguments.first() else {
        return plan_err!("an untyped literal must be text");
    };
    let siblings: Vec<DataType> = args.arg_fields.iter().skip(1).map(|field| field.data_type().clone()).collect();
    Ok(Arc::new(Field::new(NAME, literal_type(text, &siblings)?, true)))
}

fn invoke_literal(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(text)))) = args.args.first() else {
        return plan_err!("an untyped literal must be text");
    };
    let value = parse_value(text, args.return_field.data_type())?;
    Ok(ColumnarValue::Scalar(value.cast_to(args.return_field.data_type())?))
}

/// Returns the field of a number: a numeric is converted to the floating-point type of the other arguments.
/// [`resolve_value`] replaces the call.
fn number_field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    let Some(own) = args.arg_fields.first() else { return plan_err!("{NUMBER} has no argument") };
    Ok(match number_type(&types)? {
        Some(float) if becomes_float(own.data_type(), &float) => Arc::new(Field::clone(own).with_data_type(float)),
        _ => own.clone(),
    })
}
