//! The tables of servers that have no command for them: `SHOW TABLES`, and the columns of an answer without rows for each.

use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use futures::{StreamExt, TryStreamExt, stream};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::NodeTable;

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::other_catalog::{SYSTEM_SCHEMAS, is_refused};
use super::quotation::Quotation;
use super::status;

const SHOW_TABLES: &str = "SHOW TABLES";
/// The columns with the names of tables and schemas, as Spark and DataFusion have them.
const NAME_COLUMNS: [&str; 2] = ["tableName", "table_name"];
const SCHEMA_COLUMNS: [&str; 2] = ["database", "table_schema"];
/// Each table needs a statement, whenever the list is requested again.
const LISTED_MAX: usize = 200;
const STATEMENTS_AT_ONCE: usize = 8;

/// The tables that the server shows. A name that several schemas have is left out.
///
/// # Errors
/// `Failed` or `InvalidArguments` when the server does not show them, `TooLarge` beyond the limit.
pub(super) async fn list(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    quotation: Quotation,
    within: Duration,
) -> Result<Vec<NodeTable>, Error> {
    let command = CommandStatementQuery { query: SHOW_TABLES.to_owned(), transaction_id: None };
    let listed = client.collect(connection, principal, command.as_any(), within).await?;
    let mut names: Vec<String> = Vec::new();
    for batch in &listed {
        let found = texts(batch, &NAME_COLUMNS);
        let found = found.ok_or_else(|| status::malformed(&client.name, "SHOW TABLES has no names of tables"))?;
        let schemas = texts(batch, &SCHEMA_COLUMNS).unwrap_or_default();
        let is_own = |row: usize| {
            let schema = schemas.get(row).and_then(Option::as_deref).unwrap_or_default();
            !SYSTEM_SCHEMAS.contains(&schema)
        };
        names.extend(found.into_iter().enumerate().filter(|(row, _)| is_own(*row)).filter_map(|(_, name)| name));
    }
    let repeated = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let names: Vec<String> = names.iter().filter(|name| !repeated(name)).cloned().collect();
    if names.len() > LISTED_MAX {
        let message = format!(
            "node {:?} has {} tables and no command that lists their columns; at most {LISTED_MAX} can be used",
            client.name,
            names.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let describing = names.into_iter().map(|name| async move {
        let described = client.columns_of(connection, principal, &name, quotation, within).await;
        let (schema, unreadable) = match described {
            Ok(schema) => (schema, None),
            Err(error) if is_refused(&error) => (SchemaRef::new(Schema::empty()), Some(error.message().to_owned())),
            Err(error) => return Err(error),
        };
        let name = client.dialect.table_name(&[&name]);
        Ok(NodeTable { name, schema, rows: None, comment: None, unreadable })
    });
    stream::iter(describing).buffered(STATEMENTS_AT_ONCE).try_collect().await
}

impl NodeClient {
    /// The columns of a table, from an answer without rows.
    async fn columns_of(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        table: &str,
        quotation: Quotation,
        within: Duration,
    ) -> Result<SchemaRef, Error> {
        let quote = quotation.identifiers;
        let doubled = table.replace(quote, &format!("{quote}{quote}"));
        let query = format!("SELECT * FROM {quote}{doubled}{quote} LIMIT 0");
        let command = CommandStatementQuery { query, transaction_id: None };
        let info = self.flight_info(connection, principal, command.as_any(), within).await?;
        let no_columns = || status::malformed(&self.name, "an answer has no columns");
        let mut tickets = self.tickets_of(connection, info)?;
        let first = tickets.pop_front().ok_or_else(no_columns)?;
        let mut reader = self.open_part(connection, principal, first, within).await?;
        while reader.next().await?.is_some() {}
        reader.schema().ok_or_else(no_columns)
    }
}

/// The values of the first column with one of these names, as text.
fn texts(batch: &RecordBatch, names: &[&str]) -> Option<Vec<Option<String>>> {
    let column = names.iter().find_map(|name| batch.column_by_name(name))?;
    let texts = cast(column, &DataType::Utf8).ok()?;
    Some(texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
}
