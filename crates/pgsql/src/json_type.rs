//! The two types `json` and `jsonb` as Arrow types.
//!
//! In a plan, a JSON value is a struct of one text. This distinct type survives `CASE`, `coalesce`, arrays, aggregates
//! and subqueries, and is never confused with text. `jsonb` texts are canonical. The output contains the text, in a
//! field that is marked as JSON.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, exec_err};

/// Which of the two types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    /// The text as it was given.
    Json,
    /// Canonical: keys in order and unique, numbers without exponents.
    Jsonb,
}

/// The key and the value that mark a text field as JSON, as Arrow's canonical extension has them.
const EXTENSION: (&str, &str) = ("ARROW:extension:name", "arrow.json");
/// The key of the metadata with the JSON type of a marked field.
const TYPE_KEY: &str = "postgresql:type";

static JSON_FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::from(vec![Field::new("$json", DataType::Utf8, true)]));
static JSONB_FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::from(vec![Field::new("$jsonb", DataType::Utf8, true)]));

impl JsonKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonb => "jsonb",
        }
    }

    fn fields(self) -> &'static Fields {
        match self {
            Self::Json => &JSON_FIELDS,
            Self::Jsonb => &JSONB_FIELDS,
        }
    }

    /// Returns the type of the values in a plan.
    pub(crate) fn data_type(self) -> DataType {
        DataType::Struct(self.fields().clone())
    }

    /// Converts texts to values of this type. They must be valid documents.
    pub(crate) fn values(self, texts: StringArray) -> Result<ArrayRef> {
        let nulls = texts.nulls().cloned();
        Ok(Arc::new(StructArray::try_new_with_length(
            self.fields().clone(),
            vec![Arc::new(texts.clone())],
            nulls,
            texts.len(),
        )?))
    }
}

/// Returns the JSON type of `data_type`; `None` for other types.
pub(crate) fn json_kind(data_type: &DataType) -> Option<JsonKind> {
    match data_type {
        DataType::Struct(fields) if fields.len() == 1 => match fields[0].name().as_str() {
            "$json" => Some(JsonKind::Json),
            "$jsonb" => Some(JsonKind::Jsonb),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text field is marked as JSON, as columns of Parquet files are. It has the type `json`, because the text
/// need not be canonical.
pub(crate) fn is_json_extension(field: &Field) -> bool {
    field.metadata().get(EXTENSION.0).is_some_and(|name| name == EXTENSION.1)
}

/// Returns the texts of `array`, which holds text or JSON.
pub(crate) fn texts(array: &ArrayRef) -> Result<StringArray> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().clone()),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Null | DataType::Dictionary(..) => {
            Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
        }
        other if json_kind(other).is_some() => {
            let values = array.as_struct();
            let texts = values.column(0).as_string::<i32>();
            let nulls = NullBuffer::union(values.nulls(), texts.nulls());
            Ok(StringArray::try_new(texts.offsets().clone(), texts.values().clone(), nulls)?)
        }
        other => exec_err!("expected text or JSON, not {other}"),
    }
}

/// Whether JSON values are anywhere in `data_type`.
pub(crate) fn holds_json(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_json(item.data_type())
        }
        DataType::Struct(fields) => {
            json_kind(data_type).is_some() || fields.iter().any(|field| holds_json(field.data_type()))
        }
        _ => false,
    }
}

/// Returns the output field of `field`: marked text instead of JSON values.
pub(crate) fn output_field(field: &Field) -> Field {
    if let Some(kind) = json_kind(field.data_type()) {
        let marks = [(EXTENSION.0.to_owned(), EXTENSION.1.to_owned()), (TYPE_KEY.to_owned(), kind.name().to_owned())];
        return Field::new(field.name(), DataType::Utf8, field.is_nullable()).with_metadata(HashMap::from(marks));
    }
    // Marks within a list would be lost where a constant is made of it.
    let visible = |item: &FieldRef| Arc::new(output_field(item).with_metadata(item.metadata().clone()));
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(visible(item)),
        DataType::LargeList(item) => DataType::LargeList(visible(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(visible(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(visible).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}
