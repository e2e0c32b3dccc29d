//! How a client reaches this server: by starting it, or over HTTP.

use std::fmt;
use std::path::PathBuf;

use super::error::ClientConfigError;

/// The longest name of a server; clients put it before the names of its tools.
const NAME_LENGTH_MAX: usize = 64;

/// What a client has to know to connect. It may hold secrets and therefore does not print itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum McpServerConnection {
    /// The client starts the server and speaks to it over its standard input and output.
    Stdio { command: PathBuf, args: Vec<String>, env: Vec<(String, String)> },
    /// The server listens at `url`.
    Http { url: String, bearer: Option<BearerSource> },
}

/// The key that a client sends with each request, and where it takes it from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum BearerSource {
    /// The key itself, which then stands in the file.
    Key(String),
    /// Environment variable that contains the key where the client runs.
    Variable(String),
}

impl McpServerConnection {
    /// Whether the configuration holds something that others should not read. Values of the
    /// environment count: nobody can tell which of them is a password.
    pub(crate) fn holds_secret(&self) -> bool {
        match self {
            Self::Stdio { env, .. } => !env.is_empty(),
            Self::Http { bearer, .. } => matches!(bearer, Some(BearerSource::Key(_))),
        }
    }

    pub(super) fn check(&self) -> Result<(), ClientConfigError> {
        match self {
            Self::Stdio { env, .. } => match env.iter().find(|(name, _)| !is_variable_name(name)) {
                Some((name, _)) => Err(ClientConfigError::Variable { name: name.clone() }),
                None => Ok(()),
            },
            Self::Http { bearer: Some(BearerSource::Variable(name)), .. } if !is_variable_name(name) => {
                Err(ClientConfigError::Variable { name: name.clone() })
            }
            Self::Http { bearer: Some(BearerSource::Key(key)), .. } if !is_header_text(key) => {
                Err(ClientConfigError::Key)
            }
            Self::Http { .. } => Ok(()),
        }
    }
}

impl fmt::Debug for BearerSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(_) => formatter.write_str("Key(hidden)"),
            Self::Variable(name) => formatter.debug_tuple("Variable").field(name).finish(),
        }
    }
}

/// Takes only names that every client accepts and that need quotes in no format.
pub(super) fn check_name(name: &str) -> Result<(), ClientConfigError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= NAME_LENGTH_MAX && name.chars().all(fits) {
        Ok(())
    } else {
        Err(ClientConfigError::Name { name: name.to_owned() })
    }
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_header_text(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}
