//! Stores rows that do not fit inline, so that they can be read page by page. No query runs twice.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;

use super::Executor;
use super::query_id::compute_query_id;
use super::row_stream::{RecordBatchStream, abandon_answer, stream_rows};
use super::running_queries::RunningQuery;
use crate::answer::{AnswerWriter, NextPage, ProgressReporter, TruncationHints};
use crate::body::stored_columns;
use crate::format::resolve_format;
use crate::request::{OverflowPolicy, PageOptions, QueryRequest};
use crate::secrets::redact_stream;
use tidegate_core::{Budget, Content, Error, ErrorKind};
use tidegate_results::{CacheKey, NewResult, ResultEnd, ResultStore, ResultWriter, StoredResult};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{Answer, AnswerMeta, Job, ReplySender};

/// Stores the rows of an answer: those that do not fit inline, or all of them for the cache.
pub(super) struct AnswerRecorder<'a> {
    store: &'a Arc<ResultStore>,
    database: String,
    policies: u64,
    rows_max: Option<u64>,
    is_linked: bool,
    cache_key: Option<CacheKey>,
    reply: &'a ReplySender,
    query: &'a RunningQuery,
}

impl<'a> AnswerRecorder<'a> {
    /// The recorder for the answer to `request`, which runs as `query`, if it may be stored; `key` is its cache key.
    pub(super) fn for_query(
        store: Option<&'a Arc<ResultStore>>,
        request: &QueryRequest,
        key: Option<CacheKey>,
        reply: &'a ReplySender,
        query: &'a RunningQuery,
    ) -> Option<Self> {
        let (Some(store), OverflowPolicy::Store { linked, .. }) = (store, request.overflow) else { return None };
        let job = reply.job();
        // For a body, or an answer without a budget, any number of rows would have to be buffered.
        if job.format().is_some() || job.limits().inline == Budget::default() {
            return None;
        }
        let (database, rows_max) = (request.database.name().to_owned(), request.max_rows);
        let policies = request.database.row_policy_fingerprint(job.principal());
        let (is_linked, cache_key) = (linked, key.filter(|_| job.missing_nodes().is_none()));
        Some(Self { store, database, policies, rows_max, is_linked, cache_key, reply, query })
    }

    /// Ends `answer`, which contains the first `visible` of `rows`, and then stores them, up to the row limit.
    pub(super) async fn continue_in_store(
        &self,
        rows: RecordBatchStream,
        schema: &SchemaRef,
        visible: u64,
        answer: AnswerWriter<'_>,
        mut hints: TruncationHints,
    ) -> Result<AnswerMeta, Error> {
        // If nothing can be stored, the answer ends as it would without a store.
        let Ok(writer) = self.begin_result(schema).await else {
            drop(rows);
            return answer.finish(&hints, None).await;
        };
        let Self { store, is_linked, reply, .. } = *self;
        let job = reply.job();
        let result = writer.result().clone();
        let uri = result.header().id.uri();
        job.set_result_uri(uri.clone());
        let cursor = store.create_cursor(&result, visible, compute_query_id(job), job.caller());
        let next = NextPage { cursor, rows_max: result.row_limit(), uri: is_linked.then_some(uri) };
        hints.budget = next.hint();
        job.report_step(QueryStep::Storing { rows_max: self.rows_max });
        let metadata = answer.finish(&hints, Some(&next)).await?;
        reply.end_early(metadata, store.limits().timeout).await?;
        writer.write_all(rows, visible, job).await?;
        Ok(AnswerMeta::default())
    }

    /// Whether `answer`, which contains `rows`, may be reused and is worth storing.
    pub(super) fn is_cacheable(&self, answer: &AnswerWriter<'_>, rows: &[RecordBatch]) -> bool {
        let is_whole = !answer.is_truncated() && self.are_all_rows(count_rows(rows));
        is_whole && self.cache_key.is_some_and(|key| self.query.is_worth_storing(key))
    }

    /// Ends `answer`, which contains all of `rows`, and stores them for the cache.
    pub(super) async fn store(
        self,
        rows: Vec<RecordBatch>,
        schema: &SchemaRef,
        answer: AnswerWriter<'_>,
        hints: TruncationHints,
    ) -> Result<AnswerMeta, Error> {
        let visible = count_rows(&rows);
        let metadata = answer.finish(&hints, None).await?;
        let Ok(writer) = self.begin_result(schema).await else { return Ok(metadata) };
        self.reply.end_early(metadata, self.store.limits().timeout).await?;
        let rows = futures::stream::iter(rows.into_iter().map(Ok)).boxed();
        writer.write_all(rows, visible, self.reply.job()).await?;
        Ok(AnswerMeta::default())
    }

    async fn begin_result(&self, schema: &SchemaRef) -> Result<ResultWriter, Error> {
        let bytes_max = Some(self.store.limits().continued_bytes);
        let (database, policies) = (self.database.as_str(), self.policies);
        let new_result = NewResult { job: self.reply.job(), database, policies, bytes_max, rows_max: self.rows_max };
        let writer = self.store.begin(new_result, stored_columns(schema)).await?;
        Ok(writer.with_cache_key(self.cache_key))
    }

    /// Whether `rows` rows are all rows; at the limit this is unknown.
    fn are_all_rows(&self, rows: u64) -> bool {
        self.rows_max.is_none_or(|max| rows < max)
    }
}

fn count_rows(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}

impl Executor {
    /// The result and the row that `cursor` refers to, if it belongs to the query of `job`.
    ///
    /// # Errors
    /// As [`ResultStore::resolve_cursor`]; `Unavailable` where stored results are disabled.
    pub fn resolve_cursor(&self, cursor: &str, job: &Job) -> Result<(Arc<StoredResult>, u64), Error> {
        let store = self.store.as_ref().ok_or_else(no_store_error)?;
        store.resolve_cursor(cursor, compute_query_id(job), job.caller())
    }

    /// The rows of `result` from `row` on, as many as requested and fit. Waits for rows that are still being written.
    ///
    /// The answer fails when a block cannot be read; with `Unavailable` where stored results are disabled.
    pub fn answer_page(&self, (result, row): (Arc<StoredResult>, u64), page: PageOptions) -> Answer {
        let store = self.store.clone();
        Answer::written(move |reply| async move {
            let store = &store.ok_or_else(no_store_error)?;
            ResultPage { store, result: &result, row, is_linked: false, page }.answer(&reply).await
        })
    }
}

/// A page of a stored result, from a row on.
pub(super) struct ResultPage<'a> {
    pub(super) store: &'a ResultStore,
    pub(super) result: &'a Arc<StoredResult>,
    pub(super) row: u64,
    /// Whether the answer links to the stored result.
    pub(super) is_linked: bool,
    pub(super) page: PageOptions,
}

impl ResultPage<'_> {
    /// Answers with the rows of the page, as many as requested and fit.
    pub(super) async fn answer(self, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let job = reply.job();
        let Self { store, result, row, is_linked, page } = self;
        let PageOptions { format, is_list, rows_max, is_structured } = page;
        if let Some(missing) = &result.header().missing_nodes {
            job.record_missing_nodes(missing)?;
        }
        let progress = ProgressReporter::new(reply.call());
        let (schema, format) = (result.schema(), resolve_format(format, job));
        let is_buffering = is_list || format.needs_several_rows();
        let mut answer = AnswerWriter::new(reply, &progress, format, is_list, rows_max, schema, is_buffering)?;
        if is_structured {
            answer = answer.with_structured(schema);
        }
        // Secret rules may have been added since the rows were stored.
        let mut batches = redact_stream(result.rows_from(row), job);
        let streamed = stream_rows(&mut batches, &mut answer, &progress, None).await;
        drop(batches);
        if let Err(error) = streamed {
            return Err(abandon_answer(answer, error).await?);
        }
        let mut hints =
            TruncationHints { is_list, limit: Some(String::new()), budget: String::new(), rows_before: row };
        let is_last = !answer.is_truncated();
        let Some(visible) = answer.rows_if_truncated() else {
            let metadata = answer.finish(&hints, None).await?;
            return if is_last { report_if_incomplete(result, metadata, reply).await } else { Ok(metadata) };
        };
        let cursor = store.create_cursor(result, row + visible, compute_query_id(job), job.caller());
        let uri = is_linked.then(|| result.header().id.uri());
        let next = NextPage { cursor, rows_max: result.row_limit(), uri };
        hints.limit = Some(next.hint());
        hints.budget = next.hint();
        answer.finish(&hints, Some(&next)).await
    }
}

/// After the last stored row: sends a notice if more rows exist or may exist.
async fn report_if_incomplete(
    result: &StoredResult,
    metadata: AnswerMeta,
    reply: &ReplySender,
) -> Result<AnswerMeta, Error> {
    let line = match (result.progress().end, result.reached_row_limit()) {
        (Some(ResultEnd::Incomplete(reason) | ResultEnd::Removed(reason)), _) => {
            format!("The stored result ends here and is incomplete: {reason}.")
        }
        (_, Some(rows)) => format!(
            "These are the last of the {rows} requested rows (limit, max_rows); more may exist. Raise the limit, or \
             use delivery: \"blocks\" to store all rows."
        ),
        _ => return Ok(metadata),
    };
    if reply.job().format().is_none() {
        reply.send_block(Content::text(line)).await?;
    }
    Ok(AnswerMeta { is_truncated: Some(true), ..metadata })
}

pub(super) fn no_store_error() -> Error {
    Error::new(ErrorKind::Unavailable, "stored results are disabled on this server")
        .with_hint("Request less with where, select or a smaller limit, and leave out cursor and delivery.")
}
