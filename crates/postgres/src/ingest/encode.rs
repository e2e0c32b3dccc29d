//! Arrow values in the binary form of `COPY`: decimals are digits of base 10,000, `inet` and `cidr` are read from their text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array, ListArray, PrimitiveArray,
    StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt32Type, i256,
};
use tidegate_core::Error;
use uuid::Uuid;

use super::ValueForm;
use crate::values::{DAYS_TO_EPOCH, MICROSECONDS_OF_DAY, MICROSECONDS_TO_EPOCH};

/// The version of the binary form of `jsonb`, the byte before its text.
const JSONB_VERSION: u8 = 1;
/// The length of NULL.
const NULL_LENGTH: i32 = -1;

/// Why a value cannot be stored as it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) reason: String,
}

impl Misfit {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// The values of one column of a batch.
pub(super) enum ColumnValues {
    Boolean(BooleanArray),
    Int16(PrimitiveArray<Int16Type>),
    Int32(PrimitiveArray<Int32Type>),
    Int64(PrimitiveArray<Int64Type>),
    UInt32(PrimitiveArray<UInt32Type>),
    Float32(PrimitiveArray<Float32Type>),
    Float64(PrimitiveArray<Float64Type>),
    Decimal128(Decimal128Array, i8, Option<u32>),
    Decimal256(Decimal256Array, i8, Option<u32>),
    Text(StringArray, Option<usize>),
    Jsonb(StringArray),
    Uuid(StringArray),
    Address(StringArray, bool),
    Bytes(BinaryArray),
    Date(PrimitiveArray<Date32Type>),
    Time(PrimitiveArray<Int64Type>, TimeUnit, i64),
    Timestamp(PrimitiveArray<Int64Type>, TimeUnit, i64),
    List(ListArray, Box<ColumnValues>, u32),
}

/// Whether each value of the type `from` has a place in `form`, whose field has the type `to`; single values may still
/// not fit.
pub(super) fn is_fitting(from: &DataType, form: &ValueForm, to: &DataType) -> bool {
    match (form, from) {
        (_, DataType::Null) => true,
        (_, DataType::Dictionary(_, values)) => is_fitting(values, form, to),
        (ValueForm::Int16, _) => matches!(from, DataType::Int8 | DataType::UInt8 | DataType::Int16),
        (ValueForm::Int32, DataType::UInt16 | DataType::Int32) => true,
        (ValueForm::Int32, _) => is_fitting(from, &ValueForm::Int16, to),
        (ValueForm::Int64, DataType::UInt32 | DataType::Int64) => true,
        (ValueForm::Int64, _) => is_fitting(from, &ValueForm::Int32, to),
        (ValueForm::UInt32, _) => matches!(from, DataType::UInt8 | DataType::UInt16 | DataType::UInt32),
        (ValueForm::Float64, DataType::Float32) => true,
        (ValueForm::Numeric { .. }, _) => matches!(from, DataType::Decimal128(..) | DataType::Decimal256(..)),
        (
            ValueForm::Text { .. } | ValueForm::Jsonb | ValueForm::Uuid | ValueForm::Address { .. },
            DataType::LargeUtf8 | DataType::Utf8View,
        )
        | (ValueForm::Bytes, DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)) => true,
        (ValueForm::Time { .. }, _) => matches!(from, DataType::Time32(_) | DataType::Time64(_)),
        (ValueForm::Timestamp { .. }, DataType::Timestamp(_, from)) => {
            matches!(to, DataType::Timestamp(_, to) if to.is_some() == from.is_some())
        }
        (ValueForm::List { item, .. }, DataType::List(from) | DataType::LargeList(from)) => {
            matches!(to, DataType::List(to) if is_fitting(from.data_type(), item, to.data_type()))
        }
        _ => from == to,
    }
}

impl ColumnValues {
    /// The values of `array`, whose type [`is_fitting`].
    pub(super) fn new(array: &ArrayRef, form: &ValueForm) -> Result<Self, Error> {
        let to = |data_type: &DataType| -> Result<ArrayRef, Error> {
            cast(array, data_type).map_err(|error| Error::internal(format!("a batch cannot be converted: {error}")))
        };
        let as_is = match array.data_type() {
            DataType::Dictionary(_, values) => &to(values)?,
            _ => array,
        };
        Ok(match form {
            ValueForm::Boolean => Self::Boolean(to(&DataType::Boolean)?.as_boolean().clone()),
            ValueForm::Int16 => Self::Int16(primitive(&to(&DataType::Int16)?)),
            ValueForm::Int32 => Self::Int32(primitive(&to(&DataType::Int32)?)),
            ValueForm::Int64 => Self::Int64(primitive(&to(&DataType::Int64)?)),
            ValueForm::UInt32 => Self::UInt32(primitive(&to(&DataType::UInt32)?)),
            ValueForm::Float32 => Self::Float32(primitive(&to(&DataType::Float32)?)),
            ValueForm::Float64 => Self::Float64(primitive(&to(&DataType::Float64)?)),
            ValueForm::Numeric { scale } => match as_is.data_type() {
                DataType::Decimal256(_, digits) => {
                    Self::Decimal256(primitive::<Decimal256Type>(as_is), *digits, *scale)
                }
                DataType::Decimal128(_, digits) => {
                    Self::Decimal128(primitive::<Decimal128Type>(as_is), *digits, *scale)
                }
                _ => Self::Decimal128(primitive::<Decimal128Type>(&to(&DataType::Decimal128(1, 0))?), 0, *scale),
            },
            ValueForm::Text { characters_max } => Self::Text(strings(&to(&DataType::Utf8)?), *characters_max),
            ValueForm::Jsonb => Self::Jsonb(strings(&to(&DataType::Utf8)?)),
            ValueForm::Uuid => Self::Uuid(strings(&to(&DataType::Utf8)?)),
            ValueForm::Address { is_network } => Self::Address(strings(&to(&DataType::Utf8)?), *is_network),
            ValueForm::Bytes => Self::Bytes(to(&DataType::Binary)?.as_binary::<i32>().clone()),
            ValueForm::Date => Self::Date(primitive(&to(&DataType::Date32)?)),
            ValueForm::Time { step } => {
                let (values, unit) = times(as_is)?;
                Self::Time(values, unit, *step)
            }
            ValueForm::Timestamp { step } => {
                let (values, unit) = times(as_is)?;
                Self::Timestamp(values, unit, *step)
            }
            ValueForm::List { item, oid } => Self::list(as_is, item, *oid)?,
        })
    }

    fn list(array: &ArrayRef, item: &ValueForm, oid: u32) -> Result<Self, Error> {
        let failed = |error| Error::internal(format!("a list cannot be converted: {error}"));
        let array = match array.data_type() {
            DataType::LargeList(field) => cast(array, &DataType::List(field.clone())).map_err(failed)?,
            DataType::Null => {
                let field = arrow::datatypes::Field::new_list_field(DataType::Null, true);
                cast(array, &DataType::List(field.into())).map_err(failed)?
            }
            _ => array.clone(),
        };
        let list = array.as_list::<i32>().clone();
        let values = Self::new(list.values(), item)?;
        Ok(Self::List(list, Box::new(values), oid))
    }

    /// Appends the value of `row` with its length.
    pub(super) fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        if self.array().is_null(row) {
            out.extend_from_slice(&NULL_LENGTH.to_be_bytes());
            return Ok(());
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.append_value(row, out)?;
        let length = out.len() - start - size_of::<i32>();
        let length = i32::try_from(length).map_err(|_| Misfit::new("the value has more than 2 GiB"))?;
        if let Some(prefix) = out.get_mut(start..start + size_of::<i32>()) {
            prefix.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    fn array(&self) -> &dyn Array {
        match self {
            Self::Boolean(array) => array,
            Self::Int16(array) => array,
            Self::Int32(array) => array,
            Self::Int64(array) | Self::Time(array, ..) | Self::Timestamp(array, ..) => array,
            Self::UInt32(array) => array,
            Self::Float32(array) => array,
            Self::Float64(array) => array,
            Self::Decimal128(array, ..) => array,
            Self::Decimal256(array, ..) => array,
            Self::Text(array, _) | Self::Jsonb(array) | Self::Uuid(array) | Self::Address(array, _) => array,
            Self::Bytes(array) => array,
            Self::Date(array) => array,
            Self::List(array, ..) => array,
        }
    }

    fn append_value(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match self {
            Self::Boolean(array) => out.push(u8::from(array.value(row))),
            Self::Int16(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Int32(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Int64(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::UInt32(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Float32(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Float64(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Decimal128(array, scale, max) => write_decimal128(array.value(row), *scale, *max, out)?,
            Self::Decimal256(array, scale, max) => write_decimal256(array.value(row), *scale, *max, out)?,
            Self::Text(array, characters_max) => append_text(array.value(row), *characters_max, out)?,
            Self::Jsonb(array) => {
                out.push(JSONB_VERSION);
                append_text(array.value(row), None, out)?;
            }
            Self::Uuid(array) => {
                let uuid = Uuid::try_parse(array.value(row)).map_err(|_| Misfit::new("the text is no UUID"))?;
                out.extend_from_slice(uuid.as_bytes());
            }
            Self::Address(array, is_network) => write_network_address(array.value(row), *is_network, out)?,
            Self::Bytes(array) => out.extend_from_slice(array.value(row)),
            Self::Date(array) => out.extend_from_slice(&encode_date(array.value(row))?.to_be_bytes()),
            Self::Time(array, unit, step) => {
                let time = microseconds(array.value(row), *unit, *step)?;
                if !(0..=MICROSECONDS_OF_DAY).contains(&time) {
                    return Err(Misfit::new("the time is outside of a day"));
                }
                out.extend_from_slice(&time.to_be_bytes());
            }
            Self::Timestamp(array, unit, step) => {
                out.extend_from_slice(&encode_timestamp(array.value(row), *unit, *step)?.to_be_bytes());
            }
            Self::List(array, items, oid) => append_list(array, row, items, *oid, out)?,
        }
        Ok(())
    }
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> PrimitiveArray<T> {
    array.as_primitive::<T>().clone()
}

fn strings(array: &ArrayRef) -> StringArray {
    array.as_string::<i32>().clone()
}

/// Times or timestamps as integers, and their unit.
fn times(array: &ArrayRef) -> Result<(PrimitiveArray<Int64Type>, TimeUnit), Error> {
    let (values, unit) = match array.data_type() {
        DataType::Time32(unit) => {
            let values: PrimitiveArray<Int32Type> = match unit {
                TimeUnit::Second => primitive::<Time32SecondType>(array).reinterpret_cast(),
                _ => primitive::<Time32MillisecondType>(array).reinterpret_cast(),
            };
            (values.unary(i64::from), *unit)
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            (primitive::<Time64NanosecondType>(array).reinterpret_cast(), TimeUnit::Nanosecond)
        }
        DataType::Time64(unit) => (primitive::<Time64MicrosecondType>(array).reinterpret_cast(), *unit),
        DataType::Timestamp(unit, _) => {
            let values = match unit {
                TimeUnit::Second => primitive::<TimestampSecondType>(array).reinterpret_cast(),
                TimeUnit::Millisecond => primitive::<TimestampMillisecondType>(array).reinterpret_cast(),
                TimeUnit::Microsecond => primitive::<TimestampMicrosecondType>(array).reinterpret_cast(),
                TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(array).reinterpret_cast(),
            };
            (values, *unit)
        }
        DataType::Null => (PrimitiveArray::new_null(array.len()), TimeUnit::Microsecond),
        other => return Err(Error::internal(format!("{other} is no type of times"))),
    };
    Ok((values, unit))
}

/// The server would cut the spaces beyond `characters_max`.
fn append_text(text: &str, characters_max: Option<usize>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    if text.as_bytes().contains(&0) {
        return Err(Misfit::new("the text holds a NUL character, which PostgreSQL cannot store"));
    }
    // No text has more characters than bytes.
    if let Some(max) = characters_max.filter(|max| text.len() > *max && text.chars().count() > *max) {
        return Err(Misfit::new(format!("the text has more than {max} characters")));
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// The days since 2000. The extreme values are the infinities.
fn encode_date(days: i32) -> Result<i32, Misfit> {
    match days {
        infinity @ (i32::MIN | i32::MAX) => Ok(infinity),
        days => {
            let days = days.checked_sub(DAYS_TO_EPOCH).filter(|days| *days != i32::MIN);
            days.ok_or_else(|| Misfit::new("the date is out of range"))
        }
    }
}

/// The microseconds since 2000. The extreme values are the infinities.
fn encode_timestamp(value: i64, unit: TimeUnit, step: i64) -> Result<i64, Misfit> {
    if let (infinity @ (i64::MIN | i64::MAX), TimeUnit::Microsecond) = (value, unit) {
        return Ok(infinity);
    }
    let moment = microseconds(value, unit, step)?.checked_sub(MICROSECONDS_TO_EPOCH);
    moment.filter(|moment| *moment != i64::MIN).ok_or_else(|| Misfit::new("the timestamp is out of range"))
}

/// `value` in microseconds, which must be a multiple of `step`.
fn microseconds(value: i64, unit: TimeUnit, step: i64) -> Result<i64, Misfit> {
    let out_of_range = || Misfit::new("the value is out of range");
    let too_fine = || Misfit::new("the value has more digits of a second than the column");
    let value = match unit {
        TimeUnit::Second => value.checked_mul(1_000_000).ok_or_else(out_of_range)?,
        TimeUnit::Millisecond => value.checked_mul(1_000).ok_or_else(out_of_range)?,
        TimeUnit::Microsecond => value,
        TimeUnit::Nanosecond if value % 1_000 == 0 => value / 1_000,
        TimeUnit::Nanosecond => return Err(too_fine()),
    };
    if value % step == 0 { Ok(value) } else { Err(too_fine()) }
}

/// Appends the number of dimensions, whether there are nulls, the item type; the length and the first index; the items.
fn append_list(array: &ListArray, row: usize, items: &ColumnValues, oid: u32, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let offsets = array.value_offsets();
    // Offsets are not negative, and there is one more than rows.
    let bound = |index: usize| offsets.get(index).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or_default();
    let (start, end) = (bound(row), bound(row + 1));
    let has_nulls = (start..end).any(|item| items.array().is_null(item));
    out.extend_from_slice(&i32::from(end > start).to_be_bytes());
    out.extend_from_slice(&i32::from(has_nulls).to_be_bytes());
    out.extend_from_slice(&oid.to_be_bytes());
    if end > start {
        // The offsets have 32 bits.
        out.extend_from_slice(&((end - start) as i32).to_be_bytes());
        out.extend_from_slice(&1_i32.to_be_bytes());
    }
    (start..end).try_for_each(|item| items.append(item, out))
}

const NEGATIVE: u16 = 0x4000;
const BASE: u64 = 10_000;
const GROUP_DIGITS: u32 = 4;
/// More groups than 76 digits and a scale of 76 can have.
const GROUPS_MAX: usize = 48;

/// A magnitude that loses its last digits.
trait Magnitude: Copy {
    fn is_zero(self) -> bool;
    /// Divides by `divisor`, at most 10,000; returns the quotient and the remainder.
    fn split(self, divisor: u64) -> (Self, u64);
}

impl Magnitude for u128 {
    fn is_zero(self) -> bool {
        self == 0
    }

    fn split(self, divisor: u64) -> (Self, u64) {
        let divisor = Self::from(divisor);
        // The remainder is below 10,000.
        (self / divisor, (self % divisor) as u64)
    }
}

impl Magnitude for i256 {
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    fn split(self, divisor: u64) -> (Self, u64) {
        let divisor = Self::from_i128(i128::from(divisor));
        // Not negative, and the remainder is below 10,000.
        let remainder = self.wrapping_rem(divisor).to_i128().unwrap_or_default();
        (self.wrapping_div(divisor), u64::try_from(remainder).unwrap_or_default())
    }
}

/// Appends `value`, which has `scale` digits after the point, to a column with `scale_max` digits.
fn write_decimal128(value: i128, scale: i8, scale_max: Option<u32>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    write_digits(value.unsigned_abs(), value < 0, scale, scale_max, out)
}

/// As [`write_decimal128`].
fn write_decimal256(value: i256, scale: i8, scale_max: Option<u32>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let is_negative = value < i256::ZERO;
    match value.to_i128() {
        Some(value) => write_digits(value.unsigned_abs(), is_negative, scale, scale_max, out),
        // A decimal has at most 76 digits, so it is not the minimum.
        None => write_digits(value.wrapping_abs(), is_negative, scale, scale_max, out),
    }
}

fn write_digits<M: Magnitude>(
    mut rest: M,
    is_negative: bool,
    scale: i8,
    scale_max: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    // Zeros before the point that a negative scale leaves out.
    let zeros = u32::from(scale.min(0).unsigned_abs());
    let fraction = u32::from(scale.max(0).unsigned_abs());
    // The groups, from the last one.
    let mut groups = [0_u16; GROUPS_MAX];
    let mut count = 0;
    let mut fraction_groups = fraction.div_ceil(GROUP_DIGITS) as i32;
    fraction_groups -= (zeros / GROUP_DIGITS) as i32;
    let mut partial = match (fraction % GROUP_DIGITS, zeros % GROUP_DIGITS) {
        (0, 0) => None,
        // The digits of the first group, and the zeros behind them.
        (0, zeros) => Some((GROUP_DIGITS - zeros, zeros)),
        (digits, _) => Some((digits, GROUP_DIGITS - digits)),
    };
    while !rest.is_zero() {
        let (digits, padding) = partial.take().unwrap_or((GROUP_DIGITS, 0));
        let (quotient, remainder) = rest.split(10_u64.pow(digits));
        rest = quotient;
        let slot = groups.get_mut(count).ok_or_else(|| Misfit::new("the number has too many digits"))?;
        // Below 10,000.
        *slot = (remainder * 10_u64.pow(padding)) as u16;
        debug_assert!(u64::from(*slot) < BASE);
        count += 1;
    }
    let digits = groups.get(..count).unwrap_or_default();
    let stripped = digits.iter().take_while(|group| **group == 0).count();
    let digits = digits.get(stripped..).unwrap_or_default();
    let fraction_groups = fraction_groups - stripped as i32;
    let digits_after_point = match digits.first() {
        Some(last) if fraction_groups > 0 => {
            let zeros = (1..GROUP_DIGITS).take_while(|power| last % 10_u16.pow(*power) == 0).count() as u32;
            fraction_groups.unsigned_abs() * GROUP_DIGITS - zeros
        }
        _ => 0,
    };
    if let Some(max) = scale_max.filter(|max| digits_after_point > *max) {
        return Err(Misfit::new(format!("the number has {digits_after_point} digits after the point; {max} fit")));
    }
    // The number of groups is at most 48, and a scale at most 1,000.
    let weight = if digits.is_empty() { 0 } else { digits.len() as i32 - fraction_groups - 1 };
    let sign = if is_negative && !digits.is_empty() { NEGATIVE } else { 0 };
    let head = [digits.len() as u16, weight as i16 as u16, sign, scale_max.unwrap_or(digits_after_point) as u16];
    head.iter().chain(digits.iter().rev()).for_each(|part| out.extend_from_slice(&part.to_be_bytes()));
    Ok(())
}

const IPV4: u8 = 2;
const IPV6: u8 = 3;

/// Appends the address `text`, such as `10.0.0.1` or `fe80::/10`.
fn write_network_address(text: &str, is_network: bool, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let misfit = || Misfit::new("the text is no address of IPv4 or IPv6");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) if bits.bytes().all(|byte| byte.is_ascii_digit()) => (address, Some(bits)),
        Some(_) => return Err(misfit()),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| misfit())?;
    let (family, bits_max) = match address {
        IpAddr::V4(_) => (IPV4, Ipv4Addr::BITS),
        IpAddr::V6(_) => (IPV6, Ipv6Addr::BITS),
    };
    let bits = bits.map_or(Ok(bits_max), |bits| bits.parse().map_err(|_| misfit()))?;
    if bits > bits_max {
        return Err(misfit());
    }
    // The bounds keep them within 8 bits.
    let mut append = |bytes: &[u8]| {
        out.extend_from_slice(&[family, bits as u8, u8::from(is_network), bytes.len() as u8]);
        out.extend_from_slice(bytes);
    };
    match address {
        IpAddr::V4(address) => append(&address.octets()),
        IpAddr::V6(address) => append(&address.octets()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::values::write_numeric_text;

    #[test]
    fn values_that_the_server_would_round_are_refused() {
        assert_eq!(microseconds(1_500, TimeUnit::Millisecond, 1_000_000).unwrap_err().reason, too_fine());
        assert_eq!(microseconds(1, TimeUnit::Nanosecond, 1).unwrap_err().reason, too_fine());
        assert_eq!(microseconds(2, TimeUnit::Second, 1_000_000), Ok(2_000_000));
        assert!(microseconds(i64::MAX, TimeUnit::Second, 1).is_err());
        assert!(append_text("ab  ", Some(3), &mut Vec::new()).is_err());
        assert!(append_text("äöü", Some(3), &mut Vec::new()).is_ok());
        assert!(append_text("a\0", None, &mut Vec::new()).is_err());
    }

    fn too_fine() -> String {
        "the value has more digits of a second than the column".to_owned()
    }

    #[test]
    fn extremes_are_infinities_and_neighbours_are_not() {
        assert_eq!(encode_date(i32::MAX), Ok(i32::MAX));
        assert_eq!(encode_date(DAYS_TO_EPOCH), Ok(0));
        assert!(encode_date(i32::MIN + 5).is_err());
        assert!(encode_date(i32::MIN + DAYS_TO_EPOCH).is_err());
        assert_eq!(encode_timestamp(i64::MIN, TimeUnit::Microsecond, 1), Ok(i64::MIN));
        assert!(encode_timestamp(i64::MIN + 1, TimeUnit::Microsecond, 1).is_err());
        assert_eq!(encode_timestamp(MICROSECONDS_TO_EPOCH, TimeUnit::Microsecond, 1), Ok(0));
    }

    fn text(value: i128, scale: i8, scale_max: Option<u32>) -> Result<String, String> {
        let mut out = Vec::new();
        write_decimal128(value, scale, scale_max, &mut out).map_err(|misfit| misfit.reason)?;
        let mut wide = Vec::new();
        write_decimal256(i256::from_i128(value), scale, scale_max, &mut wide).map_err(|misfit| misfit.reason)?;
        assert_eq!(out, wide);
        Ok(write_numeric_text(&out))
    }

    #[test]
    fn digits_have_their_weight() {
        let cases = [
            (0, 5, "0"),
            (1, 0, "1"),
            (-12_300_450, 2, "-123004.5"),
            (1, 8, "0.00000001"),
            (1, 5, "0.00001"),
            (100_000_000, 4, "10000"),
            (10_000, 0, "10000"),
            (7, -3, "7000"),
            (12, -5, "1200000"),
            (12_345, -4, "123450000"),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ];
        for (value, scale, expected) in cases {
            assert_eq!(text(value, scale, None).as_deref(), Ok(expected), "{value} {scale}");
        }
        assert_eq!(text(1_250, 3, Some(2)).as_deref(), Ok("1.25"));
        assert_eq!(text(1_255, 3, Some(2)).unwrap_err(), "the number has 3 digits after the point; 2 fit");
    }

    #[test]
    fn widest_decimals_fit() {
        let nines = i256::from_string(&"9".repeat(76)).unwrap();
        for scale in [0, 1, 38, 75, 76] {
            let mut out = Vec::new();
            write_decimal256(nines.wrapping_neg(), scale, None, &mut out).unwrap();
            let digits: String = write_numeric_text(&out).chars().filter(|character| *character == '9').collect();
            assert_eq!(digits.len(), 76);
        }
    }

    proptest! {
        #[test]
        fn number_is_that_of_its_digits(value: i128, scale in 0..39_i8) {
            let printed = text(value, scale, Some(38)).unwrap();
            let (whole, fraction) = printed.split_once('.').unwrap();
            let digits = format!("{whole}{}", &fraction[..usize::from(scale.unsigned_abs())]);
            prop_assert_eq!(digits.parse::<i128>().unwrap(), value);
        }
    }
}
