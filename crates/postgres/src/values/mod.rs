//! Values between PostgreSQL and Arrow: binary results in, as record batches; bound parameters out, in text form, which the
//! server's input functions parse as the types that it inferred.
//!
//! | PostgreSQL | Arrow |
//! |---|---|
//! | `boolean`, `smallint`, `integer`, `bigint`, `real`, `double precision` | the same |
//! | `oid`, `xid`, `cid`; `xid8` | `UInt32`; `UInt64` |
//! | `numeric(p,s)` with p up to 38, 76 and s from 0 to p | `Decimal128`, `Decimal256` |
//! | any other `numeric` | `Utf8` with all digits, marked as a number |
//! | `text`, `varchar`, `char(n)`, `name`, `"char"`, `citext`, enums, `void` | `Utf8` |
//! | `uuid`, `inet`, `cidr`, `macaddr`, `macaddr8`, `bit`, `varbit` | `Utf8`, as PostgreSQL writes them |
//! | `json`, `jsonb` | `Utf8`, marked as JSON |
//! | `bytea` | `Binary` |
//! | `date`, `time`, `timestamp`, `timestamptz` | `Date32`, `Time64(µs)`, `Timestamp(µs)`, `Timestamp(µs, UTC)` |
//! | `interval` | `Interval(MonthDayNano)` |
//! | arrays of these, of one dimension | `List` |
//! | composites of these | `Struct` |
//! | domains | as the type below them |
//!
//! Columns of other types are selected as `column::text` and decoded by [`ColumnDecoder::for_text`]. Infinite dates,
//! timestamps and intervals are the minimum and maximum values of their Arrow types, which formats write as `-infinity`
//! and `infinity`. A value that Arrow cannot represent is an error, never another value.

mod array;
mod column;

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use bytes::BytesMut;
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_sql::Parameter;
use tokio_postgres::Row;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};

pub use column::{ColumnDecoder, arrow_schema, type_name};
pub(crate) use column::{DAYS_TO_EPOCH, MICROSECONDS_OF_DAY, MICROSECONDS_TO_EPOCH, numeric_modifier};

use array::ArrayBuilder;

/// The text of a `numeric` in its binary form.
#[cfg(test)]
pub(crate) fn write_numeric_text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    column::write_numeric(bytes, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Builds the record batches of one result.
pub struct BatchBuilder {
    schema: SchemaRef,
    arrays: Vec<ArrayBuilder>,
    rows: usize,
}

impl BatchBuilder {
    /// Creates an empty batch for `columns`.
    pub fn new(columns: &[ColumnDecoder]) -> Self {
        let arrays = columns.iter().map(ArrayBuilder::new).collect();
        Self { schema: arrow_schema(columns), arrays, rows: 0 }
    }

    /// Appends a row. After an error, the builder contains part of a row and must not be used again.
    ///
    /// # Errors
    /// `InvalidArguments` with the column and what to select instead, if Arrow cannot represent a value; `TooLarge` if
    /// the batch exceeds 2 GiB.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        if row.len() != self.arrays.len() {
            let expected = self.arrays.len();
            return Err(Error::internal(format!("the server sent rows of {} columns, not of {expected}", row.len())));
        }
        for (index, array) in self.arrays.iter_mut().enumerate() {
            let RawBytes(value) = row
                .try_get(index)
                .map_err(|error| Error::internal(format!("column {index} of a row cannot be read: {error}")))?;
            array.append(value).map_err(|refusal| refusal.into_error(self.schema.field(index).name()))?;
        }
        self.rows += 1;
        Ok(())
    }

    /// The number of rows since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The size of these rows in bytes. It may exceed what the server sent: a number of a few bytes may have a hundred
    /// thousand digits.
    pub fn bytes(&self) -> usize {
        self.arrays.iter().map(ArrayBuilder::bytes).sum()
    }

    /// Takes the rows since the last batch as a batch. After an error, the builder must not be used again.
    ///
    /// # Errors
    /// `InvalidArguments` if the text of a column is not UTF-8.
    pub fn finish(&mut self) -> Result<RecordBatch, Error> {
        let mut columns = Vec::with_capacity(self.arrays.len());
        for (array, field) in self.arrays.iter_mut().zip(self.schema.fields()) {
            columns.push(array.finish().map_err(|refusal| refusal.into_error(field.name()))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::internal(format!("the rows do not make a batch: {error}")))
    }
}

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
struct ValueReader<'a>(&'a [u8]);

impl<'a> ValueReader<'a> {
    fn int32(&mut self) -> Result<i32, ValueError> {
        self.fixed().map(i32::from_be_bytes)
    }

    fn uint32(&mut self) -> Result<u32, ValueError> {
        self.fixed().map(u32::from_be_bytes)
    }

    fn int64(&mut self) -> Result<i64, ValueError> {
        self.fixed().map(i64::from_be_bytes)
    }

    fn int16(&mut self) -> Result<i16, ValueError> {
        self.fixed().map(i16::from_be_bytes)
    }

    fn uint16(&mut self) -> Result<u16, ValueError> {
        self.fixed().map(u16::from_be_bytes)
    }

    fn byte(&mut self) -> Result<u8, ValueError> {
        self.fixed().map(|[byte]| byte)
    }

    /// A value that is preceded by its length; -1 is NULL.
    fn read_value(&mut self) -> Result<Option<&'a [u8]>, ValueError> {
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
    fn expect_end(self) -> Result<(), ValueError> {
        if self.0.is_empty() { Ok(()) } else { Err(ValueError::Malformed) }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ValueError> {
        let (value, rest) = self.0.split_first_chunk::<N>().ok_or(ValueError::Malformed)?;
        self.0 = rest;
        Ok(*value)
    }
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| ValueError::Malformed)
}

/// Why a value cannot become an Arrow value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueError {
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
    fn into_error(self, column: &str) -> Error {
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

/// A parameter in the form that PostgreSQL accepts.
#[derive(Debug, Clone, Copy)]
pub struct BoundParameter<'a>(&'a Parameter);

impl<'a> BoundParameter<'a> {
    /// Binds the `parameters` in order, `$1` first.
    ///
    /// # Errors
    /// `InvalidArguments` with each text that contains a NUL character, which PostgreSQL cannot store.
    pub fn bind_all(parameters: &'a [Parameter]) -> Result<Vec<Self>, Error> {
        let holds_nul = |parameter: &Parameter| matches!(parameter, Parameter::Text(text) if text.contains('\0'));
        let violations: Vec<Violation> = parameters
            .iter()
            .enumerate()
            .filter(|(_, parameter)| holds_nul(parameter))
            .map(|(index, _)| Violation {
                path: format!("${}", index + 1),
                message: "the text holds a NUL character, which PostgreSQL cannot store or compare".to_owned(),
            })
            .collect();
        if !violations.is_empty() {
            return Err(Error::invalid_arguments("a parameter cannot be bound", violations));
        }
        Ok(parameters.iter().map(Self).collect())
    }
}

impl ToSql for BoundParameter<'_> {
    fn to_sql(&self, _kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            Parameter::Null => return Ok(IsNull::Yes),
            Parameter::Boolean(value) => write!(out, "{value}")?,
            Parameter::Integer(value) => write!(out, "{value}")?,
            Parameter::Float(value) if value.is_infinite() => {
                out.write_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })?;
            }
            // The shortest digits that parse to the same number, without an exponent: `3` is also a valid integer.
            Parameter::Float(value) => write!(out, "{value}")?,
            Parameter::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    fn encode_format(&self, _kind: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parameter: &Parameter) -> Option<String> {
        let bound = BoundParameter::bind_all(std::slice::from_ref(parameter)).unwrap();
        let mut out = BytesMut::new();
        match bound[0].to_sql_checked(&Type::POINT, &mut out).unwrap() {
            IsNull::Yes => None,
            IsNull::No => Some(String::from_utf8(out.to_vec()).unwrap()),
        }
    }

    #[test]
    fn parameters_are_sent_as_text() {
        assert_eq!(written(&Parameter::Null), None);
        let cases = [
            (Parameter::Boolean(true), "true"),
            (Parameter::Integer(i64::MIN), "-9223372036854775808"),
            (Parameter::Float(3.0), "3"),
            (Parameter::Float(-0.0), "-0"),
            (Parameter::Float(0.1), "0.1"),
            (Parameter::Float(f64::NAN), "NaN"),
            (Parameter::Float(f64::INFINITY), "Infinity"),
            (Parameter::Float(f64::NEG_INFINITY), "-Infinity"),
            (Parameter::Text("it's".to_owned()), "it's"),
        ];
        for (parameter, text) in cases {
            assert_eq!(written(&parameter).as_deref(), Some(text));
        }
    }

    #[test]
    fn nul_in_text_is_rejected_with_its_position() {
        let parameters = [Parameter::Integer(1), Parameter::Text("a\0b".to_owned())];
        insta::assert_snapshot!(BoundParameter::bind_all(&parameters).unwrap_err(), @r"
        a parameter cannot be bound
        - $2: the text holds a NUL character, which PostgreSQL cannot store or compare
        ");
    }

    proptest::proptest! {
        #[test]
        fn floats_read_back_the_same(bits: u64) {
            let float = f64::from_bits(bits);
            let back: f64 = written(&Parameter::Float(float)).unwrap().parse().unwrap();
            proptest::prop_assert!(back.to_bits() == bits || back.is_nan() && float.is_nan());
        }
    }
}
