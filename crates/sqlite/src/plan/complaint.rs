//! SQLite's complaints about a statement, with the names that would mend it.

use rusqlite::Error as SqliteError;
use tidegate_core::{Error, ErrorKind, nearest};
use tidegate_query::Statement;

use super::Asked;
use crate::failure::{Failure, words};
use crate::session::Reading;
use crate::shown::{MASK_PREFIX, names, not_over_what_is_shown};
use crate::tables::{self, Kind, Table, choices};

/// Columns that an error names at most.
const COLUMNS_MAX: usize = 60;

/// `failure` of planning `asked` as the caller of `database` reads it.
pub(super) fn with_choices(failure: Failure, reading: &Reading<'_>, asked: &Asked, database: &str) -> Failure {
    let failure = without_names(failure, reading, asked);
    let Failure::Sqlite(error) = &failure else { return failure };
    // Whatever keeps the names from being read, the complaint itself stands.
    match complaint(error, reading, asked, database) {
        Ok(Some(complaint)) => Failure::Told(complaint),
        _ => failure,
    }
}

/// `failure` of planning `asked`, which tells of nothing that is not shown to whoever asks: what fails may be a table,
/// or what the owner wrote, and would name it.
pub(super) fn without_names(failure: Failure, reading: &Reading<'_>, asked: &Asked) -> Failure {
    if !reading.is_shown() || !failure.is_in_their_words() {
        return failure;
    }
    let named = asked.parsed.as_ref().map_or(asked.tables.as_slice(), Statement::tables);
    let Ok(tables) = tables::list(reading) else { return of_owner(&failure) };
    for table in tables.iter().filter(|table| is_named(reading, table, named)) {
        if let Err(Failure::Told(error)) = tables::tried(reading, table) {
            return Failure::Told(error);
        }
    }
    if asked.is_of_owner { of_owner(&failure) } else { failure }
}

/// `failure` while rows are read: of the tables of modules it may tell what they are made of.
pub(super) fn of_rows(failure: Failure, reading: &Reading<'_>) -> Failure {
    if !reading.is_shown() || !failure.is_in_their_words() {
        return failure;
    }
    let read = reading.reads().into_iter();
    let mut read = read.filter_map(|(schema, name)| tables::lookup(reading, &schema, &name).ok().flatten());
    let Some(table) = read.find(|table| table.kind == Kind::Virtual && reading.sight(table).is_some()) else {
        return failure;
    };
    let error = not_over_what_is_shown(reading.files, &table, &failure.to_string());
    Failure::Told(error.with_hint("What its module adds to SQL, such as MATCH, is not for such tables."))
}

fn of_owner(failure: &Failure) -> Failure {
    let error = Error::new(ErrorKind::Unavailable, "what is asked here cannot be asked where row policies apply");
    Failure::Told(error.with_detail(failure.to_string()))
}

/// Whether one of `named` may be `table`.
fn is_named(reading: &Reading<'_>, table: &Table, named: &[String]) -> bool {
    let names = names(reading.files, table);
    named.iter().any(|one| names.iter().any(|name| name.eq_ignore_ascii_case(one)))
}

/// Checks that each bare name of a table means one file's only. SQLite itself would take the first file's.
///
/// # Errors
/// The full names.
pub(super) fn must_be_unambiguous(reading: &Reading<'_>, asked: &Asked, database: &str) -> Result<(), Failure> {
    if reading.files.is_single() {
        return Ok(());
    }
    let tables = tables::list(reading)?;
    for name in &asked.tables {
        let of_name = tables.iter().filter(|table| table.name.eq_ignore_ascii_case(name));
        let full: Vec<String> = of_name.map(|table| reading.files.display(&table.schema, &table.name)).collect();
        if full.len() > 1 {
            let message = format!("several files of {database:?} have a table {name:?}");
            return Err(Failure::Told(Error::new(ErrorKind::InvalidArguments, message).with_choices(full)));
        }
    }
    Ok(())
}

fn complaint(
    error: &SqliteError,
    reading: &Reading<'_>,
    asked: &Asked,
    database: &str,
) -> Result<Option<Error>, Failure> {
    let text = words(error);
    let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    if let Some(name) = text.strip_prefix("no such table: ") {
        let names: Vec<String> =
            tables::list(reading)?.iter().map(|table| reading.files.display(&table.schema, &table.name)).collect();
        let error = invalid(format!("there is no table {name:?} in {database:?}"));
        return Ok(Some(error.with_choices(choices(name, &names))));
    }
    if let Some(name) = text.strip_prefix("no such column: ") {
        // SQLite adds a question when the name stood in double quotes.
        let (name, was_quoted) = match name.split_once(" - ") {
            Some((name, _)) => (name.trim_matches('"'), true),
            None => (name, false),
        };
        let error = invalid(format!("there is no column {name:?}")).with_choices(columns(reading, asked, name)?);
        let hint = "Texts stand in single quotes; double quotes are for names.";
        return Ok(Some(if was_quoted { error.with_hint(hint) } else { error }));
    }
    if let Some(name) = text.strip_prefix("no such function: ") {
        let names = functions(reading)?;
        let near = nearest(name, names.iter().map(String::as_str));
        return Ok(Some(invalid(format!("SQLite has no function {name:?}")).with_choices(near)));
    }
    if let Some(name) = text.strip_prefix("ambiguous column name: ") {
        let error = invalid(format!("the column {name:?} is in several tables of the query"));
        return Ok(Some(error.with_hint("Write the table before it: table.column.")));
    }
    if let SqliteError::SqlInputError { sql, offset, .. } = error {
        let place = usize::try_from(*offset).ok().and_then(|offset| place(sql, offset));
        let place = place.map_or_else(String::new, |(line, column)| format!(" at line {line}, column {column}"));
        return Ok(Some(invalid(format!("{text}{place}"))));
    }
    Ok(None)
}

/// The columns of the tables that `asked` reads, those like `wanted` first.
fn columns(reading: &Reading<'_>, asked: &Asked, wanted: &str) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for table in tables::list(reading)? {
        if is_named(reading, &table, &asked.tables) {
            names.extend(tables::shown_columns(reading, &table)?.into_iter().map(|column| column.name));
        }
    }
    let last = wanted.rsplit_once('.').map_or(wanted, |(_, last)| last);
    let mut ordered = nearest(last, names.iter().map(String::as_str));
    for name in names {
        if ordered.len() < COLUMNS_MAX && !ordered.contains(&name) {
            ordered.push(name);
        }
    }
    Ok(ordered)
}

fn functions(reading: &Reading<'_>) -> Result<Vec<String>, Failure> {
    let mut names = reading.ours(|connection| {
        let mut statement = connection.prepare("SELECT DISTINCT name FROM pragma_function_list ORDER BY name")?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<rusqlite::Result<Vec<String>>>()
    })?;
    // Whoever knows the whole name of the function of row policies can guess what its masks hide.
    names.retain(|name| !name.starts_with(MASK_PREFIX));
    Ok(names)
}

/// Line and column of the byte at `offset`, both from 1.
fn place(sql: &str, offset: usize) -> Option<(usize, usize)> {
    let before = sql.get(..offset)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some((before.matches('\n').count() + 1, line.chars().count() + 1))
}
