//! The result of a query: column types, rows as Arrow batches, and the buffer between the reading thread and the
//! client.

mod batch;
mod columns;
mod row_buffer;

pub(crate) use columns::{ResultColumn, arrow_schema, describe_columns};
pub(crate) use row_buffer::{BatchReader, RowBuffer, RowSender};
