//! The source columns of generated columns. A generated column would reveal the masked columns that it is computed
//! from.

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::tables::{SqliteTable, TableColumn, read_definition};

/// For each of `columns`, the positions of its possible source columns; empty for columns that are not generated.
pub(crate) fn find_source_columns(
    connection: &Connection,
    table: &SqliteTable,
    columns: &[TableColumn],
) -> Vec<Vec<usize>> {
    if !columns.iter().any(TableColumn::is_generated) {
        return vec![Vec::new(); columns.len()];
    }
    let definitions = split_definitions(&read_definition(connection, table).unwrap_or_default());
    let of = |(position, column): (usize, &TableColumn)| {
        if !column.is_generated() {
            return BTreeSet::new();
        }
        let name = column.name.to_lowercase();
        let definition = definitions.iter().find(|words| words.first() == Some(&name));
        let is_named = |other: &TableColumn| match definition {
            Some(words) => words[1..].contains(&other.name.to_lowercase()),
            // Any column could be a source.
            None => true,
        };
        let others = columns.iter().enumerate().filter(|(other, _)| *other != position);
        others.filter(|(_, other)| is_named(other)).map(|(other, _)| other).collect()
    };
    let mut sources: Vec<BTreeSet<usize>> = columns.iter().enumerate().map(of).collect();
    // Generated columns may be computed from each other.
    loop {
        let direct = sources.clone();
        for own in &mut sources {
            let indirect: Vec<usize> = own.iter().flat_map(|source| &direct[*source]).copied().collect();
            own.extend(indirect);
        }
        if sources == direct {
            return sources.into_iter().map(|own| own.into_iter().collect()).collect();
        }
    }
}

/// The words of each definition in the parentheses of `sql`, in lower case and without quotes.
fn split_definitions(sql: &str) -> Vec<Vec<String>> {
    let (mut definitions, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut depth, mut characters) = (0_usize, sql.chars().peekable());
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' || character == '$' || !character.is_ascii() {
            word.extend(character.to_lowercase());
            continue;
        }
        words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        match character {
            '-' if characters.peek() == Some(&'-') => {
                let _ = characters.by_ref().find(|character| *character == '\n');
            }
            '/' if characters.peek() == Some(&'*') => {
                let mut before = ' ';
                characters.next();
                let _ = characters
                    .by_ref()
                    .find(|character| std::mem::replace(&mut before, *character) == '*' && *character == '/');
            }
            '\'' | '"' | '`' | '[' => {
                let close = if character == '[' { ']' } else { character };
                let mut name = String::new();
                while let Some(character) = characters.next() {
                    if character != close {
                        name.extend(character.to_lowercase());
                    } else if character != ']' && characters.peek() == Some(&close) {
                        name.extend(characters.next());
                    } else {
                        break;
                    }
                }
                words.push(name);
            }
            '(' => {
                depth += 1;
                if depth == 1 {
                    words.clear();
                }
            }
            ')' | ',' if depth == 1 => {
                definitions.push(std::mem::take(&mut words));
                depth = if character == ')' { 0 } else { 1 };
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    definitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_definitions_are_split() {
        let sql = "CREATE TABLE \"t(\" (a TEXT DEFAULT ',(', -- b, (\n [b c] AS (substr(a, 1, 2)), /* x, */ \"C\"\"d\" INT, PRIMARY KEY (a, `b c`))";
        let message: Vec<String> = split_definitions(sql).iter().map(|words| words.join("|")).collect();
        assert_eq!(message, ["a|text|default|,(", "b c|as|substr|a|1|2", "c\"d|int", "primary|key|a|b c"]);
    }
}
