//! Plans and runs a query, and writes its rows into the answer and beyond its end into the store.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tidegate_core::{Error, Format};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{Answer, AnswerMeta, ReplySender};

use super::Executor;
use super::continuation::AnswerRecorder;
use super::row_stream::{
    QueryEndGuard, RecordBatchStream, abandon_answer, next_batch, run_plan, run_until_cancelled, stream_rows,
};
use crate::answer::{AnswerStage, AnswerWriter, ProgressReporter, TruncationHints};
use crate::database::{Plan, QueryRows};
use crate::distinct::DistinctValues;
use crate::format::resolve_format;
use crate::missing_nodes::mark_schema;
use crate::request::{AnswerMode, OutputOptions, QueryRequest};
use crate::secrets::redact_stream;

/// A pipeline-breaking plan that expects at most this many rows is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;
const BUDGET_HINT: &str =
    "Narrow the query (where, group_by, select), or request the rows after the last one (order_by, where).";

impl Executor {
    /// The rows of `request`, within the inline budget of the call. The query runs when the answer is sent.
    ///
    /// The answer fails with the errors of the database. Rows that were sent before stay, and their block is closed.
    pub fn answer(&self, request: QueryRequest) -> Answer {
        let executor = self.clone();
        Answer::written(|reply| async move { executor.write_answer(request, &reply).await })
    }

    async fn write_answer(&self, request: QueryRequest, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let (job, progress) = (reply.job(), ProgressReporter::new(reply.call()));
        request.statement.check_parameters()?;
        job.record_statement(|| request.statement.to_audited_statement(request.database.name()));
        let cached = self.look_up_cache(&request, job).await;
        if let Some(result) = &cached.result {
            job.report_step(QueryStep::Cached);
            return Box::pin(self.replay_answer(result, &request, reply)).await;
        }
        let query = self.running.enter();
        let plan = self.plan(&request, &progress).await?;
        let format = resolve_format(request.format, job);
        // Rejected before the query runs.
        DistinctValues::for_answer(request.extract.as_deref(), &plan.schema())?;
        let is_list = request.extract.is_some();
        let is_buffering = is_list || runs_in_batch(request.mode, format, plan.as_ref());
        let begin = |schema: &SchemaRef| -> Result<_, Error> {
            let (distinct, columns) = DistinctValues::for_answer(request.extract.as_deref(), schema)?;
            let columns = mark_schema(columns, job);
            let mut answer =
                AnswerWriter::new(reply, &progress, format, is_list, request.max_rows, &columns, is_buffering)?;
            if request.structured.is_some() && job.format().is_none() {
                request.check_output_schema(&columns)?;
                answer = answer.with_structured(&columns);
            }
            Ok((distinct, columns, answer))
        };
        if request.statement.transaction().writes {
            // An answer that cannot be encoded is rejected before anything is written.
            begin(&plan.schema())?;
        }
        let started = progress.started();
        let _query = QueryEndGuard { events: &self.events, database: request.database.name(), job, started };
        job.report_step(QueryStep::Running { database: request.database.name() });
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches, .. } =
            run_until_cancelled(job, progress.run_with_heartbeat(run_plan(plan, job))).await?;
        // Not the columns of the plan: a table may have changed since planning.
        let (distinct, schema, answer) = begin(&schema)?;
        let hints = TruncationHints {
            is_list,
            limit: request.limit_hint.clone(),
            budget: request.overflow_hint.clone().unwrap_or_else(|| BUDGET_HINT.to_owned()),
            rows_before: 0,
        };
        let recorder = AnswerRecorder::for_query(self.store.as_ref(), &request, cached.key, reply, &query);
        let batches = redact_stream(batches, job);
        AnswerPipeline { batches, distinct, answer, hints, recorder, schema, progress: &progress }.deliver().await
    }

    pub(super) async fn plan(
        &self,
        request: &QueryRequest,
        progress: &ProgressReporter<'_>,
    ) -> Result<Box<dyn Plan>, Error> {
        let job = progress.job();
        job.report_step(QueryStep::Planning { database: request.database.name() });
        let planning = request.database.plan(&request.statement, job.principal());
        let plan = run_until_cancelled(job, progress.run_with_heartbeat(planning)).await?;
        self.usage.record(job.caller(), request.database.name(), request.statement.tables());
        // Distinct values are computed over all rows, whatever the limit.
        let rows_max = request.max_rows.filter(|_| request.extract.is_none()).unwrap_or(u64::MAX);
        progress.set_expected_rows(plan.estimated_rows().map(|rows| rows.min(rows_max)));
        Ok(plan)
    }

    /// `rows`, which need no plan, within the inline budget of the call. The answer fails as [`Executor::answer`] does.
    pub fn answer_rows(&self, rows: QueryRows, options: OutputOptions) -> Answer {
        Answer::written(|reply| async move { write_rows(rows, options, &reply).await })
    }
}

async fn write_rows(rows: QueryRows, options: OutputOptions, reply: &ReplySender) -> Result<AnswerMeta, Error> {
    let OutputOptions { format, extract, overflow_hint: more } = options;
    let (job, progress) = (reply.job(), ProgressReporter::new(reply.call()));
    rows.record_missing(job)?;
    let (distinct, schema) = DistinctValues::for_answer(extract.as_deref(), &rows.schema)?;
    let schema = mark_schema(schema, job);
    let (format, is_list) = (resolve_format(format, job), distinct.is_some());
    let answer = AnswerWriter::new(reply, &progress, format, is_list, None, &schema, true)?;
    let hints = TruncationHints { is_list, limit: Some(more.clone()), budget: more, rows_before: 0 };
    let batches = redact_stream(rows.batches, job);
    AnswerPipeline { batches, distinct, answer, hints, recorder: None, schema, progress: &progress }.deliver().await
}

/// Whether the answer is buffered until it is complete.
fn runs_in_batch(mode: AnswerMode, format: Format, plan: &dyn Plan) -> bool {
    match mode {
        AnswerMode::Streaming => false,
        AnswerMode::Batch => true,
        AnswerMode::Auto => {
            let is_small = plan.estimated_rows().is_some_and(|rows| rows <= SMALL_ROWS_MAX);
            format.needs_several_rows() || (plan.is_pipeline_breaking() == Some(true) && is_small)
        }
    }
}

struct AnswerPipeline<'a> {
    batches: RecordBatchStream,
    /// Collects the distinct values of one column, if they are the answer instead of the rows.
    distinct: Option<DistinctValues>,
    answer: AnswerWriter<'a>,
    hints: TruncationHints,
    /// Stores the rows that do not fit, if they are to be stored.
    recorder: Option<AnswerRecorder<'a>>,
    schema: SchemaRef,
    progress: &'a ProgressReporter<'a>,
}

impl AnswerPipeline<'_> {
    /// Streams the rows into the answer and ends it. Then stores the rows that did not fit.
    async fn deliver(self) -> Result<AnswerMeta, Error> {
        let Self { mut batches, distinct, mut answer, hints, recorder, schema, progress } = self;
        let mut kept = recorder.is_some().then(Vec::new);
        let streaming = async {
            if let Some(distinct) = distinct {
                let values = Box::pin(collect_distinct_values(&mut batches, distinct, progress)).await?;
                batches = futures::stream::iter(values.into_iter().map(Ok)).boxed();
            }
            stream_rows(&mut batches, &mut answer, progress, kept.as_mut()).await
        };
        let streamed = streaming.await;
        let kept = kept.unwrap_or_default();
        let over_budget = answer.rows_if_over_budget().filter(|_| streamed.is_ok());
        if let (Some(recorder), Some(rows)) = (&recorder, over_budget) {
            let rest = futures::stream::iter(kept.into_iter().map(Ok)).chain(batches).boxed();
            return Box::pin(recorder.continue_in_store(rest, &schema, rows, answer, hints)).await;
        }
        // Stops the query before the footer is sent.
        drop(batches);
        match (streamed, recorder) {
            (Err(error), _) => Err(Box::pin(abandon_answer(answer, error)).await?),
            (Ok(()), Some(recorder)) if recorder.is_cacheable(&answer, &kept) => {
                Box::pin(recorder.store(kept, &schema, answer, hints)).await
            }
            (Ok(()), _) => answer.finish(&hints, None).await,
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
