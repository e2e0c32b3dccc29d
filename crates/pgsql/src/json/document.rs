//! Arguments that are documents.

use datafusion::arrow::array::{Array, ArrayRef, StringArray};
use datafusion::arrow::datatypes::{Field, FieldRef};
use datafusion::common::{Result, plan_err};

use super::reader::{parse, validate};
use super::text::write_value;
use super::value::JsonValue;
use crate::data_type::is_text_or_null;
use crate::function::{ArgumentColumn, BoundedTexts, FunctionCall, field_kind};
use crate::json_type::JsonKind;

/// Fails unless `field` can be an argument of the type `kind` of `function`. Text is read as JSON.
pub(super) fn check_argument(function: &str, kind: JsonKind, field: &Field) -> Result<()> {
    match field_kind(field) {
        Some(own) if own == kind => Ok(()),
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

impl FunctionCall<'_> {
    /// An argument of the type `kind`; text is read as such.
    pub(super) fn documents(&self, index: usize, kind: JsonKind) -> Result<ArgumentColumn<StringArray>> {
        let texts = self.texts(index)?;
        if crate::json_type::json_kind(self.fields[index].data_type()) == Some(kind)
            || self.kind(index) == Some(JsonKind::Json)
        {
            return Ok(texts);
        }
        Ok(ArgumentColumn { values: parse_documents(&texts.values, kind)?, is_constant: texts.is_constant })
    }
}

/// `texts` as documents of the type `kind`.
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

/// `value` as `jsonb` prints it.
pub(super) fn format_jsonb(value: &JsonValue) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

/// Texts of `kind`, one a row; `make` has the row.
pub(super) fn build_values(
    call: &FunctionCall<'_>,
    kind: Option<JsonKind>,
    mut make: impl FnMut(usize) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    let mut texts = BoundedTexts::new(call.rows);
    for row in 0..call.rows {
        texts.push(make(row)?)?;
    }
    into_array(texts, kind)
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

/// The constant of a type parameter as a kind.
pub(super) const fn kind_from_flag<const IS_BINARY: bool>() -> JsonKind {
    if IS_BINARY { JsonKind::Jsonb } else { JsonKind::Json }
}
