//! What the file tells of tables of CSV files.

use std::collections::BTreeMap;

use tidegate_engines::{ColumnType, TextTable};

use super::problem::Problem;
use super::types::TableEntry;

/// The text for null may have no more bytes.
const NULL_BYTES_MAX: usize = 15;

/// What is told of each table of the database at `path`.
pub(super) fn text_tables(
    entries: &BTreeMap<String, TableEntry>,
    path: &str,
) -> Result<BTreeMap<String, TextTable>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut tables = BTreeMap::new();
    for (name, entry) in entries {
        tables.insert(name.clone(), text_table(entry, &format!("{path}.tables.{name}"), &mut problems));
    }
    if problems.is_empty() { Ok(tables) } else { Err(problems) }
}

fn text_table(entry: &TableEntry, path: &str, problems: &mut Vec<Problem>) -> TextTable {
    let mut character = |member: &str, text: &Option<String>| {
        let text = text.as_ref()?;
        let byte = match text.as_str() {
            "tab" => Some(b'\t'),
            text => <[u8; 1]>::try_from(text.as_bytes()).ok().map(|[byte]| byte).filter(u8::is_ascii),
        };
        if byte.is_none() {
            let message = format!("{text:?} is not one ASCII character; write one, or tab");
            problems.push(Problem::new(format!("{path}.{member}"), message));
        }
        byte
    };
    let delimiter = character("delimiter", &entry.delimiter);
    let quote = character("quote", &entry.quote);
    let comment = character("comment", &entry.comment);
    if entry.null.as_ref().is_some_and(|null| null.len() > NULL_BYTES_MAX) {
        problems.push(Problem::new(format!("{path}.null"), format!("is longer than {NULL_BYTES_MAX} bytes")));
    }
    let mut columns = BTreeMap::new();
    for (name, text) in &entry.columns {
        match ColumnType::parse(text) {
            Some(kind) => {
                columns.insert(name.clone(), kind);
            }
            None => {
                let known = "string, integer, number, decimal(P,S), boolean, date, timestamp";
                let message = format!("there is no type {text:?}; there are {known}");
                problems.push(Problem::new(format!("{path}.columns.{name}"), message));
            }
        }
    }
    TextTable { delimiter, quote, has_header: entry.header, null: entry.null.clone(), comment, columns }
}
