//! Runs calls: the registry and its entries, jobs, replies, limits, events and watches; the audit log. No protocol, no HTTP, no SQL.
//!
//! A host adds [`Tool`]s, [`Resource`]s, [`ResourceTemplate`]s and [`Prompt`]s to a [`Snapshot`] and puts it into a
//! [`Registry`]. Every adapter calls them through [`Registry::call`] or [`Registry::write_rows`], the only entry points to handlers.

pub mod audit;
mod connection_pool;
mod entry;
pub mod event;
mod job;
mod limits;
mod loading_cache;
mod registry;
mod reply;
mod sessions;
mod snapshot;

pub use connection_pool::{BackgroundTasks, ConnectionPool, Connector, PooledConnection, RecentConnectError};
pub use entry::{
    CacheHint, Completer, Handler, Prompt, PromptArgument, RequestBodyTypes, Resource, ResourceLister,
    ResourceTemplate, ResourceWatcher, Tool, ToolAnnotations, ToolPreset, handler_fn,
};
pub use event::{AuditReservation, AuditStats, Auditor};
pub use job::{
    AnswerProtector, Call, CallUsage, ClientRequest, Job, JobId, JobState, JobStatus, Jobs, RequestBody,
    RequestBodyReader,
};
pub use loading_cache::{CacheAges, LoadingCache};
pub use registry::{ChangeListener, Registry, TransportGroup, TransportState, TransportSwitches, WatchEvent};
pub use reply::{
    AdapterDetail, Answer, AnswerMeta, BodyFile, BodyMetadata, BodyVersion, PendingInputRequest, ReceiverOutcome,
    Reply, ReplyNotification, ReplyPart, ReplySender, RunningCall, WriteSummary, WrittenRecords,
};
pub use sessions::{SessionEntry, SessionStatus, Sessions};
pub use snapshot::{InstructionNotes, RegistryEntry, ServerName, Snapshot, SnapshotBuilder};
