//! One entry of the key file.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use super::{KeyState, KeyStatus};
use crate::secret::Digest;

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
