//! What the answer to a statement depends on: the files of its tables as they are now, and what was learned of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

use datafusion::common::TableReference;
use datafusion::execution::FunctionRegistry as _;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Volatility;
use tidegate_core::Error;
use tidegate_query::{Freshness, Statement};

use super::plan::{Scope, Tables, tables_of};

/// A file that changed as lately may change again within the same tick of its clock.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// How long the answer to `statement` over `tables` stays right: until a file changes. Never, if it calls a function whose
/// value changes from call to call.
///
/// # Errors
/// Those of names that cannot be read.
pub(super) fn freshness(statement: &Statement, session: &SessionState, tables: &Tables) -> Result<Freshness, Error> {
    if !statement.functions().iter().all(|name| is_repeatable(name, session)) {
        return Ok(Freshness::Never);
    }
    let lacks = |reference: &TableReference| tables.lacks(reference);
    let mut references = tables_of(statement, session, lacks, tables.database())?;
    references.sort();
    let mut version = DefaultHasher::new();
    for reference in references {
        let table = tables.table(&reference)?;
        table.name.hash(&mut version);
        format!("{:?}", table.columns()).hash(&mut version);
        for file in &table.files {
            let modified = SystemTime::from(file.meta.last_modified);
            if modified.elapsed().is_ok_and(|since| since < SETTLED_AFTER) {
                return Ok(Freshness::Never);
            }
            file.meta.location.as_ref().hash(&mut version);
            file.meta.size.hash(&mut version);
            modified.hash(&mut version);
        }
    }
    Ok(Freshness::While(version.finish()))
}

/// Whether the function called `name` gives the same for the same. What nobody knows may not.
fn is_repeatable(name: &str, session: &SessionState) -> bool {
    if let Ok(function) = session.udf(name) {
        return function.signature().volatility == Volatility::Immutable;
    }
    session.udaf(name).is_ok() || session.udwf(name).is_ok() || session.table_functions().contains_key(name)
}
