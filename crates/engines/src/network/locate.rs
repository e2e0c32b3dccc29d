//! Which nodes hold which part of a table: rows, size, and the ranges of declared columns.
//!
//! Sizes and ranges are requested when they are needed, and kept for the time when a node is away. They never decide
//! which nodes a statement needs: a node may have got other rows since then.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use futures::future::{join_all, try_join};
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, shorten};
use tidegate_query::{Network, NodeDatabase, PartRange, TablePart};
use tidegate_runtime::Job;
use tidegate_sql::{SqlDialect, Statement};
use tokio::time::timeout;

use super::database::NetworkDatabase;
use super::nodes::KnownTables;
use super::options::NetworkNode;
use super::tables::NetworkTables;
use super::united_table::{NODE_COLUMN, NodePart, UnitedTable};

/// Parts whose statistics are kept; the one that was not used for the longest time is forgotten.
const PARTS_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Characters of a value.
const VALUE_CHARS_MAX: usize = 100;

/// The statistics of parts of tables, as last known.
pub(super) struct KnownStatistics(Mutex<LruCache<PartKey, PartStatistics>>);

impl Default for KnownStatistics {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(PARTS_MAX)))
    }
}

/// A part of a table, as some callers see it.
#[derive(PartialEq, Eq, Hash)]
struct PartKey {
    node: String,
    table: String,
    callers: u64,
}

#[derive(Debug, Clone)]
struct PartStatistics {
    bytes: Option<u64>,
    ranges: Vec<PartRange>,
    known_since: SystemTime,
}

#[async_trait]
impl Network for NetworkDatabase {
    fn nodes(&self) -> &[Arc<dyn NodeDatabase>] {
        &self.databases
    }

    async fn locate(&self, table: &str, job: &Arc<Job>) -> Result<Vec<TablePart>, Error> {
        let known = self.known_tables_with(table, job.principal()).await?;
        let united = known.table(table, &self.name)?;
        let locating = self.nodes.iter().map(|node| self.locate_on(node, table, united, &known, job));
        let parts = join_all(locating).await.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
}

impl NetworkDatabase {
    /// The part of `node`, if it has one.
    async fn locate_on(
        &self,
        node: &NetworkNode,
        table: &str,
        united: &UnitedTable,
        known: &Arc<KnownTables>,
        job: &Arc<Job>,
    ) -> Result<Option<TablePart>, Error> {
        let name = node.database.name();
        let known_since = known.known.get(name).map(|tables| tables.known_since);
        let without_columns = |rows: Option<u64>, note: String| TablePart {
            node: name.to_owned(),
            rows,
            bytes: None,
            ranges: Vec::new(),
            known_since,
            holds: None,
            notes: vec![note],
        };
        if let Some(missing) = known.unknown.iter().find(|missing| missing.name == name) {
            return Ok(Some(without_columns(None, format!("it does not answer: {}", missing.reason))));
        }
        if let Some(missing) = known.unreadable_on(table, &self.name).iter().find(|missing| missing.name == name) {
            return Ok(Some(without_columns(missing.rows, missing.reason.clone())));
        }
        let Some(part) = united.parts.iter().find(|part| part.node.name() == name) else { return Ok(None) };
        let (statistics, note) = self.statistics(node, part, known, job).await?;
        let notes = united.notes.iter().filter(|(of, _)| of == name).map(|(_, note)| note.clone());
        Ok(Some(TablePart {
            node: name.to_owned(),
            rows: part.table.rows,
            bytes: statistics.as_ref().and_then(|statistics| statistics.bytes),
            ranges: statistics.map(|statistics| statistics.ranges).unwrap_or_default(),
            known_since,
            holds: part.holds.as_ref().map(ToString::to_string),
            notes: notes.chain(part.holds_problems()).chain(note).collect(),
        }))
    }

    /// The statistics of a part, and a note if they are old or unknown.
    async fn statistics(
        &self,
        node: &NetworkNode,
        part: &NodePart,
        known: &Arc<KnownTables>,
        job: &Arc<Job>,
    ) -> Result<(Option<PartStatistics>, Option<String>), Error> {
        let principal = job.principal();
        let key = || PartKey {
            node: node.database.name().to_owned(),
            table: part.table.name.clone(),
            callers: node.database.row_policy_fingerprint(principal),
        };
        let known_since = SystemTime::now();
        let sizes = node.database.table_storage(&part.table.name, principal);
        let reading = timeout(self.options.timeout, try_join(sizes, self.read_ranges(part, known, job))).await;
        let reason = match reading {
            Ok(Ok((storage, ranges))) => {
                let statistics = PartStatistics { bytes: storage.bytes, ranges, known_since };
                self.statistics.0.lock().put(key(), statistics.clone());
                return Ok((Some(statistics), None));
            }
            Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Ok(Err(error)) => error.message().to_owned(),
            Err(_) => format!("it did not answer within {} ms", self.options.timeout.as_millis()),
        };
        let last = self.statistics.0.lock().get(&key()).cloned();
        let age = match &last {
            Some(last) => {
                let time = DateTime::<Utc>::from(last.known_since).to_rfc3339_opts(SecondsFormat::Secs, true);
                format!("are those of {time}")
            }
            None => "are not known".to_owned(),
        };
        Ok((last, Some(format!("size and ranges {age}: {reason}"))))
    }

    /// The ranges of the declared columns in the rows of a part.
    async fn read_ranges(
        &self,
        part: &NodePart,
        known: &Arc<KnownTables>,
        job: &Arc<Job>,
    ) -> Result<Vec<PartRange>, Error> {
        let declared = self.options.ranges.iter().filter(|column| part.column(column).is_some());
        let columns: Vec<&str> = declared.map(String::as_str).collect();
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let principal = job.principal();
        let statement = Statement::parse(&ranges_query(&columns, part), SqlDialect::DataFusion)?;
        let context = self.query_context(principal);
        let tables = NetworkTables::new(&self.name, known.clone(), &statement, context, principal)?;
        // Other nodes, which may be away, are not needed.
        let plan = self.plan_over(&statement, tables, Vec::new(), principal).await?;
        let mut rows = plan.run(job).await?.batches;
        let mut ranges = Vec::new();
        while let Some(batch) = rows.next().await {
            ranges.extend(ranges_of(&columns, &batch?)?);
        }
        Ok(ranges)
    }
}

/// The smallest and the largest value of each of `columns`, in one row.
fn ranges_query(columns: &[&str], part: &NodePart) -> String {
    let quoted = |name: &str| SqlDialect::DataFusion.quote_identifier(name);
    let ranges: Vec<String> = columns.iter().map(|name| format!("min({0}), max({0})", quoted(name))).collect();
    let node = part.node.name().replace('\'', "''");
    format!("SELECT {} FROM {} WHERE {NODE_COLUMN} = '{node}'", ranges.join(", "), quoted(&part.table.name))
}

/// The ranges in an answer to [`ranges_query`]. A column without values has none.
fn ranges_of(columns: &[&str], batch: &RecordBatch) -> Result<Vec<PartRange>, Error> {
    let failed = |error| Error::internal(format!("the range of a column: {error}"));
    let options = FormatOptions::default();
    let mut ranges = Vec::new();
    for (column, range) in columns.iter().zip(batch.columns().chunks_exact(2)) {
        if batch.num_rows() == 0 || range.iter().any(|values| values.is_null(0)) {
            continue;
        }
        let text = |values| {
            ArrayFormatter::try_new(values, &options)
                .map(|values| shorten(values.value(0).to_string(), VALUE_CHARS_MAX))
        };
        let (smallest, largest) = (text(&range[0]).map_err(failed)?, text(&range[1]).map_err(failed)?);
        ranges.push(PartRange { column: (*column).to_owned(), smallest, largest });
    }
    Ok(ranges)
}
