//! The columns of a format: names, types and roles.

/// The type of a column, which all of its values have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryColumnType {
    /// UTF-8 text.
    Text,
    /// A signed integer of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Float,
    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    Timestamp,
    /// True or false.
    Boolean,
}

impl EntryColumnType {
    /// The name of the type, as error messages and the configuration write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Timestamp => "time",
            Self::Boolean => "boolean",
        }
    }

    /// The type that holds the values of both.
    pub(crate) fn widened_to(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Integer | Self::Float, Self::Integer | Self::Float) => Self::Float,
            _ => Self::Text,
        }
    }
}

/// What a column means for a search over logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryColumnRole {
    /// When the entry was written. At most one column has this role.
    Time,
    /// The text for people. At most one column has this role.
    Message,
    /// How severe the entry is, as written. At most one column has this role.
    Severity,
    /// Anything else.
    Field,
}

/// One column of the entries of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryColumn {
    /// The name, unique within the schema.
    pub name: String,
    /// The type of the values.
    pub column_type: EntryColumnType,
    /// The meaning of the column.
    pub role: EntryColumnRole,
}

/// A column that a format always has.
pub(crate) type FixedColumn = (&'static str, EntryColumnType, EntryColumnRole);

impl EntryColumn {
    pub(crate) fn new(name: impl Into<String>, column_type: EntryColumnType, role: EntryColumnRole) -> Self {
        Self { name: name.into(), column_type, role }
    }
}
