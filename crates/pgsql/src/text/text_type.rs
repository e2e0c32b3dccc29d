//! The types of the arguments and results of text functions.

use datafusion::arrow::datatypes::DataType;

use crate::data_type::is_text_or_dictionary as is_text;
use crate::list::list_type;

/// The type of an argument or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextType {
    Text,
    Int,
    /// An integer of at most 32 bits, for functions that treat wider integers differently.
    Int32,
    BigInt,
    Boolean,
    Bytes,
    /// Bytes, or an untyped literal, which is parsed as bytes.
    ByteLiteral,
    TextList,
    TextLists,
    /// A value of any type, as its output function writes it.
    Any,
    /// A value of any type, as a cast to text writes it.
    AsText,
}

impl TextType {
    pub(super) fn takes(self, data_type: &DataType) -> bool {
        match self {
            _ if *data_type == DataType::Null => true,
            Self::Any | Self::AsText => true,
            Self::Int32 => matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32),
            Self::Text => is_text(data_type),
            Self::Int | Self::BigInt => data_type.is_integer(),
            Self::Boolean => *data_type == DataType::Boolean,
            Self::Bytes => data_type.is_binary(),
            Self::ByteLiteral => data_type.is_binary() || is_text(data_type),
            Self::TextList => match data_type {
                DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                    !field.data_type().is_nested()
                }
                _ => false,
            },
            Self::TextLists => false,
        }
    }

    /// Returns the type that an argument of type `given` is coerced to.
    pub(super) fn coerced(self, data_type: &DataType) -> DataType {
        let text = || match data_type {
            DataType::LargeUtf8 | DataType::Utf8View => data_type.clone(),
            _ => DataType::Utf8,
        };
        match self {
            Self::Text => text(),
            Self::Int32 => DataType::Int32,
            Self::Int | Self::BigInt => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::ByteLiteral if is_text(data_type) => text(),
            Self::Bytes | Self::ByteLiteral => DataType::Binary,
            Self::TextList | Self::TextLists => match data_type {
                DataType::List(_) => data_type.clone(),
                DataType::LargeList(field) | DataType::FixedSizeList(field, _) => DataType::List(field.clone()),
                _ => list_type(DataType::Utf8),
            },
            Self::Any if *data_type == DataType::Boolean => DataType::Boolean,
            Self::Any if data_type.is_binary() => DataType::Binary,
            Self::Any | Self::AsText => text(),
        }
    }

    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Text | Self::Any | Self::AsText => DataType::Utf8,
            Self::Int | Self::Int32 => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::Bytes | Self::ByteLiteral => DataType::Binary,
            Self::TextList => list_type(DataType::Utf8),
            Self::TextLists => list_type(list_type(DataType::Utf8)),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int | Self::Int32 => "integer",
            Self::BigInt => "bigint",
            Self::Boolean => "boolean",
            Self::Bytes | Self::ByteLiteral => "bytea",
            Self::TextList | Self::TextLists => "array",
            Self::Any | Self::AsText => "any",
        }
    }
}
