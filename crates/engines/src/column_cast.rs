//! Arrow's cast of columns, without its fault for dictionaries (`docs/decisions/upstream`).

use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::{CastOptions, cast_with_options, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

/// `column` as `to`. Arrow takes nulls among the values of a dictionary for empty texts if `to` is a view.
///
/// # Errors
/// A value is not one of `to`, unless the options make it null.
pub(crate) fn cast_column(column: &ArrayRef, to: &DataType, options: &CastOptions<'_>) -> Result<ArrayRef, ArrowError> {
    match column.as_any_dictionary_opt() {
        Some(dictionary) if !matches!(to, DataType::Dictionary(..)) => {
            take(&cast_with_options(dictionary.values(), to, options)?, dictionary.keys(), None)
        }
        _ => cast_with_options(column, to, options),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Array, DictionaryArray, Int8Array, StringArray, StringViewArray};

    use super::*;

    #[test]
    fn nulls_among_the_values_of_a_dictionary_stay_null() {
        let keys = Int8Array::from(vec![Some(0), Some(1), None]);
        let values = Arc::new(StringArray::from(vec![Some("a"), None]));
        let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
        let views = cast_column(&dictionary, &DataType::Utf8View, &CastOptions::default()).unwrap();
        assert_eq!(views.as_string_view(), &StringViewArray::from(vec![Some("a"), None, None]));
        // If this is equal, too, the function can go.
        let of_arrow = cast_with_options(&dictionary, &DataType::Utf8View, &CastOptions::default()).unwrap();
        assert_eq!(of_arrow.null_count(), 1);
    }
}
