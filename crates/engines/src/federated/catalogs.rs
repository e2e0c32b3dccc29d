//! The system catalogs of a federated database: the tables of its members, in one schema per member.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use futures::{FutureExt, StreamExt, stream};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_pgsql::{VisibleObjects, VisibleTable, catalog_name};
use tidegate_query::{Catalog, Database, TableEntry};

use super::member::load_schema;

/// Maximum number of tables whose columns are loaded for one statement.
const TABLES_MAX: usize = 256;
/// Maximum number of tables whose columns are loaded at the same time.
const PARALLEL_MAX: usize = 4;

/// Whether `parts` name a system catalog and not a table of a member.
pub(super) fn is_catalog(parts: &[String], members: &BTreeMap<String, Arc<dyn Database>>) -> bool {
    match parts {
        [name] => catalog_name(None, name).is_some(),
        [schema, name] => !members.contains_key(schema) && catalog_name(Some(schema), name).is_some(),
        _ => false,
    }
}

/// The catalogs of those of `members` that are available. Only the tables of the others are missing.
pub(super) async fn load_catalogs<'a>(
    members: impl Iterator<Item = &'a Arc<dyn Database>>,
    principal: &Principal,
) -> Vec<(&'a Arc<dyn Database>, Arc<Catalog>)> {
    let loading = members.map(|member| async move { Some((member, member.catalog(principal).await.ok()?)) });
    join_all(loading).await.into_iter().flatten().collect()
}

/// The tables that `principal` may see; with their columns if `with_columns`.
pub(super) async fn load_objects(
    database: &str,
    members: &BTreeMap<String, Arc<dyn Database>>,
    principal: &Principal,
    with_columns: bool,
) -> Result<VisibleObjects, Error> {
    let catalogs = load_catalogs(members.values(), principal).await;
    let entries: Vec<(&Arc<dyn Database>, &TableEntry)> =
        catalogs.iter().flat_map(|(member, catalog)| catalog.tables.iter().map(|entry| (*member, entry))).collect();
    if with_columns && entries.len() > TABLES_MAX {
        let message =
            format!("the catalogs would have the columns of {} tables; the limit is {TABLES_MAX}", entries.len());
        return Err(Error::new(ErrorKind::TooLarge, message)
            .with_hint("Use the tool get_schema, which describes one table at a time."));
    }
    let loading = entries.into_iter().map(|(member, entry)| load_table(member, entry, principal, with_columns).boxed());
    let tables = stream::iter(loading.collect::<Vec<_>>()).buffered(PARALLEL_MAX).collect().await;
    Ok(VisibleObjects::new(database, &principal.subject, tables))
}

async fn load_table(
    member: &Arc<dyn Database>,
    entry: &TableEntry,
    principal: &Principal,
    with_columns: bool,
) -> VisibleTable {
    let mut columns = Vec::new();
    // An unreadable table has no columns.
    if with_columns && let Ok(schema) = load_schema(member, &entry.name, principal).await {
        columns = schema.fields().to_vec();
    }
    VisibleTable { schema: member.name().to_owned(), name: entry.name.clone(), columns }
}
