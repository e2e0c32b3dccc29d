//! The values that are bound to a statement's placeholders.

use serde_json::Value;
use tidegate_core::{Error, ErrorKind};

/// A value that is bound to a placeholder. It is inserted into the SQL text only for servers that bind no values, as a
/// literal ([`Statement::text_with_values`](crate::Statement::text_with_values)).
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text, including dates and timestamps.
    Text(String),
}

impl Parameter {
    /// Converts a JSON value to a parameter.
    ///
    /// # Errors
    /// `InvalidArguments` for integers beyond 64 bits, arrays and objects.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        Self::from_json_or_reason(value).map_err(|reason| Error::new(ErrorKind::InvalidArguments, reason))
    }

    /// Like [`Parameter::from_json`], with only the reason, for a list of violations.
    pub fn from_json_or_reason(value: &Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::Bool(value) => Ok(Self::Boolean(*value)),
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Ok(Self::Integer(integer)),
                (None, Some(float)) if !number.is_u64() => Ok(Self::Float(float)),
                _ => Err(format!("{number} is beyond 64-bit integers; pass it as a string and cast it in the SQL")),
            },
            Value::Array(_) => {
                Err("an array cannot be a parameter; expected a string, a number, true, false or null".to_owned())
            }
            Value::Object(_) => {
                Err("an object cannot be a parameter; expected a string, a number, true, false or null".to_owned())
            }
        }
    }
}
