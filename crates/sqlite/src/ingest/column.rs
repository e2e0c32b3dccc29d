//! The columns of a table that takes rows, from their declared types.

use arrow::datatypes::{DataType, Field, TimeUnit};
use tidegate_query::{ExtensionType, TargetColumn, with_type_name};

/// The maximum number of digits of a decimal.
const DECIMAL_DIGITS: u8 = 38;
/// The digits after the point of a decimal without a declared precision; SQLite stores no more exactly.
const DECIMAL_SCALE: i8 = 15;

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueForm {
    Integer,
    Boolean,
    Real,
    Text,
    /// Text in a column that converts numbers.
    TextNotNumber,
    Json,
    Blob,
    Decimal,
    Date,
    Time,
    Timestamp {
        is_utc: bool,
    },
}

/// The column `name`, declared with this type, as a target of rows.
pub(super) fn target_column(
    name: &str,
    declared_type: &str,
    is_strict: bool,
    has_default: bool,
    takes_nulls: bool,
) -> TargetColumn<ValueForm> {
    let (data_type, form) = value_form(declared_type, is_strict);
    let mut field = Field::new(name, data_type, takes_nulls || has_default);
    if form == ValueForm::Json {
        field = ExtensionType::Json.annotate(field);
    }
    if !declared_type.is_empty() {
        field = with_type_name(field, declared_type);
    }
    TargetColumn { field, form, has_default, takes_nulls }
}

/// The type of a body and the form of a column. In STRICT tables, types are exact; in others, the rules of SQLite about
/// affinity come first, in their order.
fn value_form(declared: &str, is_strict: bool) -> (DataType, ValueForm) {
    let declared = declared.to_uppercase();
    let has = |part: &str| declared.contains(part);
    let microseconds = TimeUnit::Microsecond;
    match () {
        () if has("INT") => (DataType::Int64, ValueForm::Integer),
        () if has("CHAR") || has("CLOB") || has("TEXT") || declared.is_empty() => (DataType::Utf8, ValueForm::Text),
        () if has("BLOB") => (DataType::Binary, ValueForm::Blob),
        () if has("REAL") || has("FLOA") || has("DOUB") => (DataType::Float64, ValueForm::Real),
        // The only type of a STRICT table that is left is ANY, which keeps text.
        () if is_strict => (DataType::Utf8, ValueForm::Text),
        () if declared.starts_with("BOOL") => (DataType::Boolean, ValueForm::Boolean),
        () if declared == "DATE" => (DataType::Date32, ValueForm::Date),
        () if declared == "TIME" => (DataType::Time64(microseconds), ValueForm::Time),
        () if declared == "DATETIME" || declared.starts_with("TIMESTAMP") => {
            let is_utc = declared.starts_with("TIMESTAMPTZ") || has("WITH TIME ZONE");
            let zone = is_utc.then(|| "UTC".into());
            (DataType::Timestamp(microseconds, zone), ValueForm::Timestamp { is_utc })
        }
        () if declared.starts_with("DECIMAL") || declared.starts_with("NUMERIC") => {
            let (precision, scale) = decimal_bounds(&declared).unwrap_or((DECIMAL_DIGITS, DECIMAL_SCALE));
            (DataType::Decimal128(precision, scale), ValueForm::Decimal)
        }
        () if declared == "JSON" => (DataType::Utf8, ValueForm::Json),
        () => (DataType::Utf8, ValueForm::TextNotNumber),
    }
}

/// The precision and the scale of `DECIMAL(10, 2)`.
fn decimal_bounds(declared: &str) -> Option<(u8, i8)> {
    let (_, bounds) = declared.split_once('(')?;
    let (bounds, _) = bounds.split_once(')')?;
    let (precision, scale) = match bounds.split_once(',') {
        Some((precision, scale)) => (precision.trim().parse().ok()?, scale.trim().parse().ok()?),
        None => (bounds.trim().parse().ok()?, 0_i8),
    };
    let fits = (1..=DECIMAL_DIGITS).contains(&precision) && (0..=precision.cast_signed()).contains(&scale);
    fits.then_some((precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_have_the_affinity_of_sqlite() {
        let form = |declared: &str| value_form(declared, false);
        assert_eq!(form("UNSIGNED BIG INT").1, ValueForm::Integer);
        assert_eq!(form("FLOATING POINT").1, ValueForm::Integer);
        assert_eq!(form("varchar(255)").1, ValueForm::Text);
        assert_eq!(form("STRING").1, ValueForm::TextNotNumber);
        assert_eq!(form("decimal(10, 2)").0, DataType::Decimal128(10, 2));
        assert_eq!(form("NUMERIC(5)").0, DataType::Decimal128(5, 0));
        assert_eq!(form("NUMERIC").0, DataType::Decimal128(38, 15));
        assert_eq!(form("DECIMAL(50,2)").0, DataType::Decimal128(38, 15));
        assert_eq!(form("timestamp with time zone").1, ValueForm::Timestamp { is_utc: true });
        assert_eq!(value_form("ANY", true).1, ValueForm::Text);
        assert_eq!(value_form("ANY", false).1, ValueForm::TextNotNumber);
    }
}
