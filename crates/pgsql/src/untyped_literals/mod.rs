//! Gives untyped string literals the type of the values beside them: in VALUES, CASE, ARRAY, UNION,
//! `coalesce` and the like. Numerics beside floating-point numbers become such numbers.

mod choice;
mod plan;
mod values;

use arrow::array::StringArray;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};
use datafusion::scalar::ScalarValue;

use crate::data_type::{is_text_or_dictionary, postgres_type_name};
use crate::list::{dimensions, innermost_type};
use crate::{cast, number, time};

pub(crate) use choice::ARRAY;
pub(crate) use plan::{plan_array, type_literals, type_union};
pub(crate) use values::{rewrite_case, type_values};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = choice::functions();
    functions.extend(values::functions());
    functions
}

/// Whether `expression` is an untyped string literal.
fn is_untyped(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// Converts an untyped literal to the type `data_type`. Other expressions are unchanged.
fn type_literal(literal: Expr, data_type: &DataType) -> Result<Expr> {
    match literal {
        Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) => {
            Ok(Expr::Literal(parse_value(&text, data_type)?, metadata))
        }
        other => Ok(other),
    }
}

/// Converts a value to the common type of the values beside it, if it is an untyped literal, or a numeric beside
/// floating-point numbers. Other expressions are unchanged.
fn type_operand(operand: Expr, common: &DataType, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if is_untyped(&operand) {
        return type_literal(operand, common).map(Transformed::yes);
    }
    if becomes_float(&operand.get_type(schema)?, common) {
        return Ok(Transformed::yes(number::widen_operand(operand, common)));
    }
    Ok(Transformed::no(operand))
}

/// Whether a numeric, or an array of them, is converted to the floating-point type `common`.
fn becomes_float(data_type: &DataType, common: &DataType) -> bool {
    dimensions(data_type) == dimensions(common)
        && innermost_type(data_type).is_decimal()
        && innermost_type(common).is_floating()
}

/// Parses `text` as a value of the type `data_type`. A numeric has the digits that it is written with.
fn parse_value(text: &str, data_type: &DataType) -> Result<ScalarValue> {
    if is_text_or_dictionary(data_type) {
        return Ok(ScalarValue::Utf8(Some(text.to_owned())));
    }
    if data_type.is_decimal() {
        return number::numeric_literal(text).ok_or_else(|| number::invalid_input_error(text, data_type));
    }
    let values = cast::parse_texts(&StringArray::from(vec![text]), data_type)?;
    ScalarValue::try_from_array(&values, 0)
}

/// Returns the type that literals take beside values of `types`; `None` if they remain text.
fn literal_target(construct: &str, types: &[DataType]) -> Result<Option<DataType>> {
    Ok(common_type(construct, types)?.filter(|common| !is_text_or_dictionary(common)))
}

/// Returns the common type of `types`, the branches of `construct`; `None` if all are untyped.
fn common_type(construct: &str, types: &[DataType]) -> Result<Option<DataType>> {
    let types: Vec<DataType> = types.iter().filter(|data_type| !data_type.is_null()).cloned().collect();
    let Some(first) = types.first() else { return Ok(None) };
    if types.iter().all(|data_type| data_type == first) {
        return Ok(Some(first.clone()));
    }
    let is_plain = |data_type: &&DataType| {
        data_type.is_numeric()
            || data_type.is_temporal()
            || matches!(data_type, DataType::Boolean | DataType::Interval(_))
    };
    let unmatched = |left, right, advice| {
        let (left, right) = (postgres_type_name(left), postgres_type_name(right));
        plan_err!("{construct} types {left} and {right} cannot be matched; {advice}")
    };
    if let (Some(text), Some(other)) =
        (types.iter().find(|data_type| is_text_or_dictionary(data_type)), types.iter().find(is_plain))
    {
        let (left, right) = if text == first { (text, other) } else { (other, text) };
        return unmatched(left, right, "cast one side, for instance x::text");
    }
    if let Some((other, advice)) = types.iter().find_map(|other| Some((other, time::number_advice(first, other)?))) {
        return unmatched(first, other, advice);
    }
    Ok(number::common_float(&types).or_else(|| type_union_resolution(&types)))
}
