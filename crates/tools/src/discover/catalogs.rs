//! The catalogs of several databases, side by side.

use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{Error, Principal};
use tidegate_query::{Catalog, Database, Databases, TableEntry};

use crate::table_name_pattern::TableNamePattern;

/// One database and its catalog, or why it cannot be had now.
pub(crate) struct DatabaseListing {
    pub(crate) database: Arc<dyn Database>,
    pub(crate) catalog: Result<Arc<Catalog>, Error>,
}

/// The listings of the database of that name, or of all, in the order of their names.
///
/// One database that cannot be reached hurts no other: its listing says why.
///
/// # Errors
/// When there is no database of that name.
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

/// The tables of `catalog` whose names fit.
pub(crate) fn filter_tables<'a>(
    catalog: &'a Catalog,
    pattern: Option<&'a TableNamePattern>,
) -> impl Iterator<Item = &'a TableEntry> + 'a {
    catalog.tables.iter().filter(move |table| pattern.is_none_or(|pattern| pattern.matches(&table.name)))
}
