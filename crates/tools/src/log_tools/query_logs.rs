//! `query_logs`: entries of logs, with facets, a histogram and patterns over everything that matches. What is new among
//! the patterns is found by the time of the same length before the window of the search.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, Violation};
use tidegate_runtime::{Answer, RunningCall, Tool};
use tidegate_telemetry::logs::{
    BARS_MAX, ContextRequest, EntryKey, HistogramRequest, LogCursor, LogDirection, LogPatterns, LogScanRequest,
    PAGE_ENTRIES_MAX, PATTERNS_MAX, PageRequest, PatternChange, TieBreak, TimeInput, TimeRange, compare_patterns,
    format_time, parse_time,
};

use super::LogContext;
use super::answer::{
    CELL_CHARACTERS_MAX, SERIES_MAX, VALUES_DEFAULT, add_notes, cut_text, entries_json, facet_requests, facets_json,
    histogram_json, patterns_json, summary_json,
};
use super::scan::{ScanOutcome, run_scan};
use super::search::{LogSearch, SearchArguments, reject, violation, with_search_arguments};
use crate::arguments::{non_empty, now_nanos, parse_arguments};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};

/// The default number of entries.
const LIMIT_DEFAULT: usize = 50;
/// The default number of bars of a histogram.
const BARS_DEFAULT: usize = 20;
/// The default number of entries before and after a time.
const CONTEXT_DEFAULT: usize = 10;
/// The part of the inline budget that entries may use, in tenths; the rest is for what is beside them.
const ENTRIES_BUDGET_TENTHS: usize = 8;

pub(crate) fn tool(context: &Arc<LogContext>) -> Tool {
    let schema = with_search_arguments(InputSchemaBuilder::new())
        .with(
            "direction",
            json!({"type": "string", "enum": ["backward", "forward"], "description": "backward (default): newest first"}),
        )
        .with("limit", json!({"type": "integer", "minimum": 0, "maximum": PAGE_ENTRIES_MAX, "default": LIMIT_DEFAULT}))
        .with("columns", json!({"type": "array", "items": {"type": "string"}}))
        .with(
            "cursor",
            json!({"type": "string", "description": "cursor of an answer: the next page; its tail: what came since"}),
        )
        .with("facets", json!({"type": "array", "items": {"type": "string"}, "description": "Fields to count by value"}))
        .with("histogram", json!({"type": "object", "description": "{field?, bars?}: rows over time"}))
        .with(
            "patterns",
            json!({"type": "integer", "minimum": 1, "maximum": PATTERNS_MAX, "description": "Messages by template; with after, also what is new"}),
        )
        .with(
            "context",
            json!({"type": "object", "description": "{time or cursor, before?, after?}: the lines around it instead"}),
        );
    read_only_tool(
        "query_logs",
        "Search logs",
        "Log entries; facets, histogram and patterns over all that match. limit 0 for those alone.",
        schema,
        context_handler(context, handle),
    )
    .with_pagination()
}

#[derive(Debug, Deserialize)]
struct Arguments {
    #[serde(flatten)]
    search: SearchArguments,
    direction: Option<String>,
    limit: Option<usize>,
    columns: Option<Vec<String>>,
    #[serde(default, deserialize_with = "non_empty")]
    cursor: Option<String>,
    #[serde(default)]
    facets: Vec<String>,
    histogram: Option<Map<String, Value>>,
    patterns: Option<usize>,
    context: Option<Map<String, Value>>,
}

async fn handle(context: Arc<LogContext>, call: RunningCall) -> Result<Answer, Error> {
    let arguments: Arguments = parse_arguments(&call)?;
    let mut violations = Vec::new();
    let search = LogSearch::resolve(&context, &arguments.search, call.job(), &mut violations).await?;
    let fields = fields_to_read(&search, &arguments);
    let scope = search.scope(&fields);
    let mut request = build_request(&search, &arguments, scope, &mut violations);
    reject(violations, &search)?;
    let baseline = compared_range(request.range, &arguments);
    if baseline.is_some() {
        // A pattern that is left out of the answer may be new.
        request.patterns = Some(PATTERNS_MAX);
    }
    let mut outcome = run_scan(&search, &request, &fields, None).await?;
    let mut pattern_changes = None;
    if let (Some(baseline), Some(patterns)) = (baseline, &mut outcome.answer.patterns) {
        let patterns_max = arguments.patterns.unwrap_or_default();
        pattern_changes = Some(compare_with_baseline(&search, baseline, patterns, patterns_max).await?);
        patterns.shorten(patterns_max);
    }
    call.usage().count_rows(outcome.answer.returned);
    let bytes_max = call.limits().inline.bytes.filter(|_| call.format().is_none());
    let mut json = answer_json(&outcome, &search, scope, pattern_changes, bytes_max)?;
    add_notes(&search, &request, &outcome, &mut json).await;
    Ok(Answer::json(json))
}

/// The time with whose patterns those of `range` are compared. Further pages repeat the patterns only.
fn compared_range(range: TimeRange, arguments: &Arguments) -> Option<TimeRange> {
    let is_first = arguments.cursor.is_none() && arguments.context.is_none();
    baseline_of(range).filter(|_| is_first && arguments.patterns.is_some())
}

fn build_request(
    search: &LogSearch<'_>,
    arguments: &Arguments,
    scope: u64,
    violations: &mut Vec<Violation>,
) -> LogScanRequest {
    for (index, column) in arguments.columns.iter().flatten().enumerate() {
        search.check_field(&format!("columns[{index}]"), column, violations);
    }
    let columns = arguments.columns.as_ref().map(|columns| {
        let always = std::iter::once(search.set.time.clone());
        always.chain(columns.iter().filter(|column| **column != search.set.time).cloned()).collect::<Vec<_>>()
    });
    let facets = facet_requests(search, "facets", &arguments.facets, VALUES_DEFAULT, None, violations);
    let histogram = read_histogram(search, arguments.histogram.as_ref(), violations);
    if arguments.patterns.is_some() && search.set.message.is_none() && !search.set.sources.is_empty() {
        violations.push(violation("patterns", "needs a column with the message, and the source has none"));
    }
    let context = read_context(search, arguments, scope, violations);
    let page = read_page(arguments, scope, violations).filter(|_| context.is_none());
    let columns = columns.or_else(|| Some(entry_columns(search)));
    let patterns = arguments.patterns;
    LogScanRequest { facets, histogram, page, patterns, context, columns, ..search.request.clone() }
}

/// The columns of entries if the caller names none.
fn entry_columns(search: &LogSearch<'_>) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for source in &search.set.sources {
        for (name, column) in search.set.fields(source) {
            if !source.columns.is_hidden(&column.name) && !columns.iter().any(|known| known == name) {
                columns.push(name.to_owned());
            }
        }
    }
    if !search.set.is_single() {
        columns.push(crate::log_sources::SOURCE_FIELD.to_owned());
    }
    columns
}

fn read_page(arguments: &Arguments, scope: u64, violations: &mut Vec<Violation>) -> Option<PageRequest> {
    let cursor = arguments.cursor.as_deref().map(|text| LogCursor::decode(text, scope)).transpose();
    let cursor = cursor.unwrap_or_else(|error| {
        violations.push(violation("cursor", error.to_string()));
        None
    });
    let direction = match (arguments.direction.as_deref(), &cursor) {
        (None, Some(cursor)) => cursor.direction(),
        (Some("forward"), _) => LogDirection::Forward,
        _ => LogDirection::Backward,
    };
    if cursor.as_ref().is_some_and(|cursor| cursor.direction() != direction) {
        violations.push(violation("direction", "the cursor has the other direction; leave direction out"));
    }
    let limit = arguments.limit.unwrap_or(LIMIT_DEFAULT);
    (limit > 0).then_some(PageRequest { direction, limit, cursor })
}

fn read_histogram(
    search: &LogSearch<'_>,
    histogram: Option<&Map<String, Value>>,
    violations: &mut Vec<Violation>,
) -> Option<HistogramRequest> {
    let histogram = histogram?;
    check_members("histogram", histogram, &["field", "bars"], violations);
    let field = histogram.get("field").and_then(Value::as_str).map(str::to_owned);
    if let Some(field) = &field {
        search.check_field("histogram.field", field, violations);
    }
    let bars = read_count("histogram.bars", histogram.get("bars"), BARS_DEFAULT, 1..=BARS_MAX, violations);
    Some(HistogramRequest { field, bars, series_max: SERIES_MAX })
}

fn read_context(
    search: &LogSearch<'_>,
    arguments: &Arguments,
    scope: u64,
    violations: &mut Vec<Violation>,
) -> Option<ContextRequest> {
    let context = arguments.context.as_ref()?;
    check_members("context", context, &["time", "cursor", "before", "after"], violations);
    if arguments.cursor.is_some() {
        violations.push(violation("cursor", "cannot be combined with context"));
    }
    let [source] = search.set.sources.as_slice() else {
        violations.push(violation("source", "context needs exactly one source"));
        return None;
    };
    let entry = match context.get("cursor").and_then(Value::as_str) {
        Some(cursor) => entry_of_cursor(cursor, scope),
        None => time_of_context(context).map(|time| {
            // The position after everything that is older: the entries with the time itself are after it.
            let tie = TieBreak::RowHash(u128::MAX);
            (EntryKey { time: time.saturating_sub(1), source: source.id(), tie }, u64::MAX)
        }),
    };
    let (key, ordinal) = entry.map_err(|violation| violations.push(violation)).ok()?;
    let mut count = |name: &str| {
        read_count(&format!("context.{name}"), context.get(name), CONTEXT_DEFAULT, 0..=PAGE_ENTRIES_MAX, violations)
    };
    Some(ContextRequest { key, ordinal, before: count("before"), after: count("after") })
}

fn time_of_context(context: &Map<String, Value>) -> Result<i64, Violation> {
    let input = match context.get("time") {
        Some(Value::String(text)) => Some(TimeInput::Text(text)),
        Some(Value::Number(number)) => number.as_i64().map(TimeInput::Integer),
        _ => None,
    };
    let missing = || violation("context.time", "is missing; write the time of an entry as an answer has it");
    parse_time(input.ok_or_else(missing)?, now_nanos()).map_err(|error| violation("context.time", error.to_string()))
}

/// The last entry of the page that `cursor` follows.
fn entry_of_cursor(cursor: &str, scope: u64) -> Result<(EntryKey, u64), Violation> {
    let refuse = |message: String| violation("context.cursor", message);
    let cursor = LogCursor::decode(cursor, scope).map_err(|error| refuse(error.to_string()))?;
    let advice = "follows several entries of one time; take that of a page with limit 1, or of one backward";
    cursor.entry().ok_or_else(|| refuse(advice.to_owned()))
}

fn check_members(path: &str, object: &Map<String, Value>, known: &[&str], violations: &mut Vec<Violation>) {
    for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
        violations.push(violation(format!("{path}.{name}"), tidegate_core::unknown_name(name, known)));
    }
}

fn read_count(
    path: &str,
    value: Option<&Value>,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
    violations: &mut Vec<Violation>,
) -> usize {
    let Some(value) = value.filter(|value| !value.is_null()) else { return default };
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok()).filter(|number| range.contains(number));
    number.unwrap_or_else(|| {
        let message = format!("expected a number from {} to {}; got {value}", range.start(), range.end());
        violations.push(violation(path, message));
        default
    })
}

/// The fields that are read, each once. Entries without position are distinguished by all of them, so that they are part of
/// the identity of a request in cursors.
fn fields_to_read(search: &LogSearch<'_>, arguments: &Arguments) -> Vec<String> {
    let mut fields = search.filter_fields();
    fields.extend(arguments.facets.iter().cloned());
    let histogram = arguments.histogram.as_ref().and_then(|histogram| histogram.get("field"));
    fields.extend(histogram.and_then(Value::as_str).map(str::to_owned));
    if arguments.patterns.is_some() {
        fields.extend(search.set.message.clone());
    }
    if arguments.limit != Some(0) || arguments.context.is_some() {
        fields.extend(arguments.columns.clone().unwrap_or_else(|| entry_columns(search)));
    }
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// The answer. `bytes_max` is the inline budget of a model.
fn answer_json(
    outcome: &ScanOutcome,
    search: &LogSearch<'_>,
    scope: u64,
    pattern_changes: Option<Value>,
    bytes_max: Option<usize>,
) -> Result<Map<String, Value>, Error> {
    let (answer, time_column) = (&outcome.answer, search.set.time.as_str());
    let mut json = summary_json(outcome, search);
    if !answer.facets.is_empty() {
        json.insert("facets".to_owned(), facets_json(&answer.facets));
    }
    if let Some(histogram) = &answer.histogram {
        json.insert("histogram".to_owned(), histogram_json(histogram));
    }
    if let Some(patterns) = &answer.patterns {
        let mut patterns = patterns_json(patterns);
        if let Some(changes) = pattern_changes {
            patterns["changes"] = changes;
        }
        json.insert("patterns".to_owned(), patterns);
    }
    let bytes_max = bytes_max.map(|max| {
        let beside = Value::Object(json.clone()).to_string().len();
        max.saturating_sub(beside) / 10 * ENTRIES_BUDGET_TENTHS
    });
    if let Some((before, after)) = &answer.context {
        let mut oldest_first = before.clone();
        oldest_first.entries.reverse();
        let half = bytes_max.map(|max| max / 2);
        json.insert("before".to_owned(), entries_json(&oldest_first, time_column, half)?.0);
        json.insert("after".to_owned(), entries_json(after, time_column, half)?.0);
    }
    let Some(page) = &answer.page else { return Ok(json) };
    let (entries, count) = entries_json(page, time_column, bytes_max)?;
    json.insert("returned".to_owned(), count.into());
    json.insert("entries".to_owned(), entries);
    // After a scan that ended early, a cursor would skip entries that were not read.
    if outcome.partial.is_none() {
        let is_cut = count < page.entries.len();
        let continues = is_cut || page.has_more || page.direction == LogDirection::Forward;
        if let Some(next) = page.cursor_after(count).filter(|_| continues) {
            json.insert("cursor".to_owned(), next.encode(scope).into());
        }
        if let Some(tail) = &page.tail {
            json.insert("tail".to_owned(), tail.encode(scope).into());
        }
    }
    Ok(json)
}

/// The time before `range` that is as long. `None` if the range has no start, or does not end after it.
fn baseline_of(range: TimeRange) -> Option<TimeRange> {
    let (start, end) = (range.start?, range.end.unwrap_or_else(now_nanos));
    let first = start.checked_sub(end.checked_sub(start)?)?;
    (end > start).then_some(TimeRange { start: Some(first), end: Some(start) })
}

/// The patterns that are new or more frequent than in `range`, which is as long as that of the search, as JSON; at most
/// `changes_max`.
///
/// # Errors
/// If no source can be read, or the call was cancelled.
async fn compare_with_baseline(
    search: &LogSearch<'_>,
    range: TimeRange,
    patterns: &LogPatterns,
    changes_max: usize,
) -> Result<Value, Error> {
    let request = LogScanRequest { range, patterns: Some(PATTERNS_MAX), ..search.request.clone() };
    let mut fields = search.filter_fields();
    fields.extend(search.set.message.clone());
    let outcome = run_scan(search, &request, &fields, None).await?;
    let time = |time: Option<i64>| time.map(format_time);
    let mut json = json!({
        "baseline": {"from": time(range.start), "to": time(range.end), "matched": outcome.answer.matched},
    });
    if outcome.answer.seen_times.is_none() {
        json["reason"] = "no entries were found in the baseline, so that every pattern would be new".into();
        return Ok(json);
    }
    let baseline = outcome.answer.patterns.unwrap_or_default();
    let changes = compare_patterns(patterns, &baseline);
    let row = |change: &PatternChange| {
        let (first, last) = change.pattern.times.unzip();
        let template = cut_text(&change.pattern.template, CELL_CHARACTERS_MAX);
        json!([change.pattern.rows, template, time(first), time(last), change.baseline_rows])
    };
    json["columns"] = json!(["rows", "pattern", "first", "last", "rows_before"]);
    json["rows"] = changes.iter().take(changes_max).map(row).collect();
    if changes.len() > changes_max {
        json["more"] = json!({"patterns": changes.len() - changes_max});
    }
    let is_incomplete = outcome.partial.is_some() || !outcome.failures.is_empty();
    if is_incomplete || changes.iter().any(|change| change.is_uncertain) {
        json["uncertain"] = "the baseline was not read as a whole; new patterns may have been there".into();
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_as_long_as_the_window_and_ends_where_it_begins() {
        let baseline = baseline_of(TimeRange { start: Some(100), end: Some(130) });
        assert_eq!(baseline, Some(TimeRange { start: Some(70), end: Some(100) }));
        assert_eq!(baseline_of(TimeRange { start: None, end: Some(130) }), None);
        assert_eq!(baseline_of(TimeRange { start: Some(130), end: Some(130) }), None);
        assert_eq!(baseline_of(TimeRange { start: Some(i64::MIN + 1), end: Some(5) }), None);
    }
}
