//! Options of all subcommands. A flag overrides the environment, which overrides the file, which overrides the default.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::config::{CONFIG_FILE_NAME, ConfigError, LoadedConfig};
use crate::quantity::{self, LimitValue};

/// Options of all subcommands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct GlobalOptions {
    #[command(flatten)]
    pub(crate) log: ServerLogOptions,

    /// Configuration file [default: tidegate.yaml in the current folder, if it exists and no PATH is given]
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) limits: LimitOptions,
}

/// Options that override keys under `limits`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LimitOptions {
    /// Maximum duration of a call [default: 60s]
    #[arg(long, global = true, value_name = "DURATION", env = "TIDEGATE_TIMEOUT", hide_env_values = true)]
    #[arg(value_parser = quantity::duration)]
    pub(crate) timeout: Option<Duration>,

    /// Memory that all queries together may use; beyond it they spill to disk [default: a quarter of the machine's
    /// memory]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_MEMORY", hide_env_values = true)]
    #[arg(value_parser = quantity::size_in_memory)]
    pub(crate) memory: Option<usize>,

    /// Disk space that all queries together may use to spill [default: 10GiB]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_SPILL", hide_env_values = true)]
    #[arg(value_parser = quantity::size)]
    pub(crate) spill: Option<u64>,

    /// Folder in which queries spill [default: the system's folder for temporary files]
    #[arg(long, global = true, value_name = "FOLDER", env = "TIDEGATE_SPILL_FOLDER", hide_env_values = true)]
    pub(crate) spill_folder: Option<PathBuf>,

    /// Maximum size of an answer, or unlimited [default: 40KB when serving, unlimited on the command line]
    #[arg(long, global = true, value_name = "SIZE", env = "TIDEGATE_INLINE_BYTES", hide_env_values = true)]
    #[arg(value_parser = quantity::size_bound)]
    pub(crate) inline_bytes: Option<LimitValue<usize>>,

    /// Maximum number of rows of an answer, or unlimited [default: unlimited]
    #[arg(long, global = true, value_name = "ROWS", env = "TIDEGATE_INLINE_ROWS", hide_env_values = true)]
    #[arg(value_parser = quantity::row_bound)]
    pub(crate) inline_rows: Option<LimitValue<u64>>,
}

/// Options of the log on standard error.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerLogOptions {
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
}
