//! How the command fails: what is said and with which exit code.

use std::io::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use tidegate_core::Error;
use tidegate_fetch::FetchError;

use crate::config::Broken;

/// The question failed, or the server did.
const FAILED: u8 = 1;
/// The command line asks for something that cannot be.
const USAGE: u8 = 2;

const LABEL: Style = AnsiColor::Red.on_default().bold();

/// Why the command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be.
    Usage(String),
    /// The configuration cannot be used.
    Configuration(Broken),
    /// The question was answered with an error.
    Question(Error),
    /// Anything else.
    Other(anyhow::Error),
    /// Nobody reads the output any more, which is no news to anybody.
    NobodyReads,
}

impl Failure {
    /// Says on standard error what happened and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::NobodyReads => return ExitCode::SUCCESS,
            Self::Question(error) if error.is_told() => return ExitCode::from(FAILED),
            Self::Usage(message) => (message, USAGE),
            Self::Configuration(broken) => (format!("the configuration cannot be used\n{broken}"), USAGE),
            Self::Question(error) => (error.to_string(), FAILED),
            Self::Other(error) => (format!("{error:#}"), FAILED),
        };
        // When standard error is closed there is nowhere left to say it.
        let _ = writeln!(anstream::stderr(), "{LABEL}error:{LABEL:#} {message}");
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::Configuration(broken)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Question(error)
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let message = error.to_string();
        // It says its causes itself.
        if error.is_usage() { Self::Usage(message) } else { Self::Other(anyhow::Error::msg(message)) }
    }
}

/// Errors of writing to standard output.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Other(anyhow::Error::from(error).context("cannot write to standard output")),
        }
    }
}
