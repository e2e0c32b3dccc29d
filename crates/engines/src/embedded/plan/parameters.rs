//! A statement's parameters as DataFusion's values.

use datafusion::common::ScalarValue;
use tidegate_query::Parameter;

/// The value that is bound in place of a placeholder. DataFusion casts it to the type that its
/// place wants, as it does with literals.
pub(crate) fn to_scalar(parameter: &Parameter) -> ScalarValue {
    match parameter {
        Parameter::Null => ScalarValue::Null,
        Parameter::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Parameter::Integer(value) => ScalarValue::Int64(Some(*value)),
        Parameter::Float(value) => ScalarValue::Float64(Some(*value)),
        Parameter::Text(value) => ScalarValue::Utf8(Some(value.clone())),
    }
}
