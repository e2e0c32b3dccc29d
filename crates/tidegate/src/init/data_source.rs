//! A database as `tidegate init` proposes it.

use std::path::{Path, PathBuf};

/// A database of the new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataSource {
    pub(crate) name: String,
    pub(crate) location: DataLocation,
    /// What was found, in a few words.
    pub(crate) description: String,
}

/// Where the data of a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataLocation {
    /// Folders, files or globs, relative to the configuration.
    Files(Vec<String>),
    Sqlite(PathBuf),
    /// A connection string without a password, or `${VARIABLE}`.
    Postgres(String),
}

impl DataSource {
    /// A database with a name that needs no quotes in SQL.
    pub(crate) fn new(name: &str, location: DataLocation, description: impl Into<String>) -> Self {
        Self { name: database_name(name), location, description: description.into() }
    }

    pub(crate) fn location_text(&self) -> String {
        match &self.location {
            DataLocation::Files(files) => files.join(", "),
            DataLocation::Sqlite(path) => path.display().to_string(),
            DataLocation::Postgres(text) => text.clone(),
        }
    }
}

/// Lower-case letters, digits and `_`.
fn database_name(text: &str) -> String {
    let word: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    match word.trim_matches('_') {
        "" => "data".to_owned(),
        word if word.starts_with(|c: char| c.is_ascii_digit()) => format!("data_{word}"),
        word => word.to_owned(),
    }
}

/// Gives each database a name of its own, by a number after equal ones.
pub(crate) fn with_unique_names(sources: Vec<DataSource>) -> Vec<DataSource> {
    let mut named: Vec<DataSource> = Vec::new();
    for mut source in sources {
        let name = source.name.clone();
        let mut count = 1;
        while named.iter().any(|other| other.name == source.name) {
            count += 1;
            source.name = format!("{name}_{count}");
        }
        named.push(source);
    }
    named
}

/// The path as in a configuration: relative paths begin with `./`, so that no reader takes them for a name.
pub(crate) fn path_text(path: &Path) -> String {
    let text = path.display().to_string();
    if path.is_relative() && !text.starts_with('.') { format!("./{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes_and_are_unique() {
        let source = |name| DataSource::new(name, DataLocation::Files(Vec::new()), "");
        let named = with_unique_names(vec![source("My Data"), source("my-data"), source("2024"), source("…")]);
        let names: Vec<_> = named.iter().map(|source| source.name.as_str()).collect();
        assert_eq!(names, ["my_data", "my_data_2", "data_2024", "data"]);
    }
}
