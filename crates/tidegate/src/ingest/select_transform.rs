//! The transform of a table: a SELECT over the rows that arrive.

use arrow::array::RecordBatch;
use async_trait::async_trait;
use tidegate_core::Error;
use tidegate_engines::{Engine, RowSelect};
use tidegate_ingest::RowTransform;

/// Computes rows by SQL.
#[derive(Debug)]
pub(crate) struct SelectTransform(RowSelect);

impl SelectTransform {
    /// Parses a SELECT over the table `incoming`.
    ///
    /// # Errors
    /// Those of [`RowSelect::parse`].
    pub(crate) fn parse(sql: &str, engine: &Engine) -> Result<Self, Error> {
        RowSelect::parse(sql, engine).map(Self)
    }
}

#[async_trait]
impl RowTransform for SelectTransform {
    async fn transform(&self, rows: RecordBatch) -> Result<Vec<RecordBatch>, Error> {
        self.0.apply(rows).await
    }
}
