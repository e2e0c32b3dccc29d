//! Converts JSON objects to rows: one schema for all of them, batches on demand.
//!
//! A column has the narrowest type that holds all its values: boolean, 64-bit integer, 64-bit float or text. Arrays and
//! objects become JSON text. Batches are built one by one, because objects with few common members would need memory
//! for every missing member.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use serde_json::Value;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::QueryRows;

const COLUMNS_MAX: usize = 1_000;
const BATCH_ROWS: usize = 1_024;
const VALUE_COLUMN: &str = "value";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonColumnType {
    Null,
    Boolean,
    Integer,
    Float,
    Text,
}

/// The columns of a table, in the order of first appearance.
struct InferredColumns {
    names: Vec<String>,
    column_types: Vec<JsonColumnType>,
    /// Whether rows are objects; otherwise each item is the value of the only column.
    are_members: bool,
}

/// The table of `items`. `extract` is the requested column, which an empty table has as well.
pub(super) fn rows_from_json(items: Vec<Value>, extract: Option<&str>) -> Result<QueryRows, Error> {
    let mut columns = InferredColumns::infer(&items)?;
    if let (true, Some(name)) = (items.is_empty(), extract) {
        columns.names.push(name.to_owned());
        columns.column_types.push(JsonColumnType::Null);
    }
    let schema = columns.schema();
    let batches = {
        let schema = schema.clone();
        let starts = (0..items.len()).step_by(BATCH_ROWS);
        starts.map(move |start| {
            let end = items.len().min(start + BATCH_ROWS);
            columns.batch(&schema, &items[start..end])
        })
    };
    Ok(QueryRows::new(schema, futures::stream::iter(batches).boxed()))
}

impl InferredColumns {
    fn infer(items: &[Value]) -> Result<Self, Error> {
        if !items.iter().all(Value::is_object) {
            let kind =
                items.iter().fold(JsonColumnType::Null, |kind, item| kind.widen(JsonColumnType::from_value(item)));
            return Ok(Self { names: vec![VALUE_COLUMN.to_owned()], column_types: vec![kind], are_members: false });
        }
        let mut indexes: HashMap<&str, usize> = HashMap::new();
        let (mut names, mut kinds) = (Vec::new(), Vec::new());
        for (name, value) in items.iter().filter_map(Value::as_object).flatten() {
            let index = *indexes.entry(name).or_insert_with(|| {
                names.push(name.clone());
                kinds.push(JsonColumnType::Null);
                names.len() - 1
            });
            if names.len() > COLUMNS_MAX {
                let message = format!("the rows of the answer have more than {COLUMNS_MAX} different members");
                return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Request fewer members from the API."));
            }
            kinds[index] = kinds[index].widen(JsonColumnType::from_value(value));
        }
        Ok(Self { names, column_types: kinds, are_members: true })
    }

    fn schema(&self) -> SchemaRef {
        let fields =
            self.names.iter().zip(&self.column_types).map(|(name, kind)| Field::new(name, kind.data_type(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn batch(&self, schema: &SchemaRef, items: &[Value]) -> Result<RecordBatch, Error> {
        let columns = self.names.iter().zip(&self.column_types).map(|(name, kind)| {
            let values = items.iter().map(|item| if self.are_members { item.get(name) } else { Some(item) });
            kind.column(values)
        });
        // Objects without members are rows without columns, so the number of rows must be set.
        let options = RecordBatchOptions::new().with_row_count(Some(items.len()));
        RecordBatch::try_new_with_options(schema.clone(), columns.collect(), &options)
            .map_err(|error| Error::internal(format!("the rows of an http tool are malformed: {error}")))
    }
}

impl JsonColumnType {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(number) if number.is_f64() => Self::Float,
            // Integers beyond the signed 64 bits keep their digits as text.
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Self::Text,
        }
    }

    fn widen(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (one, other) if one == other => one,
            (Self::Integer, Self::Float) | (Self::Float, Self::Integer) => Self::Float,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Null | Self::Text => DataType::Utf8,
        }
    }

    fn column<'a>(self, values: impl Iterator<Item = Option<&'a Value>>) -> ArrayRef {
        match self {
            Self::Boolean => Arc::new(values.map(|value| value?.as_bool()).collect::<BooleanArray>()),
            Self::Integer => Arc::new(values.map(|value| value?.as_i64()).collect::<Int64Array>()),
            Self::Float => Arc::new(values.map(|value| value?.as_f64()).collect::<Float64Array>()),
            Self::Null | Self::Text => Arc::new(values.map(|value| value_text(value?)).collect::<StringArray>()),
        }
    }
}

fn value_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;
    use futures::FutureExt;
    use serde_json::json;

    use super::*;

    /// Types, names and values, one row in each line.
    fn render_table(items: &Value) -> String {
        let rows = rows_from_json(items.as_array().unwrap().clone(), None).unwrap();
        let fields = rows.schema.fields();
        let types: Vec<_> = fields.iter().map(|field| field.data_type().to_string()).collect();
        let names: Vec<_> = fields.iter().map(|field| field.name().clone()).collect();
        let mut lines = vec![types.join(" "), names.join(" | ")];
        for batch in rows.batches.collect::<Vec<_>>().now_or_never().unwrap() {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayRef| match column.is_null(row) {
                    true => "-".to_owned(),
                    false => array_value_to_string(column, row).unwrap(),
                };
                lines.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" | "));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn infers_column_types_in_order_of_appearance() {
        let items = json!([
            {"id": 1, "b": true, "f": 1, "s": "x", "mixed": 1, "n": null, "deep": {"z": [1, null]}},
            {"id": -2, "b": null, "f": 0.5, "late": 1, "mixed": "two", "n": null, "deep": []},
            {"mixed": false, "big": 18_446_744_073_709_551_615_u64},
        ]);
        insta::assert_snapshot!(render_table(&items), @r#"
        Int64 Boolean Float64 Utf8 Utf8 Utf8 Utf8 Int64 Utf8
        id | b | f | s | mixed | n | deep | late | big
        1 | true | 1.0 | x | 1 | - | {"z":[1,null]} | - | -
        -2 | - | 0.5 | - | two | - | [] | 1 | -
        - | - | - | - | false | - | - | - | 18446744073709551615
        "#);
    }

    #[test]
    fn scalar_items_become_one_column() {
        insta::assert_snapshot!(render_table(&json!([1, 2.5, null])), @r"
        Float64
        value
        1.0
        2.5
        -
        ");
    }

    #[test]
    fn a_table_without_rows_has_the_requested_column() {
        let rows = rows_from_json(Vec::new(), Some("id")).unwrap();
        assert_eq!(rows.schema.field(0).name(), "id");
        assert!(rows_from_json(Vec::new(), None).unwrap().schema.fields().is_empty());
    }

    #[test]
    fn long_tables_come_in_batches_and_empty_objects_are_rows() {
        let rows = rows_from_json(vec![json!({}); 2_500], None).unwrap();
        let batches = rows.batches.collect::<Vec<_>>().now_or_never().unwrap();
        let counts: Vec<usize> = batches.iter().map(|batch| batch.as_ref().unwrap().num_rows()).collect();
        assert_eq!(counts, [1_024, 1_024, 452]);
    }

    #[test]
    fn too_many_columns_are_refused() {
        let items: Vec<Value> = (0..=COLUMNS_MAX).map(|index| json!({ format!("c{index}"): 1 })).collect();
        assert_eq!(rows_from_json(items, None).err().unwrap().kind(), ErrorKind::TooLarge);
    }
}
