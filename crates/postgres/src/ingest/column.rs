//! The columns of a table that takes rows: their Arrow fields, and what the server would change in their values.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use tidegate_query::{ExtensionType, with_type_name};
use tokio_postgres::types::{Kind, Type};

use crate::values::{numeric_modifier, type_name};

/// The maximum number of digits of Arrow's decimals.
const DECIMAL128_DIGITS: i32 = 38;
const DECIMAL256_DIGITS: i32 = 76;
/// The digits after the point of a `numeric` without a precision.
const UNBOUNDED_SCALE: i8 = 38;
/// The modifiers of `varchar` and `char` include the header of a stored value.
const HEADER_BYTES: i32 = 4;
/// Digits of a second in times and timestamps.
const TIME_DIGITS: u32 = 6;

/// The binary form of a type, with the bounds within which the server changes no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueForm {
    Boolean,
    Int16,
    Int32,
    Int64,
    UInt32,
    Float32,
    Float64,
    /// The digits after the point, if they are bounded.
    Numeric {
        scale: Option<u32>,
    },
    /// The maximum number of characters. The server would cut spaces after it.
    Text {
        characters_max: Option<usize>,
    },
    Jsonb,
    Uuid,
    /// `inet`, or `cidr`.
    Address {
        is_network: bool,
    },
    Bytes,
    Date,
    /// Microseconds that are multiples of this.
    Time {
        step: i64,
    },
    Timestamp {
        step: i64,
    },
    /// One dimension; the id of the item type precedes the items.
    List {
        item: Box<ValueForm>,
        oid: u32,
    },
}

/// The field `name` and the form of the type `kind` with its modifier, -1 for none. Domains were replaced by the type
/// below them. `None` if values of the type cannot be written.
pub(super) fn field_and_form(name: &str, kind: &Type, modifier: i32, is_nullable: bool) -> Option<(Field, ValueForm)> {
    let (data_type, form) = match kind.kind() {
        // The vectors of the catalog are arrays too, with their own names.
        Kind::Array(item) if kind.name().starts_with('_') => {
            let (field, form) = scalar_field("item", item, modifier, true)?;
            (DataType::List(Arc::new(field)), ValueForm::List { item: Box::new(form), oid: item.oid() })
        }
        _ => return scalar_field(name, kind, modifier, is_nullable),
    };
    let field = Field::new(name, data_type, is_nullable);
    Some((with_type_name(field, type_name(kind, modifier)), form))
}

fn scalar_field(name: &str, kind: &Type, modifier: i32, is_nullable: bool) -> Option<(Field, ValueForm)> {
    let (data_type, form) = match kind.kind() {
        Kind::Enum(_) => (DataType::Utf8, ValueForm::Text { characters_max: None }),
        Kind::Simple => scalar(kind, modifier)?,
        _ => return None,
    };
    let mut field = Field::new(name, data_type, is_nullable);
    if matches!(*kind, Type::JSON | Type::JSONB) {
        field = ExtensionType::Json.annotate(field);
    }
    Some((with_type_name(field, type_name(kind, modifier)), form))
}

fn scalar(kind: &Type, modifier: i32) -> Option<(DataType, ValueForm)> {
    let characters_max = usize::try_from(modifier - HEADER_BYTES).ok();
    Some(match *kind {
        Type::BOOL => (DataType::Boolean, ValueForm::Boolean),
        Type::INT2 => (DataType::Int16, ValueForm::Int16),
        Type::INT4 => (DataType::Int32, ValueForm::Int32),
        Type::INT8 => (DataType::Int64, ValueForm::Int64),
        Type::OID => (DataType::UInt32, ValueForm::UInt32),
        Type::FLOAT4 => (DataType::Float32, ValueForm::Float32),
        Type::FLOAT8 => (DataType::Float64, ValueForm::Float64),
        Type::NUMERIC => numeric(modifier)?,
        Type::TEXT | Type::JSON => (DataType::Utf8, ValueForm::Text { characters_max: None }),
        Type::VARCHAR | Type::BPCHAR => (DataType::Utf8, ValueForm::Text { characters_max }),
        Type::JSONB => (DataType::Utf8, ValueForm::Jsonb),
        Type::UUID => (DataType::Utf8, ValueForm::Uuid),
        Type::INET => (DataType::Utf8, ValueForm::Address { is_network: false }),
        Type::CIDR => (DataType::Utf8, ValueForm::Address { is_network: true }),
        Type::BYTEA => (DataType::Binary, ValueForm::Bytes),
        Type::DATE => (DataType::Date32, ValueForm::Date),
        Type::TIME => {
            let (unit, step) = time_unit(modifier);
            let data_type = match unit {
                TimeUnit::Microsecond | TimeUnit::Nanosecond => DataType::Time64(unit),
                TimeUnit::Second | TimeUnit::Millisecond => DataType::Time32(unit),
            };
            (data_type, ValueForm::Time { step })
        }
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let (unit, step) = time_unit(modifier);
            let zone = (*kind == Type::TIMESTAMPTZ).then(|| "UTC".into());
            (DataType::Timestamp(unit, zone), ValueForm::Timestamp { step })
        }
        // A type of an extension, recognised by its name; its binary form is that of text.
        _ if kind.name() == "citext" => (DataType::Utf8, ValueForm::Text { characters_max: None }),
        _ => return None,
    })
}

fn numeric(modifier: i32) -> Option<(DataType, ValueForm)> {
    let Some((precision, scale)) = numeric_modifier(modifier) else {
        let data_type = DataType::Decimal256(DECIMAL256_DIGITS as u8, UNBOUNDED_SCALE);
        return Some((data_type, ValueForm::Numeric { scale: None }));
    };
    // With a negative scale, the server rounds to tens or hundreds; a larger scale has no Arrow type.
    let form = ValueForm::Numeric { scale: Some(u32::try_from(scale).ok()?) };
    let precision = precision.max(scale).min(DECIMAL256_DIGITS);
    if scale > precision {
        return None;
    }
    // Both are at most 76.
    let (digits, fraction) = (precision as u8, scale as i8);
    Some(match precision <= DECIMAL128_DIGITS {
        true => (DataType::Decimal128(digits, fraction), form),
        false => (DataType::Decimal256(digits, fraction), form),
    })
}

/// The coarsest unit that holds times with the precision of `modifier`, and the step between them in microseconds.
fn time_unit(modifier: i32) -> (TimeUnit, i64) {
    match u32::try_from(modifier) {
        Ok(0) => (TimeUnit::Second, 1_000_000),
        Ok(digits @ 1..=3) => (TimeUnit::Millisecond, 10_i64.pow(TIME_DIGITS - digits)),
        Ok(digits @ 4..=5) => (TimeUnit::Microsecond, 10_i64.pow(TIME_DIGITS - digits)),
        _ => (TimeUnit::Microsecond, 1),
    }
}
