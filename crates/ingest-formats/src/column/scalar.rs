//! Single values: which types they may have, and the numbers and texts of CSV, of keys of maps and of JSON that become values.

use std::collections::HashSet;

use arrow::array::BooleanBufferBuilder;
use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit, i256};

use super::{ByteRuns, ColumnBuffer, ColumnValues, NameIndex, offset_of};
use crate::error::{CellError, CellResult};
use crate::json::{JsonCursor, JsonKind};
use crate::options::{BinaryText, BodyOptions};
use crate::value::{
    ColumnZone, NumberMisfit, NumberParts, NumberSyntax, QUOTED_BYTES_MAX, TimeMisfit, append_binary, cut_at,
    nearest_f32, nearest_f64, parse_date, parse_time, parse_timestamp, quoted, special_float, unit_digits,
};

/// The empty values of a type, or the reason why text cannot have it.
pub(super) fn scalar_values(
    data_type: &DataType,
    is_json: bool,
    options: &BodyOptions,
    epoch_unit: Option<TimeUnit>,
) -> Result<ColumnValues, String> {
    let integer = |min, max| ColumnValues::Integer { values: Vec::new(), min, max };
    Ok(match data_type {
        DataType::Null => ColumnValues::Null,
        DataType::Boolean => ColumnValues::Boolean(BooleanBufferBuilder::new(0)),
        DataType::Int8 => integer(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => integer(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => integer(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => integer(i64::MIN, i64::MAX),
        DataType::UInt8 => integer(0, u8::MAX.into()),
        DataType::UInt16 => integer(0, u16::MAX.into()),
        DataType::UInt32 => integer(0, u32::MAX.into()),
        DataType::UInt64 => ColumnValues::Unsigned(Vec::new()),
        DataType::Float32 => ColumnValues::Float32(Vec::new()),
        DataType::Float64 => ColumnValues::Float64(Vec::new()),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => {
            ColumnValues::Decimal { values: Vec::new(), precision: *precision, scale: *scale }
        }
        DataType::Decimal256(precision, scale) => {
            ColumnValues::WideDecimal { values: Vec::new(), precision: *precision, scale: *scale }
        }
        DataType::Date32 | DataType::Date64 => ColumnValues::Date(Vec::new()),
        DataType::Time32(unit) | DataType::Time64(unit) => ColumnValues::Time { values: Vec::new(), unit: *unit },
        DataType::Timestamp(unit, zone) => {
            let zone = column_zone(zone.as_deref())?;
            ColumnValues::Timestamp { values: Vec::new(), unit: *unit, zone, epoch_unit }
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            ColumnValues::Text { text: ByteRuns::new(), is_json }
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            ColumnValues::Binary { bytes: ByteRuns::new(), encoding: options.binary_text, size: None }
        }
        DataType::FixedSizeBinary(size) => {
            let size = usize::try_from(*size).map_err(|_| "the type has a negative size".to_owned())?;
            ColumnValues::Binary { bytes: ByteRuns::new(), encoding: options.binary_text, size: Some(size) }
        }
        other => return Err(format!("JSON and CSV have no values of type {other}; send Arrow or Parquet")),
    })
}

fn column_zone(zone: Option<&str>) -> Result<ColumnZone, String> {
    match zone {
        None => Ok(ColumnZone::None),
        Some("UTC" | "Z" | "+00:00" | "Etc/UTC") => Ok(ColumnZone::Utc),
        Some(zone) => {
            zone.parse::<Tz>().map(ColumnZone::Zone).map_err(|_| format!("there is no time zone {}", quoted(zone)))
        }
    }
}

/// What a column takes, as messages say it.
pub(crate) fn describe_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "a boolean".to_owned(),
        DataType::Int8 => "an integer of 8 bits".to_owned(),
        DataType::Int16 => "an integer of 16 bits".to_owned(),
        DataType::Int32 => "an integer of 32 bits".to_owned(),
        DataType::Int64 => "an integer of 64 bits".to_owned(),
        DataType::UInt8 => "an unsigned integer of 8 bits".to_owned(),
        DataType::UInt16 => "an unsigned integer of 16 bits".to_owned(),
        DataType::UInt32 => "an unsigned integer of 32 bits".to_owned(),
        DataType::UInt64 => "an unsigned integer of 64 bits".to_owned(),
        DataType::Float32 => "a float of 32 bits".to_owned(),
        DataType::Float64 => "a double".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 | DataType::Date64 => "a date".to_owned(),
        DataType::Time32(unit) | DataType::Time64(unit) => format!("a time in {}", unit_name(*unit)),
        DataType::Timestamp(unit, None) => format!("a timestamp without zone in {}", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("a timestamp with zone {zone} in {}", unit_name(*unit)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytes".to_owned(),
        DataType::FixedSizeBinary(size) => format!("{size} bytes"),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "a list".to_owned(),
        DataType::Struct(_) => "an object".to_owned(),
        DataType::Map(..) => "a map".to_owned(),
        DataType::Dictionary(_, values) => describe_type(values),
        DataType::Null => "always null".to_owned(),
        other => other.to_string(),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

impl ColumnBuffer {
    /// Appends a number, from its text. Columns that take no numbers report that.
    #[inline]
    fn append_number(&mut self, text: &str, syntax: NumberSyntax) -> CellResult<()> {
        let Some(parts) = NumberParts::parse(text.as_bytes(), syntax) else {
            return Err(self.misfit(text));
        };
        let appended = match &mut self.values {
            ColumnValues::Integer { values, min, max } => parts.scaled(0).and_then(|value| {
                let value = i64::try_from(value).ok().filter(|value| (*min..=*max).contains(value));
                value.map(|value| values.push(value)).ok_or(NumberMisfit::Range)
            }),
            ColumnValues::Unsigned(values) => parts.scaled(0).and_then(|value| {
                u64::try_from(value).map(|value| values.push(value)).map_err(|_| NumberMisfit::Range)
            }),
            ColumnValues::Float64(values) => nearest_f64(text, &parts).map(|value| values.push(value)),
            ColumnValues::Float32(values) => nearest_f32(text, &parts).map(|value| values.push(value)),
            ColumnValues::Decimal { values, precision, scale } => parts.scaled(i32::from(*scale)).and_then(|value| {
                let is_within = value.unsigned_abs() < 10u128.saturating_pow(u32::from(*precision));
                is_within.then(|| values.push(value)).ok_or(NumberMisfit::Range)
            }),
            ColumnValues::WideDecimal { values, precision, scale } => {
                parts.scaled_256(i32::from(*scale)).and_then(|value| {
                    let is_within = decimal_digits(value) <= usize::from(*precision);
                    is_within.then(|| values.push(value)).ok_or(NumberMisfit::Range)
                })
            }
            ColumnValues::Timestamp { values, unit, epoch_unit: Some(epoch_unit), .. } => {
                let scale = unit_digits(*unit) - unit_digits(*epoch_unit);
                parts.scaled(scale).and_then(|value| {
                    i64::try_from(value).map(|value| values.push(value)).map_err(|_| NumberMisfit::Range)
                })
            }
            ColumnValues::Timestamp { .. } if syntax == NumberSyntax::Json => {
                return Err(CellError::new(format!(
                    "{text} is a number, and the column declares no unit since 1970; send text such as \"2024-02-29T12:34:56Z\""
                )));
            }
            _ if syntax == NumberSyntax::Json => return Err(self.bare_misfit(text)),
            _ => return Err(self.misfit(text)),
        };
        appended.map_err(|misfit| self.number_misfit(text, misfit))?;
        self.nulls.append_non_null();
        Ok(())
    }

    /// Appends the date, the time, the timestamp or the bytes that `text` stands for.
    fn append_written(&mut self, text: &str) -> CellResult<()> {
        let appended = match &mut self.values {
            ColumnValues::Date(values) => parse_date(text).map(|value| values.push(value)),
            ColumnValues::Time { values, unit } => parse_time(text, *unit).map(|value| values.push(value)),
            ColumnValues::Timestamp { values, unit, zone, .. } => {
                parse_timestamp(text, *unit, *zone).map(|value| values.push(value))
            }
            ColumnValues::Binary { bytes, encoding, size } => {
                let is_valid = append_binary(text, *encoding, &mut bytes.bytes);
                let length = bytes.open_length();
                if !is_valid {
                    let encoding = match encoding {
                        BinaryText::Base64 => "base64",
                        BinaryText::Hex => "hexadecimal digits",
                    };
                    return Err(CellError::new(format!("{} is not {encoding}", quoted(text))));
                }
                if size.is_some_and(|size| size != length) {
                    return Err(CellError::new(format!("it has {length} bytes; the column is {}", self.description())));
                }
                bytes.end_unchecked();
                Ok(())
            }
            _ => return Err(self.misfit(text)),
        };
        appended.map_err(|misfit| self.time_misfit(text, misfit))?;
        self.nulls.append_non_null();
        Ok(())
    }

    fn append_boolean(&mut self, value: bool) -> CellResult<()> {
        let ColumnValues::Boolean(values) = &mut self.values else {
            return Err(self.bare_misfit(&value.to_string()));
        };
        values.append(value);
        self.nulls.append_non_null();
        Ok(())
    }

    fn append_float(&mut self, value: f64) {
        match &mut self.values {
            ColumnValues::Float64(values) => values.push(value),
            #[allow(clippy::cast_possible_truncation, reason = "only for NaN and the infinities, which both have")]
            ColumnValues::Float32(values) => values.push(value as f32),
            _ => return,
        }
        self.nulls.append_non_null();
    }

    fn misfit(&self, text: &str) -> Box<CellError> {
        CellError::new(format!("{} does not fit; the column is {}", quoted(text), self.description()))
    }

    /// The same for a value that is no text.
    fn bare_misfit(&self, text: &str) -> Box<CellError> {
        let text = cut_at(text, QUOTED_BYTES_MAX);
        CellError::new(format!("{text} does not fit; the column is {}", self.description()))
    }

    fn number_misfit(&self, text: &str, misfit: NumberMisfit) -> Box<CellError> {
        let text = cut_at(text, QUOTED_BYTES_MAX);
        let reason = match misfit {
            NumberMisfit::Fraction => "has digits that the column does not hold",
            NumberMisfit::Range => "is out of range",
        };
        CellError::new(format!("{text} {reason}; the column is {}", self.description()))
    }

    fn time_misfit(&self, text: &str, misfit: TimeMisfit) -> Box<CellError> {
        let reason = match misfit {
            TimeMisfit::Form => return self.form_misfit(text),
            TimeMisfit::NoSuchTime => "does not exist in the calendar or on the clock",
            TimeMisfit::Fraction => "has digits that the column does not hold",
            TimeMisfit::Range => "is out of range",
            TimeMisfit::OffsetWithoutZone => "has an offset, which the column does not hold",
            TimeMisfit::AmbiguousLocalTime => {
                "is skipped or occurs twice when clocks change, and needs an offset such as +02:00"
            }
        };
        CellError::new(format!("{} {reason}; the column is {}", quoted(text), self.description()))
    }

    fn form_misfit(&self, text: &str) -> Box<CellError> {
        let example = match &self.values {
            ColumnValues::Date(_) => "2024-02-29",
            ColumnValues::Time { .. } => "12:34:56.789",
            ColumnValues::Timestamp { zone: ColumnZone::None, .. } => "2024-02-29T12:34:56",
            _ => "2024-02-29T12:34:56Z",
        };
        CellError::new(format!("{} does not have the form \"{example}\"", quoted(text)))
    }
}

/// The number of decimal digits.
fn decimal_digits(value: i256) -> usize {
    value.to_string().trim_start_matches('-').len()
}

impl ColumnBuffer {
    /// Appends the value that `text` stands for. Null is not a text; see [`Self::append_null`].
    #[inline]
    pub(crate) fn append_text(&mut self, text: &str) -> CellResult<()> {
        match &mut self.values {
            ColumnValues::Text { text: texts, is_json: false } => {
                texts.push(text.as_bytes());
                self.nulls.append_non_null();
                Ok(())
            }
            ColumnValues::Text { is_json: true, .. }
            | ColumnValues::List { .. }
            | ColumnValues::Struct { .. }
            | ColumnValues::Map { .. } => {
                let mut cursor = JsonCursor::new(text);
                self.append_json(&mut cursor)?;
                Ok(cursor.expect_end()?)
            }
            ColumnValues::Boolean(_) => match parse_boolean(text) {
                Some(value) => self.append_boolean(value),
                None => Err(self.misfit(text)),
            },
            ColumnValues::Float32(_) | ColumnValues::Float64(_) => match special_float(text) {
                Some(value) => {
                    self.append_float(value);
                    Ok(())
                }
                None => self.append_number(text, NumberSyntax::Text),
            },
            ColumnValues::Timestamp { epoch_unit: Some(_), .. } if !text.contains(':') => {
                self.append_number(text, NumberSyntax::Text)
            }
            ColumnValues::Date(_)
            | ColumnValues::Time { .. }
            | ColumnValues::Timestamp { .. }
            | ColumnValues::Binary { .. } => self.append_written(text),
            _ => self.append_number(text, NumberSyntax::Text),
        }
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("t") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") || text.eq_ignore_ascii_case("f") {
        Some(false)
    } else {
        None
    }
}

/// Maps with fewer keys are searched for a key that occurs twice; others are hashed.
const SEARCHED_KEYS_MAX: usize = 16;

impl ColumnBuffer {
    /// Appends the next value of `cursor`. After an error, the column must be truncated.
    #[inline]
    pub(crate) fn append_json(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        if let ColumnValues::Text { is_json: true, .. } = &self.values {
            return self.append_document(cursor);
        }
        match cursor.kind()? {
            JsonKind::Null => self.append_null(),
            JsonKind::Number => self.append_number(cursor.number()?, NumberSyntax::Json),
            JsonKind::String => self.append_json_string(cursor.string()?),
            JsonKind::Boolean(value) => self.append_boolean(value),
            JsonKind::Array => self.append_array(cursor),
            JsonKind::Object => self.append_object(cursor),
        }
    }

    fn append_json_string(&mut self, text: &str) -> CellResult<()> {
        match &mut self.values {
            ColumnValues::Text { text: texts, .. } => {
                texts.push(text.as_bytes());
                self.nulls.append_non_null();
                Ok(())
            }
            ColumnValues::Float32(_) | ColumnValues::Float64(_) => match special_float(text) {
                Some(value) => {
                    self.append_float(value);
                    Ok(())
                }
                None => Err(self.string_misfit(text)),
            },
            ColumnValues::Integer { .. }
            | ColumnValues::Unsigned(_)
            | ColumnValues::Decimal { .. }
            | ColumnValues::WideDecimal { .. }
            | ColumnValues::Boolean(_) => Err(self.string_misfit(text)),
            _ => self.append_written(text),
        }
    }

    /// The error of a string where the column takes numbers or booleans.
    fn string_misfit(&self, text: &str) -> Box<CellError> {
        let (kind, is_one) = match &self.values {
            ColumnValues::Boolean(_) => ("boolean", matches!(text, "true" | "false")),
            _ => ("number", NumberParts::parse(text.as_bytes(), NumberSyntax::Json).is_some()),
        };
        if !is_one {
            return self.misfit(text);
        }
        CellError::new(format!(
            "{} is a string, and the column is {}; send a {kind} without quotes",
            quoted(text),
            self.description()
        ))
    }

    /// Appends any value as it is written.
    fn append_document(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        let document = cursor.raw_value()?;
        if document == "null" {
            return self.append_null();
        }
        let ColumnValues::Text { text, .. } = &mut self.values else { return Err(self.misfit(document)) };
        text.push(document.as_bytes());
        self.nulls.append_non_null();
        Ok(())
    }

    fn append_array(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        let ColumnValues::List { offsets, item, size } = &mut self.values else {
            return Err(CellError::new(format!("it is an array; the column is {}", self.description())));
        };
        let start = item.len();
        let mut is_first = true;
        while cursor.next_item(&mut is_first)? {
            let index = item.len() - start;
            item.check_room().and_then(|()| item.append_json(cursor)).map_err(|error| error.in_item(index))?;
        }
        let length = item.len() - start;
        if let Some(size) = size.filter(|size| *size != length) {
            return Err(CellError::new(format!("it has {length} items; the column is a list of {size}")));
        }
        offsets.push(offset_of(item.len()));
        self.nulls.append_non_null();
        Ok(())
    }

    /// Checks that a list may have one more of these items.
    #[inline]
    fn check_room(&self) -> CellResult<()> {
        match self.len() < self.items_max {
            true => Ok(()),
            false => Err(CellError::new("the lists of the row take more memory than a row may have; split the row")),
        }
    }

    fn append_object(&mut self, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
        match &mut self.values {
            ColumnValues::Struct { names, members } => append_members(names, members, self.nulls.len(), cursor)?,
            ColumnValues::Map { offsets, key, value } => {
                append_entries(key, value, cursor)?;
                offsets.push(offset_of(key.len()));
            }
            _ => return Err(CellError::new(format!("it is an object; the column is {}", self.description()))),
        }
        self.nulls.append_non_null();
        Ok(())
    }
}

/// Appends one object to the members of a struct. All of them have `len` values before.
fn append_members(
    names: &NameIndex,
    members: &mut [ColumnBuffer],
    len: usize,
    cursor: &mut JsonCursor<'_>,
) -> CellResult<()> {
    let (mut is_first, mut expected) = (true, 0);
    while let Some(name) = cursor.next_name(&mut is_first)? {
        let Some(position) = names.find(name, expected) else {
            return Err(CellError::new(names.unknown("member", name)));
        };
        expected = position + 1;
        let Some(member) = members.get_mut(position) else { continue };
        if member.len() > len {
            return Err(CellError::new("it occurs twice").in_member(names.name(position)));
        }
        member.append_json(cursor).map_err(|error| error.in_member(names.name(position)))?;
    }
    for (position, member) in members.iter_mut().enumerate().filter(|(_, member)| member.len() == len) {
        member.append_missing().map_err(|error| error.in_member(names.name(position)))?;
    }
    Ok(())
}

/// Appends one object to the entries of a map. Keys that are not text have the form that they have in CSV.
fn append_entries(key: &mut ColumnBuffer, value: &mut ColumnBuffer, cursor: &mut JsonCursor<'_>) -> CellResult<()> {
    let mut is_first = true;
    let mut seen: Vec<String> = Vec::new();
    let mut hashed: HashSet<String> = HashSet::new();
    while let Some(name) = cursor.next_name(&mut is_first)? {
        let is_new = if seen.len() < SEARCHED_KEYS_MAX {
            let is_new = !seen.iter().any(|other| other == name);
            seen.push(name.to_owned());
            is_new
        } else {
            !seen.iter().any(|other| other == name) && hashed.insert(name.to_owned())
        };
        if !is_new {
            return Err(CellError::new("the key occurs twice").in_member(name));
        }
        let name = name.to_owned();
        // The same number in another form would be the same key twice.
        if !key.is_text() && !name.parse::<i128>().is_ok_and(|number| number.to_string() == name) {
            return Err(key.misfit(&name).in_member(&name));
        }
        key.append_text(&name).map_err(|error| error.in_member(&name))?;
        value.check_room().and_then(|()| value.append_json(cursor)).map_err(|error| error.in_member(&name))?;
    }
    Ok(())
}
