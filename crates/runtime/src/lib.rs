//! Runs calls: the registry and its entries, jobs, replies, limits, events and watches. No protocol, no HTTP, no SQL.
//!
//! A host adds [`Tool`]s, [`Resource`]s, [`ResourceTemplate`]s and [`Prompt`]s to a [`Snapshot`] and puts it into a
//! [`Registry`]. Every adapter calls them through [`Registry::call`] or [`Registry::write_rows`], the only entry points to handlers.

pub mod event;
mod handler;
mod job;
mod limits;
mod loading_cache;
mod prompt;
mod registry;
mod reply;
mod resource;
mod sessions;
mod snapshot;
mod tool;

pub use event::{AuditReservation, AuditStats, Auditor};
pub use handler::{Completer, Handler, handler_fn};
pub use job::{
    AnswerProtector, Call, CallUsage, ClientRequest, Job, JobId, JobState, JobStatus, Jobs, RequestBody,
    RequestBodyReader,
};
pub use loading_cache::{CacheAges, LoadingCache};
pub use prompt::{Prompt, PromptArgument};
pub use registry::{ChangeListener, Registry, TransportGroup, TransportState, TransportSwitches, WatchEvent};
pub use reply::{
    AdapterDetail, Answer, AnswerMeta, BodyFile, BodyMetadata, BodyVersion, PendingInputRequest, ReceiverOutcome,
    Reply, ReplyNotification, ReplyPart, ReplySender, RunningCall, WriteSummary, WrittenRecords,
};
pub use resource::{CacheHint, Resource, ResourceLister, ResourceTemplate, ResourceWatcher};
pub use sessions::{SessionEntry, SessionStatus, Sessions};
pub use snapshot::builder::SnapshotBuilder;
pub use snapshot::{RegistryEntry, ServerName, Snapshot};
pub use tool::{RequestBodyTypes, Tool, ToolAnnotations};
