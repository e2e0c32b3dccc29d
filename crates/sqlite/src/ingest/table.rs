//! A table that takes rows, as its file describes it, and its columns, from their declared types.

use arrow::datatypes::{DataType, Field, TimeUnit};
use rusqlite::Connection;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{ExtensionType, TargetColumn, with_type_name};

use super::write::write_error;
use crate::files::MAIN_SCHEMA;
use crate::tables::{SqliteTable, TableKind, has_key_index, list_all_tables, quote_identifier};

const COLUMNS_SQL: &str = "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk FROM pragma_table_xinfo(?1, ?2) \
                           WHERE hidden = 0";

/// A table that takes rows.
#[derive(Debug)]
pub(super) struct TargetTable {
    /// The name for SQL.
    pub(super) sql_name: String,
    pub(super) columns: Vec<TargetColumn<ValueForm>>,
}

/// A column as its file declares it.
struct DeclaredColumn {
    name: String,
    declared_type: String,
    is_not_null: bool,
    has_default: bool,
    is_key: bool,
}

impl TargetTable {
    /// The table `table`, which is declared as `name`.
    pub(super) fn look_up(connection: &Connection, name: &str, table: &str, database: &str) -> Result<Self, Error> {
        let failed = |error| write_error(error, database);
        let tables = list_all_tables(connection).map_err(failed)?;
        let is_named = |found: &&SqliteTable| found.schema == MAIN_SCHEMA && found.name.eq_ignore_ascii_case(table);
        let Some(found) = tables.iter().find(is_named) else {
            return Err(missing_table_error(name, database));
        };
        let kind = match found.kind {
            TableKind::Table => None,
            TableKind::View => Some("a view"),
            TableKind::Virtual => Some("a virtual table"),
        };
        if let Some(kind) = kind {
            let message = format!("the table {name:?} of the database {database:?} takes no rows: it is {kind}");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let columns = load_columns(connection, found).map_err(failed)?;
        let sql_name = format!("{}.{}", quote_identifier(MAIN_SCHEMA), quote_identifier(&found.name));
        Ok(Self { sql_name, columns })
    }
}

pub(super) fn missing_table_error(name: &str, database: &str) -> Error {
    let message = format!("the table {name:?} is declared, but the database {database:?} has none");
    Error::new(ErrorKind::NotFound, message).with_hint("The owner of the node corrects the name.")
}

fn load_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<TargetColumn<ValueForm>>> {
    let mut statement = connection.prepare(COLUMNS_SQL)?;
    let declared = statement.query_map([&table.name, &table.schema], |row| {
        Ok(DeclaredColumn {
            name: row.get(0)?,
            declared_type: row.get(1)?,
            is_not_null: row.get(2)?,
            has_default: row.get(3)?,
            is_key: row.get::<_, i64>(4)? > 0,
        })
    })?;
    let declared = declared.collect::<rusqlite::Result<Vec<_>>>()?;
    // A primary key without an index is the rowid itself, which SQLite chooses for null.
    let has_rowid_key = !table.is_without_rowid && !has_key_index(connection, table)?;
    let columns = declared.into_iter().map(|column| {
        let is_rowid = column.is_key && has_rowid_key;
        // In other tables, SQLite allows null in a primary key, because of an old bug.
        let is_strict_key = column.is_key && (table.is_without_rowid || table.is_strict);
        let takes_nulls = is_rowid || !(column.is_not_null || is_strict_key);
        target_column(&column.name, &column.declared_type, table.is_strict, column.has_default, takes_nulls)
    });
    Ok(columns.collect())
}

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
fn target_column(
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
