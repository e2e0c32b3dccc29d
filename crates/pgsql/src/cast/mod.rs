//! Casts: PostgreSQL's input, output and conversion functions.
//!
//! A cast that Arrow performs differently from PostgreSQL becomes a call of [`Conversion`] once types are known
//! ([`convert`]). Types that DataFusion's planner does not support are rewritten before that ([`rewrite_syntax`]), and
//! `x::numeric`, whose number of digits depends on the value, is a function of its own. Where a cast column is compared with
//! a constant, the constant is cast instead ([`ConstantCastRule`]).
//!
//! A comparison of bigints with doubles also has a conversion ([`hide_ranges`]). DataFusion estimates how many rows a filter
//! keeps, from the smallest and largest values of the columns, which it converts to doubles and back. Beyond 2^53 that gives
//! a larger range than the column has, and an internal error. Of a function, no range is known. `docs/decisions/upstream`
//! has the text to be filed, and says when that can go.

mod compared_constant;
mod input_output;
mod types;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, exec_err, plan_err};
use datafusion::logical_expr::expr::{Between, Cast};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::data_type::{JsonKind, is_text_or_null, json_kind};
use crate::function::{ColumnarFunction, FunctionCall, convert_columnar, keep_types, try_map};
use crate::list::{as_list, dimensions, innermost_type, item_type, list_type};
use crate::number::{
    NUMERIC_UNITS_MAX, convert_integers_exactly, has_unconstrained_scale, numeric_with_free_scale, out_of_range_error,
    round_half_away_from_zero,
};
use crate::time;

pub(crate) use compared_constant::ConstantCastRule;
pub(crate) use input_output::parse_texts;
pub(crate) use types::{rewrite_character_columns, rewrite_character_keys, rewrite_characters, rewrite_syntax};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![numeric_function(), types::uuid_function()]
}

/// Replaces a cast of arrays with one of their elements. An array keeps its dimensions, however many the type has.
pub(crate) fn convert_arrays(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr, field }) = expression else { return Ok(Transformed::no(expression)) };
    let (from, to) = (expr.get_type(schema)?, field.data_type());
    let (own, element) = (innermost_type(&from), innermost_type(to));
    let (depth, to_depth) = (dimensions(&from), dimensions(to));
    let is_of_arrays = depth > 0 && to_depth > 0;
    if !is_of_arrays || (depth == to_depth && !needs_postgres_cast(own, element)?) {
        return Ok(Transformed::no(Expr::Cast(Cast { expr, field })));
    }
    let to = (0..depth).fold(element.clone(), |element, _| list_type(element));
    Ok(Transformed::yes(ScalarUDF::new_from_impl(Conversion::new(to)).call(vec![*expr])))
}

/// Replaces a cast that DataFusion performs differently with PostgreSQL's conversion function.
pub(crate) fn convert(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr, field }) = expression else { return Ok(Transformed::no(expression)) };
    let from = expr.get_type(schema)?;
    if !needs_postgres_cast(&from, field.data_type())? {
        return Ok(Transformed::no(Expr::Cast(Cast { expr, field })));
    }
    Ok(Transformed::yes(ScalarUDF::new_from_impl(Conversion::new(field.data_type().clone())).call(vec![*expr])))
}

/// Whether Arrow's cast differs from PostgreSQL's.
fn needs_postgres_cast(from: &DataType, to: &DataType) -> Result<bool> {
    if to.is_string() {
        if has_unconstrained_scale(from) {
            return plan_err!(
                "a quotient or an average cannot be cast to text, because PostgreSQL chooses its number of \
                 digits by its value; round it first: write round(x, 2)::text"
            );
        }
        if matches!(from, DataType::Struct(_) | DataType::Map(..) | DataType::Union(..)) {
            return plan_err!("a row cannot be cast to text; name its fields, or write to_json(x)");
        }
        return Ok(input_output::is_formatted_here(from));
    }
    if from.is_string() {
        return Ok(input_output::is_parsed_here(to));
    }
    if time::is_conversion(from, to) {
        return Ok(true);
    }
    Ok(match to {
        integer if integer.is_integer() => from.is_floating() || matches!(from, DataType::Decimal128(..)),
        DataType::Decimal128(..) => from.is_floating(),
        _ => false,
    })
}

/// Hides the range of bigints in `expression`, if it compares them with doubles of other columns.
pub(crate) fn hide_ranges(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let operands: Vec<&Expr> = match &expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => vec![left, right],
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        _ => return Ok(Transformed::no(expression)),
    };
    let mut has_bigint = false;
    for operand in &operands {
        has_bigint |= is_converted_bigint(operand, schema)?;
    }
    if !has_bigint || operands.iter().filter(|operand| !matches!(operand, Expr::Literal(..))).count() < 2 {
        return Ok(Transformed::no(expression));
    }
    let hide = |operand: Box<Expr>| -> Result<Box<Expr>> {
        if !is_converted_bigint(&operand, schema)? {
            return Ok(operand);
        }
        let Expr::Cast(Cast { expr, field }) = *operand else { return Ok(operand) };
        Ok(Box::new(ScalarUDF::new_from_impl(Conversion::new(field.data_type().clone())).call(vec![*expr])))
    };
    Ok(Transformed::yes(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            Expr::BinaryExpr(BinaryExpr { left: hide(left)?, op, right: hide(right)? })
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            Expr::Between(Between { expr: hide(expr)?, negated, low: hide(low)?, high: hide(high)? })
        }
        other => other,
    }))
}

fn is_converted_bigint(expression: &Expr, schema: &DFSchema) -> Result<bool> {
    let Expr::Cast(Cast { expr, field }) = expression else { return Ok(false) };
    let is_constant = matches!(**expr, Expr::Literal(..));
    Ok(field.data_type().is_floating() && !is_constant && expr.get_type(schema)? == DataType::Int64)
}

/// Casts its argument to a type as PostgreSQL does.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Conversion {
    to: DataType,
    /// Whether the name of the column has the type. Otherwise it is that of the operand, as DataFusion names casts.
    is_named_by_type: bool,
    signature: Signature,
}

impl Conversion {
    fn new(to: DataType) -> Self {
        Self { to, is_named_by_type: false, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// The type that its argument is cast to.
    fn data_type(&self) -> &DataType {
        &self.to
    }

    fn named_by_type(&self) -> Self {
        Self { is_named_by_type: true, ..Self::new(self.to.clone()) }
    }
}

/// Gives the conversions in a condition names of their own. A key of a join becomes a column beside its operand.
pub(crate) fn name_conversions(condition: Expr) -> Result<Transformed<Expr>> {
    condition.transform_up(|part| {
        let Expr::ScalarFunction(call) = &part else { return Ok(Transformed::no(part)) };
        let conversion = call.func.inner().downcast_ref::<Conversion>().filter(|function| !function.is_named_by_type);
        let named =
            conversion.map(|function| ScalarUDF::new_from_impl(function.named_by_type()).call(call.args.clone()));
        Ok(named.map_or(Transformed::no(part), Transformed::yes))
    })
}

/// Converts `values` to the type `to`.
fn convert_values(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if let (Some(_), DataType::List(item)) = (item_type(from), to) {
        return convert_elements(values, item);
    }
    if to.is_string() {
        return Ok(cast(&input_output::format_values(values)?, to)?);
    }
    if from.is_string() {
        let values = cast(values, &DataType::Utf8)?;
        return input_output::parse_texts(values.as_string(), to);
    }
    if time::is_conversion(from, to) {
        return time::convert(values, to);
    }
    if from.is_floating() && to.is_decimal() {
        return from_floats(values, to, false);
    }
    if from.is_integer() {
        return Ok(cast(values, to)?);
    }
    let integers: Int64Array = match from {
        DataType::Decimal128(_, scale) => {
            let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
            let rounded =
                |value: i128| i64::try_from(round_half_away_from_zero(value, unit)).map_err(|_| out_of_range_error(to));
            let values = values.as_primitive::<Decimal128Type>().iter();
            values.map(|value| value.map(rounded).transpose()).collect::<Result<_>>()?
        }
        _ => {
            let doubles = cast(values, &DataType::Float64)?;
            let values = doubles.as_primitive::<Float64Type>().iter();
            values.map(|value| value.map(|value| round_half_to_even(value, to)).transpose()).collect::<Result<_>>()?
        }
    };
    convert_integers_exactly(&integers, to)
}

/// Converts the elements of arrays to the type of `item`.
fn convert_elements(values: &ArrayRef, item: &FieldRef) -> Result<ArrayRef> {
    let list = as_list(values)?;
    // Of a slice, only its own elements may be parsed.
    let range =
        list.offsets().first().copied().unwrap_or(0) as usize..list.offsets().last().copied().unwrap_or(0) as usize;
    let elements = list.values().slice(range.start, range.len());
    let (from, to) = (elements.data_type(), item.data_type());
    let elements = if item_type(to).is_some() || needs_postgres_cast(from, to)? {
        convert_values(&elements, to)?
    } else {
        cast_with_options(&elements, to, &CastOptions { safe: false, ..CastOptions::default() })?
    };
    let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
    Ok(Arc::new(ListArray::try_new(item.clone(), offsets, elements, list.nulls().cloned())?))
}

/// Rounds `value` to the nearest integer, ties to even.
fn round_half_to_even(value: f64, to: &DataType) -> Result<i64> {
    let rounded = value.round_ties_even();
    // 2^63 is a double, but larger than any bigint.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        return Err(out_of_range_error(to));
    }
    #[allow(clippy::cast_possible_truncation, reason = "in range, and whole")]
    Ok(rounded as i64)
}

impl ScalarUDFImpl for Conversion {
    crate::name_and_signature!("cast*");

    #[allow(deprecated, reason = "plans show the cast")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| format!("CAST({arg} AS {})", self.to)).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names = args.iter().map(|arg| match self.is_named_by_type {
            true => format!("CAST({} AS {})", arg.schema_name(), self.to),
            false => arg.schema_name().to_string(),
        });
        Ok(names.collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else { return plan_err!("a cast has an operand") };
        convert_columnar(value, |values| convert_values(values, &self.to))
    }
}

/// The name of the function. The `*` keeps callers from writing it.
const NUMERIC_CAST: &str = "numeric*";

fn numeric_function() -> ScalarUDF {
    ColumnarFunction::new(NUMERIC_CAST, keep_types, numeric_type, cast_to_numeric)
}

fn is_jsonb(data_type: &DataType) -> bool {
    json_kind(data_type) == Some(JsonKind::Jsonb)
}

/// The significant digits of a floating-point number that PostgreSQL converts: those that its type has for certain.
fn significant_digits(float: &DataType) -> usize {
    if *float == DataType::Float64 { 15 } else { 6 }
}

/// Returns the `digits` significant digits of `value` as a number, and its scale. `None` if it is infinite or NaN.
fn round_to_significant(value: f64, digits: usize) -> Option<(i128, i32)> {
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e')?;
    let units = mantissa.replace('.', "").parse().ok()?;
    let scale = i32::try_from(digits).ok()? - 1 - exponent.parse::<i32>().ok()?;
    Some((units, scale))
}

/// Returns units of the scale `to`. `None` if there are too many, or if some are cut off and `is_exact`.
fn rescale(units: i128, scale: i32, to: i8, is_exact: bool) -> Option<i128> {
    let shift = i32::from(to) - scale;
    let factor = 10_i128.checked_pow(shift.unsigned_abs());
    match factor {
        _ if units == 0 => Some(0),
        Some(factor) if shift >= 0 => units.checked_mul(factor),
        None if shift >= 0 => None,
        Some(unit) if is_exact => (units % unit == 0).then_some(units / unit),
        Some(unit) => Some(round_half_away_from_zero(units, unit)),
        None => (!is_exact).then_some(0),
    }
}

/// Converts floating-point numbers to the numeric type `to` by their significant digits. Digits that the type does not
/// have are rounded, or are an error if the conversion must be exact.
fn from_floats(values: &ArrayRef, to: &DataType, is_exact: bool) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *to else { return plan_err!("a numeric must be a decimal") };
    let digits = significant_digits(values.data_type());
    let limit = if is_exact { NUMERIC_UNITS_MAX } else { 10_u128.pow(u32::from(precision)) };
    let convert = |value: f64| {
        if !value.is_finite() {
            return exec_err!("{value} is not supported as a numeric; leave it a double precision");
        }
        let units =
            round_to_significant(value, digits).and_then(|(units, written)| rescale(units, written, scale, is_exact));
        match units.filter(|units| units.unsigned_abs() < limit) {
            Some(units) => Ok(units),
            None if is_exact => {
                exec_err!("{value} has too many digits for a numeric without a scale; cast it to numeric(38, digits)")
            }
            None => exec_err!(
                "numeric field overflow: {value} has more digits before the point than numeric({precision},{scale})"
            ),
        }
    };
    let doubles = cast(values, &DataType::Float64)?;
    let numerics: Decimal128Array = try_map::<Float64Type, _>(&doubles, convert)?;
    Ok(Arc::new(numerics.with_precision_and_scale(precision, scale)?))
}

fn numeric_type(fields: &[FieldRef]) -> Result<DataType> {
    let [operand] = fields else { return plan_err!("a cast has one operand") };
    match operand.data_type() {
        number if number.is_decimal() || number.is_integer() => crate::number::as_numeric(number),
        other if other.is_floating() || is_text_or_null(other) || is_jsonb(other) => Ok(numeric_with_free_scale(22)),
        DataType::Boolean => plan_err!("cannot cast type boolean to numeric; cast it to an integer: x::int"),
        other => plan_err!("cannot cast type {other} to numeric"),
    }
}

fn cast_to_numeric(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let to = call.returns;
    let values = call.array(0)?;
    Ok(match values.data_type() {
        text if text.is_string() => input_output::parse_texts(cast(&values, &DataType::Utf8)?.as_string(), to)?,
        document if is_jsonb(document) => input_output::parse_texts(&crate::json::numbers(&values)?, to)?,
        float if float.is_floating() => from_floats(&values, to, true)?,
        _ => cast(&values, to)?,
    })
}
