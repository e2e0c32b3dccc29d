//! Plans a statement and runs the plan.

mod diagnostics;
mod explain;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use rusqlite::Statement as Prepared;

use crate::answer::{BatchReader, ResultColumn, RowBuffer, RowSender, arrow_schema, describe_columns};
use crate::policy_views::PolicyCaller;
use crate::pool::Pool;
use crate::session::{ReadTransaction, WorkCancellation};
use crate::work_error::WorkError;
use explain::PlanSummary;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Author, Parameter, SqlDialect, Statement};

/// A statement of the engine: text and values.
///
/// This is not the checked statement, so that tests can try the authorizer with statements that no check would accept.
#[derive(Debug, Clone, Default)]
pub(crate) struct SqliteStatement {
    /// The SQL.
    pub(crate) sql: String,
    /// The values of its placeholders, the first for `$1`.
    pub(crate) parameters: Vec<Parameter>,
    /// The tables that it is known to read; used for suggestions about unknown columns.
    pub(crate) tables: Vec<String>,
    /// The parsed statement; `None` if only SQLite parses it.
    pub(crate) parsed: Option<Statement>,
    /// Whether the statement was written by the owner and not by the caller.
    pub(crate) is_by_owner: bool,
}

impl SqliteStatement {
    /// The SQL to run in `reading`. Replaces tables by their policy views, and creates these views.
    ///
    /// # Errors
    /// Fails if SQLite cannot create the views, or if the SQL cannot be formatted again.
    fn rewrite_for(&self, reading: &ReadTransaction<'_>) -> Result<Cow<'_, str>, WorkError> {
        let Some(policy_views) = reading.policy_views() else { return Ok(Cow::Borrowed(&self.sql)) };
        if policy_views.contains_reserved_name(&self.sql) {
            let message = "the SQL uses a name that is reserved for row policies";
            return Err(Error::new(ErrorKind::InvalidArguments, message).into());
        }
        reading.create_views_for(self.parsed.as_ref().map(Statement::tables))?;
        if let Some(denied) = policy_views.denial_for(&self.tables) {
            return Err(denied.clone().into());
        }
        let rewritten = self
            .parsed
            .as_ref()
            .map(|parsed| parsed.with_tables_redirected(&|schema, name| policy_views.replacement_for(schema, name)));
        match rewritten.transpose()?.flatten() {
            Some(statement) => Ok(Cow::Owned(statement.text().to_owned())),
            None => Ok(Cow::Borrowed(&self.sql)),
        }
    }

    /// The SQL over a view that SQLite may merge with the query. Only used if the query evaluates nothing for hidden
    /// rows except comparisons of columns with literals. SQLite can then use an index.
    fn rewrite_merged(&self, reading: &ReadTransaction<'_>) -> Option<String> {
        let (policy_views, parsed) = (reading.policy_views()?, self.parsed.as_ref()?);
        let lookup = parsed.point_query()?;
        let (key, open) = policy_views.mergeable_view_for(&lookup)?;
        let statement = parsed.with_only_table_redirected(&("temp".to_owned(), open)).ok()??;
        reading.create_mergeable_view(&key).ok()?;
        Some(statement.text().to_owned())
    }
}

impl From<&Statement> for SqliteStatement {
    fn from(statement: &Statement) -> Self {
        Self {
            sql: statement.text().to_owned(),
            parameters: statement.parameters().to_vec(),
            tables: statement.tables().to_vec(),
            // A statement of the owner may be parsed like that of a caller, so that its tables can be replaced.
            parsed: match statement.ast() {
                Some(_) => Some(statement.clone()),
                None => Statement::parse(statement.text(), SqlDialect::Sqlite).ok(),
            },
            is_by_owner: statement.author() != Author::Caller,
        }
    }
}

/// A plan of SQLite.
pub(crate) struct SqlitePlan {
    pool: Arc<Pool>,
    caller: Option<Arc<PolicyCaller>>,
    statement: SqliteStatement,
    columns: Vec<ResultColumn>,
    schema: SchemaRef,
    summary: PlanSummary,
}

/// Plans `statement`.
///
/// # Errors
/// Errors of SQLite or of the authorizer, with suggestions.
pub(crate) async fn plan_statement(
    pool: Arc<Pool>,
    policy_caller: Option<Arc<PolicyCaller>>,
    sqlite_statement: SqliteStatement,
) -> Result<SqlitePlan, Error> {
    let (planned, database) = (sqlite_statement.clone(), pool.database.clone());
    let work = move |reading: &ReadTransaction<'_>| {
        let look = || -> Result<_, WorkError> {
            diagnostics::check_unambiguous(reading, &planned, &database)?;
            let sql = planned.rewrite_for(reading)?;
            let statement = reading.prepare(&sql)?;
            let columns = describe_columns(reading, &statement, &sql)?;
            drop(statement);
            Ok((columns, PlanSummary::from_steps(&sql, &reading.explain(&sql)?)))
        };
        look().map_err(|failure| diagnostics::add_suggestions(failure, reading, &planned, &database))
    };
    let (columns, explained) = pool.read(WorkCancellation::unbounded(), policy_caller.clone(), work).await?;
    Ok(SqlitePlan {
        pool,
        caller: policy_caller,
        statement: sqlite_statement,
        schema: arrow_schema(&columns),
        columns,
        summary: explained,
    })
}

#[async_trait]
impl Plan for SqlitePlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.summary.rows_max
    }

    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    fn is_pipeline_breaking(&self) -> bool {
        self.summary.is_pipeline_breaking
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(self.summary.text.clone())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        let running = WorkCancellation::for_job(job);
        let place = tokio::select! {
            biased;
            () = job.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
            place = self.pool.acquire() => place?,
        };
        let row_buffer = RowBuffer::new(&self.columns, self.schema.clone(), &self.pool.options);
        let reader = BatchReader::new(row_buffer.clone(), running.clone());
        let source = RowSender { buffer: row_buffer };
        let (sqlite_statement, columns, database) = (self.statement, self.columns, self.pool.database.clone());
        let policy_caller = self.caller;
        self.pool.start(place, move |session| {
            let outcome = session.read(&running, policy_caller.as_deref(), |reading| {
                send_rows(reading, &sqlite_statement, &columns, &source, &running)
            });
            // The rows end successfully only if the transaction does.
            Box::new(move || source.end(outcome.map_err(|failure| failure.into_error(&database))))
        })?;
        let batches = futures::stream::unfold(reader, |mut reader| async move {
            let batch = reader.next().await?;
            Some((batch, reader))
        });
        Ok(QueryRows { schema: self.schema, batches: Box::pin(batches) })
    }
}

/// Reads the rows of `statement` into `source`.
fn send_rows(
    reading: &ReadTransaction<'_>,
    sqlite_statement: &SqliteStatement,
    columns: &[ResultColumn],
    source: &RowSender,
    running: &WorkCancellation,
) -> Result<(), WorkError> {
    let mut statement = match prepare_merged(reading, sqlite_statement, columns) {
        Some(statement) => statement,
        None => {
            let sql = sqlite_statement.rewrite_for(reading)?;
            let statement =
                reading.prepare(&sql).map_err(|failure| diagnostics::hide_names(failure, reading, sqlite_statement))?;
            // The tables may have changed since the statement was planned.
            if describe_columns(reading, &statement, &sql)? != columns {
                return Err(WorkError::Changed);
            }
            statement
        }
    };
    bind_parameters(&mut statement, &sqlite_statement.parameters)?;
    // SQLite ignores an interrupt that arrives while no statement runs.
    if running.must_stop() {
        return Err(WorkError::Cancelled);
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| diagnostics::row_error(reading.classify_error(error), reading))? {
        source.push_row(row, running)?;
    }
    Ok(())
}

/// Prepares `statement` merged with the view in front of its table, if that gives the same `columns`. Returns `None` on
/// any error: the statement as planned then reports it.
fn prepare_merged<'a>(
    reading: &'a ReadTransaction<'_>,
    sqlite_statement: &SqliteStatement,
    columns: &[ResultColumn],
) -> Option<Prepared<'a>> {
    let sql = sqlite_statement.rewrite_merged(reading)?;
    let statement = reading.prepare(&sql).ok()?;
    (describe_columns(reading, &statement, &sql).ok()? == columns).then_some(statement)
}

/// Binds the parameters by number: SQLite treats `$2` as a name, whose index is its first use.
fn bind_parameters(statement: &mut Prepared<'_>, parameters: &[Parameter]) -> Result<(), WorkError> {
    for place in 1..=statement.parameter_count() {
        let number = match statement.parameter_name(place) {
            None => Some(place),
            Some(name) => name.get(1..).and_then(|digits| digits.parse().ok()),
        };
        let parameter = number.and_then(|number: usize| parameters.get(number.checked_sub(1)?));
        match parameter {
            None => {
                let message = format!("placeholder {place} has no value");
                return Err(Error::new(ErrorKind::InvalidArguments, message).into());
            }
            Some(Parameter::Null) => statement.raw_bind_parameter(place, None::<i64>)?,
            // SQLite has no booleans: its TRUE is 1.
            Some(Parameter::Boolean(value)) => statement.raw_bind_parameter(place, value)?,
            Some(Parameter::Integer(value)) => statement.raw_bind_parameter(place, value)?,
            Some(Parameter::Float(value)) => statement.raw_bind_parameter(place, value)?,
            Some(Parameter::Text(value)) => statement.raw_bind_parameter(place, value)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
