//! The table of a log: its format from the first bytes, its columns from several files, and its files from the oldest
//! to the newest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::datasource::table_schema::TableSchema;
use tidegate_log_formats::{
    DETECTION_SAMPLE_BYTES, ENTRY_FILE_ID, ENTRY_OFFSET, ENTRY_TEXT, EndOfInput, EntryColumnType, EntryCounts,
    EntrySchema, LogFileReader, LogFormat, LogTimeZone, ParsedEntry, TimeContext, detect_log_format,
    suggest_log_format,
};

use super::file_kind::{Compression, split_compression};
use super::layout::TableCandidate;
use super::probe::{ContentFormat, FileProfile, SuggestedOptions};
use super::table::{
    COMPRESSION_RATIO, FileTable, ProbedFile, RecentRows, TableFile, average, build_partitions, object_meta,
    path_versions, version_of,
};
use super::table_options::{LogTableOptions, suggested_log_options};
use super::text_reader::read_beginning;

/// The column with the name of the file that an entry is in.
const ENTRY_FILE: &str = "entry_file";

/// How the files of a log are read.
#[derive(Debug, Clone)]
pub(crate) struct LogDialect {
    pub(crate) schema: Arc<EntrySchema>,
    /// The zone of times that name none.
    pub(crate) time_zone: LogTimeZone,
    /// The entries in the sample.
    pub(crate) counts: EntryCounts,
    /// What is wrong with a declared format. It quotes an entry, so that only operators may see it.
    pub(crate) problem: Option<Arc<str>>,
}

impl LogDialect {
    fn without_sample(format: LogFormat, time_zone: LogTimeZone) -> Self {
        let schema = Arc::new(EntrySchema::new(format));
        Self { schema, time_zone, counts: EntryCounts::default(), problem: None }
    }

    fn format_name(&self) -> &'static str {
        self.schema.format().name()
    }

    fn arrow_schema(&self) -> SchemaRef {
        let field = |column: &tidegate_log_formats::EntryColumn| {
            let is_always_there = matches!(column.name.as_str(), ENTRY_TEXT | ENTRY_OFFSET | ENTRY_FILE_ID);
            Field::new(&column.name, arrow_type(column.column_type), !is_always_there)
        };
        Arc::new(Schema::new(self.schema.columns().iter().map(field).collect::<Vec<Field>>()))
    }

    fn is_same_format(&self, other: &Self) -> bool {
        match (self.schema.format(), other.schema.format()) {
            (LogFormat::Pattern(a), LogFormat::Pattern(b)) => a.as_str() == b.as_str(),
            (a, b) => a.name() == b.name(),
        }
    }
}

impl PartialEq for LogDialect {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_format(other)
            && self.time_zone == other.time_zone
            && self.schema.columns() == other.schema.columns()
    }
}

impl Eq for LogDialect {}

fn arrow_type(column_type: EntryColumnType) -> DataType {
    match column_type {
        EntryColumnType::Text => DataType::Utf8,
        EntryColumnType::Integer => DataType::Int64,
        EntryColumnType::Float => DataType::Float64,
        EntryColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        EntryColumnType::Boolean => DataType::Boolean,
    }
}

/// Builds the table of a log. Files that were not recognised, or that have another format, are read by the format of the
/// newest file: their lines do not fit, and are kept.
pub(super) fn build_log_table(
    candidate: &TableCandidate,
    files: &[ProbedFile],
    options: &LogTableOptions,
    batch_rows_max: usize,
) -> Result<FileTable, String> {
    // A log whose files are all empty has only the columns of its declared format.
    let declared = || options.format().map(|format| LogDialect::without_sample(format.clone(), options.time_zone()));
    let dialect = merge_dialects(files).or_else(declared).ok_or_else(|| unrecognized_reason(candidate, files))?;
    let file_schema = dialect.arrow_schema();
    let (mut partition_columns, mut partition_values) = build_partitions(&file_schema, files)?;
    let name_column = file_name_column(&file_schema)
        .filter(|name| partition_columns.iter().all(|column| column.name() != name.name()));
    partition_columns.extend(name_column.clone());
    let row_bytes = average(files.iter().filter_map(|(_, _, probed)| probed.as_ref()?.row_bytes));
    let table_files: Vec<TableFile> = files
        .iter()
        .map(|(file, _, probed)| {
            let mut values = partition_values.next().unwrap_or_default();
            values.extend(name_column.as_ref().map(|_| file_name_value(file.file_name())));
            TableFile {
                meta: object_meta(file, probed.as_deref()),
                version: version_of(file, probed.as_deref()),
                partition_values: values,
                statistics: None,
            }
        })
        .collect();
    let text_bytes: u64 = table_files.iter().map(estimated_text_bytes).sum();
    Ok(FileTable {
        name: candidate.name.clone(),
        format: ContentFormat::Log(dialect),
        compression: candidate.kind.compression,
        rows: None,
        estimated_rows: row_bytes.map(|row_bytes| text_bytes / row_bytes.max(1)),
        row_bytes,
        batch_rows_max: batch_rows_max.max(1),
        comment: None,
        null_marker_columns: BTreeSet::new(),
        type_notes: BTreeMap::new(),
        descriptions: BTreeMap::new(),
        known_types: Default::default(),
        files: Arc::new(table_files),
        paths: path_versions(candidate, files),
        recent: RecentRows::default(),
        delta: None,
        schema: TableSchema::builder(file_schema).with_table_partition_cols(partition_columns).build(),
    })
}

fn estimated_text_bytes(file: &TableFile) -> u64 {
    match split_compression(file.meta.location.as_ref()).1 {
        Compression::UNCOMPRESSED => file.meta.size,
        _ => file.meta.size * COMPRESSION_RATIO,
    }
}

/// The dialect of a log whose files were probed: that of the newest file whose format was recognised, with the columns
/// of all files of this format. `None` if none was recognised.
fn merge_dialects(files: &[ProbedFile]) -> Option<LogDialect> {
    let dialect_of = |(_, _, probed): &ProbedFile| match &probed.as_ref()?.format {
        ContentFormat::Log(dialect) => Some(dialect.clone()),
        _ => None,
    };
    let dialects: Vec<LogDialect> = files.iter().rev().filter_map(dialect_of).collect();
    let newest = dialects.first()?;
    let alike: Vec<&LogDialect> = dialects.iter().filter(|dialect| dialect.is_same_format(newest)).collect();
    let schemas: Vec<&EntrySchema> = alike.iter().map(|dialect| dialect.schema.as_ref()).collect();
    let counts = alike.iter().fold(EntryCounts::default(), |sum, dialect| EntryCounts {
        entries: sum.entries + dialect.counts.entries,
        misfits: sum.misfits + dialect.counts.misfits,
        repaired: sum.repaired + dialect.counts.repaired,
    });
    let schema = Arc::new(EntrySchema::merge(&schemas)?);
    Some(LogDialect { schema, time_zone: newest.time_zone, counts, problem: newest.problem.clone() })
}

/// Whether files were probed, and none of them is a log of a known format.
pub(super) fn is_unrecognized(files: &[ProbedFile]) -> bool {
    let is_unrecognized = |(_, _, probed): &ProbedFile| {
        probed.as_ref().is_none_or(|one| matches!(one.format, ContentFormat::UnrecognizedLog(_)))
    };
    !files.is_empty() && files.iter().all(is_unrecognized)
}

/// How the log at `location` whose files have no known format can be read: by what was suggested for the newest one.
fn suggest_declaration(location: &str, files: &[ProbedFile]) -> String {
    suggested_options(files).declare(location, "")
}

/// The options that read the files of a log of no known format.
pub(super) fn suggested_options(files: &[ProbedFile]) -> Arc<SuggestedOptions> {
    let suggested = files.iter().rev().find_map(|(_, _, probed)| match &probed.as_ref()?.format {
        ContentFormat::UnrecognizedLog(suggested) => Some(suggested.clone()),
        _ => None,
    });
    let any_text = || SuggestedOptions { options: "pattern: '^(?<message>.*)$'".to_owned(), doubt: None };
    suggested.unwrap_or_else(|| Arc::new(any_text()))
}

/// The column with the names of files, if the files have no column with its name.
fn file_name_column(schema: &Schema) -> Option<FieldRef> {
    schema.field_with_name(ENTRY_FILE).is_err().then(|| Arc::new(Field::new(ENTRY_FILE, DataType::Utf8, false)))
}

fn file_name_value(file_name: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(file_name.to_owned()))
}

/// What the catalog says about the table.
pub(super) fn describe_log(dialect: &LogDialect, candidate_files: usize, left_out: usize) -> String {
    let name = dialect.format_name();
    let mut comment = match candidate_files {
        1 => format!("log file, format {name}"),
        files => format!("log of {files} files from oldest to newest, format {name}"),
    };
    if left_out > 0 {
        comment += &format!("; {left_out} more cannot be read and are left out");
    }
    let EntryCounts { entries, misfits, .. } = dialect.counts;
    if misfits > 0 {
        comment += &format!("; {misfits} of {entries} entries in the sample do not fit (see parse_error)");
    }
    comment
}

/// Why the file of `candidate` is no table although its name is that of a log.
fn unrecognized_reason(candidate: &TableCandidate, files: &[ProbedFile]) -> String {
    let location = candidate.files.last().map(|(file, _)| file.location.as_str()).unwrap_or_default();
    format!("its lines have no known log format; {}", suggest_declaration(location, files))
}

/// A share of entries that do not fit, from which a declared format is probably wrong.
const DEFECTS_SHARE_MAX: f64 = 0.1;
/// Why a log with a declared format is no log source.
const NO_TIME_COLUMN: &str = "no column is the time of its entries, so it is a table for SQL, but no log source";
/// How much of a line a message quotes.
const EXCERPT_CHARACTERS: usize = 60;

pub(super) fn probe_log(
    file: File,
    file_name: &str,
    compression: Compression,
    options: &LogTableOptions,
) -> Result<FileProfile, String> {
    let modified =
        file.metadata().and_then(|metadata| metadata.modified()).unwrap_or(std::time::SystemTime::UNIX_EPOCH);
    let sample = read_beginning(file, compression, DETECTION_SAMPLE_BYTES as u64)?;
    let context = TimeContext::new(options.time_zone(), modified);
    let detected = || detect_log_format(&sample, file_name).map(|detected| detected.format);
    let Some(format) = options.format().cloned().or_else(detected) else {
        let suggested = Arc::new(suggested_log_options(&suggest_log_format(&sample, &context)));
        return Ok(FileProfile::new(ContentFormat::UnrecognizedLog(suggested), Arc::new(Schema::empty())));
    };
    let schema = Arc::new(EntrySchema::infer(format, &[sample.as_slice()], &context));
    let mut reader = LogFileReader::new(schema.clone(), context);
    let mut bytes = 0_u64;
    let mut findings = SampleFindings::default();
    reader.push(&sample, |entry| {
        bytes += entry.length();
        findings.add(entry);
    });
    let counts = reader.counts();
    let is_whole_file = sample.len() < DETECTION_SAMPLE_BYTES;
    reader.finish(EndOfInput::Complete, |entry| {
        if is_whole_file {
            findings.add(entry);
        }
    });
    let problem = options.format().and_then(|_| findings.describe(&schema)).map(Arc::from);
    let dialect = LogDialect { schema, time_zone: options.time_zone(), counts, problem };
    let arrow_schema = dialect.arrow_schema();
    Ok(FileProfile {
        row_bytes: bytes.checked_div(counts.entries),
        ..FileProfile::new(ContentFormat::Log(dialect), arrow_schema)
    })
}

/// How a declared format reads the first entries.
#[derive(Default)]
struct SampleFindings {
    entries: usize,
    with_time: usize,
    defects: usize,
    /// The reason and the beginning of the first entry that does not fit.
    first_defect: Option<String>,
}

impl SampleFindings {
    fn add(&mut self, entry: &ParsedEntry<'_>) {
        self.entries += 1;
        self.with_time += usize::from(entry.time().is_some());
        // Text that was only repaired has its values.
        if let Some(reason) = entry.parse_error().filter(|_| !entry.fits() || entry.time().is_none()) {
            self.defects += 1;
            self.first_defect.get_or_insert_with(|| {
                let line = entry.text().lines().next().unwrap_or_default();
                let excerpt: String = line.chars().take(EXCERPT_CHARACTERS).collect();
                format!("{reason}, in {excerpt:?}")
            });
        }
    }

    /// What is wrong with the declared format, and what to declare.
    fn describe(&self, schema: &EntrySchema) -> Option<String> {
        let unread = match schema.format() {
            LogFormat::Pattern(pattern) => pattern.unread_time(),
            _ => None,
        };
        if let Some(unread) = unread {
            let declaration = unread.declaration.as_deref().unwrap_or("time %Y-%m-%d %H:%M:%S");
            return Some(format!(
                "its entries have no time, because the form of {:?} in the group {:?} is not certain; declare it beside the \
                 pattern, such as groups: {{{}: '{declaration}'}}",
                unread.example, unread.group, unread.group
            ));
        }
        if self.defects as f64 > self.entries as f64 * DEFECTS_SHARE_MAX {
            let first = self.first_defect.as_deref().unwrap_or_default();
            return Some(format!(
                "{} of the first {} entries do not fit its format {}: {first}",
                self.defects,
                self.entries,
                schema.format().name()
            ));
        }
        if self.entries == 0 || self.with_time > 0 {
            return None;
        }
        Some(match (schema.time_column(), schema.format()) {
            (Some(_), _) => format!("none of the first {} entries has a time", self.entries),
            (None, LogFormat::Pattern(_)) => {
                format!(
                    "{NO_TIME_COLUMN}; name the time in its lines as the group time of the pattern, or a column under logs"
                )
            }
            (None, _) => format!("{NO_TIME_COLUMN}; name the one of its times under logs"),
        })
    }
}
