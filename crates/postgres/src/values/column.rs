//! The Arrow field that a column of a result becomes, and how its values are read.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use tidegate_query::{Meaning, with_type_name};
use tokio_postgres::types::{Kind, Type};

use super::text::Spelling;
use super::type_name::{numeric_modifier, type_name};

/// The most digits that Arrow's decimals have.
const DECIMAL128_DIGITS: i32 = 38;
const DECIMAL256_DIGITS: i32 = 76;

/// A column of a result: its Arrow field, and how its binary values are read.
#[derive(Debug, Clone)]
pub struct Column {
    pub(super) field: Field,
    pub(super) form: Form,
    /// The type's object id, which stands before values within others.
    pub(super) oid: u32,
}

/// How binary values are read.
#[derive(Debug, Clone)]
pub(super) enum Form {
    Boolean,
    Int16,
    Int32,
    Int64,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Decimal128(i8),
    Decimal256(i8),
    Text(Spelling),
    Bytes,
    Date,
    Time,
    Timestamp,
    Interval,
    List(Box<Column>),
    Struct(Vec<Column>),
}

impl Column {
    /// The column `name` of type `kind` with its modifier (-1 where it has none), or none if the type's binary form is
    /// not known: such a column is selected as text and is a [`Column::text_of`].
    pub fn of(name: &str, kind: &Type, modifier: i32) -> Option<Self> {
        let (data_type, form, meaning) = match kind.kind() {
            Kind::Domain(base) => {
                let base = Self::of(name, base, modifier)?;
                // Within arrays and composites a domain stands under its own id.
                return Some(Self {
                    field: with_type_name(base.field, type_name(kind, modifier)),
                    oid: kind.oid(),
                    ..base
                });
            }
            Kind::Enum(_) => text(Spelling::Plain),
            Kind::Array(item) => list(Self::of("item", item, modifier)?),
            Kind::Composite(members) if !members.is_empty() => {
                let members = members.iter().map(|member| Self::of(member.name(), member.type_(), -1));
                structure(members.collect::<Option<Vec<Self>>>()?)
            }
            Kind::Simple | Kind::Pseudo => scalar(kind, modifier)?,
            // Ranges and multiranges, and what later servers bring.
            _ => return None,
        };
        let field = Field::new(name, data_type, true);
        let field = meaning.into_iter().fold(field, |field, meaning: Meaning| meaning.mark(field));
        Some(Self { field: with_type_name(field, type_name(kind, modifier)), form, oid: kind.oid() })
    }

    /// The column `name` whose values of type `kind` were selected as `column::text`.
    pub fn text_of(name: &str, kind: &Type, modifier: i32) -> Self {
        let field = with_type_name(Field::new(name, DataType::Utf8, true), type_name(kind, modifier));
        Self { field, form: Form::Text(Spelling::Plain), oid: Type::TEXT.oid() }
    }

    /// The field that it becomes.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

/// The schema of `columns`; names may be empty or come twice.
pub fn schema_of(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Fields>()))
}

type Parts = (DataType, Form, Option<Meaning>);

fn scalar(kind: &Type, modifier: i32) -> Option<Parts> {
    let microseconds = TimeUnit::Microsecond;
    let plain = |data_type, form| (data_type, form, None);
    let parts = match *kind {
        Type::BOOL => plain(DataType::Boolean, Form::Boolean),
        Type::INT2 => plain(DataType::Int16, Form::Int16),
        Type::INT4 => plain(DataType::Int32, Form::Int32),
        Type::INT8 => plain(DataType::Int64, Form::Int64),
        Type::OID | Type::XID | Type::CID => plain(DataType::UInt32, Form::UInt32),
        Type::XID8 => plain(DataType::UInt64, Form::UInt64),
        Type::FLOAT4 => plain(DataType::Float32, Form::Float32),
        Type::FLOAT8 => plain(DataType::Float64, Form::Float64),
        Type::NUMERIC => number(modifier),
        // What a function that returns nothing returns is empty, and cannot be cast.
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::CSTRING | Type::VOID => {
            text(Spelling::Plain)
        }
        Type::CHAR => text(Spelling::Char),
        Type::UUID => text(Spelling::Uuid),
        Type::INET | Type::CIDR => text(Spelling::Address),
        Type::MACADDR | Type::MACADDR8 => text(Spelling::MacAddress),
        Type::BIT | Type::VARBIT => text(Spelling::Bits),
        Type::JSON => (DataType::Utf8, Form::Text(Spelling::Plain), Some(Meaning::Json)),
        Type::JSONB => (DataType::Utf8, Form::Text(Spelling::Jsonb), Some(Meaning::Json)),
        Type::BYTEA => plain(DataType::Binary, Form::Bytes),
        Type::DATE => plain(DataType::Date32, Form::Date),
        Type::TIME => plain(DataType::Time64(microseconds), Form::Time),
        Type::TIMESTAMP => plain(DataType::Timestamp(microseconds, None), Form::Timestamp),
        Type::TIMESTAMPTZ => plain(DataType::Timestamp(microseconds, Some("UTC".into())), Form::Timestamp),
        Type::INTERVAL => plain(DataType::Interval(IntervalUnit::MonthDayNano), Form::Interval),
        // A type of an extension, known by its name alone; its binary form is that of text.
        _ if kind.name() == "citext" => text(Spelling::Plain),
        _ => return None,
    };
    Some(parts)
}

fn text(spelling: Spelling) -> Parts {
    (DataType::Utf8, Form::Text(spelling), None)
}

fn number(modifier: i32) -> Parts {
    let fitting = numeric_modifier(modifier).filter(|(precision, scale)| (0..=*precision).contains(scale));
    // The bounds below keep both within 8 bits.
    match fitting {
        Some((precision, scale)) if precision <= DECIMAL128_DIGITS => {
            (DataType::Decimal128(precision as u8, scale as i8), Form::Decimal128(scale as i8), None)
        }
        Some((precision, scale)) if precision <= DECIMAL256_DIGITS => {
            (DataType::Decimal256(precision as u8, scale as i8), Form::Decimal256(scale as i8), None)
        }
        _ => (DataType::Utf8, Form::Text(Spelling::Number), Some(Meaning::Number)),
    }
}

fn list(item: Column) -> Parts {
    (DataType::List(Arc::new(item.field.clone())), Form::List(Box::new(item)), None)
}

fn structure(members: Vec<Column>) -> Parts {
    let fields = members.iter().map(|member| member.field.clone()).collect();
    (DataType::Struct(fields), Form::Struct(members), None)
}
