//! Runs a statement whose rows a tool reads itself.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tidegate_core::Error;
use tidegate_runtime::Job;
use tidegate_runtime::event::{Event, EventDispatcher, QueryStep};
use tidegate_sql::Statement;

use super::Executor;
use super::row_stream::{run_plan, run_until_cancelled};
use crate::database::{Database, QueryRows};
use crate::secrets::redact_stream;

impl Executor {
    /// Plans and runs `statement` in `database` for the caller of `job`. Secrets in the rows are masked. Dropping the rows
    /// stops the query. Missing nodes are recorded for the answer of `job`.
    ///
    /// # Errors
    /// The errors of the database.
    pub async fn open_rows(
        &self,
        database: &dyn Database,
        statement: &Statement,
        job: &Arc<Job>,
    ) -> Result<QueryRows, Error> {
        statement.check_parameters()?;
        job.record_database(database.name());
        job.record_statement(|| statement.to_audited_statement(database.name()));
        job.report_step(QueryStep::Planning { database: database.name() });
        let plan = run_until_cancelled(job, database.plan(statement, job.principal())).await?;
        job.report_step(QueryStep::Running { database: database.name() });
        let mut end = QueryEnd {
            events: self.events.clone(),
            database: database.name().to_owned(),
            job: job.clone(),
            started: Instant::now(),
            rows: 0,
        };
        let QueryRows { schema, batches, missing } = run_until_cancelled(job, run_plan(plan, job)).await?;
        let batches = redact_stream(batches, job).inspect(move |batch| end.count(batch));
        Ok(QueryRows { schema, batches: batches.boxed(), missing })
    }
}

/// Emits the end of the query when it is dropped.
struct QueryEnd {
    events: EventDispatcher,
    database: String,
    job: Arc<Job>,
    started: Instant,
    rows: u64,
}

impl QueryEnd {
    fn count(&mut self, batch: &Result<RecordBatch, Error>) {
        self.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
    }
}

impl Drop for QueryEnd {
    fn drop(&mut self) {
        self.events.emit(Event::QueryEnded {
            job: &self.job,
            database: &self.database,
            elapsed: self.started.elapsed(),
            rows: self.rows,
        });
    }
}
