//! `list_jobs`: the caller's calls that run, wait or ended lately.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, TimestampMillisecondArray};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, Handler, Job, JobStatus, Metadata, ReplySender, Tool};
use tidegate_query::Rows;

use super::cancel_job::{is_called, unknown};
use crate::arguments::{Shape, arguments};
use crate::definition::{Input, read_only};
use crate::node::NodeView;
use crate::table::{Table, count, text};

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    read_only(
        "list_jobs",
        "List jobs",
        "Your calls that run, wait or ended lately, newest first. Use before cancel_job.",
        Input::new().with("id", json!({"type": "string", "description": "Only this one"})).with_shape(),
        ListJobs(node.clone()),
    )
}

struct ListJobs(Arc<NodeView>);

#[derive(Deserialize)]
struct Arguments {
    id: Option<String>,
    #[serde(flatten)]
    shape: Shape,
}

#[async_trait]
impl Handler for ListJobs {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let Arguments { id, shape } = arguments(&job)?;
        let mut jobs = self.0.jobs()?.list(job.caller());
        // The call that asks is no news.
        jobs.retain(|other| other.id != job.id());
        if let Some(id) = id {
            if !jobs.iter().any(|other| is_called(other, &id)) {
                return Err(unknown(&id, &jobs, &job));
            }
            jobs.retain(|other| is_called(other, &id));
        }
        let presentation = shape.presentation("Older jobs are further down; there is no way to ask for them alone.")?;
        self.0.executor.answer_rows(rows(&jobs)?, presentation, &job, &reply).await
    }
}

/// A row for each of `jobs`.
pub(crate) fn rows(jobs: &[JobStatus]) -> Result<Rows, Error> {
    let started = jobs.iter().map(|job| {
        let since_epoch = job.started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).ok()
    });
    let started: ArrayRef = Arc::new(started.collect::<TimestampMillisecondArray>().with_timezone("UTC"));
    Table::new()
        .column("id", text(jobs.iter().map(|job| Some(job.id.to_string()))))
        .column("kind", text(jobs.iter().map(|job| Some(job.target.0.to_owned()))))
        .column("target", text(jobs.iter().map(|job| Some(job.target.1.clone()))))
        .column("status", text(jobs.iter().map(|job| Some(job.state.name().to_owned()))))
        .column("started_at", started)
        .column("elapsed_ms", count(jobs.iter().map(|job| u64::try_from(job.elapsed.as_millis()).ok())))
        .column("rows", count(jobs.iter().map(|job| Some(job.rows))))
        .column("result", text(jobs.iter().map(|job| job.result.clone())))
        .column("bytes", count(jobs.iter().map(|job| Some(job.bytes))))
        .rows()
}
