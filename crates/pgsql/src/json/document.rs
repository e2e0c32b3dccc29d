//! Arguments and results that are documents, and casts to and from JSON.

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};

use super::reader::{parse, validate};
use super::text::write_value;
use super::value::JsonValue;
use crate::data_type::is_text_or_null;
use crate::function::{ArgumentColumn, BoundedTexts, FunctionCall, field_kind};
use crate::json_type::{JsonKind, is_json_extension, json_kind};

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
pub(super) fn parse_documents(texts: &StringArray, kind: JsonKind) -> Result<StringArray> {
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
