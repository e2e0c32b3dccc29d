//! What can be wrong with a key file or with what is asked of it.

use std::io;
use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat, Utc};

use super::NAME_CHARS_MAX;
use super::store::{BYTES_MAX, VERSION};

/// What is wrong with a key file or with what is asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The system refuses.
    #[error("cannot {action} the key file {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The key file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content is not that of a key file. It is not quoted: it could be another file, with secrets.
    #[error("{} is not a valid key file: unexpected content at line {line}, column {column}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A newer or foreign program wrote it.
    #[error("the key file {} has the version {found}; this program reads only version {VERSION}", .path.display())]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version that it has.
        found: u64,
    },
    /// Two keys of one id, which only an edit by hand can have made.
    #[error("the key file {} holds two keys with the id {id:?}", .path.display())]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
    },
    /// The file is larger than any that this program writes.
    #[error("the key file {} is larger than {BYTES_MAX} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// There is no room for a further key.
    #[error("the key file holds {0} keys, which is the maximum; delete revoked keys from it")]
    Full(usize),
    /// A name that cannot be.
    #[error(
        "{0:?} cannot be a key's name: it has 1 to {NAME_CHARS_MAX} characters, no control characters, and no blanks \
         around it"
    )]
    BadName(String),
    /// A tenant's name that cannot be.
    #[error(
        "{0:?} cannot be a tenant's name: it has 1 to {NAME_CHARS_MAX} characters, no control characters, and no \
         blanks around it"
    )]
    BadTenant(String),
    /// An active key has the name.
    #[error("an active key is named {0:?}; revoke it or choose another name")]
    NameTaken(String),
    /// The key would never have let anybody in.
    #[error("a key that expires at {} would have expired already", .0.to_rfc3339_opts(SecondsFormat::Secs, true))]
    ExpiresInThePast(DateTime<Utc>),
    /// Nothing goes by that name or id.
    #[error("no key has the name or id {0:?}")]
    NoSuchKey(String),
    /// Nothing is left to revoke.
    #[error("the key {0:?} is revoked already")]
    AlreadyRevoked(String),
    /// More than one key goes by that name.
    #[error("several keys have the name {0:?}; name one by its id")]
    Ambiguous(String),
    /// The system gave no random bytes.
    #[error("the system provides no random bytes for a key")]
    NoRandomBytes,
}
