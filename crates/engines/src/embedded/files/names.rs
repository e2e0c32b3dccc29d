//! Names of tables and columns: derived from file names and headers, valid in SQL, and unique.
//!
//! If several tables request the same name, all of them get a suffix. So adding a file never silently changes the table
//! that a name refers to.

use std::collections::{HashMap, HashSet};

use tidegate_sql::{SqlDialect, Statement};

#[derive(Debug)]
pub(crate) struct NameRequest {
    pub(crate) name: String,
    /// The suffix to add in case of a conflict: `csv`, `folder`.
    pub(crate) suffix: String,
    /// The unique location. Its order decides remaining conflicts.
    pub(crate) location: String,
    /// The name of the folder that the table has alone, which statements may use, too.
    pub(crate) folder: Option<String>,
}

impl NameRequest {
    /// The names that it may get, whatever the other requests are; without those that end in a number.
    pub(crate) fn stable_names(&self) -> Vec<String> {
        let fit = to_sql_name(&self.name);
        let suffixed = to_sql_name(&format!("{fit}_{}", self.suffix));
        let mut names = vec![fit, self.name.clone(), suffixed];
        names.dedup();
        names
    }
}

pub(crate) fn assign_names(requests: &[&NameRequest]) -> Vec<String> {
    let fit: Vec<String> = requests.iter().map(|name_request| to_sql_name(&name_request.name)).collect();
    let suffixed: Vec<String> = {
        let counts = count_names(&fit);
        let add = |(request, name): (&&NameRequest, &String)| match counts[name.as_str()] {
            1 => name.clone(),
            _ => to_sql_name(&format!("{name}_{}", request.suffix)),
        };
        requests.iter().zip(&fit).map(add).collect()
    };
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by(|&a, &b| requests[a].location.cmp(&requests[b].location));
    let requested_once: HashSet<&str> =
        count_names(&suffixed).into_iter().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect();
    let mut taken: HashSet<String> = requested_once.iter().map(|name| (*name).to_owned()).collect();
    let mut numbers = HashMap::new();
    let mut names = vec![String::new(); requests.len()];
    for index in order {
        let expected = &suffixed[index];
        names[index] = if requested_once.contains(expected.as_str()) {
            expected.clone()
        } else {
            numbered_name(expected, &mut numbers, |name| !taken.insert(name.to_owned()))
        };
    }
    names
}

/// `name`, or else the first of `name_2`, `name_3`, … that is not taken, now or before. `numbers` has the last number of
/// each name: counting from the beginning takes time in the square of the number of equal names.
fn numbered_name(name: &str, numbers: &mut HashMap<String, usize>, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let number = numbers.entry(name.to_owned()).or_default();
    loop {
        *number += 1;
        let numbered = if *number == 1 { name.to_owned() } else { format!("{name}_{number}") };
        if !is_taken(&numbered) {
            return numbered;
        }
    }
}

fn count_names(names: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Converts `name` to a name that statements can use. Statements with a table name that looks like a path or a file are
/// refused, so the characters that cause this become underscores.
pub(crate) fn to_sql_name(name: &str) -> String {
    let mut name = name.replace(['/', '\\', ':', '\0'], "_");
    if name.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | ' ')) {
        return name;
    }
    while !is_valid_sql_name(&name) {
        match name.rfind('.') {
            Some(dot) => name.replace_range(dot..=dot, "_"),
            None => return name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect(),
        }
    }
    name
}

fn is_valid_sql_name(name: &str) -> bool {
    let dialect = SqlDialect::DataFusion;
    Statement::parse(&format!("SELECT * FROM {}", dialect.quote_identifier(name)), dialect).is_ok()
}

/// Column names from the values of the first line, none empty and none duplicate. Without a header, only the number of
/// values matters.
pub(crate) fn column_names(first: &[String], has_header: bool) -> Vec<String> {
    let header: &[String] = if has_header { first } else { &vec![String::new(); first.len()] };
    let given: HashSet<&str> = header.iter().map(String::as_str).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers = HashMap::new();
    let mut names = Vec::with_capacity(header.len());
    for (index, value) in header.iter().enumerate() {
        let expected = match value.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let is_taken = |name: &str| taken.contains(name) || (name != expected && given.contains(name));
        let name = numbered_name(&expected, &mut numbers, is_taken);
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(requests: &[(&str, &str)]) -> Vec<String> {
        let requests: Vec<NameRequest> = requests
            .iter()
            .enumerate()
            .map(|(index, (name, suffix))| NameRequest {
                name: (*name).to_owned(),
                suffix: (*suffix).to_owned(),
                location: format!("{index}"),
                folder: None,
            })
            .collect();
        assign_names(&requests.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_requested_twice_get_suffixes() {
        assert_eq!(assigned(&[("a", "csv"), ("b", "csv")]), ["a", "b"]);
        assert_eq!(assigned(&[("a", "csv"), ("a", "folder"), ("b", "csv")]), ["a_csv", "a_folder", "b"]);
        assert_eq!(assigned(&[("a", "csv"), ("a", "csv"), ("a_csv", "csv")]), ["a_csv", "a_csv_2", "a_csv_3"]);
        assert_eq!(assigned(&[("a", "csv"), ("a", "csv"), ("a_csv_2", "csv")]), ["a_csv", "a_csv_3", "a_csv_2"]);
    }

    #[test]
    fn many_equal_names_are_numbered_in_one_pass() {
        let names = column_names(&vec!["x".to_owned(); 100_000], true);
        assert_eq!((names[0].as_str(), names[99_999].as_str()), ("x", "x_100000"));
    }

    #[test]
    fn keeps_odd_names_and_changes_file_names() {
        let same = ["a b", "o'brien", "say \"hi\"", "Straße", ";DROP TABLE x", "a.b", "select", "a\nb"];
        for name in same {
            assert_eq!(to_sql_name(name), name);
        }
        assert_eq!(to_sql_name("data.csv"), "data_csv");
        assert_eq!(to_sql_name("c:\\x"), "c__x");
        assert_eq!(to_sql_name("folder.parquet"), "folder_parquet");
    }
}
