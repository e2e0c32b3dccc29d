//! `ceil`, `floor`, `round`, `trunc`, `sign` and `abs`, which keep numerics exact, and the digits after their point:
//! `scale`, `min_scale` and `trim_scale`.
//!
//! PostgreSQL rounds numerics half away from zero and floating-point numbers half to even. Of an integer these
//! functions (but `abs`) give a double, so that `round(7) / 2` is 3.5.
//!
//! PostgreSQL has `round(x, digits)` and `trunc(x, digits)` for numerics alone. Some functions compute in double precision
//! here what is a numeric in PostgreSQL, such as `ln(1.5)` and the standard deviation of integers. So it is not the type that
//! decides, but what the value is made of ([`check_rounding`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Column, DataFusionError, Result, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::data_type::number_type_name;
use crate::function::{ColumnarFunction, FunctionCall};

pub(super) fn functions() -> Vec<ScalarUDF> {
    use Rounding::{Abs, Ceil, Floor, Round, Sign, Trunc};
    let named = [
        ("ceil", Ceil),
        ("ceiling", Ceil),
        ("floor", Floor),
        ("round", Round),
        ("trunc", Trunc),
        ("sign", Sign),
        ("abs", Abs),
    ];
    named
        .into_iter()
        .map(|(name, rounding)| {
            let signature = Signature::user_defined(Volatility::Immutable);
            ScalarUDF::new_from_impl(RoundingUdf { name, rounding, signature })
        })
        .collect()
}

/// Returns the numeric that holds the values of this type.
pub(crate) fn as_numeric(data_type: &DataType) -> Result<DataType> {
    Ok(match data_type {
        DataType::Decimal128(..) => data_type.clone(),
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, *scale),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Int64 | DataType::UInt64 => DataType::Decimal128(20, 0),
        integer if integer.is_integer() => DataType::Decimal128(10, 0),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            super::numeric_with_free_scale(18)
        }
        other => {
            return plan_err!("expected a numeric, not {}; cast it: x::numeric", number_type_name(other));
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rounding {
    Ceil,
    Floor,
    Round,
    Trunc,
    Sign,
    Abs,
}

impl Rounding {
    fn takes_digits(self) -> bool {
        matches!(self, Self::Round | Self::Trunc)
    }

    /// Rounds a double.
    fn round_float(self, value: f64) -> f64 {
        match self {
            Self::Ceil => value.ceil(),
            Self::Floor => value.floor(),
            Self::Round => value.round_ties_even(),
            Self::Trunc => value.trunc(),
            Self::Sign if value == 0.0 || value.is_nan() => 0.0,
            Self::Sign => value.signum(),
            Self::Abs => value.abs(),
        }
    }

    /// Computes `value / unit`, rounded.
    fn round_units(self, value: i128, unit: i128) -> i128 {
        let (whole, rest) = (value / unit, value % unit);
        match self {
            Self::Ceil if rest > 0 => whole + 1,
            Self::Floor if rest < 0 => whole - 1,
            Self::Round if rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2) => whole + value.signum(),
            Self::Sign => value.signum(),
            _ => whole,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundingUdf {
    name: &'static str,
    rounding: Rounding,
    signature: Signature,
}

/// Returns the type of a number rounded to `digits` digits after the point. Without a constant, the scale stays.
fn rounded_type(precision: u8, scale: i8, digits: Option<i8>) -> DataType {
    // A number that is rounded up may have one digit more.
    let Some(digits) = digits else { return DataType::Decimal128((precision + 1).min(38), scale) };
    let digit_count = digits.max(0);
    let before = i16::from(precision) - i16::from(scale) + 1;
    DataType::Decimal128(u8::try_from((before + i16::from(digit_count)).clamp(1, 38)).unwrap_or(38), digit_count)
}

/// Returns the digits after the point, if they are a constant; beyond what a numeric can have there is nothing to
/// round.
fn constant_digits(scalar: Option<&ScalarValue>) -> Option<i8> {
    let digits = match scalar? {
        ScalarValue::Int64(digits) => (*digits)?,
        ScalarValue::Int32(digits) => i64::from((*digits)?),
        _ => return None,
    };
    i8::try_from(digits.clamp(-38, 30)).ok()
}

impl ScalarUDFImpl for RoundingUdf {
    crate::name_and_signature!(.name);

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let own = |data_type: &DataType| match data_type {
            decimal if decimal.is_decimal() => as_numeric(decimal),
            integer if integer.is_integer() && self.rounding == Rounding::Abs => Ok(integer.clone()),
            number if number.is_numeric() => Ok(DataType::Float64),
            DataType::Null | DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Ok(DataType::Float64),
            other => plan_err!("{}({other}) does not exist; it takes a number", self.name),
        };
        match types {
            [value] => Ok(vec![own(value)?]),
            [value, digits] if self.rounding.takes_digits() && (digits.is_integer() || digits.is_null()) => {
                // A double that is a numeric in PostgreSQL; others were refused.
                let value = if value.is_floating() { DataType::Float64 } else { as_numeric(value)? };
                Ok(vec![value, DataType::Int64])
            }
            _ => plan_err!("{}({types:?}) does not exist", self.name),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of {} depends on its arguments", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let data_type = match (args.arg_fields.first().map(|field| field.data_type()), args.arg_fields.len()) {
            (Some(DataType::Decimal128(precision, scale)), count) => match self.rounding {
                Rounding::Abs => DataType::Decimal128(*precision, *scale),
                Rounding::Sign => DataType::Decimal128(1, 0),
                _ if count == 1 => rounded_type(*precision, *scale, Some(0)),
                _ => rounded_type(*precision, *scale, constant_digits(args.scalar_arguments.get(1).copied().flatten())),
            },
            (Some(other), _) => other.clone(),
            (None, _) => return plan_err!("{} needs an argument", self.name),
        };
        Ok(Arc::new(Field::new(self.name, data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let Some(value) = args.args.first() else { return plan_err!("{} needs an argument", self.name) };
        let value = value.to_array(rows)?;
        let digits = args.args.get(1).map(|digits| digits.to_array(rows)).transpose()?;
        let rounded: ArrayRef = match value.data_type() {
            DataType::Float64 => Arc::new(self.floats(&value, digits.as_ref())),
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                Arc::new(self.decimals(&value, scale, digits.as_ref(), args.return_field.data_type())?)
            }
            integer => {
                let data_type = integer.clone();
                absolute(&value).map_err(|_| super::out_of_range_error(&data_type))?
            }
        };
        Ok(ColumnarValue::Array(rounded))
    }
}

/// Computes the absolute values of integers.
fn absolute(value: &ArrayRef) -> Result<ArrayRef> {
    if value.data_type().is_unsigned_integer() {
        return Ok(value.clone());
    }
    let negated = numeric::neg_wrapping(value.as_ref())?;
    let zero = ScalarValue::new_zero(value.data_type())?.to_scalar()?;
    let is_negative = arrow::compute::kernels::cmp::lt(value, &zero)?;
    let absolute = arrow::compute::kernels::zip::zip(&is_negative, &negated, value)?;
    let still_negative = arrow::compute::kernels::cmp::lt(&absolute, &zero)?;
    if still_negative.true_count() > 0 {
        return Err(super::out_of_range_error(value.data_type()));
    }
    Ok(absolute)
}

impl RoundingUdf {
    fn floats(&self, value: &ArrayRef, digits: Option<&ArrayRef>) -> Float64Array {
        let values = value.as_primitive::<Float64Type>();
        let Some(digits) = digits else {
            return values.iter().map(|value| Some(self.rounding.round_float(value?))).collect();
        };
        let digits = digits.as_primitive::<Int64Type>();
        values.iter().zip(digits.iter()).map(|(value, digits)| Some(self.float_to(value?, digits?))).collect()
    }

    /// Rounds the shortest decimal for `value` to `digits` digits after the point, half away from zero.
    fn float_to(&self, value: f64, digits: i64) -> f64 {
        if !value.is_finite() || digits > 330 {
            return value;
        }
        let text = format!("{value:e}");
        let Some((mantissa, exponent)) = text.split_once('e') else { return value };
        let exponent: i64 = exponent.parse().unwrap_or(0);
        let unsigned = mantissa.trim_start_matches('-').replace('.', "");
        // The value is 0.`unsigned` × 10^(exponent + 1).
        let digit_count = exponent + 1 + digits;
        let sign = if value < 0.0 { "-" } else { "" };
        let Ok(digit_count) = usize::try_from(digit_count) else { return 0.0 };
        if digit_count >= unsigned.len() {
            return value;
        }
        let (head, tail) = unsigned.split_at(digit_count);
        let up = self.rounding == Rounding::Round && tail.as_bytes().first().is_some_and(|digit| *digit >= b'5');
        let head = format!("0{head}").parse::<u128>().unwrap_or(0) + u128::from(up);
        format!("{sign}{head}e{}", -digits).parse().unwrap_or(value)
    }

    fn decimals(
        &self,
        value: &ArrayRef,
        scale: i8,
        digits: Option<&ArrayRef>,
        data_type: &DataType,
    ) -> Result<Decimal128Array> {
        let DataType::Decimal128(precision, to) = *data_type else {
            return plan_err!("the result of rounding a numeric must be a numeric");
        };
        let digits = digits.map(|digits| digits.as_primitive::<Int64Type>());
        let values = value.as_primitive::<Decimal128Type>();
        let rounded = (0..values.len()).map(|row| {
            if values.is_null(row) || digits.is_some_and(|digits| digits.is_null(row)) {
                return Ok(None);
            }
            let digits = digits.map_or(0, |digits| digits.value(row));
            self.decimal(values.value(row), scale, digits, to).map(Some)
        });
        let rounded: Decimal128Array = rounded.collect::<Result<_>>()?;
        Ok(rounded.with_precision_and_scale(precision, to)?)
    }

    /// Rounds `value / 10^scale` to `digits` digits after the point. Returns units of `10^-to`.
    fn decimal(&self, value: i128, scale: i8, digits: i64, to: i8) -> Result<i128> {
        let overflow = || DataFusionError::Execution("numeric field overflow".to_owned());
        let power = |exponent: i64| u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
        if self.rounding == Rounding::Abs {
            return Ok(value.abs());
        }
        if self.rounding == Rounding::Sign {
            return Ok(value.signum());
        }
        let digits = digits.clamp(-60, i64::from(scale));
        // A unit that no value reaches: all of it is less than half of one.
        let Some(unit) = power(i64::from(scale) - digits) else { return Ok(0) };
        let units = self.rounding.round_units(value, unit);
        match i64::from(to) - digits {
            up if up >= 0 => power(up).and_then(|factor| units.checked_mul(factor)).ok_or_else(overflow),
            down => Ok(units / power(-down).ok_or_else(overflow)?),
        }
    }
}

pub(super) fn scale_functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("scale", declared_scale_types, |_| Ok(DataType::Int32), scale),
        ColumnarFunction::new("min_scale", single_numeric_type, |_| Ok(DataType::Int32), min_scale),
        // The type has one scale for all values, so zeros at the end are left where they are, but have no text.
        ColumnarFunction::new(
            "trim_scale",
            single_numeric_type,
            |fields| Ok(trimmed_type(fields[0].data_type())),
            trim_scale,
        ),
    ]
}

fn single_numeric_type(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Null] => Ok(vec![DataType::Decimal128(1, 0)]),
        [number] if number.is_decimal() || number.is_integer() => Ok(vec![super::as_numeric(number)?]),
        [_] => plan_err!("scale, min_scale and trim_scale take a numeric; cast the argument: x::numeric"),
        _ => plan_err!("scale, min_scale and trim_scale take one numeric"),
    }
}

fn declared_scale_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let numerics = single_numeric_type(types)?;
    if numerics.iter().any(super::has_unconstrained_scale) {
        return plan_err!(
            "the scale of a quotient or an average is not available, because PostgreSQL chooses its number of digits \
             by its value; write min_scale(x), or round it first: scale(round(x, 2))"
        );
    }
    Ok(numerics)
}

fn trimmed_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal128(_, scale) if *scale <= super::UNCONSTRAINED_SCALE => {
            DataType::Decimal128(38, (*scale).max(super::FREE_SCALE_MIN))
        }
        other => other.clone(),
    }
}

fn scale_of(values: &ArrayRef) -> i8 {
    match values.data_type() {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

fn scale(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let values = call.array(0)?;
    let scale = i32::from(scale_of(&values));
    let scales = (0..values.len()).map(|row| values.is_valid(row).then_some(scale));
    Ok(Arc::new(scales.collect::<Int32Array>()))
}

fn min_scale(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let values = call.array(0)?;
    let scale = i32::from(scale_of(&values));
    let needed = |mut units: i128| {
        let mut needed = scale;
        while needed > 0 && units % 10 == 0 {
            units /= 10;
            needed -= 1;
        }
        needed
    };
    let scales = values.as_primitive::<Decimal128Type>().iter().map(|units| units.map(needed));
    Ok(Arc::new(scales.collect::<Int32Array>()))
}

fn trim_scale(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    Ok(arrow::compute::cast_with_options(
        &call.array(0)?,
        call.returns,
        &arrow::compute::CastOptions { safe: false, ..Default::default() },
    )?)
}

/// Functions that give a numeric of a numeric.
const NUMERIC_PRESERVING_FUNCTIONS: &[&str] = &[
    "abs", "average", "ceil", "ceiling", "coalesce", "exp", "floor", "greatest", "least", "ln", "log", "log10",
    "nullif", "pow", "power", "round", "sign", "sqrt", "trunc",
];

/// Aggregates that give a numeric of numerics or integers.
const NUMERIC_PRESERVING_AGGREGATES: &str = "\
    avg max mean min stddev stddev_pop stddev_samp sum var var_pop var_samp variance";

/// Refuses an expression of `node` that rounds a double to a number of digits.
pub(crate) fn check_rounding(expression: &Expr, node: &[&LogicalPlan]) -> Result<()> {
    let Expr::ScalarFunction(call) = expression else { return Ok(()) };
    let name = call.func.name();
    if let ("round" | "trunc", [value, _]) = (name, call.args.as_slice())
        && is_double(value, node)
    {
        return plan_err!(
            "function {name}(double precision, integer) does not exist; cast the number: {name}(x::numeric, 2)"
        );
    }
    Ok(())
}

/// Whether `expression` is a double in PostgreSQL, too; no where that is not known.
fn is_double(expression: &Expr, inputs: &[&LogicalPlan]) -> bool {
    match expression {
        Expr::Alias(alias) => is_double(&alias.expr, inputs),
        Expr::Cast(cast) => cast.field.data_type().is_floating(),
        Expr::Negative(operand) => is_double(operand, inputs),
        Expr::BinaryExpr(binary) => is_double(&binary.left, inputs) || is_double(&binary.right, inputs),
        Expr::Column(column) => inputs.iter().any(|input| is_double_column(input, column)),
        Expr::ScalarFunction(call) if NUMERIC_PRESERVING_FUNCTIONS.contains(&call.func.name()) => {
            call.args.iter().any(|argument| is_double(argument, inputs))
        }
        _ => false,
    }
}

fn is_double_column(plan: &LogicalPlan, column: &Column) -> bool {
    match plan.schema().maybe_index_of_column(column) {
        Some(index) => is_double_at(plan, index),
        None => false,
    }
}

/// Whether the column of `plan` at `index` is a double in PostgreSQL, too.
fn is_double_at(plan: &LogicalPlan, index: usize) -> bool {
    if !plan.schema().field(index).data_type().is_floating() {
        return false;
    }
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Projection(projection) => {
            projection.expr.get(index).is_some_and(|expression| is_double(expression, &[&projection.input]))
        }
        LogicalPlan::SubqueryAlias(alias) => is_double_at(&alias.input, index),
        LogicalPlan::Filter(filter) => is_double_at(&filter.input, index),
        LogicalPlan::Sort(sort) => is_double_at(&sort.input, index),
        LogicalPlan::Limit(limit) => is_double_at(&limit.input, index),
        LogicalPlan::Distinct(Distinct::All(input)) => is_double_at(input, index),
        LogicalPlan::Window(window) => {
            index < window.input.schema().fields().len() && is_double_at(&window.input, index)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let input = aggregate.input.as_ref();
            match aggregate.group_expr.get(index) {
                Some(group) => is_double(group, &[input]),
                None => aggregate
                    .aggr_expr
                    .get(index - aggregate.group_expr.len())
                    .is_some_and(|expression| is_double_aggregate(expression, input)),
            }
        }
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            if index < left {
                is_double_at(&join.left, index)
            } else {
                index - left < join.right.schema().fields().len() && is_double_at(&join.right, index - left)
            }
        }
        _ => false,
    }
}

fn is_double_aggregate(expression: &Expr, input: &LogicalPlan) -> bool {
    match expression {
        Expr::Alias(alias) => is_double_aggregate(&alias.expr, input),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            if !NUMERIC_PRESERVING_AGGREGATES.split(' ').any(|name| name == func.name()) {
                // Such as corr: it has no numeric.
                return func.name().starts_with("regr_") || matches!(func.name(), "corr" | "covar_pop" | "covar_samp");
            }
            let is_float = |argument: &Expr| {
                argument.get_type(input.schema()).is_ok_and(|data_type: DataType| data_type.is_floating())
            };
            params.args.iter().any(|argument| is_float(argument) && is_double(argument, &[input]))
        }
        _ => false,
    }
}
