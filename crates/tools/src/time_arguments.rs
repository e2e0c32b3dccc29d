//! Times in arguments: text such as `-15m`, or numbers since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tidegate_core::Violation;
use tidegate_telemetry::logs::{TimeInput, parse_time};

/// The argument called `path`, as the caller wrote it. A value of another type is a violation.
pub(crate) fn time_input<'a>(
    path: &str,
    value: &'a Option<Value>,
    violations: &mut Vec<Violation>,
) -> Option<TimeInput<'a>> {
    match value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(TimeInput::Text(text)),
        Some(Value::Number(number)) => {
            number.as_i64().map(TimeInput::Integer).or_else(|| number.as_f64().map(TimeInput::Decimal))
        }
        Some(other) => {
            let message = format!("{other} is not a time; expected text or a number");
            violations.push(Violation { path: path.to_owned(), message });
            None
        }
    }
}

/// The time that the argument called `path` names, in nanoseconds UTC; `default` without the argument.
pub(crate) fn read_time(
    path: &str,
    value: &Option<Value>,
    (now, default): (i64, i64),
    violations: &mut Vec<Violation>,
) -> i64 {
    let Some(input) = time_input(path, value, violations) else { return default };
    parse_time(input, now).unwrap_or_else(|error| {
        violations.push(Violation { path: path.to_owned(), message: error.to_string() });
        default
    })
}

/// The current time in nanoseconds UTC.
pub(crate) fn now_nanos() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
