//! Which tables the pattern of `list_tables` finds: a glob of their names, or words of names, comments and columns.

use std::time::Duration;

use futures::future::join_all;
use tidegate_core::{NamePattern, Principal};
use tidegate_query::{ColumnEntry, TableEntry};
use tokio::time::{Instant, timeout_at};

use super::DatabaseListing;

/// The tables of a database whose columns are searched at most. Each costs a request where columns are not kept.
const COLUMNS_SEARCHED_MAX: usize = 500;
/// How long one call reads columns. Those of a file are inferred from its rows, unless they are known.
pub(super) const COLUMNS_READ_TIME: Duration = Duration::from_secs(3);
/// The tables whose columns are read at the same time.
const CONCURRENT_READS: usize = 16;
/// The columns that are named for a table.
const COLUMNS_NAMED_MAX: usize = 5;

/// What a caller searches, in any case.
pub(super) enum TablePattern {
    /// A glob of the whole name.
    Glob(NamePattern),
    /// Words that must all occur.
    Words(Vec<String>),
}

/// A table that a pattern finds.
pub(super) struct FoundTable<'a> {
    pub(super) table: &'a TableEntry,
    /// The columns that have words which neither its name nor its comment has.
    pub(super) columns: Option<String>,
}

/// The tables of one database that a pattern finds.
#[derive(Default)]
pub(super) struct FoundTables<'a> {
    pub(super) tables: Vec<FoundTable<'a>>,
    pub(super) unsearched: UnsearchedTables,
}

/// How many tables were searched by name and comment only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsearchedTables {
    /// Because there are too many tables.
    pub(super) further: usize,
    /// Because reading their columns took too long.
    pub(super) unread: usize,
}

impl TablePattern {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        if text.contains(['*', '?']) {
            return Self::Glob(NamePattern::new(text));
        }
        Self::Words(text.split_whitespace().map(str::to_owned).collect())
    }

    /// The words that neither the name nor the comment of `table` has; `None` if a glob does not match its name.
    fn missing_words(&self, table: &TableEntry) -> Option<Vec<&str>> {
        let name = table.name.to_lowercase();
        match self {
            Self::Glob(pattern) => pattern.matches(&name).then(Vec::new),
            Self::Words(words) => {
                let comment = table.comment.as_deref().unwrap_or_default().to_lowercase();
                let is_missing = |word: &&String| !name.contains(word.as_str()) && !comment.contains(word.as_str());
                Some(words.iter().filter(is_missing).map(String::as_str).collect())
            }
        }
    }
}

/// The tables of `listing` that `pattern` finds; all without one, and none if its catalog cannot be read. No columns are
/// read after `deadline`.
pub(super) async fn find_tables<'a>(
    listing: &'a DatabaseListing,
    pattern: Option<&TablePattern>,
    principal: &Principal,
    deadline: Instant,
) -> FoundTables<'a> {
    let Ok(catalog) = &listing.catalog else { return FoundTables::default() };
    let mut found = Vec::new();
    let mut undecided = Vec::new();
    for (index, table) in catalog.tables.iter().enumerate() {
        match pattern.map_or_else(|| Some(Vec::new()), |pattern| pattern.missing_words(table)) {
            Some(words) if words.is_empty() => found.push((index, FoundTable { table, columns: None })),
            Some(words) => undecided.push((index, table, words)),
            None => {}
        }
    }
    let mut unsearched = UnsearchedTables { further: undecided.len().saturating_sub(COLUMNS_SEARCHED_MAX), unread: 0 };
    undecided.truncate(COLUMNS_SEARCHED_MAX);
    for tables in undecided.chunks(CONCURRENT_READS) {
        // Each read would begin, although there is no time for it.
        if Instant::now() >= deadline {
            unsearched.unread += tables.len();
            continue;
        }
        let reads: Vec<_> = tables
            .iter()
            .map(|(_, table, _)| timeout_at(deadline, listing.database.columns(&table.name, principal)))
            .collect();
        for ((index, table, words), read) in tables.iter().zip(join_all(reads).await) {
            let Ok(read) = read else {
                unsearched.unread += 1;
                continue;
            };
            // A table that cannot be read has no columns to find.
            let columns = find_columns(&read.unwrap_or_default(), words);
            found.extend(columns.map(|columns| (*index, FoundTable { table, columns: Some(columns) })));
        }
    }
    found.sort_by_key(|(index, _)| *index);
    FoundTables { tables: found.into_iter().map(|(_, table)| table).collect(), unsearched }
}

/// The names of the columns with `words` in their names or comments; `None` unless each word is in one of them.
fn find_columns(columns: &[ColumnEntry], words: &[&str]) -> Option<String> {
    let has = |column: &ColumnEntry, word: &str| {
        let texts = [Some(&column.name), column.comment.as_ref()];
        texts.into_iter().flatten().any(|text| text.to_lowercase().contains(word))
    };
    let is_complete = words.iter().all(|word| columns.iter().any(|column| has(column, word)));
    let named = columns.iter().filter(|column| words.iter().any(|word| has(column, word)));
    let named: Vec<&str> = named.take(COLUMNS_NAMED_MAX).map(|column| column.name.as_str()).collect();
    is_complete.then(|| named.join(", "))
}

#[cfg(test)]
mod tests {
    use tidegate_query::TableStatus;

    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let pattern = TablePattern::parse(pattern);
        let finds = |name: &&str| {
            let status = TableStatus::Readable;
            let table = TableEntry { name: (*name).to_owned(), rows: None, comment: None, status };
            pattern.missing_words(&table).is_some_and(|words| words.is_empty())
        };
        assert!(matching.iter().all(finds), "{matching:?}");
        assert!(!others.iter().any(finds), "{others:?}");
    }

    #[test]
    fn plain_text_matches_substrings() {
        check("Port", &["airports", "PORT", "reports"], &["planes"]);
        check("", &["airports", ""], &[]);
        check("port AIR", &["airports", "ports_of_air"], &["ports"]);
    }

    #[test]
    fn globs_match_whole_names() {
        check("ord*", &["orders", "Order items", "ord"], &["reorder"]);
        check("*_2?24*", &["sales_2024", "x_2124_y"], &["sales_224"]);
        check("gr?ße", &["GRÖßE"], &["grße"]);
        check("*", &["", "x"], &[]);
    }

    #[test]
    fn each_word_must_be_in_a_column() {
        let column = |name: &str, comment: Option<&str>| ColumnEntry {
            name: name.to_owned(),
            type_name: "text".to_owned(),
            nullable: true,
            comment: comment.map(str::to_owned),
        };
        let columns = [column("Customer_ID", None), column("total", Some("Sum in euros")), column("note", None)];
        assert_eq!(find_columns(&columns, &["customer"]).as_deref(), Some("Customer_ID"));
        assert_eq!(find_columns(&columns, &["customer", "euro"]).as_deref(), Some("Customer_ID, total"));
        assert_eq!(find_columns(&columns, &["customer", "dollar"]), None);
    }
}
