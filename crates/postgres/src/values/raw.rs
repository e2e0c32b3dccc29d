//! The bytes of values as the server sent them, and why they cannot become Arrow values.

use std::error::Error as StdError;

use tidegate_core::{Error, ErrorKind};
use tokio_postgres::types::{FromSql, Type};

/// The bytes of a value of any type, borrowed from the row; `None` is NULL.
pub(crate) struct RawBytes<'a>(pub(crate) Option<&'a [u8]>);

impl<'a> FromSql<'a> for RawBytes<'a> {
    fn from_sql(_kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_kind: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }
}

/// Reads a value with several parts.
pub(super) struct ValueReader<'a>(pub(super) &'a [u8]);

impl<'a> ValueReader<'a> {
    pub(super) fn int32(&mut self) -> Result<i32, ValueError> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(super) fn uint32(&mut self) -> Result<u32, ValueError> {
        self.fixed().map(u32::from_be_bytes)
    }

    pub(super) fn int64(&mut self) -> Result<i64, ValueError> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub(super) fn int16(&mut self) -> Result<i16, ValueError> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(super) fn uint16(&mut self) -> Result<u16, ValueError> {
        self.fixed().map(u16::from_be_bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ValueError> {
        self.fixed().map(|[byte]| byte)
    }

    /// A value that is preceded by its length; -1 is NULL.
    pub(super) fn read_value(&mut self) -> Result<Option<&'a [u8]>, ValueError> {
        let length = self.int32()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| ValueError::Malformed)?;
        let (value, rest) = self.0.split_at_checked(length).ok_or(ValueError::Malformed)?;
        self.0 = rest;
        Ok(Some(value))
    }

    /// Fails if bytes are left.
    pub(super) fn expect_end(self) -> Result<(), ValueError> {
        if self.0.is_empty() { Ok(()) } else { Err(ValueError::Malformed) }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ValueError> {
        let (value, rest) = self.0.split_first_chunk::<N>().ok_or(ValueError::Malformed)?;
        self.0 = rest;
        Ok(*value)
    }
}

pub(super) fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| ValueError::Malformed)
}

/// Why a value cannot become an Arrow value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueError {
    /// The bytes are not the binary form of the type.
    Malformed,
    /// NaN, in a column of decimals.
    NotANumber,
    /// A date, timestamp or interval that exceeds its Arrow type.
    OutOfRange(&'static str),
    /// An array of more than one dimension.
    Dimensions(i32),
    /// A value or a batch of more than 2 GiB.
    TooLarge,
    /// Text that is not UTF-8, as a server with the encoding SQL_ASCII may send.
    NotUtf8,
}

impl ValueError {
    /// The error for the caller; `column` is the name of the value's column.
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
