//! The connection of a client to this server: over stdio or HTTP.

use std::fmt;
use std::path::PathBuf;

use super::edit::ClientConfigError;

const NAME_LENGTH_MAX: usize = 64;

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum McpServerConnection {
    Stdio { command: PathBuf, args: Vec<String> },
    Http { url: String, bearer: Option<BearerValue> },
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum BearerValue {
    /// The key itself, which is then part of the file.
    Key(String),
    Variable(String),
}

impl McpServerConnection {
    pub(crate) fn holds_secret(&self) -> bool {
        matches!(self, Self::Http { bearer: Some(BearerValue::Key(_)), .. })
    }

    pub(super) fn check(&self) -> Result<(), ClientConfigError> {
        match self {
            Self::Http { bearer: Some(BearerValue::Variable(name)), .. } if !is_variable_name(name) => {
                Err(ClientConfigError::Variable { name: name.clone() })
            }
            Self::Http { bearer: Some(BearerValue::Key(key)), .. } if !is_header_text(key) => {
                Err(ClientConfigError::Key)
            }
            Self::Stdio { .. } | Self::Http { .. } => Ok(()),
        }
    }
}

impl fmt::Debug for BearerValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(_) => formatter.write_str("Key(hidden)"),
            Self::Variable(name) => formatter.debug_tuple("Variable").field(name).finish(),
        }
    }
}

/// Accepts only names that all clients accept and that need quotes in no format.
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
