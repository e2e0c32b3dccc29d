//! A statement that the server has parsed, and the columns of its answer.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use tokio_postgres::{Client, Column, Statement};

use crate::values;

/// A statement that the server has parsed.
pub(crate) struct Prepared {
    /// To run it by.
    pub(crate) statement: Statement,
    /// The columns of its answer.
    pub(crate) schema: SchemaRef,
}

/// Why a statement could not be prepared.
pub(crate) enum Refused {
    /// The server says so.
    Server(tokio_postgres::Error),
    /// A column's values cannot be read, and the statement is none that could stand in FROM.
    Column { name: String, type_name: String },
}

impl From<tokio_postgres::Error> for Refused {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

/// Prepares `text`. Columns of types whose binary form is not known are asked for as text.
pub(crate) async fn prepare(client: &Client, text: &str, writes: bool) -> Result<Prepared, Refused> {
    let statement = client.prepare(text).await?;
    let fields: Vec<Option<Field>> = statement.columns().iter().map(field_of).collect();
    let Some(unknown) = fields.iter().position(Option::is_none) else {
        let schema = Arc::new(Schema::new(fields.into_iter().flatten().collect::<Vec<Field>>()));
        return Ok(Prepared { statement, schema });
    };
    if writes {
        let column = &statement.columns()[unknown];
        return Err(Refused::Column { name: column.name().to_owned(), type_name: column.type_().name().to_owned() });
    }
    let in_text = client.prepare(&with_text(text, statement.columns(), &fields)).await?;
    let fields = in_text.columns().iter().zip(statement.columns()).zip(fields).map(|((read, asked), field)| {
        field.or_else(|| Some(values::labelled(field_of(read)?, asked.type_()))).unwrap_or_else(|| null(read))
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    Ok(Prepared { statement: in_text, schema })
}

fn field_of(column: &Column) -> Option<Field> {
    values::field_of(column.name(), column.type_(), column.type_modifier())
}

/// A column that nothing can be read of; text always can.
fn null(column: &Column) -> Field {
    Field::new(column.name(), arrow::datatypes::DataType::Null, true)
}

/// `text` with the columns in their order and by their names, those without a field as text. The names inside are
/// ours, because those of the statement may be empty or stand there twice.
fn with_text(text: &str, columns: &[Column], fields: &[Option<Field>]) -> String {
    let selected: Vec<String> = columns
        .iter()
        .zip(fields)
        .enumerate()
        .map(|(index, (column, field))| {
            let cast = if field.is_none() { "::pg_catalog.text" } else { "" };
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
