//! The status of a job as other callers see it.

use std::time::{Duration, SystemTime};

use tidegate_core::{Caller, ErrorKind};
use tokio::time::Instant;
use uuid::Uuid;

/// The id of a job; it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub Uuid);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobState {
    /// Waits for a run permit.
    #[default]
    Waiting,
    /// Its handler runs.
    Running,
    /// Ended without an error.
    Done,
    /// Ended with an error of this kind.
    Failed(ErrorKind),
}

impl JobState {
    /// The name of the state, as used in answers and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed(kind) => kind.name(),
        }
    }

    /// Whether the job has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }
}

/// The status of a job as other callers see it.
#[derive(Debug, Clone)]
pub struct JobStatus {
    /// The id of the job.
    pub id: JobId,
    /// Its caller.
    pub caller: Caller,
    /// The kind and the name of the target.
    pub target: (&'static str, String),
    /// Its state.
    pub state: JobState,
    /// When the call was accepted.
    pub started_at: SystemTime,
    /// The same time by a monotonic clock, which determines the order of jobs.
    pub(crate) started: Instant,
    /// The run time so far, or in total.
    pub elapsed: Duration,
    /// The URI of the stored result of the job.
    pub result: Option<String>,
    /// The number of rows returned so far.
    pub rows: u64,
    /// The number of bytes of text sent so far.
    pub bytes: u64,
}
