//! The file of API keys: adding, listing and revoking them.
//!
//! The file holds digests only. A whole key is seen once, by whoever adds it.

mod entry;
mod error;
mod ownership;
mod store;

use std::path::{Path, PathBuf};

use chrono::{DateTime, SubsecRound, Utc};

use crate::clock::Clock;
use crate::digest::sha256;
use crate::key_format;
use crate::secret::Secret;

pub(crate) use entry::KeyEntry;
pub use error::KeyFileError;

/// Keys that a file may hold, revoked ones included.
const KEYS_MAX: usize = 10_000;
/// Characters that a name may have.
const NAME_CHARS_MAX: usize = 64;
/// Ids that are tried before one is found that no key has. Of 2^40 ids, one try is nearly always enough.
const ID_TRIES_MAX: usize = 8;

/// A file of API keys. It need not exist: then there are no keys, and the first one that is added makes it.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
    clock: Clock,
}

/// Whether a key lets anybody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// It does.
    Active,
    /// It did until it expired.
    Expired,
    /// It did until it was revoked.
    Revoked,
}

impl KeyState {
    /// The name as it stands in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// What may be told of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// The name of its holder; only one active key has it.
    pub name: String,
    /// Its id, which is no secret.
    pub id: String,
    /// The roles that it names.
    pub roles: Vec<String>,
    /// The tenant that its holder belongs to, if any.
    pub tenant: Option<String>,
    /// When it was added.
    pub created: DateTime<Utc>,
    /// From when on it lets nobody in; none for never.
    pub expires: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked: Option<DateTime<Utc>>,
    /// Whether it lets anybody in.
    pub state: KeyState,
}

impl KeyStatus {
    /// What the key begins with, by which its holder recognises it.
    pub fn prefix(&self) -> String {
        format!("{}{}", key_format::PREFIX, self.id)
    }
}

/// A key that was just added.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The whole key. It is kept nowhere and cannot be had again.
    pub key: Secret,
    /// What may be told of it.
    pub status: KeyStatus,
}

impl KeyFile {
    /// The key file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), clock: Clock::default() }
    }

    /// The same file, by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a key that is `name`'s, who belongs to no tenant, holds `roles` and, if so asked, expires.
    ///
    /// # Errors
    /// When an active key has that name, name or time of expiry cannot be, or the file cannot be read or written.
    pub fn add(&self, name: &str, roles: &[String], expires: Option<DateTime<Utc>>) -> Result<NewKey, KeyFileError> {
        self.add_for_tenant(None, name, roles, expires)
    }

    /// Adds a key whose holder belongs to `tenant`.
    ///
    /// # Errors
    /// As [`KeyFile::add`], and when the tenant has no name that can be.
    pub fn add_for_tenant(
        &self,
        tenant: Option<&str>,
        name: &str,
        roles: &[String],
        expires: Option<DateTime<Utc>>,
    ) -> Result<NewKey, KeyFileError> {
        let now = self.clock.now().trunc_subsecs(0);
        if !is_valid_name(name) {
            return Err(KeyFileError::BadName(name.to_owned()));
        }
        if let Some(tenant) = tenant.filter(|tenant| !is_valid_name(tenant)) {
            return Err(KeyFileError::BadTenant(tenant.to_owned()));
        }
        if let Some(expires) = expires.filter(|expires| *expires <= now) {
            return Err(KeyFileError::ExpiresInThePast(expires));
        }
        let secret = key_format::random_secret().map_err(|_| KeyFileError::NoRandomBytes)?;
        store::update(&self.path, |entries| {
            if entries.len() >= KEYS_MAX {
                return Err(KeyFileError::Full(KEYS_MAX));
            }
            if entries.iter().any(|entry| entry.name == name && entry.state(now) == KeyState::Active) {
                return Err(KeyFileError::NameTaken(name.to_owned()));
            }
            let entry = KeyEntry {
                name: name.to_owned(),
                id: new_id(entries)?,
                sha256: sha256(&secret),
                roles: roles.to_vec(),
                tenant: tenant.map(str::to_owned),
                created: now,
                expires,
                revoked: None,
            };
            let key = Secret::new(key_format::format_key(&entry.id, &secret));
            let status = entry.status(now);
            entries.push(entry);
            Ok(NewKey { key, status })
        })
    }

    /// What may be told of every key, in the order in which they were added.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self) -> Result<Vec<KeyStatus>, KeyFileError> {
        let now = self.clock.now();
        Ok(self.entries()?.iter().map(|entry| entry.status(now)).collect())
    }

    /// Revokes the key of that name or id for good.
    ///
    /// # Errors
    /// When there is no such key, it is revoked already, or the file cannot be read or written.
    pub fn revoke(&self, name_or_id: &str) -> Result<KeyStatus, KeyFileError> {
        let now = self.clock.now().trunc_subsecs(0);
        store::update(&self.path, |entries| {
            let entry = find_revocable(entries, name_or_id, now)?;
            entry.revoked = Some(now);
            Ok(entry.status(now))
        })
    }

    /// Everything in the file.
    pub(crate) fn entries(&self) -> Result<Vec<KeyEntry>, KeyFileError> {
        store::read(&self.path)
    }
}

fn is_valid_name(text: &str) -> bool {
    let has_odd = text.trim() != text || text.chars().any(char::is_control);
    !has_odd && (1..=NAME_CHARS_MAX).contains(&text.chars().count())
}

fn new_id(entries: &[KeyEntry]) -> Result<String, KeyFileError> {
    for _ in 0..ID_TRIES_MAX {
        let id = key_format::random_id().map_err(|_| KeyFileError::NoRandomBytes)?;
        if entries.iter().all(|entry| entry.id != id) {
            return Ok(id);
        }
    }
    Err(KeyFileError::NoRandomBytes)
}

/// The one key that goes by `name_or_id` and can be revoked: the active one rather than one that expired.
fn find_revocable<'a>(
    entries: &'a mut [KeyEntry],
    name_or_id: &str,
    now: DateTime<Utc>,
) -> Result<&'a mut KeyEntry, KeyFileError> {
    let mut found: Vec<&mut KeyEntry> =
        entries.iter_mut().filter(|entry| entry.name == name_or_id || entry.id == name_or_id).collect();
    if found.is_empty() {
        return Err(KeyFileError::NoSuchKey(name_or_id.to_owned()));
    }
    found.retain(|entry| entry.state(now) != KeyState::Revoked);
    if found.iter().any(|entry| entry.state(now) == KeyState::Active) {
        found.retain(|entry| entry.state(now) == KeyState::Active);
    }
    match (found.pop(), found.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (Some(_), false) => Err(KeyFileError::Ambiguous(name_or_id.to_owned())),
        (None, _) => Err(KeyFileError::AlreadyRevoked(name_or_id.to_owned())),
    }
}
