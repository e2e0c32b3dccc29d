//! Array literals, and casts of them.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Array, ArrayElemTypeDef, CastKind, DataType, Expr, UnaryOperator, Value};

use crate::list::written_dimensions;
use crate::syntax::{call, cast, number, string, take};

/// Rewrites casts of array literals, before the parts of the cast are rewritten.
pub(crate) fn rewrite_literals(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, .. } => {
            if element_of(data_type).is_some() {
                type_literal(expr, data_type);
            }
            match innermost_of(data_type) {
                DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_) => write_numbers(expr),
                element if element_of(data_type).is_some() && !has_only_numbers(expr) => cast_numbers(expr, element),
                _ => {}
            }
        }
        Expr::Array(Array { elem, named: true }) if elem.is_empty() => {
            return plan_err!("cannot determine type of empty array; write a type: ARRAY[]::integer[]");
        }
        _ => {}
    }
    Ok(())
}

fn element_of(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => Some(element),
        _ => None,
    }
}

/// Returns the type of the elements of the innermost arrays, or the type itself.
fn innermost_of(data_type: &DataType) -> &DataType {
    element_of(data_type).map_or(data_type, innermost_of)
}

fn array_of(element: DataType) -> DataType {
    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None))
}

/// Turns an empty array into text, and gives the type as many dimensions as the text has. PostgreSQL ignores the number
/// of dimensions in a type.
fn type_literal(literal: &mut Expr, data_type: &mut DataType) {
    match literal {
        Expr::Nested(inner) => type_literal(inner, data_type),
        Expr::Array(Array { elem, .. }) if elem.is_empty() => {
            *literal = string("{}");
        }
        Expr::Value(value) => {
            if let Value::SingleQuotedString(text) = &value.value
                && let Some(dimensions) = written_dimensions(text)
            {
                let element = innermost_of(data_type).clone();
                *data_type = (0..dimensions.max(1)).fold(element, |element, _| array_of(element));
            }
        }
        _ => {}
    }
}

/// Replaces numbers of different scales by their text, because an Arrow array has only one scale.
fn write_numbers(array: &mut Expr) {
    match array {
        Expr::Nested(inner) => write_numbers(inner),
        Expr::Array(Array { elem, .. }) => {
            if let Some(texts) = elem.iter().map(number_text).collect::<Option<Vec<_>>>() {
                *elem = texts.into_iter().map(string).collect();
            } else {
                elem.iter_mut().for_each(write_numbers);
            }
        }
        _ => {}
    }
}

/// Casts the number literals among the elements of an array to the type `element`. PostgreSQL casts each element, and not to
/// the common type before: `ARRAY[x, 2.5]::int[]` has a 3 also where x is a double.
fn cast_numbers(value: &mut Expr, element: &DataType) {
    match value {
        Expr::Nested(inner) => cast_numbers(inner, element),
        Expr::Array(Array { elem, .. }) => elem.iter_mut().for_each(|value| cast_numbers(value, element)),
        number if is_number(number) => *number = cast(take(number), element.clone()),
        _ => {}
    }
}

fn has_only_numbers(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => has_only_numbers(inner),
        Expr::Array(Array { elem, .. }) => elem.iter().all(has_only_numbers),
        other => is_number(other),
    }
}

fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_number(expr),
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    }
}

/// Returns the text of a number literal without an exponent.
fn number_text(expression: &Expr) -> Option<String> {
    match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let text = number_text(expr).filter(|text| !text.starts_with('-'))?;
            let is_zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
            Some(if is_zero { text } else { format!("-{text}") })
        }
        Expr::Value(value) => {
            let Value::Number(number, false) = &value.value else { return None };
            let (whole, fraction) = match number.split_once('.') {
                Some((whole, fraction)) => (whole, Some(fraction)),
                None => (number.as_str(), None),
            };
            if !whole.bytes().chain(fraction.unwrap_or_default().bytes()).all(|digit| digit.is_ascii_digit()) {
                return None;
            }
            let whole = match whole.trim_start_matches('0') {
                "" => "0",
                whole => whole,
            };
            Some(match fraction {
                Some("") | None => whole.to_owned(),
                Some(fraction) => format!("{whole}.{fraction}"),
            })
        }
        _ => None,
    }
}

/// Plans `array_fill(value, ARRAY[rows, columns])` as repeated arrays. The dimensions must be constant, because the type
/// of the array depends on them.
pub(super) fn plan_array_fill(args: &[Expr]) -> Result<Expr> {
    const ADVICE: &str = "array_fill takes a typed value and constant dimensions, for instance \
                          array_fill(0, ARRAY[2, 3]); for lengths from columns write array_repeat(x, n)";
    let [value, Expr::Array(Array { elem, .. })] = args else { return plan_err!("{ADVICE}") };
    let length = |element: &Expr| match element {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<u64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let Some(lengths) = elem.iter().map(length).collect::<Option<Vec<u64>>>() else { return plan_err!("{ADVICE}") };
    let is_untyped =
        matches!(value, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Null));
    if is_untyped || lengths.is_empty() || lengths.len() > 6 {
        return plan_err!("{ADVICE}");
    }
    // An array without elements has no dimensions.
    let lengths = if lengths.contains(&0) { vec![0] } else { lengths };
    let repeated = |value: Expr, length: &u64| call("array_repeat", vec![value, number(length)]);
    Ok(lengths.iter().rev().fold(value.clone(), repeated))
}
