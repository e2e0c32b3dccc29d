//! From rows to the wire: the rows of a query, those that a tool has, and a page of a stored result.
//!
//! Each step leaves its rows to the next one:
//!
//! 1. Mask: secrets are replaced in the batches, before anything else reads them (`secrets`).
//! 2. Extract: the distinct values of one column replace the rows, if they are the answer (`distinct`).
//! 3. Encode: rows become text, or batches bytes (`body`, `format`).
//! 4. Fence: the text of a model is delimited as data; a body is not (`answer`).
//! 5. Budget: the first row that does not fit ends the answer (`answer`).
//! 6. Page: a cursor names that row, and the answer ends with it.
//! 7. Store: the rows are stored from there on, after the end of the answer. No query runs twice.
//!
//! Answers without rows have the steps in `reply/answer.rs` of `runtime`.
//!
//! An earlier answer is reused for the same statement, by a caller with the same rights, over unchanged data. Storing
//! an answer for that takes some milliseconds, and on a busy server the time of a query includes that of the others. So
//! only answers that are worth it are stored.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::{FutureExt, StreamExt};
use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{Budget, CallerIdentity, Content, Error, ErrorKind};
use tidegate_results::{CacheKey, NewResult, ResultEnd, ResultStore, ResultWriter, StoredResult};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{Answer, AnswerMeta, Job, ReplySender};
use tidegate_sql::Statement;

use super::{Executor, RecordBatchStream, next_batch};
use crate::answer::{AnswerWriter, NextPage};
use crate::body::stored_columns;
use crate::database::Freshness;
use crate::distinct::DistinctValues;
use crate::format::{mark_schema, resolve_format};
use crate::progress::ProgressReporter;
use crate::request::{OutputOptions, OverflowPolicy, QueryRequest};
use crate::secrets::redact_stream;
use crate::stable_hash::StableHasher;

/// Arguments that do not identify the query.
const OUTPUT_ARGUMENTS: [&str; 8] =
    ["cursor", "delivery", "format", "limit", "max_rows", "mode", "no_cache", "save_as"];

/// An answer before its first row.
pub(super) struct RowAnswer<'a> {
    /// Collects the distinct values of one column, if they are the answer instead of the rows.
    distinct: Option<DistinctValues>,
    writer: AnswerWriter<'a>,
    progress: &'a ProgressReporter<'a>,
}

impl<'a> RowAnswer<'a> {
    /// An answer with rows of `schema`. With `is_buffering`, its text is buffered until it is complete.
    ///
    /// # Errors
    /// If `output` does not fit the columns.
    pub(super) fn begin(
        reply: &'a ReplySender,
        progress: &'a ProgressReporter<'a>,
        output: &'a OutputOptions,
        schema: &SchemaRef,
        is_buffering: bool,
    ) -> Result<Self, Error> {
        let (distinct, columns) = DistinctValues::for_answer(output.extract.as_deref(), schema)?;
        let columns = mark_schema(columns, reply.job());
        let writer = AnswerWriter::new(reply, progress, output, &columns, is_buffering)?;
        if reply.job().format().is_none() {
            output.check_columns(&columns)?;
        }
        Ok(Self { distinct, writer, progress })
    }

    /// Streams `rows` into the answer and ends it. Then stores the rows that did not fit, if there is a recorder.
    pub(super) async fn deliver(
        self,
        rows: RecordBatchStream,
        recorder: Option<AnswerRecorder<'_>>,
    ) -> Result<AnswerMeta, Error> {
        let Self { distinct, mut writer, progress } = self;
        let mut kept = recorder.is_some().then(Vec::new);
        // Mask.
        let mut batches = redact_stream(rows, progress.job());
        let streaming = async {
            // Extract.
            if let Some(distinct) = distinct {
                let values = Box::pin(collect_distinct_values(&mut batches, distinct, progress)).await?;
                batches = futures::stream::iter(values.into_iter().map(Ok)).boxed();
            }
            // Encode, fence, budget.
            stream_rows(&mut batches, &mut writer, progress, kept.as_mut()).await
        };
        let streamed = streaming.await;
        let kept = kept.unwrap_or_default();
        let over_budget = writer.rows_if_over_budget().filter(|_| streamed.is_ok());
        if let (Some(recorder), Some(visible)) = (&recorder, over_budget) {
            // Page, store.
            let rest = futures::stream::iter(kept.into_iter().map(Ok)).chain(batches).boxed();
            return Box::pin(recorder.continue_in_store(rest, visible, writer)).await;
        }
        // Stops the query before the footer is sent.
        drop(batches);
        match (streamed, recorder) {
            (Err(error), _) => Err(Box::pin(abandon_answer(writer, error)).await?),
            (Ok(()), Some(recorder)) if recorder.is_cacheable(&writer, &kept) => {
                Box::pin(recorder.store(kept, writer)).await
            }
            (Ok(()), _) => writer.finish(None).await,
        }
    }
}

async fn collect_distinct_values(
    batches: &mut RecordBatchStream,
    mut distinct: DistinctValues,
    progress: &ProgressReporter<'_>,
) -> Result<Vec<RecordBatch>, Error> {
    let mut rows = 0;
    while let Some(batch) = next_batch(batches, progress).await? {
        distinct.add(&batch)?;
        rows += batch.num_rows() as u64;
        progress.update(rows, 0).await?;
    }
    distinct.into_batches()
}

async fn stream_rows(
    batches: &mut RecordBatchStream,
    writer: &mut AnswerWriter<'_>,
    progress: &ProgressReporter<'_>,
    mut kept: Option<&mut Vec<RecordBatch>>,
) -> Result<(), Error> {
    let (mut first, mut rows, mut has_ended) = (Vec::new(), 0, false);
    while rows < writer.lookahead_rows() && !has_ended {
        match next_batch(batches, progress).await? {
            Some(batch) => {
                rows += batch.num_rows();
                first.push(batch);
            }
            None => has_ended = true,
        }
    }
    writer.inspect_rows(&first);
    let mut keep = |batch: &RecordBatch| {
        if let Some(kept) = kept.as_mut() {
            kept.push(batch.clone());
        }
    };
    // Inspected rows that are not sent are kept too.
    first.iter().for_each(&mut keep);
    for batch in first {
        if writer.push(&batch).await?.is_break() {
            return Ok(());
        }
    }
    if has_ended {
        // A stream must not be polled after its end.
        return Ok(());
    }
    loop {
        let batch = match batches.next().now_or_never() {
            Some(batch) => batch.transpose()?,
            None => {
                writer.flush_pending().await?;
                next_batch(batches, progress).await?
            }
        };
        let Some(batch) = batch else { return Ok(()) };
        keep(&batch);
        if writer.push(&batch).await?.is_break() {
            return Ok(());
        }
        if progress.job().is_cancelled() {
            return Err(Error::cancelled());
        }
    }
}

/// Closes the answer of `writer`, which ended with `error`.
async fn abandon_answer(writer: AnswerWriter<'_>, error: Error) -> Result<Error, Error> {
    // When the caller is gone, nothing needs to be closed.
    if error.kind() != ErrorKind::Cancelled {
        writer.abandon(&error).await?;
    }
    Ok(error)
}

/// Stores the rows of an answer: those that do not fit inline, or all of them for the cache.
pub(super) struct AnswerRecorder<'a> {
    store: &'a Arc<ResultStore>,
    request: &'a QueryRequest,
    cache_key: Option<CacheKey>,
    reply: &'a ReplySender,
    query: &'a RunningQuery,
}

impl<'a> AnswerRecorder<'a> {
    /// The recorder for the answer to `request`, which runs as `query`, if it may be stored; `key` is its cache key.
    pub(super) fn for_query(
        store: Option<&'a Arc<ResultStore>>,
        request: &'a QueryRequest,
        key: Option<CacheKey>,
        reply: &'a ReplySender,
        query: &'a RunningQuery,
    ) -> Option<Self> {
        let (store, job) = (store?, reply.job());
        // For a body, or an answer without a budget, any number of rows would have to be buffered.
        let is_unbounded = job.format().is_some() || job.limits().inline == Budget::default();
        if is_unbounded || request.output.overflow == OverflowPolicy::Discard {
            return None;
        }
        let cache_key = key.filter(|_| job.missing_nodes().is_none());
        Some(Self { store, request, cache_key, reply, query })
    }

    /// Ends the answer, which contains the first `visible` of `rows`, and then stores them, up to the row limit.
    async fn continue_in_store(
        &self,
        rows: RecordBatchStream,
        visible: u64,
        answer: AnswerWriter<'_>,
    ) -> Result<AnswerMeta, Error> {
        // If nothing can be stored, the answer ends as it would without a store.
        let Ok(writer) = self.begin_result(answer.schema()).await else {
            drop(rows);
            return answer.finish(None).await;
        };
        let (job, output) = (self.reply.job(), &self.request.output);
        let result = writer.result().clone();
        job.set_result_uri(result.header().id.uri());
        let next = next_page(self.store, &result, visible, output, job);
        job.report_step(QueryStep::Storing { rows_max: output.rows_max });
        let metadata = answer.finish(Some(&next)).await?;
        self.end_early(metadata, writer, rows, visible).await
    }

    /// Whether the answer of `writer`, which contains `rows`, may be reused and is worth storing.
    fn is_cacheable(&self, writer: &AnswerWriter<'_>, rows: &[RecordBatch]) -> bool {
        // At the limit it is unknown whether these are all rows.
        let are_all = self.request.output.rows_max.is_none_or(|max| count_rows(rows) < max);
        let is_whole = !writer.is_truncated() && are_all;
        is_whole && self.cache_key.is_some_and(|key| self.query.is_worth_storing(key))
    }

    /// Ends the answer, which contains all of `rows`, and stores them for the cache.
    async fn store(self, rows: Vec<RecordBatch>, answer: AnswerWriter<'_>) -> Result<AnswerMeta, Error> {
        let (visible, schema) = (count_rows(&rows), answer.schema().clone());
        let metadata = answer.finish(None).await?;
        let Ok(writer) = self.begin_result(&schema).await else { return Ok(metadata) };
        let rows = futures::stream::iter(rows.into_iter().map(Ok)).boxed();
        self.end_early(metadata, writer, rows, visible).await
    }

    async fn begin_result(&self, schema: &SchemaRef) -> Result<ResultWriter, Error> {
        let (job, database) = (self.reply.job(), &self.request.database);
        let new_result = NewResult {
            policies: database.row_policy_fingerprint(job.principal()),
            bytes_max: Some(self.store.limits().continued_bytes),
            rows_max: self.request.output.rows_max,
            required_access: &self.request.output.required_access,
            ..NewResult::new(job, database.name())
        };
        let writer = self.store.begin(new_result, stored_columns(schema)).await?;
        Ok(writer.with_cache_key(self.cache_key))
    }

    /// Sends the end of the answer, which contains the first `visible` of `rows`, and stores all of them.
    async fn end_early(
        &self,
        metadata: AnswerMeta,
        writer: ResultWriter,
        rows: RecordBatchStream,
        visible: u64,
    ) -> Result<AnswerMeta, Error> {
        self.reply.end_early(metadata, self.store.limits().timeout).await?;
        writer.write_all(rows, visible, self.reply.job()).await?;
        Ok(AnswerMeta::default())
    }
}

fn count_rows(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}

/// Computes the identifier of the query of `job`. It covers the target and the arguments in any order, except those
/// that only change the output.
pub fn compute_query_id(job: &Job) -> u64 {
    let arguments = job.arguments().iter().filter(|(name, _)| !OUTPUT_ARGUMENTS.contains(&name.as_str()));
    let mut arguments: Value =
        arguments.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Value>>().into();
    arguments.sort_all_objects();
    let mut hasher = StableHasher::default();
    hasher.add(job.target().name());
    hasher.add(arguments.to_string());
    hasher.finish()
}

/// Where the answer of `job` continues, from `row` of `result` on.
pub(super) fn next_page(
    store: &ResultStore,
    result: &StoredResult,
    row: u64,
    output: &OutputOptions,
    job: &Job,
) -> NextPage {
    NextPage {
        cursor: store.create_cursor(result, row, compute_query_id(job), job.caller()),
        rows_max: result.row_limit(),
        uri: output.overflow.is_linked().then(|| result.header().id.uri()),
    }
}

impl Executor {
    /// The result and the row that `cursor` refers to, if it belongs to the query of `job`.
    ///
    /// # Errors
    /// As [`ResultStore::resolve_cursor`]; `Unavailable` where stored results are disabled.
    pub fn resolve_cursor(&self, cursor: &str, job: &Job) -> Result<(Arc<StoredResult>, u64), Error> {
        self.require_store()?.resolve_cursor(cursor, compute_query_id(job), job.caller())
    }

    /// The rows of `result` from `row` on, as many as requested and fit. Waits for rows that are still being written.
    ///
    /// The answer fails when a block cannot be read; with `Unavailable` where stored results are disabled.
    pub fn answer_page(&self, (result, row): (Arc<StoredResult>, u64), output: OutputOptions) -> Answer {
        let executor = self.clone();
        Answer::written(move |reply| async move { executor.write_page(&result, row, output, &reply).await })
    }

    async fn write_page(
        &self,
        result: &Arc<StoredResult>,
        row: u64,
        output: OutputOptions,
        reply: &ReplySender,
    ) -> Result<AnswerMeta, Error> {
        let (store, job) = (self.require_store()?, reply.job());
        // The next page has a hint of its own.
        let output = OutputOptions { limit_hint: Some(""), overflow_hint: "", ..output };
        if let Some(missing) = &result.header().missing_nodes {
            job.record_missing_nodes(missing)?;
        }
        let progress = ProgressReporter::new(reply.call());
        let is_buffering = output.extract.is_some() || resolve_format(output.format, job).needs_several_rows();
        let mut writer = AnswerWriter::new(reply, &progress, &output, result.schema(), is_buffering)?;
        writer.rows_before = row;
        // Secret rules may have been added since the rows were stored.
        let mut batches = redact_stream(result.rows_from(row), job);
        let streamed = stream_rows(&mut batches, &mut writer, &progress, None).await;
        drop(batches);
        if let Err(error) = streamed {
            return Err(abandon_answer(writer, error).await?);
        }
        let is_last = !writer.is_truncated();
        let Some(visible) = writer.rows_if_truncated() else {
            let metadata = writer.finish(None).await?;
            return if is_last { report_if_incomplete(result, metadata, reply).await } else { Ok(metadata) };
        };
        let next = next_page(store, result, row + visible, &output, job);
        writer.finish(Some(&next)).await
    }

    /// The store, where stored results are enabled.
    pub(super) fn require_store(&self) -> Result<&Arc<ResultStore>, Error> {
        self.store.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "stored results are disabled on this server")
                .with_hint("Request less with where, select or a smaller limit, and leave out cursor and delivery.")
        })
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
        reply.send_item(Content::text(line)).await?;
    }
    Ok(AnswerMeta { is_truncated: Some(true), ..metadata })
}

impl Executor {
    /// The key to cache the answer under, unless it must not be reused, and an earlier answer that is still valid.
    pub(super) async fn look_up_cache(
        &self,
        request: &QueryRequest,
        job: &Job,
    ) -> (Option<CacheKey>, Option<Arc<StoredResult>>) {
        let QueryRequest { database, statement, output } = request;
        let (Some(store), OverflowPolicy::Store { cached: true, .. }) = (&self.store, output.overflow) else {
            return (None, None);
        };
        if statement.transaction().writes {
            return (None, None);
        }
        let (version, age) = match database.freshness(statement, job.principal()).await {
            Freshness::Never => return (None, None),
            Freshness::UntilChanged(version) => (version, None),
            Freshness::MaxAge(age) => (0, Some(age)),
        };
        let policies = database.row_policy_fingerprint(job.principal());
        let rules = job.protection().redactor().map_or("", |redactor| redactor.rules_id());
        let shape = format!("{:?} {:?} {policies} {rules}", output.rows_max, output.extract);
        let key = statement_cache_key(statement, database.name(), version, &shape, job);
        let result = store.cached_answer(&key, age, job.caller());
        // An answer from before a table changed may not conform to the current output schema.
        (Some(key), result.filter(|result| output.check_columns(result.schema()).is_ok()))
    }

    pub(super) async fn replay_answer(
        &self,
        result: &Arc<StoredResult>,
        output: &OutputOptions,
        reply: &ReplySender,
    ) -> Result<AnswerMeta, Error> {
        reply.job().set_result_uri(result.header().id.uri());
        reply.job().set_answer_age(result.age());
        let output = OutputOptions { rows_max: None, ..output.clone() };
        let metadata = self.write_page(result, 0, output, reply).await?;
        Ok(AnswerMeta { is_cached: true, ..metadata })
    }
}

/// The key of `statement` for `database`, whose data is in the state `version`. The key contains everything that
/// the answer may depend on: the caller with its roles and claims, and the generation of the configuration. `shape`
/// describes the other options of the rows.
fn statement_cache_key(statement: &Statement, database: &str, version: u64, shape: &str, job: &Job) -> CacheKey {
    let principal = job.principal();
    // The text is rendered from the AST, so that whitespace and comments do not matter. The AST of PostgreSQL's SQL may
    // lack clauses, and its text has no comments.
    let ast = statement.ast().filter(|_| statement.dialect().has_complete_ast());
    let text = ast.map_or_else(|| statement.text().to_owned(), ToString::to_string);
    let owner = CallerIdentity::from_caller(job.caller()).to_text();
    let roles: Vec<&str> = principal.roles.iter().map(String::as_str).collect();
    let claims = serde_json::to_string(&principal.claims).unwrap_or_default();
    let parameters = format!("{:?}", statement.parameters());
    let numbers = format!("{} {version} {}", principal.generation, statement.dialect().name());
    CacheKey::from_parts(&[&owner, &roles.join("\n"), &claims, database, &numbers, &text, &parameters, shape])
}

/// A query that takes less time is fast.
const SLOW_AFTER: Duration = Duration::from_millis(20);
const FAST_QUERIES_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

static PROCESSORS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// The queries that run now.
#[derive(Debug)]
pub(super) struct RunningQueries {
    running: AtomicUsize,
    /// The last queries that were slow only because of others.
    fast: Mutex<LruCache<CacheKey, ()>>,
}

/// A query that runs until this is dropped.
#[derive(Debug)]
pub(super) struct RunningQuery {
    queries: Arc<RunningQueries>,
    started: Instant,
}

impl Default for RunningQueries {
    fn default() -> Self {
        Self { running: AtomicUsize::new(0), fast: Mutex::new(LruCache::new(FAST_QUERIES_MAX)) }
    }
}

impl RunningQueries {
    pub(super) fn enter(self: &Arc<Self>) -> RunningQuery {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningQuery { queries: self.clone(), started: Instant::now() }
    }
}

impl RunningQuery {
    /// Whether the answer of `key` is worth storing: the query is slow by itself, or slow because of others and repeated.
    fn is_worth_storing(&self, key: CacheKey) -> bool {
        let elapsed = self.started.elapsed();
        let RunningQueries { running, fast } = &*self.queries;
        let own_time = own_time(elapsed, running.load(Ordering::Relaxed), *PROCESSORS);
        own_time >= SLOW_AFTER || (elapsed >= SLOW_AFTER && fast.lock().put(key, ()).is_some())
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.queries.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// About the time that a query would have taken alone, if all that run now share the processors.
fn own_time(elapsed: Duration, running: usize, processors: usize) -> Duration {
    let share = u32::try_from(running.div_ceil(processors)).unwrap_or(u32::MAX);
    elapsed / share.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_share_the_processors() {
        let time = |running| own_time(Duration::from_millis(100), running, 2).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 50].map(time), [100, 100, 100, 50, 50, 4]);
    }

    #[test]
    fn slow_queries_and_repeated_ones_are_worth_it() {
        let queries = Arc::new(RunningQueries::default());
        let query_since = |elapsed: Duration| {
            let mut query = queries.enter();
            query.started -= elapsed;
            query
        };
        // Nothing has elapsed since a time in the future, however slow the machine is.
        let fast_query = || {
            let mut query = queries.enter();
            query.started += Duration::from_secs(3_600);
            query
        };
        let [first, second] = ["a", "b"].map(|part| CacheKey::from_parts(&[part]));
        assert!(!fast_query().is_worth_storing(first));
        assert!(query_since(Duration::from_millis(50)).is_worth_storing(first));
        // Then each processor has a thousand other queries.
        let others: Vec<RunningQuery> = (0..1_000 * *PROCESSORS).map(|_| queries.enter()).collect();
        let repeated = query_since(Duration::from_millis(50));
        assert_eq!([first, second, first].map(|key| repeated.is_worth_storing(key)), [false, false, true]);
        assert!(!fast_query().is_worth_storing(first), "fast in any case");
        drop((others, repeated));
        assert_eq!(queries.running.load(Ordering::Relaxed), 0);
    }
}
