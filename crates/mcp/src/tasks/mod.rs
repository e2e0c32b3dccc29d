//! Tasks: calls whose request was answered with a handle, and whose result is fetched later.
//!
//! A task is a job with a longer life. It is written down before its handle leaves, so that a restart finds it; its result
//! lies on disk until its time is over, and only facts about it stay in memory.
//!
//! [Tasks extension 2026-07-28](https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md)

mod entry;
mod folder;
mod keeper;
mod listener;
mod methods;
mod record;
mod table;
mod transition;

pub use folder::TaskFolder;
pub(crate) use listener::TaskNews;
pub(crate) use table::{TaskLimits, Tasks};
pub(crate) use transition::{Became, Transition};
