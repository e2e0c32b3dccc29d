//! A database as `tidegate init` proposes it.

use std::path::Path;

use crate::config::ServerKind;

/// A database of the new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProposedDatabase {
    pub(crate) name: String,
    /// The key of its kind.
    pub(crate) key: &'static str,
    /// Paths and globs, relative to the configuration; or an address without a password, or `${VARIABLE}`.
    pub(crate) values: Vec<String>,
    /// What the person who continues the configuration needs.
    pub(crate) comments: &'static [&'static str],
    /// What was found, in a few words.
    pub(crate) description: String,
}

impl ProposedDatabase {
    /// A database with a name that needs no quotes in SQL.
    pub(crate) fn new(name: &str, key: &'static str, values: Vec<String>, description: impl Into<String>) -> Self {
        Self { name: database_name(name), key, values, comments: &[], description: description.into() }
    }

    /// A database on a server.
    pub(crate) fn on_server(server: &ServerKind, name: &str, address: String, origin: &str) -> Self {
        let description = format!("{}{origin}", server.title);
        Self { comments: server.comments, ..Self::new(name, server.key, vec![address], description) }
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
pub(crate) fn with_unique_names(sources: Vec<ProposedDatabase>) -> Vec<ProposedDatabase> {
    let mut named: Vec<ProposedDatabase> = Vec::new();
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
        let source = |name| ProposedDatabase::new(name, "files", Vec::new(), "");
        let named = with_unique_names(vec![source("My Data"), source("my-data"), source("2024"), source("…")]);
        let names: Vec<_> = named.iter().map(|source| source.name.as_str()).collect();
        assert_eq!(names, ["my_data", "my_data_2", "data_2024", "data"]);
    }
}
