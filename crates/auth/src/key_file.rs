//! The API key file: adding, listing and revoking keys, and the check of a presented key. The file is read and replaced as a
//! whole, by one process at a time.
//!
//! The file contains digests only. The whole key exists once, in the result of [`KeyFile::add`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use tidegate_core::private_file::{create_folder, set_owner_only};
use tidegate_core::{AuthMethod, Principal};

use crate::roles::Roles;
use crate::secret::{self, Clock, Digest, ParsedKey, Secret, random_id, sha256};

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
        update_entries(&self.path, |entries| {
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
        update_entries(&self.path, |entries| {
            let entry = find_revocable(entries, name_or_id, now)?;
            entry.revoked = Some(now);
            Ok(entry.status(now))
        })
    }

    fn entries(&self) -> Result<Vec<KeyEntry>, KeyFileError> {
        read_entries(&self.path)
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
struct KeyEntry {
    pub(crate) name: String,
    pub(crate) id: String,
    /// The digest of the secret part. Base64url in the file.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub(crate) sha256: Digest,
    pub(crate) roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    created: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked: Option<DateTime<Utc>>,
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
pub struct KeyFileError(String);

impl KeyFileError {
    fn no_random_bytes() -> Self {
        Self("the system provides no random bytes for a key".to_owned())
    }
}

/// The only version of the file format that this program writes and reads.
const VERSION: u64 = 1;
/// Bytes of a key file at most; ten thousand keys with many roles need less.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFileContent {
    version: u64,
    keys: Vec<KeyEntry>,
}

/// Parsed first, because a later version may have any other format.
#[derive(Deserialize)]
struct KeyFileVersion {
    version: u64,
}

/// Empty if the file does not exist. Takes no lock, because files are only replaced as a whole.
fn read_entries(path: &Path) -> Result<Vec<KeyEntry>, KeyFileError> {
    let failed = |error| io_error("read", path, &error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        let problem = format!("the key file {} is larger than {BYTES_MAX} bytes", path.display());
        return Err(KeyFileError(problem));
    }
    parse(path, &bytes)
}

/// Changes the entries of the file under a lock. If `change` fails, the file is unchanged.
fn update_entries<T>(
    path: &Path,
    change: impl FnOnce(&mut Vec<KeyEntry>) -> Result<T, KeyFileError>,
) -> Result<T, KeyFileError> {
    // A symbolic link is kept: its target is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |action| move |error| io_error(action, path, &error);
    create_folder(folder_of(path)).map_err(failed("make the folder of"))?;
    let before = Ownership::read(path).map_err(failed("inspect"))?;
    // The file itself cannot carry the lock, because it is replaced. The lock ends with `lock`.
    let lock = open_lock(&with_suffix(path, ".lock"), before.as_ref()).map_err(failed("lock"))?;
    lock.lock().map_err(failed("lock"))?;
    let mut entries = read_entries(path)?;
    let outcome = change(&mut entries)?;
    replace(path, entries, before.as_ref()).map_err(failed("write"))?;
    Ok(outcome)
}

/// Opens the lock file. A new one gets the owner of the key file, so that everyone who may replace that file can lock
/// it. An existing one keeps its owner, because it may be a link to a file of another user.
fn open_lock(path: &Path, owner: Option<&Ownership>) -> io::Result<File> {
    match set_owner_only(OpenOptions::new().create_new(true).write(true)).open(path) {
        Ok(lock) => {
            if let Some(owner) = owner {
                owner.try_chown(&lock);
            }
            Ok(lock)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(path),
        Err(error) => Err(error),
    }
}

fn io_error(action: &str, path: &Path, error: &io::Error) -> KeyFileError {
    KeyFileError(format!("cannot {action} the key file {}: {error}", path.display()))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<KeyEntry>, KeyFileError> {
    let path = path.display();
    // The content is not quoted, because it may be another file with secrets.
    let malformed = |error: serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        let problem = format!("{path} is not a valid key file: unexpected content at line {line}, column {column}");
        KeyFileError(problem)
    };
    let version = serde_json::from_slice::<KeyFileVersion>(bytes).map_err(malformed)?.version;
    if version != VERSION {
        let problem =
            format!("the key file {path} has the version {version}; this program reads only version {VERSION}");
        return Err(KeyFileError(problem));
    }
    let keys = serde_json::from_slice::<KeyFileContent>(bytes).map_err(malformed)?.keys;
    let mut ids = BTreeSet::new();
    if let Some(entry) = keys.iter().find(|entry| !ids.insert(&entry.id)) {
        return Err(KeyFileError(format!("the key file {path} holds two keys with the id {:?}", entry.id)));
    }
    Ok(keys)
}

/// Writes a new file beside the old one, syncs it, and renames it over the old one, so that a crash leaves one of the
/// two. It keeps the owner of the old file (`before`): the user of the node may differ from the user who changes the
/// keys.
fn replace(path: &Path, keys: Vec<KeyEntry>, before: Option<&Ownership>) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(&KeyFileContent { version: VERSION, keys })?;
    bytes.push(b'\n');
    let mark = random_id().map_err(|_| io::Error::other("the system provides no random bytes"))?;
    let new = with_suffix(path, &format!(".{mark}.new"));
    let written = write_new(&new, &bytes, before).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
        return written;
    }
    // Not every file system can sync a folder; the new file is in place anyway.
    let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], owner: Option<&Ownership>) -> io::Result<()> {
    let mut file = set_owner_only(OpenOptions::new().create_new(true).write(true)).open(path)?;
    file.write_all(bytes)?;
    if let Some(owner) = owner {
        owner.apply_to(&file)?;
    }
    file.sync_all()
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

struct Ownership {
    user: u32,
    group: u32,
    mode: u32,
}

impl Ownership {
    /// Without the executable bits.
    const MODE_BITS: u32 = 0o666;
    const OWNER_ONLY: u32 = 0o600;

    /// The ownership of the file at `path`; `None` if the file does not exist.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;

        match std::fs::metadata(path) {
            Ok(metadata) => {
                let mode = metadata.mode() & Self::MODE_BITS;
                Ok(Some(Self { user: metadata.uid(), group: metadata.gid(), mode }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn apply_to(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        let has_same_group = self.try_chown(file);
        // A different group must not gain access.
        let mode = if has_same_group { self.mode } else { self.mode & Self::OWNER_ONLY };
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    /// Gives `file` the same owner and group if this process may change them. An administrator may; other users already
    /// own the file. Returns whether the group is the same.
    fn try_chown(&self, file: &File) -> bool {
        use std::os::unix::fs::fchown;

        let has_both = fchown(file, Some(self.user), Some(self.group)).is_ok();
        has_both || fchown(file, None, Some(self.group)).is_ok()
    }
}

pub(crate) struct ApiKeys(HashMap<String, ApiKey>);

struct ApiKey {
    digest: Digest,
    expires: Option<DateTime<Utc>>,
    principal: Arc<Principal>,
}

impl ApiKeys {
    /// Reads `file`. A role that is not among `roles` grants nothing and is logged.
    pub(crate) fn read(file: &KeyFile, roles: &Roles) -> Result<Self, KeyFileError> {
        let mut keys = HashMap::new();
        let mut unknown: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in file.entries()?.into_iter().filter(|entry| entry.revoked.is_none()) {
            let (known, undefined): (BTreeSet<_>, BTreeSet<_>) =
                entry.roles.into_iter().partition(|name| roles.has(name));
            for role in undefined {
                unknown.entry(role).or_default().push(entry.name.clone());
            }
            // A manual edit can leave the tenant empty. An empty tenant must not turn into "no tenant".
            if entry.tenant.as_deref().is_some_and(|tenant| tenant.trim().is_empty()) {
                tracing::warn!(key = entry.name, "key ignored: its tenant is empty");
                continue;
            }
            let principal = roles.build_principal(entry.name, AuthMethod::Key, known);
            let expires_at = entry.expires.map(Into::into);
            let principal = Principal { tenant: entry.tenant, expires_at, ..principal };
            let key = ApiKey { digest: entry.sha256, expires: entry.expires, principal: Arc::new(principal) };
            keys.insert(entry.id, key);
        }
        for (role, keys) in unknown {
            tracing::warn!(role, ?keys, "keys name an undefined role, which grants nothing");
        }
        Ok(Self(keys))
    }

    pub(crate) fn principal_for(&self, text: &str, now: DateTime<Utc>) -> Option<Arc<Principal>> {
        let parsed_key = ParsedKey::parse(text)?;
        let key = self.0.get(parsed_key.id);
        // Constant time: an unknown id costs as much as a wrong secret, and timing reveals nothing about the secret.
        let expected = key.map_or(Digest::default(), |key| key.digest);
        let is_right = verify_slices_are_equal(&sha256(parsed_key.secret), &expected).is_ok();
        let key = key.filter(|_| is_right)?;
        key.expires.is_none_or(|expires| now < expires).then(|| key.principal.clone())
    }
}
