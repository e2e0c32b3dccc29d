//! SQL types that DataFusion's planner does not support or maps to other types.

use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, ExactNumberInfo, Expr, Value, ValueWithSpan,
};

use super::numeric;
use crate::data_type::is_text_or_null;
use crate::function::{ColumnarFunction, text_type};
use crate::syntax::{binary, call, cast, is_named, negative, nested, number, string, take, without_parentheses};

const UUID: &str = "uuid*";
/// The maximum length of the type `name`, in bytes.
const NAME_LENGTH: u64 = 63;

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            if let Some(replaced) = rewrite_cast(expr, data_type)? {
                *expression = replaced;
            }
        }
        Expr::TypedString(typed) => {
            let mut value = Expr::Value(typed.value.clone());
            if let Some(replaced) = rewrite_cast(&mut value, &mut typed.data_type)? {
                *expression = replaced;
            }
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right }
        | Expr::BinaryOp { left, op: BinaryOperator::Lt | BinaryOperator::LtEq, right }
        | Expr::BinaryOp { left, op: BinaryOperator::Gt | BinaryOperator::GtEq, right }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right) => type_uuids(&mut [left.as_mut(), right.as_mut()]),
        Expr::Between { expr, low, high, .. } => type_uuids(&mut [expr.as_mut(), low.as_mut(), high.as_mut()]),
        Expr::InList { expr, list, .. } => {
            type_uuids(&mut std::iter::once(expr.as_mut()).chain(list).collect::<Vec<_>>())
        }
        _ => {}
    }
    Ok(())
}

/// Makes uuids of the literals that are compared with one.
fn type_uuids(operands: &mut [&mut Expr]) {
    let is_uuid = |operand: &Expr| {
        let operand = without_parentheses(operand);
        matches!(operand, Expr::Function(function) if is_named(&function.name, UUID))
    };
    if !operands.iter().any(|operand| is_uuid(operand)) {
        return;
    }
    for operand in operands {
        if matches!(operand, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. })) {
            **operand = call(UUID, vec![take(operand)]);
        }
    }
}

/// Returns the call that replaces the cast of `operand` to `data_type`. Where DataFusion's planner knows the type by
/// another name, it renames `data_type` instead.
fn rewrite_cast(operand: &mut Expr, data_type: &mut DataType) -> Result<Option<Expr>> {
    match data_type {
        DataType::CharacterVarying(length) | DataType::CharVarying(length) | DataType::Varchar(length) => {
            let length = length.take();
            *data_type = DataType::Varchar(None);
            let Some(CharacterLength::IntegerLength { length, .. }) = length else { return Ok(None) };
            Ok(Some(first_characters(take(operand), length)))
        }
        DataType::Bit(_) | DataType::BitVarying(_) | DataType::VarBit(_) => {
            plan_err!("bit strings are not supported; write an integer, and the operators & | # ~, or bytea for bytes")
        }
        DataType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale))
        | DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale))
        | DataType::Dec(ExactNumberInfo::PrecisionAndScale(precision, scale))
            if *scale < 0 || scale.unsigned_abs() > *precision =>
        {
            cast_with_scale_beyond_precision(take(operand), *precision, *scale).map(Some)
        }
        DataType::Numeric(ExactNumberInfo::None)
        | DataType::Decimal(ExactNumberInfo::None)
        | DataType::Dec(ExactNumberInfo::None) => Ok(Some(as_numeric(take(operand)))),
        DataType::Dec(info) => {
            *data_type = DataType::Numeric(*info);
            Ok(None)
        }
        DataType::Float(ExactNumberInfo::None) => {
            *data_type = DataType::DoublePrecision;
            Ok(None)
        }
        DataType::Float(ExactNumberInfo::Precision(bits)) => {
            *data_type = if *bits <= 24 { DataType::Real } else { DataType::DoublePrecision };
            Ok(None)
        }
        DataType::Uuid => Ok(Some(call(UUID, vec![take(operand)]))),
        DataType::Custom(name, _) => match name.to_string().to_ascii_lowercase().as_str() {
            "name" => Ok(Some(first_characters(take(operand), NAME_LENGTH))),
            "\"char\"" => first_byte(take(operand)).map(Some),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Casts to `numeric(precision, scale)` whose digits are all before the point, or all after it. Computes with units of
/// the scale, of which the value has `precision` digits.
fn cast_with_scale_beyond_precision(operand: Expr, precision: u64, scale: i64) -> Result<Expr> {
    let digits = scale.unsigned_abs();
    if precision + digits > 38 {
        return plan_err!(
            "numeric({precision}, {scale}) is not supported, because a numeric has 38 digits; write round(x, {scale})"
        );
    }
    let cast = |expr: Expr, precision: u64, scale: i64| {
        cast(expr, DataType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale)))
    };
    let value = as_numeric(operand);
    if scale < 0 {
        return Ok(cast(call("round", vec![value, negative(number(digits))]), precision + digits, 0));
    }
    let zeros = usize::try_from(digits - precision).unwrap_or(0);
    let times = |left: Expr, right: Expr| nested(binary(left, BinaryOperator::Multiply, right));
    let scaled = times(value, number(format!("1{}.", "0".repeat(zeros))));
    Ok(times(
        cast(scaled, precision, scale.min(i64::try_from(precision).unwrap_or(scale))),
        number(format!("0.{}1", "0".repeat(zeros.saturating_sub(1)))),
    ))
}

/// Returns the `"char"` value of `operand`: the first byte of a text or the byte that its octal digits mean, or the character
/// of a number.
fn first_byte(operand: Expr) -> Result<Expr> {
    match &operand {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. })
            if text.chars().next().is_none_or(|first| first.is_ascii()) =>
        {
            Ok(cast(string(one_byte(text)), DataType::Varchar(None)))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => Ok(call("chr", vec![operand])),
        _ => plan_err!("the one-byte type \"char\" is supported for constants only; write left(x, 1), or chr(n)"),
    }
}

/// Returns what PostgreSQL writes for the `"char"` that `text` means. A byte that is not ASCII has octal digits.
fn one_byte(text: &str) -> String {
    let digit = |character: &u8| u32::from(character - b'0');
    match text.as_bytes() {
        [b'\\', first @ b'0'..=b'7', second @ b'0'..=b'7', third @ b'0'..=b'7'] => {
            match (digit(first) * 64 + digit(second) * 8 + digit(third)) % 256 {
                0 => String::new(),
                byte @ 1..=127 => char::from_u32(byte).into_iter().collect(),
                byte => format!("\\{byte:03o}"),
            }
        }
        _ => text.chars().take(1).collect(),
    }
}

/// Builds `left(operand::varchar, length)`.
fn first_characters(operand: Expr, length: u64) -> Expr {
    call("left", vec![cast(operand, DataType::Varchar(None)), number(length)])
}

/// Converts to a numeric; a number literal keeps the digits that it is written with.
fn as_numeric(operand: Expr) -> Expr {
    if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = &operand {
        let is_plain = !text.contains(['e', 'E']) && crate::number::numeric_literal(text).is_some();
        let text = text.trim().trim_start_matches('+');
        if is_plain {
            let unsigned = text.trim_start_matches('-');
            // The point makes it a numeric rather than an integer.
            let digits = if unsigned.contains('.') { unsigned.to_owned() } else { format!("{unsigned}.") };
            return if text.starts_with('-') { nested(negative(number(digits))) } else { number(digits) };
        }
    }
    call(numeric::NAME, vec![operand])
}

/// Returns the cast to uuid. A uuid is stored as the text that PostgreSQL prints.
pub(super) fn uuid_function() -> ScalarUDF {
    ColumnarFunction::new(
        UUID,
        |types| match types {
            [text] if is_text_or_null(text) => Ok(vec![ArrowType::Utf8]),
            _ => plan_err!("only text can be cast to uuid"),
        },
        text_type,
        |call| {
            let texts = call.array(0)?;
            let uuids = texts.as_string::<i32>().iter().map(|text| text.map(uuid).transpose());
            Ok(Arc::new(uuids.collect::<Result<StringArray>>()?))
        },
    )
}

fn uuid(text: &str) -> Result<String> {
    let inner = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
    let digits: String = inner.chars().filter(|character| *character != '-').collect::<String>().to_ascii_lowercase();
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return exec_err!("invalid input syntax for type uuid: \"{text}\"");
    }
    let part = |from: usize, to: usize| &digits[from..to];
    Ok([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}
