//! Plans operators on dates, times and intervals by the types of their operands. The functions have PostgreSQL's names.

use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{Expr, Operator, ScalarUDF, binary_expr, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::calendar::{self, DAY, out_of_range_error};
use super::comparison::check_comparable;
use super::function::{TimeKind, call, function, map, zip};
use super::{input, interval};
use crate::data_type::{DATE, INTERVAL, TIME, TIMESTAMP, timestamptz};
use crate::operands::Operands;

/// Returns the functions that replace operators.
pub(super) fn functions() -> Vec<ScalarUDF> {
    [moment_functions(), interval_functions()].concat()
}

fn moment_functions() -> Vec<ScalarUDF> {
    vec![
        function("date_mi*", int4_type, |args| {
            let subtract = |left: i32, right| left.checked_sub(right).ok_or_else(|| out_of_range_error("integer"));
            args.collect::<Int32Type>(zip(args.dates(0)?, args.dates(1)?, subtract))
        }),
        function("date_pli*", date_type, |args| {
            let add = |left, right| calendar::checked_date(i64::from(left).saturating_add(right));
            args.collect::<Date32Type>(zip(args.dates(0)?, args.integers(1)?, add))
        }),
        function("date_mii*", date_type, |args| {
            let subtract = |left, right| calendar::checked_date(i64::from(left).saturating_sub(right));
            args.collect::<Date32Type>(zip(args.dates(0)?, args.integers(1)?, subtract))
        }),
        function("datetime_pl*", timestamp_type, |args| {
            let add = |left, right| calendar::timestamp(i64::from(left), right);
            args.collect_micros(zip(args.dates(0)?, args.times(1)?, add))
        }),
        function("timestamp_pl_interval*", shifted_type, |args| {
            args.collect_micros(zip(args.local_moments(0)?, args.intervals(1)?, interval::shift))
        }),
        function("timestamp_mi_interval*", shifted_type, |args| {
            let subtract = |left, right| interval::shift(left, interval::negate(right)?);
            args.collect_micros(zip(args.local_moments(0)?, args.intervals(1)?, subtract))
        }),
        function("timestamp_mi*", interval_type, |args| {
            args.collect_intervals(zip(args.moments(0)?, args.moments(1)?, interval::between))
        }),
        function("time_pl_interval*", time_type, |args| {
            let add = |left: i64, right| Ok((left + interval::micros(right) % DAY).rem_euclid(DAY));
            args.collect_micros(zip(args.times(0)?, args.intervals(1)?, add))
        }),
        function("time_mi_interval*", time_type, |args| {
            let subtract = |left: i64, right| Ok((left - interval::micros(right) % DAY).rem_euclid(DAY));
            args.collect_micros(zip(args.times(0)?, args.intervals(1)?, subtract))
        }),
        function("time_mi_time*", interval_type, |args| {
            let subtract = |left: i64, right: i64| interval::from_micros(left - right);
            args.collect_intervals(zip(args.times(0)?, args.times(1)?, subtract))
        }),
    ]
}

fn interval_functions() -> Vec<ScalarUDF> {
    vec![
        function("interval_pl*", interval_type, |args| {
            args.collect_intervals(zip(args.intervals(0)?, args.intervals(1)?, interval::add))
        }),
        function("interval_mi*", interval_type, |args| {
            let subtract = |left, right| interval::add(left, interval::negate(right)?);
            args.collect_intervals(zip(args.intervals(0)?, args.intervals(1)?, subtract))
        }),
        function("interval_mul*", interval_type, |args| {
            args.collect_intervals(zip(args.intervals(0)?, args.floats(1)?, interval::multiply))
        }),
        function("interval_div*", interval_type, |args| {
            let divide = |left, right: f64| {
                if right == 0.0 { exec_err!("division by zero") } else { interval::divide(left, right) }
            };
            args.collect_intervals(zip(args.intervals(0)?, args.floats(1)?, divide))
        }),
        function("interval_um*", interval_type, |args| {
            args.collect_intervals(map(args.intervals(0)?, interval::negate))
        }),
        // Intervals are compared by numbers, so that comparisons and orders are those of numbers.
        function(
            "interval_cmp_value*",
            |_| Some(DataType::Decimal128(38, 0)),
            |args| {
                let key = |value| Ok(interval::comparison_key(value));
                args.collect::<Decimal128Type>(map(args.intervals(0)?, key))
            },
        ),
    ]
}

fn int4_type(_: &[TimeKind]) -> Option<DataType> {
    Some(DataType::Int32)
}

fn date_type(_: &[TimeKind]) -> Option<DataType> {
    Some(DATE)
}

fn timestamp_type(_: &[TimeKind]) -> Option<DataType> {
    Some(TIMESTAMP)
}

fn time_type(_: &[TimeKind]) -> Option<DataType> {
    Some(TIME)
}

fn interval_type(_: &[TimeKind]) -> Option<DataType> {
    Some(INTERVAL)
}

/// Returns the type of the sum of a moment and an interval.
fn shifted_type(kinds: &[TimeKind]) -> Option<DataType> {
    Some(match kinds.first() {
        Some(TimeKind::Timestamptz) => timestamptz(),
        _ => TIMESTAMP,
    })
}

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(super) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let (left, right) = (TimeKind::from_data_type(&operands.left_type), TimeKind::from_data_type(&operands.right_type));
    let is_time = |kind: TimeKind| kind.is_moment() || matches!(kind, TimeKind::Time | TimeKind::Interval);
    if !is_time(left) && !is_time(right) {
        return Ok(None);
    }
    if let Some(comparison) = operands.comparison() {
        return compare(operands, comparison, left, right);
    }
    let name = match operands.op {
        BinaryOperator::Plus => return plus(operands, left, right),
        BinaryOperator::Minus => match minus(operands, left, right)? {
            Some(name) => name,
            None => return Ok(None),
        },
        BinaryOperator::Multiply => return multiply(operands, left, right),
        BinaryOperator::Divide if left == TimeKind::Interval && is_factor(right) => "interval_div*",
        BinaryOperator::Divide => return undefined_operator_error(operands, left, right),
        _ => return Ok(None),
    };
    call(name, vec![operands.left.clone(), operands.right.clone()]).map(Some)
}

fn undefined_operator_error(operands: &Operands<'_>, left: TimeKind, right: TimeKind) -> Result<Option<Expr>> {
    let (left, right) = (left.name(&operands.left_type), right.name(&operands.right_type));
    plan_err!("operator does not exist: {left} {} {right}", operands.op)
}

fn is_factor(kind: TimeKind) -> bool {
    matches!(kind, TimeKind::Integer | TimeKind::Number) || kind.accepts_untyped_literal()
}

fn plus(operands: &Operands<'_>, left: TimeKind, right: TimeKind) -> Result<Option<Expr>> {
    let commuted = |name: &str| call(name, vec![operands.right.clone(), operands.left.clone()]).map(Some);
    let in_order = |name: &str| call(name, vec![operands.left.clone(), operands.right.clone()]).map(Some);
    match (left, right) {
        (TimeKind::Date, TimeKind::Integer) => in_order("date_pli*"),
        (TimeKind::Integer, TimeKind::Date) => commuted("date_pli*"),
        (TimeKind::Date, TimeKind::Time) => in_order("datetime_pl*"),
        (TimeKind::Time, TimeKind::Date) => commuted("datetime_pl*"),
        (TimeKind::Date, TimeKind::Interval) => in_order("timestamp_pl_interval*"),
        (TimeKind::Interval, TimeKind::Date) => commuted("timestamp_pl_interval*"),
        (TimeKind::Timestamp | TimeKind::Timestamptz, TimeKind::Interval | TimeKind::Text | TimeKind::Null) => {
            in_order("timestamp_pl_interval*")
        }
        (TimeKind::Interval | TimeKind::Text | TimeKind::Null, TimeKind::Timestamp | TimeKind::Timestamptz) => {
            commuted("timestamp_pl_interval*")
        }
        (TimeKind::Time, TimeKind::Interval) => in_order("time_pl_interval*"),
        (TimeKind::Interval, TimeKind::Time) => commuted("time_pl_interval*"),
        (TimeKind::Interval, TimeKind::Interval) => in_order("interval_pl*"),
        (TimeKind::Interval, other) | (other, TimeKind::Interval) if other.accepts_untyped_literal() => {
            in_order("interval_pl*")
        }
        (TimeKind::Date, other) | (other, TimeKind::Date) | (TimeKind::Time, other) | (other, TimeKind::Time)
            if other.accepts_untyped_literal() =>
        {
            plan_err!(
                "operator is not unique: {} + text; write the type, as in interval '1 day'",
                left.name(&operands.left_type)
            )
        }
        _ => undefined_operator_error(operands, left, right),
    }
}

/// Returns the function of a difference. A text takes the type of the other side.
fn minus(operands: &Operands<'_>, left: TimeKind, right: TimeKind) -> Result<Option<&'static str>> {
    Ok(Some(match (left, right) {
        (TimeKind::Date, TimeKind::Date) => "date_mi*",
        (TimeKind::Date, other) | (other, TimeKind::Date) if other.accepts_untyped_literal() => "date_mi*",
        (TimeKind::Date, TimeKind::Integer) => "date_mii*",
        (left, TimeKind::Interval) if left.is_moment() => "timestamp_mi_interval*",
        (left, right) if left.is_moment() && right.is_moment() => "timestamp_mi*",
        (TimeKind::Timestamp | TimeKind::Timestamptz, other) if other.accepts_untyped_literal() => "timestamp_mi*",
        (other, TimeKind::Timestamp | TimeKind::Timestamptz) if other.accepts_untyped_literal() => "timestamp_mi*",
        (TimeKind::Time, TimeKind::Interval) => "time_mi_interval*",
        (TimeKind::Time, TimeKind::Time) => "time_mi_time*",
        (TimeKind::Time, other) | (other, TimeKind::Time) if other.accepts_untyped_literal() => "time_mi_time*",
        (TimeKind::Interval, TimeKind::Interval) => "interval_mi*",
        (TimeKind::Interval, other) | (other, TimeKind::Interval) if other.accepts_untyped_literal() => "interval_mi*",
        _ => {
            undefined_operator_error(operands, left, right)?;
            return Ok(None);
        }
    }))
}

fn multiply(operands: &Operands<'_>, left: TimeKind, right: TimeKind) -> Result<Option<Expr>> {
    let (interval, factor) = match (left, right) {
        (TimeKind::Interval, factor) if is_factor(factor) => (operands.left, operands.right),
        (factor, TimeKind::Interval) if is_factor(factor) => (operands.right, operands.left),
        _ => return undefined_operator_error(operands, left, right),
    };
    call("interval_mul*", vec![interval.clone(), factor.clone()]).map(Some)
}

fn compare(operands: &Operands<'_>, op: Operator, left: TimeKind, right: TimeKind) -> Result<Option<Expr>> {
    check_comparable(&operands.left_type, op, &operands.right_type)?;
    if left == TimeKind::Interval || right == TimeKind::Interval {
        let is_interval = |kind: TimeKind| kind == TimeKind::Interval || kind.accepts_untyped_literal();
        if !is_interval(left) || !is_interval(right) {
            return undefined_operator_error(operands, left, right);
        }
        let key = |operand: &Expr| call("interval_cmp_value*", vec![operand.clone()]);
        return Ok(Some(binary_expr(key(operands.left)?, op, key(operands.right)?)));
    }
    let typed = |operand: &Expr, other: &DataType| match operand {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => literal(text, other).map(Some),
        _ => Ok(None),
    };
    if let Some(literal) = typed(operands.right, &operands.left_type)? {
        return Ok(Some(binary_expr(operands.left.clone(), op, literal)));
    }
    let Some(literal) = typed(operands.left, &operands.right_type)? else { return Ok(None) };
    Ok(Some(binary_expr(literal, op, operands.right.clone())))
}

/// Parses `text` as a literal of the type `other`, in the unit of `other` if the unit has the value. Then the column is
/// compared without a cast.
fn literal(text: &str, other: &DataType) -> Result<Expr> {
    let micros = match other {
        DataType::Timestamp(_, Some(_)) => input::parse_timestamptz(text)?,
        DataType::Timestamp(_, None) => input::parse_timestamp(text)?,
        DataType::Time32(_) | DataType::Time64(_) => {
            return Ok(lit(ScalarValue::Time64Microsecond(Some(input::parse_time(text)?))));
        }
        _ => return Ok(lit(ScalarValue::Date32(Some(input::parse_date(text)?)))),
    };
    let DataType::Timestamp(unit, zone) = other else { return Ok(lit(ScalarValue::Null)) };
    let zone = zone.clone();
    Ok(lit(match unit {
        TimeUnit::Nanosecond if micros.checked_mul(1_000).is_some() => {
            ScalarValue::TimestampNanosecond(micros.checked_mul(1_000), zone)
        }
        TimeUnit::Millisecond if micros % 1_000 == 0 => ScalarValue::TimestampMillisecond(Some(micros / 1_000), zone),
        TimeUnit::Second if micros % 1_000_000 == 0 => ScalarValue::TimestampSecond(Some(micros / 1_000_000), zone),
        _ => ScalarValue::TimestampMicrosecond(Some(micros), zone),
    }))
}
