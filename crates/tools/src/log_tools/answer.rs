//! The answer of a search as one JSON object; facets, histograms and their scales, as arguments and as JSON; and the
//! notes of a search that matched nothing.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use serde_json::{Map, Value, json};
use tidegate_core::{Error, Violation};
use tidegate_telemetry::logs::{
    FACET_VALUES_MAX, FacetAnswer, FacetRequest, FacetValue, FieldFacet, FieldSelections, LogHistogram, LogPage,
    LogPatterns, LogScanRequest, NANOS_PER_SECOND, NO_TIME, NumberRanges, SelectedValues, SeriesName, display_value,
    format_time,
};

use super::scan::{ScanOutcome, run_scan};
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

/// The maximum number of characters of a value in an answer; longer values cannot be selected.
const VALUE_CHARACTERS_MAX: usize = 500;
/// The default of the maximum number of values of a field.
pub(crate) const VALUES_DEFAULT: usize = 10;
/// The maximum number of series of a histogram.
pub(crate) const SERIES_MAX: usize = 10;

/// The facets of `fields`. Fields that do not exist are violations.
pub(crate) fn facet_requests(
    search: &LogSearch<'_>,
    argument: &str,
    fields: &[String],
    values_max: usize,
    ranges: Option<usize>,
    violations: &mut Vec<Violation>,
) -> Vec<FacetRequest> {
    let mut requests: Vec<FacetRequest> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        search.check_field(&format!("{argument}[{index}]"), field, violations);
        if requests.iter().any(|known| known.field == *field) {
            continue;
        }
        let is_number = || {
            let mut columns = search.set.sources.iter().flat_map(|source| search.set.fields(source));
            columns.any(|(name, column)| name == field && column.kind.is_number())
        };
        requests.push(FacetRequest { field: field.clone(), values_max, ranges: ranges.filter(|_| is_number()) });
    }
    requests
}

/// The facets by field: the values with their rows, and what was left out.
pub(crate) fn facets_json(facets: &[FacetAnswer]) -> Value {
    let facets = facets.iter().map(|facet| match facet {
        FacetAnswer::Values(facet) => (facet.field.clone(), values_json(facet)),
        FacetAnswer::Ranges(ranges) => (ranges.field.clone(), ranges_json(ranges)),
    });
    Value::Object(facets.collect())
}

fn values_json(facet: &FieldFacet) -> Value {
    let value = |value: &tidegate_telemetry::logs::FacetValue| {
        let text = cut_text(&value.value, VALUE_CHARACTERS_MAX);
        match value.display_name {
            Some(name) => json!([text, value.rows, name]),
            None => json!([text, value.rows]),
        }
    };
    let mut json = Map::from_iter([("values".to_owned(), facet.values.iter().map(value).collect())]);
    if facet.left_out_values > 0 {
        json.insert("more".to_owned(), json!({"values": facet.left_out_values, "rows": facet.left_out_rows}));
    }
    if facet.uncounted_rows > 0 {
        json.insert("uncounted_rows".to_owned(), facet.uncounted_rows.into());
    }
    Value::Object(json)
}

fn ranges_json(ranges: &NumberRanges) -> Value {
    let values: Vec<Value> = ranges.ranges.iter().map(|range| json!([range.from, range.to, range.rows])).collect();
    let mut json = Map::from_iter([("ranges".to_owned(), Value::Array(values))]);
    for (name, rows) in [("missing", ranges.missing_rows), ("not_numeric", ranges.not_numeric_rows)] {
        if rows > 0 {
            json.insert(name.to_owned(), rows.into());
        }
    }
    Value::Object(json)
}

/// The rows of each bar, from the first one on, by series.
pub(crate) fn histogram_json(histogram: &LogHistogram) -> Value {
    let rows = |index: usize| -> Value {
        histogram.bars.iter().map(|bar| bar.rows.get(index).copied().unwrap_or(0)).collect()
    };
    let mut json = Map::new();
    if let Some(first) = histogram.bars.first() {
        json.insert("from".to_owned(), format_time(first.start).into());
    }
    let (whole, rest) = (histogram.width / NANOS_PER_SECOND, histogram.width % NANOS_PER_SECOND);
    let width = if rest == 0 { json!(whole) } else { json!(histogram.width as f64 / NANOS_PER_SECOND as f64) };
    json.insert("width_seconds".to_owned(), width);
    let series = histogram.series.iter().enumerate().map(|(index, series)| match &series.name {
        SeriesName::All => json!({"rows": rows(index)}),
        SeriesName::Value(value) => {
            let mut entry = json!({"value": cut_text(value, VALUE_CHARACTERS_MAX), "rows": rows(index)});
            if let Some(name) = series.display_name {
                entry["name"] = name.into();
            }
            entry
        }
        SeriesName::Other => json!({"other": true, "rows": rows(index)}),
    });
    json.insert("series".to_owned(), series.collect());
    if histogram.rows_without_time > 0 {
        json.insert("rows_without_time".to_owned(), histogram.rows_without_time.into());
    }
    if histogram.is_ranking_inexact {
        json.insert("inexact".to_owned(), true.into());
    }
    Value::Object(json)
}

/// `text`, or its beginning and how much is missing.
pub(crate) fn cut_text(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text.get(end..).map_or(0, |rest| rest.chars().count());
            format!("{}… ({more} more characters)", text.get(..end).unwrap_or(text))
        }
    }
}

/// If nothing matches, adds where words were searched, because they may be elsewhere, and the values that are written
/// otherwise than the selected ones.
pub(super) async fn add_notes(
    search: &LogSearch<'_>,
    request: &LogScanRequest,
    outcome: &ScanOutcome,
    json: &mut Map<String, Value>,
) {
    if outcome.answer.matched > 0 {
        return;
    }
    let mut notes: Vec<String> = search.searched_fields_note().into_iter().collect();
    // A page after a cursor reads few rows: callers who wait for new entries ask for it again and again.
    let has_cursor = request.page.as_ref().is_some_and(|page| page.cursor.is_some());
    if !has_cursor && request.context.is_none() && outcome.partial.is_none() {
        notes.extend(spelling_notes(search).await);
    }
    if !notes.is_empty() {
        json.insert("notes".to_owned(), notes.into());
    }
}

/// The values that differ from the selected ones in case only, or have one of them as their name. They are only looked up
/// where a selection has letters.
async fn spelling_notes(search: &LogSearch<'_>) -> Vec<String> {
    let selections = &search.request.selections;
    let has_letters =
        |values: &SelectedValues| values.to_sorted().iter().any(|value| value.chars().any(char::is_alphabetic));
    let fields: Vec<String> =
        selections.iter().filter(|(_, values)| has_letters(values)).map(|(field, _)| field.to_owned()).collect();
    if fields.is_empty() {
        return Vec::new();
    }
    let facets = facet_requests(search, "selections", &fields, FACET_VALUES_MAX, None, &mut Vec::new());
    let request = LogScanRequest { facets, selections: FieldSelections::default(), ..search.request.clone() };
    // The answer is complete without the notes.
    let Ok(outcome) = Box::pin(run_scan(search, &request, &search.filter_fields(), None)).await else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    for (field, selected) in selections.iter() {
        let of_field = outcome.answer.facets.iter().find_map(|facet| match facet {
            FacetAnswer::Values(facet) if facet.field == field => Some(facet),
            _ => None,
        });
        notes.extend(of_field.and_then(|facet| spelling_note(facet, selected)));
    }
    notes
}

fn spelling_note(facet: &FieldFacet, selected: &SelectedValues) -> Option<String> {
    let selected: Vec<(&str, String)> =
        selected.to_sorted().into_iter().map(|value| (value, value.to_lowercase())).collect();
    let is_meant = |value: &FacetValue, (exact, lowered): &(&str, String)| {
        let is_named = value.display_name.is_some_and(|name| name == lowered);
        value.value != *exact && (is_named || value.value.to_lowercase() == *lowered)
    };
    let meant: Vec<String> = facet
        .values
        .iter()
        .filter(|value| selected.iter().any(|selected| is_meant(value, selected)))
        .map(|value| format!("{:?} (rows: {})", value.value, value.rows))
        .collect();
    (!meant.is_empty())
        .then(|| format!("{} has {}; selections observe case and spelling.", facet.field, meant.join(", ")))
}
