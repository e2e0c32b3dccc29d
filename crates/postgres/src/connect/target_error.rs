//! Errors in a connection string and in the settings that complete it.
//!
//! No value is ever quoted: any part of a connection string may be an unescaped part of the password.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error in a connection string or in a setting that completes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The text is neither a URI nor a list of keywords and values.
    #[error("{origin} cannot be read: {problem}, at character {position}")]
    Malformed {
        /// The source of the text.
        origin: SettingOrigin,
        /// The problem.
        problem: &'static str,
        /// Counted from 1.
        position: usize,
    },
    /// The keyword is unknown.
    #[error("{origin} has an unknown keyword{}{}", name_or_position(.name, *.position), nearest_keyword_note(.nearest))]
    UnknownKeyword {
        /// The source.
        origin: SettingOrigin,
        /// The keyword, unless it may be part of a password.
        name: Option<String>,
        /// Counted from 1.
        position: usize,
        /// The most similar known keyword.
        nearest: Option<String>,
    },
    /// The keyword exists in libpq and is not supported.
    #[error("{origin}: {keyword} is not supported; ignoring it could make the connection less secure")]
    Unsupported {
        /// The keyword.
        keyword: &'static str,
        /// The source.
        origin: SettingOrigin,
    },
    /// The value is not valid for its keyword.
    #[error("{origin}: {keyword} must be {wanted}")]
    BadValue {
        /// The keyword.
        keyword: &'static str,
        /// The source.
        origin: SettingOrigin,
        /// The valid values.
        wanted: String,
    },
    /// Two related lists have different lengths.
    #[error("{first} lists {first_count} and {second} lists {second_count}; they must list the same number")]
    UnequalLists {
        /// The first keyword.
        first: &'static str,
        /// The length of its list.
        first_count: usize,
        /// The second keyword.
        second: &'static str,
        /// The length of its list.
        second_count: usize,
    },
    /// Two values contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// No service file contains the service.
    #[error("the service {name:?} is not in any service file ({})", join_paths(.looked_in))]
    UnknownService {
        /// Service name.
        name: String,
        /// The files that were searched.
        looked_in: Vec<PathBuf>,
    },
    /// A service file or a password file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Neither the string nor its environment sets a user.
    #[error("no user is set; set it in the connection string or in PGUSER")]
    NoUser,
}

/// The source of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The connection string.
    ConnectionString,
    /// A line of a service file, counted from 1.
    Service(PathBuf, usize),
    /// An environment variable.
    Variable(&'static str),
    /// The default.
    Default,
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

fn name_or_position(name: &Option<String>, position: usize) -> String {
    match name {
        Some(name) => format!(" {name:?}"),
        None => format!(" at character {position}"),
    }
}

fn nearest_keyword_note(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}

fn join_paths(paths: &[PathBuf]) -> String {
    match paths {
        [] => "there are none".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}
