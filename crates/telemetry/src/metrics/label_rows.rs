//! Which combination of texts each row has.
//!
//! Samples are mostly stored in the same order of series again and again. So the combination of a row is first guessed to
//! be the one that followed last time, and the guess is checked, which is much cheaper than a look-up.

use std::collections::HashMap;

use arrow::array::{Array, StringViewArray};
use foldhash::fast::RandomState;
use tidegate_core::{Error, ErrorKind};

/// The maximum number of combinations of labels in the rows of one scan.
const COMBINATIONS_MAX: usize = 200_000;
/// The memory that the combinations may take, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// The length of a missing value in keys; a text is shorter.
const MISSING_LENGTH: u32 = u32::MAX;
/// The longest text that a view contains itself, in bytes.
const INLINE_BYTES_MAX: u32 = 12;

/// The combinations that occurred so far, numbered in order of their first row.
#[derive(Debug, Default)]
pub(super) struct LabelRows {
    numbers: HashMap<Box<[u8]>, usize, RandomState>,
    /// For each combination, its values.
    values: Vec<Vec<KnownText>>,
    /// For each combination, the one that followed last time.
    followers: Vec<usize>,
    previous: usize,
    bytes: usize,
    key: Vec<u8>,
}

/// A value of a combination.
#[derive(Debug)]
enum KnownText {
    Missing,
    /// The view of a short text, which is its length and its bytes.
    Short(u128),
    Long(Box<str>),
}

impl KnownText {
    fn new(texts: &StringViewArray, row: usize) -> Self {
        match texts.views().get(row) {
            Some(view) if texts.is_valid(row) && length(*view) <= INLINE_BYTES_MAX => Self::Short(*view),
            _ if texts.is_valid(row) => Self::Long(texts.value(row).into()),
            _ => Self::Missing,
        }
    }

    fn is_at(&self, texts: &StringViewArray, row: usize) -> bool {
        if texts.is_null(row) {
            return matches!(self, Self::Missing);
        }
        match self {
            Self::Missing => false,
            Self::Short(known) => texts.views().get(row) == Some(known),
            Self::Long(known) => texts.value(row) == known.as_ref(),
        }
    }
}

/// The length of the text of a view.
fn length(view: u128) -> u32 {
    (view & u128::from(u32::MAX)) as u32
}

impl LabelRows {
    /// The number of the combination that `columns` have in a row. They are the same columns in every call.
    ///
    /// # Errors
    /// `TooLarge` if there are too many combinations.
    pub(super) fn find(&mut self, columns: &[StringViewArray], row: usize) -> Result<usize, Error> {
        let guess = self.followers.get(self.previous).copied().unwrap_or_default();
        let is_right =
            |values: &Vec<KnownText>| values.iter().zip(columns).all(|(known, texts)| known.is_at(texts, row));
        if self.values.get(guess).is_some_and(is_right) {
            self.previous = guess;
            return Ok(guess);
        }
        let found = self.look_up(columns, row)?;
        if let Some(follower) = self.followers.get_mut(self.previous) {
            *follower = found;
        }
        self.previous = found;
        Ok(found)
    }

    fn look_up(&mut self, columns: &[StringViewArray], row: usize) -> Result<usize, Error> {
        self.key.clear();
        for texts in columns {
            if texts.is_null(row) {
                self.key.extend(MISSING_LENGTH.to_le_bytes());
            } else {
                let text = texts.value(row);
                self.key.extend(u32::try_from(text.len()).unwrap_or(MISSING_LENGTH).to_le_bytes());
                self.key.extend(text.as_bytes());
            }
        }
        if let Some(number) = self.numbers.get(self.key.as_slice()) {
            return Ok(*number);
        }
        let number = self.values.len();
        self.bytes += 2 * self.key.len() + columns.len() * size_of::<KnownText>();
        if number >= COMBINATIONS_MAX || self.bytes > BYTES_MAX {
            let message = format!("the rows have more than {number} combinations of labels, which is the maximum");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Add conditions on labels."));
        }
        self.numbers.insert(self.key.as_slice().into(), number);
        self.values.push(columns.iter().map(|texts| KnownText::new(texts, row)).collect());
        self.followers.push(number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = Option<String>> {
        prop::option::of(prop::sample::select(vec![
            "",
            "a",
            "b",
            "short",
            "a text that is longer than a view",
            "a text that is longer than a veil",
        ]))
        .prop_map(|text| text.map(str::to_owned))
    }

    proptest! {
        /// Two rows have the same number exactly if all their values are the same, in whatever order they come.
        #[test]
        fn equal_rows_have_equal_numbers(rows in prop::collection::vec((text(), text()), 1..40), repeats in 1_usize..4, batch in 1_usize..9) {
            let rows = vec![rows; repeats].concat();
            let (mut known, mut numbers) = (LabelRows::default(), Vec::new());
            for batch in rows.chunks(batch) {
                let first: StringViewArray = batch.iter().map(|(first, _)| first.as_deref()).collect();
                let second: StringViewArray = batch.iter().map(|(_, second)| second.as_deref()).collect();
                let columns = [first, second];
                for row in 0..batch.len() {
                    numbers.push(known.find(&columns, row).unwrap());
                }
            }
            let mut expected: Vec<&(Option<String>, Option<String>)> = Vec::new();
            for (row, number) in rows.iter().zip(&numbers) {
                let place = expected.iter().position(|known| *known == row).unwrap_or_else(|| {
                    expected.push(row);
                    expected.len() - 1
                });
                prop_assert_eq!(*number, place);
            }
        }
    }

    #[test]
    fn rows_without_labels_are_one_combination() {
        let mut known = LabelRows::default();
        assert_eq!([known.find(&[], 0).unwrap(), known.find(&[], 1).unwrap()], [0, 0]);
    }
}
