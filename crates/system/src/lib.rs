//! Live system tables: the state of the machine as rows that are produced when they are read.
//!
//! [`SystemTable`] lists the tables and describes each of them as data: columns, types, units, parameters, and which
//! columns are sensitive. [`SystemReader::read`] produces the rows. A process that vanishes or may not be read leaves
//! null in its columns; it never fails the whole table.
//!
//! Tables are read on Linux only. On other systems, [`SystemReader::read`] returns [`SystemError::NotAvailable`].

mod catalog;
#[cfg(target_os = "linux")]
mod cpu_sampler;
mod description;
#[cfg(target_os = "linux")]
mod linux;
mod read;

pub use catalog::SystemTable;
pub use description::{SystemColumn, SystemColumnType, SystemParameter, SystemTableDescription, SystemValue};
pub use read::{MASK, ROWS_MAX_DEFAULT, ReadOptions, ReadSummary, SystemError, SystemReader, TEXT_BYTES_MAX};
