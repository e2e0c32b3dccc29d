//! Dates, times, intervals and time zones, and syntax of times that DataFusion's planner does not support, or interprets
//! differently.
//!
//! A `timestamp` is microseconds since 1970 without a zone, and a `timestamptz` the same in UTC. A `date` is days, a
//! `time` microseconds of the day, and an `interval` months, days and nanoseconds, used as whole microseconds. The
//! session's zone is UTC. Functions accept columns of any unit and return PostgreSQL's unit.

mod calendar;
mod comparison;
pub(crate) mod conversion;
mod field;
mod format;
mod function;
pub(crate) mod input;
mod interval;
mod make;
mod operator;
mod zone;

use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{self, ScalarUDF};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, DateTimeField, Expr, Function, FunctionArguments, Ident, Interval, IntervalFields,
    TimezoneInfo, TypedString, UnaryOperator, Value,
};

use crate::operands::Operands;
use crate::syntax::{argument_value, call, cast, is_zoned, number, single_identifier, string, without_parentheses};
use input::{IntervalRestriction, RELATIVE_WORDS, RestrictionUnit};

pub(crate) use comparison::{
    check_comparable, check_comparison, check_node, compare, number_advice, order_intervals, separate_constants,
};
pub(crate) use conversion::{convert, is_conversion};
pub(crate) use interval::{average_spans, multiply as multiply_interval};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = vec![field::date_trunc(), field::extract(), field::date_part(), zone::timezone()];
    functions.extend(operator::functions());
    functions.extend(make::current_time_functions());
    functions.extend(make::functions());
    functions.extend(interval::functions());
    functions.extend(conversion::functions());
    functions.extend(format::functions());
    functions
}

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<logical_expr::Expr>> {
    operator::plan_operator(operands)
}

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    let rewritten = match expression {
        Expr::AtTimeZone { timestamp, time_zone } => {
            Some(call("timezone", vec![(**time_zone).clone(), (**timestamp).clone()]))
        }
        Expr::Extract { field, expr, .. } => Some(call("extract", vec![string(field_name(field)), (**expr).clone()])),
        Expr::Interval(interval) => interval_literal(interval)?,
        Expr::TypedString(TypedString { data_type, value, .. }) => {
            rewrite_typed(data_type, &Expr::Value(value.clone()))?
        }
        Expr::Cast { expr, data_type, .. } => rewrite_typed(data_type, expr)?,
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => Some(overlaps(left, right)?),
        Expr::Function(function) => rewrite_function(function)?,
        // DataFusion's planner would negate only the first part (`docs/decisions/upstream`).
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Interval(_)) => {
            Some(call("interval_um*", vec![(**expr).clone()]))
        }
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = rewritten;
    }
    Ok(())
}

fn field_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(name) => name.value.clone(),
        other => other.to_string().trim_matches(['\'', '"']).to_ascii_lowercase(),
    }
}

/// Returns the text of a string literal.
fn literal_text(expression: &Expr) -> Option<&str> {
    match without_parentheses(expression) {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Rewrites the literal of an interval, which may be restricted to fields.
fn interval_literal(interval: &Interval) -> Result<Option<Expr>> {
    let written = match &*interval.value {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number.as_str()),
            _ => literal_text(&interval.value),
        },
        other => literal_text(other),
    };
    let Some(written) = written else {
        return plan_err!(
            "an interval literal is a string, as in interval '1 day'; for a number of units write n * interval '1 day'"
        );
    };
    let unit = |field: &Option<DateTimeField>| field.as_ref().map(unit).transpose();
    let digits = interval.fractional_seconds_precision.or(interval.leading_precision);
    let fields = IntervalRestriction {
        first: unit(&interval.leading_field)?,
        last: unit(&interval.last_field)?,
        digits: digits.and_then(|digits| u32::try_from(digits).ok()),
    };
    constant_interval(written, fields).map(Some)
}

/// Builds a literal of an interval for DataFusion.
fn constant_interval(written: &str, fields: IntervalRestriction) -> Result<Expr> {
    let value = input::parse_restricted_interval(written, fields)?;
    let (seconds, rest) = (value.nanoseconds / 1_000_000_000, value.nanoseconds % 1_000_000_000);
    let sign = if value.nanoseconds < 0 { "-" } else { "" };
    let canonical = format!(
        "{} mons {} days {sign}{}.{:09} secs",
        value.months,
        value.days,
        seconds.unsigned_abs(),
        rest.unsigned_abs()
    );
    Ok(Expr::Interval(Interval {
        value: Box::new(string(canonical)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

fn unit(field: &DateTimeField) -> Result<RestrictionUnit> {
    Ok(match field_name(field).as_str() {
        "year" | "years" => RestrictionUnit::Year,
        "month" | "months" => RestrictionUnit::Month,
        "day" | "days" => RestrictionUnit::Day,
        "hour" | "hours" => RestrictionUnit::Hour,
        "minute" | "minutes" => RestrictionUnit::Minute,
        "second" | "seconds" => RestrictionUnit::Second,
        other => return plan_err!("an interval has no field {other}; write interval '1 {other}'"),
    })
}

/// Returns the fields of a type.
fn fields_of(fields: &IntervalFields) -> Result<IntervalRestriction> {
    let words = fields.to_string().to_ascii_lowercase();
    let mut units = words.split(" to ").map(|word| unit(&DateTimeField::Custom(Ident::new(word))));
    let first = units.next().transpose()?;
    Ok(IntervalRestriction { first, last: units.next().transpose()?, digits: None })
}

/// Rewrites a cast to a type of times that has digits or fields, or whose operand is a word such as `today`.
fn rewrite_typed(data_type: &DataType, value: &Expr) -> Result<Option<Expr>> {
    let name = match data_type {
        DataType::Timestamp(_, zone) if is_zoned(zone) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Time(_, zone) if !is_zoned(zone) => "time",
        DataType::Date => "date",
        DataType::Interval { fields, precision } => return rewrite_interval_cast(fields.as_ref(), *precision, value),
        _ => return Ok(None),
    };
    if let Some(word) = literal_text(value).map(|text| text.trim().to_ascii_lowercase())
        && RELATIVE_WORDS.contains(&word.as_str())
    {
        return plan_relative_word(name, &word).map(Some);
    }
    let digits = match data_type {
        DataType::Timestamp(digits, _) | DataType::Time(digits, _) => *digits,
        _ => None,
    };
    Ok(digits.map(|digits| {
        let whole = match data_type {
            DataType::Timestamp(_, zone) => DataType::Timestamp(None, *zone),
            _ => DataType::Time(None, TimezoneInfo::None),
        };
        call(name, vec![cast(value.clone(), whole), number(digits.min(6))])
    }))
}

fn rewrite_interval_cast(
    fields: Option<&IntervalFields>,
    precision: Option<u64>,
    value: &Expr,
) -> Result<Option<Expr>> {
    let mut restriction = match fields {
        Some(fields) => fields_of(fields)?,
        None => IntervalRestriction::default(),
    };
    restriction.digits = precision.and_then(|digits| u32::try_from(digits).ok());
    if let Some(text) = literal_text(value) {
        return constant_interval(text, restriction).map(Some);
    }
    if fields.is_some() {
        return plan_err!("only a constant can be cast to an interval with fields; write date_trunc('day', x) instead");
    }
    let whole = DataType::Interval { fields: None, precision: None };
    Ok(precision.map(|digits| call("interval", vec![cast(value.clone(), whole), number(digits.min(6))])))
}

/// Plans `'today'::date` and other words whose value depends on the current time.
fn plan_relative_word(name: &str, word: &str) -> Result<Expr> {
    if word == "now" {
        return Ok(call(name, vec![call("now", Vec::new())]));
    }
    if name == "time" {
        return plan_err!("invalid input syntax for type time: \"{word}\"");
    }
    let days = match word {
        "tomorrow" => 1,
        "yesterday" => -1,
        _ => 0,
    };
    let day = call("date_pli*", vec![call("current_date", Vec::new()), number(days)]);
    Ok(if name == "date" { day } else { call(name, vec![day]) })
}

fn overlaps(left: &Expr, right: &Expr) -> Result<Expr> {
    match (left, right) {
        (Expr::Tuple(first), Expr::Tuple(second)) if first.len() == 2 && second.len() == 2 => {
            Ok(call("overlaps", first.iter().chain(second).cloned().collect()))
        }
        _ => plan_err!("OVERLAPS compares two ranges, as in (start, end) OVERLAPS (start, end)"),
    }
}

fn rewrite_function(function: &Function) -> Result<Option<Expr>> {
    let Some(written) = single_identifier(&function.name) else { return Ok(None) };
    let name = written.value.to_ascii_lowercase();
    let args = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    let values: Option<Vec<Expr>> = args.iter().map(|arg| argument_value(arg).cloned()).collect();
    Ok(match (name.as_str(), values.as_deref()) {
        ("current_time", _) => {
            return plan_err!("time with time zone is not supported; write localtime or current_timestamp instead");
        }
        ("current_timestamp", Some([digits])) => Some(call_rounded("timestamptz", "now", digits)),
        ("localtimestamp", Some([digits])) => Some(call_rounded("timestamp", "localtimestamp", digits)),
        ("localtime", Some([digits])) => Some(call_rounded("time", "localtime", digits)),
        ("current_timestamp" | "localtimestamp" | "localtime" | "current_date", Some([])) => {
            (name != written.to_string()).then(|| call(&name, Vec::new()))
        }
        ("age", Some([value])) => Some(call("age", vec![call("current_date", Vec::new()), value.clone()])),
        _ => None,
    })
}

fn call_rounded(to: &str, moment: &str, digits: &Expr) -> Expr {
    call(to, vec![call(moment, Vec::new()), digits.clone()])
}
