//! What the name of an unknown table may mean: by the names and the comments of the tables that there are.

use tidegate_core::nearest_names;

use crate::database::{Catalog, TableEntry};

/// The number of tables that are named by their comments.
const DESCRIBED_MAX: usize = 5;
/// The number of tables that are named if none is similar.
const CHOICES_MAX: usize = 20;
/// Shorter words of a name are not searched in comments.
const WORD_CHARACTERS_MIN: usize = 3;

impl Catalog {
    /// Tables with a name similar to `name`, then tables whose comment has one of its words. If there are none, the first
    /// tables.
    pub fn nearest_tables(&self, name: &str) -> Vec<String> {
        let names = || self.tables.iter().map(|table| table.name.as_str());
        let similar = nearest_names(name, names());
        let searched = split_words(name);
        let is_described = |table: &&TableEntry| {
            let comment = split_words(table.comment.as_deref().unwrap_or_default());
            !similar.contains(&table.name) && comment.iter().any(|word| searched.contains(word))
        };
        let described = self.tables.iter().filter(is_described).take(DESCRIBED_MAX).map(|table| table.name.clone());
        let nearest: Vec<String> = similar.iter().cloned().chain(described).collect();
        if nearest.is_empty() { names().take(CHOICES_MAX).map(str::to_owned).collect() } else { nearest }
    }
}

/// The words of a name or a text, in lower case and without the ending of a plural.
fn split_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let singular = words.map(|word| word.trim_end_matches('s').to_owned());
    singular.filter(|word| word.chars().count() >= WORD_CHARACTERS_MIN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::TableStatus;

    #[test]
    fn names_come_before_comments() {
        let table = |(name, comment): (&str, Option<&str>)| TableEntry {
            name: name.to_owned(),
            rows: None,
            comment: comment.map(str::to_owned),
            status: TableStatus::Readable,
        };
        let tables = [
            ("ar_docs", Some("Invoices and credit notes")),
            ("invoice_lines", None),
            ("stock", Some("Parts in each warehouse")),
        ];
        let catalog = Catalog::from_tables(tables.map(table).into());
        assert_eq!(catalog.nearest_tables("invoice"), ["invoice_lines", "ar_docs"]);
        assert_eq!(catalog.nearest_tables("warehouses").last().map(String::as_str), Some("stock"));
        // A part of a word is another word.
        assert!(!catalog.nearest_tables("art_invoices").contains(&"stock".to_owned()));
    }
}
