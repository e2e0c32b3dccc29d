//! A database of one table whose rows are in memory, so that the parts above an engine are measured without one.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use async_trait::async_trait;
use tidegate_core::{Error, Principal};
use tidegate_query::{Catalog, ColumnEntry, Database, DatabaseKind, Plan, QueryRows, TableEntry, TableStatus};
use tidegate_runtime::Job;
use tidegate_sql::{SqlDialect, Statement};

/// The columns of the table, with their SQL types.
pub const COLUMNS: [(&str, &str); 4] =
    [("id", "BIGINT"), ("value", "DOUBLE"), ("label", "VARCHAR"), ("seen_at", "TIMESTAMP")];

/// The table's schema.
pub fn schema() -> SchemaRef {
    let types = [DataType::Int64, DataType::Float64, DataType::Utf8, DataType::Timestamp(TimeUnit::Microsecond, None)];
    let fields = COLUMNS.iter().zip(types).map(|((name, _), data_type)| Field::new(*name, data_type, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows that begin with `first`.
///
/// # Errors
/// Never: the columns fit the schema.
pub fn batch(first: i64, rows: i64) -> Result<RecordBatch, ArrowError> {
    let ids = first..first + rows;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(ids.clone())),
        Arc::new(Float64Array::from_iter_values(ids.clone().map(|id| (id * 7_919 % 100_000_000) as f64 / 1_000.0))),
        Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("station {}", id % 5_000)))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(ids.map(|id| 1_767_225_600_000_000 + id * 1_000_000))),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// A database whose table `rows` is `batches`, whatever is asked.
pub struct Ready {
    batches: Arc<[RecordBatch]>,
}

impl Ready {
    /// A database of `batches`, which have the schema of [`schema`].
    pub fn new(batches: Vec<RecordBatch>) -> Self {
        Self { batches: batches.into() }
    }
}

#[async_trait]
impl Database for Ready {
    fn name(&self) -> &str {
        "ready"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("memory")
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let status = TableStatus::Readable;
        let table = TableEntry { name: "rows".to_owned(), rows: None, comment: None, facts: None, status };
        Ok(Arc::new(Catalog::from_tables(vec![table])))
    }

    async fn columns(&self, _table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let column = |(name, type_name): (&str, &str)| ColumnEntry {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            nullable: true,
            ..ColumnEntry::default()
        };
        Ok(COLUMNS.into_iter().map(column).collect())
    }

    async fn plan(&self, _statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(ReadyPlan { batches: self.batches.clone() }))
    }
}

struct ReadyPlan {
    batches: Arc<[RecordBatch]>,
}

#[async_trait]
impl Plan for ReadyPlan {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok("rows in memory".to_owned())
    }

    async fn run(self: Box<Self>, _job: &Arc<Job>) -> Result<QueryRows, Error> {
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        Ok(QueryRows::new(schema(), Box::pin(futures::stream::iter(batches))))
    }
}
