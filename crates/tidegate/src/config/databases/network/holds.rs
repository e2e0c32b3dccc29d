//! The rows that a node contributes to a network.

use std::collections::BTreeMap;

use tidegate_engines::{HeldRows, HeldValues};

use crate::config::problems::Problems;
use crate::config::types::network::{HeldConfig, HeldRangeConfig, ScalarText};

/// The rows of `entry`.
pub(super) fn parse_held_rows(entry: &BTreeMap<String, HeldConfig>, problems: &Problems) -> HeldRows {
    if entry.is_empty() {
        problems.add("", "names no column; omit it if all rows of the node are part of the network");
    }
    let mut columns = BTreeMap::new();
    for (column, held) in entry {
        if let Some(message) = find_problem(held) {
            problems.add(column, message);
        }
        columns.insert(column.clone(), to_values(held));
    }
    HeldRows { columns }
}

fn find_problem(held: &HeldConfig) -> Option<String> {
    match held {
        HeldConfig::One(_) => None,
        HeldConfig::Many(values) if values.is_empty() => {
            Some("is an empty list: no row has one of its values".to_owned())
        }
        HeldConfig::Many(values) => {
            let repeated = values.iter().enumerate().find(|(index, value)| values[..*index].contains(value));
            repeated.map(|(_, ScalarText(value))| format!("has {value} twice"))
        }
        HeldConfig::Range(HeldRangeConfig { from: None, before: None }) => {
            Some("needs from, before or both: {from: 2026-01-01, before: 2027-01-01}".to_owned())
        }
        HeldConfig::Range(HeldRangeConfig { from: Some(ScalarText(from)), before: Some(ScalarText(before)) })
            if is_empty_range(from, before) =>
        {
            Some(format!("has no value: from {from} is not below before {before}"))
        }
        HeldConfig::Range(_) => None,
    }
}

/// Whether no value is between both, as far as it is known without the type of the column: of numbers, and of dates and
/// times of UTC in the same form.
fn is_empty_range(from: &str, before: &str) -> bool {
    if let (Ok(from), Ok(before)) = (from.parse::<f64>(), before.parse::<f64>()) {
        return from >= before;
    }
    let is_time = |text: &str| {
        let bytes = text.as_bytes();
        let is_date =
            bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit);
        is_date && (bytes.len() == 10 || text.ends_with('Z'))
    };
    from.len() == before.len() && is_time(from) && is_time(before) && from >= before
}

fn to_values(held: &HeldConfig) -> HeldValues {
    let text = |value: &ScalarText| value.0.clone();
    match held {
        HeldConfig::One(value) => HeldValues { values: vec![text(value)], ..HeldValues::default() },
        HeldConfig::Many(values) => HeldValues { values: values.iter().map(text).collect(), ..HeldValues::default() },
        HeldConfig::Range(range) => HeldValues {
            from: range.from.as_ref().map(text),
            before: range.before.as_ref().map(text),
            ..HeldValues::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, before: &str, is_empty: bool) {
        assert_eq!(is_empty_range(from, before), is_empty, "{from} to {before}");
    }

    #[test]
    fn only_ranges_that_are_surely_empty_are_refused() {
        check("1", "2", false);
        check("10", "9", true);
        check("-1.5", "-1.5", true);
        check("2026-01-01", "2026-01-01", true);
        check("2026-02-01", "2026-01-01", true);
        check("2026-01-01", "2026-01-02", false);
        check("2026-01-01T12:00:00Z", "2026-01-01T11:00:00Z", true);
        // Other forms, and texts of an unknown collation.
        check("2026-01-02", "2026-01-01T00:00:00Z", false);
        check("2026-01-01T12:00:00+02:00", "2026-01-01T11:00:00-05:00", false);
        check("zulu", "alpha", false);
        check("ä123-45-67", "a123-45-67", false);
    }
}
