//! Which comparisons of a column mean the same in its database as here.

use datafusion::arrow::datatypes::{DataType, Field};
use tidegate_query::{ExtensionType, SqlDialect, field_type_name};

/// How far comparisons of a column's values agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ComparisonSemantics {
    /// They may not.
    None,
    /// What is equal here is equal there, but not the other way round.
    EqualInMember,
    /// What is equal here is equal there, and the other way round; not what is less.
    Equal,
    /// Equal and less are the same in both.
    Ordered,
}

impl ComparisonSemantics {
    /// That of `field` in a database with that dialect.
    pub(super) fn for_field(field: &Field, dialect: SqlDialect) -> Self {
        match dialect {
            SqlDialect::DataFusion => embedded_semantics(field.data_type()),
            SqlDialect::Postgres => postgres_semantics(field),
            SqlDialect::Sqlite => sqlite_semantics(field.data_type()),
        }
    }
}

/// The same engine as ours; but floats are compared by their bits in some places and by their values in others.
fn embedded_semantics(data_type: &DataType) -> ComparisonSemantics {
    if data_type.is_floating() || data_type.is_nested() {
        ComparisonSemantics::None
    } else {
        ComparisonSemantics::Ordered
    }
}

fn postgres_semantics(field: &Field) -> ComparisonSemantics {
    let name = field_type_name(field);
    if ExtensionType::from_field(field).is_some() {
        return ComparisonSemantics::None;
    }
    match field.data_type() {
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => ComparisonSemantics::Ordered,
        DataType::Timestamp(..) | DataType::Decimal128(..) => ComparisonSemantics::Ordered,
        DataType::Boolean => ComparisonSemantics::Equal,
        // Its order hangs on a collation; padded, folded and other texts are equal by rules of their own.
        DataType::Utf8 if name == "text" || name.starts_with("character varying") => ComparisonSemantics::Equal,
        _ => ComparisonSemantics::None,
    }
}

fn sqlite_semantics(data_type: &DataType) -> ComparisonSemantics {
    match data_type {
        DataType::Int64 => ComparisonSemantics::Ordered,
        // A collation may take texts for equal that differ in case.
        DataType::Utf8 => ComparisonSemantics::EqualInMember,
        _ => ComparisonSemantics::None,
    }
}
