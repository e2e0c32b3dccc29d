//! Errors in a connection string and in the settings that complete it.
//!
//! No value is ever quoted: any part of a connection string may be an unescaped part of the password.

use std::fmt;
use std::path::PathBuf;

use super::keyword;

/// An error in a connection string or in a setting that completes it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(String);

/// The source of a setting.
#[derive(Debug, Clone)]
pub(super) enum SettingOrigin {
    ConnectionString,
    /// A line of a service file, counted from 1.
    Service(PathBuf, usize),
    /// An environment variable.
    Variable(&'static str),
    Default,
}

impl TargetError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The text of `origin` has no valid syntax at the character `position`, counted from 1.
    pub(super) fn malformed(origin: &SettingOrigin, problem: &str, position: usize) -> Self {
        Self(format!("{origin} cannot be read: {problem}, at character {position}"))
    }

    /// `origin` has the unknown keyword `name` at the character `position`. If the name may be part of a password, the
    /// error has only its position.
    pub(super) fn unknown_keyword(origin: &SettingOrigin, name: &str, position: usize, is_secret: bool) -> Self {
        let subject = if is_secret { format!("at character {position}") } else { format!("{name:?}") };
        let nearest = keyword::nearest(name).map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
        Self(format!("{origin} has an unknown keyword {subject}{nearest}"))
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionString => f.write_str("the connection string"),
            Self::Service(path, line) => write!(f, "line {line} of {}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Default => f.write_str("by default"),
        }
    }
}
