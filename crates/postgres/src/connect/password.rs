//! A password that cannot be printed, and where it came from.

use std::fmt;
use std::path::PathBuf;

/// Text that must not be printed: its `Debug` is three stars, and it can neither be displayed nor compared.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this answers for where it goes.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a password came from, so that an error can say which one was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSource {
    /// There is none.
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
            Self::ConnectionString => f.write_str("the password is the connection string's"),
            Self::Service(path) => write!(f, "the password is from the service file {}", path.display()),
            Self::Variable => f.write_str("the password is from PGPASSWORD"),
            Self::File(path) => write!(f, "the password is from the password file {}", path.display()),
        }
    }
}
