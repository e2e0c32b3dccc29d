//! The API key file: adding, listing and revoking keys.
//!
//! The file contains digests only. The whole key exists once, in the result of [`KeyFile::add`].

mod entry;
mod store;

use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};

use crate::clock::Clock;
use crate::secret::{self, Secret, sha256};

pub(crate) use entry::KeyEntry;
pub use entry::{KeyFileError, KeyState, KeyStatus};

const NAME_CHARS_MAX: usize = 64;
const KEYS_MAX: usize = 10_000;
/// Attempts to draw an unused id. Of 2^40 ids, the first one is nearly always free.
const ID_TRIES_MAX: usize = 8;

/// A file of API keys. A missing file counts as empty and is created with the first key.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
    clock: Clock,
}

/// A key that was just created.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The whole key. It is not stored and cannot be recovered.
    pub key: Secret,
    /// The key without its secret.
    pub status: KeyStatus,
}

impl KeyFile {
    /// The key file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), clock: Clock::default() }
    }

    /// The same file with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a key for `name` with `roles` and an optional expiry, without a tenant.
    ///
    /// # Errors
    /// When an active key has that name, the name or expiry is invalid, or the file cannot be read or written.
    pub fn add(&self, name: &str, roles: &[String], expires: Option<DateTime<Utc>>) -> Result<NewKey, KeyFileError> {
        self.add_for_tenant(None, name, roles, expires)
    }

    /// Adds a key for `name` in `tenant`.
    ///
    /// # Errors
    /// As [`KeyFile::add`], and when the tenant's name is invalid.
    pub fn add_for_tenant(
        &self,
        tenant: Option<&str>,
        name: &str,
        roles: &[String],
        expires: Option<DateTime<Utc>>,
    ) -> Result<NewKey, KeyFileError> {
        let now = self.clock.now().trunc_subsecs(0);
        for (name, owner) in [(Some(name), "key"), (tenant, "tenant")] {
            if let Some(name) = name.filter(|name| !is_valid_name(name)) {
                return Err(KeyFileError(format!(
                    "{name:?} cannot be a {owner}'s name: it has 1 to {NAME_CHARS_MAX} characters, no control characters, \
                     and no blanks around it"
                )));
            }
        }
        if let Some(expires) = expires.filter(|expires| *expires <= now) {
            let expires = expires.to_rfc3339_opts(SecondsFormat::Secs, true);
            let problem = format!("a key that expires at {expires} would have expired already");
            return Err(KeyFileError(problem));
        }
        let secret = secret::random_secret().map_err(|_| KeyFileError::no_random_bytes())?;
        store::update(&self.path, |entries| {
            if entries.len() >= KEYS_MAX {
                let problem =
                    format!("the key file holds {KEYS_MAX} keys, which is the maximum; delete revoked keys from it");
                return Err(KeyFileError(problem));
            }
            if entries.iter().any(|entry| entry.name == name && entry.state(now) == KeyState::Active) {
                let problem = format!("an active key is named {name:?}; revoke it or choose another name");
                return Err(KeyFileError(problem));
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
            let key = Secret::new(secret::format_key(&entry.id, &secret));
            let status = entry.status(now);
            entries.push(entry);
            Ok(NewKey { key, status })
        })
    }

    /// All keys, in the order in which they were added.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self) -> Result<Vec<KeyStatus>, KeyFileError> {
        let now = self.clock.now();
        Ok(self.entries()?.iter().map(|entry| entry.status(now)).collect())
    }

    /// Revokes the key of that name or id permanently.
    ///
    /// # Errors
    /// When there is no such key, it is already revoked, or the file cannot be read or written.
    pub fn revoke(&self, name_or_id: &str) -> Result<KeyStatus, KeyFileError> {
        let now = self.clock.now().trunc_subsecs(0);
        store::update(&self.path, |entries| {
            let entry = find_revocable(entries, name_or_id, now)?;
            entry.revoked = Some(now);
            Ok(entry.status(now))
        })
    }

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
        let id = secret::random_id().map_err(|_| KeyFileError::no_random_bytes())?;
        if entries.iter().all(|entry| entry.id != id) {
            return Ok(id);
        }
    }
    Err(KeyFileError::no_random_bytes())
}

/// The one key that `name_or_id` names and that can be revoked. An active key takes precedence over expired ones.
fn find_revocable<'a>(
    entries: &'a mut [KeyEntry],
    name_or_id: &str,
    now: DateTime<Utc>,
) -> Result<&'a mut KeyEntry, KeyFileError> {
    let invalid = |problem: String| Err(KeyFileError(problem));
    let mut candidates: Vec<&mut KeyEntry> =
        entries.iter_mut().filter(|entry| entry.name == name_or_id || entry.id == name_or_id).collect();
    if candidates.is_empty() {
        return invalid(format!("no key has the name or id {name_or_id:?}"));
    }
    candidates.retain(|entry| entry.state(now) != KeyState::Revoked);
    if candidates.iter().any(|entry| entry.state(now) == KeyState::Active) {
        candidates.retain(|entry| entry.state(now) == KeyState::Active);
    }
    match (candidates.pop(), candidates.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (Some(_), false) => invalid(format!("several keys have the name {name_or_id:?}; name one by its id")),
        (None, _) => invalid(format!("the key {name_or_id:?} is revoked already")),
    }
}
