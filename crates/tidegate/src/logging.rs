//! The structured log on standard error.

use std::io::IsTerminal as _;

use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

use crate::failure::Failure;
use crate::options::{LogFormat, LogOptions};

/// A call that asks to be traced is logged whole, whatever the level: what we say of it, not what libraries do, whose
/// words may hold what no log may.
const TRACED_CALLS: &str = "[call{trace=true}]=trace";
/// What the names of our crates begin with.
const OURS: &str = "tidegate";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Starts the log; `level_default` is for when no level was asked for.
pub(crate) fn start(options: &LogOptions, level_default: &str) -> Result<(), Failure> {
    let filter = filter(options.level.as_deref().unwrap_or(level_default)).map_err(Failure::Usage)?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let started = log(filter, options.format, colours, std::io::stderr).try_init();
    started.map_err(|error| Failure::Other(anyhow::anyhow!("cannot start the log: {error}")))
}

/// The log that goes to `writer`.
fn log<W>(
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
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter))
}

/// A bare level is ours; libraries speak up from warnings on.
fn filter(level: &str) -> Result<impl Filter<Registry> + Send + Sync + 'static, String> {
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
    let is_ours = filter_fn(|metadata| metadata.target().starts_with(OURS));
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
            assert!(filter(level).is_ok(), "{level}");
        }
        assert!(filter("tidegate=loud").is_err());
    }

    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_a_traced_call_our_own_words_are_logged() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = log(filter("error").unwrap(), LogFormat::Text, false, move || writer.clone());
        tracing::subscriber::with_default(log, || {
            for is_traced in [true, false] {
                let _call = tracing::info_span!("call", trace = is_traced).entered();
                tracing::trace!(target: "tidegate_query", is_traced, "ours");
                tracing::trace!(target: "hyper", is_traced, "a library's");
            }
            tracing::error!(target: "hyper", "an error");
        });
        let said = String::from_utf8(kept.0.lock().clone()).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines[0].contains("ours is_traced=true") && lines[1].contains("an error"), "{said}");
    }
}
