//! Reading a table: options, bounds, masks, and the reader that stores earlier CPU readings; why a table cannot be read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use thiserror::Error;
use tidegate_core::suggestion;

use crate::catalog::SystemTable;
use crate::description::SystemValue;

/// The value of sensitive columns for readers without the grant.
pub const MASK: &str = "***";
/// Rows of one reading at most, unless the options say otherwise.
pub const ROWS_MAX_DEFAULT: usize = 100_000;
/// Bytes of one text value at most. Longer values are cut and end in `…`.
pub const TEXT_BYTES_MAX: usize = 8_192;

/// What to read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOptions {
    /// The columns that are needed; `None` for all. The others are null, so that what is costly to read is not read.
    pub columns: Option<Vec<String>>,
    /// Whether sensitive columns have their values. Else they have [`MASK`].
    pub grants_sensitive: bool,
    /// Rows at most.
    pub rows_max: usize,
    /// The parameters of the table. Missing ones have their defaults.
    pub parameters: BTreeMap<String, SystemValue>,
}

impl Default for ReadOptions {
    /// All columns, sensitive ones masked.
    fn default() -> Self {
        Self { columns: None, grants_sensitive: false, rows_max: ROWS_MAX_DEFAULT, parameters: BTreeMap::new() }
    }
}

impl ReadOptions {
    fn check(&self, table: SystemTable) -> Result<(), SystemError> {
        let description = table.description();
        for name in self.columns.iter().flatten() {
            if description.column(name).is_none() {
                let advice = suggestion(name, description.column_names());
                return Err(SystemError::UnknownColumn { table, name: name.clone(), advice });
            }
        }
        let problem = |name: &String, problem| SystemError::InvalidParameter { table, name: name.clone(), problem };
        for (name, value) in &self.parameters {
            let Some(parameter) = description.parameter(name) else {
                let names = description.parameters.iter().map(|parameter| parameter.name.as_ref());
                let advice = match names.len() {
                    0 => "; the table has no parameters".to_owned(),
                    _ => suggestion(name, names),
                };
                return Err(problem(name, format!("is unknown{advice}")));
            };
            if let Some(text) = parameter.problem(value) {
                return Err(problem(name, text));
            }
        }
        Ok(())
    }
}

/// How a reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSummary {
    /// The number of rows that were passed on.
    pub rows: usize,
    /// Whether the table has more rows than [`ReadOptions::rows_max`].
    pub is_truncated: bool,
}

/// Reads tables. One reader per process should be shared, because CPU percentages compare with its earlier readings.
#[derive(Debug, Default)]
pub struct SystemReader {
    #[cfg(target_os = "linux")]
    sampler: parking_lot::Mutex<crate::cpu_sampler::CpuSampler>,
}

impl SystemReader {
    /// A reader without earlier readings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Produces the rows of `table` and passes each to `on_row`, which may stop the reading. A row has a value for each
    /// column of the description, in its order. The reading takes the time of system calls and blocks the thread.
    ///
    /// # Errors
    /// The options do not fit the table, the table is not available on this system, or its source is not readable as a
    /// whole. Single processes, devices or values that cannot be read leave null or no row instead.
    pub fn read(
        &self,
        table: SystemTable,
        options: &ReadOptions,
        on_row: &mut dyn FnMut(Vec<SystemValue>) -> ControlFlow<()>,
    ) -> Result<ReadSummary, SystemError> {
        options.check(table)?;
        self.read_table(table, options, on_row)
    }

    #[cfg(target_os = "linux")]
    fn read_table(
        &self,
        table: SystemTable,
        options: &ReadOptions,
        on_row: &mut dyn FnMut(Vec<SystemValue>) -> ControlFlow<()>,
    ) -> Result<ReadSummary, SystemError> {
        crate::linux::read(table, &self.sampler, options, on_row)
    }

    #[cfg(not(target_os = "linux"))]
    fn read_table(
        &self,
        table: SystemTable,
        _options: &ReadOptions,
        _on_row: &mut dyn FnMut(Vec<SystemValue>) -> ControlFlow<()>,
    ) -> Result<ReadSummary, SystemError> {
        Err(SystemError::NotAvailable { table, system: std::env::consts::OS })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(table: SystemTable, options: &ReadOptions) -> String {
        options.check(table).unwrap_err().to_string()
    }

    #[test]
    fn options_must_fit_the_table() {
        let with_column = |name: &str| ReadOptions { columns: Some(vec![name.to_owned()]), ..ReadOptions::default() };
        let with_parameter = |name: &str, value: SystemValue| ReadOptions {
            parameters: BTreeMap::from([(name.to_owned(), value)]),
            ..ReadOptions::default()
        };
        let errors = [
            error(SystemTable::Processes, &with_column("cpu_percnt")),
            error(SystemTable::Connections, &with_parameter("protcol", "tcp".into())),
            error(SystemTable::Connections, &with_parameter("protocol", "sctp".into())),
            error(SystemTable::Mounts, &with_parameter("include_pseudo", "yes".into())),
            error(SystemTable::Users, &with_parameter("x", true.into())),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r#"
        unknown column "cpu_percnt" in table "processes"; did you mean "cpu_percent"?
        parameter "protcol" of table "connections" is unknown; did you mean "protocol"?
        parameter "protocol" of table "connections" must be "tcp" or "udp"
        parameter "include_pseudo" of table "mounts" must be of type boolean
        parameter "x" of table "users" is unknown; the table has no parameters
        "#);
        assert!(with_column("pid").check(SystemTable::Processes).is_ok());
        assert!(with_parameter("protocol", "udp".into()).check(SystemTable::Connections).is_ok());
    }

    #[test]
    fn missing_system_is_named() {
        let error = SystemError::NotAvailable { table: SystemTable::Load, system: "macos" };
        insta::assert_snapshot!(
            error,
            @r#"table "load" is not available on this system (macos); system tables need Linux"#
        );
    }
}
