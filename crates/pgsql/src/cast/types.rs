//! SQL types that DataFusion's planner does not support or maps to other types.
//!
//! `character(n)`, text that is padded with spaces, which are not significant, exists only in the syntax. A cast to it is
//! replaced depending on its context:
//!
//! - in comparisons, concatenation and arguments of text functions: the text without trailing spaces,
//! - in the output, or where its bytes are counted: the padded text,
//! - as the type of any other column or value: an error.

use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, ExactNumberInfo, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Value, ValueWithSpan,
};

use crate::column_names::column_name;
use crate::data_type::is_text_or_null;
use crate::function::{ColumnarFunction, text_type};
use crate::syntax::{
    binary, call, cast, is_named, negative, nested, number, quoted, string, take, without_parentheses,
};

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
    call(super::NUMERIC_CAST, vec![operand])
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

/// The maximum length in PostgreSQL.
const LENGTH_MAX: u64 = 10_485_760;

/// Text functions, which receive a `character(n)` without trailing spaces.
const TEXT_FUNCTIONS: &str = "\
    ascii bit_length btrim char_length character_length initcap left length lower lpad ltrim md5 overlay position \
    quote_ident quote_literal regexp_match regexp_matches regexp_replace regexp_split_to_array repeat replace \
    reverse right rpad rtrim split_part starts_with string_agg string_to_array strpos substr substring to_date \
    to_number to_timestamp translate upper";

/// Functions that receive the padded text.
const ANY_TYPE_FUNCTIONS: &[&str] = &["concat", "concat_ws", "count", "format", "octet_length"];

/// Returns the operand of a cast to `character(n)` and the length; `None` for `bpchar`, which leaves the text
/// unchanged.
fn character_cast(expression: &Expr) -> Option<(&Expr, Option<u64>)> {
    match expression {
        Expr::Nested(inner) => character_cast(inner),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, array: false, .. } => {
            Some((expr, character_length(data_type)?))
        }
        _ => None,
    }
}

fn character_length(data_type: &DataType) -> Option<Option<u64>> {
    match data_type {
        DataType::Character(None) | DataType::Char(None) => Some(Some(1)),
        DataType::Character(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => Some(Some(*length)),
        DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("bpchar") => Some(None),
        _ => None,
    }
}

/// Replaces a typed literal with the equivalent cast.
fn with_cast(expression: &mut Expr) {
    if let Expr::TypedString(typed) = &*expression
        && character_length(&typed.data_type).is_some()
    {
        *expression = cast(Expr::Value(typed.value.clone()), typed.data_type.clone());
    }
}

fn as_text(operand: &Expr) -> Expr {
    cast(operand.clone(), DataType::Varchar(None))
}

/// Replaces a cast to `character(n)` with the padded text.
fn pad(expression: &mut Expr) {
    with_cast(expression);
    if let Some((operand, length)) = character_cast(expression) {
        let text = as_text(operand);
        *expression = match length {
            Some(length) => call("rpad", vec![text, number(length)]),
            None => text,
        };
    }
}

/// Replaces a cast to `character(n)` with the text without trailing spaces. Returns whether it was such a cast.
fn strip(expression: &mut Expr) -> bool {
    with_cast(expression);
    let Some((operand, length)) = character_cast(expression) else { return false };
    let text = as_text(operand);
    let text = match length {
        Some(length) => call("left", vec![text, number(length)]),
        None => text,
    };
    *expression = call("rtrim", vec![text]);
    true
}

/// Strips a literal that is compared with a `character(n)`, because it takes that type.
fn strip_literal(expression: &mut Expr) {
    match expression {
        Expr::Nested(inner) => strip_literal(inner),
        Expr::Value(value) => {
            if let Value::SingleQuotedString(text) = &mut value.value {
                text.truncate(text.trim_end_matches(' ').len());
            }
        }
        _ => {}
    }
}

fn is_character(expression: &Expr) -> bool {
    match expression {
        Expr::TypedString(typed) => character_length(&typed.data_type).is_some(),
        other => character_cast(other).is_some(),
    }
}

/// Strips all of `operands` if one of them is a `character(n)`.
fn strip_compared<'a>(operands: impl Iterator<Item = &'a mut Expr>) {
    let operands: Vec<&mut Expr> = operands.collect();
    if operands.iter().any(|operand| is_character(operand)) {
        for operand in operands {
            if !strip(operand) {
                strip_literal(operand);
            }
        }
    }
}

/// Rewrites casts to `character(n)` in `expression`, before its parts are rewritten.
pub(crate) fn rewrite_characters(expression: &mut Expr) -> Result<()> {
    if is_character(expression) {
        return refuse_character_cast(expression);
    }
    match expression {
        Expr::BinaryOp { left, op, right } => rewrite_operator(left, op, right),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            strip_compared([left.as_mut(), right.as_mut()].into_iter());
        }
        Expr::InList { expr, list, .. } => strip_compared(std::iter::once(expr.as_mut()).chain(list)),
        Expr::Between { expr, low, high, .. } => strip_compared([expr, low, high].into_iter().map(AsMut::as_mut)),
        Expr::Case { operand: Some(operand), conditions, .. } => {
            strip_compared(
                std::iter::once(operand.as_mut()).chain(conditions.iter_mut().map(|branch| &mut branch.condition)),
            );
        }
        // Trailing spaces are significant in pattern matching.
        Expr::Like { expr, .. } | Expr::ILike { expr, .. } | Expr::SimilarTo { expr, .. } => pad(expr),
        Expr::IsNull(operand) | Expr::IsNotNull(operand) => pad(operand),
        Expr::Cast { expr, .. }
        | Expr::Trim { expr, .. }
        | Expr::Substring { expr, .. }
        | Expr::Overlay { expr, .. } => {
            strip(expr);
        }
        Expr::Position { expr, r#in } => {
            strip(expr);
            strip(r#in);
        }
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
            for arg in &mut list.args {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else { continue };
                if ANY_TYPE_FUNCTIONS.contains(&name.as_str()) {
                    pad(arg);
                } else if TEXT_FUNCTIONS.split(' ').any(|function| function == name) {
                    strip(arg);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn rewrite_operator(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) {
    match op {
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::LtEq
        | BinaryOperator::Gt
        | BinaryOperator::GtEq => strip_compared([left, right].into_iter()),
        BinaryOperator::StringConcat => {
            strip(left);
            strip(right);
        }
        BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch
        | BinaryOperator::PGLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGNotILikeMatch => pad(left),
        _ => {}
    }
}

/// Refuses other casts to `character(n)`. Text of one character has trailing spaces only if it is empty.
fn refuse_character_cast(expression: &mut Expr) -> Result<()> {
    with_cast(expression);
    match character_cast(expression) {
        Some((_, Some(0))) => plan_err!("length for type character must be at least 1"),
        Some((_, Some(1))) => {
            pad(expression);
            Ok(())
        }
        Some((_, Some(length))) if length > LENGTH_MAX => {
            plan_err!("length for type character cannot exceed {LENGTH_MAX}")
        }
        _ => plan_err!(
            "character(n) is supported in comparisons, in concatenation with text, as an argument of a text function, \
             and as a column of the outermost SELECT; elsewhere write x::varchar(n), or rpad(x, n) for the padded text"
        ),
    }
}

/// Rewrites casts to `character(n)` in ORDER BY and GROUP BY.
pub(crate) fn rewrite_character_keys(query: &mut Query) {
    if let Some(OrderByKind::Expressions(orders)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        orders.iter_mut().for_each(|order| pad(&mut order.expr));
    }
    if let SetExpr::Select(select) = query.body.as_mut()
        && let GroupByExpr::Expressions(groups, _) = &mut select.group_by
    {
        groups.iter_mut().for_each(pad);
    }
}

/// Rewrites casts to `character(n)` that are columns of `select`, the outermost SELECT.
pub(crate) fn rewrite_character_columns(select: &mut Select) {
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) if is_character(expr) => {
                let alias = quoted(column_name(expr));
                let mut expr = expr.clone();
                pad(&mut expr);
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::ExprWithAlias { expr, .. } => pad(expr),
            _ => {}
        }
    }
}
