//! Hive partitions: folders named `key=value`, whose keys are columns of the files in them.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use percent_encoding::percent_decode_str;

const NULL_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Splits a folder name into key and value. `None` if the folder is not a partition.
pub(crate) fn parse_partition(folder_name: &str) -> Option<(String, Option<String>)> {
    let (key, value) = folder_name.split_once('=')?;
    if key.is_empty() {
        return None;
    }
    let value = (value != NULL_VALUE).then(|| unescape(value));
    Some((unescape(key), value))
}

/// Decodes Hive's escapes: `%` and two hexadecimal digits.
fn unescape(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

/// The column for the `values` of one key: whole numbers, dates, or else text.
pub(crate) fn partition_column<'a>(key: &str, values: impl Iterator<Item = &'a Option<String>> + Clone) -> FieldRef {
    let present = || values.clone().flatten();
    let data_type = if present().next().is_none() {
        DataType::Utf8
    } else if present().all(|value| is_whole_number(value)) {
        DataType::Int64
    } else if present().all(|value| is_date(value)) {
        DataType::Date32
    } else {
        DataType::Utf8
    };
    Arc::new(Field::new(key, data_type, values.clone().any(Option::is_none)))
}

/// Digits with leading zeros are codes, not numbers.
fn is_whole_number(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
}

fn is_date(value: &str) -> bool {
    let shape = value.len() == 10
        && value.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shape && matches!(ScalarValue::try_from_string(value.to_owned(), &DataType::Date32), Ok(date) if !date.is_null())
}

pub(crate) fn partition_value(value: Option<&str>, data_type: &DataType) -> Result<ScalarValue, String> {
    let scalar = match value {
        Some(text) => ScalarValue::try_from_string(text.to_owned(), data_type),
        None => ScalarValue::try_new_null(data_type),
    };
    scalar.map_err(|error| error.strip_backtrace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_called_key_value_are_partitions() {
        let partition = |name| parse_partition(name);
        assert_eq!(partition("year=2024"), Some(("year".to_owned(), Some("2024".to_owned()))));
        assert_eq!(partition("city=S%C3%A3o%2FPaulo"), Some(("city".to_owned(), Some("São/Paulo".to_owned()))));
        assert_eq!(partition("k=100%"), Some(("k".to_owned(), Some("100%".to_owned()))));
        assert_eq!(partition("k=__HIVE_DEFAULT_PARTITION__"), Some(("k".to_owned(), None)));
        assert_eq!(partition("plain"), None);
        assert_eq!(partition("=x"), None);
    }

    #[test]
    fn infers_partition_column_types() {
        let type_of = |values: &[&str]| {
            let values: Vec<Option<String>> = values.iter().map(|value| Some((*value).to_owned())).collect();
            partition_column("k", values.iter()).data_type().clone()
        };
        assert_eq!(type_of(&["1", "20", "-3"]), DataType::Int64);
        assert_eq!(type_of(&["01", "02"]), DataType::Utf8);
        assert_eq!(type_of(&["2024-01-31", "2024-02-29"]), DataType::Date32);
        assert_eq!(type_of(&["2024-02-30"]), DataType::Utf8);
        assert_eq!(type_of(&["a", "1"]), DataType::Utf8);
    }
}
