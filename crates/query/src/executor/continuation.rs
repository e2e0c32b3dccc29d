//! Answers that go on: what does not fit inline is stored, and read page by page from there. No query runs twice.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_core::{Budget, Content, Error, ErrorKind, Job, Metadata, ReplySender};

use super::again::KEPT_AFTER;
use super::flow::{Batches, Kind, abandoned};
use super::{Executor, Question, Rest};
use crate::answer::{Answer, Hints, Next, Progress, Prospect};
use crate::format::{Form, Format};
use crate::secrets::screened;
use crate::store::{Asked, CacheKey, End, ResultStore, ResultWriter, StoredResult, Written};

/// Arguments that do not change what is asked.
const OF_PRESENTATION: [&str; 7] = ["cursor", "delivery", "format", "limit", "max_rows", "mode", "no_cache"];

/// What names the question of `job`, so that a cursor is not used for another one: its target and its arguments,
/// whatever their order, without those that say how the answer looks.
pub fn question_of(job: &Job) -> u64 {
    let mut hash = Sha256::new();
    hash.update(job.target().name());
    let arguments = job.arguments().iter().filter(|(name, _)| !OF_PRESENTATION.contains(&name.as_str()));
    hash_members(arguments.collect(), &mut hash);
    let hash = hash.finalize();
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn hash_members(mut members: Vec<(&String, &Value)>, hash: &mut Sha256) {
    members.sort_by_key(|(name, _)| *name);
    hash.update([b'{']);
    for (name, value) in members {
        hash.update(Value::from(name.as_str()).to_string());
        hash_value(value, hash);
    }
    hash.update([b'}']);
}

fn hash_value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(members) => hash_members(members.iter().collect(), hash),
        Value::Array(items) => {
            hash.update([b'[']);
            items.iter().for_each(|item| hash_value(item, hash));
            hash.update([b']']);
        }
        plain => hash.update(format!("{plain},")),
    }
}

/// Stores the rows of an answer: those that do not fit inline, or all of them to be given again.
pub(super) struct Keeper<'a> {
    store: &'a Arc<ResultStore>,
    database: String,
    policies: u64,
    rows_max: Option<u64>,
    is_linked: bool,
    key: Option<CacheKey>,
    job: &'a Arc<Job>,
    started: Instant,
}

impl<'a> Keeper<'a> {
    /// What stores the answer to `question`, if it may be stored; `key` is what it is remembered by.
    pub(super) fn of(
        store: Option<&'a Arc<ResultStore>>,
        question: &Question,
        form: Form,
        key: Option<CacheKey>,
        job: &'a Arc<Job>,
    ) -> Option<Self> {
        let (Some(store), Rest::Kept { linked, .. }) = (store, question.rest) else { return None };
        // The rows of a body, and of an answer without an end of its own, would have to be held, however many there
        // are.
        if !matches!(form, Form::Content(_)) || job.inline_budget() == Budget::default() {
            return None;
        }
        let (database, rows_max) = (question.database.name().to_owned(), question.max_rows);
        let policies = question.database.row_policy_stamp(job.principal());
        Some(Self { store, database, policies, rows_max, is_linked: linked, key, job, started: Instant::now() })
    }

    /// Ends `answer`, which shows the first `shown` of `rows`, and stores all of them after that.
    pub(super) async fn go_on(
        self,
        rows: Batches,
        schema: &SchemaRef,
        shown: u64,
        answer: Answer<'_>,
        mut hints: Hints,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        // Where nothing can be stored the answer ends as it would without a store.
        let Ok(writer) = self.begin(schema).await else {
            drop(rows);
            return answer.finish(&hints, None).await;
        };
        let Self { store, is_linked, job, .. } = self;
        let result = writer.result().clone();
        let uri = result.head().id.uri();
        job.keep_in(uri.clone());
        let cursor = store.cursor(&result, shown, question_of(job), job.caller());
        let next = Next { cursor, uri: is_linked.then_some(uri) };
        hints.budget = next.hint();
        let metadata = answer.finish(&hints, Some(&next)).await?;
        reply.end_early(metadata, store.limits().timeout).await?;
        let written = writer.write_all(rows, shown, job).await?;
        self.remember(&written, &result);
        Ok(Metadata::new())
    }

    /// Ends `answer`, which shows all of `rows`, and stores them if they are worth it.
    pub(super) async fn keep(
        self,
        rows: Vec<RecordBatch>,
        schema: &SchemaRef,
        answer: Answer<'_>,
        hints: Hints,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let shown = rows.iter().map(|batch| batch.num_rows() as u64).sum();
        let is_all = !answer.is_cut() && self.is_all(shown);
        let is_worth_it = self.key.is_some() && self.started.elapsed() >= KEPT_AFTER;
        let metadata = answer.finish(&hints, None).await?;
        if !(is_all && is_worth_it) {
            return Ok(metadata);
        }
        let Ok(writer) = self.begin(schema).await else { return Ok(metadata) };
        let result = writer.result().clone();
        reply.end_early(metadata, self.store.limits().timeout).await?;
        let rows = futures::stream::iter(rows.into_iter().map(Ok)).boxed();
        let written = writer.write_all(rows, shown, self.job).await?;
        self.remember(&written, &result);
        Ok(Metadata::new())
    }

    async fn begin(&self, schema: &SchemaRef) -> Result<ResultWriter, Error> {
        let bytes_max = Some(self.store.limits().continued_bytes);
        let (database, policies) = (self.database.as_str(), self.policies);
        let asked = Asked { job: self.job, database, policies, bytes_max, rows_max: self.rows_max };
        self.store.begin(asked, schema).await
    }

    /// Whether `rows` rows are all that there are: at the bound nobody knows.
    fn is_all(&self, rows: u64) -> bool {
        self.rows_max.is_none_or(|max| rows < max)
    }

    fn remember(&self, written: &Written, result: &StoredResult) {
        if let (Some(key), true) = (self.key, written.end == End::Complete && self.is_all(written.rows)) {
            self.store.remember(key, result.head().id);
        }
    }
}

impl Executor {
    /// The result and the row that `cursor` points at, if an earlier answer to the question of `job` gave it.
    ///
    /// # Errors
    /// As [`ResultStore::place`]; `Unavailable` where nothing is stored.
    pub fn place(&self, cursor: &str, job: &Job) -> Result<(Arc<StoredResult>, u64), Error> {
        let store = self.store.as_ref().ok_or_else(no_store)?;
        store.place(cursor, question_of(job), job.caller())
    }

    /// Answers with the rows of `result` from `row` on, as many as are wanted and fit. Waits for rows that are still
    /// being written.
    ///
    /// # Errors
    /// Those of blocks that cannot be read; `Unavailable` where nothing is stored.
    pub async fn page(
        &self,
        (result, row): (&Arc<StoredResult>, u64),
        page: Page,
        job: &Arc<Job>,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let store = self.store.as_ref().ok_or_else(no_store)?;
        let Page { format, is_list, rows_max, is_structured } = page;
        let form = Form::of(format, job.format());
        let progress = Progress::new(job, reply);
        let prospect = Prospect { progress: &progress, rows_max, form, is_list, started: Instant::now() };
        let place = Place { store, result, row, is_linked: false, is_structured };
        place.answer(&prospect).await
    }
}

/// A place in a stored result, from which it is answered.
pub(super) struct Place<'a> {
    pub(super) store: &'a ResultStore,
    pub(super) result: &'a Arc<StoredResult>,
    pub(super) row: u64,
    /// Whether the caller is told of the resource.
    pub(super) is_linked: bool,
    /// Whether the rows are wanted as data too.
    pub(super) is_structured: bool,
}

impl Place<'_> {
    /// Answers with the rows from here on, as many as are wanted and fit.
    pub(super) async fn answer(&self, prospect: &Prospect<'_>) -> Result<Metadata, Error> {
        let Self { store, result, row, .. } = *self;
        let (job, reply) = (prospect.progress.job(), prospect.progress.reply());
        let kind = Kind::Stored { is_list: prospect.is_list };
        let schema = result.schema().clone();
        let holding = prospect.is_list || matches!(prospect.form.text(), Some(Format::Table | Format::Toon));
        let mut answer = kind.answer(prospect, &schema, holding)?;
        if self.is_structured {
            answer = answer.with_structured(&schema);
        }
        // Rules may have come since the rows were stored.
        let mut batches = screened(result.rows_from(row), reply.job());
        let streamed = super::flow::stream(&mut batches, &mut answer, prospect.progress, None).await;
        drop(batches);
        if let Err(error) = streamed {
            return Err(abandoned(answer, error).await?);
        }
        let mut hints = Hints { noun: kind.noun(), limit: String::new(), budget: String::new(), before: row };
        let is_last = !answer.is_cut();
        let Some(shown) = answer.rows_at_cut() else {
            let metadata = answer.finish(&hints, None).await?;
            return if is_last { said_if_incomplete(result, metadata, job, reply).await } else { Ok(metadata) };
        };
        let cursor = store.cursor(result, row + shown, question_of(job), job.caller());
        let next = Next { cursor, uri: self.is_linked.then(|| result.head().id.uri()) };
        hints.limit = next.hint();
        hints.budget = next.hint();
        answer.finish(&hints, Some(&next)).await
    }
}

/// How a page shall look.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The form of the answer.
    pub format: Format,
    /// Whether the values of one column are answered, without its name.
    pub is_list: bool,
    /// Rows at most.
    pub rows_max: Option<u64>,
    /// Whether the rows are wanted as data too, beside their text.
    pub is_structured: bool,
}

/// After the last row that was stored: says so, if there were more, or may be.
async fn said_if_incomplete(
    result: &StoredResult,
    mut metadata: Metadata,
    job: &Job,
    reply: &ReplySender,
) -> Result<Metadata, Error> {
    let line = match (result.stage().end, result.bound()) {
        (Some(End::Incomplete(reason) | End::Removed(reason)), _) => {
            format!("These are the last rows that were kept, and not all that there are: {reason}.")
        }
        (_, Some(rows)) => format!(
            "These are the last of the {rows} rows that were asked for (limit, max_rows); more may exist. Ask again \
             for more of them, or with delivery: \"blocks\" for all."
        ),
        _ => return Ok(metadata),
    };
    metadata.insert("dev.tidegate/truncated".to_owned(), true.into());
    if job.format().is_none() {
        reply.block(Content::text(line)).await?;
    }
    Ok(metadata)
}

pub(super) fn no_store() -> Error {
    Error::new(ErrorKind::Unavailable, "this server keeps no results")
        .with_hint("Ask for less with where, select or a smaller limit, and leave cursor and delivery out.")
}
