//! A statement that the server has parsed, and the columns of its answer.

use arrow::datatypes::SchemaRef;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use crate::composite_types::CompositeTypes;
use crate::values::{ColumnDecoder, arrow_schema, type_name};

/// A statement that the server has parsed.
pub(crate) struct PreparedStatement {
    /// To run it by.
    pub(crate) statement: Statement,
    /// How the columns of its answer are read.
    pub(crate) columns: Vec<ColumnDecoder>,
    /// The columns of its answer.
    pub(crate) schema: SchemaRef,
    /// Types of users among those of its columns and parameters.
    pub(crate) types: Vec<Type>,
    /// The composites among them.
    pub(crate) composites: CompositeTypes,
    /// The statement as it was written, where it runs in the FROM of another one.
    original_statement: Option<Statement>,
}

/// Why a statement could not be prepared.
pub(crate) enum PrepareError {
    /// The server says so.
    Server(tokio_postgres::Error),
    /// A column's values cannot be read, and the statement is none that could stand in FROM.
    Column { name: String, type_name: String },
}

impl From<tokio_postgres::Error> for PrepareError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

/// Prepares `text`. Columns of types whose binary form is not known are asked for as text.
pub(crate) async fn prepare(client: &Client, text: &str, writes: bool) -> Result<PreparedStatement, PrepareError> {
    let statement = client.prepare(text).await?;
    let types = user_defined_types(&statement);
    let known: Vec<Option<ColumnDecoder>> = statement.columns().iter().map(column_decoder).collect();
    if let Some(unknown) = known.iter().position(Option::is_none) {
        if writes {
            let column = &statement.columns()[unknown];
            let type_name = type_name(column.type_(), column.type_modifier());
            return Err(PrepareError::Column { name: column.name().to_owned(), type_name });
        }
        let in_text = client.prepare(&select_with_text_casts(text, statement.columns(), &known)).await?;
        let zip = statement.columns().iter().zip(known);
        let columns = zip.map(|(requested, known)| {
            known.unwrap_or_else(|| {
                ColumnDecoder::for_text(requested.name(), requested.type_(), requested.type_modifier())
            })
        });
        let prepared = PreparedStatement::new(in_text, columns.collect(), types);
        return Ok(PreparedStatement { original_statement: Some(statement), ..prepared });
    }
    Ok(PreparedStatement::new(statement, known.into_iter().flatten().collect(), types))
}

impl PreparedStatement {
    fn new(statement: Statement, columns: Vec<ColumnDecoder>, types: Vec<Type>) -> Self {
        let composites = CompositeTypes::new(&types);
        Self { statement, schema: arrow_schema(&columns), columns, types, composites, original_statement: None }
    }

    /// Whether the server refuses to run the statement when its columns have changed. It does not notice changes of
    /// members of composites, nor columns of a statement in FROM that were added or have other names.
    pub(crate) fn is_checked_by_server(&self) -> bool {
        self.original_statement.is_none() && self.composites.is_empty()
    }

    /// Whether `text`, which this is the prepared form of, has these columns still. What it reads is locked
    /// until the transaction ends, but for composite types that are no table's.
    pub(crate) async fn is_current(&self, client: &Client, text: &str) -> Result<bool, tokio_postgres::Error> {
        if self.is_checked_by_server() {
            return Ok(true);
        }
        // Both leave together, the statement first: parsing it is what locks.
        let both = futures::future::join(client.prepare(text), self.composites.are_current(client));
        let (described, are_current) = both.await;
        let known = self.original_statement.as_ref().unwrap_or(&self.statement);
        Ok(column_descriptions(&described?).eq(column_descriptions(known)) && are_current?)
    }
}

/// Names, types and modifiers of the columns of `statement`.
fn column_descriptions(statement: &Statement) -> impl Iterator<Item = (&str, u32, i32)> {
    statement.columns().iter().map(|column| (column.name(), column.type_().oid(), column.type_modifier()))
}

fn user_defined_types(statement: &Statement) -> Vec<Type> {
    let types = statement.columns().iter().map(tokio_postgres::Column::type_).chain(statement.params());
    types.filter(|of| Type::from_oid(of.oid()).is_none()).cloned().collect()
}

fn column_decoder(column: &tokio_postgres::Column) -> Option<ColumnDecoder> {
    ColumnDecoder::for_type(column.name(), column.type_(), column.type_modifier())
}

/// `text` with the columns in their order and by their names, those without a field as text. The names inside are
/// ours, because those of the statement may be empty or stand there twice.
fn select_with_text_casts(text: &str, columns: &[tokio_postgres::Column], known: &[Option<ColumnDecoder>]) -> String {
    let selected: Vec<String> = columns
        .iter()
        .zip(known)
        .enumerate()
        .map(|(index, (column, known))| {
            let cast = if known.is_none() { "::pg_catalog.text" } else { "" };
            let name = column.name();
            let name = if name.is_empty() { String::new() } else { format!(" AS \"{}\"", name.replace('"', "\"\"")) };
            format!("answer.c{index}{cast}{name}")
        })
        .collect();
    let names: Vec<String> = (0..columns.len()).map(|index| format!("c{index}")).collect();
    let text = text.trim_end().trim_end_matches(';');
    // The statement may end in a comment.
    format!("SELECT {} FROM ({text}\n) AS answer({})", selected.join(", "), names.join(", "))
}
