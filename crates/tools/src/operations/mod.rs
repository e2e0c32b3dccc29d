//! Operations tools: jobs, state and identity of the node.

pub(crate) mod cancel_job;
pub(crate) mod list_jobs;
pub(crate) mod node_status;
pub(crate) mod server_info;

pub(crate) use cancel_job::unknown_job_error as unknown_job;
pub(crate) use list_jobs::jobs_as_rows as job_rows;
