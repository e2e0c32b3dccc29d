//! The columns of a body that no table describes, from its first rows: the type that holds all values of a column exactly.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::coding::BodyDecompressor;
use crate::column::{NameIndex, json_field};
use crate::csv::CsvRows;
use crate::error::{BodyError, CellError, CellResult, RejectedRow, RowPosition};
use crate::json::{JsonCursor, JsonDocument, JsonKind, JsonLines};
use crate::options::{BodyFormat, BodyOptions};
use crate::rows::RecordSink;
use crate::value::{ColumnZone, NumberParts, NumberSyntax, nearest_f64, parse_date, parse_timestamp};

/// How many bytes of a body are enough to infer its columns, after decompression.
pub const INFERENCE_BYTES: usize = 1 << 20;

/// The columns that the first bytes of a body have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferredSchema {
    /// The columns in the order in which they appear, all of them nullable.
    pub schema: SchemaRef,
    /// How many rows they were inferred from. Arrow and Parquet name their columns, which needs none.
    pub rows: u64,
}

/// Infers the columns of a body from its beginning, as it was sent: compressed if the body is. [`INFERENCE_BYTES`] are
/// enough. A row that is cut off at the end counts as not there.
///
/// Types hold all values that were seen exactly: integers that are wider than 64 bits are decimals, numbers with leading
/// zeros are text, and columns with values of several kinds are text (in JSON, text that is JSON).
///
/// # Errors
///
/// If the beginning does not have the format, or has no columns.
pub fn infer_schema(head: &[u8], options: &BodyOptions) -> Result<InferredSchema, BodyError> {
    let bytes = decompress_head(head, options)?;
    if options.format == BodyFormat::Arrow {
        let schema = crate::arrow_stream::schema_of_head(&bytes, &options.limits)?;
        return Ok(InferredSchema { schema, rows: 0 });
    }
    let mut sample = SampledColumns::default();
    sample.read(&bytes, options)?;
    if sample.guesses.is_empty() {
        return Err(BodyError::Columns(
            "the body has no rows with columns, so that there is nothing to infer".to_owned(),
        ));
    }
    let fields = sample.fields(options.format).collect::<Vec<_>>();
    Ok(InferredSchema { schema: Arc::new(Schema::new(fields)), rows: sample.rows })
}

/// The columns of `sample` that `known` does not have, from decompressed bytes.
pub(crate) fn infer_new_columns(sample: &[u8], options: &BodyOptions, known: &NameIndex) -> Vec<Field> {
    let mut columns = SampledColumns::default();
    // What is malformed is reported when the rows are read.
    let _ = columns.read(sample, options);
    let is_known = |guess: &TypeGuess| options.format == BodyFormat::Csv || *guess != TypeGuess::Unknown;
    let fields = columns.fields(options.format).zip(&columns.guesses).filter(|(_, guess)| is_known(guess));
    fields.map(|(field, _)| field).filter(|field| known.find(field.name(), 0).is_none()).collect()
}

/// The column that holds a value of JSON, or nothing if it is null or no JSON.
pub(crate) fn infer_json_field(name: &str, value: &str) -> Option<Field> {
    let mut guess = TypeGuess::Unknown;
    guess.add_json(&mut JsonCursor::new(value)).ok()?;
    (guess != TypeGuess::Unknown).then(|| guess.field(name, BodyFormat::Json))
}

/// The decompressed beginning of a body. What a decoder has not received is missing at the end.
fn decompress_head(head: &[u8], options: &BodyOptions) -> Result<Vec<u8>, BodyError> {
    let mut decompressor = BodyDecompressor::new(options.coding, &options.limits)?;
    let mut bytes = Vec::new();
    let mut rest = head;
    while bytes.len() < INFERENCE_BYTES {
        let (used, piece) = decompressor.next_piece(rest)?;
        if used == 0 && piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(piece);
        rest = rest.get(used..).unwrap_or_default();
    }
    Ok(bytes)
}

/// What was seen in the columns of a sample.
#[derive(Debug, Default)]
struct SampledColumns {
    names: NameIndex,
    guesses: Vec<TypeGuess>,
    rows: u64,
    columns_max: usize,
}

impl SampledColumns {
    fn read(&mut self, bytes: &[u8], options: &BodyOptions) -> Result<(), BodyError> {
        self.columns_max = options.limits.columns_max;
        let row_bytes_max = options.limits.row_bytes_max;
        match options.format {
            BodyFormat::Json => JsonDocument::new(row_bytes_max).push(bytes, self),
            BodyFormat::Ndjson => {
                let mut lines = JsonLines::new(row_bytes_max);
                lines.push(bytes, self)?;
                // The last line may be cut off.
                let _ = lines.finish(self);
                Ok(())
            }
            BodyFormat::Csv => {
                let mut csv = CsvRows::new(options)?;
                csv.push(bytes, self)?;
                if self.rows == 0 {
                    let _ = csv.finish(self);
                }
                Ok(())
            }
            BodyFormat::Arrow | BodyFormat::Parquet => {
                Err(BodyError::Options(format!("the columns of {} are named, not inferred", options.format.name())))
            }
        }
    }

    fn fields(&self, format: BodyFormat) -> impl Iterator<Item = Field> {
        self.guesses.iter().enumerate().map(move |(position, guess)| guess.field(self.names.name(position), format))
    }

    fn guess_of(&mut self, name: &str, expected: usize) -> CellResult<usize> {
        if let Some(position) = self.names.find(name, expected) {
            return Ok(position);
        }
        if self.guesses.len() >= self.columns_max {
            return Err(CellError::new(format!("there are more than {} columns", self.columns_max)));
        }
        self.names.check_new(name).map_err(CellError::new)?;
        self.names.push(name.to_owned()).map_err(CellError::new)?;
        self.guesses.push(TypeGuess::Unknown);
        Ok(self.guesses.len() - 1)
    }
}

impl RecordSink for SampledColumns {
    fn append_object(&mut self, text: &str) -> CellResult<()> {
        let mut cursor = JsonCursor::new(text);
        if cursor.kind()? != JsonKind::Object {
            return Err(CellError::new("a row is an object with the names of the columns"));
        }
        let (mut is_first, mut expected) = (true, 0);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let position = self.guess_of(name, expected)?;
            expected = position + 1;
            if let Some(guess) = self.guesses.get_mut(position) {
                guess.add_json(&mut cursor)?;
            }
        }
        Ok(cursor.expect_end()?)
    }

    fn has_column(&self, name: &str) -> bool {
        self.names.find(name, 0).is_some()
    }

    fn named_columns(&mut self, line: u64, names: &[&str]) -> Result<Vec<usize>, BodyError> {
        let positions = names.iter().map(|name| self.guess_of(name, usize::MAX)).collect::<CellResult<Vec<_>>>();
        positions.map_err(|error| BodyError::Columns(format!("line {line}: {}", error.reason)))
    }

    fn unnamed_columns(&mut self, fields: usize) -> Vec<usize> {
        let fields = fields.min(self.columns_max);
        (1..=fields).filter_map(|number| self.guess_of(&format!("column_{number}"), usize::MAX).ok()).collect()
    }

    fn append_fields<'a>(&mut self, fields: impl Iterator<Item = (usize, Option<Cow<'a, str>>)>) -> CellResult<()> {
        for (position, text) in fields {
            if let (Some(guess), Some(text)) = (self.guesses.get_mut(position), text) {
                guess.add_text(&text);
            }
        }
        Ok(())
    }

    fn record(&mut self, _position: RowPosition, _text: &[u8], appended: CellResult<()>) -> Result<(), BodyError> {
        self.rows += u64::from(appended.is_ok());
        Ok(())
    }

    fn reject(&mut self, _row: RejectedRow) -> Result<(), BodyError> {
        Ok(())
    }
}

/// The type of text in inferred columns.
const TEXT: DataType = DataType::Utf8;

/// Objects with more members, and values that are nested more deeply, become text that is JSON.
const MEMBERS_MAX: usize = 200;
const DEPTH_MAX: usize = 8;
/// Digits that a decimal of 128 bits holds.
const DECIMAL_DIGITS_MAX: usize = 38;
/// Writers of doubles need so many digits at most, so that numbers with as many are taken for doubles.
const DOUBLE_DIGITS_MAX: usize = 17;
/// All integers up to this one are doubles.
const EXACT_INTEGER_MAX: i128 = 1 << 53;
const MICROSECOND_DIGITS: usize = 6;

/// What the values of a column have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TypeGuess {
    /// There are none but nulls.
    Unknown,
    Boolean,
    Number(NumberGuess),
    Text(TextGuess),
    List(Box<TypeGuess>),
    Object(Vec<(String, TypeGuess)>),
    /// Values of several kinds.
    Mixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NumberGuess {
    is_integer: bool,
    fits_64_bits: bool,
    is_double: bool,
    has_exponent: bool,
    integer_digits: usize,
    fraction_digits: usize,
}

/// Which forms all texts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextGuess {
    is_date: bool,
    has_zone: bool,
    is_local: bool,
    needs_nanoseconds: bool,
}

impl TypeGuess {
    /// Adds the next value of `cursor`.
    fn add_json(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        self.add_nested(cursor, DEPTH_MAX)
    }

    fn add_nested(&mut self, cursor: &mut JsonCursor<'_>, depth: usize) -> CellResult<()> {
        match cursor.kind()? {
            JsonKind::Null => {}
            JsonKind::Boolean(_) => self.add(Self::Boolean),
            JsonKind::Number => self.add(NumberGuess::of(cursor.number()?).map_or(Self::Mixed, Self::Number)),
            JsonKind::String => self.add(Self::Text(TextGuess::of(cursor.string()?))),
            _ if depth == 0 || *self == Self::Mixed => {
                cursor.raw_value()?;
                *self = Self::Mixed;
            }
            JsonKind::Array => self.add_array(cursor, depth - 1)?,
            JsonKind::Object => self.add_object(cursor, depth - 1)?,
        }
        Ok(())
    }

    fn add_array(&mut self, cursor: &mut JsonCursor<'_>, depth: usize) -> CellResult<()> {
        if *self == Self::Unknown {
            *self = Self::List(Box::new(Self::Unknown));
        }
        let Self::List(item) = self else {
            cursor.raw_value()?;
            *self = Self::Mixed;
            return Ok(());
        };
        let mut is_first = true;
        while cursor.next_item(&mut is_first)? {
            item.add_nested(cursor, depth)?;
        }
        Ok(())
    }

    fn add_object(&mut self, cursor: &mut JsonCursor<'_>, depth: usize) -> CellResult<()> {
        if *self == Self::Unknown {
            *self = Self::Object(Vec::new());
        }
        let Self::Object(members) = self else {
            cursor.raw_value()?;
            *self = Self::Mixed;
            return Ok(());
        };
        let mut is_first = true;
        while let Some(name) = cursor.next_name(&mut is_first)? {
            if members.len() > MEMBERS_MAX {
                cursor.raw_value()?;
                continue;
            }
            let position = members.iter().position(|(other, _)| other == name).unwrap_or_else(|| {
                members.push((name.to_owned(), Self::Unknown));
                members.len() - 1
            });
            if let Some((_, guess)) = members.get_mut(position) {
                guess.add_nested(cursor, depth)?;
            }
        }
        if members.len() > MEMBERS_MAX {
            *self = Self::Mixed;
        }
        Ok(())
    }

    /// Adds a field of CSV that is not null.
    fn add_text(&mut self, text: &str) {
        let guess = if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Self::Boolean
        } else if let Some(number) = NumberGuess::of(text) {
            Self::Number(number)
        } else {
            Self::Text(TextGuess::of(text))
        };
        self.add(guess);
    }

    fn add(&mut self, other: Self) {
        let merged = match (&*self, other) {
            (Self::Unknown, other) => other,
            (Self::Number(a), Self::Number(b)) => Self::Number(a.merge(b)),
            (Self::Text(a), Self::Text(b)) => Self::Text(a.merge(b)),
            (a, b) if *a == b => return,
            _ => Self::Mixed,
        };
        *self = merged;
    }

    /// The column with this name.
    fn field(&self, name: &str, format: BodyFormat) -> Field {
        let of_type = |data_type| Field::new(name, data_type, true);
        let mixed = || if format == BodyFormat::Csv { of_type(TEXT) } else { json_field(name) };
        match self {
            Self::Unknown => of_type(TEXT),
            Self::Boolean => of_type(DataType::Boolean),
            Self::Number(number) => number.data_type().map_or_else(mixed, of_type),
            Self::Text(text) => of_type(text.data_type()),
            Self::List(item) => of_type(DataType::List(Arc::new(item.field(Field::LIST_FIELD_DEFAULT_NAME, format)))),
            // Parquet and Delta have no objects without members.
            Self::Object(members) if members.is_empty() => mixed(),
            Self::Object(members) => {
                let fields: Fields = members.iter().map(|(name, guess)| guess.field(name, format)).collect();
                of_type(DataType::Struct(fields))
            }
            Self::Mixed => mixed(),
        }
    }
}

impl NumberGuess {
    fn of(text: &str) -> Option<Self> {
        let parts = NumberParts::parse(text.as_bytes(), NumberSyntax::Json)?;
        let is_integer = parts.fraction.is_empty() && parts.exponent == 0;
        let value = if is_integer { parts.scaled(0).ok() } else { None };
        let digits = parts.integer.iter().chain(parts.fraction).skip_while(|digit| **digit == b'0').count();
        let is_double = match value {
            Some(value) => value.abs() <= EXACT_INTEGER_MAX,
            None => !is_integer && digits <= DOUBLE_DIGITS_MAX && nearest_f64(text, &parts).is_ok(),
        };
        Some(Self {
            is_integer,
            fits_64_bits: value.is_some_and(|value| i64::try_from(value).is_ok()),
            is_double,
            has_exponent: parts.exponent != 0,
            integer_digits: parts.integer.len(),
            fraction_digits: parts.fraction.len(),
        })
    }

    fn merge(self, other: Self) -> Self {
        Self {
            is_integer: self.is_integer && other.is_integer,
            fits_64_bits: self.fits_64_bits && other.fits_64_bits,
            is_double: self.is_double && other.is_double,
            has_exponent: self.has_exponent || other.has_exponent,
            integer_digits: self.integer_digits.max(other.integer_digits),
            fraction_digits: self.fraction_digits.max(other.fraction_digits),
        }
    }

    /// The type, or nothing if no number type holds all values.
    fn data_type(self) -> Option<DataType> {
        if self.is_integer && self.fits_64_bits {
            return Some(DataType::Int64);
        }
        if !self.is_integer && self.is_double {
            return Some(DataType::Float64);
        }
        let is_decimal = !self.has_exponent && self.integer_digits + self.fraction_digits <= DECIMAL_DIGITS_MAX;
        let scale = i8::try_from(self.fraction_digits).ok()?;
        is_decimal.then_some(DataType::Decimal128(38, scale))
    }
}

impl TextGuess {
    fn of(text: &str) -> Self {
        let parses = |unit, zone| parse_timestamp(text, unit, zone).is_ok();
        let is_local =
            parses(TimeUnit::Nanosecond, ColumnZone::None) || parses(TimeUnit::Microsecond, ColumnZone::None);
        let is_utc = parses(TimeUnit::Nanosecond, ColumnZone::Utc) || parses(TimeUnit::Microsecond, ColumnZone::Utc);
        let fraction = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        let needs_nanoseconds = fraction > MICROSECOND_DIGITS;
        // A column of nanoseconds must hold all of them, which only reaches from 1677 to 2262.
        let fits = !needs_nanoseconds || parses(TimeUnit::Nanosecond, ColumnZone::Utc);
        Self {
            is_date: parse_date(text).is_ok(),
            has_zone: is_utc && !is_local && fits,
            is_local: is_local && fits,
            needs_nanoseconds,
        }
    }

    fn merge(self, other: Self) -> Self {
        Self {
            is_date: self.is_date && other.is_date,
            has_zone: self.has_zone && other.has_zone,
            is_local: self.is_local && other.is_local,
            needs_nanoseconds: self.needs_nanoseconds || other.needs_nanoseconds,
        }
    }

    fn data_type(self) -> DataType {
        let unit = if self.needs_nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        if self.is_date {
            DataType::Date32
        } else if self.has_zone {
            DataType::Timestamp(unit, Some("UTC".into()))
        } else if self.is_local {
            DataType::Timestamp(unit, None)
        } else {
            TEXT
        }
    }
}
