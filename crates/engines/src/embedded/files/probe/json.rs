//! JSON: an array of objects, or a sequence of objects. The columns are the keys of the first of them.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Fields, Schema};

use super::super::file_kind::Compression;
use super::super::json_records::{JsonError, JsonRecords};
use super::super::json_types::JsonColumns;
use super::super::limits::FileLimits;
use super::super::table_options::TextTableOptions;
use super::super::text_reader::{ReadBudget, TextDecoding, open_text};
use super::{ContentFormat, FileProfile};

/// Probes the file at `location`. At most `rows_max` objects decide the columns.
pub(super) fn probe_json(
    file: File,
    location: &str,
    compression: Compression,
    options: Arc<TextTableOptions>,
    rows_max: usize,
    limits: &FileLimits,
) -> Result<FileProfile, String> {
    let budget = ReadBudget::new(limits.row_bytes_max);
    let text = open_text(file, compression, TextDecoding::default(), budget.clone())?;
    let failed = |error: JsonError| error.reason(compression);
    let mut records = JsonRecords::new(text, budget);
    let mut columns = JsonColumns::new(&Fields::empty(), options, location);
    let (mut rows, mut bytes) = (0, 0);
    while rows < rows_max {
        let Some(record) = records.next().map_err(failed)? else { break };
        columns.learn(&record).map_err(failed)?;
        rows += 1;
        bytes += record.text.len() as u64 + 1;
        if columns.count() > limits.columns_max {
            return Err(format!("its objects have more than {} different keys", limits.columns_max));
        }
    }
    let fields = columns.fields();
    if fields.is_empty() {
        let reason = match records.has_begun() {
            true => "it contains no object with a key, so there are no columns",
            false => "the file is empty",
        };
        return Err(reason.to_owned());
    }
    Ok(FileProfile {
        rows: (rows < rows_max).then_some(rows as u64),
        row_bytes: bytes.checked_div(rows as u64),
        type_notes: columns.notes(),
        ..FileProfile::new(ContentFormat::Json, Arc::new(Schema::new(fields)))
    })
}
