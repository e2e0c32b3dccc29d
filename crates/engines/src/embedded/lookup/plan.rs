//! The plan of a lookup: its rows, which are in memory.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, Scalar};
use datafusion::arrow::compute::kernels::cmp;
use datafusion::arrow::compute::{and, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use tidegate_core::Error;
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Lookup, LookupComparison, LookupCondition, LookupOutput, Parameter};

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
        let matches = match matching_rows(&lookup.conditions, rows)? {
            Some(matches) => filter_record_batch(rows, &matches).ok()?,
            None => rows.clone(),
        };
        let offset = lookup.offset.min(matches.num_rows());
        let length = lookup.limit.unwrap_or(usize::MAX).min(matches.num_rows() - offset);
        let columns = positions.iter().map(|position| matches.column(*position).slice(offset, length)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        let result = RecordBatch::try_new_with_options(schema, columns, &options).ok()?;
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

/// The rows that meet all `conditions`; `Some(None)` if there are none.
#[expect(clippy::option_option, reason = "without conditions, all rows match")]
fn matching_rows(conditions: &[LookupCondition<'_>], rows: &RecordBatch) -> Option<Option<BooleanArray>> {
    let mut all: Option<BooleanArray> = None;
    for condition in conditions {
        let (position, field) = rows.schema_ref().fields().find(condition.column)?;
        let value = Scalar::new(comparable_value(field, &condition.value)?);
        let column = rows.column(position);
        let matches = match condition.comparison {
            LookupComparison::Equal => cmp::eq(column, &value),
            LookupComparison::NotEqual => cmp::neq(column, &value),
            LookupComparison::Less => cmp::lt(column, &value),
            LookupComparison::LessOrEqual => cmp::lt_eq(column, &value),
            LookupComparison::Greater => cmp::gt(column, &value),
            LookupComparison::GreaterOrEqual => cmp::gt_eq(column, &value),
        };
        let matches = matches.ok()?;
        // NULL in one of them leaves the row out, whatever the other is.
        all = Some(match all {
            Some(others) => and(&others, &matches).ok()?,
            None => matches,
        });
    }
    Some(all)
}

/// `value` as an array of one value of the column's type. `None` if PostgreSQL would convert the column, or if the type has
/// rules of its own.
fn comparable_value(field: &Field, value: &Parameter) -> Option<ArrayRef> {
    use DataType::{Boolean, Int8, Int16, Int32, Int64, LargeUtf8, UInt8, UInt16, UInt32, Utf8, Utf8View};
    let scalar = match (field.data_type(), value) {
        (Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32, Parameter::Integer(value)) => {
            ScalarValue::Int64(Some(*value))
        }
        (Utf8 | LargeUtf8 | Utf8View, Parameter::Text(text)) => ScalarValue::Utf8(Some(text.clone())),
        (Boolean, Parameter::Boolean(value)) => ScalarValue::Boolean(Some(*value)),
        _ => return None,
    };
    let scalar = scalar.cast_to(field.data_type()).ok().filter(|_| field.metadata().is_empty())?;
    scalar.to_array().ok()
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

    fn is_pipeline_breaking(&self) -> bool {
        false
    }

    async fn explain(&self) -> Result<String, Error> {
        let (table, rows) = (&self.table, self.table_rows);
        Ok(format!("Lookup: compares the columns of all {rows} rows of {table}, which are in memory"))
    }

    async fn run(self: Box<Self>, _: &Arc<Job>) -> Result<QueryRows, Error> {
        Ok(QueryRows::from_batch(self.result))
    }
}
