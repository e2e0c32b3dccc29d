//! The plan of a lookup: its rows, which are in memory.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{and, filter};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr_common::datum::apply_cmp;
use tidegate_core::Error;
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Lookup, LookupCondition, LookupOutput, Parameter};

use crate::embedded::comparison_operator::comparison_operator;

/// A lookup with its result. It was cheaper to compute than a plan would be.
#[derive(Debug)]
pub(in crate::embedded) struct LookupPlan {
    result: RecordBatch,
    table: String,
    table_rows: usize,
}

impl LookupPlan {
    /// Looks up in `rows`, all rows of the table called `table`. `None` if a column does not exist or if a comparison
    /// needs a conversion.
    pub(super) fn new(lookup: &Lookup<'_>, table: &str, rows: &RecordBatch) -> Option<Self> {
        let (positions, schema) = output_columns(lookup, rows.schema_ref())?;
        let matches = matching_rows(&lookup.conditions, rows)?;
        let columns = positions.iter().map(|position| filter(rows.column(*position), &matches));
        // A lookup has at least one column.
        let found = RecordBatch::try_new(schema, columns.collect::<Result<_, _>>().ok()?).ok()?;
        let offset = lookup.offset.min(found.num_rows());
        let length = lookup.limit.unwrap_or(usize::MAX).min(found.num_rows() - offset);
        let result = found.slice(offset, length);
        Some(Self { result, table: table.to_owned(), table_rows: rows.num_rows() })
    }
}

/// The positions of the columns of the result, and its schema.
fn output_columns(lookup: &Lookup<'_>, schema: &SchemaRef) -> Option<(Vec<usize>, SchemaRef)> {
    let (mut positions, mut fields) = (Vec::new(), Vec::new());
    for output in &lookup.outputs {
        match output {
            LookupOutput::All => {
                positions.extend(0..schema.fields().len());
                fields.extend(schema.fields().iter().cloned());
            }
            LookupOutput::Column { name, alias } => {
                let (position, field) = schema.fields().find(name)?;
                positions.push(position);
                fields.push(match alias {
                    Some(alias) => Arc::new(Field::clone(field).with_name(*alias)),
                    None => field.clone(),
                });
            }
        }
    }
    let is_repeated = |(at, field): (usize, &Arc<Field>)| fields[..at].iter().any(|other| other.name() == field.name());
    if fields.iter().enumerate().any(is_repeated) {
        return None;
    }
    let schema = Schema::new_with_metadata(Fields::from(fields), schema.metadata().clone());
    Some((positions, Arc::new(schema)))
}

/// Whether each row meets all `conditions`. `None` if a column does not exist or if a comparison needs a conversion.
fn matching_rows(conditions: &[LookupCondition<'_>], rows: &RecordBatch) -> Option<BooleanArray> {
    let mut all = BooleanArray::new(BooleanBuffer::new_set(rows.num_rows()), None);
    for condition in conditions {
        let (position, field) = rows.schema_ref().fields().find(condition.column)?;
        let column = ColumnarValue::Array(rows.column(position).clone());
        let value = ColumnarValue::Scalar(comparable_value(field, &condition.value)?);
        let matches = apply_cmp(comparison_operator(condition.comparator), &column, &value).ok()?;
        let matches = matches.into_array(rows.num_rows()).ok()?;
        // NULL in one of them leaves the row out, whatever the other is.
        all = and(&all, matches.as_boolean_opt()?).ok()?;
    }
    Some(all)
}

/// `value` with the type of the column. `None` if PostgreSQL would convert the column, or if the type has
/// rules of its own.
fn comparable_value(field: &Field, value: &Parameter) -> Option<ScalarValue> {
    use DataType::{Boolean, Int8, Int16, Int32, Int64, LargeUtf8, UInt8, UInt16, UInt32, Utf8, Utf8View};
    let scalar = match (field.data_type(), value) {
        (Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32, Parameter::Integer(value)) => {
            ScalarValue::Int64(Some(*value))
        }
        (Utf8 | LargeUtf8 | Utf8View, Parameter::Text(text)) => ScalarValue::Utf8(Some(text.clone())),
        (Boolean, Parameter::Boolean(value)) => ScalarValue::Boolean(Some(*value)),
        _ => return None,
    };
    scalar.cast_to(field.data_type()).ok().filter(|_| field.metadata().is_empty())
}

#[async_trait]
impl Plan for LookupPlan {
    fn schema(&self) -> SchemaRef {
        self.result.schema()
    }

    fn estimated_rows(&self) -> Option<u64> {
        Some(self.result.num_rows() as u64)
    }

    fn estimated_bytes(&self) -> Option<u64> {
        Some(0)
    }

    async fn explain(&self) -> Result<String, Error> {
        let (table, rows) = (&self.table, self.table_rows);
        Ok(format!("Lookup: compares the columns of all {rows} rows of {table}, which are in memory"))
    }

    async fn run(self: Box<Self>, _: &Arc<Job>) -> Result<QueryRows, Error> {
        Ok(QueryRows::from_batch(self.result))
    }
}
