//! Tables of SQLite whose times all have one form, so that this need not be checked for each row again.
//!
//! A table is checked as a whole. What was found holds as long as the files of the database do not change.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_query::QueryCondition;

use super::ROWS;
use super::statements::{Obstacle, count_rows, counts};
use super::time_sql::TimeSql;
use crate::log_tools::scan::SourceSearch;

/// The maximum number of tables that are remembered.
const TABLES_MAX: usize = 256;
/// The time of a file changes at least this often. A table whose check takes less time is checked with each statement:
/// its file could change afterwards without another time.
const FILE_TIME_STEP: Duration = Duration::from_millis(20);

/// The tables that were checked, with their versions.
#[derive(Debug, Default)]
pub(in crate::log_tools) struct UniformTimes(Mutex<HashMap<String, String>>);

impl UniformTimes {
    /// The version in which all times of the table have `form`; `None` if this is not known.
    pub(super) async fn check(
        &self,
        input: &SourceSearch<'_>,
        time: &TimeSql,
        form: &QueryCondition,
    ) -> Result<Option<String>, Obstacle> {
        let Some(version) = find_version(input).await else { return Ok(None) };
        let source = input.source;
        let key = format!("{} {} {time:?}", source.database.name(), source.table);
        if self.0.lock().get(&key) == Some(&version) {
            return Ok(Some(version));
        }
        let started = Instant::now();
        let others = QueryCondition::Not(Box::new(form.clone()));
        let batches = input.read(&input.query(vec![others], vec![count_rows()])).await?;
        let others = batches.iter().find_map(|batch| counts(batch, ROWS)?.first().copied());
        if others != Some(0) || started.elapsed() < FILE_TIME_STEP {
            return Ok(None);
        }
        let mut known = self.0.lock();
        if known.len() >= TABLES_MAX {
            known.clear();
        }
        known.insert(key, version.clone());
        Ok(Some(version))
    }
}

/// The version of the table; `None` where it does not show each change, as under row policies.
pub(super) async fn find_version(input: &SourceSearch<'_>) -> Option<String> {
    let (database, principal) = (&input.source.database, input.search.job.principal());
    if database.row_policy_fingerprint(principal) != 0 {
        return None;
    }
    database.version_tag(Some(&input.source.table), principal).await.ok().flatten()
}
