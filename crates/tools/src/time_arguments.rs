//! Times in arguments: text such as `-15m`, or numbers since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tidegate_core::Violation;
use tidegate_telemetry::logs::{TimeInput, parse_time};

/// A time as a caller wrote it.
pub(crate) enum TimeArgument {
    Text(String),
    Integer(i64),
    Decimal(f64),
}

impl TimeArgument {
    /// Reads the argument called `path`. A value of another type is a violation.
    pub(crate) fn read(path: &str, value: &Option<Value>, violations: &mut Vec<Violation>) -> Option<Self> {
        match value {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(Self::Text(text.clone())),
            Some(Value::Number(number)) => {
                number.as_i64().map(Self::Integer).or_else(|| number.as_f64().map(Self::Decimal))
            }
            Some(other) => {
                let message = format!("{other} is not a time; expected text or a number");
                violations.push(Violation { path: path.to_owned(), message });
                None
            }
        }
    }

    pub(crate) fn as_input(&self) -> TimeInput<'_> {
        match self {
            Self::Text(text) => TimeInput::Text(text),
            Self::Integer(number) => TimeInput::Integer(*number),
            Self::Decimal(number) => TimeInput::Decimal(*number),
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
    let Some(argument) = TimeArgument::read(path, value, violations) else { return default };
    parse_time(argument.as_input(), now).unwrap_or_else(|error| {
        violations.push(Violation { path: path.to_owned(), message: error.to_string() });
        default
    })
}

/// The current time in nanoseconds UTC.
pub(crate) fn now_nanos() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
