//! Answers with the rows of a query, or with those that a tool has.

use tidegate_core::{Error, Format};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{Answer, AnswerMeta, ReplySender};

use super::Executor;
use super::delivery::{AnswerRecorder, RowAnswer};
use super::run::{run_plan, run_until_cancelled};
use crate::database::{Plan, QueryRows};
use crate::distinct::DistinctValues;
use crate::format::resolve_format;
use crate::progress::{AnswerStage, ProgressReporter};
use crate::request::{AnswerMode, OutputOptions, QueryRequest};

/// A pipeline-breaking plan that expects at most this many rows is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;

impl Executor {
    /// The rows of `request`, within the inline budget of the call. The query runs when the answer is sent.
    ///
    /// The answer fails with the errors of the database. Rows that were sent before stay, and their block is closed.
    pub fn answer(&self, request: QueryRequest) -> Answer {
        let executor = self.clone();
        Answer::written(|reply| async move { executor.write_answer(request, &reply).await })
    }

    async fn write_answer(&self, request: QueryRequest, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let (job, progress, output) = (reply.job(), ProgressReporter::new(reply.call()), &request.output);
        request.statement.check_parameters()?;
        job.record_statement(|| request.statement.to_audited_statement(request.database.name()));
        let (cache_key, cached) = self.look_up_cache(&request, job).await;
        if let Some(result) = &cached {
            job.report_step(QueryStep::Cached);
            return Box::pin(self.replay_answer(result, output, reply)).await;
        }
        let query = self.running.enter();
        let plan = self.plan(&request, &progress).await?;
        // Rejected before the query runs.
        DistinctValues::for_answer(output.extract.as_deref(), &plan.schema())?;
        let is_buffering =
            output.extract.is_some() || runs_in_batch(output.mode, resolve_format(output.format, job), plan.as_ref());
        if request.statement.transaction().writes {
            // An answer that cannot be encoded is rejected before anything is written.
            RowAnswer::begin(reply, &progress, output, &plan.schema(), is_buffering)?;
        }
        let _end = self.query_end(&*request.database, job, progress.started());
        job.report_step(QueryStep::Running { database: request.database.name() });
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches, .. } =
            run_until_cancelled(job, progress.run_with_heartbeat(run_plan(plan, job))).await?;
        // Not the columns of the plan: a table may have changed since planning.
        let answer = RowAnswer::begin(reply, &progress, output, &schema, is_buffering)?;
        let recorder = AnswerRecorder::for_query(self.store.as_ref(), &request, cache_key, reply, &query);
        answer.deliver(batches, recorder).await
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
        let output = &request.output;
        let rows_max = output.rows_max.filter(|_| output.extract.is_none()).unwrap_or(u64::MAX);
        progress.set_expected_rows(plan.estimated_rows().map(|rows| rows.min(rows_max)));
        Ok(plan)
    }

    /// `rows`, which need no plan, within the inline budget of the call. The answer fails as [`Executor::answer`] does.
    pub fn answer_rows(&self, rows: QueryRows, output: OutputOptions) -> Answer {
        Answer::written(|reply| async move {
            let progress = ProgressReporter::new(reply.call());
            rows.record_missing(reply.job())?;
            RowAnswer::begin(&reply, &progress, &output, &rows.schema, true)?.deliver(rows.batches, None).await
        })
    }
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
