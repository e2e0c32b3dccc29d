//! The columns of results: their Arrow fields, the SQL names of their types, and the decoding of single values: text and bytes,
//! and the types whose values become text; numbers; dates, timestamps and intervals.
//!
//! The binary form of `numeric`, which has any number of digits of base 10,000: the number of digits, the weight of the first
//! (its power of 10,000), the sign, the number of decimal digits after the point, the digits; 16 bits each.
//!
//! PostgreSQL counts time from 2000-01-01, Arrow from 1970-01-01.

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow::array::{BinaryArray, NullBufferBuilder, StringArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, ArrowNativeTypeOp, ArrowPrimitiveType, DataType, DecimalType, Field, Fields, IntervalMonthDayNano,
    IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use tidegate_query::{ExtensionType, with_type_name};
use tokio_postgres::types::{Kind, Type};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::{ValueError, ValueReader, exactly};

/// The maximum number of digits of Arrow's decimals.
const DECIMAL128_DIGITS: i32 = 38;
const DECIMAL256_DIGITS: i32 = 76;

/// A column of a result: its Arrow field, and how its binary values are decoded.
#[derive(Debug, Clone)]
pub struct ColumnDecoder {
    pub(super) field: Field,
    pub(super) form: BinaryForm,
    /// The type's object id, which precedes values in arrays and composites.
    pub(super) oid: u32,
}

/// How binary values are decoded.
#[derive(Debug, Clone)]
pub(super) enum BinaryForm {
    /// As the Arrow type determines.
    Scalar,
    Text(TextRendering),
    List(Box<ColumnDecoder>),
    Struct(Vec<ColumnDecoder>),
}

impl ColumnDecoder {
    /// The column `name` of type `kind` with its modifier (-1 for none). `None` if the binary form of the type is
    /// unknown: such a column is selected as text and decoded by [`ColumnDecoder::for_text`].
    pub fn for_type(name: &str, kind: &Type, modifier: i32) -> Option<Self> {
        let (data_type, form, meaning) = match kind.kind() {
            Kind::Domain(base) => {
                let base = Self::for_type(name, base, modifier)?;
                // In arrays and composites, a domain has its own id.
                return Some(Self {
                    field: with_type_name(base.field, type_name(kind, modifier)),
                    oid: kind.oid(),
                    ..base
                });
            }
            Kind::Enum(_) => text(TextRendering::Plain),
            Kind::Array(item) => list(Self::for_type("item", item, modifier)?),
            Kind::Composite(members) if !members.is_empty() => {
                let members = members.iter().map(|member| Self::for_type(member.name(), member.type_(), -1));
                structure(members.collect::<Option<Vec<Self>>>()?)
            }
            Kind::Simple | Kind::Pseudo => scalar(kind, modifier)?,
            // Ranges, multiranges, and kinds of later servers.
            _ => return None,
        };
        let field = Field::new(name, data_type, true);
        let field = meaning.into_iter().fold(field, |field, meaning: ExtensionType| meaning.annotate(field));
        Some(Self { field: with_type_name(field, type_name(kind, modifier)), form, oid: kind.oid() })
    }

    /// The column `name` whose values of type `kind` were selected as `column::text`.
    pub fn for_text(name: &str, kind: &Type, modifier: i32) -> Self {
        let field = with_type_name(Field::new(name, DataType::Utf8, true), type_name(kind, modifier));
        Self { field, form: BinaryForm::Text(TextRendering::Plain), oid: Type::TEXT.oid() }
    }

    /// The Arrow field.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

/// The schema of `columns`; names may be empty or equal.
pub fn arrow_schema(columns: &[ColumnDecoder]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Fields>()))
}

type ColumnParts = (DataType, BinaryForm, Option<ExtensionType>);

fn scalar(kind: &Type, modifier: i32) -> Option<ColumnParts> {
    let microseconds = TimeUnit::Microsecond;
    let plain = |data_type| (data_type, BinaryForm::Scalar, None);
    let parts = match *kind {
        Type::BOOL => plain(DataType::Boolean),
        Type::INT2 => plain(DataType::Int16),
        Type::INT4 => plain(DataType::Int32),
        Type::INT8 => plain(DataType::Int64),
        Type::OID | Type::XID | Type::CID => plain(DataType::UInt32),
        Type::XID8 => plain(DataType::UInt64),
        Type::FLOAT4 => plain(DataType::Float32),
        Type::FLOAT8 => plain(DataType::Float64),
        Type::NUMERIC => number(modifier),
        // The result of a function without a result is empty and cannot be cast.
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::CSTRING | Type::VOID => {
            text(TextRendering::Plain)
        }
        Type::CHAR => text(TextRendering::Char),
        Type::UUID => text(TextRendering::Uuid),
        Type::INET | Type::CIDR => text(TextRendering::Address),
        Type::MACADDR | Type::MACADDR8 => text(TextRendering::MacAddress),
        Type::BIT | Type::VARBIT => text(TextRendering::Bits),
        Type::JSON => (DataType::Utf8, BinaryForm::Text(TextRendering::Plain), Some(ExtensionType::Json)),
        Type::JSONB => (DataType::Utf8, BinaryForm::Text(TextRendering::Jsonb), Some(ExtensionType::Json)),
        Type::BYTEA => plain(DataType::Binary),
        Type::DATE => plain(DataType::Date32),
        Type::TIME => plain(DataType::Time64(microseconds)),
        Type::TIMESTAMP => plain(DataType::Timestamp(microseconds, None)),
        Type::TIMESTAMPTZ => plain(DataType::Timestamp(microseconds, Some("UTC".into()))),
        Type::INTERVAL => plain(DataType::Interval(IntervalUnit::MonthDayNano)),
        // A type of an extension, recognised by its name; its binary form is that of text.
        _ if kind.name() == "citext" => text(TextRendering::Plain),
        _ => return None,
    };
    Some(parts)
}

fn text(text_rendering: TextRendering) -> ColumnParts {
    (DataType::Utf8, BinaryForm::Text(text_rendering), None)
}

fn number(modifier: i32) -> ColumnParts {
    let fitting = numeric_modifier(modifier).filter(|(precision, scale)| (0..=*precision).contains(scale));
    // The bounds below keep both within 8 bits.
    match fitting {
        Some((precision, scale)) if precision <= DECIMAL128_DIGITS => {
            (DataType::Decimal128(precision as u8, scale as i8), BinaryForm::Scalar, None)
        }
        Some((precision, scale)) if precision <= DECIMAL256_DIGITS => {
            (DataType::Decimal256(precision as u8, scale as i8), BinaryForm::Scalar, None)
        }
        _ => (DataType::Utf8, BinaryForm::Text(TextRendering::Number), Some(ExtensionType::Number)),
    }
}

fn list(item: ColumnDecoder) -> ColumnParts {
    (DataType::List(Arc::new(item.field.clone())), BinaryForm::List(Box::new(item)), None)
}

fn structure(members: Vec<ColumnDecoder>) -> ColumnParts {
    let fields = members.iter().map(|member| member.field.clone()).collect();
    (DataType::Struct(fields), BinaryForm::Struct(members), None)
}

/// The name of `kind` with its modifier (-1 for none), as PostgreSQL's `format_type` writes it. User-defined types have
/// their bare name.
pub fn type_name(kind: &Type, modifier: i32) -> String {
    match kind.kind() {
        // The vectors of the catalog are arrays too, with their own names.
        Kind::Array(item) if kind.name().starts_with('_') => format!("{}[]", type_name(item, modifier)),
        _ => scalar_name(kind, modifier),
    }
}

fn scalar_name(kind: &Type, modifier: i32) -> String {
    let of_length = |name: &str, length: i32| format!("{name}({length})");
    let has_modifier = modifier >= 0;
    match *kind {
        Type::BOOL => "boolean".to_owned(),
        Type::INT2 => "smallint".to_owned(),
        Type::INT4 => "integer".to_owned(),
        Type::INT8 => "bigint".to_owned(),
        Type::FLOAT4 => "real".to_owned(),
        Type::FLOAT8 => "double precision".to_owned(),
        Type::CHAR => "\"char\"".to_owned(),
        Type::NUMERIC => numeric_modifier(modifier)
            .map_or_else(|| "numeric".to_owned(), |(precision, scale)| format!("numeric({precision},{scale})")),
        Type::VARCHAR if has_modifier => of_length("character varying", modifier - HEADER_BYTES),
        Type::VARCHAR => "character varying".to_owned(),
        Type::BPCHAR if has_modifier => of_length("character", modifier - HEADER_BYTES),
        Type::BIT if has_modifier => of_length("bit", modifier),
        Type::VARBIT if has_modifier => of_length("bit varying", modifier),
        Type::VARBIT => "bit varying".to_owned(),
        Type::TIME => with_precision("time", modifier, "without time zone"),
        Type::TIMETZ => with_precision("time", modifier, "with time zone"),
        Type::TIMESTAMP => with_precision("timestamp", modifier, "without time zone"),
        Type::TIMESTAMPTZ => with_precision("timestamp", modifier, "with time zone"),
        _ => kind.name().to_owned(),
    }
}

fn with_precision(name: &str, modifier: i32, zone: &str) -> String {
    if modifier >= 0 { format!("{name}({modifier}) {zone}") } else { format!("{name} {zone}") }
}

/// Modifiers of `varchar`, `char` and `numeric` include the header of a stored value.
const HEADER_BYTES: i32 = 4;

/// The precision and the scale of a modifier of `numeric`, if it has them.
pub(crate) fn numeric_modifier(modifier: i32) -> Option<(i32, i32)> {
    let packed = modifier.checked_sub(HEADER_BYTES).filter(|packed| *packed >= 0)?;
    // 16 bits of precision, then 11 bits of scale with a sign since PostgreSQL 15; before, scales were 0 to 1000.
    Some((packed >> 16, ((packed & 0x7ff) ^ 0x400) - 0x400))
}

/// The version of the binary form of `jsonb`, the byte before its text.
const JSONB_VERSION: u8 = 1;

/// The maximum initial capacity of a column.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// How a binary value becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRendering {
    Plain,
    /// `"char"`: one byte.
    Char,
    /// A version byte, then the text.
    Jsonb,
    Number,
    Uuid,
    /// `inet` and `cidr`.
    Address,
    MacAddress,
    Bits,
}

impl TextRendering {
    pub(super) fn write(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
        match self {
            Self::Plain => out.extend_from_slice(bytes),
            Self::Char => write_char(bytes, out)?,
            Self::Jsonb => match bytes.split_first() {
                Some((&JSONB_VERSION, text)) => out.extend_from_slice(text),
                _ => return Err(ValueError::Malformed),
            },
            Self::Number => write_numeric(bytes, out)?,
            Self::Uuid => {
                let mut text = [0; Hyphenated::LENGTH];
                out.extend_from_slice(
                    Uuid::from_bytes(exactly(bytes)?).hyphenated().encode_lower(&mut text).as_bytes(),
                );
            }
            Self::Address => write_inet(bytes, out)?,
            Self::MacAddress => write_mac_address(bytes, out),
            Self::Bits => write_bits(bytes, out)?,
        }
        Ok(())
    }
}

/// Builds arrays of values with any length in one buffer.
pub(super) struct BytesBuilder {
    bytes: Vec<u8>,
    /// The start of each value, and the end of the last one.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Default for BytesBuilder {
    fn default() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0], nulls: NullBufferBuilder::new(0) }
    }
}

impl BytesBuilder {
    /// Appends the value that `write` writes.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        write(&mut self.bytes)?;
        self.offsets.push(i32::try_from(self.bytes.len()).map_err(|_| ValueError::TooLarge)?);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        // The last offset fitted before.
        self.offsets.push(self.offsets.last().copied().unwrap_or_default());
        self.nulls.append_null();
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.offsets.as_slice())
    }

    /// The values as text; the whole buffer is validated at once.
    pub(super) fn finish_text(&mut self) -> Result<StringArray, ValueError> {
        let (offsets, bytes, nulls) = self.take();
        StringArray::try_new(offsets, bytes, nulls).map_err(|_| ValueError::NotUtf8)
    }

    pub(super) fn finish_bytes(&mut self) -> Result<BinaryArray, ValueError> {
        let (offsets, bytes, nulls) = self.take();
        BinaryArray::try_new(offsets, bytes, nulls).map_err(|_| ValueError::Malformed)
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        // The next batch is probably about as large, unless this one contains a huge value.
        let bytes = Vec::with_capacity(self.bytes.len().min(KEPT_BYTES_MAX));
        let mut offsets = Vec::with_capacity(self.offsets.len().min(KEPT_BYTES_MAX / size_of::<i32>()));
        offsets.push(0);
        let offsets = std::mem::replace(&mut self.offsets, offsets);
        let bytes = std::mem::replace(&mut self.bytes, bytes);
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), self.nulls.finish())
    }
}

fn write_char(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    match exactly(bytes)? {
        // The server represents an empty value as zero.
        [0] => {}
        [byte] if byte.is_ascii() => out.push(byte),
        [byte] => out.extend([b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
    Ok(())
}

fn write_mac_address(bytes: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in bytes.iter().enumerate() {
        let colon = if index > 0 { ":" } else { "" };
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{colon}{byte:02x}");
    }
}

/// Writes the digits of a bit string. Its binary form is their number, then eight digits in each byte.
fn write_bits(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = ValueReader(bytes);
    let length = usize::try_from(reader.int32()?).map_err(|_| ValueError::Malformed)?;
    if reader.0.len() != length.div_ceil(8) {
        return Err(ValueError::Malformed);
    }
    out.extend((0..length).map(|index| b'0' + (reader.0[index / 8] >> (7 - index % 8) & 1)));
    Ok(())
}

const IPV4: u8 = 2;
const IPV6: u8 = 3;

/// Writes the address, with the prefix length if it is a network or not the default.
fn write_inet(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = ValueReader(bytes);
    let (family, bits, is_network, length) = (reader.byte()?, reader.byte()?, reader.byte()? != 0, reader.byte()?);
    if reader.0.len() != usize::from(length) {
        return Err(ValueError::Malformed);
    }
    // Writing to a Vec cannot fail; below too.
    let bits_max = match family {
        IPV4 => {
            let _ = write!(out, "{}", Ipv4Addr::from(exactly(reader.0)?));
            32
        }
        IPV6 => {
            write_ipv6(exactly(reader.0)?, out);
            128
        }
        _ => return Err(ValueError::Malformed),
    };
    if is_network || bits != bits_max {
        let _ = write!(out, "/{bits}");
    }
    Ok(())
}

/// The standard library writes addresses as PostgreSQL does, except those that end in one of IPv4 after six groups of
/// zeros.
fn write_ipv6(bytes: [u8; 16], out: &mut Vec<u8>) {
    let _ = match bytes {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if (a, b) != (0, 0) => {
            write!(out, "::{}", Ipv4Addr::new(a, b, c, d))
        }
        bytes => write!(out, "{}", Ipv6Addr::from(bytes)),
    };
}

const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;

const DIGITS: usize = 4;
const BASE: u16 = 10_000;

struct FiniteNumeric<'a> {
    is_negative: bool,
    weight: i16,
    scale: u16,
    /// Two bytes each, all below 10,000.
    digits: &'a [[u8; 2]],
}

enum NumericValue<'a> {
    Finite(FiniteNumeric<'a>),
    Special(&'static str),
}

fn parse_numeric(bytes: &[u8]) -> Result<NumericValue<'_>, ValueError> {
    let mut reader = ValueReader(bytes);
    let (count, weight, sign, scale) = (reader.uint16()?, reader.int16()?, reader.uint16()?, reader.uint16()?);
    let (digits, rest) = reader.0.as_chunks::<2>();
    let are_digits = || digits.iter().all(|digit| u16::from_be_bytes(*digit) < BASE);
    if digits.len() != usize::from(count) || !rest.is_empty() || !are_digits() {
        return Err(ValueError::Malformed);
    }
    match sign {
        0 | NEGATIVE => {
            Ok(NumericValue::Finite(FiniteNumeric { is_negative: sign == NEGATIVE, weight, scale, digits }))
        }
        NOT_A_NUMBER => Ok(NumericValue::Special("NaN")),
        INFINITY => Ok(NumericValue::Special("Infinity")),
        NEGATIVE_INFINITY => Ok(NumericValue::Special("-Infinity")),
        _ => Err(ValueError::Malformed),
    }
}

/// Writes the number with all its digits; never with an exponent.
pub(super) fn write_numeric(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let number = match parse_numeric(bytes)? {
        NumericValue::Finite(number) => number,
        NumericValue::Special(name) => {
            out.extend_from_slice(name.as_bytes());
            return Ok(());
        }
    };
    let weight = i32::from(number.weight);
    let digit = |power: i32| {
        let index = usize::try_from(weight - power).ok()?;
        number.digits.get(index).map(|digit| u16::from_be_bytes(*digit))
    };
    if number.is_negative {
        out.push(b'-');
    }
    let whole = out.len();
    for power in (0..=weight).rev() {
        write_digit(digit(power).unwrap_or_default(), out);
    }
    let zeros = out[whole..].iter().take_while(|byte| **byte == b'0').count();
    out.drain(whole..whole + zeros);
    if out.len() == whole {
        out.push(b'0');
    }
    let scale = usize::from(number.scale);
    if scale > 0 {
        out.push(b'.');
        let fraction = out.len();
        // The scale has 16 bits.
        for position in 1..=scale.div_ceil(DIGITS) as i32 {
            write_digit(digit(-position).unwrap_or_default(), out);
        }
        out.truncate(fraction + scale);
    }
    Ok(())
}

fn write_digit(digit: u16, out: &mut Vec<u8>) {
    let [high, low] = [digit / 100, digit % 100];
    // Each is a decimal digit.
    out.extend([high / 10, high % 10, low / 10, low % 10].map(|digit| b'0' + digit as u8));
}

/// The number as a decimal with `scale` digits after the point.
pub(super) fn decode_decimal<T: DecimalType + ArrowPrimitiveType>(
    bytes: &[u8],
    scale: i8,
) -> Result<T::Native, ValueError> {
    let number = match parse_numeric(bytes)? {
        NumericValue::Finite(number) => number,
        NumericValue::Special("NaN") => return Err(ValueError::NotANumber),
        NumericValue::Special(_) => return Err(ValueError::Malformed),
    };
    let native = |number: u32| T::Native::usize_as(number as usize);
    let too_long = |_| ValueError::Malformed;
    let mut value = T::Native::ZERO;
    // The power of ten by which the value is still to be multiplied.
    let mut missing_power = 0;
    let mut power = i32::from(number.weight) * DIGITS as i32 + i32::from(scale);
    for digit in number.digits {
        let digit = u32::from(u16::from_be_bytes(*digit));
        // The last digit of base 10,000 may contain zeros after the last decimal digit.
        let excess = u32::try_from(-power).unwrap_or_default();
        let divisor = 10_u32.pow(excess.min(DIGITS as u32));
        if digit % divisor != 0 {
            return Err(ValueError::Malformed);
        }
        let shift = native(u32::from(BASE) / divisor);
        value =
            value.mul_checked(shift).and_then(|value| value.add_checked(native(digit / divisor))).map_err(too_long)?;
        missing_power = power.max(0);
        power -= DIGITS as i32;
    }
    // Not negative.
    let value =
        native(10).pow_checked(missing_power as u32).and_then(|tens| value.mul_checked(tens)).map_err(too_long)?;
    if number.is_negative { value.neg_checked().map_err(too_long) } else { Ok(value) }
}

/// From 1970-01-01 to 2000-01-01.
pub(crate) const DAYS_TO_EPOCH: i32 = 10_957;
pub(crate) const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;
pub(crate) const MICROSECONDS_TO_EPOCH: i64 = DAYS_TO_EPOCH as i64 * MICROSECONDS_OF_DAY;

/// The days since 1970. The extreme values are the infinities, as in the binary form.
pub(super) fn decode_date(bytes: &[u8]) -> Result<i32, ValueError> {
    match i32::from_be_bytes(exactly(bytes)?) {
        infinity @ (i32::MIN | i32::MAX) => Ok(infinity),
        days => {
            days.checked_add(DAYS_TO_EPOCH).filter(|days| *days != i32::MAX).ok_or(ValueError::OutOfRange("a date"))
        }
    }
}

/// The microseconds since midnight; PostgreSQL also has 24:00:00.
pub(super) fn decode_time(bytes: &[u8]) -> Result<i64, ValueError> {
    let time = i64::from_be_bytes(exactly(bytes)?);
    if (0..=MICROSECONDS_OF_DAY).contains(&time) { Ok(time) } else { Err(ValueError::Malformed) }
}

/// The microseconds since 1970. The extreme values are the infinities, as in the binary form.
pub(super) fn decode_timestamp(bytes: &[u8]) -> Result<i64, ValueError> {
    match i64::from_be_bytes(exactly(bytes)?) {
        infinity @ (i64::MIN | i64::MAX) => Ok(infinity),
        // PostgreSQL ends in the year 294276, Arrow in 294247.
        moment => moment
            .checked_add(MICROSECONDS_TO_EPOCH)
            .filter(|moment| *moment != i64::MAX)
            .ok_or(ValueError::OutOfRange("a timestamp")),
    }
}

/// The interval. If all parts are extreme values, it is an infinity, as in the binary form since PostgreSQL 17.
pub(super) fn decode_interval(bytes: &[u8]) -> Result<IntervalMonthDayNano, ValueError> {
    let mut reader = ValueReader(bytes);
    let (microseconds, days, months) = (reader.int64()?, reader.int32()?, reader.int32()?);
    reader.expect_end()?;
    let nanoseconds = match (microseconds, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) | (i64::MIN, i32::MIN, i32::MIN) => microseconds,
        _ => microseconds.checked_mul(1_000).ok_or(ValueError::OutOfRange("an interval"))?,
    };
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Decimal128Type, Decimal256Type, i256};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_those_of_format_type() {
        assert_eq!(type_name(&Type::NUMERIC, ((10 << 16) | 2) + 4), "numeric(10,2)");
        assert_eq!(type_name(&Type::NUMERIC, ((3 << 16) | (-2 & 0x7ff)) + 4), "numeric(3,-2)");
        assert_eq!(type_name(&Type::NUMERIC_ARRAY, -1), "numeric[]");
        assert_eq!(type_name(&Type::BPCHAR, 88), "character(84)");
        assert_eq!(type_name(&Type::BPCHAR, -1), "bpchar");
        assert_eq!(type_name(&Type::TIMESTAMPTZ, 3), "timestamp(3) with time zone");
        assert_eq!(type_name(&Type::INT2_VECTOR, -1), "int2vector");
    }

    fn text(family: u8, bits: u8, is_network: u8, address: &[u8]) -> Result<String, ValueError> {
        let mut out = Vec::new();
        let head = [family, bits, is_network, address.len() as u8];
        write_inet(&[&head, address].concat(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn ipv6(groups: [u16; 8]) -> String {
        text(IPV6, 128, 0, &groups.map(u16::to_be_bytes).concat()).unwrap()
    }

    #[test]
    fn prefix_length_is_written_for_networks() {
        assert_eq!(text(IPV4, 32, 0, &[10, 0, 0, 1]).unwrap(), "10.0.0.1");
        assert_eq!(text(IPV4, 24, 0, &[10, 0, 0, 1]).unwrap(), "10.0.0.1/24");
        assert_eq!(text(IPV4, 32, 1, &[10, 0, 0, 1]).unwrap(), "10.0.0.1/32");
        assert_eq!(text(IPV4, 32, 0, &[10, 0, 0]), Err(ValueError::Malformed));
        assert_eq!(text(9, 32, 0, &[10, 0, 0, 1]), Err(ValueError::Malformed));
    }

    #[test]
    fn first_longest_zero_run_is_compressed() {
        assert_eq!(ipv6([0; 8]), "::");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0, 0, 1]), "::1");
        assert_eq!(ipv6([1, 0, 0, 0, 0, 0, 0, 0]), "1::");
        assert_eq!(ipv6([1, 0, 0, 2, 0, 0, 3, 0]), "1::2:0:0:3:0");
        assert_eq!(ipv6([1, 0, 2, 3, 4, 5, 6, 7]), "1:0:2:3:4:5:6:7");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304]), "::ffff:1.2.3.4");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0, 0x102, 0x304]), "::1.2.3.4");
    }

    fn wire(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Vec<u8> {
        let head = [digits.len() as u16, weight as u16, sign, scale];
        head.iter().chain(digits).flat_map(|part| part.to_be_bytes()).collect()
    }

    fn numeric_text(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> String {
        let mut out = Vec::new();
        write_numeric(&wire(weight, sign, scale, digits), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_has_every_digit() {
        assert_eq!(numeric_text(0, 0, 0, &[]), "0");
        assert_eq!(numeric_text(0, 0, 3, &[]), "0.000");
        assert_eq!(numeric_text(1, 0, 0, &[1]), "10000");
        assert_eq!(numeric_text(1, NEGATIVE, 2, &[12, 3_004, 5_000]), "-123004.50");
        assert_eq!(numeric_text(-2, 0, 8, &[1]), "0.00000001");
        assert_eq!(numeric_text(-1, NEGATIVE, 1, &[5_000]), "-0.5");
        assert_eq!(numeric_text(0, NOT_A_NUMBER, 0, &[]), "NaN");
        assert_eq!(numeric_text(0, NEGATIVE_INFINITY, 0, &[]), "-Infinity");
    }

    #[test]
    fn decimals_have_their_scale() {
        let decimal = |bytes: &[u8], scale| decode_decimal::<Decimal128Type>(bytes, scale);
        assert_eq!(decimal(&wire(1, NEGATIVE, 2, &[12, 3_004, 5_000]), 2), Ok(-12_300_450));
        assert_eq!(decimal(&wire(2, 0, 0, &[1]), 1), Ok(1_000_000_000));
        assert_eq!(decimal(&wire(0, 0, 0, &[]), 5), Ok(0));
        assert_eq!(decimal(&wire(-1, 0, 3, &[1_230]), 3), Ok(123));
        // With more digits than the scale allows, the number would change.
        assert_eq!(decimal(&wire(-1, 0, 4, &[1_234]), 3), Err(ValueError::Malformed));
        assert_eq!(decimal(&wire(-2, 0, 8, &[1]), 3), Err(ValueError::Malformed));
        assert_eq!(decimal(&wire(20, 0, 0, &[1]), 0), Err(ValueError::Malformed));
        assert_eq!(decimal(&wire(0, NOT_A_NUMBER, 0, &[]), 0), Err(ValueError::NotANumber));
        assert_eq!(decimal(&wire(0, 0, 0, &[10_000]), 0), Err(ValueError::Malformed));
    }

    proptest! {
        #[test]
        fn decimals_and_text_agree(weight in -3..3_i16, digits in prop::collection::vec(0..10_000_u16, 0..6)) {
            let bytes = wire(weight, 0, 40, &digits);
            let mut out = Vec::new();
            write_numeric(&bytes, &mut out).unwrap();
            let printed = String::from_utf8(out).unwrap();
            let value: i256 = decode_decimal::<Decimal256Type>(&bytes, 40).unwrap();
            prop_assert_eq!(Decimal256Type::format_decimal(value, 76, 40), printed);
        }
    }

    #[test]
    fn dates_beyond_range_are_rejected() {
        let read = |days: i32| decode_date(&days.to_be_bytes());
        assert_eq!(read(0), Ok(10_957));
        assert_eq!(read(i32::MAX), Ok(i32::MAX));
        assert_eq!(read(i32::MIN), Ok(i32::MIN));
        assert_eq!(read(i32::MAX - DAYS_TO_EPOCH), Err(ValueError::OutOfRange("a date")));
        assert_eq!(decode_date(&[0; 8]), Err(ValueError::Malformed));
    }

    #[test]
    fn timestamps_beyond_range_are_rejected() {
        let read = |moment: i64| decode_timestamp(&moment.to_be_bytes());
        assert_eq!(read(-MICROSECONDS_TO_EPOCH), Ok(0));
        assert_eq!(read(i64::MAX), Ok(i64::MAX));
        assert_eq!(read(i64::MIN), Ok(i64::MIN));
        assert_eq!(read(i64::MAX - MICROSECONDS_TO_EPOCH), Err(ValueError::OutOfRange("a timestamp")));
        assert_eq!(read(i64::MAX - 1), Err(ValueError::OutOfRange("a timestamp")));
        assert_eq!(read(i64::MAX - MICROSECONDS_TO_EPOCH - 1), Ok(i64::MAX - 1));
    }

    #[test]
    fn intervals_of_three_centuries_fit() {
        let read = |microseconds: i64, days: i32, months: i32| {
            let mut bytes = microseconds.to_be_bytes().to_vec();
            bytes.extend(days.to_be_bytes());
            bytes.extend(months.to_be_bytes());
            decode_interval(&bytes)
        };
        assert_eq!(read(-1, 2, -3), Ok(IntervalMonthDayNano::new(-3, 2, -1_000)));
        assert_eq!(read(i64::MAX / 1_000, 0, 0), Ok(IntervalMonthDayNano::new(0, 0, i64::MAX / 1_000 * 1_000)));
        assert_eq!(read(i64::MAX / 1_000 + 1, 0, 0), Err(ValueError::OutOfRange("an interval")));
        assert_eq!(read(i64::MIN, i32::MIN, i32::MIN), Ok(IntervalMonthDayNano::new(i32::MIN, i32::MIN, i64::MIN)));
    }
}
