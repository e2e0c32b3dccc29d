//! The relations of the catalogs: their columns, and batches of their rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};

use crate::data_type::timestamptz;

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
        let columns = columns.split(',').filter_map(|column| column.trim().split_once(' '));
        let fields = columns.map(|(name, of)| Field::new(name, data_type(of), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    };
    relations.into_iter().map(|(name, columns)| (name, schema_of(&columns))).collect()
}

fn data_type(of: &str) -> DataType {
    match of {
        "bool" => DataType::Boolean,
        "int4" => DataType::Int32,
        "timestamptz" => timestamptz(),
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

/// Builds the rows of a catalog column by column. Columns without values are NULL.
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

    pub(super) fn numbers(self, column: &'static str, values: impl IntoIterator<Item = Option<i64>>) -> Self {
        self.with(column, Arc::new(values.into_iter().collect::<Int64Array>()))
    }

    /// Sets the same text in all rows of some columns.
    pub(super) fn text(self, columns: &[&'static str], value: &str) -> Self {
        let rows = self.rows;
        columns.iter().fold(self, |all, column| all.texts(column, std::iter::repeat_n(value, rows)))
    }

    pub(super) fn flag(self, columns: &[&'static str], value: bool) -> Self {
        let values: ArrayRef = Arc::new(BooleanArray::from(vec![value; self.rows]));
        columns.iter().fold(self, |all, column| all.with(column, values.clone()))
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
                None => new_null_array(field.data_type(), self.rows),
            });
        }
        if let Some(column) = self.columns.keys().next() {
            return internal_err!("a catalog has no column {column}");
        }
        Ok(RecordBatch::try_new(self.schema, columns)?)
    }
}
