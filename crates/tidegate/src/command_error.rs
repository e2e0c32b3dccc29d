//! Errors of the command, with their exit codes.

use std::io::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use tidegate_client::fetch::FetchError;
use tidegate_core::{Error, ErrorKind};

use crate::argument_secrets::mask_secrets;
use crate::config::ConfigError;
use crate::standard_stream::standard_error;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

const LABEL: Style = AnsiColor::Red.on_default().bold();

/// An error that ends the command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command line or the environment is wrong.
    #[error("{0}")]
    Usage(String),
    /// The configuration is invalid.
    #[error("the configuration cannot be used\n{0}")]
    Configuration(#[from] ConfigError),
    /// The call was answered with an error.
    #[error(transparent)]
    Query(#[from] Error),
    /// Anything else.
    #[error("{0:#}")]
    Other(anyhow::Error),
    /// The reader of the output has closed it, which is not an error.
    #[error("standard output is closed")]
    BrokenPipe,
}

impl CommandError {
    /// Why a component is unavailable, such as the user and the host of a database, or what is wrong with the
    /// configuration. The caller of a command may read it.
    fn detail(&self) -> Option<&str> {
        match self {
            Self::Query(error) if error.kind() == ErrorKind::Unavailable || error.is_configuration_fault() => {
                error.detail()
            }
            _ => None,
        }
    }

    /// Prints the error to standard error and returns the exit code.
    pub fn report(self) -> ExitCode {
        let code = match &self {
            Self::BrokenPipe => return ExitCode::SUCCESS,
            Self::Query(error) if error.is_reported() => return ExitCode::from(EXIT_FAILED),
            Self::Usage(_) | Self::Configuration(_) => EXIT_USAGE,
            Self::Query(_) | Self::Other(_) => EXIT_FAILED,
        };
        // An error may quote an argument, which may contain a password.
        let text = self.to_string();
        let text = mask_secrets(&text);
        let mut errors = standard_error();
        // Nothing can be done if standard error is closed.
        let _ = errors.write_styled(LABEL, "error:").and_then(|()| writeln!(errors, " {text}"));
        if let Some(detail) = self.detail() {
            let _ = writeln!(errors, "{}", mask_secrets(detail));
        }
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
        // The message includes the causes.
        if error.is_usage() { Self::Usage(message) } else { Self::Other(anyhow::Error::msg(message)) }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Other(anyhow::Error::from(error).context("cannot write to standard output")),
        }
    }
}
