//! What others see of a job: its name and where it stands.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::ErrorKind;

/// Names a job; unguessable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub Uuid);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Waits for a free place.
    Waiting,
    /// Its handler runs.
    Running,
    /// Ended well.
    Done,
    /// Ended with an error of that kind.
    Failed(ErrorKind),
}

impl JobState {
    /// The state's name as answers and metrics show it.
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

/// A job as somebody else sees it.
#[derive(Debug, Clone)]
pub struct JobStatus {
    /// Which job.
    pub id: JobId,
    /// Whose.
    pub caller: Caller,
    /// The sort of target and its name.
    pub target: (&'static str, String),
    /// Where it stands.
    pub state: JobState,
    /// When it came in.
    pub started_at: SystemTime,
    /// The same by the clock that nobody sets, which says what came first.
    pub(crate) started: Instant,
    /// How long it has run, or ran.
    pub elapsed: Duration,
    /// The URI of the stored result that it writes or wrote.
    pub result: Option<String>,
    /// Rows answered so far.
    pub rows: u64,
    /// Bytes of text answered so far.
    pub bytes: u64,
}
