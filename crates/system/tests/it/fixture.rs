//! Reads tables into rows with named values.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::process::Command;

use tidegate_system::{ReadOptions, ReadSummary, SystemReader, SystemTable, SystemValue};

/// A row by the names of its columns.
pub(crate) type NamedRow = BTreeMap<String, SystemValue>;

pub(crate) fn read_with(
    reader: &SystemReader,
    table: SystemTable,
    options: &ReadOptions,
) -> (Vec<NamedRow>, ReadSummary) {
    let columns = &table.description().columns;
    let mut rows = Vec::new();
    let summary = reader.read(table, options, &mut |row| {
        assert_eq!(row.len(), columns.len());
        for (value, column) in row.iter().zip(columns) {
            assert!(column.column_type.accepts(value), "{}: {value:?}", column.name);
        }
        let names = columns.iter().map(|column| column.name.clone().into_owned());
        rows.push(names.zip(row).collect());
        ControlFlow::Continue(())
    });
    (rows, summary.unwrap())
}

/// All rows with the default options.
pub(crate) fn read(table: SystemTable) -> Vec<NamedRow> {
    read_with(&SystemReader::new(), table, &ReadOptions::default()).0
}

/// Options with one parameter.
pub(crate) fn with_parameter(name: &str, value: impl Into<SystemValue>) -> ReadOptions {
    ReadOptions { parameters: BTreeMap::from([(name.to_owned(), value.into())]), ..ReadOptions::default() }
}

pub(crate) fn text(row: &NamedRow, column: &str) -> String {
    row[column].as_text().unwrap_or_else(|| panic!("{column}: {:?}", row[column])).to_owned()
}

pub(crate) fn number(row: &NamedRow, column: &str) -> u64 {
    row[column].as_unsigned().unwrap_or_else(|| panic!("{column}: {:?}", row[column]))
}

pub(crate) fn float(row: &NamedRow, column: &str) -> f64 {
    match row[column] {
        SystemValue::Float(value) => value,
        ref other => panic!("{column}: {other:?}"),
    }
}

/// The texts of a column.
pub(crate) fn texts(rows: &[NamedRow], column: &str) -> BTreeSet<String> {
    rows.iter().filter_map(|row| row[column].as_text()).map(str::to_owned).collect()
}

/// The output of a program; `None` if the machine does not have it.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
