//! The stored record of a task, its encoding in MCP, and the folder of records: one file per task, written atomically.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_core::CallerIdentity;
use tidegate_core::private_file::set_owner_only;
use uuid::Uuid;

use crate::wire::{object, text};

const POLL_INTERVAL_MS: u64 = 1_000;

/// The id of a task; it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TaskId(pub(super) Uuid);

impl TaskId {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Only in canonical form, so that one task has one id.
        Uuid::parse_str(text).ok().map(Self).filter(|id| id.to_string() == text)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskMetadata {
    pub(crate) id: TaskId,
    pub(crate) owner: CallerIdentity,
    /// The roles of its owner. A caller without one of them cannot see the task.
    #[serde(default)]
    pub(crate) roles: BTreeSet<String>,
    /// The tool. A caller that may no longer call it cannot see the task.
    pub(crate) tool: String,
    /// Databases queried with the rights of its owner. A caller without access to one of them cannot see the task.
    #[serde(default)]
    pub(crate) databases: BTreeSet<String>,
    /// The fingerprint of the row policies for its owner
    /// ([`RowPolicyFingerprints`](tidegate_core::RowPolicyFingerprints)). A caller with another fingerprint cannot
    /// see the task. Old records without a fingerprint are for callers to whom no policy applies.
    #[serde(default)]
    pub(crate) row_policies: u64,
    #[serde(default)]
    pub(crate) bytes: u64,
    pub(crate) status: TaskStatus,
    /// A message for people: the progress, or the reason of the end.
    pub(crate) message: Option<String>,
    pub(crate) created: DateTime<Utc>,
    pub(crate) updated: DateTime<Utc>,
    pub(crate) time_to_live_ms: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TaskResult {
    pub(crate) result: Option<Box<RawValue>>,
    pub(crate) error: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TaskRecord {
    // Renamed to the members of earlier files.
    #[serde(rename = "facts")]
    pub(crate) metadata: TaskMetadata,
    #[serde(rename = "ending", default)]
    pub(crate) result: TaskResult,
}

impl TaskMetadata {
    pub(crate) fn is_expired(&self, now: DateTime<Utc>) -> bool {
        let age = now.signed_duration_since(self.created).to_std().unwrap_or_default();
        age >= Duration::from_millis(self.time_to_live_ms)
    }

    /// Extends the lifetime to at least `time` after the last change.
    pub(crate) fn extend_lifetime(&mut self, time: Duration) {
        let age = self.updated.signed_duration_since(self.created).to_std().unwrap_or_default();
        self.time_to_live_ms = self.time_to_live_ms.max(age.saturating_add(time).as_millis() as u64);
    }

    /// The members of a `Task`, as JSON text without braces.
    pub(crate) fn members(&self) -> String {
        let time = |time: DateTime<Utc>| Some(Value::from(time.to_rfc3339_opts(SecondsFormat::Millis, true)));
        let task = object([
            ("taskId", Some(json!(self.id))),
            ("status", Some(json!(self.status))),
            ("statusMessage", text(self.message.as_ref())),
            ("createdAt", time(self.created)),
            ("lastUpdatedAt", time(self.updated)),
            ("ttlMs", Some(self.time_to_live_ms.into())),
            ("pollIntervalMs", (!self.status.is_terminal()).then(|| POLL_INTERVAL_MS.into())),
        ]);
        task.to_string().trim_start_matches('{').trim_end_matches('}').to_owned()
    }
}

impl TaskResult {
    pub(crate) fn bytes(&self) -> u64 {
        [&self.result, &self.error].into_iter().flatten().map(|text| text.get().len() as u64).sum()
    }

    pub(crate) fn members(&self) -> String {
        let member = |name: &str, text: &Option<Box<RawValue>>| {
            text.as_deref().map(|text| format!(",\"{name}\":{}", text.get())).unwrap_or_default()
        };
        member("result", &self.result) + &member("error", &self.error)
    }
}

const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The folder of stored tasks of one process. No other process may use it at the same time.
#[derive(Debug, Clone)]
pub struct TaskFolder(PathBuf);

impl TaskFolder {
    /// Opens the folder at `path` and creates it if necessary.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        restrict_permissions(&path)?;
        Ok(Self(path))
    }

    /// Writes `record` atomically.
    pub(super) async fn write(&self, record: &TaskRecord) -> io::Result<()> {
        let path = self.path_of(record.metadata.id);
        let text = serde_json::to_vec(record)?;
        run_blocking(move || {
            let new = path.with_extension("new");
            let file = set_owner_only(OpenOptions::new().write(true).create(true).truncate(true)).open(&new);
            let written = file.and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&new, &path));
            // Removes the incomplete file, if possible.
            written.inspect_err(|_| drop(fs::remove_file(&new)))
        })
        .await
    }

    pub(super) async fn read(&self, id: TaskId) -> io::Result<TaskRecord> {
        let path = self.path_of(id);
        run_blocking(move || read(&path)).await
    }

    pub(super) async fn remove(&self, ids: Vec<TaskId>) {
        let paths: Vec<PathBuf> = ids.into_iter().map(|id| self.path_of(id)).collect();
        let removed = run_blocking(move || {
            for path in paths {
                let _ = fs::remove_file(path);
            }
            Ok(())
        });
        // A file that cannot be removed does not bring the task back: its record contains the expiry.
        let _ = removed.await;
    }

    /// Reads the tasks of an earlier process that have not expired at `now`, and removes all other files.
    pub(super) fn load_tasks(&self, now: DateTime<Utc>) -> Vec<TaskMetadata> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let tasks = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            // Reads one result at a time: all of them together may exceed the memory.
            let metadata = match read(&path) {
                Ok(record) => Some(record.metadata),
                Err(error) if is_corrupt(&error) => None,
                // An I/O error may be temporary, so the file stays.
                Err(error) => {
                    tracing::warn!(%error, "cannot read a task file");
                    return None;
                }
            };
            let kept = metadata
                .filter(|metadata| name.as_deref() == Some(&file_name(metadata.id)) && !metadata.is_expired(now));
            if kept.is_none() {
                let _ = fs::remove_file(&path);
            }
            kept
        });
        tasks.collect()
    }

    fn path_of(&self, id: TaskId) -> PathBuf {
        self.0.join(file_name(id))
    }
}

fn file_name(id: TaskId) -> String {
    format!("{id}.json")
}

fn read(path: &Path) -> io::Result<TaskRecord> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long to be a task record"));
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn is_corrupt(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn restrict_permissions(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let _ = path;
    Ok(())
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(io::Error::other("the file operation was aborted")))
}
