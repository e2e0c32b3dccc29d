//! Why a value did not become an Arrow value.

use tidegate_core::{Error, ErrorKind};

/// Why a value did not become an Arrow value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueError {
    /// Its bytes are not the binary form of its type.
    Malformed,
    /// NaN, in a column of decimals.
    NotANumber,
    /// A timestamp or interval beyond what 64 bits hold.
    OutOfRange(&'static str),
    /// An array of more than one dimension.
    Dimensions(i32),
    /// A value or a batch of more than 2 GiB.
    TooLarge,
    /// Text that is not UTF-8, as a server with the encoding SQL_ASCII may send.
    NotUtf8,
}

impl ValueError {
    /// The error for the reader, who knows the value's column as `column`.
    pub(super) fn into_error(self, column: &str) -> Error {
        let invalid = |subject: String, hint: &str| {
            Error::new(ErrorKind::InvalidArguments, format!("column {column:?} holds {subject}")).with_hint(hint)
        };
        match self {
            Self::Malformed => Error::internal(format!("a value of column {column:?} has not its type's binary form")),
            Self::NotANumber => {
                invalid("NaN, which is no decimal number".to_owned(), "Cast it to text in the SQL: column::text.")
            }
            Self::OutOfRange(subject) => {
                invalid(format!("{subject} beyond 64 bits"), "Cast it to text in the SQL: column::text.")
            }
            Self::Dimensions(dimensions) => invalid(
                format!("an array of {dimensions} dimensions; lists have one"),
                "Select it as JSON or text: to_json(column) or column::text.",
            ),
            Self::TooLarge => {
                Error::new(ErrorKind::TooLarge, format!("the values of column {column:?} are beyond 2 GiB at once"))
                    .with_hint("Select less of it, such as left(column, 1000).")
            }
            Self::NotUtf8 => invalid(
                "text that is not UTF-8".to_owned(),
                "Select its bytes: convert_to(column, getdatabaseencoding()).",
            ),
        }
    }
}
