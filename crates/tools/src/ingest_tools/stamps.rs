//! Columns that get their value from the caller, whatever the body has.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde_json::Value;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::ColumnStamp;

const EXTENSION_NAME: &str = "ARROW:extension:name";
const JSON_EXTENSION: &str = "arrow.json";

/// The values of the stamped columns of one write.
#[derive(Debug)]
pub(crate) struct Stamps(Vec<StampedColumn>);

#[derive(Debug)]
struct StampedColumn {
    name: String,
    value: String,
}

/// The columns of a body and of the table that gets its rows.
#[derive(Debug, Clone)]
pub(crate) struct WriteSchemas {
    /// The columns as the body is decoded: a stamped column takes any value, because it is ignored.
    pub(crate) body: SchemaRef,
    /// The columns of the table.
    pub(crate) table: SchemaRef,
}

impl Stamps {
    /// The values for the rows of `principal`.
    ///
    /// # Errors
    /// `Forbidden` if the principal lacks an attribute.
    pub(crate) fn new(stamps: &[ColumnStamp], table: &str, principal: &Principal) -> Result<Self, Error> {
        let stamped = stamps.iter().map(|stamp| {
            let value = attribute_value(&stamp.attribute, principal).ok_or_else(|| missing(stamp, table))?;
            Ok(StampedColumn { name: stamp.column.clone(), value })
        });
        stamped.collect::<Result<_, _>>().map(Self)
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| column.name.as_str())
    }

    /// The columns of a new table that were inferred from a body: stamped ones are text, whatever the body has.
    pub(super) fn correct_inferred(&self, columns: &Schema) -> Schema {
        let fields = columns.fields().iter().map(|field| match self.value_of(field.name()) {
            Some(_) => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            None => field.clone(),
        });
        Schema::new(fields.collect::<Vec<_>>())
    }

    /// The schemas for a body of a table with these columns. A stamped column that is not among them comes last.
    pub(crate) fn schemas(&self, columns: &Schema, format: BodyFormat) -> WriteSchemas {
        let mut table: Vec<FieldRef> = columns.fields().iter().cloned().collect();
        let absent = self.names().filter(|name| columns.column_with_name(name).is_none());
        table.extend(absent.map(|name| Arc::new(Field::new(name, DataType::Utf8, true))));
        let body = table.iter().map(|field| match self.value_of(field.name()) {
            Some(_) => Arc::new(ignored_field(field.name(), format)),
            None => field.clone(),
        });
        let body = Arc::new(Schema::new(body.collect::<Vec<_>>()));
        WriteSchemas { body, table: Arc::new(Schema::new_with_metadata(table, columns.metadata().clone())) }
    }

    /// The batch with the values of the caller in the stamped columns. Columns that the body added stay at the end.
    ///
    /// # Errors
    /// A fault of the server if a stamped column is no text.
    pub(crate) fn apply(&self, batch: RecordBatch, table: &SchemaRef) -> Result<RecordBatch, Error> {
        if self.0.is_empty() {
            return Ok(batch);
        }
        let rows = batch.num_rows();
        let mut fields: Vec<FieldRef> = table.fields().iter().cloned().collect();
        fields.extend(batch.schema().fields().iter().skip(fields.len()).cloned());
        let columns = fields.iter().zip(batch.columns()).map(|(field, column)| match self.value_of(field.name()) {
            Some(value) => constant(value, rows, field.data_type()),
            None => Ok(column.clone()),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|error| Error::internal(format!("a batch with stamped columns is invalid: {error}")))
    }

    /// Columns with the values of the caller, for `rows` rows.
    pub(super) fn columns(&self, rows: usize) -> impl Iterator<Item = ArrayRef> {
        self.0.iter().map(move |column| {
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(column.value.as_str(), rows))) as ArrayRef
        })
    }

    fn value_of(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|column| column.name == name).map(|column| column.value.as_str())
    }
}

fn constant(value: &str, rows: usize, data_type: &DataType) -> Result<ArrayRef, Error> {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)));
    match data_type {
        DataType::Utf8 => Ok(values),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(_, _) => cast(&values, data_type)
            .map_err(|error| Error::internal(format!("a stamped value cannot be cast: {error}"))),
        other => Err(Error::internal(format!("a stamped column has the type {other} instead of text"))),
    }
}

/// A column whose values in the body are ignored: in JSON they may have any type.
fn ignored_field(name: &str, format: BodyFormat) -> Field {
    let field = Field::new(name, DataType::Utf8, true);
    match format {
        BodyFormat::Json | BodyFormat::Ndjson => {
            field.with_metadata([(EXTENSION_NAME.to_owned(), JSON_EXTENSION.to_owned())].into())
        }
        BodyFormat::Csv | BodyFormat::Arrow | BodyFormat::Parquet => field,
    }
}

fn attribute_value(attribute: &str, principal: &Principal) -> Option<String> {
    match attribute {
        "tenant" => principal.tenant.clone(),
        "subject" => Some(principal.subject.clone()),
        attribute => {
            let path = attribute.strip_prefix("claims.")?;
            // The name of a claim may itself have dots.
            let claim = principal.claims.get(path).or_else(|| {
                let mut members = path.split('.');
                let first = principal.claims.get(members.next()?)?;
                members.try_fold(first, |value, name| value.get(name))
            });
            match claim? {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(flag) => Some(flag.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            }
        }
    }
}

fn missing(stamp: &ColumnStamp, table: &str) -> Error {
    let attribute = match stamp.attribute.strip_prefix("claims.") {
        Some(claim) => format!("the claim {claim}"),
        None => format!("the {}", stamp.attribute),
    };
    let column = &stamp.column;
    let message = format!("the column {column:?} of table {table:?} gets {attribute} of the caller, and you have none");
    Error::new(ErrorKind::Forbidden, message)
        .with_hint("Call with credentials that carry it. It cannot be sent with the rows.")
}
