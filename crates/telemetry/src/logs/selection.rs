//! Selections: the values that a caller chose for fields, as in the facets of an answer.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;
use thiserror::Error;

use super::value::MISSING;

/// The maximum number of fields with a selection in one request.
pub const SELECTED_FIELDS_MAX: usize = 32;
/// The maximum number of values that one field may have in a request.
pub const SELECTED_VALUES_MAX: usize = 1_000;

/// Values for fields: a row matches if it has one of the values in each of the fields. Values compare in their display
/// form; `-` and null select rows where the value is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelections(BTreeMap<String, SelectedValues>);

/// The values of one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelectedValues(HashSet<String, RandomState>);

/// Selections that are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// A field without values would match nothing.
    #[error("selections.{0} has no values; list at least one, or leave the field out")]
    Empty(String),
    /// More fields than [`SELECTED_FIELDS_MAX`].
    #[error("selections has {0} fields; the maximum is {SELECTED_FIELDS_MAX}")]
    TooManyFields(usize),
    /// More values than [`SELECTED_VALUES_MAX`].
    #[error("selections.{0} has {1} values; the maximum is {SELECTED_VALUES_MAX}")]
    TooManyValues(String, usize),
}

impl FieldSelections {
    /// Selections of fields; a value that is `None` selects missing values.
    ///
    /// # Errors
    /// If a field has no values, or there are too many fields or values.
    pub fn new(fields: impl IntoIterator<Item = (String, Vec<Option<String>>)>) -> Result<Self, SelectionError> {
        let mut selections = BTreeMap::new();
        for (field, values) in fields {
            match values.len() {
                0 => return Err(SelectionError::Empty(field)),
                count if count > SELECTED_VALUES_MAX => return Err(SelectionError::TooManyValues(field, count)),
                _ => {}
            }
            let values = values.into_iter().map(|value| value.unwrap_or_else(|| MISSING.to_owned()));
            selections.entry(field).or_insert_with(SelectedValues::default).0.extend(values);
        }
        match selections.len() {
            count if count > SELECTED_FIELDS_MAX => Err(SelectionError::TooManyFields(count)),
            _ => Ok(Self(selections)),
        }
    }

    /// The fields in the order of their names, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SelectedValues)> {
        self.0.iter().map(|(field, values)| (field.as_str(), values))
    }

    /// Whether no field has a selection.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl SelectedValues {
    /// Whether a value in its display form is selected.
    pub fn contains(&self, display_value: &str) -> bool {
        self.0.contains(display_value)
    }

    /// Whether missing values are selected.
    pub fn selects_missing(&self) -> bool {
        self.contains(MISSING)
    }

    /// The values in order.
    pub fn to_sorted(&self) -> Vec<&str> {
        let mut values: Vec<&str> = self.0.iter().map(String::as_str).collect();
        values.sort_unstable();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_dash_select_missing_values() {
        let fields = [("a".to_owned(), vec![None, Some("x".to_owned())]), ("b".to_owned(), vec![Some("-".to_owned())])];
        let selections = FieldSelections::new(fields).unwrap();
        assert!(selections.iter().all(|(_, values)| values.selects_missing()));
        let values: Vec<_> = selections.iter().map(|(field, values)| (field, values.to_sorted())).collect();
        assert_eq!(values, [("a", vec!["-", "x"]), ("b", vec!["-"])]);
    }

    #[test]
    fn bounds_are_errors() {
        let error = |fields| FieldSelections::new(fields).unwrap_err().to_string();
        assert!(error(vec![("a".to_owned(), vec![])]).starts_with("selections.a has no values"));
        assert!(error(vec![("a".to_owned(), vec![None; 1_001])]).contains("1001 values"));
        let fields = (0..33).map(|index| (index.to_string(), vec![None])).collect();
        assert!(error(fields).contains("33 fields"));
    }
}
