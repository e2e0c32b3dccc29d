//! Reads the tables on Linux, from `/proc`, `/sys`, `/etc/passwd`, unit files and control groups.
//!
//! Each table has a list of columns with the function that produces the value from one source, such as one process. The
//! functions of columns that are not needed do not run. A source becomes a row with the needed columns only, masked, and with
//! bounds. Small text files are read with a bound on their size.

mod connections;
mod disks;
mod interfaces;
mod load;
mod memory;
mod mounts;
mod processes;
mod services;
mod users;

use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use parking_lot::Mutex;
use procfs::{Current as _, Uptime};

use crate::catalog::SystemTable;
use crate::cpu_sampler::CpuSampler;
use crate::description::{SystemColumn, SystemColumnType, SystemValue};
use crate::read::{MASK, ReadOptions, ReadSummary, SystemError, TEXT_BYTES_MAX};

/// Receives rows.
type RowCallback<'a> = &'a mut dyn FnMut(Vec<SystemValue>) -> ControlFlow<()>;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// Where the files are. Tests use folders of their own for all but `/proc`.
#[derive(Debug, Clone)]
struct SystemPaths {
    sys: PathBuf,
    passwd: PathBuf,
    run: PathBuf,
    /// The folders of unit files, the most important first.
    unit_folders: Vec<PathBuf>,
}

impl Default for SystemPaths {
    fn default() -> Self {
        let unit_folders = [
            "/etc/systemd/system",
            "/run/systemd/system",
            "/run/systemd/generator",
            "/usr/local/lib/systemd/system",
            "/usr/lib/systemd/system",
            "/lib/systemd/system",
            "/run/systemd/generator.late",
        ];
        Self {
            sys: "/sys".into(),
            passwd: "/etc/passwd".into(),
            run: "/run".into(),
            unit_folders: unit_folders.map(PathBuf::from).to_vec(),
        }
    }
}

/// Reads `table` with options that fit it.
pub(crate) fn read(
    table: SystemTable,
    sampler: &Mutex<CpuSampler>,
    options: &ReadOptions,
    on_row: RowCallback<'_>,
) -> Result<ReadSummary, SystemError> {
    let paths = SystemPaths::default();
    match table {
        SystemTable::Processes => processes::read(&paths, sampler, options, on_row),
        SystemTable::Connections => connections::read(&paths, table, options, on_row),
        SystemTable::ListeningPorts => connections::read(&paths, table, options, on_row),
        SystemTable::Mounts => mounts::read(options, on_row),
        SystemTable::Disks => disks::read(&paths, options, on_row),
        SystemTable::Interfaces => interfaces::read(&paths, options, on_row),
        SystemTable::Services => services::read(&paths, options, on_row),
        SystemTable::Users => users::read(&paths, options, on_row),
        SystemTable::Load => load::read(sampler, options, on_row),
        SystemTable::Memory => memory::read(options, on_row),
    }
}

fn unreadable(table: SystemTable, origin: &Path, reason: impl Display) -> SystemError {
    SystemError::Unreadable { table, origin: origin.display().to_string(), reason: reason.to_string() }
}

/// The start of the machine, and how to turn the clock ticks of the kernel into time.
#[derive(Debug, Clone, Copy)]
struct KernelClock {
    ticks_per_second: f64,
    boot_microseconds: Option<i64>,
    uptime_seconds: Option<f64>,
}

impl KernelClock {
    fn read() -> Self {
        Self {
            ticks_per_second: procfs::ticks_per_second().max(1) as f64,
            boot_microseconds: boot_microseconds(),
            uptime_seconds: Uptime::current().ok().map(|uptime| uptime.uptime),
        }
    }

    fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second
    }

    /// The time of an event that many ticks after the start of the machine.
    fn time(&self, ticks: u64) -> Option<i64> {
        let since_boot = (self.seconds(ticks) * MICROSECONDS_PER_SECOND as f64) as i64;
        self.boot_microseconds?.checked_add(since_boot)
    }

    /// The seconds since that event.
    fn seconds_since(&self, ticks: u64) -> Option<f64> {
        Some((self.uptime_seconds? - self.seconds(ticks)).max(0.0))
    }
}

/// The start of the machine in whole seconds, as the kernel reports it, so that it is the same in each reading.
fn boot_microseconds() -> Option<i64> {
    let seconds = i64::try_from(procfs::boot_time_secs().ok()?).ok()?;
    seconds.checked_mul(MICROSECONDS_PER_SECOND)
}

/// `part` of `whole` in percent; `None` for a part of nothing.
fn percentage(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// The values of a row as one line.
#[cfg(test)]
fn row_text(row: &[SystemValue]) -> String {
    let text = |value: &SystemValue| match value {
        SystemValue::Null => "null".to_owned(),
        SystemValue::Text(text) => format!("{text:?}"),
        SystemValue::Integer(number) | SystemValue::Timestamp(number) => number.to_string(),
        SystemValue::Unsigned(number) => number.to_string(),
        SystemValue::Float(number) => number.to_string(),
        SystemValue::Boolean(value) => value.to_string(),
    };
    row.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Bytes of a file with one value, or of a unit file, at most.
const SMALL_FILE_BYTES_MAX: u64 = 65_536;

/// The text of a small file, without surrounding white space. `None` if it cannot be read or is empty.
fn read_small(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(SMALL_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The only value of a small file.
fn read_value<T: FromStr>(path: &Path) -> Option<T> {
    read_small(path)?.parse().ok()
}

/// A file with `0` or `1`.
fn read_flag(path: &Path) -> Option<bool> {
    read_value::<u8>(path).map(|value| value != 0)
}

/// A column of a table and how its value is produced from a source.
type ColumnReader<S> = (&'static str, fn(&S) -> SystemValue);

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
struct SystemRowWriter<'a, S> {
    table: SystemTable,
    cells: Vec<Cell<S>>,
    rows_max: usize,
    summary: ReadSummary,
    on_row: RowCallback<'a>,
}

impl<'a, S> SystemRowWriter<'a, S> {
    fn new(table: SystemTable, readers: &[ColumnReader<S>], options: &ReadOptions, on_row: RowCallback<'a>) -> Self {
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
    fn write(&mut self, source: &S) -> ControlFlow<()> {
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

    fn finish(self) -> ReadSummary {
        self.summary
    }
}

/// Whether the reader needs this column.
fn is_needed(options: &ReadOptions, column: &str) -> bool {
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
