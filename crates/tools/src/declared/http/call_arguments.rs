//! The arguments of one call, with defaults.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use tidegate_core::Violation;

/// Whole floats below this are written as integers: JSON Schema accepts 5.0 as an integer, a URL may not.
const WHOLE_FLOAT_MAX: f64 = 9e15;

#[derive(Clone, Copy)]
pub(super) struct CallArguments<'a> {
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) defaults: &'a BTreeMap<String, Value>,
}

impl<'a> CallArguments<'a> {
    /// The value of `name`: the argument or its default.
    pub(super) fn value(self, name: &str) -> Option<&'a Value> {
        self.arguments.get(name).or_else(|| self.defaults.get(name))
    }

    /// The value of `name` as text; `None` if it is missing or null.
    pub(super) fn text(self, name: &str) -> Result<Option<String>, Violation> {
        self.value(name).map_or(Ok(None), |value| value_to_text(name, value))
    }
}

/// `value` of the argument `name` as text; arrays and objects are errors.
pub(super) fn value_to_text(name: &str, value: &Value) -> Result<Option<String>, Violation> {
    let sort = match value {
        Value::Null => return Ok(None),
        Value::String(text) => return Ok(Some(text.clone())),
        Value::Bool(truth) => return Ok(Some(truth.to_string())),
        Value::Number(number) => return Ok(Some(number_text(number))),
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let message = format!("{sort} cannot be part of a text; expected text, a number, true or false");
    Err(Violation { path: name.to_owned(), message })
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        // The bound keeps the conversion exact.
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < WHOLE_FLOAT_MAX => {
            (float as i64).to_string()
        }
        _ => number.to_string(),
    }
}
