//! Planning a statement and running its plan.

mod complaint;
mod explain;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use rusqlite::Statement as Prepared;
use tidegate_core::{Error, ErrorKind, Job};
use tidegate_query::{Author, Parameter, Plan, Rows, SqlDialect, Statement};

use crate::answer::{Handover, Reader, ResultColumn, Source, describe, schema_of};
use crate::failure::Failure;
use crate::pool::Pool;
use crate::session::{Reading, Running};
use crate::shown::Asker;
use explain::Explained;

/// A statement as the engine has it: text and values.
///
/// Not the checked statement itself, so that the engine's own wall can be tried with what no check would let through.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The SQL.
    pub(crate) sql: String,
    /// The values of its placeholders, the first for `$1`.
    pub(crate) parameters: Vec<Parameter>,
    /// The tables that it is known to read, to help with unknown columns.
    pub(crate) tables: Vec<String>,
    /// The statement as it was parsed; none of one that SQLite alone judges.
    pub(crate) parsed: Option<Statement>,
    /// Whether somebody else wrote it than whoever asks.
    pub(crate) is_of_owner: bool,
}

impl Asked {
    /// The SQL as it is asked in `reading`, where other views may stand before the tables; they are made.
    ///
    /// # Errors
    /// What SQLite says of the views, and that the SQL cannot be written down again.
    fn sql_in(&self, reading: &Reading<'_>) -> Result<Cow<'_, str>, Failure> {
        let Some(shown) = reading.shown() else { return Ok(Cow::Borrowed(&self.sql)) };
        if shown.is_named_in(&self.sql) {
            let error = Error::new(ErrorKind::InvalidArguments, "the SQL names what the server alone may name");
            return Err(Failure::Told(error));
        }
        reading.stand_for(self.parsed.as_ref().map(Statement::tables))?;
        if let Some(barred) = shown.barred(&self.tables) {
            return Err(Failure::Told(barred.clone()));
        }
        let moved =
            self.parsed.as_ref().map(|parsed| parsed.with_tables_moved(&|schema, name| shown.moved(schema, name)));
        match moved.transpose().map_err(Failure::Told)?.flatten() {
            Some(moved) => Ok(Cow::Owned(moved.text().to_owned())),
            None => Ok(Cow::Borrowed(&self.sql)),
        }
    }
}

impl Asked {
    /// The SQL over a view that SQLite may merge with it, where nothing of it would be computed for hidden rows but
    /// comparisons of columns with literals: an index serves it then.
    fn merged_in(&self, reading: &Reading<'_>) -> Option<String> {
        let (shown, parsed) = (reading.shown()?, self.parsed.as_ref()?);
        let lookup = parsed.lookup()?;
        let (key, open) = shown.open(&lookup)?;
        let moved = parsed.with_only_table_moved(&("temp".to_owned(), open)).ok()??;
        reading.stand_open(&key).ok()?;
        Some(moved.text().to_owned())
    }
}

impl From<&Statement> for Asked {
    fn from(statement: &Statement) -> Self {
        Self {
            sql: statement.text().to_owned(),
            parameters: statement.parameters().to_vec(),
            tables: statement.tables().to_vec(),
            parsed: parsed_of(statement),
            is_of_owner: statement.author() != Author::Caller,
        }
    }
}

/// What can be read of `statement` as a tree, so that its tables can be moved: an owner's may be read as a caller's.
fn parsed_of(statement: &Statement) -> Option<Statement> {
    match statement.ast() {
        Some(_) => Some(statement.clone()),
        None => Statement::parse(statement.text(), SqlDialect::Sqlite).ok(),
    }
}

/// A plan of SQLite.
pub(crate) struct SqlitePlan {
    pool: Arc<Pool>,
    asker: Option<Arc<Asker>>,
    asked: Asked,
    columns: Vec<ResultColumn>,
    schema: SchemaRef,
    explained: Explained,
}

/// Plans `asked`.
///
/// # Errors
/// What SQLite or the wall refuses, with what would mend it.
pub(crate) async fn plan(pool: Arc<Pool>, asker: Option<Arc<Asker>>, asked: Asked) -> Result<SqlitePlan, Error> {
    let (planned, database) = (asked.clone(), pool.database().clone());
    let work = move |reading: &Reading<'_>| {
        let look = || -> Result<_, Failure> {
            complaint::must_be_unambiguous(reading, &planned, &database)?;
            let sql = planned.sql_in(reading)?;
            let statement = reading.prepare(&sql)?;
            let columns = describe(reading, &statement, &sql)?;
            drop(statement);
            Ok((columns, Explained::of(&sql, &reading.explain(&sql)?)))
        };
        look().map_err(|failure| complaint::with_choices(failure, reading, &planned, &database))
    };
    let (columns, explained) = pool.read(Running::unbounded(), asker.clone(), work).await?;
    Ok(SqlitePlan { pool, asker, asked, schema: schema_of(&columns), columns, explained })
}

#[async_trait]
impl Plan for SqlitePlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.explained.rows_max
    }

    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    fn is_blocking(&self) -> bool {
        self.explained.is_blocking
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(self.explained.text.clone())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<Rows, Error> {
        let running = Running::of(job);
        let place = tokio::select! {
            biased;
            () = job.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
            place = self.pool.place() => place?,
        };
        let handover = Handover::new(&self.columns, self.schema.clone(), self.pool.options());
        let reader = Reader::new(handover.clone(), running.clone());
        let source = Source::new(handover);
        let (asked, columns, database) = (self.asked, self.columns, self.pool.database().clone());
        let asker = self.asker;
        self.pool.start(place, move |session| {
            let outcome =
                session.read(&running, asker.as_deref(), |reading| pump(reading, &asked, &columns, &source, &running));
            // The rows have ended well only when the transaction has too.
            Box::new(move || source.end(outcome.map_err(|failure| failure.into_error(&database))))
        })?;
        let batches = futures::stream::unfold(reader, |mut reader| async move {
            let batch = reader.next().await?;
            Some((batch, reader))
        });
        Ok(Rows { schema: self.schema, batches: Box::pin(batches) })
    }
}

/// Reads the rows of `asked` and puts them into `source`.
fn pump(
    reading: &Reading<'_>,
    asked: &Asked,
    columns: &[ResultColumn],
    source: &Source,
    running: &Running,
) -> Result<(), Failure> {
    let mut statement = match merged(reading, asked, columns) {
        Some(statement) => statement,
        None => {
            let sql = asked.sql_in(reading)?;
            let statement =
                reading.prepare(&sql).map_err(|failure| complaint::without_names(failure, reading, asked))?;
            // Somebody may have changed the tables since the statement was planned.
            if describe(reading, &statement, &sql)? != columns {
                return Err(Failure::Changed);
            }
            statement
        }
    };
    bind(&mut statement, &asked.parameters)?;
    // SQLite forgets an interrupt that came while no statement ran.
    if running.must_end() {
        return Err(Failure::Stopped);
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| complaint::of_rows(reading.failed(error), reading))? {
        source.put(row, running)?;
    }
    Ok(())
}

/// `asked` merged with the view that stands before its table, if that gives the same `columns`; whatever keeps it from
/// that is told by the statement as it was planned.
fn merged<'a>(reading: &'a Reading<'_>, asked: &Asked, columns: &[ResultColumn]) -> Option<Prepared<'a>> {
    let sql = asked.merged_in(reading)?;
    let statement = reading.prepare(&sql).ok()?;
    (describe(reading, &statement, &sql).ok()? == columns).then_some(statement)
}

/// Binds the parameters by their numbers: to SQLite `$2` is a name, and its place that of its first mention.
fn bind(statement: &mut Prepared<'_>, parameters: &[Parameter]) -> Result<(), Failure> {
    for place in 1..=statement.parameter_count() {
        let number = match statement.parameter_name(place) {
            None => Some(place),
            Some(name) => name.get(1..).and_then(|digits| digits.parse().ok()),
        };
        let parameter = number.and_then(|number: usize| parameters.get(number.checked_sub(1)?));
        match parameter {
            None => {
                let message = format!("placeholder {place} has no value");
                return Err(Failure::Told(Error::new(ErrorKind::InvalidArguments, message)));
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
