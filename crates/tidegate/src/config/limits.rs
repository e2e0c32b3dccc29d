//! Resolves the limits of the file and of the command, and checks those of the file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_core::{Budget, CallLimits, DailyLimits, LevelLimits, Limits, RateLimit};
use tidegate_engines::EngineOptions;
use tidegate_results::StoreLimits;
use tidegate_transport::http::EVENT_BYTES_MAX;
use tidegate_transport::stdio::INLINE_BYTES_MAX;

use super::LoadedConfig;
use super::problems::Problems;
use super::types::{CallLimitsConfig, Config, LevelLimitsConfig, LimitsConfig, ResultsConfig, ToolLimitsConfig};
use crate::options::LimitOptions;
use crate::quantity::{self, LimitValue};

/// The numbers of threads that a server may have.
pub(crate) const RUNTIME_THREADS: RangeInclusive<u32> = 1..=1_024;

/// The limits of all calls: option of the command, else environment, else file, else default.
pub(super) fn resolve_limits(entry: &LimitsConfig, options: &LimitOptions, is_server: bool) -> Limits {
    let default = Limits::default();
    let inline = if is_server {
        let rows = entry.inline_rows.map_or(default.inline.rows, |bound| bound.0.limit());
        let bytes = entry.inline_bytes.map_or(default.inline.bytes, |bound| bound.0.limit());
        Budget { rows, bytes }
    } else {
        // Those of the file and the defaults are for models, which pay for each character.
        Budget::default()
    };
    let shared = to_level_limits(&entry.shared_limits());
    let waiting_calls_max = default.open_calls_max.saturating_sub(default.running_calls_max);
    let waiting_calls_max = shared.waiting_calls_max.unwrap_or(waiting_calls_max);
    let running_calls_max = shared.running_calls_max.unwrap_or(default.running_calls_max);
    Limits {
        timeout: options.timeout.or(entry.timeout.map(|time| time.0)).unwrap_or(default.timeout),
        inline: Budget {
            rows: options.inline_rows.map_or(inline.rows, LimitValue::limit),
            bytes: options.inline_bytes.map_or(inline.bytes, LimitValue::limit),
        },
        task_after: entry.task_after.map_or(default.task_after, |time| time.0),
        task_timeout: entry.task_timeout.map_or(default.task_timeout, |time| time.0),
        input_timeout: entry.input_timeout.map_or(default.input_timeout, |time| time.0),
        running_calls_max,
        open_calls_max: running_calls_max.saturating_add(waiting_calls_max),
        rate: shared.rate,
        daily: shared.daily,
        per_principal: to_level_limits(&entry.principal),
        per_tenant: to_level_limits(&entry.tenant),
        ..default
    }
}

/// The limits of the embedded engine: option of the command, else environment, else file, else default.
pub(crate) fn engine_options(loaded: &LoadedConfig, options: &LimitOptions) -> Result<EngineOptions, String> {
    let entry = &loaded.config.limits;
    let memory = match (options.memory, entry.memory) {
        (None, Some(size)) => Some(quantity::to_usize(size.0)?),
        (memory, _) => memory,
    };
    let default = memory.map_or_else(EngineOptions::default, EngineOptions::with_memory);
    let folder_of_file = entry.spill_folder.as_ref().map(|folder| loaded.resolve(folder));
    Ok(EngineOptions {
        spill_bytes: options.spill.or(entry.spill.map(|size| size.0)).unwrap_or(default.spill_bytes),
        spill_folder: options.spill_folder.clone().or(folder_of_file),
        ..default
    })
}

pub(crate) fn store_limits(entry: &ResultsConfig) -> Result<StoreLimits, String> {
    let default = StoreLimits::default();
    let block_bytes = entry.block_bytes.map(|size| quantity::to_usize(size.0)).transpose()?;
    Ok(StoreLimits {
        continued_bytes: entry.store_limit.map_or(default.continued_bytes, |size| size.0),
        block_bytes: block_bytes.unwrap_or(default.block_bytes),
        time_to_live: entry.ttl.map_or(default.time_to_live, |time| time.0),
        total_bytes: entry.total.map_or(default.total_bytes, |size| size.0),
        bytes_per_principal: entry.per_principal.map_or(default.bytes_per_principal, |size| size.0),
        free_bytes: entry.keep_free.map_or(default.free_bytes, |size| size.0),
        timeout: entry.timeout.map_or(default.timeout, |time| time.0),
        ..default
    })
}

/// Converts `entry`. Invalid values, which [`check_limits`] reports, count as missing.
pub(super) fn to_level_limits(entry: &LevelLimitsConfig) -> LevelLimits {
    let burst = |each_second: f64| entry.burst.unwrap_or((each_second.ceil() as u32).max(1));
    LevelLimits {
        rate: entry.requests_per_second.and_then(|each_second| RateLimit::per_second(each_second, burst(each_second))),
        running_calls_max: entry.running_calls,
        waiting_calls_max: entry.waiting_calls,
        daily: DailyLimits {
            rows: entry.rows_per_day,
            bytes: entry.bytes_per_day.map(|size| size.0),
            time: entry.query_seconds_per_day.map(Duration::from_secs),
        },
    }
}

/// As [`to_call_limits`], with the limits of all callers of the tool.
pub(super) fn to_tool_limits(entry: &ToolLimitsConfig, inline: Budget) -> CallLimits {
    CallLimits {
        all_callers: to_level_limits(&entry.shared_limits()),
        ..to_call_limits(entry.per_call_limits(), inline)
    }
}

/// The limits of a declared entry. `inline` has those of the node, which apply to the answer where `entry` has none.
pub(super) fn to_call_limits(entry: CallLimitsConfig, inline: Budget) -> CallLimits {
    let inline = Budget {
        rows: entry.inline_rows.map_or(inline.rows, |bound| bound.0.limit()),
        bytes: entry.inline_bytes.map_or(inline.bytes, |bound| bound.0.limit()),
    };
    // Those of the node are for models, and a body is for programs.
    let body = Budget {
        rows: entry.inline_rows.and_then(|bound| bound.0.limit()),
        bytes: entry.inline_bytes.and_then(|bound| bound.0.limit()),
    };
    let timeout = entry.total_timeout.or(entry.timeout).map(|time| time.0);
    let task_after = entry.task_after.map(|time| time.0);
    CallLimits { timeout, inline: Some(inline), body: Some(body), task_after, ..CallLimits::default() }
}

pub(super) fn check_limits(config: &Config, problems: &Problems) {
    let limits = &config.limits;
    if config.server.threads.is_some_and(|threads| !RUNTIME_THREADS.contains(&threads)) {
        let message = format!("must be from {} to {}", RUNTIME_THREADS.start(), RUNTIME_THREADS.end());
        problems.add("server.threads", message);
    }
    if config.server.max_event.is_some_and(|size| size.0 < MAX_EVENT_MIN) {
        problems.add("server.max_event", "must be at least 64KiB");
    }
    if config.server.sse_resume.is_some_and(|time| time.0 > SSE_RESUME_MAX) {
        problems.add("server.sse_resume", "must be at most 10m");
    }
    check_level_limits(&limits.shared_limits(), &problems.at("limits"));
    check_level_limits(&limits.principal, &problems.at("limits.principal"));
    check_level_limits(&limits.tenant, &problems.at("limits.tenant"));
    for (index, role) in config.roles.iter().enumerate() {
        check_level_limits(&role.limits, &problems.at(format_args!("roles[{index}].limits")));
    }
    for (index, tool) in config.tools.iter().enumerate() {
        check_level_limits(&tool.limits.shared_limits(), &problems.at(format_args!("tools[{index}].limits")));
    }
}

/// The calls of a client that left run on for this time.
const SSE_RESUME_MAX: Duration = Duration::from_secs(10 * 60);

/// A smaller event would hold hardly more than the notice that an answer continues elsewhere.
const MAX_EVENT_MIN: u64 = 64 << 10;

/// Where the transports carry less than `inline_bytes`. They carry any size if the answers of the node are unlimited.
pub(super) fn inline_bytes_warnings(config: &Config) -> Vec<String> {
    if config.limits.inline_bytes.is_some_and(|bound| bound.0.limit().is_none()) {
        return Vec::new();
    }
    let tools = config.tools.iter().enumerate();
    let tools = tools.map(|(index, tool)| (format!("tools[{index}].limits"), tool.limits.inline_bytes));
    let resources = config.resources.iter().enumerate();
    let resources = resources.map(|(index, entry)| (format!("resources[{index}].limits"), entry.limits.inline_bytes));
    let entries = [("limits".to_owned(), config.limits.inline_bytes)].into_iter().chain(tools).chain(resources);
    let event_max =
        config.server.max_event.map_or(EVENT_BYTES_MAX, |size| usize::try_from(size.0).unwrap_or(usize::MAX));
    entries.filter_map(|(path, bound)| inline_bytes_warning(&path, bound?.0.limit(), event_max)).collect()
}

fn inline_bytes_warning(path: &str, bytes: Option<usize>, event_max: usize) -> Option<String> {
    let is_above = |max: usize| bytes.is_none_or(|bytes| bytes > max);
    let in_lines = if is_above(INLINE_BYTES_MAX) {
        format!("and {INLINE_BYTES_MAX} over stdio")
    } else {
        "and the whole value over stdio".to_owned()
    };
    is_above(event_max).then(|| {
        format!(
            "{path}.inline_bytes is above what clients accept in one message: {event_max} bytes apply over \
             HTTP+SSE, WebSocket and event streams of Streamable HTTP (server.max_event), {in_lines}; the whole value \
             applies to JSON responses of Streamable HTTP"
        )
    })
}

fn check_level_limits(entry: &LevelLimitsConfig, problems: &Problems) {
    match entry.requests_per_second {
        Some(each_second) if RateLimit::per_second(each_second, 1).is_none() => {
            problems.add("requests_per_second", "must be above 0; 0.5 is one in two seconds");
        }
        None if entry.burst.is_some() => problems.add("burst", "requires requests_per_second"),
        _ => {}
    }
    if entry.burst == Some(0) {
        problems.add("burst", "must be at least 1, or every request is refused");
    }
    if entry.running_calls == Some(0) {
        problems.add("running_calls", "must be at least 1, or no call ever runs");
    }
}

/// The file in which the node of `loaded` keeps its daily usage, by default below `folder`.
pub(crate) fn usage_file(loaded: &LoadedConfig, folder: &Path) -> PathBuf {
    if let Some(file) = &loaded.config.limits.usage_file {
        return loaded.resolve(file);
    }
    // Each configuration has its own file.
    let mut hasher = DefaultHasher::new();
    loaded.path().hash(&mut hasher);
    folder.join("usage").join(format!("{:016x}.json", hasher.finish()))
}
