//! The relations of the catalogs: their columns, and batches of their rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, new_empty_array, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err};

/// The schemas of the catalogs.
pub(super) const PG_CATALOG: &str = "pg_catalog";
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";

/// The columns of each relation, by its full name.
static RELATIONS: LazyLock<BTreeMap<String, SchemaRef>> =
    LazyLock::new(|| parse_relations(include_str!("relations.txt")));

fn parse_relations(text: &str) -> BTreeMap<String, SchemaRef> {
    let mut relations: BTreeMap<String, String> = BTreeMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix("  ") {
            None => name = line,
            Some(columns) => {
                let all = relations.entry(name.to_owned()).or_default();
                all.push_str(columns);
                all.push(' ');
            }
        }
    }
    let schema_of = |columns: &str| -> SchemaRef {
        let fields = columns.split(',').filter_map(|column| column.trim().split_once(' ')).map(|(name, of)| {
            let nullable = of.ends_with('?');
            Field::new(name, data_type(of.trim_end_matches('?')), nullable)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    };
    relations.into_iter().map(|(name, columns)| (name, schema_of(&columns))).collect()
}

fn data_type(of: &str) -> DataType {
    if let Some(element) = of.strip_suffix("[]") {
        return DataType::List(Arc::new(Field::new_list_field(data_type(element), true)));
    }
    match of {
        "bool" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" | "oid" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "bytea" => DataType::Binary,
        "interval" => DataType::Interval(IntervalUnit::MonthDayNano),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => DataType::Utf8,
    }
}

/// Returns the full name of a catalog that a statement names, ignoring case. Without a schema, it is one of
/// `pg_catalog`.
pub fn relation_name(schema: Option<&str>, name: &str) -> Option<&'static str> {
    let schema = schema.map_or_else(|| PG_CATALOG.to_owned(), str::to_lowercase);
    let full = format!("{schema}.{}", name.to_lowercase());
    RELATIONS.get_key_value(&full).map(|(name, _)| name.as_str())
}

/// Returns the full names of all catalogs.
#[cfg(test)]
pub(super) fn relation_names() -> impl Iterator<Item = &'static str> {
    RELATIONS.keys().map(String::as_str)
}

/// Builds the rows of a catalog column by column. Columns without values are NULL, or empty if they are never NULL.
pub(super) struct CatalogRows {
    schema: SchemaRef,
    rows: usize,
    columns: HashMap<&'static str, ArrayRef>,
}

impl CatalogRows {
    /// Starts `rows` rows of the catalog with the full name `relation`.
    pub(super) fn new(relation: &str, rows: usize) -> Result<Self> {
        match RELATIONS.get(relation) {
            Some(schema) => Ok(Self { schema: schema.clone(), rows, columns: HashMap::new() }),
            None => internal_err!("there is no catalog {relation}"),
        }
    }

    pub(super) fn texts<T: Into<String>>(self, column: &'static str, values: impl IntoIterator<Item = T>) -> Self {
        self.with(column, Arc::new(values.into_iter().map(|value| Some(value.into())).collect::<StringArray>()))
    }

    pub(super) fn numbers(self, column: &'static str, values: impl IntoIterator<Item = i64>) -> Self {
        self.with(column, Arc::new(Int64Array::from_iter_values(values)))
    }

    pub(super) fn nullable_numbers(
        self,
        column: &'static str,
        values: impl IntoIterator<Item = Option<impl Into<i64>>>,
    ) -> Self {
        self.with(column, Arc::new(values.into_iter().map(|value| value.map(Into::into)).collect::<Int64Array>()))
    }

    pub(super) fn flags(self, column: &'static str, values: impl IntoIterator<Item = bool>) -> Self {
        self.with(column, Arc::new(values.into_iter().map(Some).collect::<BooleanArray>()))
    }

    /// Sets the same text in all rows of some columns.
    pub(super) fn text(self, columns: &[&'static str], value: &str) -> Self {
        let rows = self.rows;
        columns.iter().fold(self, |all, column| all.texts(column, std::iter::repeat_n(value, rows)))
    }

    pub(super) fn number(self, columns: &[&'static str], value: i64) -> Self {
        let rows = self.rows;
        columns.iter().fold(self, |all, column| all.numbers(column, std::iter::repeat_n(value, rows)))
    }

    pub(super) fn flag(self, columns: &[&'static str], value: bool) -> Self {
        let rows = self.rows;
        columns.iter().fold(self, |all, column| all.flags(column, std::iter::repeat_n(value, rows)))
    }

    fn with(mut self, column: &'static str, values: ArrayRef) -> Self {
        self.columns.insert(column, values);
        self
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        let mut columns = Vec::new();
        for field in self.schema.fields() {
            columns.push(match self.columns.remove(field.name().as_str()) {
                Some(values) => cast(&values, field.data_type())?,
                None if field.is_nullable() => new_null_array(field.data_type(), self.rows),
                None => empty_value(field.data_type())?.to_array_of_size(self.rows)?,
            });
        }
        if let Some(column) = self.columns.keys().next() {
            return internal_err!("a catalog has no column {column}");
        }
        Ok(RecordBatch::try_new(self.schema, columns)?)
    }
}

fn empty_value(data_type: &DataType) -> Result<ScalarValue> {
    match data_type {
        DataType::Utf8 => Ok(ScalarValue::Utf8(Some(String::new()))),
        DataType::List(item) => {
            let none = new_empty_array(item.data_type());
            Ok(ScalarValue::List(ScalarValue::new_list_nullable(&[], none.data_type())))
        }
        other => ScalarValue::new_default(other),
    }
}
