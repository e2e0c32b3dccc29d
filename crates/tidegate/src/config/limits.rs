//! What callers may have, from the words of the file to the bounds of the registry.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_core::{Allowance, Budget, CallLimits, DailyLimits, Limits, RateLimit};

use super::LoadedConfig;
use super::problem::ConfigProblem;
use super::types::{AllowanceEntry, CallLimitsEntry, Config, LimitsEntry, ToolLimitsEntry};

/// `limits` with what the file says of callers and their calls.
pub(crate) fn with_caller_limits(limits: Limits, entry: &LimitsEntry) -> Limits {
    let of_all = to_allowance(&entry.shared_allowance());
    let waiting_calls_max = limits.open_calls_max.saturating_sub(limits.running_calls_max);
    let waiting_calls_max = of_all.waiting_calls_max.unwrap_or(waiting_calls_max);
    let running_calls_max = of_all.running_calls_max.unwrap_or(limits.running_calls_max);
    Limits {
        running_calls_max,
        open_calls_max: running_calls_max.saturating_add(waiting_calls_max),
        rate: of_all.rate,
        daily: of_all.daily,
        per_principal: to_allowance(&entry.principal),
        per_tenant: to_allowance(&entry.tenant),
        ..limits
    }
}

/// What `entry` allows. What makes no sense, of which [`check`] complains, allows what nothing would.
pub(super) fn to_allowance(entry: &AllowanceEntry) -> Allowance {
    let burst = |each_second: f64| entry.burst.unwrap_or((each_second.ceil() as u32).max(1));
    Allowance {
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

/// The bounds of a tool's calls.
pub(super) fn to_tool_limits(entry: &ToolLimitsEntry) -> CallLimits {
    CallLimits { all_callers: to_allowance(&entry.shared_allowance()), ..to_call_limits(entry.per_call_limits()) }
}

/// The bounds of an entry's calls.
pub(super) fn to_call_limits(entry: CallLimitsEntry) -> CallLimits {
    let inline = (entry.inline_rows.is_some() || entry.inline_bytes.is_some()).then(|| Budget {
        rows: entry.inline_rows.and_then(|bound| bound.0.limit()),
        bytes: entry.inline_bytes.map_or(Limits::default().inline.bytes, |bound| bound.0.limit()),
    });
    // What was not said of a model's answer has a default, what was not said of a body has none.
    let body = Budget {
        rows: entry.inline_rows.and_then(|bound| bound.0.limit()),
        bytes: entry.inline_bytes.and_then(|bound| bound.0.limit()),
    };
    let timeout = entry.total_timeout.or(entry.timeout).map(|time| time.0);
    let task_after = entry.task_after.map(|time| time.0);
    CallLimits { timeout, inline, body: Some(body), task_after, all_callers: Allowance::default() }
}

/// Complains about bounds that make no sense.
pub(super) fn check_limits(config: &Config, problems: &mut Vec<ConfigProblem>) {
    let limits = &config.limits;
    check_allowance(&limits.shared_allowance(), "limits", problems);
    check_allowance(&limits.principal, "limits.principal", problems);
    check_allowance(&limits.tenant, "limits.tenant", problems);
    for (index, role) in config.roles.iter().enumerate() {
        check_allowance(&role.limits, &format!("roles[{index}].limits"), problems);
    }
    for (index, tool) in config.tools.iter().enumerate() {
        check_allowance(&tool.limits.shared_allowance(), &format!("tools[{index}].limits"), problems);
    }
}

fn check_allowance(entry: &AllowanceEntry, path: &str, problems: &mut Vec<ConfigProblem>) {
    let mut wrong =
        |member: &str, message: &str| problems.push(ConfigProblem::new(format!("{path}.{member}"), message));
    match entry.requests_per_second {
        Some(each_second) if RateLimit::per_second(each_second, 1).is_none() => {
            wrong("requests_per_second", "must be above 0; 0.5 is one in two seconds");
        }
        None if entry.burst.is_some() => wrong("burst", "requires requests_per_second"),
        _ => {}
    }
    if entry.burst == Some(0) {
        wrong("burst", "must be at least 1, or every request is refused");
    }
    if entry.running_calls == Some(0) {
        wrong("running_calls", "must be at least 1, or no call ever runs");
    }
}

/// Where what callers use of their days is kept, for the node of `loaded_config`; `folder` is that of what this user's nodes keep.
pub(crate) fn usage_file(loaded: &LoadedConfig, folder: &Path) -> PathBuf {
    if let Some(file) = &loaded.config.limits.usage_file {
        return loaded.resolve(file);
    }
    // Each configuration has one of its own.
    let mut hasher = DefaultHasher::new();
    loaded.path().hash(&mut hasher);
    folder.join("usage").join(format!("{:016x}.json", hasher.finish()))
}
