//! The structured log on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

use crate::failure::Failure;
use crate::options::{LogFormat, LogOptions};

/// A call that asks to be traced is logged whole, whatever the level.
const TRACED_CALLS: &str = "[call{trace=true}]=trace";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Starts the log; `level_default` is for when no level was asked for.
pub(crate) fn start(options: &LogOptions, level_default: &str) -> Result<(), Failure> {
    let filter = filter(options.level.as_deref().unwrap_or(level_default)).map_err(Failure::Usage)?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).with_env_filter(filter);
    let started = match options.format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::Other(anyhow::anyhow!("cannot start the log: {error}")))
}

/// A bare level is ours; libraries speak up from warnings on.
fn filter(level: &str) -> Result<EnvFilter, String> {
    let lowered = level.to_lowercase();
    let directives = match lowered.as_str() {
        "off" | "error" => lowered,
        level if LEVELS.contains(&level) => format!("warn,tidegate={level}"),
        _ => level.to_owned(),
    };
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        format!("--log {level:?}: {error}; use one of {} or directives such as tidegate_mcp=debug", LEVELS.join(", "))
    })?;
    let traced: Directive = TRACED_CALLS.parse().map_err(|error| format!("{TRACED_CALLS}: {error}"))?;
    Ok(filter.add_directive(traced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_understood() {
        for level in LEVELS.into_iter().chain(["INFO", "tidegate_mcp=debug,warn"]) {
            assert!(filter(level).is_ok(), "{level}");
        }
        assert!(filter("tidegate=loud").is_err());
        assert!(filter("warn").unwrap().to_string().contains("call"));
    }
}
