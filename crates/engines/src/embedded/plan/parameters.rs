//! Converts the parameters of a statement to DataFusion's values.

use datafusion::common::ScalarValue;
use tidegate_sql::Parameter;

/// Converts a parameter. DataFusion casts it to the type that the context requires, as it does with literals.
pub(crate) fn to_scalar(parameter: &Parameter) -> ScalarValue {
    match parameter {
        Parameter::Null => ScalarValue::Null,
        Parameter::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Parameter::Integer(value) => ScalarValue::Int64(Some(*value)),
        Parameter::Float(value) => ScalarValue::Float64(Some(*value)),
        Parameter::Text(value) => ScalarValue::Utf8(Some(value.clone())),
    }
}
