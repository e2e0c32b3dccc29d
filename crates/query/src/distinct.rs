//! The distinct values of one column, sorted: the result of `extract`.
//!
//! Values are compared in Arrow's row format, whose byte order is the order of the values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use tidegate_core::{Error, ErrorKind, nearest_names};

use crate::format::unique_names;

const VALUES_MAX: usize = 100_000;
const BYTES_MAX: usize = 8 * 1024 * 1024;
const BATCH_VALUES: usize = 1_024;

/// Checks that the answer with the columns `schema` has the column `extract`, and that its values can be compared.
///
/// # Errors
/// `InvalidArguments` with the nearest names.
pub fn check_extract(extract: &str, schema: &SchemaRef) -> Result<(), Error> {
    DistinctValues::new(extract, schema).map(drop)
}

pub(crate) struct DistinctValues {
    index: usize,
    name: String,
    /// The metadata of the field of the column.
    metadata: HashMap<String, String>,
    converter: RowConverter,
    values: HashSet<Box<[u8]>>,
    bytes: usize,
}

impl DistinctValues {
    fn new(name: &str, schema: &SchemaRef) -> Result<Self, Error> {
        let names = unique_names(schema);
        let index = find_column(name, &names).ok_or_else(|| {
            let message = format!("extract: the answer has no column {name:?}");
            Error::new(ErrorKind::InvalidArguments, message).with_choices(sort_by_similarity(name, &names))
        })?;
        let options = SortOptions { descending: false, nulls_first: false };
        let field = SortField::new_with_options(schema.field(index).data_type().clone(), options);
        let converter = RowConverter::new(vec![field])
            .map_err(|_| incomparable_type_error(name, schema.field(index).data_type()))?;
        let metadata = schema.field(index).metadata().clone();
        Ok(Self { index, name: names[index].clone(), metadata, converter, values: HashSet::new(), bytes: 0 })
    }

    /// The collector for the column `extract` of `schema`, if it is set, and the columns of the answer.
    pub(crate) fn for_answer(extract: Option<&str>, schema: &SchemaRef) -> Result<(Option<Self>, SchemaRef), Error> {
        let Some(name) = extract else { return Ok((None, schema.clone())) };
        let distinct = Self::new(name, schema)?;
        let columns = Schema::new(vec![distinct.field(schema.field(distinct.index).data_type())]);
        Ok((Some(distinct), Arc::new(columns)))
    }

    fn field(&self, data_type: &DataType) -> Field {
        Field::new(&self.name, data_type.clone(), true).with_metadata(self.metadata.clone())
    }

    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let column = batch.column(self.index);
        let rows = self
            .converter
            .convert_columns(std::slice::from_ref(column))
            .map_err(|error| Error::internal(format!("the values of {} cannot be compared: {error}", self.name)))?;
        for row in &rows {
            let value: &[u8] = row.as_ref();
            if self.values.contains(value) {
                continue;
            }
            self.bytes += value.len();
            if self.values.len() >= VALUES_MAX || self.bytes > BYTES_MAX {
                return Err(self.too_many_values_error());
            }
            self.values.insert(value.into());
        }
        Ok(())
    }

    fn too_many_values_error(&self) -> Error {
        let (name, mebibytes) = (&self.name, BYTES_MAX >> 20);
        let message =
            format!("extract: column {name:?} has more than {VALUES_MAX} unique values or {mebibytes} MiB of them");
        Error::new(ErrorKind::TooLarge, message).with_hint("Narrow the query with where, or select a coarser value.")
    }

    /// The values in their order, null last, as batches of one column.
    pub(crate) fn into_batches(self) -> Result<Vec<RecordBatch>, Error> {
        let fault = |error: arrow::error::ArrowError| Error::internal(format!("extract failed: {error}"));
        let mut values: Vec<&[u8]> = self.values.iter().map(AsRef::as_ref).collect();
        values.sort_unstable();
        let parser = self.converter.parser();
        let batch = |values: &[&[u8]]| -> Result<RecordBatch, Error> {
            let rows = values.iter().map(|value| parser.parse(value));
            let columns: Vec<ArrayRef> = self.converter.convert_rows(rows).map_err(fault)?;
            let fields: Vec<Field> = columns.iter().map(|column| self.field(column.data_type())).collect();
            RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(fault)
        };
        values.chunks(BATCH_VALUES).map(batch).collect()
    }
}

/// Finds a column by name, ignoring case; `table.column` matches by its last part.
fn find_column(name: &str, names: &[String]) -> Option<usize> {
    let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
    let find = |name: &str, is_meant: fn(&str, &str) -> bool| names.iter().position(|other| is_meant(other, name));
    let find_any_case =
        |name| find(name, |other, name| other == name).or_else(|| find(name, str::eq_ignore_ascii_case));
    [name, last].into_iter().find_map(find_any_case)
}

/// Orders `names`, those similar to `expected` first.
pub(crate) fn sort_by_similarity(expected: &str, names: &[String]) -> Vec<String> {
    let mut ordered = nearest_names(expected, names.iter().map(String::as_str));
    ordered.extend(names.iter().filter(|name| !ordered.contains(name)).cloned().collect::<Vec<_>>());
    ordered
}

fn incomparable_type_error(name: &str, data_type: &DataType) -> Error {
    let message =
        format!("extract: the values of {name:?} ({}) cannot be compared", crate::format::type_name(data_type));
    Error::new(ErrorKind::InvalidArguments, message).with_hint("Extract a column of plain values.")
}
