//! Configuration of limits: of calls, of callers, and of the memory and disk of queries.

use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{RowBound, Size, SizeBound, Time};

/// Limits of all calls and of all callers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsConfig {
    /// Maximum duration of a call. Default: 60s.
    pub(crate) timeout: Option<Time>,
    /// Maximum number of rows of an answer. Default: unlimited.
    pub(crate) inline_rows: Option<RowBound>,
    /// Maximum size of an answer, in bytes. Default: 40KB.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// Number of rows in each text item of a tool's answer, for clients that show content as it arrives. Each item is
    /// complete in its format. Not for the formats table and toon. Default: none; all rows are one text.
    pub(crate) batch_rows: Option<NonZeroU64>,
    /// A call without any output for this long becomes a task, if the client declared the extension for tasks.
    /// Default: 10s.
    pub(crate) task_after: Option<Time>,
    /// Maximum duration of a task, from the time when the call became one. Default: 1h.
    pub(crate) task_timeout: Option<Time>,
    /// How long a running call waits for the answer of a person. Default: 10m.
    pub(crate) input_timeout: Option<Time>,
    /// Memory that all queries together may use, with the rows that are received. Default: a quarter of the memory of the
    /// machine.
    pub(crate) memory: Option<Size>,
    /// Disk space that all queries together may use to spill. Default: 10GiB.
    pub(crate) spill: Option<Size>,
    /// Folder in which queries spill, relative to this file. Default: the system's folder for temporary files.
    pub(crate) spill_folder: Option<PathBuf>,
    /// Requests per second of all callers together. Default: unlimited.
    pub(crate) requests_per_second: Option<f64>,
    /// Requests of all callers that may arrive at once. Default: the number of requests_per_second, rounded up.
    pub(crate) burst: Option<u32>,
    /// Calls that run at the same time, of all callers together. More calls wait. Default: 256.
    pub(crate) running_calls: Option<usize>,
    /// Calls that wait, of all callers together. More calls are refused. Default: 1792.
    pub(crate) waiting_calls: Option<usize>,
    /// Limits of each principal, unless its roles set others. Default: no limit, but a quarter of running_calls and of
    /// waiting_calls if callers authenticate.
    pub(crate) principal: LevelLimitsConfig,
    /// Limits of all principals of one tenant together. Default: no limit, but a quarter of running_calls and of
    /// waiting_calls if callers authenticate.
    pub(crate) tenant: LevelLimitsConfig,
    /// Daily limits of all callers together.
    pub(crate) node: DailyConfig,
    /// File that keeps the daily counts across a restart, relative to this file. Default: a file in tidegate/usage of
    /// the user's cache folder.
    pub(crate) usage_file: Option<PathBuf>,
}

/// Limits of callers. A day begins at 00:00 UTC. Default of each: no limit, unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LevelLimitsConfig {
    /// Requests per second.
    pub(crate) requests_per_second: Option<f64>,
    /// Requests that may arrive at once. Default: the number of requests_per_second, rounded up.
    pub(crate) burst: Option<u32>,
    /// Calls that run at the same time; more calls wait.
    pub(crate) running_calls: Option<usize>,
    /// Calls that wait; more calls are refused.
    pub(crate) waiting_calls: Option<usize>,
    /// Rows of all answers in a day.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of all answers in a day, in bytes.
    pub(crate) bytes_per_day: Option<Size>,
    /// Running time of all calls in a day, in seconds. Calls that run at the same time each count in full.
    pub(crate) query_seconds_per_day: Option<u64>,
}

/// Daily limits. A day begins at 00:00 UTC. Default of each: no limit.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DailyConfig {
    /// Rows of all answers in a day.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of all answers in a day, in bytes.
    pub(crate) bytes_per_day: Option<Size>,
    /// Running time of all calls in a day, in seconds. Calls that run at the same time each count in full.
    pub(crate) query_seconds_per_day: Option<u64>,
}

/// Limits of the calls of an entry. Default of each: the value under limits.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallLimitsConfig {
    /// Maximum duration of a call. If total_timeout is longer, maximum time to the first row of PostgreSQL.
    pub(crate) timeout: Option<Time>,
    /// Maximum duration of a call with all its rows. Default: timeout.
    pub(crate) total_timeout: Option<Time>,
    /// PostgreSQL: how long a client may stop reading rows. Default: 30s.
    pub(crate) stall_timeout: Option<Time>,
    /// Maximum number of rows of an answer.
    pub(crate) inline_rows: Option<RowBound>,
    /// Maximum size of an answer, in bytes.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// A call without any output for this long becomes a task, if the client declared the extension for tasks.
    pub(crate) task_after: Option<Time>,
}

/// Limits of the calls of a tool. Default of each: the value under limits.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolLimitsConfig {
    /// Maximum duration of a call. If total_timeout is longer, maximum time to the first row of PostgreSQL.
    pub(crate) timeout: Option<Time>,
    /// Maximum duration of a call with all its rows. Default: timeout.
    pub(crate) total_timeout: Option<Time>,
    /// PostgreSQL: how long a client may stop reading rows. Default: 30s.
    pub(crate) stall_timeout: Option<Time>,
    /// Maximum number of rows of an answer.
    pub(crate) inline_rows: Option<RowBound>,
    /// Maximum size of an answer, in bytes.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// Number of rows in each text item of an answer. Default: limits.batch_rows.
    pub(crate) batch_rows: Option<NonZeroU64>,
    /// A call without any output for this long becomes a task, if the client declared the extension for tasks.
    pub(crate) task_after: Option<Time>,
    /// Calls per second of each tenant. All callers without a tenant count together. Default: no limit.
    pub(crate) requests_per_second: Option<f64>,
    /// Calls of a tenant that may arrive at once. Default: the number of requests_per_second, rounded up.
    pub(crate) burst: Option<u32>,
    /// Calls of all callers that run at the same time; more calls wait. Default: no limit.
    pub(crate) running_calls: Option<usize>,
    /// Calls of all callers that wait; more calls are refused. Default: no limit.
    pub(crate) waiting_calls: Option<usize>,
    /// Rows of all answers to a tenant in a day. All callers without a tenant count together. Default: no limit.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of all answers to a tenant in a day, in bytes. All callers without a tenant count together.
    /// Default: no limit.
    pub(crate) bytes_per_day: Option<Size>,
    /// Running time of all calls of a tenant in a day, in seconds. All callers without a tenant count together.
    /// Default: no limit.
    pub(crate) query_seconds_per_day: Option<u64>,
}

impl LimitsConfig {
    pub(crate) fn shared_limits(&self) -> LevelLimitsConfig {
        LevelLimitsConfig {
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

impl ToolLimitsConfig {
    pub(crate) fn per_call_limits(&self) -> CallLimitsConfig {
        CallLimitsConfig {
            timeout: self.timeout,
            total_timeout: self.total_timeout,
            stall_timeout: self.stall_timeout,
            inline_rows: self.inline_rows,
            inline_bytes: self.inline_bytes,
            task_after: self.task_after,
        }
    }

    pub(crate) fn shared_limits(&self) -> LevelLimitsConfig {
        LevelLimitsConfig {
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

/// Stored results: answers that do not fit inline, kept for later pages and downloads.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ResultsConfig {
    /// Whether answers are stored. Default: true.
    pub(crate) enabled: bool,
    /// Folder of stored results, relative to this file. Default: tidegate/results in the user's cache folder.
    pub(crate) folder: Option<PathBuf>,
    /// Maximum size of an answer that is stored because it did not fit inline, in bytes. Default: 64MiB.
    pub(crate) store_limit: Option<Size>,
    /// Size of the rows of a block before compression, in bytes. Default: 4MiB.
    pub(crate) block_bytes: Option<Size>,
    /// How long a result is kept. Default: 1h.
    pub(crate) ttl: Option<Time>,
    /// Maximum size of all results, in bytes. Default: 10GiB.
    pub(crate) total: Option<Size>,
    /// Maximum size of the results of one principal, in bytes. Default: 2GiB.
    pub(crate) per_principal: Option<Size>,
    /// Disk space that stays free, in bytes. Default: 1GiB.
    pub(crate) keep_free: Option<Size>,
    /// How long a query may continue in the background. Default: 10m.
    pub(crate) timeout: Option<Time>,
}

impl Default for ResultsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            folder: None,
            store_limit: None,
            block_bytes: None,
            ttl: None,
            total: None,
            per_principal: None,
            keep_free: None,
            timeout: None,
        }
    }
}
