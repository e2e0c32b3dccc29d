//! Tasks: calls whose request was answered with a handle, and whose result is fetched later.
//!
//! A task is a job with a longer life. It is stored before its handle is sent, so a restart finds it. Its result stays
//! on disk until it expires, and only its metadata stays in memory.
//!
//! [Tasks extension 2026-07-28](https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md)

mod entry;
mod feed;
mod folder;
mod methods;
mod record;
mod recorder;
mod store;
mod transition;

pub(crate) use feed::TaskFeed;
pub use folder::TaskFolder;
pub(crate) use store::{TaskLimits, TaskStore};
pub(crate) use transition::{TaskTransition, TransitionOutcome};
