//! The first rows of an answer that a tool composes itself, and a cursor to the others: pages over the same snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use futures::{StreamExt, TryStreamExt, future};
use tidegate_core::Error;
use tidegate_results::{NewResult, ResultEnd, ResultStore, ResultWriter};
use tidegate_runtime::Job;

use super::Executor;
use super::delivery::compute_query_id;
use crate::body::stored_columns;
use crate::database::{Database, QueryRows};

/// The first rows of an answer.
#[derive(Debug)]
pub struct FirstRows {
    /// The rows.
    pub batch: RecordBatch,
    /// The number of all rows. Fewer, if the stored ones ended early.
    pub total: usize,
    /// Where the next rows begin, if there are any and they are stored.
    pub cursor: Option<String>,
}

impl Executor {
    /// The first `limit` of `rows`, for callers that may query `database`. The others are stored as pages of the call
    /// `job`, unless it answers with a body or nothing can be stored.
    ///
    /// # Errors
    /// The errors of the rows.
    pub async fn take_first_rows(
        &self,
        rows: QueryRows,
        limit: usize,
        database: &dyn Database,
        job: &Job,
    ) -> Result<FirstRows, Error> {
        let QueryRows { schema, mut batches, .. } = rows;
        let (mut read, mut count) = (Vec::new(), 0);
        while count <= limit {
            let Some(batch) = batches.next().await.transpose()? else { break };
            count += batch.num_rows();
            read.push(batch);
        }
        let batch = first_of(&read, limit, &schema)?;
        if count <= limit {
            return Ok(FirstRows { batch, total: count, cursor: None });
        }
        let total = Arc::new(AtomicUsize::new(count));
        let counter = total.clone();
        let rest = batches.inspect_ok(move |batch| {
            counter.fetch_add(batch.num_rows(), Ordering::Relaxed);
        });
        let cursor = match self.begin_pages(&schema, database, job).await {
            Some((store, writer)) => {
                let (result, first) = (writer.result().clone(), limit as u64);
                let rows = futures::stream::iter(read.into_iter().map(Ok)).chain(rest);
                let end = writer.write_all(rows.boxed(), first, job).await?;
                let is_readable = !matches!(end, ResultEnd::Removed(_));
                is_readable.then(|| store.create_cursor(&result, first, compute_query_id(job), job.caller()))
            }
            None => {
                rest.try_for_each(|_| future::ready(Ok(()))).await?;
                None
            }
        };
        Ok(FirstRows { batch, total: total.load(Ordering::Relaxed), cursor })
    }

    /// The result for the pages of `job`. `None` if the answer is a body, without a store, and if it has no room.
    async fn begin_pages(
        &self,
        schema: &SchemaRef,
        database: &dyn Database,
        job: &Job,
    ) -> Option<(&Arc<ResultStore>, ResultWriter)> {
        let store = self.store.as_ref().filter(|_| job.format().is_none())?;
        let new_result = NewResult {
            policies: database.row_policy_fingerprint(job.principal()),
            bytes_max: Some(store.limits().continued_bytes),
            ..NewResult::new(job, database.name())
        };
        let writer = store.begin(new_result, stored_columns(schema)).await.ok()?;
        Some((store, writer))
    }
}

/// The first `limit` rows of `batches`.
fn first_of(batches: &[RecordBatch], limit: usize, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let mut left = limit;
    let first: Vec<RecordBatch> = batches
        .iter()
        .map(|batch| {
            let rows = batch.num_rows().min(left);
            left -= rows;
            batch.slice(0, rows)
        })
        .collect();
    concat_batches(schema, &first).map_err(|error| Error::internal(format!("the first rows: {error}")))
}
