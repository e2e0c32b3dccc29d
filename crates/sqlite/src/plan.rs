//! Plans a statement and runs the plan. SQLite's error messages for a statement get suggested names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use rusqlite::{Error as SqliteError, Statement as Prepared};
use tidegate_core::{Error, ErrorKind, misspelled_name, nearest_names};
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Author, Parameter, SqlDialect, Statement, equivalent_function};

use crate::answer::{BatchReader, ResultColumn, RowBuffer, RowSender, arrow_schema, describe_columns};
use crate::catalog::{self, suggest_names};
use crate::policy_views::{MASK_PREFIX, PolicyCaller, policy_names, unreadable_under_policy_error};
use crate::pool::Pool;
use crate::session::{ReadTransaction, SERIES, SERIES_ARGUMENT, SERIES_ARGUMENTS, WorkCancellation};
use crate::tables::{SqliteTable, TableKind};
use crate::work_error::{WorkError, sqlite_message};

/// A statement of the engine: text and values.
///
/// This is not the checked statement, so that tests can try the authorizer with statements that no check would accept.
#[derive(Debug, Clone, Default)]
pub(crate) struct SqliteStatement {
    pub(crate) sql: String,
    /// The values of its placeholders, the first for `$1`.
    parameters: Vec<Parameter>,
    /// The tables that it is known to read; used for suggestions about unknown columns.
    pub(crate) tables: Vec<String>,
    /// The parsed statement; `None` if only SQLite parses it.
    pub(crate) parsed: Option<Statement>,
    is_by_owner: bool,
    /// Whether it calls `generate_series`, and its arguments are converted.
    has_series: bool,
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
            check_unambiguous(reading, &planned, &database)?;
            let sql = planned.rewrite_for(reading)?;
            let columns = describe_columns(reading, &reading.prepare(&sql)?, &sql)?;
            planned.check_series(reading)?;
            Ok((columns, PlanSummary::from_steps(&sql, &reading.explain(&sql)?)))
        };
        plan().map_err(|failure| add_suggestions(failure, reading, &planned, &database))
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
            () = job.cancelled() => return Err(Error::cancelled()),
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
            let prepared = prepared.map_err(|failure| hide_names(failure, reading, statement))?;
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
    while let Some(row) = rows.next().map_err(|error| row_error(reading.classify_error(error), reading))? {
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

const COLUMNS_MAX: usize = 60;

fn add_suggestions(
    failure: WorkError,
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    database: &str,
) -> WorkError {
    let failure = hide_names(failure, reading, statement);
    let WorkError::Sqlite(error) = &failure else { return failure };
    // If the names cannot be read, the original error is returned.
    match diagnose(error, reading, statement, database) {
        Ok(Some(error)) => error.into(),
        _ => failure,
    }
}

/// The failure may be in a table or a view of the owner, whose name the caller must not see.
fn hide_names(failure: WorkError, reading: &ReadTransaction<'_>, statement: &SqliteStatement) -> WorkError {
    if !reading.has_policies() || !failure.is_about_statement() {
        return failure;
    }
    let names = statement.parsed.as_ref().map_or(statement.tables.as_slice(), Statement::tables);
    let Ok(tables) = catalog::list_tables(reading) else { return owner_sql_error(&failure) };
    for table in tables.iter().filter(|table| may_be_named(reading, table, names)) {
        if let Err(WorkError::ClientError(error)) = catalog::check_readable(reading, table) {
            return WorkError::ClientError(error);
        }
    }
    if statement.is_by_owner { owner_sql_error(&failure) } else { failure }
}

/// For virtual tables, the original error could reveal their content.
fn row_error(failure: WorkError, reading: &ReadTransaction<'_>) -> WorkError {
    if !reading.has_policies() || !failure.is_about_statement() {
        return failure;
    }
    let tables = reading.tables_read().into_iter();
    let mut tables = tables.filter_map(|(schema, name)| catalog::lookup_table(reading, &schema, &name).ok().flatten());
    let Some(table) = tables.find(|table| table.kind == TableKind::Virtual && reading.visibility(table).is_some())
    else {
        return failure;
    };
    let error = unreadable_under_policy_error(reading.files, &table, &failure.to_string());
    error.with_hint("Operators of its module, such as MATCH, are not available for tables with row policies.").into()
}

fn owner_sql_error(failure: &WorkError) -> WorkError {
    let error = Error::new(ErrorKind::Forbidden, "this statement cannot run where row policies apply");
    error.with_detail(failure.to_string()).mark_configuration_fault().into()
}

fn may_be_named(reading: &ReadTransaction<'_>, table: &SqliteTable, names: &[String]) -> bool {
    let of_table = policy_names(reading.files, table);
    names.iter().any(|name| of_table.iter().any(|other| other.eq_ignore_ascii_case(name)))
}

/// SQLite itself would take the first file with the name. The error lists the full names.
fn check_unambiguous(
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    database: &str,
) -> Result<(), WorkError> {
    if reading.files.is_single() {
        return Ok(());
    }
    let tables = catalog::list_tables(reading)?;
    for name in &statement.tables {
        let matches = tables.iter().filter(|table| table.name.eq_ignore_ascii_case(name));
        let full: Vec<String> = matches.map(|table| reading.files.display_name(&table.schema, &table.name)).collect();
        if full.len() > 1 {
            let message = format!("several files of {database:?} have a table {name:?}");
            return Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(full).into());
        }
    }
    Ok(())
}

fn diagnose(
    error: &SqliteError,
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    database: &str,
) -> Result<Option<Error>, WorkError> {
    let text = sqlite_message(error);
    let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    if let Some(name) = text.strip_prefix("no such table: ") {
        let tables = catalog::list_tables(reading)?;
        let names = tables.iter().map(|table| reading.files.display_name(&table.schema, &table.name));
        let names: Vec<String> = names.collect();
        let error = invalid(format!("there is no table {name:?} in {database:?}"));
        return Ok(Some(error.with_choices(suggest_names(name, &names))));
    }
    if let Some(name) = text.strip_prefix("no such column: ") {
        // SQLite appends a question if the name was in double quotes.
        let (name, was_quoted) = match name.split_once(" - ") {
            Some((name, _)) => (name.trim_matches('"'), true),
            None => (name, false),
        };
        let choices = suggest_columns(reading, statement, name)?;
        let error = invalid(format!("there is no column {name:?}")).with_choices(choices);
        let hint = "Write texts in single quotes; double quotes are for names.";
        return Ok(Some(if was_quoted { error.with_hint(hint) } else { error }));
    }
    if let Some(name) = text.strip_prefix("no such function: ") {
        if let Some(equivalent) = equivalent_function(name, SqlDialect::Sqlite) {
            return Ok(Some(
                invalid(format!("there is no function {name:?}")).with_hint(format!("Write {equivalent}.")),
            ));
        }
        let names = list_functions(reading)?;
        let meant = misspelled_name(name, names.iter().map(String::as_str));
        let advice = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        return Ok(Some(invalid(format!("there is no function {name:?}{advice}"))));
    }
    if let Some(name) = text.strip_prefix("ambiguous column name: ") {
        let error = invalid(format!("the column {name:?} is in several tables of the query"));
        return Ok(Some(error.with_hint("Write the table before it: table.column.")));
    }
    if let SqliteError::SqlInputError { sql, offset, .. } = error {
        let position = usize::try_from(*offset).ok().and_then(|offset| line_and_column(sql, offset));
        let position = position.map_or_else(String::new, |(line, column)| format!(" at line {line}, column {column}"));
        return Ok(Some(invalid(format!("{text}{position}"))));
    }
    Ok(None)
}

fn suggest_columns(
    reading: &ReadTransaction<'_>,
    statement: &SqliteStatement,
    expected: &str,
) -> Result<Vec<String>, WorkError> {
    let mut names = Vec::new();
    for table in catalog::list_tables(reading)? {
        if may_be_named(reading, &table, &statement.tables) {
            names.extend(catalog::visible_columns(reading, &table)?.into_iter().map(|column| column.name));
        }
    }
    let last = expected.rsplit_once('.').map_or(expected, |(_, last)| last);
    let mut ordered = nearest_names(last, names.iter().map(String::as_str));
    for name in names {
        if ordered.len() < COLUMNS_MAX && !ordered.contains(&name) {
            ordered.push(name);
        }
    }
    Ok(ordered)
}

fn list_functions(reading: &ReadTransaction<'_>) -> Result<Vec<String>, WorkError> {
    let mut names = reading.run_internal(|connection| {
        let mut statement = connection.prepare("SELECT DISTINCT name FROM pragma_function_list ORDER BY name")?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<rusqlite::Result<Vec<String>>>()
    })?;
    // With the full name of the mask function, a caller could guess masked values.
    names.retain(|name| !name.starts_with(MASK_PREFIX) && name != SERIES_ARGUMENT);
    Ok(names)
}

/// Line and column of the byte at `offset`, both from 1.
fn line_and_column(sql: &str, offset: usize) -> Option<(usize, usize)> {
    let before = sql.get(..offset)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some((before.matches('\n').count() + 1, line.chars().count() + 1))
}

#[cfg(test)]
mod tests {
    // Attempts to get out, with no parser and no policy in front of the engine.

    use std::collections::BTreeSet;
    use std::path::PathBuf;
    use std::sync::Arc;

    use rusqlite::Connection;
    use tidegate_core::{AuthMethod, Error, Grants, Principal};
    use tidegate_query::{HashKey, Mask, RowCondition, RowPolicies, RowPolicy};

    use super::{SqliteStatement, plan_statement, trailing_limit};
    use crate::policy_views::PolicyCaller;
    use crate::pool::Pool;
    use crate::session::ReadTransaction;
    use crate::tables::{DatabaseFiles, SqliteOptions};

    struct EscapeFixture {
        folder: tempfile::TempDir,
        pool: Arc<Pool>,
    }

    impl EscapeFixture {
        fn new() -> Self {
            Self::with_options(SqliteOptions::default())
        }

        fn with_options(options: SqliteOptions) -> Self {
            let folder = tempfile::Builder::new().prefix("attempts").tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            let secret = Connection::open(path("secret.db")).unwrap();
            secret.execute_batch("CREATE TABLE secrets (a); INSERT INTO secrets VALUES ('the secret')").unwrap();
            let data = Connection::open(path("data.db")).unwrap();
            let sql =
            "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); CREATE VIEW extension AS SELECT load_extension('x');
            CREATE VIEW settings AS SELECT * FROM pragma_table_info('t');
            CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('the quick fox'), ('a lazy dog');
            CREATE VIRTUAL TABLE old_notes USING fts4(body); INSERT INTO old_notes VALUES ('the quick fox');
            CREATE VIRTUAL TABLE places USING rtree(id, low, high); INSERT INTO places VALUES (1, 2, 3);
            CREATE TRIGGER after_insert AFTER INSERT ON t BEGIN DELETE FROM t; END;";
            data.execute_batch(sql).unwrap();
            let files = DatabaseFiles::new("shop", vec![path("data.db")]).unwrap();
            let pool = Arc::new(Pool::new("shop".into(), files, options));
            Self { folder, pool }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Plans `sql`, and runs it to its end if it is accepted.
        async fn plan_and_run(&self, sql: &str) -> Result<usize, Error> {
            let sqlite_statement = SqliteStatement { sql: sql.to_owned(), ..SqliteStatement::default() };
            plan_statement(self.pool.clone(), None, sqlite_statement).await?;
            let sql = sql.to_owned();
            let work = move |reading: &ReadTransaction<'_>| {
                let mut statement = reading.prepare(&sql)?;
                let mut rows = statement.raw_query();
                let mut count = 0;
                while rows.next().map_err(|error| reading.classify_error(error))?.is_some() {
                    count += 1;
                }
                Ok(count)
            };
            self.pool.read(None, work).await
        }

        /// Everything in the folder, byte for byte.
        fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
            let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
            files.sort();
            files
        }
    }

    #[tokio::test]
    async fn escape_attempts_are_rejected_without_side_effects() {
        let attempts = EscapeFixture::new();
        let secret = attempts.path("secret.db").display().to_string();
        let new = attempts.path("new.db").display().to_string();
        let before = attempts.files();
        let statements = [
            format!("ATTACH '{secret}' AS s"),
            format!("ATTACH '{new}' AS s"),
            format!("ATTACH 'file:{secret}?mode=rw' AS s"),
            "ATTACH ':memory:' AS s".to_owned(),
            "DETACH main".to_owned(),
            format!("VACUUM INTO '{new}'"),
            "VACUUM".to_owned(),
            "PRAGMA writable_schema = ON".to_owned(),
            "PRAGMA query_only = OFF".to_owned(),
            "PRAGMA journal_mode = DELETE".to_owned(),
            "PRAGMA table_info(t)".to_owned(),
            "PRAGMA data_version = 1".to_owned(),
            "PRAGMA hard_heap_limit = 1".to_owned(),
            format!("PRAGMA temp_store_directory = '{}'", attempts.folder.path().display()),
            "SELECT * FROM pragma_table_info('t')".to_owned(),
            "SELECT * FROM pragma_database_list".to_owned(),
            "SELECT * FROM pragma_query_only(0)".to_owned(),
            "SELECT * FROM settings".to_owned(),
            "SELECT load_extension('x')".to_owned(),
            "SELECT 1 WHERE LOAD_EXTENSION('x', 'y')".to_owned(),
            "SELECT * FROM extension".to_owned(),
            "SELECT readfile('/etc/passwd')".to_owned(),
            format!("SELECT writefile('{new}', 'x')"),
            "SELECT fts3_tokenizer('simple')".to_owned(),
            "SELECT sqlite_log(1, 'x')".to_owned(),
            "SELECT json_patch('{}', '{}')".to_owned(),
            "SELECT * FROM dbstat".to_owned(),
            "SELECT * FROM sqlite_dbpage".to_owned(),
            "CREATE TABLE u (a)".to_owned(),
            "CREATE TEMP TABLE u (a)".to_owned(),
            "CREATE TEMP VIEW u AS SELECT 1".to_owned(),
            "CREATE TEMP TRIGGER u AFTER INSERT ON t BEGIN SELECT 1; END".to_owned(),
            "CREATE VIRTUAL TABLE u USING fts5(a)".to_owned(),
            "CREATE VIRTUAL TABLE temp.u USING rtree(a, b, c)".to_owned(),
            "CREATE INDEX u ON t (a)".to_owned(),
            "INSERT INTO t VALUES (3)".to_owned(),
            "INSERT INTO t VALUES (3) RETURNING a".to_owned(),
            "INSERT INTO notes (notes) VALUES ('rebuild')".to_owned(),
            "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x".to_owned(),
            "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x".to_owned(),
            "UPDATE t SET a = 9 RETURNING a".to_owned(),
            "DELETE FROM t RETURNING a".to_owned(),
            "REPLACE INTO t VALUES (1)".to_owned(),
            "UPDATE sqlite_schema SET sql = ''".to_owned(),
            "DROP TABLE t".to_owned(),
            "ALTER TABLE t RENAME TO u".to_owned(),
            "REINDEX".to_owned(),
            "ANALYZE".to_owned(),
            "BEGIN".to_owned(),
            "COMMIT".to_owned(),
            "END".to_owned(),
            "ROLLBACK".to_owned(),
            "SAVEPOINT s".to_owned(),
            "RELEASE s".to_owned(),
            "SELECT 1; DELETE FROM t".to_owned(),
            "SELECT 1; SELECT 2".to_owned(),
            "EXPLAIN SELECT a FROM t".to_owned(),
            "EXPLAIN QUERY PLAN SELECT a FROM t".to_owned(),
            "-- nothing".to_owned(),
            String::new(),
            "SELECT 1 \0 ; DELETE FROM t".to_owned(),
            "SELECT zeroblob(1000000000)".to_owned(),
            "SELECT printf('%.*c', 1000000000, 'x')".to_owned(),
            "SELECT group_concat(hex(zeroblob(1000000))) FROM json_each('[1,2,3,4,5,6,7,8,9,10]')".to_owned(),
        ];
        let mut answered = Vec::new();
        let mut words = String::new();
        for statement in &statements {
            match attempts.plan_and_run(statement).await {
                Ok(rows) => answered.push(format!("{statement}: {rows} rows")),
                Err(error) => words.push_str(&format!("{statement}\n    {}\n", error.message())),
            }
        }
        assert!(answered.is_empty(), "{}", answered.join("\n"));
        let words = words.replace(&attempts.folder.path().display().to_string(), "…").replace('\0', "␀");
        insta::assert_snapshot!(words, @r#"
    ATTACH '…/secret.db' AS s
        ATTACH is refused: only reading tables is allowed
    ATTACH '…/new.db' AS s
        ATTACH is refused: only reading tables is allowed
    ATTACH 'file:…/secret.db?mode=rw' AS s
        ATTACH is refused: only reading tables is allowed
    ATTACH ':memory:' AS s
        ATTACH is refused: only reading tables is allowed
    DETACH main
        DETACH is refused: only reading tables is allowed
    VACUUM INTO '…/new.db'
        only a statement that reads and returns rows is allowed
    VACUUM
        only a statement that reads and returns rows is allowed
    PRAGMA writable_schema = ON
        PRAGMA writable_schema is refused: only reading tables is allowed
    PRAGMA query_only = OFF
        PRAGMA query_only is refused: only reading tables is allowed
    PRAGMA journal_mode = DELETE
        PRAGMA journal_mode is refused: only reading tables is allowed
    PRAGMA table_info(t)
        PRAGMA table_info is refused: only reading tables is allowed
    PRAGMA data_version = 1
        PRAGMA data_version is refused: only reading tables is allowed
    PRAGMA hard_heap_limit = 1
        PRAGMA hard_heap_limit is refused: only reading tables is allowed
    PRAGMA temp_store_directory = '…'
        PRAGMA temp_store_directory is refused: only reading tables is allowed
    SELECT * FROM pragma_table_info('t')
        PRAGMA table_info is refused: only reading tables is allowed
    SELECT * FROM pragma_database_list
        PRAGMA database_list is refused: only reading tables is allowed
    SELECT * FROM pragma_query_only(0)
        too many arguments on pragma_query_only() - max 0
    SELECT * FROM settings
        unsafe use of virtual table "pragma_table_info"
    SELECT load_extension('x')
        the function load_extension is refused: only reading tables is allowed
    SELECT 1 WHERE LOAD_EXTENSION('x', 'y')
        the function load_extension is refused: only reading tables is allowed
    SELECT * FROM extension
        unsafe use of load_extension()
    SELECT readfile('/etc/passwd')
        there is no function "readfile"
    SELECT writefile('…/new.db', 'x')
        there is no function "writefile"
    SELECT fts3_tokenizer('simple')
        the function fts3_tokenizer is refused: only reading tables is allowed
    SELECT sqlite_log(1, 'x')
        the function sqlite_log is refused: only reading tables is allowed
    SELECT json_patch('{}', '{}')
        the function json_patch, which cannot be interrupted, is refused: only reading tables is allowed
    SELECT * FROM dbstat
        reading dbstat is refused: only reading tables is allowed
    SELECT * FROM sqlite_dbpage
        there is no table "sqlite_dbpage" in "shop"
    CREATE TABLE u (a)
        INSERT is refused: only reading tables is allowed
    CREATE TEMP TABLE u (a)
        INSERT is refused: only reading tables is allowed
    CREATE TEMP VIEW u AS SELECT 1
        INSERT is refused: only reading tables is allowed
    CREATE TEMP TRIGGER u AFTER INSERT ON t BEGIN SELECT 1; END
        CREATE is refused: only reading tables is allowed
    CREATE VIRTUAL TABLE u USING fts5(a)
        INSERT is refused: only reading tables is allowed
    CREATE VIRTUAL TABLE temp.u USING rtree(a, b, c)
        INSERT is refused: only reading tables is allowed
    CREATE INDEX u ON t (a)
        INSERT is refused: only reading tables is allowed
    INSERT INTO t VALUES (3)
        INSERT is refused: only reading tables is allowed
    INSERT INTO t VALUES (3) RETURNING a
        INSERT is refused: only reading tables is allowed
    INSERT INTO notes (notes) VALUES ('rebuild')
        INSERT is refused: only reading tables is allowed
    WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x
        INSERT is refused: only reading tables is allowed
    WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x
        near "DELETE": syntax error at line 1, column 12
    UPDATE t SET a = 9 RETURNING a
        UPDATE is refused: only reading tables is allowed
    DELETE FROM t RETURNING a
        DELETE is refused: only reading tables is allowed
    REPLACE INTO t VALUES (1)
        INSERT is refused: only reading tables is allowed
    UPDATE sqlite_schema SET sql = ''
        table sqlite_master may not be modified
    DROP TABLE t
        DELETE is refused: only reading tables is allowed
    ALTER TABLE t RENAME TO u
        ALTER TABLE is refused: only reading tables is allowed
    REINDEX
        REINDEX is refused: only reading tables is allowed
    ANALYZE
        INSERT is refused: only reading tables is allowed
    BEGIN
        controlling the transaction is refused: only reading tables is allowed
    COMMIT
        controlling the transaction is refused: only reading tables is allowed
    END
        controlling the transaction is refused: only reading tables is allowed
    ROLLBACK
        controlling the transaction is refused: only reading tables is allowed
    SAVEPOINT s
        SAVEPOINT is refused: only reading tables is allowed
    RELEASE s
        SAVEPOINT is refused: only reading tables is allowed
    SELECT 1; DELETE FROM t
        DELETE is refused: only reading tables is allowed
    SELECT 1; SELECT 2
        the text contains more than one statement
    EXPLAIN SELECT a FROM t
        only a statement that reads and returns rows is allowed
    EXPLAIN QUERY PLAN SELECT a FROM t
        only a statement that reads and returns rows is allowed
    -- nothing
        only a statement that reads and returns rows is allowed

        only a statement that reads and returns rows is allowed
    SELECT 1 ␀ ; DELETE FROM t
        a NUL character is refused: only reading tables is allowed
    SELECT zeroblob(1000000000)
        a text, a blob or a row exceeds the size limit
    SELECT printf('%.*c', 1000000000, 'x')
        a text, a blob or a row exceeds the size limit
    SELECT group_concat(hex(zeroblob(1000000))) FROM json_each('[1,2,3,4,5,6,7,8,9,10]')
        a text, a blob or a row exceeds the size limit
    "#);
        assert_eq!(attempts.plan_and_run("SELECT a FROM t").await.unwrap(), 2);
        assert_eq!(attempts.files(), before);
    }

    #[tokio::test]
    async fn virtual_table_queries_are_allowed() {
        let attempts = EscapeFixture::new();
        for sql in [
            "SELECT rowid, body FROM notes WHERE notes MATCH 'fox' ORDER BY rank",
            "SELECT highlight(notes, 0, '<', '>'), snippet(notes, 0, '<', '>', '…', 5), bm25(notes) FROM notes('fox')",
            "SELECT snippet(old_notes), length(matchinfo(old_notes)) FROM old_notes WHERE body MATCH 'fox'",
            "SELECT id FROM places WHERE low < 5 AND high > 1",
            "SELECT key, value FROM json_each('[7]')",
            "SELECT value FROM json_tree('7')",
        ] {
            assert_eq!(attempts.plan_and_run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")), 1, "{sql}");
        }
    }

    #[tokio::test]
    async fn text_functions_take_linear_time() {
        let attempts = EscapeFixture::new();
        // Each would take many minutes if it took the product of the lengths.
        for call in [
            "instr(a, half || 'b')",
            "replace(a, half || 'b', '')",
            "instr(CAST(a AS BLOB), CAST(half || 'b' AS BLOB))",
            "trim(a, replace(half, 'a', 'bc') || 'a')",
            "ltrim(a, replace(half, 'a', 'bc') || 'a')",
            "rtrim(a, replace(half, 'a', 'bc') || 'a')",
            "unhex(replace(a, 'a', '-'), replace(half, 'a', '.') || '-')",
        ] {
            let sql = format!(
                "SELECT {call} FROM (SELECT replace(hex(zeroblob(200000)), '0', 'a') AS a, \
             replace(hex(zeroblob(100000)), '0', 'a') AS half)"
            );
            assert_eq!(
                attempts.plan_and_run(&sql).await.unwrap_or_else(|error| panic!("{call}: {error}")),
                1,
                "{call}"
            );
        }
        let error =
            attempts.plan_and_run("SELECT replace(hex(zeroblob(4000)), '0', hex(zeroblob(4000)))").await.unwrap_err();
        assert_eq!(error.kind(), tidegate_core::ErrorKind::TooLarge);
    }

    #[tokio::test]
    async fn authorizer_is_restored_after_internal_sql() {
        let attempts = EscapeFixture::new();
        let work = |reading: &ReadTransaction<'_>| {
            crate::catalog::read_catalog(reading)?;
            Ok(reading
                .prepare("SELECT * FROM pragma_table_list")
                .is_ok_and(|mut statement| statement.raw_query().next().is_ok()))
        };
        assert!(!attempts.pool.read(None, work).await.unwrap());
    }

    #[tokio::test]
    async fn panic_closes_the_connection_and_frees_the_permit() {
        let attempts = EscapeFixture::with_options(SqliteOptions { connections_max: 1, ..SqliteOptions::default() });
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let panicked = attempts.pool.read(None, |_| -> Result<(), _> { panic!("a fault") }).await;
        std::panic::set_hook(hook);
        assert_eq!(panicked.unwrap_err().kind(), tidegate_core::ErrorKind::Internal);
        assert_eq!(attempts.plan_and_run("SELECT a FROM t").await.unwrap(), 2);
    }

    /// A caller to whom policies apply.
    fn restricted_caller() -> (RowPolicies, Option<Arc<PolicyCaller>>) {
        let policy = RowPolicy {
            table: "t".to_owned(),
            rows: Some(RowCondition::parse("a = :claims.a").unwrap()),
            columns: [("a".to_owned(), Mask::Hash)].into(),
            except_roles: BTreeSet::new(),
        };
        let policies = RowPolicies::new(vec![policy], HashKey::from_secret(b"key"));
        let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::everything()));
        principal.claims.insert("a".to_owned(), 1.into());
        let policy_caller = PolicyCaller::for_principal(&policies, &principal);
        (policies, policy_caller)
    }

    #[tokio::test]
    async fn security_barrier_names_are_rejected() {
        let (row_policies, policy_caller) = restricted_caller();
        let attempts =
            EscapeFixture::with_options(SqliteOptions { row_policies, connections_max: 1, ..SqliteOptions::default() });
        let find = |reading: &ReadTransaction<'_>| {
            reading.create_views_for(None)?;
            Ok(reading.policy_views().unwrap().token.clone())
        };
        let tried = [
            "WITH \"xTOKEN\" AS (SELECT name FROM sqlite_schema) SELECT * FROM \"xTOKEN\"",
            "WITH \"xTOKEN\" AS (SELECT a FROM main.t) SELECT * FROM \"xTOKEN\"",
            "WITH \"t#TOKEN\" AS (SELECT name FROM sqlite_schema) SELECT * FROM \"t#TOKEN\"",
            "WITH x AS (SELECT tidegate_mask_TOKEN('1', 3, 0)) SELECT * FROM x",
            "WITH \"xTOKEN\" AS (SELECT TIDEGATE_MASK_TOKEN('1', 3, 0)) SELECT * FROM \"xTOKEN\"",
        ];
        for sql in tried {
            // A connection that has refused something may be another one the next time.
            let token = attempts.pool.read(policy_caller.clone(), find).await.unwrap();
            let sql = sql.replace("TOKEN", &token);
            let requested = |sql: &str| SqliteStatement { sql: sql.to_owned(), ..SqliteStatement::default() };
            let message =
                plan_statement(attempts.pool.clone(), policy_caller.clone(), requested(&sql)).await.err().unwrap();
            assert_eq!(message.to_string(), "the SQL uses a name that is reserved for row policies");
            let messages = plan_statement(attempts.pool.clone(), policy_caller.clone(), requested(&sql.to_uppercase()))
                .await
                .err()
                .unwrap();
            assert_eq!(messages.to_string(), "the SQL uses a name that is reserved for row policies");
            // The authorizer alone rejects it.
            let prepare = move |reading: &ReadTransaction<'_>| reading.prepare(&sql).map(drop);
            assert!(attempts.pool.read(policy_caller.clone(), prepare).await.is_err());
        }
    }

    #[test]
    fn trailing_limit_bounds_the_rows() {
        assert_eq!(trailing_limit("SELECT a FROM t LIMIT 20"), Some(20));
        assert_eq!(trailing_limit("SELECT a FROM t limit\n 20 "), Some(20));
        assert_eq!(trailing_limit("SELECT a FROM t LIMIT 20 OFFSET 5"), None);
        assert_eq!(trailing_limit("SELECT * FROM (SELECT a FROM t LIMIT 20)"), None);
        assert_eq!(trailing_limit("SELECT a FROM t -- LIMIT 20"), None);
        assert_eq!(trailing_limit("SELECT 'LIMIT 20'"), None);
        assert_eq!(trailing_limit("SELECT a FROM t LIMIT $1"), None);
    }
}
