//! The patterns of a window of time beside those of a baseline: what is new, and what is more frequent.

use std::collections::HashMap;

use super::collector::{LogPattern, LogPatterns};
use super::merge::{ANY_TOKEN, covers};

/// A pattern is more frequent from this factor on.
const FACTOR_MIN: f64 = 2.0;
/// Fewer messages are too few to compare.
const ROWS_MIN: u64 = 10;

/// The patterns of a window of time.
#[derive(Debug, Clone, Copy)]
pub struct PatternWindow<'a> {
    /// The patterns. The ones that were left out count as absent, so that a baseline should leave out none.
    pub patterns: &'a LogPatterns,
    /// The length of the window in nanoseconds.
    pub duration: i64,
}

/// How a pattern changed from the baseline to the window.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternChange {
    /// The pattern, with the numbers of the window.
    pub pattern: LogPattern,
    /// The number of messages in the baseline.
    pub baseline_rows: u64,
    /// How many times more messages there are in the same time; `None` if the pattern is new.
    pub factor: Option<f64>,
    /// Whether a new pattern may be among the messages of the baseline that were not counted.
    pub is_uncertain: bool,
}

/// The patterns of `window` that are new, and those that are at least twice as frequent as in `baseline`: new ones first,
/// then those with the largest factor.
pub fn compare_patterns(window: PatternWindow<'_>, baseline: PatternWindow<'_>) -> Vec<PatternChange> {
    let known: HashMap<&str, u64> =
        baseline.patterns.patterns.iter().map(|pattern| (pattern.template.as_str(), pattern.rows)).collect();
    let has_gap = |pattern: &&LogPattern| pattern.template.contains(ANY_TOKEN);
    let merged: Vec<&LogPattern> = baseline.patterns.patterns.iter().filter(has_gap).collect();
    let is_uncertain = baseline.patterns.uncounted_rows > 0 || baseline.patterns.left_out_rows > 0;
    let mut changes: Vec<PatternChange> = Vec::new();
    for pattern in &window.patterns.patterns {
        let template = pattern.template.as_str();
        let exact = known.get(template).copied();
        let covering = || merged.iter().find(|other| covers(&other.template, template)).map(|other| other.rows);
        // A pattern that was merged in the window only: the messages of the baseline that it covers.
        let covered = || -> u64 {
            let others = baseline.patterns.patterns.iter();
            others.filter(|other| covers(template, &other.template)).map(|other| other.rows).sum()
        };
        let mut rows = exact.or_else(covering).unwrap_or(0);
        if rows == 0 && template.contains(ANY_TOKEN) {
            rows = covered();
        }
        let factor = (rows > 0).then(|| {
            let times = baseline.duration.max(1) as f64 / window.duration.max(1) as f64;
            pattern.rows as f64 / rows as f64 * times
        });
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
        let pattern = |(template, rows): &(&str, u64)| LogPattern {
            template: (*template).to_owned(),
            rows: *rows,
            times: None,
            example: String::new(),
        };
        LogPatterns { patterns: rows.iter().map(pattern).collect(), ..LogPatterns::default() }
    }

    #[test]
    fn new_and_more_frequent_patterns_are_changes() {
        let window = patterns(&[("disk full", 3), ("timeout <number>", 40), ("ok", 100), ("user bob left now", 20)]);
        let baseline = patterns(&[("timeout <number>", 20), ("ok", 1_000), ("user <any> left now", 20)]);
        let changes = compare_patterns(
            PatternWindow { patterns: &window, duration: 60 },
            PatternWindow { patterns: &baseline, duration: 600 },
        );
        let found: Vec<_> = changes.iter().map(|change| (change.pattern.template.as_str(), change.factor)).collect();
        let expected = [("disk full", None), ("timeout <number>", Some(20.0)), ("user bob left now", Some(10.0))];
        assert_eq!(found, expected);
        assert!(!changes[0].is_uncertain);
    }
}
