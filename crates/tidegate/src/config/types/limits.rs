//! Bounds: of calls, of what callers may have, and of what queries may hold.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{RowBound, Size, SizeBound, Time};

/// The bounds of all calls, and of all callers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsEntry {
    /// How long a call may run; 60s unless said.
    pub(crate) timeout: Option<Time>,
    /// Rows of an answer; unlimited unless said.
    pub(crate) inline_rows: Option<RowBound>,
    /// Size of an answer; 40KB unless said.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// After how long without a word a call becomes a task, where the client comes back for its result; 10s unless said.
    pub(crate) task_after: Option<Time>,
    /// How long a task may run, from when it became one; 1h unless said.
    pub(crate) task_timeout: Option<Time>,
    /// How long a call waits for the answer to what it asks; 10m unless said.
    pub(crate) input_timeout: Option<Time>,
    /// Memory that all queries together may hold.
    pub(crate) memory: Option<Size>,
    /// Disk that all queries together may spill to.
    pub(crate) spill: Option<Size>,
    /// The folder in which queries spill.
    pub(crate) spill_folder: Option<PathBuf>,
    /// Requests a second of all callers together; unlimited unless said.
    pub(crate) requests_per_second: Option<f64>,
    /// Requests of all callers that may come at once; those of a second unless said.
    pub(crate) burst: Option<u32>,
    /// Calls that run at the same time; 256 unless said. More of them wait.
    pub(crate) running_calls: Option<usize>,
    /// Calls that wait for one that runs; 1792 unless said. More of them are refused.
    pub(crate) waiting_calls: Option<usize>,
    /// What one principal may have, unless its roles say otherwise; a quarter of the calls where callers prove who they are.
    pub(crate) principal: AllowanceEntry,
    /// What all principals of one tenant together may have; a quarter of the calls unless said.
    pub(crate) tenant: AllowanceEntry,
    /// What the calls of all callers together may take in a day.
    pub(crate) node: DailyEntry,
    /// The file that keeps what callers have used of their day over a restart, relative to this one; one in
    /// tidegate/usage of the user's cache folder unless said.
    pub(crate) usage_file: Option<PathBuf>,
}

/// What somebody may have. What is not said has no bound of its own. Days begin at 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AllowanceEntry {
    /// Requests a second.
    pub(crate) requests_per_second: Option<f64>,
    /// Requests that may come at once; those of a second unless said.
    pub(crate) burst: Option<u32>,
    /// Calls that run at the same time; more of them wait.
    pub(crate) running_calls: Option<usize>,
    /// Calls that wait; more of them are refused.
    pub(crate) waiting_calls: Option<usize>,
    /// Rows answered in a day.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of what is answered in a day.
    pub(crate) bytes_per_day: Option<Size>,
    /// Seconds for which calls run in a day, each counted by itself.
    pub(crate) query_seconds_per_day: Option<u64>,
}

/// What calls may take in a day, which begins at 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DailyEntry {
    /// Rows answered.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of what is answered.
    pub(crate) bytes_per_day: Option<Size>,
    /// Seconds for which calls run, each counted by itself.
    pub(crate) query_seconds_per_day: Option<u64>,
}

/// Bounds of an entry's calls; what is not said is as under limits.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallLimitsEntry {
    /// How long a call may run; where total_timeout says more, how long the first row of PostgreSQL may take.
    pub(crate) timeout: Option<Time>,
    /// How long a call may run, first row and all others.
    pub(crate) total_timeout: Option<Time>,
    /// How long a reader may leave rows of PostgreSQL waiting; 30s unless said.
    pub(crate) stall_timeout: Option<Time>,
    /// Rows of an answer.
    pub(crate) inline_rows: Option<RowBound>,
    /// Size of an answer.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// After how long without a word a call becomes a task, where the client comes back for its result.
    pub(crate) task_after: Option<Time>,
}

/// Bounds of a tool's calls; what is not said is as under limits.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolLimitsEntry {
    /// How long a call may run; where total_timeout says more, how long the first row of PostgreSQL may take.
    pub(crate) timeout: Option<Time>,
    /// How long a call may run, first row and all others.
    pub(crate) total_timeout: Option<Time>,
    /// How long a reader may leave rows of PostgreSQL waiting; 30s unless said.
    pub(crate) stall_timeout: Option<Time>,
    /// Rows of an answer.
    pub(crate) inline_rows: Option<RowBound>,
    /// Size of an answer.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// After how long without a word a call becomes a task, where the client comes back for its result.
    pub(crate) task_after: Option<Time>,
    /// Calls a second of each tenant, and of all callers together who have none.
    pub(crate) requests_per_second: Option<f64>,
    /// Calls of these that may come at once; those of a second unless said.
    pub(crate) burst: Option<u32>,
    /// Calls of all callers that run at the same time; more of them wait.
    pub(crate) running_calls: Option<usize>,
    /// Calls of all callers that wait; more of them are refused.
    pub(crate) waiting_calls: Option<usize>,
    /// Rows answered to each tenant in a day, and to all callers together who have none.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of what is answered to these in a day.
    pub(crate) bytes_per_day: Option<Size>,
    /// Seconds for which their calls of it run in a day, each counted by itself.
    pub(crate) query_seconds_per_day: Option<u64>,
}

impl LimitsEntry {
    /// What all callers together may have.
    pub(crate) fn shared_allowance(&self) -> AllowanceEntry {
        AllowanceEntry {
            requests_per_second: self.requests_per_second,
            burst: self.burst,
            running_calls: self.running_calls,
            waiting_calls: self.waiting_calls,
            rows_per_day: self.node.rows_per_day,
            bytes_per_day: self.node.bytes_per_day,
            query_seconds_per_day: self.node.query_seconds_per_day,
        }
    }
}

impl ToolLimitsEntry {
    /// The bounds of each of its calls.
    pub(crate) fn per_call_limits(&self) -> CallLimitsEntry {
        CallLimitsEntry {
            timeout: self.timeout,
            total_timeout: self.total_timeout,
            stall_timeout: self.stall_timeout,
            inline_rows: self.inline_rows,
            inline_bytes: self.inline_bytes,
            task_after: self.task_after,
        }
    }

    /// What all callers together may have of it.
    pub(crate) fn shared_allowance(&self) -> AllowanceEntry {
        AllowanceEntry {
            requests_per_second: self.requests_per_second,
            burst: self.burst,
            running_calls: self.running_calls,
            waiting_calls: self.waiting_calls,
            rows_per_day: self.rows_per_day,
            bytes_per_day: self.bytes_per_day,
            query_seconds_per_day: self.query_seconds_per_day,
        }
    }
}
