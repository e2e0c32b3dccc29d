//! The entries of a key file, their states, and what is wrong with a file or a change of it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use crate::secret::{self, Digest};

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

/// Why a key file cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyFileError(pub(super) String);

impl KeyFileError {
    pub(super) fn no_random_bytes() -> Self {
        Self("the system provides no random bytes for a key".to_owned())
    }
}
