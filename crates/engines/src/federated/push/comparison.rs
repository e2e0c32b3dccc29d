//! Which comparisons of a column have the same result in its database as here.

use datafusion::arrow::datatypes::{DataType, Field};
use tidegate_query::{ExtensionType, field_type_name};
use tidegate_sql::SqlDialect;

/// Types of PostgreSQL with the order of their texts, beside those with a length.
const ORDERED_AS_TEXTS: &[&str] = &["text", "bpchar", "name", "\"char\"", "uuid", "macaddr", "macaddr8"];

/// How far comparisons of a column agree with the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ComparisonSemantics {
    /// They may differ.
    None,
    /// Values that are equal here are equal in the member, but not vice versa.
    EqualInMember,
    /// Equality agrees, order does not.
    Equal,
    /// Equality and order agree.
    Ordered,
}

impl ComparisonSemantics {
    pub(crate) fn for_field(field: &Field, dialect: SqlDialect) -> Self {
        match dialect {
            SqlDialect::DataFusion => embedded_semantics(field.data_type()),
            SqlDialect::Postgres => postgres_semantics(field),
            SqlDialect::Sqlite => sqlite_semantics(field.data_type()),
        }
    }
}

/// The type as which a query of the member selects `field`, if that is another than the column's own: PostgreSQL's
/// cast to text. It removes the padding of `char(n)`, and then texts that are equal here are equal there too, whatever
/// the rules of the column's own type.
pub(crate) fn selected_type(field: &Field, dialect: SqlDialect) -> Option<&'static str> {
    match (dialect, field.data_type()) {
        (SqlDialect::Postgres, DataType::Utf8) => is_cast_to_text(field).then_some("text"),
        (SqlDialect::Postgres, DataType::List(item)) if *item.data_type() == DataType::Utf8 => {
            is_cast_to_text(item).then_some("text[]")
        }
        _ => None,
    }
}

/// Whether the member orders the values of `field`, which are texts here, by the rules of another type. PostgreSQL
/// describes a column of a domain by its base type.
pub(crate) fn has_own_order(field: &Field, dialect: SqlDialect) -> bool {
    let name = field_type_name(field);
    dialect.is_postgres()
        && *field.data_type() == DataType::Utf8
        && ExtensionType::from_field(field).is_none()
        && !["character", "bit"].iter().any(|start| name.starts_with(start))
        && !ORDERED_AS_TEXTS.contains(&name.as_str())
}

/// Whether `field` has a type that becomes text here and is not a text type of PostgreSQL. JSON and numbers keep their
/// extension types; a cast of `inet` would add the length of the prefix, and one of `"char"` depends on the version.
fn is_cast_to_text(field: &Field) -> bool {
    let name = field_type_name(field);
    ExtensionType::from_field(field).is_none() && !is_text_name(&name) && !matches!(&*name, "inet" | "\"char\"")
}

fn is_text_name(name: &str) -> bool {
    name == "text" || name.starts_with("character varying")
}

/// The same engine, but it compares floats by their bits in some places and by their values in others.
fn embedded_semantics(data_type: &DataType) -> ComparisonSemantics {
    if data_type.is_floating() || data_type.is_nested() {
        ComparisonSemantics::None
    } else {
        ComparisonSemantics::Ordered
    }
}

fn postgres_semantics(field: &Field) -> ComparisonSemantics {
    if ExtensionType::from_field(field).is_some() {
        return ComparisonSemantics::None;
    }
    match field.data_type() {
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => ComparisonSemantics::Ordered,
        DataType::Timestamp(..) | DataType::Decimal128(..) => ComparisonSemantics::Ordered,
        DataType::Boolean => ComparisonSemantics::Equal,
        // The order depends on a collation. Padded, case-insensitive and other types have their own rules for equality,
        // and are cast to text first.
        DataType::Utf8 if is_text_name(&field_type_name(field)) || is_cast_to_text(field) => ComparisonSemantics::Equal,
        _ => ComparisonSemantics::None,
    }
}

fn sqlite_semantics(data_type: &DataType) -> ComparisonSemantics {
    match data_type {
        DataType::Int64 => ComparisonSemantics::Ordered,
        // A collation may treat texts that differ in case as equal.
        DataType::Utf8 => ComparisonSemantics::EqualInMember,
        _ => ComparisonSemantics::None,
    }
}
