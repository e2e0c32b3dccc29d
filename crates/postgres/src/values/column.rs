//! The columns of results: their Arrow fields, the decoding of their values, and the SQL names of their types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use tidegate_query::{ExtensionType, with_type_name};
use tokio_postgres::types::{Kind, Type};

use super::scalar::TextRendering;

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

#[cfg(test)]
mod tests {
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
}
