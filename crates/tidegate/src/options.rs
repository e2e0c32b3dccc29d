//! Options that every verb takes. Flag over environment over default.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_core::{Budget, Limits};
use tidegate_engines::EngineOptions;

use crate::quantity::{self, Bound};

/// Options that every verb takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for every verb")]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) log: LogOptions,

    /// Ends a call that runs longer
    #[arg(long, global = true, value_name = "DURATION", env = "TIDEGATE_TIMEOUT", hide_env_values = true)]
    #[arg(default_value = "60s", value_parser = quantity::duration)]
    timeout: Duration,

    /// Memory that all queries together may hold; beyond it they spill to disk [default: a quarter of the machine's]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_MEMORY", hide_env_values = true)]
    #[arg(value_parser = quantity::size_in_memory)]
    memory: Option<usize>,

    /// Disk that all queries together may spill to
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_SPILL", hide_env_values = true)]
    #[arg(default_value = "10GiB", value_parser = quantity::size)]
    spill: u64,

    /// Folder in which queries spill [default: the system's for temporary files]
    #[arg(long, global = true, value_name = "FOLDER", env = "TIDEGATE_SPILL_FOLDER", hide_env_values = true)]
    spill_folder: Option<PathBuf>,

    /// Size of an answer, or unlimited [default: 40KB when serving, unlimited on the command line]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_INLINE_BYTES", hide_env_values = true)]
    #[arg(value_parser = quantity::size_bound)]
    inline_bytes: Option<Bound<usize>>,

    /// Rows of an answer, or unlimited [default: unlimited]
    #[arg(long, global = true, value_name = "ROWS", env = "TIDEGATE_INLINE_ROWS", hide_env_values = true)]
    #[arg(value_parser = quantity::row_bound)]
    inline_rows: Option<Bound<u64>>,
}

/// What is logged, on standard error.
#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    /// off, error, warn, info, debug, trace, or directives such as tidegate_mcp=debug [default: info when serving, else warn]
    #[arg(long = "log", global = true, value_name = "LEVEL", env = "TIDEGATE_LOG", hide_env_values = true)]
    pub(crate) level: Option<String>,

    /// Form of the log: text, or json with one object a line
    #[arg(id = "log_format", long = "log-format", global = true, value_name = "FORMAT", env = "TIDEGATE_LOG_FORMAT")]
    #[arg(hide_env_values = true, value_enum, hide_possible_values = true, default_value_t = LogFormat::Text)]
    pub(crate) format: LogFormat,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Options {
    /// The bounds of calls that come from clients, whose models pay for every character.
    pub(crate) fn limits_for_clients(&self) -> Limits {
        let default = Limits::default();
        Limits { inline: self.inline(default.inline), timeout: self.timeout, ..default }
    }

    /// The bounds of calls from the command line, whose answers go to people and files.
    pub(crate) fn limits_for_command_line(&self) -> Limits {
        Limits { inline: self.inline(Budget::default()), timeout: self.timeout, ..Limits::default() }
    }

    fn inline(&self, default: Budget) -> Budget {
        Budget {
            rows: self.inline_rows.map_or(default.rows, Bound::limit),
            bytes: self.inline_bytes.map_or(default.bytes, Bound::limit),
        }
    }

    /// The bounds of the embedded engine.
    pub(crate) fn engine(&self) -> EngineOptions {
        let options = self.memory.map_or_else(EngineOptions::default, EngineOptions::with_memory);
        EngineOptions { spill_bytes: self.spill, spill_folder: self.spill_folder.clone(), ..options }
    }
}
