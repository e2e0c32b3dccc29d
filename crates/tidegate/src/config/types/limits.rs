//! Configuration of limits: of calls, of callers, and of the memory and disk of queries.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{RowBound, Size, SizeBound, Time};

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsConfig {
    /// Maximum duration of a call. Default: 60s.
    pub(crate) timeout: Option<Time>,
    /// Maximum rows of an answer. Default: unlimited.
    pub(crate) inline_rows: Option<RowBound>,
    /// Maximum size of an answer. Default: 40KB.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// Time without output after which a call becomes a task, if the client has the extension for tasks. Default: 10s.
    pub(crate) task_after: Option<Time>,
    /// Maximum duration after a call became a task. Default: 1h.
    pub(crate) task_timeout: Option<Time>,
    /// Maximum wait of a call for a person. Default: 10m.
    pub(crate) input_timeout: Option<Time>,
    /// Memory of all queries and received rows. Default: a quarter of the memory of the machine.
    pub(crate) memory: Option<Size>,
    /// Disk space to which all queries may spill. Default: 10GiB.
    pub(crate) spill: Option<Size>,
    /// Folder in which queries spill. Default: the system's folder for temporary files.
    pub(crate) spill_folder: Option<PathBuf>,
    /// Requests per second of all callers together. Default: unlimited.
    pub(crate) requests_per_second: Option<f64>,
    /// Requests of all callers that may arrive at once. Default: the number of requests_per_second, rounded up.
    pub(crate) burst: Option<u32>,
    /// Running calls of all callers together. More calls wait. Default: 256.
    pub(crate) running_calls: Option<usize>,
    /// Waiting calls of all callers together. More calls are refused. Default: 1792.
    pub(crate) waiting_calls: Option<usize>,
    /// Limits of each principal, unless its roles set others. Default: no limit, but a quarter of running_calls and of
    /// waiting_calls if callers authenticate.
    pub(crate) principal: LevelLimitsConfig,
    /// Limits of all principals of a tenant together. Default: no limit, but a quarter of running_calls and of
    /// waiting_calls if callers authenticate.
    pub(crate) tenant: LevelLimitsConfig,
    /// Daily limits of all callers together.
    pub(crate) node: DailyConfig,
    /// File that keeps daily counts across restarts. Default: a file in tidegate/usage of the user's cache folder.
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
    /// Running calls. More calls wait.
    pub(crate) running_calls: Option<usize>,
    /// Waiting calls. More calls are refused.
    pub(crate) waiting_calls: Option<usize>,
    /// Rows of all answers.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of all answers.
    pub(crate) bytes_per_day: Option<Size>,
    /// Running time in seconds. Parallel calls each count in full.
    pub(crate) query_seconds_per_day: Option<u64>,
}

/// Daily limits. A day begins at 00:00 UTC. Default of each: no limit.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DailyConfig {
    /// Rows of all answers.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of all answers.
    pub(crate) bytes_per_day: Option<Size>,
    /// Running time in seconds. Parallel calls each count in full.
    pub(crate) query_seconds_per_day: Option<u64>,
}

/// Limits of a resource. Default of each: the value under limits.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallLimitsConfig {
    /// Maximum duration. With a longer total_timeout: time to PostgreSQL's first row.
    pub(crate) timeout: Option<Time>,
    /// Maximum duration with all rows. Default: timeout.
    pub(crate) total_timeout: Option<Time>,
    /// PostgreSQL: how long a client may stop reading rows. Default: 30s.
    pub(crate) stall_timeout: Option<Time>,
    /// Maximum rows of an answer.
    pub(crate) inline_rows: Option<RowBound>,
    /// Maximum size of an answer.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// Time without output after which a call becomes a task, if the client has the extension for tasks.
    pub(crate) task_after: Option<Time>,
}

/// Limits of a tool. Callers without a tenant count together. Default of each: the value under limits.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolLimitsConfig {
    /// Maximum duration. With a longer total_timeout: time to PostgreSQL's first row.
    pub(crate) timeout: Option<Time>,
    /// Maximum duration with all rows. Default: timeout.
    pub(crate) total_timeout: Option<Time>,
    /// PostgreSQL: how long a client may stop reading rows. Default: 30s.
    pub(crate) stall_timeout: Option<Time>,
    /// Maximum rows of an answer.
    pub(crate) inline_rows: Option<RowBound>,
    /// Maximum size of an answer.
    pub(crate) inline_bytes: Option<SizeBound>,
    /// Time without output after which a call becomes a task, if the client has the extension for tasks.
    pub(crate) task_after: Option<Time>,
    /// Calls per second of each tenant. Default: no limit.
    pub(crate) requests_per_second: Option<f64>,
    /// Calls of a tenant that may arrive at once. Default: the number of requests_per_second, rounded up.
    pub(crate) burst: Option<u32>,
    /// Running calls of all callers. More calls wait. Default: no limit.
    pub(crate) running_calls: Option<usize>,
    /// Waiting calls of all callers. More calls are refused. Default: no limit.
    pub(crate) waiting_calls: Option<usize>,
    /// Rows of all answers to a tenant. Default: no limit.
    pub(crate) rows_per_day: Option<u64>,
    /// Size of all answers to a tenant. Default: no limit.
    pub(crate) bytes_per_day: Option<Size>,
    /// Running time of a tenant's calls in seconds. Default: no limit.
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

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ResultsConfig {
    /// Whether answers are stored. Default: true.
    pub(crate) enabled: bool,
    /// Folder of the results. Default: tidegate/results in the user's cache folder.
    pub(crate) folder: Option<PathBuf>,
    /// Maximum size of an answer that is stored because it is not inline. Default: 64MiB.
    pub(crate) store_limit: Option<Size>,
    /// Size of a block before compression. Default: 4MiB.
    pub(crate) block_bytes: Option<Size>,
    /// Lifetime of a result. Default: 1h.
    pub(crate) ttl: Option<Time>,
    /// Maximum size of all results. Default: 10GiB.
    pub(crate) total: Option<Size>,
    /// Maximum size of a principal's results. Default: 2GiB.
    pub(crate) per_principal: Option<Size>,
    /// Disk space that stays free. Default: 1GiB.
    pub(crate) keep_free: Option<Size>,
    /// Maximum duration of a query in the background. Default: 10m.
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
