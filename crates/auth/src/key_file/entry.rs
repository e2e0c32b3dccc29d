//! The entries of a key file, their states, and what is wrong with a file or a change of it.

use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use crate::secret::{self, Digest};

/// Characters of a name at most.
pub(super) const NAME_CHARS_MAX: usize = 64;
/// The only version of the file format that this program writes and reads.
pub(super) const VERSION: u64 = 1;
/// Bytes of a key file at most; ten thousand keys with many roles need less.
pub(super) const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Whether a key is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Valid.
    Active,
    /// Expired.
    Expired,
    /// Revoked.
    Revoked,
}

impl KeyState {
    /// The name of the state in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A key without its secret and digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// The name of its holder, unique among active keys.
    pub name: String,
    /// The id, which is not secret.
    pub id: String,
    /// The roles of its holder.
    pub roles: Vec<String>,
    /// The tenant of its holder, if any.
    pub tenant: Option<String>,
    /// When it was created.
    pub created: DateTime<Utc>,
    /// When it expires; `None` if never.
    pub expires: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked: Option<DateTime<Utc>>,
    /// Whether it is valid.
    pub state: KeyState,
}

impl KeyStatus {
    /// The visible beginning of the key, by which its holder recognises it.
    pub fn prefix(&self) -> String {
        format!("{}{}", secret::KEY_PREFIX, self.id)
    }
}

/// One entry of the key file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyEntry {
    pub(crate) name: String,
    pub(crate) id: String,
    /// The digest of the secret part. Base64url in the file.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub(crate) sha256: Digest,
    pub(crate) roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    pub(crate) created: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revoked: Option<DateTime<Utc>>,
}

impl KeyEntry {
    pub(crate) fn state(&self, now: DateTime<Utc>) -> KeyState {
        if self.revoked.is_some() {
            KeyState::Revoked
        } else if self.expires.is_some_and(|expires| expires <= now) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    /// The entry without its digest.
    pub(crate) fn status(&self, now: DateTime<Utc>) -> KeyStatus {
        KeyStatus {
            name: self.name.clone(),
            id: self.id.clone(),
            roles: self.roles.clone(),
            tenant: self.tenant.clone(),
            created: self.created,
            expires: self.expires,
            revoked: self.revoked,
            state: self.state(now),
        }
    }
}

fn write_digest<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&URL_SAFE_NO_PAD.encode(digest))
}

fn read_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| D::Error::custom("not base64url"))?;
    Digest::try_from(bytes.as_slice()).map_err(|_| D::Error::custom("not the length of a SHA-256"))
}

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
