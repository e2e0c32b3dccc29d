//! Values of rows.

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
