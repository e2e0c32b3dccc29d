//! The types of the groups of a pattern.

use thiserror::Error;

use crate::column::EntryColumnType;
use crate::entry::{Piece, Slot};
use crate::time::{EntryTimeFormat, TimeFormatError, TimeResolver};
use tidegate_core::suggestion;

/// The type of a group of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternGroupType {
    /// The text as it is.
    Text,
    /// A signed integer.
    Integer,
    /// A floating-point number.
    Float,
    /// `true` or `false`.
    Boolean,
    /// A time in this form.
    Time(EntryTimeFormat),
}

/// The names of the types of groups, as the configuration writes them.
const GROUP_TYPE_NAMES: [&str; 5] = ["text", "integer", "float", "boolean", "time"];

/// A declared type of a group that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternGroupTypeError {
    /// No type has this name.
    #[error("unknown type \"{name}\"{suggestion}; the types are {}", GROUP_TYPE_NAMES.join(", "))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// A sentence part with the nearest name, or empty.
        suggestion: String,
    },
    /// Only times have a format.
    #[error("the type \"{0}\" has no format; only \"time\" has one")]
    UnexpectedFormat(String),
    /// The format of a time is wrong.
    #[error(transparent)]
    TimeFormat(#[from] TimeFormatError),
}

/// A group of a pattern whose type is declared beside the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredGroup {
    /// The name of the column: the name of the group without its suffix.
    pub name: String,
    /// The type.
    pub group_type: PatternGroupType,
}

impl PatternGroupType {
    /// The type with this name: `text`, `integer` (`int`), `float`, `boolean` (`bool`) or `time`. A time may have a format,
    /// see [`EntryTimeFormat::parse`]; without it, the usual forms are recognised.
    ///
    /// # Errors
    ///
    /// If the name is unknown, with the nearest name; if the format is wrong, with the position.
    pub fn from_name(name: &str, time_format: Option<&str>) -> Result<Self, PatternGroupTypeError> {
        let group_type = match name {
            "text" => Self::Text,
            "int" | "integer" => Self::Integer,
            "float" => Self::Float,
            "bool" | "boolean" => Self::Boolean,
            "time" => Self::Time(time_format.map_or_else(|| Ok(EntryTimeFormat::any()), EntryTimeFormat::parse)?),
            _ => {
                let suggestion = suggestion(name, GROUP_TYPE_NAMES);
                return Err(PatternGroupTypeError::Unknown { name: name.to_owned(), suggestion });
            }
        };
        if time_format.is_some() && !matches!(group_type, Self::Time(_)) {
            return Err(PatternGroupTypeError::UnexpectedFormat(name.to_owned()));
        }
        Ok(group_type)
    }

    pub(super) fn column_type(&self) -> EntryColumnType {
        match self {
            Self::Text => EntryColumnType::Text,
            Self::Integer => EntryColumnType::Integer,
            Self::Float => EntryColumnType::Float,
            Self::Boolean => EntryColumnType::Boolean,
            Self::Time(_) => EntryColumnType::Timestamp,
        }
    }

    /// The value of `content`. Of a type other than text, nothing and `-` are null.
    pub(super) fn value(&self, piece: Piece, content: &str, times: &mut TimeResolver) -> Result<Slot, &'static str> {
        if *self == Self::Text {
            return Ok(Slot::Text(piece));
        }
        let content = content.trim();
        if content.is_empty() || content == "-" {
            return Ok(Slot::Null);
        }
        match self {
            Self::Text => Ok(Slot::Text(piece)),
            Self::Integer => content.parse().map(Slot::Integer).map_err(|_| "an integer"),
            Self::Float => content.parse().map(Slot::Float).map_err(|_| "a number"),
            Self::Boolean => content.to_ascii_lowercase().parse().map(Slot::Boolean).map_err(|_| "true or false"),
            Self::Time(format) => {
                times.formatted_time(content, format).map(Slot::Timestamp).ok_or("a time in the declared form")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types() {
        let error = |name, format| PatternGroupType::from_name(name, format).expect_err("an error").to_string();
        assert_eq!(
            error("flaot", None),
            "unknown type \"flaot\"; did you mean \"float\"?; the types are text, integer, float, boolean, time"
        );
        assert_eq!(error("text", Some("%F")), "the type \"text\" has no format; only \"time\" has one");
        assert!(error("time", Some("%F %Q")).contains("at character 4"));
        assert!(matches!(PatternGroupType::from_name("time", Some("%F")), Ok(PatternGroupType::Time(_))));
    }
}
