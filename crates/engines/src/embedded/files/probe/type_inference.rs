//! Infers the types of the columns of a CSV file from values.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::DataType;

use super::super::number_evidence::NumberEvidence;
use super::super::number_format::{NumberFormat, is_null_marker};
use super::super::text_value::{TypeOrigin, infer_type, is_year, parse_float, type_note};
use super::super::type_widening::{CoercionMode, wider};

#[derive(Debug)]
pub(super) struct ColumnTypes {
    /// `Null` if no value determines the type.
    pub(super) types: Vec<DataType>,
    /// Positions of columns that contain null markers.
    null_marker_columns: BTreeSet<usize>,
    /// Positions of columns with integers that no float is equal to.
    inexact_columns: BTreeSet<usize>,
    /// The last change of the type of a column, by position.
    changes: BTreeMap<usize, TypeChange>,
    /// Positions of text columns of which only the first value is known to be a text.
    lone_texts: BTreeSet<usize>,
    /// The separators in the values, by position.
    evidence: Vec<NumberEvidence>,
    numbers: Option<NumberFormat>,
    accepts_null_markers: bool,
}

/// The value that did not have the type of the other values, and its line, 0 if it is not known.
#[derive(Debug)]
struct TypeChange {
    /// The type of the values before it, or of those after it if it is the first one.
    others: DataType,
    value: String,
    line: u64,
}

impl ColumnTypes {
    pub(super) fn new(columns: usize, numbers: Option<NumberFormat>, accepts_null_markers: bool) -> Self {
        let (null_marker_columns, inexact_columns, changes, lone_texts) = Default::default();
        Self {
            types: vec![DataType::Null; columns],
            null_marker_columns,
            inexact_columns,
            changes,
            lone_texts,
            evidence: vec![NumberEvidence::default(); columns],
            numbers,
            accepts_null_markers,
        }
    }

    /// Widens the type of the column at this position to hold `value` of this line, 0 if it is not known.
    pub(super) fn learn_value(&mut self, position: usize, value: &str, line: u64) {
        let (Some(data_type), Some(evidence)) = (self.types.get_mut(position), self.evidence.get_mut(position)) else {
            return;
        };
        if value.is_empty() {
        } else if *data_type == DataType::Utf8 && !evidence.is_open() && !self.lone_texts.contains(&position) {
            evidence.learn_notation(value);
        } else if self.accepts_null_markers && is_null_marker(value) {
            self.null_marker_columns.insert(position);
        } else {
            let mut found = infer_type(value, self.numbers);
            match self.numbers {
                Some(_) if evidence.is_open() => evidence.learn(value, &infer_type(value, None), line),
                Some(_) => evidence.learn_notation(value),
                None => evidence.learn(value, &found, line),
            }
            if *data_type == DataType::Utf8 {
                return self.learn_after_text(position, &found);
            }
            // Among floats, `1e21` is one.
            if *data_type == DataType::Float64
                && self.numbers.is_none()
                && parse_float(value, TypeOrigin::Inferred).is_some()
            {
                found = DataType::Float64;
            }
            let plain = self.numbers.and_then(|format| format.normalize(value));
            let number = plain.as_deref().unwrap_or(value);
            if found == DataType::Int64 && parse_float(number, TypeOrigin::Inferred).is_none() {
                self.inexact_columns.insert(position);
            }
            let mut wide = wider(data_type, &found, CoercionMode::ToText).unwrap_or(DataType::Utf8);
            if wide == DataType::Float64 && self.inexact_columns.contains(&position) {
                wide = DataType::Utf8;
            }
            if wide != *data_type {
                let others = std::mem::replace(data_type, wide);
                if others == DataType::Null && *data_type == DataType::Utf8 {
                    self.lone_texts.insert(position);
                }
                self.changes.insert(position, TypeChange { others, value: value.to_owned(), line });
            }
        }
    }

    /// Adds the type of a value of a text column. A line of names below a title is the only text of its columns.
    fn learn_after_text(&mut self, position: usize, found: &DataType) {
        if !self.lone_texts.contains(&position) {
            return;
        }
        let Some(change) = self.changes.get_mut(&position) else { return };
        let others = wider(&change.others, found, CoercionMode::ToText).unwrap_or(DataType::Utf8);
        if others == DataType::Utf8 {
            self.lone_texts.remove(&position);
            change.others = DataType::Null;
        } else {
            change.others = others;
        }
    }

    /// Why columns do not have the type of their other values, by position.
    pub(super) fn notes(&self, location: &str) -> BTreeMap<usize, String> {
        let note = |(position, change): (&usize, &TypeChange)| {
            let data_type = self.types.get(*position)?;
            let note = type_note(&change.others, data_type, &change.value, change.line, location)?;
            Some((*position, note))
        };
        self.changes.iter().filter_map(note).collect()
    }

    /// The separators in the values of each column. `is_declared`: whether the configuration declares its type.
    pub(super) fn into_evidence(self, location: &str, is_declared: impl Fn(usize) -> bool) -> Vec<NumberEvidence> {
        let complete = |(position, evidence): (usize, NumberEvidence)| {
            let evidence = evidence.at_location(location);
            if is_declared(position) { evidence.declared() } else { evidence }
        };
        self.evidence.into_iter().enumerate().map(complete).collect()
    }

    pub(super) fn typed_null_marker_columns<'a>(&self, names: &'a [String]) -> impl Iterator<Item = &'a String> {
        let has_type = |position: &&usize| !matches!(self.types.get(**position), Some(DataType::Utf8 | DataType::Null));
        self.null_marker_columns.iter().filter(has_type).filter_map(|position| names.get(*position))
    }

    /// Whether `first`, the first line, contains values and not names: there are typed columns, and its values fit all
    /// of them.
    pub(super) fn is_row_of_values(&self, first: &[String]) -> bool {
        let typed =
            || self.types.iter().zip(first).filter(|(kind, _)| !matches!(kind, DataType::Utf8 | DataType::Null));
        let fits = |(kind, value): (&DataType, &String)| {
            let found = infer_type(value, self.numbers);
            value.is_empty() || wider(kind, &found, CoercionMode::ToText).as_ref() == Some(kind)
        };
        first.len() == self.types.len()
            && typed().any(|(_, value)| !value.is_empty())
            && typed().all(fits)
            && !typed().all(|(_, value)| is_year(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_null_where_the_rest_has_a_type() {
        let mut columns = ColumnTypes::new(3, None, true);
        for (position, value) in [(0, "1"), (0, "N/A"), (1, "NA"), (1, "DE"), (2, "-")] {
            columns.learn_value(position, value, 1);
        }
        assert_eq!(columns.types, [DataType::Int64, DataType::Utf8, DataType::Null]);
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(columns.typed_null_marker_columns(&names).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn the_only_text_of_a_column_is_noted() {
        let note = |values: &[&str]| {
            let mut columns = ColumnTypes::new(1, None, true);
            (2..).zip(values).for_each(|(line, value)| columns.learn_value(0, value, line));
            columns.notes("t.csv").remove(&0)
        };
        let first = Some("text, because line 2 of t.csv has \"pieces\"");
        assert_eq!(note(&["pieces", "1", "N/A", "2.5"]).as_deref(), first);
        assert_eq!(note(&["pieces", "2026-01-01"]).as_deref(), first);
        let last = Some("text, because line 4 of t.csv has \"pieces\"");
        assert_eq!(note(&["1", "2.5", "pieces", "3"]).as_deref(), last);
        for texts in [&["pieces"][..], &["pieces", "1", "x"], &["pieces", "1", "true", "2"], &["pieces", "-1,50"]] {
            assert_eq!(note(texts), None, "{texts:?}");
        }
    }

    #[test]
    fn first_line_of_values_is_not_a_header() {
        let mut columns = ColumnTypes::new(2, None, true);
        columns.learn_value(0, "x", 1);
        columns.learn_value(1, "5", 1);
        let line = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert!(columns.is_row_of_values(&line("y", "7")));
        assert!(!columns.is_row_of_values(&line("name", "count")));
        assert!(!columns.is_row_of_values(&line("name", "2024")), "a year is a name");
        assert!(!ColumnTypes::new(2, None, true).is_row_of_values(&line("a", "b")), "nothing has a type");
    }
}
