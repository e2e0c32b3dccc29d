//! What is said of tables of files: their entries in the catalog, their comments, and notes about their columns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate_query::{Catalog, TableEntry, TableStatus};

use super::probe::ContentFormat;
use super::table::FileTable;
use super::table_builder::{ProbedFile, count_narrow_files};

/// The tables of a snapshot, or why they cannot be read.
type TablesByName = HashMap<String, Result<Arc<FileTable>, String>>;

/// Maximum number of columns that are described one by one.
const COLUMNS_MAX: usize = 20;

pub(super) fn build_catalog(tables: &TablesByName, notes: Vec<String>) -> Catalog {
    let entry = |(name, table): (&String, &Result<Arc<FileTable>, String>)| {
        let (rows, comment, status) = match table {
            Ok(table) => (table.rows, table.comment.clone(), TableStatus::Readable),
            Err(reason) => (None, None, TableStatus::Unreadable(reason.clone())),
        };
        TableEntry { name: name.clone(), rows, comment, status }
    };
    let mut entries: Vec<TableEntry> = tables.iter().map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Catalog { tables: entries, notes }
}

/// A line for each column that does not have the type of its first values.
pub(super) fn describe_odd_columns(tables: &TablesByName) -> Vec<String> {
    let notes = tables.iter().filter_map(|(name, table)| Some((name, &table.as_ref().ok()?.type_notes)));
    let sorted: BTreeMap<&String, &BTreeMap<String, String>> = notes.collect();
    let all = sorted.iter().flat_map(|(table, notes)| notes.iter().map(move |(column, note)| (table, column, note)));
    let mut lines: Vec<String> = all.map(|(table, column, note)| format!("{table}.{column} is {note}")).collect();
    let more = lines.len().saturating_sub(COLUMNS_MAX);
    if more > 0 {
        lines.truncate(COLUMNS_MAX);
        lines.push(format!(
            "{more} more columns do not have the type of their first values; get_schema has the reasons"
        ));
    }
    lines
}

pub(super) fn with_comment(mut table: FileTable, left_out: usize, is_folder: bool, read: &[ProbedFile]) -> FileTable {
    let format = match &table.format {
        ContentFormat::Csv(dialect) if dialect.characters.delimiter == b'\t' => "TSV",
        ContentFormat::Csv(_) => "CSV",
        ContentFormat::Json => "JSON",
        ContentFormat::Parquet => "Parquet",
        ContentFormat::ArrowFile | ContentFormat::ArrowStream => "Arrow",
        ContentFormat::Sheet(..) => "workbook",
        ContentFormat::Log(_) | ContentFormat::UnrecognizedLog(_) => "log",
    };
    let files = table.files.len();
    let mut comment = match (is_folder, left_out, &table.format) {
        (false, _, ContentFormat::Sheet(sheet)) => format!("sheet {:?} of a workbook", sheet.name),
        (false, ..) => format!("{format} file"),
        (true, 0, _) => format!("folder of {files} {format} files"),
        (true, ..) => format!("folder of {files} {format} files; {left_out} more cannot be read and are left out"),
    };
    let missing = count_narrow_files(&table, read);
    if missing > 0 {
        comment += &format!("; {missing} of them lack columns, which are null there");
    }
    for note in read.iter().filter_map(|(_, _, probed)| probed.as_ref()?.note.as_ref()) {
        comment += &format!("; {note}");
    }
    if let ContentFormat::Csv(dialect) = &table.format {
        if !dialect.has_header {
            comment += "; without a header line";
        }
        if let Some(note) = dialect.decoding.encoding.note() {
            comment += &format!("; {note}");
        }
    }
    table.comment = Some(comment);
    table
}
