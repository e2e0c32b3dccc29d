//! Numbers that are written as text, and integer literals, which have the first of the types `integer`, `bigint` and
//! `numeric` that holds them.
//!
//! To DataFusion's planner all integer literals are bigints, and it calls an extension for operators but for no literal. So a
//! literal becomes an operand of an operator that no statement can contain, and the planner of operators replaces it.
//! `docs/decisions/upstream` has the text to be filed, and says when the marks can go.

use std::fmt::Write;
use std::num::ParseFloatError;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, exec_err};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{BinaryExpr, Expr as PlanExpr, ExprSchemable};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, GroupByExpr, LimitClause,
    NamedWindowDefinition, NamedWindowExpr, Query, Select, Statement, TableFactor, TableSampleKind, UnaryOperator,
    Value, ValueWithSpan, VisitorMut, WindowFrameBound, WindowSpec, WindowType,
};

use super::out_of_range_error;
use crate::data_type::number_type_name;
use crate::syntax::{binary, body_and_order, into_result, take, without_parentheses};
use crate::walk::{Stop, walk_mut};

/// Parses `text` as a numeric with the scale that it is written with; `None` if it is not a number or has more than 38
/// digits.
pub fn numeric_literal(text: &str) -> Option<ScalarValue> {
    let (value, scale) = parse_decimal(text)?;
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    let precision = u8::try_from(digits).ok()?.max(u8::try_from(scale).ok()?).max(1);
    (precision <= 38).then_some(ScalarValue::Decimal128(Some(value), precision, scale))
}

/// Parses a decimal such as `-12.50` or `1.5e3`. Returns the number of units of `10^-scale`, and the scale.
pub(crate) fn parse_decimal(text: &str) -> Option<(i128, i8)> {
    let text = text.trim_matches(|character: char| character.is_ascii_whitespace());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let mut value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let mut scale = i32::try_from(fraction.len()).ok()? - exponent;
    if scale < 0 {
        value = value.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
        scale = 0;
    }
    let value = if mantissa.starts_with('-') { -value } else { value };
    Some((value, i8::try_from(scale).ok().filter(|scale| *scale <= 38)?))
}

/// Parses an untyped literal as a number of type `data_type`.
pub(super) fn parse_number(text: &str, data_type: &DataType) -> Result<ScalarValue> {
    if data_type.is_decimal() {
        return numeric_literal(text).ok_or_else(|| invalid_input_error(text, data_type));
    }
    if data_type.is_floating() {
        return Ok(float_scalar(parse_float(text, data_type)?, data_type));
    }
    let value = ScalarValue::Int64(Some(parse_integer(text, data_type)?));
    // PostgreSQL has no other types of fewer bits.
    if matches!(data_type, DataType::Int16 | DataType::Int32) { value.cast_to(data_type) } else { Ok(value) }
}

fn float_scalar(value: f64, data_type: &DataType) -> ScalarValue {
    if is_real(data_type) { ScalarValue::Float32(Some(value as f32)) } else { ScalarValue::Float64(Some(value)) }
}

/// Whether `data_type` is `real`, or a narrower floating-point number.
fn is_real(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32)
}

/// Converts a numeric to the nearest number of a floating-point type; other values stay unchanged.
pub(super) fn to_float(value: ScalarValue, data_type: &DataType) -> ScalarValue {
    match &value {
        ScalarValue::Decimal128(None, ..) if is_real(data_type) => ScalarValue::Float32(None),
        ScalarValue::Decimal128(None, ..) => ScalarValue::Float64(None),
        // Parses the digits, so that the result is the number that a literal of the same digits has.
        ScalarValue::Decimal128(Some(units), _, scale) => {
            match parse_nearest(&format!("{units}e-{scale}"), data_type) {
                Ok(nearest) => float_scalar(nearest, data_type),
                Err(_) => value,
            }
        }
        _ => value,
    }
}

/// Parses the digits of a number as the nearest one of a floating-point type, which is not always that of the nearest double.
fn parse_nearest(digits: &str, data_type: &DataType) -> Result<f64, ParseFloatError> {
    if is_real(data_type) { digits.parse::<f32>().map(f64::from) } else { digits.parse() }
}

/// Returns PostgreSQL's error for a text that is not a value of a type.
pub(crate) fn invalid_input_error(text: &str, data_type: &DataType) -> DataFusionError {
    let name = number_type_name(data_type);
    DataFusionError::Execution(format!("invalid input syntax for type {name}: \"{text}\""))
}

/// Parses `text` as an integer of type `data_type`.
pub(crate) fn parse_integer(text: &str, data_type: &DataType) -> Result<i64> {
    let digits = trimmed(text);
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_input_error(text, data_type));
    }
    let out_of_range = || out_of_range_error(data_type);
    let value: i64 = digits.parse().map_err(|_| out_of_range())?;
    let fits = match data_type {
        DataType::Int8 => i8::try_from(value).is_ok(),
        DataType::UInt8 => u8::try_from(value).is_ok(),
        DataType::Int16 => i16::try_from(value).is_ok(),
        DataType::UInt16 => u16::try_from(value).is_ok(),
        DataType::Int32 => i32::try_from(value).is_ok(),
        DataType::UInt32 => u32::try_from(value).is_ok(),
        DataType::UInt64 => value >= 0,
        _ => true,
    };
    if fits { Ok(value) } else { Err(out_of_range()) }
}

/// Parses `text` as a floating-point number.
pub(crate) fn parse_float(text: &str, data_type: &DataType) -> Result<f64> {
    let written = trimmed(text);
    let unsigned = written.strip_prefix(['-', '+']).unwrap_or(written).to_ascii_lowercase();
    let is_special = matches!(unsigned.as_str(), "nan" | "inf" | "infinity");
    if unsigned.is_empty()
        || !(is_special || unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.'))
    {
        return Err(invalid_input_error(text, data_type));
    }
    let value = parse_nearest(written, data_type).map_err(|_| invalid_input_error(text, data_type))?;
    // Overflow to infinity and underflow to zero are out of range.
    let mantissa = unsigned.split('e').next().unwrap_or_default();
    let has_digit = mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let is_lost = !is_special && (value.is_infinite() || (value == 0.0 && has_digit));
    if is_lost {
        return exec_err!("\"{text}\" is out of range for type {}", number_type_name(data_type));
    }
    Ok(value)
}

/// Strips the surrounding white space that PostgreSQL ignores.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace())
}

/// Writes a floating-point number from its shortest representation (`-1.5e20`). It has an exponent from `10^digits` on
/// and below `0.0001`.
pub(crate) fn write_float(shortest: &str, value: f64, digits: i32, out: &mut String) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a string never fails.
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
        return;
    }
    let (sign, unsigned) = mantissa.strip_prefix('-').map_or(("", mantissa), |unsigned| ("-", unsigned));
    let all = unsigned.replace('.', "");
    out.push_str(sign);
    match usize::try_from(exponent) {
        Ok(before) if before + 1 >= all.len() => {
            let _ = write!(out, "{all}{}", "0".repeat(before + 1 - all.len()));
        }
        Ok(before) => {
            let _ = write!(out, "{}.{}", &all[..=before], &all[before + 1..]);
        }
        Err(_) => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            let _ = write!(out, "0.{}{all}", "0".repeat(zeros));
        }
    }
}

/// The operator. The space keeps callers from writing it.
const OPERATOR: &str = "integer literal";

/// The lowest `integer`, whose digits without the sign are a `bigint`.
const LOWEST_INTEGER: i64 = i32::MIN as i64;

/// Marks the integer literals of `statement`, whose other parts are rewritten.
pub(crate) fn mark_literals(statement: &mut Statement) -> Result<()> {
    into_result(walk_mut(statement, &mut LiteralMarker))
}

/// Returns the literal that `operation` marks, of the type `integer` if that holds it.
pub(crate) fn plan_literal(operation: &RawBinaryExpr) -> Option<PlanExpr> {
    let (BinaryOperator::Custom(operator), PlanExpr::Literal(value, metadata)) = (&operation.op, &operation.left)
    else {
        return None;
    };
    let ScalarValue::Int64(Some(value)) = value else { return None };
    if operator != OPERATOR {
        return None;
    }
    let literal = match i32::try_from(*value) {
        Ok(value) => ScalarValue::Int32(Some(value)),
        Err(_) => ScalarValue::Int64(Some(*value)),
    };
    Some(PlanExpr::Literal(literal, metadata.clone()))
}

/// Returns the value of an integer literal of a plan.
pub(crate) fn integer_value(expression: &PlanExpr) -> Option<i64> {
    match expression {
        PlanExpr::Literal(ScalarValue::Int32(Some(value)), _) => Some(i64::from(*value)),
        PlanExpr::Literal(ScalarValue::Int64(Some(value)), _) => Some(*value),
        _ => None,
    }
}

/// Gives the literals beside a bigint its type, and those among arguments that are bigints. A cast would hide that they are
/// constants.
pub(crate) fn widen_literals(expression: PlanExpr, schema: &DFSchema) -> Result<Transformed<PlanExpr>> {
    match expression {
        PlanExpr::BinaryExpr(BinaryExpr { mut left, op, mut right }) => {
            let is_bigint = |operand: &PlanExpr| operand.get_type(schema).is_ok_and(|own| own == DataType::Int64);
            let is_changed = is_integer(&left) && is_bigint(&right) && widen(&mut left)
                || is_integer(&right) && is_bigint(&left) && widen(&mut right);
            let widened = PlanExpr::BinaryExpr(BinaryExpr { left, op, right });
            Ok(Transformed::new_transformed(widened, is_changed))
        }
        PlanExpr::ScalarFunction(mut call) if call.args.iter().any(is_integer) => {
            let fields = call.args.iter().map(|arg| Ok(arg.to_field(schema)?.1)).collect::<Result<Vec<_>>>();
            // DataFusion's own coercion reports arguments that do not fit.
            let coerced = fields.and_then(|fields| fields_with_udf(&fields, call.func.as_ref())).unwrap_or_default();
            let mut is_changed = false;
            for (arg, _) in call.args.iter_mut().zip(coerced).filter(|(_, field)| *field.data_type() == DataType::Int64)
            {
                is_changed |= widen(arg);
            }
            Ok(Transformed::new_transformed(PlanExpr::ScalarFunction(call), is_changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_integer(expression: &PlanExpr) -> bool {
    matches!(expression, PlanExpr::Literal(ScalarValue::Int32(Some(_)), _))
}

/// Makes a literal of the type `integer` a bigint. Returns whether it was one.
fn widen(expression: &mut PlanExpr) -> bool {
    let PlanExpr::Literal(literal, _) = expression else { return false };
    let ScalarValue::Int32(Some(value)) = literal else { return false };
    *literal = ScalarValue::Int64(Some(i64::from(*value)));
    true
}

/// Marks literals, inner ones first.
struct LiteralMarker;

impl VisitorMut for LiteralMarker {
    type Break = Stop;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        sign_literal(expression);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        match expression {
            Expr::Value(value) => {
                if let Value::Number(digits, _) = &mut value.value
                    && digits.bytes().all(|digit| digit.is_ascii_digit())
                {
                    if digits.parse::<i32>().is_ok() {
                        mark(expression);
                    } else if digits.parse::<i64>().is_err() {
                        digits.push('.');
                    }
                }
            }
            // A sign belongs to the literal.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_marked_number(expr) => {
                unmark(expr);
                mark(expression);
            }
            Expr::Function(Function { over: Some(WindowType::WindowSpec(window)), .. }) => unmark_frame(window),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        // DataFusion's own functions in FROM take bigints.
        if let TableFactor::Table { args: Some(args), .. } = factor {
            for argument in &mut args.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument {
                    unmark(value);
                }
            }
        }
        if let TableFactor::Table { sample: Some(sample), .. } | TableFactor::Derived { sample: Some(sample), .. } =
            factor
        {
            let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
            sample.quantity.iter_mut().for_each(|percentage| unmark(&mut percentage.value));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Stop> {
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            keys.iter_mut().for_each(unmark);
        }
        for NamedWindowDefinition(_, definition) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = definition {
                unmark_frame(window);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        for key in body_and_order(query).1 {
            unmark(&mut key.expr);
        }
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value)).for_each(unmark);
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => [offset, limit].into_iter().for_each(unmark),
            None => {}
        }
        if let Some(Fetch { quantity: Some(quantity), .. }) = &mut query.fetch {
            unmark(quantity);
        }
        ControlFlow::Continue(())
    }
}

/// Moves signs into an integer whose type depends on them: `-2147483648` is an `integer`, `-9223372036854775808` a `bigint`.
fn sign_literal(expression: &mut Expr) {
    if !matches!(expression, Expr::UnaryOp { op: UnaryOperator::Minus, .. }) {
        return;
    }
    let Some((is_negative, digits)) = signed_digits(expression) else { return };
    if !matches!(format!("-{digits}").parse::<i64>(), Ok(LOWEST_INTEGER | i64::MIN)) {
        return;
    }
    let literal = if is_negative { format!("-{digits}") } else { digits.to_owned() };
    *expression = Expr::value(Value::Number(literal, false));
    if is_negative {
        mark(expression);
    }
}

/// Returns the digits of an integer literal, and whether its signs make it negative.
fn signed_digits(expression: &Expr) -> Option<(bool, &str)> {
    match without_parentheses(expression) {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            signed_digits(expr).map(|(is_negative, digits)| (!is_negative, digits))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
            if digits.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            Some((false, digits.as_str()))
        }
        _ => None,
    }
}

fn mark(expression: &mut Expr) {
    let literal = take(expression);
    *expression = binary(literal, BinaryOperator::Custom(OPERATOR.to_owned()), Expr::value(Value::Null));
}

/// Whether `expression` is a marked literal without a sign.
fn is_marked_number(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryOp { left, op: BinaryOperator::Custom(operator), .. } => {
            operator == OPERATOR
                && matches!(left.as_ref(), Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                    if !digits.starts_with('-'))
        }
        _ => false,
    }
}

/// Removes the mark of a number of rows or of a column, which the planner reads itself.
fn unmark(expression: &mut Expr) {
    match expression {
        Expr::Nested(inner) => unmark(inner),
        Expr::BinaryOp { left, op: BinaryOperator::Custom(operator), .. } if operator == OPERATOR => {
            *expression = take(left);
        }
        _ => {}
    }
}

fn unmark_frame(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) = bound {
            unmark(rows);
        }
    }
}
