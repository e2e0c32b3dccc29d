//! Answers that go on: what does not fit inline is stored, and read page by page from there. No query runs twice.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_core::{Budget, Content, Error, ErrorKind, Job, Metadata, ReplySender};

use super::flow::{Batches, Kind, abandoned};
use super::{Executor, Question, Rest};
use crate::answer::{Answer, Hints, Next, Prospect};
use crate::format::{Form, Format};
use crate::store::{Asked, End, ResultStore, StoredResult};

/// Arguments that do not change what is asked.
const OF_PRESENTATION: [&str; 6] = ["cursor", "delivery", "format", "limit", "max_rows", "mode"];

/// What names the question of `job`, so that a cursor is not used for another one: its target and its arguments, whatever
/// their order, without those that say how the answer looks.
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

/// Stores the rows of an answer that do not fit inline.
pub(super) struct Keeper<'a> {
    store: &'a Arc<ResultStore>,
    database: String,
    rows_max: Option<u64>,
    is_linked: bool,
    job: &'a Arc<Job>,
}

impl<'a> Keeper<'a> {
    /// What stores the rest of the answer to `question`, if that is to be stored.
    pub(super) fn of(
        store: Option<&'a Arc<ResultStore>>,
        question: &Question,
        form: Form,
        job: &'a Arc<Job>,
    ) -> Option<Self> {
        let (Some(store), Rest::Kept { linked }, Form::Content(_)) = (store, question.rest, form) else { return None };
        // An answer without an end of its own needs none of this, and would be kept in memory.
        if job.inline_budget() == Budget::default() {
            return None;
        }
        let database = question.database.name().to_owned();
        Some(Self { store, database, rows_max: question.max_rows, is_linked: linked, job })
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
        let Self { store, database, rows_max, is_linked, job } = self;
        let bytes_max = Some(store.limits().continued_bytes);
        let asked = Asked { job, database: &database, bytes_max, rows_max };
        // Where nothing can be stored the answer ends as it would without a store.
        let Ok(writer) = store.begin(asked, schema).await else {
            drop(rows);
            return answer.finish(&hints, None).await;
        };
        let result = writer.result().clone();
        let uri = result.head().id.uri();
        job.keep_in(uri.clone());
        let cursor = store.cursor(&result, shown, question_of(job), job.caller());
        let next = Next { cursor, uri: is_linked.then_some(uri) };
        hints.budget = next.hint();
        let metadata = answer.finish(&hints, Some(&next)).await?;
        reply.end_early(metadata, store.limits().timeout).await?;
        writer.write_all(rows, shown, job).await?;
        Ok(Metadata::new())
    }
}

impl Executor {
    /// Answers with the rows that `cursor` points at, of a result that an earlier answer to the same question stored; at
    /// most `rows_max`, and as many as fit. Waits for rows that are still being written.
    ///
    /// # Errors
    /// As [`ResultStore::place`]; `Unavailable` where nothing is stored.
    pub async fn page(&self, cursor: &str, page: Page, job: &Arc<Job>, reply: &ReplySender) -> Result<Metadata, Error> {
        let store = self.store.as_ref().ok_or_else(no_store)?;
        let (result, row) = store.place(cursor, question_of(job), job.caller())?;
        let form = Form::of(page.format, job.format());
        let started = Instant::now();
        let is_list = page.is_list;
        let prospect = Prospect { job, reply, rows_max: page.rows_max, form, is_list, started };
        let schema = result.schema().clone();
        let kind = Kind::Stored { is_list };
        let holding = matches!(form.text(), Some(Format::Table | Format::Toon)) || is_list;
        let mut answer = kind.answer(&prospect, &schema, holding)?;
        let mut batches = result.rows_from(row);
        let streamed = super::flow::stream(&mut batches, &mut answer, job, None).await;
        drop(batches);
        if let Err(error) = streamed {
            return Err(abandoned(answer, error).await?);
        }
        let mut hints = Hints { noun: kind.noun(), limit: String::new(), budget: String::new(), before: row };
        let is_last = !answer.is_cut();
        let Some(shown) = answer.rows_at_cut() else {
            let metadata = answer.finish(&hints, None).await?;
            return if is_last { said_if_incomplete(&result, metadata, job, reply).await } else { Ok(metadata) };
        };
        let cursor = store.cursor(&result, row + shown, question_of(job), job.caller());
        let next = Next { cursor, uri: None };
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
}

/// After the last row that was stored: says so, if there were more.
async fn said_if_incomplete(
    result: &StoredResult,
    mut metadata: Metadata,
    job: &Job,
    reply: &ReplySender,
) -> Result<Metadata, Error> {
    let Some(End::Incomplete(reason) | End::Removed(reason)) = result.stage().end else { return Ok(metadata) };
    metadata.insert("dev.tidegate/truncated".to_owned(), true.into());
    if job.format().is_none() {
        let line = format!("These are the last rows that were kept, and not all that there are: {reason}.");
        reply.block(Content::text(line)).await?;
    }
    Ok(metadata)
}

pub(super) fn no_store() -> Error {
    Error::new(ErrorKind::Unavailable, "this server keeps no results")
        .with_hint("Ask for less with where, select or a smaller limit, and leave cursor and delivery out.")
}
