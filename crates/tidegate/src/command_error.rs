//! How the command fails: what is said and with which exit code.

use std::io::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use tidegate_client::fetch::FetchError;
use tidegate_core::Error;

use crate::config::ConfigError;

/// The question failed, or the server did.
const EXIT_FAILED: u8 = 1;
/// The command line asks for something that cannot be.
const EXIT_USAGE: u8 = 2;

const LABEL: Style = AnsiColor::Red.on_default().bold();

/// Why the command ends early.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The configuration cannot be used.
    #[error("the configuration cannot be used\n{0}")]
    Configuration(#[from] ConfigError),
    /// The question was answered with an error.
    #[error(transparent)]
    Query(#[from] Error),
    /// Anything else.
    #[error("{0:#}")]
    Other(anyhow::Error),
    /// Nobody reads the output any more, which is no news to anybody.
    #[error("standard output is closed")]
    BrokenPipe,
}

impl CommandError {
    /// Says on standard error what happened and gives the exit code.
    pub fn report(self) -> ExitCode {
        let code = match &self {
            Self::BrokenPipe => return ExitCode::SUCCESS,
            Self::Query(error) if error.is_rendered() => return ExitCode::from(EXIT_FAILED),
            Self::Usage(_) | Self::Configuration(_) => EXIT_USAGE,
            Self::Query(_) | Self::Other(_) => EXIT_FAILED,
        };
        // When standard error is closed there is nowhere left to say it.
        let _ = writeln!(anstream::stderr(), "{LABEL}error:{LABEL:#} {self}");
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<FetchError> for CommandError {
    fn from(error: FetchError) -> Self {
        let message = error.to_string();
        // It says its causes itself.
        if error.is_usage() { Self::Usage(message) } else { Self::Other(anyhow::Error::msg(message)) }
    }
}

/// Errors of writing to standard output.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Other(anyhow::Error::from(error).context("cannot write to standard output")),
        }
    }
}
