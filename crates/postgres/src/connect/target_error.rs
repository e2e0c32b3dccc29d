//! What can be wrong with a connection string and with what completes it.
//!
//! No value is ever quoted: whatever stands in a connection string may be a part of its password
//! that was not escaped.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What is wrong with a connection string or with what completes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The text is neither a URI nor a list of keywords and values.
    #[error("{origin} cannot be read: {problem}, at character {position}")]
    Malformed {
        /// Where the text stands.
        origin: SettingOrigin,
        /// What is wrong with it.
        problem: &'static str,
        /// Counted from 1.
        position: usize,
    },
    /// A keyword that nobody knows.
    #[error("{origin} has an unknown keyword{}{}", name_or_position(.name, *.position), nearest_keyword_note(.nearest))]
    UnknownKeyword {
        /// Where it stands.
        origin: SettingOrigin,
        /// The keyword, unless it may be a part of a password.
        name: Option<String>,
        /// Counted from 1.
        position: usize,
        /// The known keyword most like it.
        nearest: Option<String>,
    },
    /// A keyword that libpq knows and that cannot be honoured.
    #[error("{origin}: {keyword} is not supported, and it would be unsafe to go on as if it were not there")]
    Unsupported {
        /// The keyword.
        keyword: &'static str,
        /// Where it stands.
        origin: SettingOrigin,
    },
    /// A value that its keyword does not take.
    #[error("{origin}: {keyword} must be {wanted}")]
    BadValue {
        /// The keyword.
        keyword: &'static str,
        /// Where it stands.
        origin: SettingOrigin,
        /// What it takes.
        wanted: String,
    },
    /// Lists that belong together and are of different lengths.
    #[error("{first} lists {first_count} and {second} lists {second_count}; they must list the same number")]
    UnequalLists {
        /// One keyword.
        first: &'static str,
        /// How many it lists.
        first_count: usize,
        /// The other keyword.
        second: &'static str,
        /// How many it lists.
        second_count: usize,
    },
    /// Values that exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// No service file has the service.
    #[error("the service {name:?} is in none of the service files ({})", join_paths(.looked_in))]
    UnknownService {
        /// The service's name.
        name: String,
        /// The files that were looked for.
        looked_in: Vec<PathBuf>,
    },
    /// A service file or a password file that the system does not let us read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Neither the string nor its surroundings name a user.
    #[error("no user is named: give one in the connection string or in PGUSER")]
    NoUser,
}

/// Where a setting stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The connection string.
    ConnectionString,
    /// A line of a service file, counted from 1.
    Service(PathBuf, usize),
    /// An environment variable.
    Variable(&'static str),
    /// Nothing was said.
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
    nearest.as_ref().map(|nearest| format!("; the nearest known is {nearest}")).unwrap_or_default()
}

fn join_paths(paths: &[PathBuf]) -> String {
    match paths {
        [] => "there are none".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}
