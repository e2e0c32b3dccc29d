//! Descriptions of tables as data, and values of their rows: what a model reads before it calls, and what a call is checked
//! against.

use std::borrow::Cow;

/// The type of a column or parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SystemColumnType {
    /// Text.
    Text,
    /// A signed 64-bit number.
    Integer,
    /// An unsigned 64-bit number.
    Unsigned,
    /// A 64-bit number with a fraction.
    Float,
    /// True or false.
    Boolean,
    /// A time in UTC with microseconds.
    Timestamp,
    /// A duration in seconds, with a fraction.
    Duration,
}

impl SystemColumnType {
    /// The name of the type, such as `unsigned`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether `value` is null or of this type.
    pub fn accepts(self, value: &SystemValue) -> bool {
        match value {
            SystemValue::Null => true,
            SystemValue::Text(_) => self == Self::Text,
            SystemValue::Integer(_) => self == Self::Integer,
            SystemValue::Unsigned(_) => self == Self::Unsigned,
            SystemValue::Float(_) => matches!(self, Self::Float | Self::Duration),
            SystemValue::Boolean(_) => self == Self::Boolean,
            SystemValue::Timestamp(_) => self == Self::Timestamp,
        }
    }
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemColumn {
    /// The name, in snake case; it ends in the unit where one is needed.
    pub name: Cow<'static, str>,
    /// The type of the values.
    pub column_type: SystemColumnType,
    /// The unit, such as `bytes` or `percent`.
    pub unit: Option<Cow<'static, str>>,
    /// What the values mean.
    pub description: Cow<'static, str>,
    /// Whether values are masked for readers without the grant.
    pub is_sensitive: bool,
    /// Whether conditions on this column usually leave few rows.
    pub is_good_filter: bool,
}

impl SystemColumn {
    /// A column without a unit that everybody may read.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        column_type: SystemColumnType,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            column_type,
            unit: None,
            description: description.into(),
            is_sensitive: false,
            is_good_filter: false,
        }
    }

    /// The same column with a unit.
    pub fn with_unit(self, unit: impl Into<Cow<'static, str>>) -> Self {
        Self { unit: Some(unit.into()), ..self }
    }

    /// The same column, masked unless granted.
    pub fn sensitive(self) -> Self {
        Self { is_sensitive: true, ..self }
    }

    /// The same column, named as a good filter when an answer is too large.
    pub fn good_filter(self) -> Self {
        Self { is_good_filter: true, ..self }
    }
}

/// One optional parameter of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemParameter {
    /// The name, in snake case.
    pub name: Cow<'static, str>,
    /// The type of the value.
    pub parameter_type: SystemColumnType,
    /// What the parameter changes, and its default.
    pub description: Cow<'static, str>,
    /// The only valid texts; empty if every value of the type is valid.
    pub options: Vec<Cow<'static, str>>,
}

impl SystemParameter {
    /// A parameter with any value of its type.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        parameter_type: SystemColumnType,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name: name.into(), parameter_type, description: description.into(), options: Vec::new() }
    }

    /// The same parameter with these options.
    pub fn with_options<T: Into<Cow<'static, str>>>(self, options: impl IntoIterator<Item = T>) -> Self {
        Self { options: options.into_iter().map(Into::into).collect(), ..self }
    }

    /// What is wrong with `value`, and what would be right.
    pub fn problem(&self, value: &SystemValue) -> Option<String> {
        if value.is_null() || !self.parameter_type.accepts(value) {
            return Some(format!("must be of type {}", self.parameter_type.name()));
        }
        let is_option = |text| self.options.is_empty() || self.options.iter().any(|option| option == text);
        let text = value.as_text()?;
        if is_option(text) {
            return None;
        }
        let options = self.options.iter().map(|option| format!("{option:?}")).collect();
        Some(format!("must be {}", tidegate_core::join_alternatives(options)))
    }
}

/// A table, described for a model and for the check of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemTableDescription {
    /// The name.
    pub name: Cow<'static, str>,
    /// One sentence that says what a row is, and when to use the table.
    pub description: Cow<'static, str>,
    /// The columns, in the order of the values of a row.
    pub columns: Vec<SystemColumn>,
    /// The parameters.
    pub parameters: Vec<SystemParameter>,
}

impl SystemTableDescription {
    /// The position of a column and the column.
    pub fn column(&self, name: &str) -> Option<(usize, &SystemColumn)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name == name)
    }

    /// A parameter.
    pub fn parameter(&self, name: &str) -> Option<&SystemParameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// The names of the columns.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_ref())
    }
}

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
