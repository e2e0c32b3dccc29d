//! The patterns of a window of time beside those of a baseline of the same length: what is new, and what is more frequent.

use std::collections::HashMap;

use super::collector::{LogPattern, LogPatterns};
use super::merge::{ANY_TOKEN, covers};

/// A pattern is more frequent from this factor on.
const FACTOR_MIN: f64 = 2.0;
/// Fewer messages are too few to compare.
const ROWS_MIN: u64 = 10;

/// How a pattern changed from the baseline to the window.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternChange {
    /// The pattern, with the numbers of the window.
    pub pattern: LogPattern,
    /// The number of messages in the baseline.
    pub baseline_rows: u64,
    /// How many times more messages there are; `None` if the pattern is new.
    pub factor: Option<f64>,
    /// Whether a new pattern may be among the messages of the baseline that were not counted.
    pub is_uncertain: bool,
}

/// The patterns of `window` that are new, and those that are at least twice as frequent as in `baseline`: new ones first,
/// then those with the largest factor. What a baseline left out counts as absent, so that it should leave out nothing.
pub fn compare_patterns(window: &LogPatterns, baseline: &LogPatterns) -> Vec<PatternChange> {
    let known: HashMap<&str, u64> =
        baseline.patterns.iter().map(|pattern| (pattern.template.as_str(), pattern.rows)).collect();
    let has_gap = |pattern: &&LogPattern| pattern.template.contains(ANY_TOKEN);
    let merged: Vec<&LogPattern> = baseline.patterns.iter().filter(has_gap).collect();
    let is_uncertain = baseline.uncounted_rows > 0 || baseline.left_out_rows > 0;
    let mut changes: Vec<PatternChange> = Vec::new();
    for pattern in &window.patterns {
        let template = pattern.template.as_str();
        let exact = known.get(template).copied();
        let covering = || merged.iter().find(|other| covers(&other.template, template)).map(|other| other.rows);
        // A pattern that was merged in the window only: the messages of the baseline that it covers.
        let covered = || -> u64 {
            let others = baseline.patterns.iter();
            others.filter(|other| covers(template, &other.template)).map(|other| other.rows).sum()
        };
        let mut rows = exact.or_else(covering).unwrap_or(0);
        if rows == 0 && template.contains(ANY_TOKEN) {
            rows = covered();
        }
        let factor = (rows > 0).then(|| pattern.rows as f64 / rows as f64);
        let is_change = factor.is_none_or(|factor| factor >= FACTOR_MIN && pattern.rows >= ROWS_MIN);
        if is_change {
            let is_uncertain = is_uncertain && factor.is_none();
            changes.push(PatternChange { pattern: pattern.clone(), baseline_rows: rows, factor, is_uncertain });
        }
    }
    changes.sort_by(|one, other| {
        let factor = |change: &PatternChange| change.factor.unwrap_or(f64::INFINITY);
        factor(other).total_cmp(&factor(one)).then_with(|| other.pattern.rows.cmp(&one.pattern.rows))
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(rows: &[(&str, u64)]) -> LogPatterns {
        let pattern =
            |(template, rows): &(&str, u64)| LogPattern { template: (*template).to_owned(), rows: *rows, times: None };
        LogPatterns { patterns: rows.iter().map(pattern).collect(), ..LogPatterns::default() }
    }

    #[test]
    fn new_and_more_frequent_patterns_are_changes() {
        let window = patterns(&[("disk full", 3), ("timeout <number>", 40), ("ok", 100), ("user bob left now", 20)]);
        let baseline = patterns(&[("timeout <number>", 2), ("ok", 100), ("user <any> left now", 2)]);
        let changes = compare_patterns(&window, &baseline);
        let found: Vec<_> = changes.iter().map(|change| (change.pattern.template.as_str(), change.factor)).collect();
        let expected = [("disk full", None), ("timeout <number>", Some(20.0)), ("user bob left now", Some(10.0))];
        assert_eq!(found, expected);
        assert!(!changes[0].is_uncertain);
    }
}
