//! Log files: the format, from the first bytes, and the columns.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use tidegate_log_formats::{
    DETECTION_SAMPLE_BYTES, EndOfInput, EntrySchema, LogFileReader, LogFormat, ParsedEntry, TimeContext,
    detect_log_format, suggest_log_format,
};

use super::super::file_kind::Compression;
use super::super::log_options::LogTableOptions;
use super::super::log_table::LogDialect;
use super::super::table_options::suggested_log_options;
use super::super::text_reader::read_beginning;
use super::{ContentFormat, FileProfile};

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
