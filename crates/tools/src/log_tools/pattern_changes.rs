//! What is new among the patterns of messages: the window of the search beside the time of the same length before it.

use serde_json::{Value, json};
use tidegate_core::Error;
use tidegate_telemetry::logs::{
    LogPatterns, LogScanRequest, PATTERNS_MAX, PatternChange, TimeRange, compare_patterns, format_time,
};

use super::answer::CELL_CHARACTERS_MAX;
use super::facets::cut_text;
use super::scan::run_scan;
use super::search::LogSearch;
use crate::arguments::now_nanos;

/// The time before `range` that is as long. `None` if the range has no start, or does not end after it.
pub(super) fn baseline_of(range: TimeRange) -> Option<TimeRange> {
    let (start, end) = (range.start?, range.end.unwrap_or_else(now_nanos));
    let first = start.checked_sub(end.checked_sub(start)?)?;
    (end > start).then_some(TimeRange { start: Some(first), end: Some(start) })
}

/// The patterns that are new or more frequent than in `range`, which is as long as that of the search, as JSON; at most
/// `changes_max`.
///
/// # Errors
/// If no source can be read, or the call was cancelled.
pub(super) async fn compare_with_baseline(
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
