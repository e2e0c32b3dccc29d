//! Errors of the key file.

use std::io;
use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat, Utc};

use super::{BYTES_MAX, NAME_CHARS_MAX, VERSION};

/// Why a key file, or a change of it, is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// A file operation failed.
    #[error("cannot {action} the key file {}: {source}", .path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The key file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content is not that of a key file. It is not quoted, because it may be another file with secrets.
    #[error("{} is not a valid key file: unexpected content at line {line}, column {column}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// The file has an unknown version.
    #[error("the key file {} has the version {found}; this program reads only version {VERSION}", .path.display())]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
    },
    /// Two keys have the same id. Only a manual edit can cause that.
    #[error("the key file {} holds two keys with the id {id:?}", .path.display())]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
    },
    /// The file exceeds the size limit.
    #[error("the key file {} is larger than {BYTES_MAX} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file contains the maximum number of keys.
    #[error("the key file holds {0} keys, which is the maximum; delete revoked keys from it")]
    Full(usize),
    /// The key name is invalid.
    #[error(
        "{0:?} cannot be a key's name: it has 1 to {NAME_CHARS_MAX} characters, no control characters, and no blanks \
         around it"
    )]
    BadName(String),
    /// The tenant name is invalid.
    #[error(
        "{0:?} cannot be a tenant's name: it has 1 to {NAME_CHARS_MAX} characters, no control characters, and no \
         blanks around it"
    )]
    BadTenant(String),
    /// An active key already has the name.
    #[error("an active key is named {0:?}; revoke it or choose another name")]
    NameTaken(String),
    /// The expiry is in the past.
    #[error("a key that expires at {} would have expired already", .0.to_rfc3339_opts(SecondsFormat::Secs, true))]
    ExpiresInThePast(DateTime<Utc>),
    /// No key has that name or id.
    #[error("no key has the name or id {0:?}")]
    NoSuchKey(String),
    /// The key is already revoked.
    #[error("the key {0:?} is revoked already")]
    AlreadyRevoked(String),
    /// Several keys have that name.
    #[error("several keys have the name {0:?}; name one by its id")]
    Ambiguous(String),
    /// The system provides no random bytes.
    #[error("the system provides no random bytes for a key")]
    NoRandomBytes,
}
