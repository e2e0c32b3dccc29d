//! Live system tables: the state of the machine as rows that are produced when they are read, and the requests of
//! agents that use such tables as functions.
//!
//! [`SystemTable`] lists the tables and describes each of them as data: columns, types, units, parameters, and which
//! columns are sensitive. [`SystemReader::read`] produces the rows. A process that vanishes or may not be read leaves
//! null in its columns; it never fails the whole table.
//!
//! [`FunctionRequest::validate`] checks columns, order, limit, conditions and parameters against a description and
//! reports all violations at once. [`RowSelector`] applies the request to rows in bounded memory. Neither depends on
//! Linux or on the tables of this crate, so that other tables can be offered in the same way.
//!
//! Tables are read on Linux only. On other systems, [`SystemReader::read`] returns [`SystemError::NotAvailable`].

mod catalog;
#[cfg(target_os = "linux")]
mod cpu_sampler;
mod description;
mod error;
mod function;
#[cfg(target_os = "linux")]
mod linux;
mod read;
mod value;

pub use catalog::SystemTable;
pub use description::{SystemColumn, SystemColumnType, SystemParameter, SystemTableDescription};
pub use error::SystemError;
pub use function::{
    FilterAdvice, FunctionCondition, FunctionRequest, FunctionSort, LIMIT_DEFAULT, LIMIT_MAX, OversizedAnswer,
    RequestViolation, RequestViolations, RowSelector, SelectedRows,
};
pub use read::{MASK, ROWS_MAX_DEFAULT, ReadOptions, ReadSummary, SystemReader, TEXT_BYTES_MAX};
pub use value::SystemValue;
