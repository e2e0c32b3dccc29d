//! Operators on dates, times and intervals, by the types of their operands; named as PostgreSQL's functions for them.

use arrow::datatypes::{DataType, Date32Type, Int32Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{Expr, Operator, ScalarUDF, binary_expr, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::calendar::{self, DAY, out_of_range_error};
use super::function::{call, function};
use super::kind::TimeKind;
use super::{input, interval};
use crate::data_type::{DATE, INTERVAL, TIME, TIMESTAMP, timestamptz};
use crate::operands::Operands;

/// The functions that operators stand for.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = date_functions();
    functions.extend(timestamp_functions());
    functions.extend(time_functions());
    functions.extend(interval_functions());
    functions
}

fn date_functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "date_mi*",
            |_| Ok(DataType::Int32),
            |args| {
                let (left, right) = (args.dates(0)?, args.dates(1)?);
                args.collect::<Int32Type>(&DataType::Int32, |row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    Ok(Some(left.checked_sub(right).ok_or_else(|| out_of_range_error("integer"))?))
                })
            },
        ),
        function(
            "date_pli*",
            |_| Ok(DATE),
            |args| {
                let (left, right) = (args.dates(0)?, args.integers(1)?);
                args.collect::<Date32Type>(&DATE, |row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    calendar::checked_date(i64::from(left).saturating_add(right)).map(Some)
                })
            },
        ),
        function(
            "date_mii*",
            |_| Ok(DATE),
            |args| {
                let (left, right) = (args.dates(0)?, args.integers(1)?);
                args.collect::<Date32Type>(&DATE, |row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    calendar::checked_date(i64::from(left).saturating_sub(right)).map(Some)
                })
            },
        ),
        function(
            "datetime_pl*",
            |_| Ok(TIMESTAMP),
            |args| {
                let (left, right) = (args.dates(0)?, args.times(1)?);
                args.collect_micros(&TIMESTAMP, |row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    calendar::timestamp(i64::from(left), right).map(Some)
                })
            },
        ),
    ]
}

/// The type of a moment later by an interval.
fn shifted_type(types: &[DataType]) -> Result<DataType> {
    Ok(match types.first().map(TimeKind::from_data_type) {
        Some(TimeKind::Timestamptz) => timestamptz(),
        _ => TIMESTAMP,
    })
}

fn timestamp_functions() -> Vec<ScalarUDF> {
    vec![
        function("timestamp_pl_interval*", shifted_type, |args| {
            let (left, right) = (args.local_moments(0)?, args.intervals(1)?);
            args.collect_micros(&shifted_type(&[args.data_type(0)])?, |row| {
                let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                interval::shift(left, right).map(Some)
            })
        }),
        function("timestamp_mi_interval*", shifted_type, |args| {
            let (left, right) = (args.local_moments(0)?, args.intervals(1)?);
            args.collect_micros(&shifted_type(&[args.data_type(0)])?, |row| {
                let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                interval::shift(left, interval::negate(right)?).map(Some)
            })
        }),
        function(
            "timestamp_mi*",
            |_| Ok(INTERVAL),
            |args| {
                let (left, right) = (args.moments(0)?, args.moments(1)?);
                args.collect_intervals(|row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    interval::between(left, right).map(Some)
                })
            },
        ),
    ]
}

fn time_functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "time_pl_interval*",
            |_| Ok(TIME),
            |args| {
                let (left, right) = (args.times(0)?, args.intervals(1)?);
                args.collect_micros(&TIME, |row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    Ok(Some((left + interval::micros(right) % DAY).rem_euclid(DAY)))
                })
            },
        ),
        function(
            "time_mi_interval*",
            |_| Ok(TIME),
            |args| {
                let (left, right) = (args.times(0)?, args.intervals(1)?);
                args.collect_micros(&TIME, |row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    Ok(Some((left - interval::micros(right) % DAY).rem_euclid(DAY)))
                })
            },
        ),
        function(
            "time_mi_time*",
            |_| Ok(INTERVAL),
            |args| {
                let (left, right) = (args.times(0)?, args.times(1)?);
                args.collect_intervals(|row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    interval::from_micros(left - right).map(Some)
                })
            },
        ),
    ]
}

fn interval_functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "interval_pl*",
            |_| Ok(INTERVAL),
            |args| {
                let (left, right) = (args.intervals(0)?, args.intervals(1)?);
                args.collect_intervals(|row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    interval::add(left, right).map(Some)
                })
            },
        ),
        function(
            "interval_mi*",
            |_| Ok(INTERVAL),
            |args| {
                let (left, right) = (args.intervals(0)?, args.intervals(1)?);
                args.collect_intervals(|row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    interval::add(left, interval::negate(right)?).map(Some)
                })
            },
        ),
        function(
            "interval_mul*",
            |_| Ok(INTERVAL),
            |args| {
                let (left, right) = (args.intervals(0)?, args.floats(1)?);
                args.collect_intervals(|row| {
                    let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
                    interval::multiply(left, right).map(Some)
                })
            },
        ),
        function(
            "interval_div*",
            |_| Ok(INTERVAL),
            |args| {
                let (left, right) = (args.intervals(0)?, args.floats(1)?);
                args.collect_intervals(|row| match (left.get(row), right.get(row)) {
                    (Some(_), Some(0.0)) => datafusion::common::exec_err!("division by zero"),
                    (Some(left), Some(right)) => interval::divide(left, right).map(Some),
                    _ => Ok(None),
                })
            },
        ),
        function(
            "interval_um*",
            |_| Ok(INTERVAL),
            |args| {
                let values = args.intervals(0)?;
                args.collect_intervals(|row| values.get(row).map(interval::negate).transpose())
            },
        ),
        // What intervals are compared by: a number, so that comparisons and orders are those of numbers.
        function(
            "interval_cmp_value*",
            |_| Ok(KEY),
            |args| {
                let values = args.intervals(0)?;
                args.collect::<arrow::datatypes::Decimal128Type>(&KEY, |row| {
                    Ok(values.get(row).map(interval::comparison_key))
                })
            },
        ),
    ]
}

const KEY: DataType = DataType::Decimal128(38, 0);

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(super) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    let (left, right) = (TimeKind::from_data_type(&operands.left_type), TimeKind::from_data_type(&operands.right_type));
    let is_ours = |kind: TimeKind| kind.is_moment() || matches!(kind, TimeKind::Time | TimeKind::Interval);
    if !is_ours(left) && !is_ours(right) {
        return Ok(None);
    }
    if let Some(comparison) = comparison(operands.op) {
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
    let straight = |name: &str| call(name, vec![operands.left.clone(), operands.right.clone()]).map(Some);
    match (left, right) {
        (TimeKind::Date, TimeKind::Integer) => straight("date_pli*"),
        (TimeKind::Integer, TimeKind::Date) => commuted("date_pli*"),
        (TimeKind::Date, TimeKind::Time) => straight("datetime_pl*"),
        (TimeKind::Time, TimeKind::Date) => commuted("datetime_pl*"),
        (TimeKind::Date, TimeKind::Interval) => straight("timestamp_pl_interval*"),
        (TimeKind::Interval, TimeKind::Date) => commuted("timestamp_pl_interval*"),
        (TimeKind::Timestamp | TimeKind::Timestamptz, TimeKind::Interval | TimeKind::Text | TimeKind::Null) => {
            straight("timestamp_pl_interval*")
        }
        (TimeKind::Interval | TimeKind::Text | TimeKind::Null, TimeKind::Timestamp | TimeKind::Timestamptz) => {
            commuted("timestamp_pl_interval*")
        }
        (TimeKind::Time, TimeKind::Interval) => straight("time_pl_interval*"),
        (TimeKind::Interval, TimeKind::Time) => commuted("time_pl_interval*"),
        (TimeKind::Interval, TimeKind::Interval) => straight("interval_pl*"),
        (TimeKind::Interval, open) | (open, TimeKind::Interval) if open.accepts_untyped_literal() => {
            straight("interval_pl*")
        }
        (TimeKind::Date, open) | (open, TimeKind::Date) | (TimeKind::Time, open) | (open, TimeKind::Time)
            if open.accepts_untyped_literal() =>
        {
            plan_err!(
                "operator is not unique: {} + text; write the type, as in interval '1 day'",
                left.name(&operands.left_type)
            )
        }
        _ => undefined_operator_error(operands, left, right),
    }
}

/// The function of a difference. A text takes the type of the other side.
fn minus(operands: &Operands<'_>, left: TimeKind, right: TimeKind) -> Result<Option<&'static str>> {
    Ok(Some(match (left, right) {
        (TimeKind::Date, TimeKind::Date) => "date_mi*",
        (TimeKind::Date, open) | (open, TimeKind::Date) if open.accepts_untyped_literal() => "date_mi*",
        (TimeKind::Date, TimeKind::Integer) => "date_mii*",
        (left, TimeKind::Interval) if left.is_moment() => "timestamp_mi_interval*",
        (left, right) if left.is_moment() && right.is_moment() => "timestamp_mi*",
        (TimeKind::Timestamp | TimeKind::Timestamptz, open) if open.accepts_untyped_literal() => "timestamp_mi*",
        (open, TimeKind::Timestamp | TimeKind::Timestamptz) if open.accepts_untyped_literal() => "timestamp_mi*",
        (TimeKind::Time, TimeKind::Interval) => "time_mi_interval*",
        (TimeKind::Time, TimeKind::Time) => "time_mi_time*",
        (TimeKind::Time, open) | (open, TimeKind::Time) if open.accepts_untyped_literal() => "time_mi_time*",
        (TimeKind::Interval, TimeKind::Interval) => "interval_mi*",
        (TimeKind::Interval, open) | (open, TimeKind::Interval) if open.accepts_untyped_literal() => "interval_mi*",
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

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

fn compare(operands: &Operands<'_>, op: Operator, left: TimeKind, right: TimeKind) -> Result<Option<Expr>> {
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

/// The literal that `text` is for the other side, in its own unit where it has a value there, so that the column stays
/// as it is.
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
