//! The names that the types of columns and expressions have in PostgreSQL.

use datafusion::arrow::datatypes::{DataType, Field};

use crate::json_type::{is_json_extension, json_kind};
use crate::list::item_type;
use crate::number::has_unconstrained_scale;

/// The types that a column or a cast can have: PostgreSQL's own name, and the name in SQL.
const TYPES: &[(&str, &str)] = &[
    ("bool", "boolean"),
    ("int2", "smallint"),
    ("int4", "integer"),
    ("int8", "bigint"),
    ("numeric", "numeric"),
    ("float4", "real"),
    ("float8", "double precision"),
    ("text", "text"),
    ("varchar", "character varying"),
    ("bpchar", "character"),
    ("name", "name"),
    ("bytea", "bytea"),
    ("date", "date"),
    ("time", "time without time zone"),
    ("timestamp", "timestamp without time zone"),
    ("timestamptz", "timestamp with time zone"),
    ("interval", "interval"),
    ("uuid", "uuid"),
    ("json", "json"),
    ("jsonb", "jsonb"),
    ("record", "record"),
];

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnType {
    /// PostgreSQL's own name of the type, or of the type of the elements.
    pub(super) name: &'static str,
    pub(super) is_array: bool,
    /// The number of digits of a `numeric`, and of those after the point.
    pub(super) digits: Option<(u8, i8)>,
}

impl ColumnType {
    const fn new(name: &'static str) -> Self {
        Self { name, is_array: false, digits: None }
    }

    const fn numeric(precision: u8, scale: i8) -> Self {
        Self { name: "numeric", is_array: false, digits: Some((precision, scale)) }
    }

    /// Returns PostgreSQL's own name: `_int4` for an array of integers.
    pub(super) fn own_name(self) -> String {
        if self.is_array { format!("_{}", self.name) } else { self.name.to_owned() }
    }

    /// Returns the name in SQL: `integer[]` for an array of integers.
    pub(super) fn sql_name(self) -> String {
        let name = find_sql_name(self.name).unwrap_or(self.name);
        if self.is_array { format!("{name}[]") } else { name.to_owned() }
    }
}

/// Returns the type of a column.
pub(super) fn column_type(field: &Field) -> ColumnType {
    if is_json_extension(field) { ColumnType::new("json") } else { of_data_type(field.data_type()) }
}

fn of_data_type(data_type: &DataType) -> ColumnType {
    if let Some(kind) = json_kind(data_type) {
        return ColumnType::new(kind.name());
    }
    let name = match data_type {
        DataType::Boolean => "bool",
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => "int2",
        DataType::UInt16 | DataType::Int32 => "int4",
        DataType::UInt32 | DataType::Int64 => "int8",
        DataType::UInt64 => return ColumnType::numeric(20, 0),
        DataType::Float16 | DataType::Float32 => "float4",
        DataType::Float64 => "float8",
        DataType::Decimal128(..) if has_unconstrained_scale(data_type) => "numeric",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return ColumnType::numeric(*precision, *scale),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        DataType::Duration(_) | DataType::Interval(_) => "interval",
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "record",
        DataType::Dictionary(_, values) => return of_data_type(values),
        DataType::RunEndEncoded(_, values) => return of_data_type(values.data_type()),
        other => match item_type(other) {
            // An array of arrays has the same type as an array of their elements.
            Some(item) => return ColumnType { is_array: true, digits: None, ..of_data_type(item) },
            None => "text",
        },
    };
    ColumnType::new(name)
}

fn find_sql_name(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(own, sql)| *own == name || *sql == name).map(|(_, sql)| *sql)
}

/// Returns the name in SQL of the type that `text` names in any way. `None` if no column can have it.
pub(super) fn sql_name_of(text: &str) -> Option<String> {
    let name = text.trim().to_lowercase();
    let (name, is_array) = match name.strip_suffix("[]").or_else(|| name.strip_prefix('_')) {
        Some(element) => (element, true),
        None => (name.as_str(), false),
    };
    let found = find_sql_name(match name {
        "int" => "integer",
        "decimal" | "dec" => "numeric",
        "float" => "double precision",
        "char" => "character",
        other => other,
    })?;
    Some(if is_array { format!("{found}[]") } else { found.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_any_of_their_names() {
        let names = [
            ("INT4", "integer"),
            ("int[]", "integer[]"),
            ("_text", "text[]"),
            ("timestamptz", "timestamp with time zone"),
        ];
        for (name, found) in names {
            assert_eq!(sql_name_of(name).unwrap(), found, "{name}");
        }
        assert_eq!(sql_name_of("nothing"), None);
    }

    #[test]
    fn columns_have_the_types_of_postgresql() {
        let digits = column_type(&Field::new("a", DataType::Decimal128(12, 2), true));
        assert_eq!(digits, ColumnType::numeric(12, 2));
        let integers = DataType::new_list(DataType::new_list(DataType::Int32, true), true);
        let integers = column_type(&Field::new("a", integers, true));
        assert_eq!((integers.own_name(), integers.sql_name()), ("_int4".to_owned(), "integer[]".to_owned()));
    }
}
