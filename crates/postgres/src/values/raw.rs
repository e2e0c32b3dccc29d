//! The bytes of values as the server sent them.

use std::error::Error as StdError;

use tokio_postgres::types::{FromSql, Type};

use super::value_error::ValueError;

/// A value of any type as its bytes, borrowed from the row; none for NULL.
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

/// The bytes of a value that has parts, read from its front.
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

    /// A value with its length in front; -1 is NULL.
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

    /// Nothing may be left.
    pub(super) fn expect_end(self) -> Result<(), ValueError> {
        if self.0.is_empty() { Ok(()) } else { Err(ValueError::Malformed) }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ValueError> {
        let (value, rest) = self.0.split_first_chunk::<N>().ok_or(ValueError::Malformed)?;
        self.0 = rest;
        Ok(*value)
    }
}

/// The bytes of a value that always has `N` of them.
pub(super) fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| ValueError::Malformed)
}
