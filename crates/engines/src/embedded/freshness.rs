//! How long the result of a statement stays valid: it depends on the current files of its tables, and on the column
//! corrections.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

use datafusion::execution::FunctionRegistry as _;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Volatility;
use tidegate_query::{Freshness, mentions_current_time};
use tidegate_sql::Statement;

use super::files::{FileTable, FileTablesSnapshot, FileVersion, TableFile};
use super::plan::SnapshotTables;
use super::security_barrier::PrincipalPolicies;

/// A file that changed within this time may change again without a new modification time.
const UNCHANGED_FOR: Duration = Duration::from_secs(2);

/// Returns how long the result of `statement` over `tables` stays valid: until a file changes, or not at all if it
/// calls a function whose value changes from call to call.
pub(super) fn compute_freshness(statement: &Statement, session: &SessionState, tables: &SnapshotTables) -> Freshness {
    let functions = statement.functions();
    if mentions_current_time(statement) || !functions.iter().all(|name| is_repeatable(name, session)) {
        return Freshness::Never;
    }
    // The system catalogs change with any table. An error is reported when the statement is planned.
    let Some(mut named) = tables.named_tables(statement, session) else { return Freshness::Never };
    named.sort_by(|left, right| left.name.cmp(&right.name));
    let mut version = DefaultHasher::new();
    for table in named {
        // Reusing a result would reveal whether rows that the principal cannot read have changed.
        let is_restricted = tables.principal_policies.is_restricted(&tables.snapshot, &table.name);
        if is_restricted || !table.files.iter().all(is_settled) {
            return Freshness::Never;
        }
        hash_table(&table, &mut version);
    }
    Freshness::UntilChanged(version.finish())
}

/// Whether `file` would have another version if it changed from now on.
pub(super) fn is_settled(file: &TableFile) -> bool {
    let modified = SystemTime::from(file.meta.last_modified);
    file.version.is_none_or(|version| version.is_settled())
        && !modified.elapsed().is_ok_and(|since| since < UNCHANGED_FOR)
}

/// Computes the version tag of the table called `table`, or of all tables: of the current files and column corrections.
/// For tables that `restrictions` restrict, only of the columns. `None` if the table does not exist.
pub(super) fn compute_version_tag(
    snapshot: &FileTablesSnapshot,
    table: Option<&str>,
    restrictions: &PrincipalPolicies,
) -> Option<String> {
    let names: Vec<&str> = match table {
        Some(table) => vec![table],
        None => snapshot.catalog.tables.iter().map(|entry| entry.name.as_str()).collect(),
    };
    let mut version = DefaultHasher::new();
    for name in names {
        match snapshot.find(name)? {
            (_, Ok(table)) => match restrictions.view(snapshot, table) {
                Ok(None) => hash_table(table, &mut version),
                Ok(Some(view)) => (&table.name, format!("{:?}", view.schema)).hash(&mut version),
                Err(error) => (&table.name, error.message()).hash(&mut version),
            },
            (name, Err(_)) if restrictions.is_restricted(snapshot, name) => name.hash(&mut version),
            (name, Err(reason)) => (name, reason).hash(&mut version),
        }
    }
    Some(format!("{:016x}", version.finish()))
}

fn hash_table(table: &FileTable, version: &mut DefaultHasher) {
    table.name.hash(version);
    table.columns().fields().hash(version);
    table.recent.version.hash(version);
    for file in table.files.iter() {
        file.meta.location.as_ref().hash(version);
        file.meta.size.hash(version);
        SystemTime::from(file.meta.last_modified).hash(version);
        file.version.map(FileVersion::metadata).hash(version);
    }
}

/// Whether the function called `name` always returns the same value for the same arguments. `false` for unknown
/// functions.
fn is_repeatable(name: &str, session: &SessionState) -> bool {
    if let Ok(function) = session.udf(name) {
        return function.signature().volatility == Volatility::Immutable;
    }
    session.udaf(name).is_ok() || session.udwf(name).is_ok() || session.table_functions().contains_key(name)
}
