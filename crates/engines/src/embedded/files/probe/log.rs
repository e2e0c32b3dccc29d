//! Log files: the format, from the first bytes, and the columns.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use tidegate_log_formats::{
    DETECTION_SAMPLE_BYTES, EndOfInput, EntrySchema, LogFileReader, TimeContext, detect_log_format,
};

use super::super::file_kind::Compression;
use super::super::log_options::LogTableOptions;
use super::super::log_table::LogDialect;
use super::super::text_reader::read_beginning;
use super::{ContentFormat, FileProfile};

pub(super) fn probe_log(
    file: File,
    file_name: &str,
    compression: Compression,
    options: &LogTableOptions,
) -> Result<FileProfile, String> {
    let modified =
        file.metadata().and_then(|metadata| metadata.modified()).unwrap_or(std::time::SystemTime::UNIX_EPOCH);
    let sample = read_beginning(file, compression, DETECTION_SAMPLE_BYTES as u64)?;
    let detected = || detect_log_format(&sample, file_name).map(|detected| detected.format);
    let Some(format) = options.format().cloned().or_else(detected) else {
        return Ok(FileProfile::new(ContentFormat::UnrecognizedLog, Arc::new(Schema::empty())));
    };
    let context = TimeContext::new(options.time_zone(), modified);
    let schema = Arc::new(EntrySchema::infer(format, &[sample.as_slice()], &context));
    let mut reader = LogFileReader::new(schema.clone(), context);
    let mut bytes = 0_u64;
    reader.push(&sample, |entry| bytes += entry.length());
    let counts = reader.counts();
    reader.finish(EndOfInput::Complete, |_| {});
    let dialect = LogDialect { schema, time_zone: options.time_zone(), counts };
    let arrow_schema = dialect.arrow_schema();
    Ok(FileProfile {
        row_bytes: bytes.checked_div(counts.entries),
        ..FileProfile::new(ContentFormat::Log(dialect), arrow_schema)
    })
}
