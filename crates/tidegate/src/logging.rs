//! The structured log on standard error.

use std::fmt::Display;

use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

use crate::command_error::CommandError;
use crate::log_fields::LogFields;
use crate::log_writer::ServerLogWriter;
use crate::options::{LogFormat, ServerLogOptions};
use crate::standard_stream::{log_stream, standard_error};

/// Requested traces contain only the messages of Tidegate's crates: those of libraries may contain secrets.
const TRACED_CALLS: &str = "[call{trace=true}]=trace";
/// What commands log by default: warnings, except those about an error that the command itself reports.
const COMMAND_LOG: &str = "warn,tidegate_postgres::pool=error,tidegate_runtime::event=error";
const CRATE_PREFIX: &str = "tidegate";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Starts the log. The lines of a server are written by a thread of their own; those of other commands at once, between what
/// the command itself writes.
pub(crate) fn start(options: &ServerLogOptions, is_server: bool) -> Result<Option<ServerLogWriter>, CommandError> {
    let level_default = if is_server { "info" } else { COMMAND_LOG };
    let filter = build_filter(options.level.as_deref().unwrap_or(level_default)).map_err(CommandError::Usage)?;
    let colours = options.format == LogFormat::Text
        && standard_error().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let cannot_start = |error: &dyn Display| CommandError::Other(anyhow::anyhow!("cannot start the log: {error}"));
    if !is_server {
        let subscriber = build_subscriber(filter, options.format, colours, move || log_stream(colours));
        return subscriber.try_init().map(|()| None).map_err(|error| cannot_start(&error));
    }
    let writer = ServerLogWriter::start(log_stream(colours)).map_err(|error| cannot_start(&error))?;
    let subscriber = build_subscriber(filter, options.format, colours, writer.queue().clone());
    subscriber.try_init().map_err(|error| cannot_start(&error))?;
    writer.flush_at_panics();
    Ok(Some(writer))
}

/// Whether the log contains warnings. Directives may hide them, and count as if they did.
pub(crate) fn contains_warnings(options: &ServerLogOptions) -> bool {
    let hides_nothing = |level: &String| LEVELS[2..].contains(&level.to_lowercase().as_str());
    options.level.as_ref().is_none_or(hides_nothing)
}

fn build_subscriber<W>(
    filter: impl Filter<Registry> + Send + Sync + 'static,
    format: LogFormat,
    colours: bool,
    writer: W,
) -> impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(colours);
    let lines = match format {
        LogFormat::Text => lines.fmt_fields(LogFields).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter))
}

/// A bare level applies to Tidegate's crates; libraries log warnings and errors only.
fn build_filter(level: &str) -> Result<impl Filter<Registry> + Send + Sync + 'static, String> {
    let lowered = level.to_lowercase();
    let directives = match lowered.as_str() {
        "off" | "error" => lowered,
        level if LEVELS.contains(&level) => format!("warn,tidegate={level}"),
        _ => level.to_owned(),
    };
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        format!("--log {level:?}: {error}; use one of {} or directives such as tidegate_mcp=debug", LEVELS.join(", "))
    })?;
    let traced = EnvFilter::try_new(TRACED_CALLS).map_err(|error| format!("{TRACED_CALLS}: {error}"))?;
    let is_ours = filter_fn(|metadata| metadata.target().starts_with(CRATE_PREFIX));
    Ok(filter.or(traced.and(is_ours)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn levels_and_directives_are_understood() {
        for level in LEVELS.into_iter().chain(["INFO", "tidegate_mcp=debug,warn"]) {
            assert!(build_filter(level).is_ok(), "{level}");
        }
        assert!(build_filter("tidegate=loud").is_err());
    }

    /// Captures the log.
    #[derive(Clone, Default)]
    struct CapturedLog(Arc<Mutex<Vec<u8>>>);

    impl Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn traced_call_logs_our_crates_at_trace_level() {
        let kept = CapturedLog::default();
        let writer = kept.clone();
        let log = build_subscriber(build_filter("error").unwrap(), LogFormat::Text, false, move || writer.clone());
        tracing::subscriber::with_default(log, || {
            for is_traced in [true, false] {
                let _call = tracing::info_span!("call", trace = is_traced).entered();
                tracing::trace!(target: "tidegate_query", is_traced, "ours");
                tracing::trace!(target: "hyper", is_traced, "a library's");
            }
            tracing::error!(target: "hyper", "an error");
        });
        let text = String::from_utf8(kept.0.lock().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("ours is_traced=true") && lines[1].contains("an error"), "{text}");
    }
}
