//! Which comparisons of a column mean the same in its database as here.

use datafusion::arrow::datatypes::{DataType, Field};
use tidegate_query::{Meaning, SqlDialect, field_type_name};

/// How far comparisons of a column's values agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// They may not.
    None,
    /// What is equal here is equal there, but not the other way round.
    EqualThere,
    /// What is equal here is equal there, and the other way round; not what is less.
    Equal,
    /// Equal and less are the same in both.
    Ordered,
}

impl Likeness {
    /// That of `field` in a database with that dialect.
    pub(super) fn of(field: &Field, dialect: SqlDialect) -> Self {
        match dialect {
            SqlDialect::DataFusion => of_embedded(field.data_type()),
            SqlDialect::Postgres => of_postgres(field),
            SqlDialect::Sqlite => of_sqlite(field.data_type()),
        }
    }
}

/// The same engine as ours; but floats are compared by their bits in some places and by their values in others.
fn of_embedded(data_type: &DataType) -> Likeness {
    if data_type.is_floating() || data_type.is_nested() { Likeness::None } else { Likeness::Ordered }
}

fn of_postgres(field: &Field) -> Likeness {
    let name = field_type_name(field);
    if Meaning::of(field).is_some() {
        return Likeness::None;
    }
    match field.data_type() {
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => Likeness::Ordered,
        DataType::Timestamp(..) | DataType::Decimal128(..) => Likeness::Ordered,
        DataType::Boolean => Likeness::Equal,
        // Its order hangs on a collation; padded, folded and other texts are equal by rules of their own.
        DataType::Utf8 if name == "text" || name.starts_with("character varying") => Likeness::Equal,
        _ => Likeness::None,
    }
}

fn of_sqlite(data_type: &DataType) -> Likeness {
    match data_type {
        DataType::Int64 => Likeness::Ordered,
        // A collation may take texts for equal that differ in case.
        DataType::Utf8 => Likeness::EqualThere,
        _ => Likeness::None,
    }
}
