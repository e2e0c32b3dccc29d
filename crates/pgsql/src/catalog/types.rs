//! PostgreSQL's types: those of the catalog, the type of a column, and the text form of each.

use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion::arrow::datatypes::{DataType, Field};

use crate::json_type::{is_json_extension, json_kind};
use crate::number::has_unconstrained_scale;

/// The modifier of a type that takes none or has none.
pub(super) const NO_MODIFIER: i64 = -1;
/// The offset of numeric's modifier.
const HEADER_BYTES: i64 = 4;
const CHARACTER: i64 = 1_042;
const VARCHAR: i64 = 1_043;
const NUMERIC: i64 = 1_700;
const TEXT: i64 = 25;

/// A type of the catalog.
#[derive(Debug, Clone)]
pub(super) struct PgType {
    pub(super) oid: i64,
    pub(super) name: String,
    pub(super) length: i64,
    pub(super) kind: String,
    pub(super) category: String,
    pub(super) is_preferred: bool,
    /// The oid of the array type; 0 if there is none.
    pub(super) array: i64,
    pub(super) element: i64,
    pub(super) is_by_value: bool,
    pub(super) alignment: String,
    pub(super) storage: String,
    pub(super) collation: i64,
    /// The name in SQL.
    pub(super) sql_name: String,
}

/// All types; array types come last.
pub(super) static TYPES: LazyLock<Vec<PgType>> = LazyLock::new(|| {
    let types: Vec<PgType> = include_str!("types.txt").lines().filter_map(parse).collect();
    let arrays: Vec<PgType> = types.iter().filter(|element| element.array != 0).map(array_of).collect();
    types.into_iter().chain(arrays).collect()
});

static BY_OID: LazyLock<HashMap<i64, &'static PgType>> =
    LazyLock::new(|| TYPES.iter().map(|sql_type| (sql_type.oid, sql_type)).collect());

fn parse(line: &str) -> Option<PgType> {
    let mut words = line.splitn(13, ' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let number = |text: String| text.parse::<i64>().ok();
    Some(PgType {
        oid: number(word())?,
        name: word(),
        length: number(word())?,
        kind: word(),
        category: word(),
        is_preferred: word() == "t",
        array: number(word())?,
        element: number(word())?,
        is_by_value: word() == "t",
        alignment: word(),
        storage: word(),
        collation: number(word())?,
        sql_name: word(),
    })
}

fn array_of(element: &PgType) -> PgType {
    PgType {
        oid: element.array,
        name: format!("_{}", element.name),
        length: -1,
        kind: "b".to_owned(),
        category: "A".to_owned(),
        is_preferred: false,
        array: 0,
        element: element.oid,
        is_by_value: false,
        alignment: if element.alignment == "d" { "d" } else { "i" }.to_owned(),
        storage: "x".to_owned(),
        collation: element.collation,
        sql_name: format!("{}[]", element.sql_name),
    }
}

/// Returns the type with this oid.
pub(super) fn find_by_oid(oid: i64) -> Option<&'static PgType> {
    BY_OID.get(&oid).copied()
}

/// Finds a type by either of its names, with or without a length.
pub(super) fn find_by_name(text: &str) -> Option<&'static PgType> {
    let name = text.trim().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let without_length: String = match (name.find('('), name.find(')')) {
        (Some(from), Some(to)) if from < to => [name[..from].trim_end(), &name[to + 1..]].concat(),
        _ => name.to_owned(),
    };
    let name = match without_length.trim() {
        "int" => "integer",
        "dec" | "decimal" => "numeric",
        "float" => "double precision",
        "char" | "bpchar" => "character",
        "timestamp" => "timestamp without time zone",
        "time" => "time without time zone",
        other => other,
    };
    let found = TYPES.iter().find(|sql_type| sql_type.sql_name == name || sql_type.name == name.trim_matches('"'))?;
    if is_array { find_by_oid(found.array) } else { Some(found) }
}

/// Implements `format_type`: the SQL name of the type with an oid and a modifier.
pub(super) fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let Some(sql_type) = find_by_oid(oid) else { return if oid == 0 { "-" } else { "???" }.to_owned() };
    if sql_type.category == "A" && sql_type.name.starts_with('_') {
        return format!("{}[]", format_type(sql_type.element, modifier));
    }
    let Some(modifier) = modifier else { return sql_type.sql_name.clone() };
    if modifier < 0 {
        // A `character` without a length has length 1, so this one is `bpchar`.
        return if oid == CHARACTER { "bpchar".to_owned() } else { sql_type.sql_name.clone() };
    }
    match (oid, modifier - HEADER_BYTES) {
        (CHARACTER | VARCHAR, length) => format!("{}({length})", sql_type.sql_name),
        (NUMERIC, packed) => format!("{}({},{})", sql_type.sql_name, (packed >> 16) & 0xffff, packed & 0x7ff),
        (1_083 | 1_114 | 1_184 | 1_266, _) => match sql_type.sql_name.split_once(' ') {
            Some((word, rest)) => format!("{word}({modifier}) {rest}"),
            None => sql_type.sql_name.clone(),
        },
        _ => sql_type.sql_name.clone(),
    }
}

/// Returns the type of a column, and its modifier.
pub(super) fn column_type(field: &Field) -> (&'static PgType, i64) {
    let (oid, modifier) = if is_json_extension(field) { (114, NO_MODIFIER) } else { type_oid(field.data_type()) };
    (find_by_oid(oid).unwrap_or(&TYPES[0]), modifier)
}

/// Returns the SQL name of an Arrow type.
pub(super) fn sql_type_name(data_type: &DataType) -> String {
    format_type(type_oid(data_type).0, None)
}

fn type_oid(data_type: &DataType) -> (i64, i64) {
    if let Some(kind) = json_kind(data_type) {
        return (find_by_name(kind.name()).map_or(TEXT, |sql_type| sql_type.oid), NO_MODIFIER);
    }
    let oid = match data_type {
        DataType::Boolean => 16,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => 21,
        DataType::UInt16 | DataType::Int32 => 23,
        DataType::UInt32 | DataType::Int64 => 20,
        DataType::UInt64 => return (NUMERIC, modifier_of(20, 0)),
        DataType::Float16 | DataType::Float32 => 700,
        DataType::Float64 => 701,
        DataType::Decimal128(..) if has_unconstrained_scale(data_type) => NUMERIC,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return (NUMERIC, modifier_of(*precision, *scale)),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => 17,
        DataType::Date32 | DataType::Date64 => 1_082,
        DataType::Time32(_) | DataType::Time64(_) => 1_083,
        DataType::Timestamp(_, None) => 1_114,
        DataType::Timestamp(_, Some(_)) => 1_184,
        DataType::Duration(_) | DataType::Interval(_) => 1_186,
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => 2_249,
        DataType::Dictionary(_, values) => return type_oid(values),
        DataType::RunEndEncoded(_, values) => return type_oid(values.data_type()),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            let (element, modifier) = type_oid(item.data_type());
            return match find_by_oid(element) {
                // An array of arrays has the same type as an array of their elements.
                Some(sql_type) if sql_type.category == "A" => (element, modifier),
                Some(sql_type) => (sql_type.array, modifier),
                None => (TEXT, NO_MODIFIER),
            };
        }
        _ => TEXT,
    };
    (oid, NO_MODIFIER)
}

fn modifier_of(precision: u8, scale: i8) -> i64 {
    ((i64::from(precision) << 16) | (i64::from(scale) & 0x7ff)) + HEADER_BYTES
}

/// Returns the precision and the scale of a numeric modifier.
pub(super) fn digits(modifier: i64) -> Option<(i64, i64)> {
    let packed = modifier - HEADER_BYTES;
    (modifier >= HEADER_BYTES).then_some(((packed >> 16) & 0xffff, packed & 0x7ff))
}

/// Returns the number of dimensions of a column of this type.
pub(super) fn dimensions(data_type: &DataType) -> i64 {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => 1 + dimensions(item.data_type()),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_postgresql_writes_them() {
        assert_eq!(format_type(23, None), "integer");
        assert_eq!(format_type(1_043, Some(44)), "character varying(40)");
        assert_eq!(format_type(1_700, Some(786_438)), "numeric(12,2)");
        assert_eq!(format_type(1_009, None), "text[]");
        assert_eq!(format_type(1_184, Some(3)), "timestamp(3) with time zone");
        assert_eq!(format_type(0, None), "-");
        assert_eq!(format_type(99, None), "???");
    }

    #[test]
    fn types_are_found_by_any_of_their_names() {
        for (name, found) in
            [("INT4", "int4"), ("integer[]", "_int4"), ("varchar(3)", "varchar"), ("decimal(3, 1)", "numeric")]
        {
            assert_eq!(find_by_name(name).unwrap().name, found, "{name}");
        }
        assert_eq!(find_by_name("timestamp(3) with time zone").unwrap().name, "timestamptz");
        assert!(find_by_name("nothing").is_none());
    }
}
