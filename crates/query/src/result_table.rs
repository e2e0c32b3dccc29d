//! Stored results as tables: their names, their columns and their rows, for the caller that owns them.
//!
//! The rows are read block by block and never collected. A reader waits for rows that are still being written, and fails
//! if they end before the last one: an aggregate over a part would look like one over all.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, future};
use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_results::{ResultEnd, StoredResult};
use tidegate_runtime::Job;
use tidegate_sql::SqlDialect;

use crate::database::{Database, DatabaseKind};
use crate::format::unique_names;
use crate::secrets::redact_stream;

/// The name of the database of stored results. No other database may have it.
pub const RESULTS_DATABASE: &str = "results";

/// The kind of the database of stored results, also with the tables of others. A program that embeds the server may have
/// a database of that name, of another kind.
pub const RESULTS_KIND: DatabaseKind = DatabaseKind::Other(RESULTS_DATABASE);

/// The number of tables that are named if none is similar.
const CHOICES_MAX: usize = 20;

/// A stored result as a table of its owner.
#[derive(Debug, Clone)]
pub struct ResultTable {
    result: Arc<StoredResult>,
    name: String,
    dialect: SqlDialect,
}

impl ResultTable {
    /// The table `name` with the rows of `result`, which a database with `dialect` returned.
    pub fn new(result: Arc<StoredResult>, name: impl Into<String>, dialect: SqlDialect) -> Self {
        Self { result, name: name.into(), dialect }
    }

    /// The result.
    pub fn result(&self) -> &Arc<StoredResult> {
        &self.result
    }

    /// The name in the database of stored results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dialect of the database that the rows come from.
    pub fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    /// The columns of the answer, with the names that its preview has: no two are equal.
    pub fn schema(&self) -> Schema {
        let stored = self.result.schema();
        let fields = stored.fields().iter().zip(unique_names(stored));
        Schema::new(fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>())
    }

    /// The number of rows, when all are stored.
    pub fn row_count(&self) -> Option<u64> {
        let progress = self.result.progress();
        progress.end.as_ref().map(|_| progress.rows())
    }

    /// What the table is, for lists.
    pub fn comment(&self) -> String {
        format!("Answer of {}, also called {}", self.result.header().tool, self.result.header().id.table_name())
    }

    /// Checks that the result has all rows of the answer, as far as that is known now.
    ///
    /// # Errors
    /// `Unavailable` for an incomplete result; `InvalidArguments` for one that ended at a limit, unless its owner requested a
    /// table; `NotFound` for one that was removed.
    pub fn check_complete(&self) -> Result<(), Error> {
        let name = format!("{RESULTS_DATABASE}.{}", self.name);
        let repeat = "Repeat the query that stored it, with delivery: \"table\".";
        match self.result.end() {
            Some(ResultEnd::Incomplete(reason)) => {
                let message = format!("{name} lacks rows, because its stored result is incomplete: {reason}");
                return Err(Error::new(ErrorKind::Unavailable, message).with_hint(repeat));
            }
            Some(ResultEnd::Removed(reason)) => {
                let message = format!("the stored result of {name} is gone: {reason}");
                return Err(Error::new(ErrorKind::NotFound, message).with_hint(repeat));
            }
            Some(ResultEnd::Complete) | None => {}
        }
        match self.result.reached_row_limit().filter(|_| !self.result.header().is_table) {
            Some(rows) => {
                let message = format!("{name} lacks rows: its answer ended at {rows} rows (limit, max_rows)");
                Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(repeat))
            }
            None => Ok(()),
        }
    }

    /// Streams the rows as they are stored, to determine the types of their values, and fails at the end if they are not all.
    pub fn unmasked_rows(&self) -> BoxStream<'static, Result<RecordBatch, Error>> {
        let table = self.clone();
        let end = stream::once(async move { table.check_complete() });
        let end = end.filter_map(|checked| future::ready(checked.err().map(Err)));
        self.result.rows_from(0).chain(end).boxed()
    }

    /// Streams the rows for `job`, and fails at the end if they are not all. Secrets are masked by the rules of now: more may
    /// exist than when the rows were stored.
    pub fn rows(&self, job: &Arc<Job>) -> BoxStream<'static, Result<RecordBatch, Error>> {
        redact_stream(self.unmasked_rows(), job)
    }
}

/// The error for a table `name` that does not exist for the caller. `known` are the names of those that do.
pub fn missing_result_table<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Error {
    let near = nearest_names(name, known.clone());
    let choices = if near.is_empty() { known.take(CHOICES_MAX).map(str::to_owned).collect() } else { near };
    Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in database {RESULTS_DATABASE:?}"))
        .with_choices(choices)
        .with_hint("Stored results expire. Repeat the query that stored it, with save_as.")
}

/// Makes databases of stored results.
pub trait ResultTables: fmt::Debug + Send + Sync + 'static {
    /// A database called [`RESULTS_DATABASE`] with `tables`. With `joined`, it also has the tables of that database, or of its
    /// members, under their names.
    ///
    /// # Errors
    /// `Internal` when the database cannot be made.
    fn open(&self, tables: Vec<ResultTable>, joined: Option<&Arc<dyn Database>>) -> Result<Arc<dyn Database>, Error>;
}
