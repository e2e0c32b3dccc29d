//! Families of tables in the answer of `list_tables`: tables whose names differ only in their digits, such as one for
//! each month, are one line with the pattern that lists them.

use std::collections::HashMap;

use tidegate_core::NamePattern;

use super::list_tables::ListedTable;

/// The tables of a family at least.
const MEMBERS_MIN: usize = 4;

/// What the members of a family have in common: the database, the name without its digits, and the comment.
type FamilyKey = (String, String, Option<String>);

/// The database and the name of a table, in lower case.
type ListedName<'a> = (&'a str, String);

/// Replaces each family among `tables` by one line, at the place of its first table.
pub(super) fn group_families(tables: Vec<ListedTable>) -> Vec<ListedTable> {
    let mut families: HashMap<FamilyKey, Vec<usize>> = HashMap::new();
    for (index, table) in tables.iter().enumerate() {
        let Some(name) = table.name.as_ref().filter(|name| name.contains(|c: char| c.is_ascii_digit())) else {
            continue;
        };
        let key = (table.database.clone(), name_without_digits(name), table.comment.clone());
        families.entry(key).or_default().push(index);
    }
    let mut names: Vec<ListedName<'_>> = tables
        .iter()
        .filter_map(|table| Some((table.database.as_str(), table.name.as_ref()?.to_lowercase())))
        .collect();
    names.sort_unstable();
    let mut lines: HashMap<usize, Option<ListedTable>> = HashMap::new();
    for members in families.into_values().filter(|members| members.len() >= MEMBERS_MIN) {
        let Some(line) = family_line(&tables, &names, &members) else { continue };
        lines.extend(members.iter().map(|index| (*index, None)));
        lines.extend(members.first().map(|first| (*first, Some(line))));
    }
    let listed = tables.into_iter().enumerate().filter_map(|(index, table)| match lines.remove(&index) {
        Some(line) => line,
        None => Some(table),
    });
    listed.collect()
}

/// The name with one `0` for each run of digits.
fn name_without_digits(name: &str) -> String {
    let mut shape = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if shape.ends_with('0') => {}
            '0'..='9' => shape.push('0'),
            other => shape.push(other),
        }
    }
    shape
}

/// The line of a family; `None` if no pattern lists exactly its members. `names` are those of all tables, in order.
fn family_line(tables: &[ListedTable], names: &[ListedName<'_>], members: &[usize]) -> Option<ListedTable> {
    let members: Vec<&ListedTable> = members.iter().filter_map(|index| tables.get(*index)).collect();
    let (first, last) = (members.first()?, members.last()?);
    let own_names: Vec<&str> = members.iter().filter_map(|table| table.name.as_deref()).collect();
    let pattern = family_pattern(&own_names)?;
    let glob = NamePattern::new(pattern.to_lowercase());
    // Only names with the beginning of the pattern can match it: a database may have very many tables.
    let beginning = glob.as_str().split(['*', '?']).next().unwrap_or_default();
    let start =
        names.partition_point(|(database, name)| (*database, name.as_str()) < (first.database.as_str(), beginning));
    let similar = names
        .get(start..)?
        .iter()
        .take_while(|(database, name)| *database == first.database && name.starts_with(beginning));
    if similar.filter(|(_, name)| glob.matches(name)).count() != members.len() {
        return None;
    }
    let range =
        format!("{} tables, {} to {}; pattern lists them", members.len(), own_names.first()?, own_names.last()?);
    let comment = match &last.comment {
        Some(comment) => format!("{comment} ({range})"),
        None => range,
    };
    Some(ListedTable {
        database: first.database.clone(),
        name: Some(pattern),
        rows: members.iter().map(|table| table.rows).sum(),
        comment: Some(comment),
        columns: None,
    })
}

/// The glob of names that differ only in their digits: `?` for each digit of a number that is not the same everywhere,
/// and `*` if its length differs, too.
fn family_pattern(names: &[&str]) -> Option<String> {
    let split: Vec<Vec<&str>> = names.iter().map(|name| split_digits(name)).collect();
    let first = split.first()?;
    let mut pattern = String::new();
    for (index, part) in first.iter().enumerate() {
        let parts = || split.iter().filter_map(|parts| parts.get(index));
        if parts().all(|other| other == part) {
            pattern.push_str(part);
        } else if parts().all(|other| other.len() == part.len()) {
            pattern.extend(std::iter::repeat_n('?', part.len()));
        } else {
            pattern.push('*');
        }
    }
    // Other characters of a name cannot be written in a glob.
    let has_wildcards = names.iter().any(|name| name.contains(['*', '?']));
    (!has_wildcards && pattern.contains(['*', '?'])).then_some(pattern)
}

/// Runs of digits, and what is between them.
fn split_digits(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(names: &[&str]) -> Vec<(String, Option<u64>)> {
        let table = |name: &&str| ListedTable {
            database: "shop".to_owned(),
            name: Some((*name).to_owned()),
            rows: Some(10),
            comment: None,
            columns: None,
        };
        let lines = group_families(names.iter().map(table).collect());
        lines.into_iter().map(|line| (line.name.unwrap_or_default(), line.rows)).collect()
    }

    #[test]
    fn names_that_differ_in_digits_are_one_line() {
        let months: Vec<String> = (1..=12).map(|month| format!("logs_2024_{month:02}")).collect();
        let mut names: Vec<&str> = vec!["archive"];
        names.extend(months.iter().map(String::as_str));
        names.push("orders");
        let expected = [("archive", 10), ("logs_2024_??", 120), ("orders", 10)];
        assert_eq!(grouped(&names), expected.map(|(name, rows)| (name.to_owned(), Some(rows))));
        let expected = [("part*".to_owned(), Some(40))];
        assert_eq!(grouped(&["part1", "part2", "part10", "part11"]), expected);
    }

    #[test]
    fn few_tables_and_patterns_of_others_are_no_family() {
        assert_eq!(grouped(&["q1", "q2", "q3"]).len(), 3);
        // `part*` would list the notes as well.
        assert_eq!(grouped(&["part1", "part2", "part10", "part11", "partners"]).len(), 5);
    }

    #[test]
    fn a_comment_of_its_own_keeps_a_table_apart() {
        let table = |name: &str, comment: &str| ListedTable {
            database: "shop".to_owned(),
            name: Some(name.to_owned()),
            rows: None,
            comment: Some(comment.to_owned()),
            columns: None,
        };
        let tables: Vec<ListedTable> = (1..=4).map(|number| table(&format!("s{number}"), "Readings")).collect();
        let lines = group_families(tables);
        assert_eq!(lines[0].comment.as_deref(), Some("Readings (4 tables, s1 to s4; pattern lists them)"));
        let tables: Vec<ListedTable> =
            (1..=4).map(|number| table(&format!("s{number}"), &number.to_string())).collect();
        assert_eq!(group_families(tables).len(), 4);
    }
}
