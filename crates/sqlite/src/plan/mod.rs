//! Plans a statement and runs the plan.

mod diagnostics;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use rusqlite::Statement as Prepared;

use crate::answer::{BatchReader, ResultColumn, RowBuffer, RowSender, arrow_schema, describe_columns};
use crate::policy_views::PolicyCaller;
use crate::pool::Pool;
use crate::session::{ReadTransaction, SERIES, SERIES_ARGUMENT, SERIES_ARGUMENTS, WorkCancellation};
use crate::work_error::WorkError;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Author, Parameter, SqlDialect, Statement};

/// A statement of the engine: text and values.
///
/// This is not the checked statement, so that tests can try the authorizer with statements that no check would accept.
#[derive(Debug, Clone, Default)]
pub(crate) struct SqliteStatement {
    pub(crate) sql: String,
    /// The values of its placeholders, the first for `$1`.
    pub(crate) parameters: Vec<Parameter>,
    /// The tables that it is known to read; used for suggestions about unknown columns.
    pub(crate) tables: Vec<String>,
    /// The parsed statement; `None` if only SQLite parses it.
    pub(crate) parsed: Option<Statement>,
    pub(crate) is_by_owner: bool,
    /// Whether it calls `generate_series`, and its arguments are converted.
    pub(crate) has_series: bool,
}

impl SqliteStatement {
    /// The SQL to run in `reading`. Replaces tables by their policy views, and creates these views.
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

    /// In views of the file, and in SQL that only SQLite parses, the arguments of `generate_series` are not converted.
    fn check_series(&self, reading: &ReadTransaction<'_>) -> Result<(), WorkError> {
        let is_series = |(_, table): &(String, String)| table.eq_ignore_ascii_case(SERIES);
        if self.has_series || !reading.tables_read().iter().any(is_series) {
            return Ok(());
        }
        let error = Error::new(ErrorKind::InvalidArguments, "generate_series is not supported here");
        Err(error
            .with_hint("Write it with its arguments into the statement itself: FROM generate_series(1, 10).")
            .into())
    }

    /// The SQL over a view that SQLite may merge with the query. Only used if the query evaluates nothing for hidden
    /// rows except comparisons of columns with literals. SQLite can then use an index.
    fn rewrite_merged(&self, reading: &ReadTransaction<'_>) -> Option<String> {
        let (policy_views, parsed) = (reading.policy_views()?, self.parsed.as_ref()?);
        let (key, view) = policy_views.mergeable_view_for(&parsed.point_query()?)?;
        let statement = parsed.with_only_table_redirected(&("temp".to_owned(), view)).ok()??;
        reading.create_mergeable_view(&key).ok()?;
        Some(statement.text().to_owned())
    }
}

impl From<&Statement> for SqliteStatement {
    fn from(statement: &Statement) -> Self {
        // A statement of the owner may be parsed like that of a caller, so that its tables can be replaced.
        let parsed = match statement.ast() {
            Some(_) => Some(statement.clone()),
            None => Statement::parse(statement.text(), SqlDialect::Sqlite).ok(),
        };
        let convert = |parsed: &Statement| parsed.with_wrapped_arguments(SERIES, SERIES_ARGUMENT, SERIES_ARGUMENTS);
        // A statement that cannot be rewritten is refused when it is planned.
        let with_series = parsed.as_ref().and_then(|parsed| convert(parsed).ok().flatten());
        Self {
            sql: with_series.as_ref().unwrap_or(statement).text().to_owned(),
            parameters: statement.parameters().to_vec(),
            tables: statement.tables().to_vec(),
            has_series: with_series.is_some(),
            parsed: with_series.or(parsed),
            is_by_owner: statement.author() != Author::Caller,
        }
    }
}

pub(crate) struct SqlitePlan {
    pool: Arc<Pool>,
    caller: Option<Arc<PolicyCaller>>,
    statement: SqliteStatement,
    columns: Vec<ResultColumn>,
    schema: SchemaRef,
    summary: PlanSummary,
}

pub(crate) async fn plan_statement(
    pool: Arc<Pool>,
    caller: Option<Arc<PolicyCaller>>,
    statement: SqliteStatement,
) -> Result<SqlitePlan, Error> {
    let (planned, database) = (statement.clone(), pool.database.clone());
    let work = move |reading: &ReadTransaction<'_>| {
        let plan = || -> Result<_, WorkError> {
            diagnostics::check_unambiguous(reading, &planned, &database)?;
            let sql = planned.rewrite_for(reading)?;
            let columns = describe_columns(reading, &reading.prepare(&sql)?, &sql)?;
            planned.check_series(reading)?;
            Ok((columns, PlanSummary::from_steps(&sql, &reading.explain(&sql)?)))
        };
        plan().map_err(|failure| diagnostics::add_suggestions(failure, reading, &planned, &database))
    };
    let (columns, summary) = pool.read(caller.clone(), work).await?;
    Ok(SqlitePlan { pool, caller, statement, schema: arrow_schema(&columns), columns, summary })
}

#[async_trait]
impl Plan for SqlitePlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.summary.rows_max
    }

    fn is_pipeline_breaking(&self) -> Option<bool> {
        Some(self.summary.is_pipeline_breaking)
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(self.summary.text.clone())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        let cancellation = WorkCancellation::for_job(job);
        let permit = tokio::select! {
            biased;
            () = job.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
            permit = self.pool.acquire() => permit?,
        };
        let buffer = RowBuffer::new(&self.columns, self.schema.clone(), &self.pool.options);
        let reader = BatchReader::new(buffer.clone(), cancellation.clone());
        let sender = RowSender { buffer };
        let Self { caller, statement, columns, .. } = *self;
        let database = self.pool.database.clone();
        self.pool.start(permit, move |session| {
            let outcome = session.read(&cancellation, caller.as_deref(), |reading| {
                send_rows(reading, &statement, &columns, &sender, &cancellation)
            });
            // The rows end successfully only if the transaction does.
            Box::new(move || sender.end(outcome.map_err(|failure| failure.into_error(&database))))
        })?;
        let batches = futures::stream::unfold(reader, |mut reader| async move {
            let batch = reader.next().await?;
            Some((batch, reader))
        });
        Ok(QueryRows::new(self.schema, Box::pin(batches)))
    }
}

fn send_rows(
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    columns: &[ResultColumn],
    sender: &RowSender,
    cancellation: &WorkCancellation,
) -> Result<(), WorkError> {
    let mut prepared = match prepare_merged(reading, statement, columns) {
        Some(prepared) => prepared,
        None => {
            let sql = statement.rewrite_for(reading)?;
            let prepared = reading.prepare(&sql);
            let prepared = prepared.map_err(|failure| diagnostics::hide_names(failure, reading, statement))?;
            // The tables may have changed since the statement was planned.
            if describe_columns(reading, &prepared, &sql)? != columns {
                return Err(WorkError::Changed);
            }
            prepared
        }
    };
    bind_parameters(&mut prepared, &statement.parameters)?;
    // SQLite ignores an interrupt that arrives while no statement runs.
    if cancellation.must_stop() {
        return Err(cancellation.stop_error());
    }
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(|error| diagnostics::row_error(reading.classify_error(error), reading))? {
        sender.push_row(row, cancellation)?;
    }
    Ok(())
}

/// `None` if the columns differ, and on any error: the statement as planned then reports it.
fn prepare_merged<'a>(
    reading: &'a ReadTransaction<'_>,
    statement: &SqliteStatement,
    columns: &[ResultColumn],
) -> Option<Prepared<'a>> {
    let sql = statement.rewrite_merged(reading)?;
    let prepared = reading.prepare(&sql).ok()?;
    (describe_columns(reading, &prepared, &sql).ok()? == columns).then_some(prepared)
}

/// Binds the parameters by number: SQLite treats `$2` as a name, whose index is its first use.
fn bind_parameters(statement: &mut Prepared<'_>, parameters: &[Parameter]) -> Result<(), WorkError> {
    for index in 1..=statement.parameter_count() {
        let number = match statement.parameter_name(index) {
            None => Some(index),
            Some(name) => name.get(1..).and_then(|digits| digits.parse().ok()),
        };
        let parameter = number.and_then(|number: usize| parameters.get(number.checked_sub(1)?));
        match parameter {
            None => {
                let message = format!("placeholder {index} has no value");
                return Err(Error::new(ErrorKind::InvalidArguments, message).into());
            }
            Some(Parameter::Null) => statement.raw_bind_parameter(index, None::<i64>)?,
            // SQLite has no booleans: its TRUE is 1.
            Some(Parameter::Boolean(value)) => statement.raw_bind_parameter(index, value)?,
            Some(Parameter::Integer(value)) => statement.raw_bind_parameter(index, value)?,
            Some(Parameter::Float(value)) => statement.raw_bind_parameter(index, value)?,
            Some(Parameter::Text(value)) => statement.raw_bind_parameter(index, value)?,
        }
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlanSummary {
    /// The steps as an indented tree.
    text: String,
    is_pipeline_breaking: bool,
    /// The maximum number of rows, if the statement limits it.
    rows_max: Option<u64>,
}

impl PlanSummary {
    /// Summarises the `steps` (number, number of the parent, text) of `sql`.
    fn from_steps(sql: &str, steps: &[(i64, i64, String)]) -> Self {
        Self {
            text: format_tree(steps),
            is_pipeline_breaking: is_pipeline_breaking(sql, steps),
            rows_max: trailing_limit(sql),
        }
    }
}

/// Parents precede their children.
fn format_tree(steps: &[(i64, i64, String)]) -> String {
    let mut depths = HashMap::new();
    let mut lines = Vec::with_capacity(steps.len());
    for (number, parent, text) in steps {
        let depth = depths.get(parent).map_or(0, |depth| depth + 1);
        depths.insert(number, depth);
        lines.push(format!("{}{text}", "  ".repeat(depth)));
    }
    lines.join("\n")
}

/// Functions that need all rows before they return one.
const AGGREGATES: &[&str] =
    &["avg(", "count(", "group_concat(", "json_group_array(", "json_group_object(", "string_agg(", "sum(", "total("];

/// A false match in the text only delays the rows of a result that is small anyway.
fn is_pipeline_breaking(sql: &str, steps: &[(i64, i64, String)]) -> bool {
    let sorts = |text: &str| {
        text.starts_with("USE TEMP B-TREE FOR ORDER BY") || text.starts_with("USE TEMP B-TREE FOR GROUP BY")
    };
    let sql = sql.to_lowercase();
    steps.iter().any(|(_, parent, text)| *parent == 0 && sorts(text))
        || AGGREGATES.iter().any(|name| sql.contains(name))
}

/// The number of a LIMIT at the end of the statement, which therefore applies to the whole statement.
fn trailing_limit(sql: &str) -> Option<u64> {
    // A comment could contain the LIMIT.
    if sql.contains("--") || sql.contains("/*") {
        return None;
    }
    let (before, number) = sql.trim_end().rsplit_once(char::is_whitespace)?;
    let number = number.parse().ok()?;
    let (_, word) = before.trim_end().rsplit_once(char::is_whitespace)?;
    word.eq_ignore_ascii_case("LIMIT").then_some(number)
}

#[cfg(test)]
mod tests;
