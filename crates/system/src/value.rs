//! Values of rows, their order, and their form in JSON.

use std::cmp::Ordering;

use chrono::{DateTime, SecondsFormat};
use serde_json::Value;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum SystemValue {
    /// Unknown, not applicable, or not readable.
    Null,
    /// Text.
    Text(String),
    /// A signed number.
    Integer(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A number with a fraction; durations in seconds too.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A time in microseconds since 1970-01-01 UTC.
    Timestamp(i64),
}

impl SystemValue {
    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text, if the value is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if the value is one that is not negative and has no fraction.
    pub fn as_unsigned(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(number) => Some(number),
            Self::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// The truth value, if the value is one.
    pub fn as_boolean(&self) -> Option<bool> {
        match *self {
            Self::Boolean(value) => Some(value),
            _ => None,
        }
    }

    /// The value in JSON. Times are text as in RFC 3339; numbers that JSON cannot represent are null.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::from(text.as_str()),
            Self::Integer(number) => Value::from(*number),
            Self::Unsigned(number) => Value::from(*number),
            Self::Float(number) => Value::from(*number),
            Self::Boolean(value) => Value::from(*value),
            Self::Timestamp(microseconds) => DateTime::from_timestamp_micros(*microseconds)
                .map_or(Value::Null, |time| Value::from(time.to_rfc3339_opts(SecondsFormat::AutoSi, true))),
        }
    }

    /// The order of two values of the same type, where all numbers are one type; `None` for null and for other types.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Float(a), b) => compare_with_float(b.whole_number()?, *a).map(Ordering::reverse),
            (a, Self::Float(b)) => compare_with_float(a.whole_number()?, *b),
            (a, b) => Some(a.whole_number()?.cmp(&b.whole_number()?)),
        }
    }

    /// A total order for sorting: null last, else by [`Self::compare`]; NaN after all other numbers.
    pub(crate) fn sort_order(&self, other: &Self, is_descending: bool) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let order = self.compare(other).unwrap_or_else(|| self.rank().cmp(&other.rank()));
        if is_descending { order.reverse() } else { order }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 6,
            Self::Float(number) if number.is_nan() => 4,
            Self::Integer(_) | Self::Unsigned(_) | Self::Float(_) => 3,
            Self::Boolean(_) => 0,
            Self::Timestamp(_) => 1,
            Self::Text(_) => 2,
        }
    }

    fn whole_number(&self) -> Option<i128> {
        match *self {
            Self::Integer(number) => Some(number.into()),
            Self::Unsigned(number) => Some(number.into()),
            _ => None,
        }
    }
}

/// Compares without loss: large whole numbers have no exact float.
fn compare_with_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The cast saturates, and whole numbers of rows are far inside of the range.
    let floor = float.floor();
    Some(whole.cmp(&(floor as i128)).then(if float > floor { Ordering::Less } else { Ordering::Equal }))
}

impl From<&str> for SystemValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SystemValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for SystemValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u64> for SystemValue {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<u32> for SystemValue {
    fn from(number: u32) -> Self {
        Self::Unsigned(number.into())
    }
}

impl From<f64> for SystemValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for SystemValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl<T: Into<SystemValue>> From<Option<T>> for SystemValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_different_types_compare_exactly() {
        let order = |a: SystemValue, b: SystemValue| a.compare(&b);
        assert_eq!(order(SystemValue::Unsigned(u64::MAX), SystemValue::Integer(-1)), Some(Ordering::Greater));
        assert_eq!(order(SystemValue::Unsigned(2), SystemValue::Float(2.5)), Some(Ordering::Less));
        assert_eq!(order(SystemValue::Float(2.5), SystemValue::Integer(2)), Some(Ordering::Greater));
        assert_eq!(order(SystemValue::Float(-0.5), SystemValue::Integer(0)), Some(Ordering::Less));
        // 2^53 + 1 has no float of its own.
        assert_eq!(
            order(SystemValue::Unsigned((1 << 53) + 1), SystemValue::Float(9_007_199_254_740_992.0)),
            Some(Ordering::Greater)
        );
        assert_eq!(order(SystemValue::Unsigned(1), SystemValue::Float(f64::INFINITY)), Some(Ordering::Less));
        assert_eq!(order(SystemValue::Unsigned(1), SystemValue::Float(f64::NAN)), None);
        assert_eq!(order(SystemValue::Null, SystemValue::Null), None);
        assert_eq!(order(SystemValue::from("1"), SystemValue::Unsigned(1)), None);
    }

    #[test]
    fn null_is_last_in_both_directions() {
        let (null, one) = (SystemValue::Null, SystemValue::Unsigned(1));
        for is_descending in [false, true] {
            assert_eq!(null.sort_order(&one, is_descending), Ordering::Greater);
            assert_eq!(one.sort_order(&null, is_descending), Ordering::Less);
        }
    }

    #[test]
    fn json_has_times_as_text() {
        let json = |value: SystemValue| value.to_json().to_string();
        assert_eq!(json(SystemValue::Timestamp(1_700_000_000_250_000)), r#""2023-11-14T22:13:20.250Z""#);
        assert_eq!(json(SystemValue::Timestamp(0)), r#""1970-01-01T00:00:00Z""#);
        assert_eq!(json(SystemValue::Timestamp(i64::MAX)), "null");
        assert_eq!(json(SystemValue::Float(f64::NAN)), "null");
        assert_eq!(json(SystemValue::from(None::<u64>)), "null");
    }
}
