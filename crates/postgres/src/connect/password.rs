//! A password that cannot be printed, and its source.

use std::fmt;
use std::path::PathBuf;

/// Secret text: its `Debug` output is three stars, and it has neither `Display` nor comparison.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. The caller is responsible for keeping it secret.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The source of a password, so that an error can name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSource {
    /// No password was given.
    None,
    /// The connection string.
    ConnectionString,
    /// A service file.
    Service(PathBuf),
    /// The environment variable `PGPASSWORD`.
    Variable,
    /// A password file such as `~/.pgpass`.
    File(PathBuf),
}

impl fmt::Display for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no password was given"),
            Self::ConnectionString => f.write_str("the password is from the connection string"),
            Self::Service(path) => write!(f, "the password is from the service file {}", path.display()),
            Self::Variable => f.write_str("the password is from PGPASSWORD"),
            Self::File(path) => write!(f, "the password is from the password file {}", path.display()),
        }
    }
}
