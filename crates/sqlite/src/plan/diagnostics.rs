//! SQLite's error messages for a statement, with suggested names.

use rusqlite::Error as SqliteError;
use tidegate_core::{Error, ErrorKind, misspelled_name, nearest_names};
use tidegate_sql::{SqlDialect, Statement, equivalent_function};

use super::SqliteStatement;
use crate::catalog::{self, suggest_names};
use crate::policy_views::{MASK_PREFIX, policy_names, unreadable_under_policy_error};
use crate::session::{ReadTransaction, SERIES_ARGUMENT};
use crate::tables::{SqliteTable, TableKind};
use crate::work_error::{WorkError, sqlite_message};

const COLUMNS_MAX: usize = 60;

pub(super) fn add_suggestions(
    failure: WorkError,
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    database: &str,
) -> WorkError {
    let failure = hide_names(failure, reading, statement);
    let WorkError::Sqlite(error) = &failure else { return failure };
    // If the names cannot be read, the original error is returned.
    match diagnose(error, reading, statement, database) {
        Ok(Some(error)) => error.into(),
        _ => failure,
    }
}

/// The failure may be in a table or a view of the owner, whose name the caller must not see.
pub(super) fn hide_names(failure: WorkError, reading: &ReadTransaction<'_>, statement: &SqliteStatement) -> WorkError {
    if !reading.has_policies() || !failure.is_about_statement() {
        return failure;
    }
    let names = statement.parsed.as_ref().map_or(statement.tables.as_slice(), Statement::tables);
    let Ok(tables) = catalog::list_tables(reading) else { return owner_sql_error(&failure) };
    for table in tables.iter().filter(|table| may_be_named(reading, table, names)) {
        if let Err(WorkError::ClientError(error)) = catalog::check_readable(reading, table) {
            return WorkError::ClientError(error);
        }
    }
    if statement.is_by_owner { owner_sql_error(&failure) } else { failure }
}

/// For virtual tables, the original error could reveal their content.
pub(super) fn row_error(failure: WorkError, reading: &ReadTransaction<'_>) -> WorkError {
    if !reading.has_policies() || !failure.is_about_statement() {
        return failure;
    }
    let tables = reading.tables_read().into_iter();
    let mut tables = tables.filter_map(|(schema, name)| catalog::lookup_table(reading, &schema, &name).ok().flatten());
    let Some(table) = tables.find(|table| table.kind == TableKind::Virtual && reading.visibility(table).is_some())
    else {
        return failure;
    };
    let error = unreadable_under_policy_error(reading.files, &table, &failure.to_string());
    error.with_hint("Operators of its module, such as MATCH, are not available for tables with row policies.").into()
}

fn owner_sql_error(failure: &WorkError) -> WorkError {
    let error = Error::new(ErrorKind::Forbidden, "this statement cannot run where row policies apply");
    error.with_detail(failure.to_string()).mark_configuration_fault().into()
}

fn may_be_named(reading: &ReadTransaction<'_>, table: &SqliteTable, names: &[String]) -> bool {
    let of_table = policy_names(reading.files, table);
    names.iter().any(|name| of_table.iter().any(|other| other.eq_ignore_ascii_case(name)))
}

/// SQLite itself would take the first file with the name. The error lists the full names.
pub(super) fn check_unambiguous(
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    database: &str,
) -> Result<(), WorkError> {
    if reading.files.is_single() {
        return Ok(());
    }
    let tables = catalog::list_tables(reading)?;
    for name in &statement.tables {
        let matches = tables.iter().filter(|table| table.name.eq_ignore_ascii_case(name));
        let full: Vec<String> = matches.map(|table| reading.files.display_name(&table.schema, &table.name)).collect();
        if full.len() > 1 {
            let message = format!("several files of {database:?} have a table {name:?}");
            return Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(full).into());
        }
    }
    Ok(())
}

fn diagnose(
    error: &SqliteError,
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    database: &str,
) -> Result<Option<Error>, WorkError> {
    let text = sqlite_message(error);
    let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    if let Some(name) = text.strip_prefix("no such table: ") {
        let tables = catalog::list_tables(reading)?;
        let names = tables.iter().map(|table| reading.files.display_name(&table.schema, &table.name));
        let names: Vec<String> = names.collect();
        let error = invalid(format!("there is no table {name:?} in {database:?}"));
        return Ok(Some(error.with_choices(suggest_names(name, &names))));
    }
    if let Some(name) = text.strip_prefix("no such column: ") {
        // SQLite appends a question if the name was in double quotes.
        let (name, was_quoted) = match name.split_once(" - ") {
            Some((name, _)) => (name.trim_matches('"'), true),
            None => (name, false),
        };
        let choices = suggest_columns(reading, statement, name)?;
        let error = invalid(format!("there is no column {name:?}")).with_choices(choices);
        let hint = "Write texts in single quotes; double quotes are for names.";
        return Ok(Some(if was_quoted { error.with_hint(hint) } else { error }));
    }
    if let Some(name) = text.strip_prefix("no such function: ") {
        if let Some(equivalent) = equivalent_function(name, SqlDialect::Sqlite) {
            return Ok(Some(
                invalid(format!("there is no function {name:?}")).with_hint(format!("Write {equivalent}.")),
            ));
        }
        let names = list_functions(reading)?;
        let meant = misspelled_name(name, names.iter().map(String::as_str));
        let advice = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        return Ok(Some(invalid(format!("there is no function {name:?}{advice}"))));
    }
    if let Some(name) = text.strip_prefix("ambiguous column name: ") {
        let error = invalid(format!("the column {name:?} is in several tables of the query"));
        return Ok(Some(error.with_hint("Write the table before it: table.column.")));
    }
    if let SqliteError::SqlInputError { sql, offset, .. } = error {
        let position = usize::try_from(*offset).ok().and_then(|offset| line_and_column(sql, offset));
        let position = position.map_or_else(String::new, |(line, column)| format!(" at line {line}, column {column}"));
        return Ok(Some(invalid(format!("{text}{position}"))));
    }
    Ok(None)
}

fn suggest_columns(
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    expected: &str,
) -> Result<Vec<String>, WorkError> {
    let mut names = Vec::new();
    for table in catalog::list_tables(reading)? {
        if may_be_named(reading, &table, &statement.tables) {
            names.extend(catalog::visible_columns(reading, &table)?.into_iter().map(|column| column.name));
        }
    }
    let last = expected.rsplit_once('.').map_or(expected, |(_, last)| last);
    let mut ordered = nearest_names(last, names.iter().map(String::as_str));
    for name in names {
        if ordered.len() < COLUMNS_MAX && !ordered.contains(&name) {
            ordered.push(name);
        }
    }
    Ok(ordered)
}

fn list_functions(reading: &ReadTransaction<'_>) -> Result<Vec<String>, WorkError> {
    let mut names = reading.run_internal(|connection| {
        let mut statement = connection.prepare("SELECT DISTINCT name FROM pragma_function_list ORDER BY name")?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<rusqlite::Result<Vec<String>>>()
    })?;
    // With the full name of the mask function, a caller could guess masked values.
    names.retain(|name| !name.starts_with(MASK_PREFIX) && name != SERIES_ARGUMENT);
    Ok(names)
}

/// Line and column of the byte at `offset`, both from 1.
fn line_and_column(sql: &str, offset: usize) -> Option<(usize, usize)> {
    let before = sql.get(..offset)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some((before.matches('\n').count() + 1, line.chars().count() + 1))
}
