//! Plans and runs a query, and writes its rows into the answer and beyond its end into the store.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tidegate_core::Error;
use tidegate_runtime::{Job, Metadata, ReplySender};

use super::Executor;
use super::continuation::AnswerRecorder;
use super::row_stream::{QueryEndGuard, RecordBatches, abandon_answer, next_batch, run_until_cancelled, stream_rows};
use crate::answer::{AnswerStage, ProgressReporter, ResponseSink, TruncationHints};
use crate::database::{Plan, QueryRows};
use crate::distinct::DistinctValues;
use crate::format::{AnswerEncoding, OutputFormat};
use crate::request::{AnswerMode, OutputOptions, QueryRequest};
use crate::secrets::redact_stream;

/// A pipeline-breaking plan that expects at most this many rows is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;

impl Executor {
    /// Plans and runs `question` and writes its rows into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// The errors of the database. Rows that were sent before stay, and their block is closed.
    pub async fn answer(&self, question: QueryRequest, job: &Arc<Job>, reply: &ReplySender) -> Result<Metadata, Error> {
        let progress = ProgressReporter::new(job, reply);
        question.statement.check_parameters()?;
        job.record_statement(|| question.statement.to_audited_statement(question.database.name()));
        let known = self.look_up_cache(&question, job).await;
        if let Some(result) = &known.result {
            return self.replay_answer(result, &question, job, reply).await;
        }
        let plan = self.plan(&question, &progress).await?;
        let encoding = AnswerEncoding::resolve(question.format, job.format());
        // Rejected before the query runs.
        DistinctValues::for_answer(question.extract.as_deref(), &plan.schema())?;
        let is_list = question.extract.is_some();
        let is_buffering = is_list || runs_in_batch(question.mode, encoding, plan.as_ref());
        let begin = |schema: &SchemaRef| -> Result<_, Error> {
            let (distinct, columns) = DistinctValues::for_answer(question.extract.as_deref(), schema)?;
            let mut answer =
                ResponseSink::new(&progress, encoding, is_list, question.max_rows, &columns, is_buffering)?;
            if question.structured.is_some() && matches!(encoding, AnswerEncoding::Content(_)) {
                question.check_output_schema(&columns)?;
                answer = answer.with_structured(&columns);
            }
            Ok((distinct, columns, answer))
        };
        if question.statement.transaction().writes {
            // An answer that cannot be encoded is rejected before anything is written.
            begin(&plan.schema())?;
        }
        let started = progress.started();
        let _query = QueryEndGuard { events: &self.events, database: question.database.name(), job, started };
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches } =
            run_until_cancelled(job, progress.run_with_heartbeat(plan.run(job))).await?;
        // Not the columns of the plan: a table may have changed since planning.
        let (distinct, schema, answer) = begin(&schema)?;
        let more = |built_in: &str| question.overflow_hint.clone().unwrap_or_else(|| built_in.to_owned());
        let hints = TruncationHints {
            is_list,
            limit: more("Narrow the query (where, group_by, select) or raise the limit."),
            budget: more(
                "Narrow the query (where, group_by, select), or request the rows after the last one (order_by, where).",
            ),
            rows_before: 0,
        };
        let answer_recorder = AnswerRecorder::for_query(self.store.as_ref(), &question, encoding, known.key, job);
        let batches = redact_stream(batches, job);
        AnswerPipeline { batches, distinct, answer, hints, recorder: answer_recorder, schema, progress: &progress }
            .deliver()
            .await
    }

    /// Plans `question` and records the names that it uses.
    pub(super) async fn plan(
        &self,
        question: &QueryRequest,
        progress: &ProgressReporter<'_>,
    ) -> Result<Box<dyn Plan>, Error> {
        let job = progress.job();
        let planning = question.database.plan(&question.statement, job.principal());
        let plan = run_until_cancelled(job, progress.run_with_heartbeat(planning)).await?;
        self.usage.record(job.caller(), question.database.name(), question.statement.tables());
        // Distinct values are computed over all rows, whatever the limit.
        let rows_max = question.max_rows.filter(|_| question.extract.is_none()).unwrap_or(u64::MAX);
        progress.set_expected_rows(plan.estimated_rows().map(|rows| rows.min(rows_max)));
        Ok(plan)
    }

    /// Writes `rows`, which need no plan, into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// As [`Executor::answer`].
    pub async fn answer_rows(
        &self,
        rows: QueryRows,
        output_options: OutputOptions,
        job: &Job,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let OutputOptions { format, extract, overflow_hint: more } = output_options;
        let (distinct, schema) = DistinctValues::for_answer(extract.as_deref(), &rows.schema)?;
        let progress = ProgressReporter::new(job, reply);
        let (encoding, is_list) = (AnswerEncoding::resolve(format, job.format()), distinct.is_some());
        let answer = ResponseSink::new(&progress, encoding, is_list, None, &schema, true)?;
        let hints = TruncationHints { is_list, limit: more.clone(), budget: more, rows_before: 0 };
        let batches = redact_stream(rows.batches, reply.job());
        AnswerPipeline { batches, distinct, answer, hints, recorder: None, schema, progress: &progress }.deliver().await
    }
}

/// Whether the answer is buffered until it is complete.
fn runs_in_batch(mode: AnswerMode, encoding: AnswerEncoding, plan: &dyn Plan) -> bool {
    match mode {
        AnswerMode::Streaming => false,
        AnswerMode::Batch => true,
        AnswerMode::Auto => {
            let is_small = plan.estimated_rows().is_some_and(|rows| rows <= SMALL_ROWS_MAX);
            matches!(encoding.text_format(), Some(OutputFormat::Table | OutputFormat::Toon))
                || (plan.is_pipeline_breaking() && is_small)
        }
    }
}

/// One answer with everything that it needs.
struct AnswerPipeline<'a> {
    batches: RecordBatches,
    /// Collects the distinct values of one column, if they are the answer instead of the rows.
    distinct: Option<DistinctValues>,
    answer: ResponseSink<'a>,
    hints: TruncationHints,
    /// Stores the rows that do not fit, if they are to be stored.
    recorder: Option<AnswerRecorder<'a>>,
    /// The columns of the answer.
    schema: SchemaRef,
    progress: &'a ProgressReporter<'a>,
}

impl AnswerPipeline<'_> {
    /// Streams the rows into the answer and ends it. Then stores the rows that did not fit.
    async fn deliver(self) -> Result<Metadata, Error> {
        let Self { mut batches, distinct, mut answer, hints, recorder: answer_recorder, schema, progress } = self;
        let reply = progress.reply();
        let mut kept = answer_recorder.is_some().then(Vec::new);
        let values = match distinct {
            None => Ok(None),
            Some(distinct) => collect_distinct_values(&mut batches, distinct, progress).await.map(Some),
        };
        let delivered = match values {
            Ok(values) => {
                if let Some(values) = values {
                    batches = futures::stream::iter(values.into_iter().map(Ok)).boxed();
                }
                stream_rows(&mut batches, &mut answer, progress, kept.as_mut()).await
            }
            Err(error) => Err(error),
        };
        match delivered {
            Ok(()) => match (answer_recorder, answer.rows_if_over_budget()) {
                (Some(answer_recorder), Some(rows)) => {
                    let kept = futures::stream::iter(kept.unwrap_or_default().into_iter().map(Ok));
                    answer_recorder
                        .continue_in_store(kept.chain(batches).boxed(), &schema, rows, answer, hints, reply)
                        .await
                }
                (answer_recorder, _) => {
                    // Stops the query before the footer is sent.
                    drop(batches);
                    match answer_recorder {
                        Some(answer_recorder) => {
                            answer_recorder
                                .store_if_cacheable(kept.unwrap_or_default(), &schema, answer, hints, reply)
                                .await
                        }
                        None => answer.finish(&hints, None).await,
                    }
                }
            },
            Err(error) => {
                drop(batches);
                Err(abandon_answer(answer, error).await?)
            }
        }
    }
}

/// Reads all rows and keeps the distinct values of one column.
async fn collect_distinct_values(
    batches: &mut RecordBatches,
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
