//! The answer of a query: the types of its columns, its rows as Arrow batches, and their way from the thread that
//! reads them to whoever wants them.

mod batch;
mod columns;
mod handover;

pub(crate) use columns::{ResultColumn, ValueKind, describe, schema_of};
pub(crate) use handover::{Handover, Reader, Source};
