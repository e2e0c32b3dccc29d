//! Counts the rows that a statement would change.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::RunningCall;
use tidegate_sql::Statement;

use super::Executor;
use super::row_stream::{QueryEndGuard, next_batch, run_until_cancelled};
use crate::answer::{AnswerStage, ProgressReporter};
use crate::changed_rows::read_changed_rows;
use crate::database::{Database, QueryRows};

impl Executor {
    /// Runs `statement`, whose transaction must have [`CommitRule::Never`](tidegate_sql::CommitRule::Never), and returns
    /// the number of rows that it would have changed.
    ///
    /// # Errors
    /// The errors of the database.
    pub async fn count_changed_rows(
        &self,
        database: &Arc<dyn Database>,
        statement: &Statement,
        call: &RunningCall,
    ) -> Result<u64, Error> {
        let progress = ProgressReporter::new(call);
        statement.check_parameters()?;
        call.record_statement(|| statement.to_audited_statement(database.name()));
        let planning = database.plan(statement, call.principal());
        let plan = run_until_cancelled(call, progress.run_with_heartbeat(planning)).await?;
        let started = progress.started();
        let _query = QueryEndGuard { events: &self.events, database: database.name(), job: call, started };
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { mut batches, missing, .. } =
            run_until_cancelled(call, progress.run_with_heartbeat(plan.run(call.job()))).await?;
        if let Some(missing) = missing {
            let message = format!("the changed rows cannot be counted: nodes are missing: {}", missing.names());
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let mut changed_rows = None;
        while let Some(batch) = next_batch(&mut batches, &progress).await? {
            changed_rows = read_changed_rows(&batch);
        }
        changed_rows.ok_or_else(|| Error::internal("the database did not count the changed rows"))
    }
}
