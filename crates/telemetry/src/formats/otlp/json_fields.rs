//! Fields of messages in JSON: the mapping of Protocol Buffers, with the deviations of OTLP.
//!
//! - Null is the default of a field.
//! - Integers are numbers or text; a number with a fraction is an error, and so is one out of range.
//! - Floats are numbers or text, also `"NaN"`, `"Infinity"` and `"-Infinity"`.
//! - Identifiers are hexadecimal digits, other bytes are Base64.
//!
//! Lists take memory from a budget of the thread, because an empty object of three bytes becomes a message of hundreds.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Floats hold all integers up to this one.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
/// The text of the error when the budget is used up, as `serde_json` has only texts.
pub(super) const OUT_OF_MEMORY: &str = "the budget of lists is used up";

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(false);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);

thread_local! {
    static BUDGET: Cell<usize> = const { Cell::new(0) };
}

/// Runs `decode`, whose lists may take `bytes` of memory.
pub(super) fn with_budget<T>(bytes: usize, decode: impl FnOnce() -> T) -> T {
    let outer = BUDGET.replace(bytes);
    let result = decode();
    BUDGET.set(outer);
    result
}

fn take(bytes: usize) -> bool {
    let rest = BUDGET.get().checked_sub(bytes);
    BUDGET.set(rest.unwrap_or(0));
    rest.is_some()
}

pub(super) fn text<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(input)?.unwrap_or_default())
}

pub(super) fn boolean<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(input)?.unwrap_or_default())
}

pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<BoundedList<T>>::deserialize(input)?.map(|list| list.0).unwrap_or_default())
}

pub(super) fn integer<'de, D: Deserializer<'de>, T: TryFrom<i128> + Default>(input: D) -> Result<T, D::Error> {
    Ok(optional_integer(input)?.unwrap_or_default())
}

pub(super) fn optional_integer<'de, D: Deserializer<'de>, T: TryFrom<i128>>(input: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<IntegerField<T>>::deserialize(input)?.map(|field| field.0))
}

pub(super) fn integers<'de, D: Deserializer<'de>, T: TryFrom<i128>>(input: D) -> Result<Vec<T>, D::Error> {
    let fields: Vec<IntegerField<T>> = list(input)?;
    Ok(fields.into_iter().map(|field| field.0).collect())
}

pub(super) fn double<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(optional_double(input)?.unwrap_or_default())
}

pub(super) fn optional_double<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<DoubleField>::deserialize(input)?.map(|field| field.0))
}

pub(super) fn doubles<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<f64>, D::Error> {
    let fields: Vec<DoubleField> = list(input)?;
    Ok(fields.into_iter().map(|field| field.0).collect())
}

/// An identifier of hexadecimal digits.
pub(super) fn identifier<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
    let digits = text(input)?;
    hex::decode(&digits).map_err(|_| {
        D::Error::custom(format!("the identifier {digits:?} does not consist of pairs of hexadecimal digits"))
    })
}

pub(super) fn optional_bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<u8>>, D::Error> {
    let Some(encoded) = Option::<String>::deserialize(input)? else { return Ok(None) };
    let decoded = STANDARD.decode(&encoded).or_else(|_| URL_SAFE.decode(&encoded));
    decoded.map(Some).map_err(|_| D::Error::custom("the bytes are not in Base64"))
}

/// A list whose items are counted against the budget.
struct BoundedList<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = BoundedList<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if !take(size_of::<T>()) {
                return Err(A::Error::custom(OUT_OF_MEMORY));
            }
            list.push(item);
        }
        Ok(BoundedList(list))
    }
}

struct IntegerField<T>(T);

impl<'de, T: TryFrom<i128>> Deserialize<'de> for IntegerField<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(IntegerVisitor(PhantomData))
    }
}

struct IntegerVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i128>> IntegerVisitor<T> {
    fn convert<E: Error>(value: i128) -> Result<IntegerField<T>, E> {
        T::try_from(value).map(IntegerField).map_err(|_| E::custom(format!("{value} is out of the range of the field")))
    }
}

impl<T: TryFrom<i128>> Visitor<'_> for IntegerVisitor<T> {
    type Value = IntegerField<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer, as a number or as text")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Self::convert(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Self::convert(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        if value.fract() != 0.0 || value.abs() > EXACT_INTEGER_MAX {
            return Err(E::custom(format!("{value} is not an integer that a number with a fraction holds exactly")));
        }
        // The value is integral and within 54 bits.
        Self::convert(value as i128)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        let is_plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let number = value.parse::<i128>().ok().filter(|_| is_plain);
        Self::convert(number.ok_or_else(|| E::custom(format!("{value:?} is not an integer")))?)
    }
}

struct DoubleField(f64);

impl<'de> Deserialize<'de> for DoubleField {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(DoubleVisitor)
    }
}

struct DoubleVisitor;

impl Visitor<'_> for DoubleVisitor {
    type Value = DoubleField;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, as a number or as text")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(DoubleField(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(DoubleField(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(DoubleField(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        let number = match value {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => value.parse::<f64>().ok().filter(|number| number.is_finite()),
        };
        number.map(DoubleField).ok_or_else(|| E::custom(format!("{value:?} is not a number")))
    }
}
