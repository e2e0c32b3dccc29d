//! The display values of a column of one batch, each distinct value once.
//!
//! Facets, selections and histograms work on the codes, so that a row costs an index and no allocation.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow::array::{AnyDictionaryArray, Array, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, ToByteSlice};
use arrow::downcast_primitive_array;
use foldhash::fast::RandomState;

use super::value::{MISSING, borrowed_text, dictionary_key, display_value, write_display_value};

/// The code of a row that was not encoded.
const NO_CODE: u32 = u32::MAX;

/// A code for each row, and the display value of each code. Two codes may have the same value.
pub(crate) struct EncodedColumn<'a> {
    codes: Vec<u32>,
    values: Vec<Cow<'a, str>>,
}

impl<'a> EncodedColumn<'a> {
    /// Encodes the column `name` in the given rows. In a batch without such a column, the value of every row is missing.
    pub(super) fn from_batch(batch: &'a RecordBatch, name: &str, rows: &BooleanBuffer) -> Self {
        match batch.column_by_name(name) {
            Some(array) => Self::new(array.as_ref(), rows),
            None => Self { codes: vec![0; batch.num_rows()], values: vec![Cow::Borrowed(MISSING)] },
        }
    }

    /// Encodes the given rows of `array`.
    pub(crate) fn new(array: &'a dyn Array, rows: &BooleanBuffer) -> Self {
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            return Self::from_dictionary(dictionary, rows);
        }
        let mut encoded = Self { codes: vec![NO_CODE; array.len()], values: Vec::new() };
        match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => encoded.add_strings(array, rows),
            kind if kind.is_primitive() => encoded.add_primitives(array, rows),
            _ => encoded.add_others(array, rows),
        }
        encoded
    }

    /// The code of `row`; `None` if the row was not encoded.
    pub(crate) fn code(&self, row: usize) -> Option<usize> {
        self.codes.get(row).filter(|code| **code != NO_CODE).map(|code| *code as usize)
    }

    /// The display value of each code.
    pub(crate) fn values(&self) -> &[Cow<'a, str>] {
        &self.values
    }

    /// The number of the given rows that have each code.
    pub(super) fn count(&self, rows: &BooleanBuffer) -> Vec<u64> {
        let mut counts = vec![0; self.values.len()];
        for row in rows.set_indices() {
            if let Some(count) = self.code(row).and_then(|code| counts.get_mut(code)) {
                *count += 1;
            }
        }
        counts
    }

    /// The given rows whose value `matches`.
    pub(super) fn filter(&self, rows: &BooleanBuffer, mut matches: impl FnMut(&str) -> bool) -> BooleanBuffer {
        let matching: Vec<bool> = self.values.iter().map(|value| matches(value)).collect();
        let is_match = |row| self.code(row).and_then(|code| matching.get(code)).copied().unwrap_or(false);
        BooleanBuffer::collect_bool(rows.len(), |row| rows.value(row) && is_match(row))
    }

    fn push_value(&mut self, value: Cow<'a, str>) -> u32 {
        self.values.push(value);
        // A batch has fewer rows than codes.
        u32::try_from(self.values.len() - 1).unwrap_or(NO_CODE)
    }

    fn set(&mut self, row: usize, code: u32) {
        if let Some(place) = self.codes.get_mut(row) {
            *place = code;
        }
    }

    fn from_dictionary(dictionary: &'a dyn AnyDictionaryArray, rows: &BooleanBuffer) -> Self {
        let values: &'a dyn Array = dictionary.values().as_ref();
        let mut encoded = Self { codes: vec![NO_CODE; dictionary.len()], values: Vec::new() };
        // One code for each key that occurs, and the last one for null.
        let mut code_of_key = vec![NO_CODE; values.len() + 1];
        for row in rows.set_indices() {
            let key = dictionary_key(dictionary.keys(), row).unwrap_or(values.len());
            let Some(known) = code_of_key.get_mut(key) else { continue };
            if *known == NO_CODE {
                let value = borrowed_text(values, key).map(Cow::Borrowed);
                *known = encoded.push_value(value.unwrap_or_else(|| Cow::Owned(display_value(values, key))));
            }
            encoded.set(row, *known);
        }
        encoded
    }

    fn add_strings(&mut self, array: &'a dyn Array, rows: &BooleanBuffer) {
        let mut known: HashMap<&'a str, u32, RandomState> = HashMap::default();
        let mut previous: Option<(&'a str, u32)> = None;
        for row in rows.set_indices() {
            let text = borrowed_text(array, row).unwrap_or(MISSING);
            let code = match previous {
                Some((same, code)) if same == text => code,
                _ => *known.entry(text).or_insert_with(|| self.push_value(Cow::Borrowed(text))),
            };
            previous = Some((text, code));
            self.set(row, code);
        }
    }

    fn add_primitives(&mut self, array: &'a dyn Array, rows: &BooleanBuffer) {
        let is_valid = |row| array.nulls().is_none_or(|nulls: &NullBuffer| nulls.is_valid(row));
        let mut known: HashMap<Option<&[u8]>, u32, RandomState> = HashMap::default();
        downcast_primitive_array!(
            array => {
                let natives = array.values();
                for row in rows.set_indices() {
                    let bytes = natives.get(row).filter(|_| is_valid(row)).map(ToByteSlice::to_byte_slice);
                    let new = || self.push_value(Cow::Owned(display_value(array, row)));
                    let code = *known.entry(bytes).or_insert_with(new);
                    self.set(row, code);
                }
            }
            _ => self.add_others(array, rows)
        );
    }

    fn add_others(&mut self, array: &'a dyn Array, rows: &BooleanBuffer) {
        let mut known: HashMap<String, u32, RandomState> = HashMap::default();
        let mut text = String::new();
        for row in rows.set_indices() {
            text.clear();
            write_display_value(array, row, &mut text);
            let code = match known.get(&text) {
                Some(code) => *code,
                None => {
                    let code = self.push_value(Cow::Owned(text.clone()));
                    known.insert(text.clone(), code);
                    code
                }
            };
            self.set(row, code);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Decimal256Array, DictionaryArray, Float64Array, Int64Array, StringArray,
        TimestampNanosecondArray,
    };
    use arrow::datatypes::{Int32Type, i256};

    use super::*;

    #[test]
    fn codes_have_the_display_values_of_their_rows() {
        let dictionary: DictionaryArray<Int32Type> = vec![Some("b"), None, Some("b"), Some("-")].into_iter().collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("x"), None, Some("x"), Some("y")])),
            Arc::new(dictionary),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(1), Some(2)])),
            Arc::new(Float64Array::from(vec![Some(0.0), None, Some(-0.0), Some(f64::NAN)])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(true), Some(false)])),
            Arc::new(TimestampNanosecondArray::from(vec![Some(1), None, Some(1), Some(2)])),
            Arc::new(Decimal256Array::from(vec![Some(i256::ONE), None, Some(i256::ONE), Some(i256::ZERO)])),
        ];
        for array in columns {
            let encoded = EncodedColumn::new(array.as_ref(), &BooleanBuffer::new_set(4));
            let values: Vec<_> = (0..4).map(|row| encoded.values()[encoded.code(row).unwrap()].to_string()).collect();
            let expected: Vec<_> = (0..4).map(|row| display_value(array.as_ref(), row)).collect();
            assert_eq!(values, expected, "{:?}", array.data_type());
            assert_eq!(encoded.count(&BooleanBuffer::new_set(4)).iter().sum::<u64>(), 4);
            assert!(encoded.filter(&BooleanBuffer::new_set(4), |text| text == "-").value(1));
        }
    }
}
