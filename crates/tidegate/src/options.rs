//! Options of all subcommands. A flag overrides the environment, which overrides the file, which overrides the default.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_core::{Budget, Limits};
use tidegate_engines::EngineOptions;

use crate::command_error::CommandError;
use crate::config::{self, CONFIG_FILE_NAME, Config, ConfigError, LoadedConfig};
use crate::quantity::{self, LimitValue};

const SPILL_BYTES_DEFAULT: u64 = 10 << 30;

/// Options of all subcommands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct GlobalOptions {
    #[command(flatten)]
    pub(crate) log: LogOptions,

    /// Configuration file [default: tidegate.yaml in the current folder, if it exists and no PATH is given]
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// Maximum duration of a call [default: 60s]
    #[arg(long, global = true, value_name = "DURATION", env = "TIDEGATE_TIMEOUT", hide_env_values = true)]
    #[arg(value_parser = quantity::duration)]
    pub(crate) timeout: Option<Duration>,

    /// Memory that all queries together may use; beyond it they spill to disk [default: a quarter of the machine's
    /// memory]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_MEMORY", hide_env_values = true)]
    #[arg(value_parser = quantity::size_in_memory)]
    memory: Option<usize>,

    /// Disk space that all queries together may use to spill [default: 10GiB]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_SPILL", hide_env_values = true)]
    #[arg(value_parser = quantity::size)]
    spill: Option<u64>,

    /// Folder in which queries spill [default: the system's folder for temporary files]
    #[arg(long, global = true, value_name = "FOLDER", env = "TIDEGATE_SPILL_FOLDER", hide_env_values = true)]
    spill_folder: Option<PathBuf>,

    /// Maximum size of an answer, or unlimited [default: 40KB when serving, unlimited on the command line]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_INLINE_BYTES", hide_env_values = true)]
    #[arg(value_parser = quantity::size_bound)]
    inline_bytes: Option<LimitValue<usize>>,

    /// Maximum number of rows of an answer, or unlimited [default: unlimited]
    #[arg(long, global = true, value_name = "ROWS", env = "TIDEGATE_INLINE_ROWS", hide_env_values = true)]
    #[arg(value_parser = quantity::row_bound)]
    inline_rows: Option<LimitValue<u64>>,
}

/// Options of the log on standard error.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogOptions {
    /// off, error, warn, info, debug, trace, or directives such as tidegate_mcp=debug [default: info when serving, else
    /// warn]
    #[arg(long = "log", global = true, value_name = "LEVEL", env = "TIDEGATE_LOG", hide_env_values = true)]
    pub(crate) level: Option<String>,

    /// Format of the log: text, or json with one object per line
    #[arg(id = "log_format", long = "log-format", global = true, value_name = "FORMAT", env = "TIDEGATE_LOG_FORMAT")]
    #[arg(hide_env_values = true, value_enum, hide_possible_values = true, default_value_t = LogFormat::Text)]
    pub(crate) format: LogFormat,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The readers of the answers of a process. They determine the default limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitDefaults {
    /// MCP and REST clients, whose models pay for each character.
    Clients,
    /// People and files on the command line.
    CommandLine,
}

impl GlobalOptions {
    pub(crate) fn with_config(&self, file: PathBuf) -> Self {
        Self { config: Some(file), ..self.clone() }
    }

    /// The configuration file that is named, else the one in the current folder.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        let in_folder = || Some(PathBuf::from(CONFIG_FILE_NAME)).filter(|file| file.is_file());
        self.config.clone().or_else(in_folder)
    }

    pub(crate) fn load_config(&self) -> Result<Option<LoadedConfig>, ConfigError> {
        self.config_file().map(|file| LoadedConfig::read(&file)).transpose()
    }

    /// The limits of calls whose answers `defaults` reads: flag, else environment, else file, else default.
    pub(crate) fn call_limits(&self, defaults: LimitDefaults, config: &Config) -> Limits {
        let (default, limits) = (Limits::default(), &config.limits);
        let (inline, batch_rows) = match defaults {
            LimitDefaults::Clients => (config::inline_budget(config, default.inline), limits.batch_rows),
            // The limits of the file apply to clients only.
            LimitDefaults::CommandLine => (Budget::default(), None),
        };
        let inline = Budget {
            rows: self.inline_rows.map_or(inline.rows, LimitValue::limit),
            bytes: self.inline_bytes.map_or(inline.bytes, LimitValue::limit),
        };
        let of_calls = Limits {
            inline,
            batch_rows,
            timeout: self.timeout.or(limits.timeout.map(|time| time.0)).unwrap_or(default.timeout),
            task_after: limits.task_after.map_or(default.task_after, |time| time.0),
            task_timeout: limits.task_timeout.map_or(default.task_timeout, |time| time.0),
            input_timeout: limits.input_timeout.map_or(default.input_timeout, |time| time.0),
            ..default
        };
        config::with_caller_limits(of_calls, limits)
    }

    /// The limits of the embedded engine: flag, else environment, else file, else default.
    pub(crate) fn engine_options(&self, loaded: &LoadedConfig) -> Result<EngineOptions, CommandError> {
        let limits = &loaded.config.limits;
        let memory = match (self.memory, limits.memory) {
            (None, Some(size)) => Some(quantity::to_usize(size.0).map_err(CommandError::Usage)?),
            (memory, _) => memory,
        };
        let options = memory.map_or_else(EngineOptions::default, EngineOptions::with_memory);
        let spill_bytes = self.spill.or(limits.spill.map(|size| size.0)).unwrap_or(SPILL_BYTES_DEFAULT);
        let of_file = || limits.spill_folder.as_ref().map(|folder| loaded.resolve(folder));
        Ok(EngineOptions { spill_bytes, spill_folder: self.spill_folder.clone().or_else(of_file), ..options })
    }
}
