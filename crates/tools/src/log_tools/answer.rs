//! The answer of a search as one JSON object.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use serde_json::{Map, Value, json};
use tidegate_core::Error;
use tidegate_telemetry::logs::{LogPage, LogPatterns, NO_TIME, display_value, format_time};

use super::facets::cut_text;
use super::scan::ScanOutcome;
use super::search::LogSearch;

/// The maximum number of characters of a value in an entry.
pub(super) const CELL_CHARACTERS_MAX: usize = 8_000;

/// What every search answers: the counts, the time that was searched, and whether that is all.
pub(crate) fn summary_json(outcome: &ScanOutcome, search: &LogSearch<'_>) -> Map<String, Value> {
    let (answer, range) = (&outcome.answer, search.request.range);
    let mut json = Map::new();
    json.insert("evaluated".to_owned(), answer.evaluated.into());
    json.insert("matched".to_owned(), answer.matched.into());
    if answer.page.is_some() {
        json.insert("returned".to_owned(), answer.returned.into());
    }
    let (first, last) = answer.seen_times.unzip();
    let bound = |bound: Option<i64>, seen: Option<i64>| bound.or(seen).map(format_time);
    // A scan that ended early has not searched the whole range.
    let (start, end) = if outcome.partial.is_some() { (None, None) } else { (range.start, range.end) };
    json.insert("searched".to_owned(), json!({"from": bound(start, first), "to": bound(end, last)}));
    let failures = search.failures.iter().chain(&outcome.failures);
    let failures: Map<String, Value> = failures.map(|(name, error)| (name.clone(), error.to_string().into())).collect();
    json.insert("partial".to_owned(), (outcome.partial.is_some() || !failures.is_empty()).into());
    if let Some(reason) = &outcome.partial {
        let advice = "give a shorter time (after, before) or fewer sources";
        json.insert("reason".to_owned(), format!("{reason}; {advice}").into());
    }
    if !failures.is_empty() {
        json.insert("errors".to_owned(), failures.into());
    }
    json
}

/// The entries of a page: the names of their columns once, and a row of values for each. Columns without a value are left
/// out, and times are in UTC. Only the first entries that fit `bytes_max` are returned, with their number.
pub(crate) fn entries_json(
    page: &LogPage,
    time_column: &str,
    bytes_max: Option<usize>,
) -> Result<(Value, usize), Error> {
    let batch = page.to_batch().map_err(|error| Error::internal(format!("entries as a batch: {error}")))?;
    let mut rows: Vec<Vec<Value>> = Vec::with_capacity(batch.num_rows());
    let mut bytes = 0;
    let time_index = batch.schema_ref().index_of(time_column).ok();
    for (row, entry) in page.entries.iter().enumerate() {
        let mut cells: Vec<Value> = batch.columns().iter().map(|column| cell_json(column, row)).collect();
        if let Some(cell) = time_index.and_then(|index| cells.get_mut(index)).filter(|_| entry.key.time != NO_TIME) {
            *cell = format_time(entry.key.time).into();
        }
        bytes += cells.iter().filter(|cell| !cell.is_null()).map(|cell| cell_bytes(cell) + 1).sum::<usize>() + 3;
        if !rows.is_empty() && bytes_max.is_some_and(|max| bytes > max) {
            break;
        }
        rows.push(cells);
    }
    let schema = batch.schema();
    let is_used: Vec<bool> = (0..batch.num_columns())
        .map(|column| rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_null())))
        .collect();
    let names = schema.fields().iter().zip(&is_used).filter(|(_, used)| **used).map(|(field, _)| field.name().as_str());
    let columns: Vec<&str> = names.collect();
    let count = rows.len();
    let keep = |row: Vec<Value>| -> Value {
        row.into_iter().zip(&is_used).filter(|(_, used)| **used).map(|(cell, _)| cell).collect()
    };
    let rows: Vec<Value> = rows.into_iter().map(keep).collect();
    Ok((json!({"columns": columns, "rows": rows}), count))
}

/// The patterns with the most messages, as columns and rows.
pub(crate) fn patterns_json(patterns: &LogPatterns) -> Value {
    let time = |time: Option<i64>| time.map(format_time);
    let row = |pattern: &tidegate_telemetry::logs::LogPattern| {
        let (first, last) = pattern.times.unzip();
        json!([pattern.rows, cut_text(&pattern.template, CELL_CHARACTERS_MAX), time(first), time(last)])
    };
    let rows: Vec<Value> = patterns.patterns.iter().map(row).collect();
    let mut json = json!({"columns": ["rows", "pattern", "first", "last"], "rows": rows});
    if patterns.left_out_patterns > 0 {
        json["more"] = json!({"patterns": patterns.left_out_patterns, "rows": patterns.left_out_rows});
    }
    if patterns.uncounted_rows > 0 {
        json["uncounted_rows"] = patterns.uncounted_rows.into();
    }
    json
}

fn cell_bytes(cell: &Value) -> usize {
    match cell {
        Value::String(text) => text.len() + 2,
        other => other.to_string().len(),
    }
}

/// Numbers and truth values as such, everything else in its display form.
fn cell_json(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        kind if kind.is_integer() => {
            let text = display_value(column.as_ref(), row);
            text.parse::<i64>().map_or(Value::String(text), Value::from)
        }
        _ => cut_text(&display_value(column.as_ref(), row), CELL_CHARACTERS_MAX).into(),
    }
}
