//! The names that types of columns have in the configuration: those of Tidegate, and those of PostgreSQL.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, TimeUnit};

use self::DeclaredType::*;
use crate::format::ExtensionType;

/// The type that the configuration declares for a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredType {
    /// `true` or `false`.
    Boolean,
    /// A signed integer of so many bits.
    Integer(u8),
    /// An unsigned integer of so many bits.
    Unsigned(u8),
    /// A float of 32 bits.
    Float,
    /// A float of 64 bits.
    Double,
    /// A number with so many digits, and so many of them after the point.
    Decimal(u8, i8),
    /// Text.
    Text,
    /// Text that is JSON.
    Json,
    /// Bytes.
    Binary,
    /// A day.
    Date,
    /// A time of day.
    Time,
    /// `timestamp`: an instant in tables that take rows, a time without a zone in files.
    Timestamp,
    /// A date and a time of day without a zone.
    LocalTimestamp,
    /// An instant.
    Instant,
    /// An instant with nanoseconds.
    InstantNanoseconds,
}

/// The digits of a decimal for which none are declared.
const DECIMAL_DEFAULT: DeclaredType = Decimal(DECIMAL128_MAX_PRECISION, 15);

/// The names. `int8` has 8 bits, as the other names with a number of bits.
const TYPE_NAMES: &[(&str, DeclaredType)] = &[
    ("boolean", Boolean),
    ("bool", Boolean),
    ("int8", Integer(8)),
    ("int16", Integer(16)),
    ("smallint", Integer(16)),
    ("int32", Integer(32)),
    ("integer", Integer(64)),
    ("int", Integer(64)),
    ("int64", Integer(64)),
    ("bigint", Integer(64)),
    ("uint8", Unsigned(8)),
    ("uint16", Unsigned(16)),
    ("uint32", Unsigned(32)),
    ("uint64", Unsigned(64)),
    ("float", Float),
    ("real", Float),
    ("double", Double),
    ("double precision", Double),
    ("number", Double),
    ("decimal", DECIMAL_DEFAULT),
    ("numeric", DECIMAL_DEFAULT),
    ("string", Text),
    ("text", Text),
    ("varchar", Text),
    ("character varying", Text),
    ("uuid", Text),
    ("json", Json),
    ("jsonb", Json),
    ("binary", Binary),
    ("bytea", Binary),
    ("date", Date),
    ("time", Time),
    ("time without time zone", Time),
    ("timestamp", Timestamp),
    ("timestamp without time zone", LocalTimestamp),
    ("local_timestamp", LocalTimestamp),
    ("timestamp with time zone", Instant),
    ("timestamptz", Instant),
    ("timestamp_ns", InstantNanoseconds),
];

impl DeclaredType {
    /// The names, for messages.
    pub const ACCEPTED: &str = "boolean, smallint (int16), integer or bigint (int64), int8, int32, uint8 to uint64, real (float), \
                             double precision (double), numeric(P,S) (decimal), text (string, varchar), uuid, json (jsonb), \
                             bytea (binary), date, time, timestamp, timestamptz, timestamp_ns and local_timestamp";

    /// The type whose name `text` begins with, in any case, and the text behind it. `None` if no type has this name, or if its
    /// digits are impossible.
    pub fn split_from(text: &str) -> Option<(Self, &str)> {
        let found = TYPE_NAMES.iter().filter_map(|(name, declared)| Some((strip_words(text, name)?, *declared)));
        // The longest name.
        let (rest, declared) = found.min_by_key(|(rest, _)| rest.len())?;
        match (declared, rest.trim_start().strip_prefix('(')) {
            (Decimal(..), Some(digits)) => {
                let (digits, rest) = digits.split_once(')')?;
                Some((decimal(digits)?, rest))
            }
            // Only decimals have bounds.
            (_, Some(_)) => None,
            (_, None) => Some((declared, rest)),
        }
    }

    /// A column of this type in a table that takes rows.
    pub fn field(self, name: &str, is_nullable: bool) -> Field {
        let utc = || Some("UTC".into());
        let data_type = match self {
            Boolean => DataType::Boolean,
            Integer(8) => DataType::Int8,
            Integer(16) => DataType::Int16,
            Integer(32) => DataType::Int32,
            Integer(_) => DataType::Int64,
            Unsigned(8) => DataType::UInt8,
            Unsigned(16) => DataType::UInt16,
            Unsigned(32) => DataType::UInt32,
            Unsigned(_) => DataType::UInt64,
            Float => DataType::Float32,
            Double => DataType::Float64,
            Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Text | Json => DataType::Utf8,
            Binary => DataType::Binary,
            Date => DataType::Date32,
            Time => DataType::Time64(TimeUnit::Microsecond),
            Timestamp | Instant => DataType::Timestamp(TimeUnit::Microsecond, utc()),
            InstantNanoseconds => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
            LocalTimestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        };
        let field = Field::new(name, data_type, is_nullable);
        if self == Json { ExtensionType::Json.annotate(field) } else { field }
    }
}

/// The rest of `text` behind the words of `name`.
fn strip_words<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = text;
    for word in name.split(' ') {
        let (head, behind) = rest.trim_start().split_at_checked(word.len())?;
        let goes_on = behind.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        if goes_on || !head.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

fn decimal(digits: &str) -> Option<DeclaredType> {
    let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
    let (precision, scale): (u8, u8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let fits = (1..=DECIMAL128_MAX_PRECISION).contains(&precision) && scale <= precision;
    fits.then_some(Decimal(precision, scale.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_name(name: &str) -> Option<DeclaredType> {
        DeclaredType::split_from(name).filter(|(_, rest)| rest.trim().is_empty()).map(|(declared, _)| declared)
    }

    #[test]
    fn names_of_postgresql_and_of_this_program_are_types() {
        for (name, expected) in [
            ("bigint", Integer(64)),
            ("INTEGER", Integer(64)),
            ("smallint", Integer(16)),
            ("int8", Integer(8)),
            ("double precision", Double),
            ("Double  Precision", Double),
            ("real", Float),
            ("numeric", Decimal(38, 15)),
            ("numeric(10,2)", Decimal(10, 2)),
            ("decimal( 18 )", Decimal(18, 0)),
            ("Decimal (10, 2)", Decimal(10, 2)),
            ("character varying", Text),
            ("uuid", Text),
            ("jsonb", Json),
            ("bytea", Binary),
            ("timestamp with time zone", Instant),
            ("timestamptz", Instant),
            ("timestamp without time zone", LocalTimestamp),
            ("timestamp", Timestamp),
            ("timestamp_ns", InstantNanoseconds),
        ] {
            assert_eq!(from_name(name), Some(expected), "{name}");
        }
        for name in [
            "",
            "moment",
            "decimal(0,0)",
            "decimal(39,0)",
            "decimal(2,3)",
            "decimal(2",
            "decimal(3,-1)",
            "varchar(20)",
            "timestamp(3)",
            "date DD.MM.YYYY",
            "timestamps",
            "double precisions",
            "time with time zone",
        ] {
            assert_eq!(from_name(name), None, "{name}");
        }
    }

    #[test]
    fn what_follows_a_name_is_kept() {
        assert_eq!(DeclaredType::split_from("date DD.MM.YYYY"), Some((Date, " DD.MM.YYYY")));
        assert_eq!(DeclaredType::split_from("numeric(5,1) not null"), Some((Decimal(5, 1), " not null")));
        assert_eq!(DeclaredType::split_from("timestamp with time zone YYYY"), Some((Instant, " YYYY")));
        assert_eq!(DeclaredType::split_from("timestamp HH:MI"), Some((Timestamp, " HH:MI")));
    }

    #[test]
    fn only_json_is_marked() {
        assert_eq!(ExtensionType::from_field(&Json.field("a", true)), Some(ExtensionType::Json));
        assert!(Text.field("a", true).metadata().is_empty());
    }
}
