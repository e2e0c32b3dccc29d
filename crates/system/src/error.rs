//! Why a system table cannot be read.

use thiserror::Error;

use crate::catalog::SystemTable;

/// A table that cannot be read, or options that do not fit it. No message contains a value of a row.
#[derive(Debug, Error)]
pub enum SystemError {
    /// The operating system has no such table.
    #[error("table \"{}\" is not available on this system ({system}); system tables need Linux", .table.name())]
    NotAvailable {
        /// The table.
        table: SystemTable,
        /// The name of the operating system.
        system: &'static str,
    },
    /// The source of the rows cannot be read.
    #[error("table \"{}\" cannot be read: {origin}: {reason}", .table.name())]
    Unreadable {
        /// The table.
        table: SystemTable,
        /// The file or folder.
        origin: String,
        /// The reason that the operating system gives.
        reason: String,
    },
    /// A column of the read options is none of the table.
    #[error("unknown column {name:?} in table \"{}\"{advice}", .table.name())]
    UnknownColumn {
        /// The table.
        table: SystemTable,
        /// The unknown name.
        name: String,
        /// The nearest name as `; did you mean …?`, or an empty text.
        advice: String,
    },
    /// A parameter does not exist, or has a value of another type or none of its options.
    #[error("parameter {name:?} of table \"{}\" {problem}", .table.name())]
    InvalidParameter {
        /// The table.
        table: SystemTable,
        /// The name of the parameter.
        name: String,
        /// What is wrong and what would be right.
        problem: String,
    },
}
