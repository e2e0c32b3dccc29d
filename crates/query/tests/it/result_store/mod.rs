//! The store itself, without tools: what is written, read and left behind.
//!
//! - `pages`: pages put together are the whole, whatever is written meanwhile
//! - `blocks`: how rows become blocks: sizes, times, shapes, and what a block may not bring along
//! - `crash`: what processes that were killed leave, and manifests that break off anywhere
//! - `damage`: blocks and folders that are not what they were
//! - `quota`: quotas, counts, the order of results and disks that are full; `tenants`: what the principals of one tenant have together
//! - `links`: what a link is worth, and until when
//! - `leaving`: who goes before the end: writers, readers, results

mod blocks;
mod crash;
mod damage;
mod interruption;
mod links;
mod pages;
mod quota;
mod tenants;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int64Type, SchemaRef};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use tempfile::TempDir;
use tidegate_core::{CallTarget, Caller, Error, ErrorKind};
use tidegate_query::stored_columns;
use tidegate_results::{NewResult, ResultEnd, ResultStore, ResultWriter, StoreLimits, StoredResult};
use tidegate_runtime::{Answer, Call, Job, Registry, Reply, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};

use crate::fake::batch;
use crate::stored::{caller_named, limits};

/// A store in a folder of its own.
pub(crate) struct TestStore {
    pub(crate) store: Arc<ResultStore>,
    pub(crate) folder: TempDir,
}

/// A call that runs until it is cancelled, or this is dropped.
pub(crate) struct RunningCall {
    pub(crate) job: Arc<Job>,
    _reply: Reply,
}

pub(crate) type Batches = BoxStream<'static, Result<RecordBatch, Error>>;

impl RunningCall {
    pub(crate) fn from_caller(caller: &Caller) -> Self {
        Self::from_call(Call::new(CallTarget::Tool("ask".to_owned()), caller.clone()))
    }

    pub(crate) fn from_call(call: Call) -> Self {
        let handler = handler_fn(|call| async move {
            call.cancelled().await;
            Ok(Answer::content(Vec::new()))
        });
        let tool = |name: &str| Tool::new(name, "asks", handler.clone());
        let tool = |name: &str| tool(name).with_input_schema(json!({"type": "object"})).unwrap();
        let snapshot = SnapshotBuilder::new().tool(tool("ask")).tool(tool("tell")).build();
        let reply = Registry::new(snapshot, EventDispatcher::default()).call(call).unwrap();
        Self { job: reply.job().clone(), _reply: reply }
    }
}

impl TestStore {
    pub(crate) async fn new(limits: StoreLimits) -> Self {
        Self::within(TempDir::new().unwrap(), limits).await
    }

    pub(crate) async fn within(folder: TempDir, limits: StoreLimits) -> Self {
        let store = ResultStore::open(folder.path(), limits).await.unwrap();
        Self { store, folder }
    }

    /// The same folder, found by the next process.
    pub(crate) async fn reopen(self, limits: StoreLimits) -> Self {
        let place = self.process_folder();
        let Self { store, folder } = self;
        drop(store);
        // A process that another test begins has all that is open here, for a moment.
        while std::fs::File::open(place.join("lock")).unwrap().try_lock().is_err() {
            tokio::task::yield_now().await;
        }
        Self::within(folder, limits).await
    }

    pub(crate) async fn begin(&self, running: &RunningCall, schema: &SchemaRef) -> Result<ResultWriter, Error> {
        self.store.begin(NewResult::new(&running.job, "demo"), stored_columns(schema)).await
    }

    /// Writes `batches` as a result of `who`.
    pub(crate) async fn write(
        &self,
        caller: &Caller,
        schema: &SchemaRef,
        batches: Batches,
    ) -> (Arc<StoredResult>, Result<ResultEnd, Error>) {
        let running = RunningCall::from_caller(caller);
        let writer = self.begin(&running, schema).await.unwrap();
        let result = writer.result().clone();
        (result, writer.write_all(batches, 0, &running.job).await)
    }

    /// Writes `rows` rows that count from 0 as a whole result of `who`.
    pub(crate) async fn keep(&self, caller: &Caller, rows: usize) -> Arc<StoredResult> {
        let rows = numbered_rows(0..rows as i64, 8);
        let (result, written) = self.write(caller, &rows.schema(), ready([rows])).await;
        assert_eq!(written.unwrap(), ResultEnd::Complete);
        result
    }

    /// Where the files of this process lie.
    pub(crate) fn process_folder(&self) -> PathBuf {
        self.folder.path().join("0")
    }

    pub(crate) fn files_of(&self, result: &StoredResult) -> PathBuf {
        self.process_folder().join(result.header().id.to_string())
    }

    /// The results whose files lie on the disk.
    pub(crate) fn on_disk(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.process_folder()).unwrap().map(|entry| entry.unwrap());
        let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Rows of a number, and of text that hardly gets smaller.
pub(crate) fn numbered_rows(numbers: std::ops::Range<i64>, text_bytes: usize) -> RecordBatch {
    let text = |number: i64| {
        let mut state = number as u64 ^ 0x9e37_79b9_7f4a_7c15;
        let mut letter = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'0' + (state >> 58) as u8)
        };
        (0..text_bytes).map(|_| letter()).collect::<String>()
    };
    let texts = StringArray::from_iter_values(numbers.clone().map(text));
    batch(&[("n", Arc::new(Int64Array::from_iter_values(numbers))), ("text", Arc::new(texts))])
}

pub(crate) fn ready(batches: impl IntoIterator<Item = RecordBatch>) -> Batches {
    let batches: Vec<_> = batches.into_iter().map(Ok).collect();
    futures::stream::iter(batches).boxed()
}

/// Rows of which no more come.
pub(crate) fn then_pending(batches: impl IntoIterator<Item = RecordBatch>) -> Batches {
    ready(batches).chain(futures::stream::pending()).boxed()
}

pub(crate) fn then_failing(batches: impl IntoIterator<Item = RecordBatch>) -> Batches {
    let failure = || Err(Error::new(ErrorKind::Unavailable, "the database went away"));
    ready(batches).chain(futures::stream::once(async move { failure() })).boxed()
}

pub(crate) fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

/// The numbers of all rows from `row` on.
pub(crate) async fn read(result: &Arc<StoredResult>, row: u64) -> Result<Vec<i64>, Error> {
    result.rows_from(row).try_collect::<Vec<_>>().await.map(|batches| numbers(&batches))
}

/// How `result` ends, which is waited for.
pub(crate) async fn wait_for_end(result: &StoredResult) -> ResultEnd {
    assert!(result.next_block(usize::MAX).await.is_none());
    result.end().unwrap()
}

pub(crate) fn describe_error(error: &Error) -> String {
    format!("{}: {error}", error.kind().name())
}

/// What is said of a result, without its name.
pub(crate) fn describe_error_without_id(error: &Error, result: &StoredResult) -> String {
    describe_error(error).replace(&result.header().id.to_string(), "ID")
}

/// Small blocks, and no floor on the disk.
pub(crate) fn small_limits() -> StoreLimits {
    StoreLimits { block_bytes: 64 * 1024, ..limits() }
}

pub(crate) fn ann() -> Caller {
    caller_named("ann")
}

pub(crate) fn bob() -> Caller {
    caller_named("bob")
}
