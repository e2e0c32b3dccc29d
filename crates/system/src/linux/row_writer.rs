//! Turns a source, such as one process, into a row: needed columns only, masked, and with bounds.

use std::ops::ControlFlow;

use super::RowCallback;
use crate::catalog::SystemTable;
use crate::description::{SystemColumn, SystemColumnType, SystemValue};
use crate::read::{MASK, ReadOptions, ReadSummary, TEXT_BYTES_MAX};

/// A column of a table and how its value is produced from a source.
pub(super) type ColumnReader<S> = (&'static str, fn(&S) -> SystemValue);

enum Cell<S> {
    Masked,
    NotNeeded,
    Read(fn(&S) -> SystemValue, Rounding),
}

/// Digits behind the point that a column has. Quotients have many more, which mean nothing and cost a model tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rounding {
    None,
    Hundredths,
    Microseconds,
}

impl Rounding {
    fn for_column(column: &SystemColumn) -> Self {
        match column.column_type {
            SystemColumnType::Duration => Self::Microseconds,
            SystemColumnType::Float if column.unit.as_deref() == Some("percent") => Self::Hundredths,
            _ => Self::None,
        }
    }

    fn round(self, value: SystemValue) -> SystemValue {
        let SystemValue::Float(number) = value else { return value };
        let digits = match self {
            Self::None => return value,
            Self::Hundredths => 100.0,
            Self::Microseconds => 1_000_000.0,
        };
        SystemValue::Float((number * digits).round() / digits)
    }
}

/// Writes the rows of one table.
pub(super) struct RowWriter<'a, S> {
    table: SystemTable,
    cells: Vec<Cell<S>>,
    rows_max: usize,
    summary: ReadSummary,
    on_row: RowCallback<'a>,
}

impl<'a, S> RowWriter<'a, S> {
    pub(super) fn new(
        table: SystemTable,
        readers: &[ColumnReader<S>],
        options: &ReadOptions,
        on_row: RowCallback<'a>,
    ) -> Self {
        let columns = &table.description().columns;
        debug_assert!(
            columns.iter().map(|column| column.name.as_ref()).eq(readers.iter().map(|(name, _)| *name)),
            "the readers of {} are not its columns",
            table.name()
        );
        let cell = |column: &SystemColumn| {
            let reader = readers.iter().find(|(name, _)| *name == column.name);
            match reader {
                Some(_) if !is_needed(options, &column.name) => Cell::NotNeeded,
                Some(_) if column.is_sensitive && !options.grants_sensitive => Cell::Masked,
                Some((_, read)) => Cell::Read(*read, Rounding::for_column(column)),
                None => Cell::NotNeeded,
            }
        };
        Self {
            table,
            cells: columns.iter().map(cell).collect(),
            rows_max: options.rows_max,
            summary: ReadSummary { rows: 0, is_truncated: false },
            on_row,
        }
    }

    /// Passes the row of `source` on, unless there are too many.
    pub(super) fn write(&mut self, source: &S) -> ControlFlow<()> {
        if self.summary.rows >= self.rows_max {
            self.summary.is_truncated = true;
            return ControlFlow::Break(());
        }
        let value = |cell: &Cell<S>| match cell {
            Cell::Masked => SystemValue::from(MASK),
            Cell::NotNeeded => SystemValue::Null,
            Cell::Read(read, rounding) => rounding.round(bounded(read(source))),
        };
        let row: Vec<SystemValue> = self.cells.iter().map(value).collect();
        debug_assert!(
            row.iter().zip(&self.table.description().columns).all(|(value, column)| column.column_type.accepts(value)),
            "a value of {} has another type than its column",
            self.table.name()
        );
        self.summary.rows += 1;
        (self.on_row)(row)
    }

    pub(super) fn finish(self) -> ReadSummary {
        self.summary
    }
}

/// Whether the reader needs this column.
pub(super) fn is_needed(options: &ReadOptions, column: &str) -> bool {
    options.columns.as_ref().is_none_or(|columns| columns.iter().any(|name| name == column))
}

fn bounded(value: SystemValue) -> SystemValue {
    let SystemValue::Text(mut text) = value else { return value };
    if text.len() > TEXT_BYTES_MAX {
        const ELLIPSIS: &str = "…";
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - ELLIPSIS.len()));
        text.push_str(ELLIPSIS);
    }
    SystemValue::Text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded() {
        let round = |rounding: Rounding, number: f64| rounding.round(number.into());
        assert_eq!(round(Rounding::Hundredths, 37.499_999_999_998_58), SystemValue::Float(37.5));
        assert_eq!(round(Rounding::Microseconds, 476.360_000_000_000_1), SystemValue::Float(476.36));
        assert_eq!(round(Rounding::None, 1.0 / 3.0), SystemValue::Float(1.0 / 3.0));
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = |value: SystemValue| value.as_text().map(str::to_owned).unwrap();
        let long = text(bounded("ä".repeat(TEXT_BYTES_MAX).into()));
        assert!(
            long.len() <= TEXT_BYTES_MAX && long.len() > TEXT_BYTES_MAX - 4 && long.ends_with("ä…"),
            "{}",
            long.len()
        );
        let exact = "x".repeat(TEXT_BYTES_MAX);
        assert_eq!(text(bounded(exact.clone().into())), exact);
    }
}
