//! The catalogs of several databases.

use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{Error, Principal};
use tidegate_query::{Catalog, Database, Databases, TableEntry};

use crate::table_name_pattern::TableNamePattern;

/// One database with its catalog, or the error of reading it.
pub(crate) struct DatabaseListing {
    pub(crate) database: Arc<dyn Database>,
    pub(crate) catalog: Result<Arc<Catalog>, Error>,
}

/// The database of that name, or all databases, sorted by name.
///
/// A database that is unavailable does not affect the others: its listing contains the error.
///
/// # Errors
/// When no database has that name.
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

/// The tables of `catalog` whose names match.
pub(crate) fn filter_tables<'a>(
    catalog: &'a Catalog,
    pattern: Option<&'a TableNamePattern>,
) -> impl Iterator<Item = &'a TableEntry> + 'a {
    catalog.tables.iter().filter(move |table| pattern.is_none_or(|pattern| pattern.matches(&table.name)))
}
