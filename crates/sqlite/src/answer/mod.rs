//! The answer of a query: the types of its columns, its rows as Arrow batches, and their way from the thread that
//! reads them to whoever wants them.

mod batch;
mod columns;
mod row_buffer;

pub(crate) use columns::{ResultColumn, SqliteType, arrow_schema, describe_columns};
pub(crate) use row_buffer::{BatchReader, RowBuffer, RowSender};
