//! Comparisons of a cast column with a constant compare the column with a constant of its own type instead.
//!
//! `d < date '1994-01-01' + interval '1 year'` compares a date with a timestamp. A cast of each date would take time,
//! would keep scans from skipping what cannot match, and would fail for dates that nanoseconds do not reach.
//!
//! DataFusion does the same for constants that the type of the column has. For times, it also cuts off the digits that a
//! column of a coarser unit does not have, and gives a wrong answer. So this rule runs before DataFusion's.
//! `docs/decisions/upstream` has the text to be filed.
//!
//! [`find_place`] has the kinds of casts. Each of them keeps all values of a column apart, and in their order, so that
//! a comparison depends only on where the constant lies among them.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Cast, InList};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::Conversion;
use crate::number::digits;
use crate::plan_walk::{any_part, input_schema, rewrite_named};

const DAY_NANOSECONDS: i128 = 86_400_000_000_000;

/// The rule.
#[derive(Debug)]
pub(crate) struct ConstantCastRule;

impl OptimizerRule for ConstantCastRule {
    fn name(&self) -> &'static str {
        "cast_compared_constants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_part(&plan, compares_cast)? {
            return Ok(Transformed::no(plan));
        }
        let schema = input_schema(&plan)?;
        let context = SimplifyContext::builder()
            .with_config_options(config.options())
            .with_query_execution_start_time(config.query_execution_start_time())
            .build();
        let rewriter = ComparisonRewriter { schema: &schema, context: &context };
        rewrite_named(plan, |expression| expression.transform_up(|part| Ok(rewriter.rewrite(part))))
    }
}

/// Whether `part` compares a cast column.
fn compares_cast(part: &Expr) -> bool {
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            op.supports_propagation() && (cast_operand(left).is_some() || cast_operand(right).is_some())
        }
        Expr::Between(between) => cast_operand(&between.expr).is_some(),
        Expr::InList(list) => cast_operand(&list.expr).is_some(),
        _ => false,
    }
}

/// Returns the operand of a cast and the type that it is cast to, if `expression` is a cast of a value of columns.
fn cast_operand(expression: &Expr) -> Option<(&Expr, &DataType)> {
    let (operand, data_type) = match expression {
        Expr::Cast(Cast { expr, field }) => (expr.as_ref(), field.data_type()),
        Expr::ScalarFunction(call) => (call.args.first()?, call.func.inner().downcast_ref::<Conversion>()?.data_type()),
        _ => return None,
    };
    (operand.any_column_refs() && !operand.is_volatile()).then_some((operand, data_type))
}

/// Rewrites comparisons over rows of a schema.
struct ComparisonRewriter<'a> {
    schema: &'a DFSchema,
    /// For constants that are not evaluated yet.
    context: &'a SimplifyContext,
}

impl ComparisonRewriter<'_> {
    fn rewrite(&self, expression: Expr) -> Transformed<Expr> {
        let rewritten = match &expression {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.compare(left, *op, right).or_else(|| self.compare(right, op.swap()?, left))
            }
            Expr::Between(between) => self.compare_range(between),
            Expr::InList(list) => self.compare_list(list),
            _ => None,
        };
        rewritten.map_or_else(|| Transformed::no(expression), Transformed::yes)
    }

    /// Returns `compared op constant` without the cast of `compared`.
    fn compare(&self, compared: &Expr, op: Operator, constant: &Expr) -> Option<Expr> {
        use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
        let (operand, data_type) = cast_operand(compared)?;
        let place = find_place(&operand.get_type(self.schema).ok()?, data_type, &self.evaluate(constant)?)?;
        let operand = operand.clone();
        Some(match (place, op) {
            (Place::At(value), Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom) => {
                binary_expr(operand, op, lit(value))
            }
            (Place::After(value), Lt | LtEq) => operand.lt_eq(lit(value)),
            (Place::After(value), Gt | GtEq) => operand.gt(lit(value)),
            (Place::AfterAll, Lt | LtEq) | (Place::BeforeAll, Gt | GtEq) | (_, NotEq) => {
                self.unless_null(operand, true)?
            }
            (_, Eq | Lt | LtEq | Gt | GtEq) => self.unless_null(operand, false)?,
            (_, IsDistinctFrom | IsNotDistinctFrom) => self.without_operand(&operand, op == IsDistinctFrom)?,
            _ => return None,
        })
    }

    fn compare_range(&self, between: &Between) -> Option<Expr> {
        let Between { expr, negated, low, high } = between;
        let (from, to) = if *negated { (Operator::Lt, Operator::Gt) } else { (Operator::GtEq, Operator::LtEq) };
        let (low_compared, high_compared) = (self.compare(expr, from, low), self.compare(expr, to, high));
        if low_compared.is_none() && high_compared.is_none() {
            return None;
        }
        let unchanged = |op, bound: &Expr| binary_expr(expr.as_ref().clone(), op, bound.clone());
        let low = low_compared.unwrap_or_else(|| unchanged(from, low));
        let high = high_compared.unwrap_or_else(|| unchanged(to, high));
        Some(if *negated { low.or(high) } else { low.and(high) })
    }

    fn compare_list(&self, list: &InList) -> Option<Expr> {
        let (operand, data_type) = cast_operand(&list.expr)?;
        let column_type = operand.get_type(self.schema).ok()?;
        let mut values = Vec::new();
        for constant in &list.list {
            let constant = self.evaluate(constant)?;
            if constant.is_null() {
                values.push(lit(ScalarValue::try_from(&column_type).ok()?));
            } else if let Place::At(value) = find_place(&column_type, data_type, &constant)? {
                values.push(lit(value));
            }
        }
        let operand = operand.clone();
        if values.is_empty() {
            return self.unless_null(operand, list.negated);
        }
        Some(operand.in_list(values, list.negated))
    }

    /// Returns the condition that is `result` for each value of `operand`, and NULL for NULL.
    fn unless_null(&self, operand: Expr, result: bool) -> Option<Expr> {
        if operand.nullable(self.schema).is_ok_and(|is_nullable| !is_nullable) {
            return self.without_operand(&operand, result);
        }
        let unknown = lit(ScalarValue::Boolean(None));
        Some(if result { operand.is_not_null().or(unknown) } else { operand.is_null().and(unknown) })
    }

    /// Returns `result`, unless `operand` is an expression, which may fail. For timestamps, DataFusion's rule would give
    /// a wrong answer.
    fn without_operand(&self, operand: &Expr, result: bool) -> Option<Expr> {
        let is_timestamp = || matches!(operand.get_type(self.schema), Ok(DataType::Timestamp(..)));
        (matches!(operand, Expr::Column(_)) || is_timestamp()).then(|| lit(result))
    }

    /// Evaluates `constant`; `None` if it is not constant, or fails.
    fn evaluate(&self, constant: &Expr) -> Option<ScalarValue> {
        match constant {
            Expr::Literal(value, _) => return Some(value.clone()),
            // A time need not be cast, and one that nanoseconds do not reach could not be.
            Expr::Cast(Cast { expr, field }) if matches!(field.data_type(), DataType::Timestamp(..)) => {
                let value = self.evaluate(expr)?;
                if keeps_moments(&value.data_type(), field.data_type()) {
                    return Some(value);
                }
            }
            other if other.any_column_refs() => return None,
            _ => {}
        }
        match ExprSimplifier::new(self.context.clone()).simplify(constant.clone()).ok()? {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        }
    }
}

/// Where a constant lies among the values of a type.
#[derive(Debug, PartialEq)]
enum Place {
    /// It is this value.
    At(ScalarValue),
    /// It lies between this value and the next one.
    After(ScalarValue),
    /// It is less than all values.
    BeforeAll,
    /// It is greater than all values.
    AfterAll,
}

/// Returns the place of `constant` among the values of the type `column`, which are cast to `cast` to be compared with
/// it. `None` for NULL, and for casts that do not keep all values apart and in their order.
fn find_place(column: &DataType, cast: &DataType, constant: &ScalarValue) -> Option<Place> {
    use DataType::{Decimal128, Decimal256, Float32, Float64, Timestamp};
    let own_type = constant.data_type();
    if own_type != *cast && !keeps_moments(&own_type, cast) {
        return None;
    }
    // The constant as a number of units, and the number of units that a unit of the column has.
    let (units, column_units) = match cast {
        Timestamp(..) if keeps_moments(column, cast) => (nanoseconds(constant)?, unit_nanoseconds(column)?),
        Decimal128(precision, scale) | Decimal256(precision, scale) => {
            let (before, after) = digits(column)?;
            if before > i16::from(*precision) - i16::from(*scale) {
                return None;
            }
            let further = u32::try_from(scale.checked_sub(after)?).ok()?;
            (whole_units(constant)?, 10_i128.checked_pow(further)?)
        }
        Float32 | Float64 => return find_place_of_double(column, constant),
        wide if wide.is_integer() && holds_integers(column, wide) => (whole_units(constant)?, 1),
        _ => return None,
    };
    place_at(column, units.div_euclid(column_units), units.rem_euclid(column_units) == 0)
}

/// Does the same for integers and a floating-point number. Integers with more digits than it are rounded as they are
/// cast, but not so far that they reach a number of fewer digits.
fn find_place_of_double(column: &DataType, constant: &ScalarValue) -> Option<Place> {
    let (value, digits) = match constant {
        ScalarValue::Float32(Some(value)) => (f64::from(*value), f32::MANTISSA_DIGITS),
        ScalarValue::Float64(Some(value)) => (*value, f64::MANTISSA_DIGITS),
        _ => return None,
    };
    let bits = u32::try_from(column.primitive_width()?).ok()? * u8::BITS;
    let is_rounded = bits > digits && value.is_finite() && value.abs() >= 2_f64.powf(f64::from(digits));
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    if !column.is_integer() || is_rounded || is_negative_zero || value.is_nan() {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "what is out of range stays out of range of the column's type")]
    let whole = value.floor() as i128;
    place_at(column, whole, value.fract() == 0.0)
}

/// Returns the place of a constant whose largest smaller or equal value is `floor`.
fn place_at(column: &DataType, floor: i128, is_equal: bool) -> Option<Place> {
    Some(match typed_value(column, floor) {
        Some(value) if is_equal => Place::At(value),
        Some(value) => Place::After(value),
        // Files may have numerics of more digits than their type.
        None if column.is_decimal() => return None,
        None if floor < 0 => Place::BeforeAll,
        None => Place::AfterAll,
    })
}

/// Whether the cast of a time keeps its moment, in a unit that is not coarser. Without a zone, the moment is that in UTC.
fn keeps_moments(from: &DataType, to: &DataType) -> bool {
    let is_utc = |zone: &str| matches!(zone, "UTC" | "+00:00");
    match (from, to) {
        (DataType::Date32, DataType::Timestamp(_, zone)) => zone.as_deref().is_none_or(is_utc),
        (DataType::Timestamp(unit, from), DataType::Timestamp(fine, to)) => {
            let has_same_clock = from.is_some() || to.as_deref().is_none_or(is_utc);
            has_same_clock && nanoseconds_of(*unit) >= nanoseconds_of(*fine)
        }
        _ => false,
    }
}

fn holds_integers(column: &DataType, wide: &DataType) -> bool {
    let is_signed_as_needed = column.is_unsigned_integer() || wide.is_signed_integer();
    column.is_integer() && is_signed_as_needed && column.primitive_width() < wide.primitive_width()
}

fn nanoseconds_of(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The nanoseconds that a value of 1 of a date or timestamp stands for.
fn unit_nanoseconds(data_type: &DataType) -> Option<i128> {
    match data_type {
        DataType::Date32 => Some(DAY_NANOSECONDS),
        DataType::Timestamp(unit, _) => Some(nanoseconds_of(*unit)),
        _ => None,
    }
}

fn nanoseconds(time: &ScalarValue) -> Option<i128> {
    Some(whole_units(time)? * unit_nanoseconds(&time.data_type())?)
}

/// The number that stores `value`: of days, of units of time, or of the last digit of a numeric.
fn whole_units(value: &ScalarValue) -> Option<i128> {
    use ScalarValue as Scalar;
    Some(match value {
        Scalar::Int8(Some(value)) => (*value).into(),
        Scalar::Int16(Some(value)) => (*value).into(),
        Scalar::Int32(Some(value)) | Scalar::Date32(Some(value)) => (*value).into(),
        Scalar::UInt8(Some(value)) => (*value).into(),
        Scalar::UInt16(Some(value)) => (*value).into(),
        Scalar::UInt32(Some(value)) => (*value).into(),
        Scalar::UInt64(Some(value)) => (*value).into(),
        Scalar::Int64(Some(value))
        | Scalar::TimestampSecond(Some(value), _)
        | Scalar::TimestampMillisecond(Some(value), _)
        | Scalar::TimestampMicrosecond(Some(value), _)
        | Scalar::TimestampNanosecond(Some(value), _) => (*value).into(),
        Scalar::Decimal128(Some(value), ..) => *value,
        Scalar::Decimal256(Some(value), ..) => value.to_i128()?,
        _ => return None,
    })
}

/// Returns the value of the type that `units` store; `None` if it is out of range.
fn typed_value(data_type: &DataType, units: i128) -> Option<ScalarValue> {
    Some(match data_type {
        DataType::Int8 => i8::try_from(units).ok()?.into(),
        DataType::Int16 => i16::try_from(units).ok()?.into(),
        DataType::Int32 => i32::try_from(units).ok()?.into(),
        DataType::Int64 => i64::try_from(units).ok()?.into(),
        DataType::UInt8 => u8::try_from(units).ok()?.into(),
        DataType::UInt16 => u16::try_from(units).ok()?.into(),
        DataType::UInt32 => u32::try_from(units).ok()?.into(),
        DataType::UInt64 => u64::try_from(units).ok()?.into(),
        DataType::Date32 => ScalarValue::Date32(Some(i32::try_from(units).ok()?)),
        DataType::Timestamp(unit, zone) => {
            let (count, zone) = (Some(i64::try_from(units).ok()?), zone.clone());
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(count, zone),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(count, zone),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(count, zone),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(count, zone),
            }
        }
        DataType::Decimal128(precision, scale) => {
            let is_in_range = units.unsigned_abs() < 10_u128.checked_pow(u32::from(*precision))?;
            is_in_range.then_some(ScalarValue::Decimal128(Some(units), *precision, *scale))?
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
