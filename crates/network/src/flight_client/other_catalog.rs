//! The tables of servers of other programs, and what such a server reports of itself.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow_flight::sql::{Any, CommandGetSqlInfo, CommandGetTables, ProstMessageExt, SqlInfo};
use bytes::Bytes;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::NodeTable;
use tidegate_sql::SqlDialect;

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::quotation::Quotation;
use super::tables::{check_size, decode_schema};
use super::{status, tables_by_statement};

/// Schemas that describe the database itself.
pub(super) const SYSTEM_SCHEMAS: [&str; 2] = ["information_schema", "pg_catalog"];
/// The schema whose tables need no schema before their names.
const DEFAULT_POSTGRES_SCHEMA: &str = "public";

/// The quotation mark of identifiers, as the server reports it.
pub(super) async fn reported_quote(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    within: Duration,
) -> Result<Option<char>, Error> {
    let text = client.sql_info(connection, principal, SqlInfo::SqlIdentifierQuoteChar, within).await?;
    let mut characters = text.as_deref().unwrap_or_default().chars();
    Ok(characters.next().filter(|quote| !quote.is_whitespace() && characters.next().is_none()))
}

/// The version of the server, as it reports it.
pub(super) async fn version(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    within: Duration,
) -> Result<String, Error> {
    let name = client.sql_info(connection, principal, SqlInfo::FlightSqlServerName, within).await?;
    let version = client.sql_info(connection, principal, SqlInfo::FlightSqlServerVersion, within).await?;
    let known: Vec<String> = [name, version].into_iter().flatten().collect();
    Ok(if known.is_empty() { "unknown".to_owned() } else { known.join(" ") })
}

/// The tables of the configured catalog, or of all catalogs.
///
/// A statement names a table as the list does. In PostgreSQL's dialect, a schema may come first; in others it cannot, so
/// that names that several schemas have are left out.
pub(super) async fn list_tables(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    quotation: Quotation,
    within: Duration,
) -> Result<Vec<NodeTable>, Error> {
    let command = CommandGetTables {
        catalog: client.database.clone(),
        db_schema_filter_pattern: None,
        table_name_filter_pattern: None,
        table_types: Vec::new(),
        include_schema: true,
    };
    let (mut tables, mut bytes) = (BTreeMap::<String, Option<NodeTable>>::new(), 0_usize);
    let listed = match client.collect(connection, principal, command.as_any(), within).await {
        Ok(listed) => listed,
        Err(refused) if is_refused(&refused) => {
            let listed = tables_by_statement::list(client, connection, principal, quotation, within).await;
            return listed.map_err(|error| match is_refused(&error) {
                true => {
                    let message = format!("node {:?} does not list its tables", client.name);
                    Error::new(ErrorKind::Failed, message).with_hint(refused.message())
                }
                false => error,
            });
        }
        Err(error) => return Err(error),
    };
    for batch in listed {
        let malformed = |problem: &str| status::malformed(&client.name, problem);
        let (schemas, names) = (texts(&batch, "db_schema_name"), texts(&batch, "table_name"));
        let columns = batch.column_by_name("table_schema").and_then(|column| column.as_binary_opt::<i32>());
        let columns = columns.ok_or_else(|| malformed("a list of tables has no columns of tables"))?;
        for (row, (schema, name)) in schemas.into_iter().zip(names).enumerate() {
            let Some(name) = name else { return Err(malformed("a table has no name")) };
            let schema = schema.unwrap_or_default();
            if SYSTEM_SCHEMAS.contains(&schema.as_str()) {
                continue;
            }
            let Some(encoded) = value_at(columns, row) else { continue };
            bytes = bytes.saturating_add(encoded.len());
            check_size(&client.name, tables.len() + 1, bytes)?;
            let columns = decode_schema(encoded).map_err(|problem| malformed(&problem))?;
            let name = table_name(client.dialect, &schema, &name);
            let table = NodeTable { name: name.clone(), schema: columns, rows: None, comment: None, unreadable: None };
            tables.entry(name).and_modify(|known| *known = None).or_insert(Some(table));
        }
    }
    Ok(tables.into_values().flatten().collect())
}

fn table_name(dialect: SqlDialect, schema: &str, name: &str) -> String {
    let has_schema = dialect.is_postgres() && !schema.is_empty() && schema != DEFAULT_POSTGRES_SCHEMA;
    if has_schema { dialect.table_name(&[schema, name]) } else { dialect.table_name(&[name]) }
}

fn value_at(column: &BinaryArray, row: usize) -> Option<Bytes> {
    column.is_valid(row).then(|| Bytes::copy_from_slice(column.value(row)))
}

/// The values of a text column; all are null if there is none.
fn texts(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(column).and_then(|column| column.as_string_opt::<i32>());
    match column {
        Some(column) => column.iter().map(|value| value.map(str::to_owned)).collect(),
        None => vec![None; batch.num_rows()],
    }
}

impl NodeClient {
    /// A text that the server reports of itself; `None` if it does not.
    async fn sql_info(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        name: SqlInfo,
        within: Duration,
    ) -> Result<Option<String>, Error> {
        let command = CommandGetSqlInfo { info: vec![name as u32] };
        let batches = match self.collect(connection, principal, command.as_any(), within).await {
            Ok(batches) => batches,
            Err(error) if is_refused(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(batches.iter().find_map(|batch| text_in(batch.column_by_name("value")?)))
    }

    /// All batches of the answer to a command, which is a list of bounded size.
    pub(super) async fn collect(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        command: Any,
        within: Duration,
    ) -> Result<Vec<RecordBatch>, Error> {
        let info = self.flight_info(connection, principal, command, within).await?;
        let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0);
        for ticket in self.tickets_of(connection, info)? {
            let mut reader = self.open_part(connection, principal, ticket, within).await?;
            while let Some(batch) = reader.next().await? {
                rows += batch.num_rows();
                bytes += batch.get_array_memory_size();
                check_size(&self.name, rows, bytes)?;
                batches.push(batch);
            }
        }
        Ok(batches)
    }
}

/// Whether the server does not have the command. Servers report this in different ways.
pub(super) fn is_refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Failed | ErrorKind::InvalidArguments | ErrorKind::NotFound)
}

/// The first value of a dense union, if it is a text.
fn text_in(values: &ArrayRef) -> Option<String> {
    let values = values.as_union_opt()?;
    let value = (!values.is_empty()).then(|| values.value(0))?;
    let texts = value.as_string_opt::<i32>()?;
    (!texts.is_empty() && texts.is_valid(0)).then(|| texts.value(0).to_owned())
}
