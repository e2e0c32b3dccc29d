//! Answers that are stored as a whole: the caller gets a preview and where the rest is, while the query runs on.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::{StreamExt, future};
use tidegate_core::{Content, Error, Job, Metadata, ReplySender};

use super::continuation::{no_store, question_of};
use super::flow::{Batches, Kind, or_cancelled};
use super::{Executor, Question, Rest, RunningQuery};
use crate::answer::{Progress, Stage, stored_result_link};
use crate::database::Rows;
use crate::distinct::Distinct;
use crate::format::{Facts, Format, cells, list_writer, writer};
use crate::secrets::screened;
use crate::store::{Asked, End, ResultStore, StoredResult, summary};
use crate::structured::Structured;

/// Rows and characters of a preview.
const PREVIEW_ROWS_MAX: usize = 10;
const PREVIEW_BYTES_MAX: usize = 4 * 1024;
/// Columns that a preview sums up.
const SUMMARY_COLUMNS_MAX: usize = 50;

impl Executor {
    /// Runs `question` into a stored result. The answer is a preview, what the columns hold as far as rows were read,
    /// and where all of it is; it ends with the first rows, and the work goes on in the background. For a client that
    /// can come back for it the whole call becomes a task, which ends when all rows are stored.
    ///
    /// # Errors
    /// As [`Executor::answer`] and [`ResultStore::begin`]; `Unavailable` where nothing is stored.
    pub async fn export(&self, question: Question, job: &Arc<Job>, reply: &ReplySender) -> Result<Metadata, Error> {
        let started = std::time::Instant::now();
        let store = self.store.as_ref().ok_or_else(no_store)?;
        question.statement.check_parameters()?;
        job.asked(|| question.statement.audited(question.database.name()));
        let is_task = reply.become_task();
        // Before the first step: what is stored has a time limit of its own.
        job.extend(store.limits().timeout);
        let known = self.known(&question, job).await;
        if let Some(result) = &known.result {
            let preview = Preview {
                store,
                result,
                question: &question,
                is_list: question.extract.is_some(),
                is_task,
                job,
                reply,
            };
            job.keep_in(result.head().id.uri());
            return preview.answer(started, true).await;
        }
        let progress = Progress::new(job, reply);
        let plan = self.planned(&question, &progress).await?;
        Kind::of(question.extract.as_deref(), &plan.schema())?;
        let _query = RunningQuery { events: &self.events, database: question.database.name(), job, started };
        progress.enter(Stage::Running).await?;
        let Rows { schema, batches } = or_cancelled(job, progress.during(plan.run(job))).await?;
        let kind = Kind::of(question.extract.as_deref(), &schema)?;
        let schema = kind.schema(&schema);
        question.check_promised(&schema)?;
        let rows = progress.counting(screened(batches, job));
        let is_list = kind.is_list();
        let rows = match kind {
            Kind::Values(distinct) => values(rows, distinct),
            _ => rows,
        };
        let database = &question.database;
        let (database, policies) = (database.name(), database.row_policy_stamp(job.principal()));
        let asked = Asked { job, database, policies, bytes_max: None, rows_max: question.max_rows };
        let writer = store.begin(asked, &schema).await?;
        let result = writer.result().clone();
        job.keep_in(result.head().id.uri());
        let preview = Preview { store, result: &result, question: &question, is_list, is_task, job, reply };
        let writing = writer.write_all(rows, 0, job);
        let (written, metadata) = if is_task {
            // Whoever comes back for it comes for what is there in the end.
            let written = progress.during(writing).await?;
            (written, preview.answer(started, false).await?)
        } else {
            // The answer ends with the preview, and nothing is told after it.
            let answering = progress.during(preview.answer(started, false));
            future::try_join(writing, answering).await?
        };
        let is_all = written.end == End::Complete && question.max_rows.is_none_or(|max| written.rows < max);
        if let (Some(key), true) = (known.key, is_all) {
            store.remember(key, result.head().id);
        }
        Ok(metadata)
    }
}

/// The unique values of a column, read when they are asked for.
fn values(mut rows: Batches, mut distinct: Box<Distinct>) -> Batches {
    let gathered = async move {
        while let Some(batch) = rows.next().await.transpose()? {
            distinct.add(&batch)?;
        }
        Ok::<_, Error>(futures::stream::iter(distinct.into_batches()?.into_iter().map(Ok)))
    };
    futures::stream::once(gathered)
        .flat_map(|values| match values {
            Ok(values) => values.boxed(),
            Err(error) => futures::stream::once(future::ready(Err(error))).boxed(),
        })
        .boxed()
}

/// What is answered of a result that is being written.
struct Preview<'a> {
    store: &'a ResultStore,
    result: &'a Arc<StoredResult>,
    question: &'a Question,
    is_list: bool,
    /// Whether the answer ends with the work, and not before it.
    is_task: bool,
    job: &'a Job,
    reply: &'a ReplySender,
}

impl Preview<'_> {
    async fn answer(&self, started: std::time::Instant, is_again: bool) -> Result<Metadata, Error> {
        if self.result.next_block(0).await.is_none() {
            // The writer says why.
            return future::pending().await;
        }
        let batches = self.result.block(0).await?.batches()?;
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let (shown, text) = self.rows(&batches);
        self.say(self.fenced(text)).await?;
        let schema = self.result.schema();
        let holds = summary(&self.summed_up(schema)?, &self.narrowed(&batches)?);
        let holds = holds.map_err(|error| Error::internal(format!("a preview failed: {error}")))?;
        self.say(self.fenced(table(self.question.format, &holds))).await?;
        self.say(self.line(shown, rows)).await?;
        let uri = self.result.head().id.uri();
        let is_linked = matches!(self.question.rest, Rest::Kept { linked: true, .. });
        if is_linked {
            self.reply.block(stored_result_link(&uri)).await?;
        }
        if self.question.structured.is_some() {
            self.reply.structured_text(self.structured(&batches)).await?;
        } else if self.job.format().is_some() {
            self.reply.structured(&self.store.manifest(self.result, Some(self.job.caller()))).await?;
        }
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut metadata = Metadata::new();
        metadata.insert("dev.tidegate/rows".to_owned(), (shown as u64).into());
        metadata.insert("dev.tidegate/elapsed_ms".to_owned(), elapsed_ms.into());
        metadata.insert("dev.tidegate/truncated".to_owned(), true.into());
        metadata.insert("dev.tidegate/cursor".to_owned(), self.cursor(shown as u64).into());
        if is_again {
            metadata.insert("dev.tidegate/cached".to_owned(), true.into());
        }
        if !self.is_task {
            self.reply.end_early(metadata.clone(), self.store.limits().timeout).await?;
        }
        Ok(metadata)
    }

    /// `text`, which is data.
    fn fenced(&self, text: String) -> String {
        self.job.fence().map(|fence| fence.around(&text)).unwrap_or(text)
    }

    async fn say(&self, text: String) -> Result<(), Error> {
        self.reply.block(Content::text(text)).await
    }

    fn cursor(&self, row: u64) -> String {
        self.store.cursor(self.result, row, question_of(self.job), self.job.caller())
    }

    /// The first rows in the form that was asked for, and how many they are.
    fn rows(&self, batches: &[RecordBatch]) -> (usize, String) {
        let schema = self.result.schema();
        let format = self.question.format;
        let mut writer = if self.is_list { list_writer(format, schema) } else { writer(format, schema) };
        for batch in batches.iter().take(1) {
            writer.look_at(&cells(batch), batch.num_rows().min(PREVIEW_ROWS_MAX));
        }
        let (mut text, mut shown) = (String::new(), 0);
        writer.open(&mut text);
        'batches: for batch in batches {
            let cells = cells(batch);
            for row in 0..batch.num_rows() {
                let before = text.len();
                writer.row(&cells, row, shown as u64, &mut text);
                if text.len() > PREVIEW_BYTES_MAX || shown >= PREVIEW_ROWS_MAX {
                    text.truncate(before);
                    break 'batches;
                }
                shown += 1;
            }
        }
        close(&*writer, shown, &mut text);
        (shown, text)
    }

    /// As many columns as a summary has room for.
    fn summed_up(&self, schema: &SchemaRef) -> Result<SchemaRef, Error> {
        let columns: Vec<usize> = (0..schema.fields().len().min(SUMMARY_COLUMNS_MAX)).collect();
        schema.project(&columns).map(Arc::new).map_err(|error| Error::internal(error.to_string()))
    }

    fn narrowed(&self, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>, Error> {
        let columns: Vec<usize> = (0..self.result.schema().fields().len().min(SUMMARY_COLUMNS_MAX)).collect();
        let narrowed = batches.iter().map(|batch| batch.project(&columns));
        narrowed.collect::<Result<_, _>>().map_err(|error| Error::internal(error.to_string()))
    }

    fn line(&self, shown: usize, read: u64) -> String {
        let id = self.result.head().id;
        let stage = self.result.stage();
        let state = match &stage.end {
            None => "and more are being written".to_owned(),
            Some(end) => {
                end.reason().map_or_else(|| "which are all".to_owned(), |reason| format!("and no more: {reason}"))
            }
        };
        format!(
            "Shown: the first {shown} rows, and what the columns hold in the first {read}. Stored: {} rows so far, \
             {state}. All of them: {}, over HTTP /results/{id}/data. Page by page: the same call with \"cursor\": \
             \"{}\".",
            stage.rows(),
            id.uri(),
            self.cursor(shown as u64),
        )
    }

    /// The rows of the preview as data that conforms to the tool's output schema.
    fn structured(&self, batches: &[RecordBatch]) -> String {
        let mut structured = Structured::new(self.result.schema());
        let mut left = PREVIEW_ROWS_MAX;
        for batch in batches {
            let cells = cells(batch);
            for row in 0..batch.num_rows().min(left) {
                structured.row(&cells, row);
            }
            left = left.saturating_sub(batch.num_rows());
        }
        structured.close(true)
    }
}

/// `batch` as a whole table of its own.
fn table(format: Format, batch: &RecordBatch) -> String {
    let mut writer = writer(format, batch.schema_ref());
    let cells = cells(batch);
    writer.look_at(&cells, batch.num_rows());
    let mut text = String::new();
    writer.open(&mut text);
    for row in 0..batch.num_rows() {
        writer.row(&cells, row, row as u64, &mut text);
    }
    close(&*writer, batch.num_rows(), &mut text);
    text
}

fn close(writer: &dyn crate::format::Writer, rows: usize, text: &mut String) {
    writer.seal(0, rows as u64, text);
    let facts = Facts { rows: rows as u64, elapsed: std::time::Duration::ZERO, truncated: false };
    writer.close(facts, text);
}
