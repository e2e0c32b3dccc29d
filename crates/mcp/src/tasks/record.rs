//! The stored record of a task, and its encoding in MCP.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_core::CallerIdentity;
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
