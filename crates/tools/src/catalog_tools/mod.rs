//! Tools that describe the catalogs of databases, for discovery.

pub(crate) mod get_schema;
pub(crate) mod list_databases;
pub(crate) mod list_tables;
mod samples;

use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{Error, NamePattern, Principal};
use tidegate_query::{Catalog, Database, Databases, TableEntry};

pub(crate) use samples::{fetch_examples, read_first_rows};

pub(crate) struct DatabaseListing {
    pub(crate) database: Arc<dyn Database>,
    pub(crate) catalog: Result<Arc<Catalog>, Error>,
}

/// The database of that name, or all by name. If one is unavailable, only its own listing contains the error.
pub(crate) async fn list_catalogs(
    databases: &Databases,
    name: Option<&str>,
    principal: &Principal,
) -> Result<Vec<DatabaseListing>, Error> {
    let chosen: Vec<Arc<dyn Database>> = match name {
        Some(_) => vec![databases.get(name, principal)?.clone()],
        None => databases.visible_to(principal).cloned().collect(),
    };
    Ok(join_all(chosen.into_iter().map(|database| async move {
        let catalog = database.catalog(principal).await;
        DatabaseListing { database, catalog }
    }))
    .await)
}

/// Tables that match `pattern`: a glob if it contains `*` or `?`, otherwise a part of the name, in any case.
pub(crate) fn filter_tables<'a>(
    catalog: &'a Catalog,
    pattern: Option<&'a str>,
) -> impl Iterator<Item = &'a TableEntry> + 'a {
    let pattern = pattern.map(table_name_pattern);
    catalog
        .tables
        .iter()
        .filter(move |table| pattern.as_ref().is_none_or(|pattern| pattern.matches(&table.name.to_lowercase())))
}

fn table_name_pattern(text: &str) -> NamePattern {
    let text = text.to_lowercase();
    NamePattern::new(if text.contains(['*', '?']) { text } else { format!("*{text}*") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let pattern = table_name_pattern(pattern);
        assert!(matching.iter().all(|name| pattern.matches(&name.to_lowercase())), "{pattern:?}");
        assert!(!others.iter().any(|name| pattern.matches(&name.to_lowercase())), "{pattern:?}");
    }

    #[test]
    fn plain_text_matches_substrings() {
        check("Port", &["airports", "PORT", "reports"], &["planes"]);
        check("", &["airports", ""], &[]);
    }

    #[test]
    fn globs_match_whole_names() {
        check("ord*", &["orders", "Order items", "ord"], &["reorder"]);
        check("*_2?24*", &["sales_2024", "x_2124_y"], &["sales_224"]);
        check("gr?ße", &["GRÖßE"], &["grße"]);
        check("*", &["", "x"], &[]);
    }
}
