//! Arguments and results that are documents, and casts to and from JSON.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};

use super::reader::{JsonReader, JsonToken, parse, validate};
use super::value::{self, JsonValue, write_value};
use crate::data_type::{JsonKind, holds_json, is_json_extension, is_text_or_null, json_kind, output_field, texts};
use crate::function::{
    ArgumentColumn, BoundedTexts, ColumnarFunction, FieldFunction, FunctionCall, boolean_type, convert_columnar,
    field_kind, keep_types, text_type,
};

/// Fails unless `field` can be an argument of the type `kind` of `function`. Text is read as JSON, and so is a column of
/// documents in a file.
pub(super) fn check_argument(function: &str, kind: JsonKind, field: &Field) -> Result<()> {
    match field_kind(field) {
        Some(own) if own == kind => Ok(()),
        Some(_) if is_json_extension(field) => Ok(()),
        None if is_text_or_null(field.data_type()) => Ok(()),
        Some(own) => {
            let (name, expected) = (own.name(), kind.name());
            plan_err!("function {function}({name}, …) does not exist; write {function}(value::{expected}, …)")
        }
        None => {
            let (data_type, name) = (field.data_type(), kind.name());
            plan_err!(
                "function {function}({data_type}, …) does not exist; its argument must be {name}: \
                 write to_{name}(value)"
            )
        }
    }
}

/// Returns the functions `json_…` and `jsonb_…` that differ only in a type parameter.
macro_rules! json_and_jsonb {
    ($json:literal, $jsonb:literal, $coerce:expr, $returns:ident $(<$flag:literal>)?, $invoke:ident) => {
        [
            ColumnarFunction::new($json, $coerce, $returns::<false $(, $flag)?>, $invoke::<false $(, $flag)?>),
            ColumnarFunction::new($jsonb, $coerce, $returns::<true $(, $flag)?>, $invoke::<true $(, $flag)?>),
        ]
    };
}

pub(super) use json_and_jsonb;

/// Returns the type `jsonb` or `json`.
pub(super) fn kind_type<const IS_BINARY: bool>(_: &[FieldRef]) -> Result<DataType> {
    Ok(kind_from_flag::<IS_BINARY>().data_type())
}

impl FunctionCall<'_> {
    /// Returns an argument of the type `kind`. Text is parsed.
    pub(super) fn documents(&self, index: usize, kind: JsonKind) -> Result<ArgumentColumn<StringArray>> {
        let texts = self.texts(index)?;
        if json_kind(self.fields[index].data_type()) == Some(kind)
            || (kind == JsonKind::Json && self.kind(index) == Some(kind))
        {
            return Ok(texts);
        }
        Ok(ArgumentColumn { values: parse_documents(&texts.values, kind)?, is_constant: texts.is_constant })
    }
}

/// Parses texts as documents of the type `kind`.
fn parse_documents(texts: &StringArray, kind: JsonKind) -> Result<StringArray> {
    match kind {
        JsonKind::Json => {
            texts.iter().flatten().try_for_each(validate)?;
            Ok(texts.clone())
        }
        JsonKind::Jsonb => {
            let mut canonical = BoundedTexts::new(texts.len());
            for text in texts {
                canonical.push(text.map(|text| parse(text).map(|value| format_jsonb(&value))).transpose()?)?;
            }
            Ok(canonical.finish())
        }
    }
}

/// Writes `value` as the text of a `jsonb`.
pub(super) fn format_jsonb(value: &JsonValue) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

/// Builds the result of the type `kind`, or text, from the text of each row.
pub(super) fn build_values<T: AsRef<str>>(
    call: &FunctionCall<'_>,
    kind: Option<JsonKind>,
    make: impl FnMut(usize) -> Result<Option<T>>,
) -> Result<ArrayRef> {
    into_array(BoundedTexts::of_rows(call.rows, make)?, kind)
}

pub(super) fn into_array(texts: BoundedTexts, kind: Option<JsonKind>) -> Result<ArrayRef> {
    let texts = texts.finish();
    match kind {
        Some(kind) => kind.values(texts),
        None => Ok(std::sync::Arc::new(texts)),
    }
}

/// Fails unless there are between `least` and `most` arguments.
pub(super) fn check_count(function: &str, fields: &[FieldRef], least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&fields.len()) {
        return Ok(());
    }
    plan_err!("function {function} with {} arguments does not exist; it takes {least} to {most}", fields.len())
}

/// Returns `jsonb` if `IS_BINARY`, and `json` otherwise.
pub(super) const fn kind_from_flag<const IS_BINARY: bool>() -> JsonKind {
    if IS_BINARY { JsonKind::Jsonb } else { JsonKind::Json }
}

/// Returns the functions that replace casts to JSON.
pub(super) fn cast_functions() -> Vec<ScalarUDF> {
    json_and_jsonb!("json", "jsonb", keep_types, json_target_type, convert).into()
}

/// Returns the function that casts to `jsonb`.
pub(super) fn to_jsonb() -> ScalarUDF {
    let [_, to_jsonb] = json_and_jsonb!("json", "jsonb", keep_types, json_target_type, convert);
    to_jsonb
}

fn json_target_type<const IS_BINARY: bool>(fields: &[FieldRef]) -> Result<DataType> {
    let kind = kind_from_flag::<IS_BINARY>();
    check_count(kind.name(), fields, 1, 1)?;
    let data_type = fields[0].data_type();
    if field_kind(&fields[0]).is_some() || is_text_or_null(data_type) {
        return Ok(kind.data_type());
    }
    let name = kind.name();
    plan_err!("cannot cast type {data_type} to {name}; write to_{name}(value)")
}

fn convert<const IS_BINARY: bool>(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let kind = kind_from_flag::<IS_BINARY>();
    let array = call.array(0)?;
    let texts = texts(&array)?;
    match (json_kind(array.data_type()), kind) {
        // Canonical JSON is JSON.
        (Some(JsonKind::Jsonb), _) | (Some(JsonKind::Json), JsonKind::Json) => kind.values(texts),
        _ => kind.values(parse_documents(&texts, kind)?),
    }
}

/// Parses `texts` as documents.
pub(crate) fn parse_json_texts(texts: &StringArray, kind: JsonKind) -> Result<ArrayRef> {
    kind.values(parse_documents(texts, kind)?)
}

/// Returns the function that casts JSON to text.
pub(super) fn to_text() -> ScalarUDF {
    ColumnarFunction::new("json_text", keep_types, text_type, |call| Ok(Arc::new(texts(&call.array(0)?)?)))
}

/// Returns the function for the text of a number, for casts of `jsonb` to `numeric` and `double precision`.
pub(super) fn to_number() -> ScalarUDF {
    ColumnarFunction::new("jsonb_number", keep_types, text_type, |call| {
        let documents = call.texts(0)?;
        build_values(call, None, |row| documents.get(row).map(|text| number_of(text, "numeric")).transpose())
    })
}

fn number_of(text: &str, target: &str) -> Result<String> {
    match JsonReader::new(text).token()? {
        JsonToken::Number => Ok(text.to_owned()),
        other => exec_err!("cannot cast jsonb {} to type {target}", other.type_name()),
    }
}

/// Returns the texts of documents that are numbers.
pub(crate) fn numbers(documents: &ArrayRef) -> Result<StringArray> {
    let documents = texts(documents)?;
    let number = |document: Option<&str>| document.map(|text| number_of(text, "numeric")).transpose();
    documents.iter().map(number).collect()
}

/// Returns the function that rounds a number to an integer.
pub(super) fn to_integer() -> ScalarUDF {
    ColumnarFunction::new(
        "jsonb_integer",
        keep_types,
        |_| Ok(DataType::Int64),
        |call| {
            let documents = call.texts(0)?;
            let integer = |row| -> Result<Option<i64>> {
                let Some(text) = documents.get(row) else { return Ok(None) };
                let rounded = value::round_to_integer(&number_of(text, "integer")?);
                match rounded.and_then(|integer| i64::try_from(integer).ok()) {
                    Some(integer) => Ok(Some(integer)),
                    None => exec_err!("integer out of range: {text}"),
                }
            };
            Ok(Arc::new((0..call.rows).map(integer).collect::<Result<Int64Array>>()?))
        },
    )
}

/// Returns the function that casts `jsonb` to `boolean`.
pub(super) fn to_boolean() -> ScalarUDF {
    ColumnarFunction::new("jsonb_boolean", keep_types, boolean_type, |call| {
        let documents = call.texts(0)?;
        let boolean = |row| -> Result<Option<bool>> {
            let Some(text) = documents.get(row) else { return Ok(None) };
            match JsonReader::new(text).token()? {
                JsonToken::True => Ok(Some(true)),
                JsonToken::False => Ok(Some(false)),
                other => exec_err!("cannot cast jsonb {} to type boolean", other.type_name()),
            }
        };
        Ok(Arc::new((0..call.rows).map(boolean).collect::<Result<BooleanArray>>()?))
    })
}

/// Returns the function that converts values that hold JSON to marked text, for the output.
pub(super) fn output_function() -> ScalarUDF {
    FieldFunction::new(
        "json_shown",
        Signature::any(1, Volatility::Immutable),
        |args| Ok(Arc::new(output_field(&args.arg_fields[0]))),
        |args| convert_columnar(&args.args[0], json_to_text),
    )
}

/// Replaces JSON values in `array` with texts.
fn json_to_text(array: &ArrayRef) -> Result<ArrayRef> {
    if !holds_json(array.data_type()) {
        return Ok(array.clone());
    }
    if json_kind(array.data_type()).is_some() {
        return Ok(Arc::new(texts(array)?));
    }
    let field = output_field(&Field::new("", array.data_type().clone(), true));
    match (array.data_type(), field.data_type()) {
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, json_to_text(list.values())?, nulls)?))
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let values = array.as_struct();
            let columns = values.columns().iter().map(json_to_text).collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                values.nulls().cloned(),
                values.len(),
            )?))
        }
        (other, _) => exec_err!("JSON inside {other} cannot be returned; cast it to text"),
    }
}
