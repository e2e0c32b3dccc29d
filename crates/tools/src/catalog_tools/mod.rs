//! Tools that describe the catalogs of databases, for discovery.

pub(crate) mod get_schema;
pub(crate) mod list_databases;
pub(crate) mod list_tables;
mod samples;
mod table_families;
mod table_search;

use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{Error, Principal};
use tidegate_query::{Catalog, Database, Databases};
use tidegate_runtime::Job;

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

/// Reports the errors of catalogs to the log, for an answer that contains their messages.
fn report_errors(found: &[DatabaseListing], job: &Job) {
    found.iter().filter_map(|listing| listing.catalog.as_ref().err()).for_each(|error| job.report_error_detail(error));
}
