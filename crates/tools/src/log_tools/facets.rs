//! Facets, histograms and their scales, as arguments and as JSON.

use serde_json::{Map, Value, json};
use tidegate_core::Violation;
use tidegate_telemetry::logs::{
    FacetAnswer, FacetRequest, FieldFacet, LogHistogram, NANOS_PER_SECOND, NumberRanges, SeriesName, format_time,
};

use super::search::LogSearch;

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
