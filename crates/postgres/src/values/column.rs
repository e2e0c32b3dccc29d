//! The Arrow field that a column of a result becomes, and how its values are read.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use tidegate_query::{ExtensionType, with_type_name};
use tokio_postgres::types::{Kind, Type};

use super::text::TextRendering;
use super::type_name::{numeric_modifier, type_name};

/// The most digits that Arrow's decimals have.
const DECIMAL128_DIGITS: i32 = 38;
const DECIMAL256_DIGITS: i32 = 76;

/// A column of a result: its Arrow field, and how its binary values are read.
#[derive(Debug, Clone)]
pub struct ColumnDecoder {
    pub(super) field: Field,
    pub(super) form: BinaryForm,
    /// The type's object id, which stands before values within others.
    pub(super) oid: u32,
}

/// How binary values are read, beside what their Arrow type says.
#[derive(Debug, Clone)]
pub(super) enum BinaryForm {
    /// Values whose Arrow type says it.
    Scalar,
    Text(TextRendering),
    List(Box<ColumnDecoder>),
    Struct(Vec<ColumnDecoder>),
}

impl ColumnDecoder {
    /// The column `name` of type `kind` with its modifier (-1 where it has none), or none if the type's binary form is
    /// not known: such a column is selected as text and is a [`ColumnDecoder::for_text`].
    pub fn for_type(name: &str, kind: &Type, modifier: i32) -> Option<Self> {
        let (data_type, form, meaning) = match kind.kind() {
            Kind::Domain(base) => {
                let base = Self::for_type(name, base, modifier)?;
                // Within arrays and composites a domain stands under its own id.
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
            // Ranges and multiranges, and what later servers bring.
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

    /// The field that it becomes.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

/// The schema of `columns`; names may be empty or come twice.
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
        // What a function that returns nothing returns is empty, and cannot be cast.
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
        // A type of an extension, known by its name alone; its binary form is that of text.
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
