//! Lookups in small tables, answered from rows in memory.
//!
//! DataFusion needs about a millisecond to plan a statement and to open its files, whatever the statement. A lookup in a
//! small table needs neither: its rows stay in memory while its files are unchanged, which each statement verifies.

mod plan;
mod small_tables;

use std::sync::Arc;

use tidegate_core::ErrorKind;
use tidegate_sql::{Lookup, Statement};

use self::plan::LookupPlan;
use super::files::FileTable;
use super::plan::{SessionFactory, SnapshotTables};
use super::query_cancellation::QueryCancellation;
use super::worker_pools::WorkerPool;

pub(super) use self::small_tables::SmallTables;

/// A plan of `statement`, if it is a lookup in a small table that is not restricted. `None` for all others, and if the
/// table cannot be read: DataFusion has the right error then.
pub(super) async fn plan_lookup(
    statement: &Statement,
    tables: &SnapshotTables,
    sessions: &Arc<SessionFactory>,
    pool: &WorkerPool,
    small_tables: &SmallTables,
    cancellation: &QueryCancellation,
) -> Option<LookupPlan> {
    let lookup = statement.lookup()?;
    let table = readable_table(&lookup, tables)?;
    let rows = match small_tables.rows(table) {
        Some(known) => known?,
        None => {
            let reading = small_tables::read(table.clone(), tables.clone(), sessions.clone(), cancellation.clone());
            let rows = match pool.run(reading).await {
                Ok(rows) => rows,
                // The next call may succeed: it has memory and time of its own.
                Err(error) if ends_one_call(error.kind()) => return None,
                // What cannot be read is not read again for each lookup: DataFusion reports it.
                Err(_) => None,
            };
            small_tables.insert(table.clone(), rows.clone());
            rows?
        }
    };
    LookupPlan::new(&lookup, &table.name, &rows)
}

/// Whether an error comes from the limits of a call, and not from the table.
fn ends_one_call(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Cancelled | ErrorKind::TimedOut | ErrorKind::TooLarge | ErrorKind::Unavailable)
}

/// The table that the statement names exactly, if the principal may read all of it.
fn readable_table<'a>(lookup: &Lookup<'_>, tables: &'a SnapshotTables) -> Option<&'a Arc<FileTable>> {
    let (name, table) = tables.snapshot.find(lookup.table)?;
    let is_whole = name == lookup.table && !tables.principal_policies.is_restricted(&tables.snapshot, name);
    table.as_ref().ok().filter(|_| is_whole)
}
