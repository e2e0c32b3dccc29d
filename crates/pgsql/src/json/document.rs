//! Arguments that are documents.

use datafusion::arrow::array::{Array, ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};

use super::function::{Call, Column, Texts, field_kind};
use super::kind::Kind;
use super::reader::{parse, validate};
use super::text::write_value;
use super::value::Value;

/// Whether `data_type` is text, or NULL, which may be of any type.
pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

/// Fails unless `field` can be an argument of the type `kind` of `function`. Text is read as JSON.
pub(super) fn check(function: &str, kind: Kind, field: &Field) -> Result<()> {
    match field_kind(field) {
        Some(own) if own == kind => Ok(()),
        None if is_text(field.data_type()) => Ok(()),
        Some(own) => {
            let (name, wanted) = (own.name(), kind.name());
            plan_err!("function {function}({name}, …) does not exist; write {function}(value::{wanted}, …)")
        }
        None => {
            let (data_type, name) = (field.data_type(), kind.name());
            plan_err!(
                "function {function}({data_type}, …) does not exist; its argument is {name}: write to_{name}(value)"
            )
        }
    }
}

impl Call<'_> {
    /// An argument of the type `kind`; text is read as such.
    pub(super) fn documents(&self, index: usize, kind: Kind) -> Result<Column<StringArray>> {
        let texts = self.texts(index)?;
        if super::kind::kind_of(self.fields[index].data_type()) == Some(kind) || self.kind(index) == Some(Kind::Json) {
            return Ok(texts);
        }
        Ok(Column { values: read(&texts.values, kind)?, is_constant: texts.is_constant })
    }
}

/// `texts` as documents of the type `kind`.
pub(super) fn read(texts: &StringArray, kind: Kind) -> Result<StringArray> {
    match kind {
        Kind::Json => {
            texts.iter().flatten().try_for_each(validate)?;
            Ok(texts.clone())
        }
        Kind::Jsonb => {
            let mut canonical = Texts::new(texts.len());
            for text in texts {
                canonical.push(text.map(|text| parse(text).map(|value| printed(&value))).transpose()?)?;
            }
            Ok(canonical.finish())
        }
    }
}

/// `value` as `jsonb` prints it.
pub(super) fn printed(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

/// Texts of `kind`, one a row; `make` has the row.
pub(super) fn values(
    call: &Call<'_>,
    kind: Option<Kind>,
    mut make: impl FnMut(usize) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    let mut texts = Texts::new(call.rows);
    for row in 0..call.rows {
        texts.push(make(row)?)?;
    }
    finish(texts, kind)
}

pub(super) fn finish(texts: Texts, kind: Option<Kind>) -> Result<ArrayRef> {
    let texts = texts.finish();
    match kind {
        Some(kind) => kind.values(texts),
        None => Ok(std::sync::Arc::new(texts)),
    }
}

/// The types of arguments as they are.
pub(super) fn as_they_are(types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(types.to_vec())
}

/// Fails unless there are between `least` and `most` arguments.
pub(super) fn check_count(function: &str, fields: &[FieldRef], least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&fields.len()) {
        return Ok(());
    }
    plan_err!("function {function} with {} arguments does not exist; it has {least} to {most}", fields.len())
}

/// The constant of a type parameter as a kind.
pub(super) const fn kind<const IS_BINARY: bool>() -> Kind {
    if IS_BINARY { Kind::Jsonb } else { Kind::Json }
}
