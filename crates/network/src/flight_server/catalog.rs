//! Databases as catalogs, with their schemas and tables, and what the server is and can, for `GetSqlInfo`.
//!
//! The names come from the tools `list_databases` and `list_tables`, called for the client, so that it sees what its roles
//! may see. A table whose database has no schemas is in the schema with the empty name.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    Command, CommandGetDbSchemas, CommandGetTables, SqlInfo, SqlNullOrdering, SqlSupportedTransaction,
};
use arrow_flight::utils::flight_data_to_batches;
use arrow_flight::{FlightData, IpcMessage, SchemaAsIpc};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::IpcWriteOptions;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value, json};
use tidegate_core::WriteRows;
use tidegate_query::DatabaseKind;
use tidegate_runtime::AnswerMeta;
use tidegate_sql::SqlDialect;
use tonic::{Code, Status};

use super::internal;
use super::service::FlightRequest;

/// Bytes of the list of tables of one database.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The only type of tables.
const TABLE_TYPE: &str = "TABLE";

/// A database as a catalog.
struct ListedCatalog {
    name: String,
    naming: TableNaming,
}

/// How the tables of a database are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableNaming {
    /// By a name without parts.
    Whole,
    /// A schema or a file may come first, in the form of the dialect.
    Dialect(SqlDialect),
    /// A database comes first.
    Federated,
}

impl TableNaming {
    /// The kind of a database with the dialect of its server is the key of that dialect.
    fn of_kind(kind: &str) -> Self {
        match SqlDialect::from_key(kind) {
            Some(dialect) => Self::Dialect(dialect),
            None if kind == DatabaseKind::Federated.name() => Self::Federated,
            None => Self::Whole,
        }
    }

    /// The schema of a table, which may be empty, and its name.
    fn split(self, full_name: &str) -> (String, String) {
        match self {
            Self::Whole => (String::new(), full_name.to_owned()),
            Self::Federated => {
                let (schema, name) = full_name.split_once('.').unwrap_or(("", full_name));
                (schema.to_owned(), name.to_owned())
            }
            Self::Dialect(dialect) => match <[String; 2]>::try_from(dialect.table_parts(full_name)) {
                Ok([schema, name]) => (schema, name),
                Err(parts) => (String::new(), parts.into_iter().next_back().unwrap_or_default()),
            },
        }
    }
}

/// A table as clients see it.
struct CatalogTable {
    /// The name in the database.
    full_name: String,
    schema: String,
    name: String,
}

impl FlightRequest {
    fn sql_info(&self) -> Result<SqlInfoData, FlightError> {
        let takes_rows =
            self.state.registry.snapshot_for(&self.caller).tool(WriteRows::AppendRows.name(), &self.caller).is_ok();
        sql_info(&self.state.version, takes_rows)
    }

    /// The columns of the answer to a catalog command; `None` for other commands.
    pub(super) fn catalog_schema(&self, command: &Command) -> Option<Result<Bytes, Status>> {
        let schema = match command {
            Command::CommandGetCatalogs(command) => Ok(command.into_builder().schema()),
            Command::CommandGetDbSchemas(command) => Ok(command.clone().into_builder().schema()),
            Command::CommandGetTables(command) => Ok(command.clone().into_builder().schema()),
            Command::CommandGetTableTypes(command) => Ok(command.into_builder().schema()),
            Command::CommandGetSqlInfo(_) => self.sql_info().map(|info| info.schema()),
            _ => return None,
        };
        let encapsulated = schema.and_then(|schema| encapsulated_schema(&schema));
        Some(encapsulated.map_err(|error| self.encoding_error(&error)))
    }

    pub(super) async fn answer_catalog(
        self,
        command: Command,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let batch = match command {
            Command::CommandGetCatalogs(command) => {
                let mut catalogs = command.into_builder();
                for catalog in self.list_catalogs(None).await? {
                    catalogs.append(catalog.name);
                }
                catalogs.build()
            }
            Command::CommandGetDbSchemas(command) => self.list_schemas(command).await?,
            Command::CommandGetTables(command) => self.list_tables(command).await?,
            Command::CommandGetTableTypes(command) => {
                let mut types = command.into_builder();
                types.append(TABLE_TYPE);
                types.build()
            }
            Command::CommandGetSqlInfo(command) => {
                let info = self.sql_info().map_err(|error| self.encoding_error(&error))?;
                command.into_builder(&info).build()
            }
            command => {
                let message = format!("the ticket names the command {}, which has no answer", command.type_url());
                return Err(Status::invalid_argument(message));
            }
        };
        let batch = batch.map_err(|error| self.encoding_error(&error))?;
        let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
        let messages = encoder.build(stream::iter([Ok(batch)]));
        Ok(messages.map(move |message| message.map_err(|error| self.encoding_error(&error))).boxed())
    }

    async fn list_schemas(&self, command: CommandGetDbSchemas) -> Result<Result<RecordBatch, FlightError>, Status> {
        let requested = command.catalog.clone();
        let mut schemas = command.into_builder();
        for catalog in self.list_catalogs(requested.as_deref()).await? {
            let names: BTreeSet<String> = match catalog.naming != TableNaming::Whole {
                true => {
                    self.tables_of(&catalog, requested.is_some()).await?.into_iter().map(|table| table.schema).collect()
                }
                false => BTreeSet::from([String::new()]),
            };
            for name in names {
                schemas.append(&catalog.name, name);
            }
        }
        Ok(schemas.build())
    }

    async fn list_tables(&self, command: CommandGetTables) -> Result<Result<RecordBatch, FlightError>, Status> {
        let requested = command.catalog.clone();
        let (has_schema, pattern) = (command.include_schema, command.table_name_filter_pattern.clone());
        let mut tables = command.into_builder();
        for catalog in self.list_catalogs(requested.as_deref()).await? {
            for table in self.tables_of(&catalog, requested.is_some()).await? {
                let columns = match has_schema && may_match(pattern.as_deref(), &table.name) {
                    true => self.columns_of(&catalog, &table).await?,
                    false => Arc::new(Schema::empty()),
                };
                let CatalogTable { schema, name, .. } = table;
                let appended = tables.append(&catalog.name, schema, name, TABLE_TYPE, &columns);
                if let Err(error) = appended {
                    return Ok(Err(error));
                }
            }
        }
        Ok(tables.build())
    }

    /// The databases that the caller may query; only that of the name `requested`, if it is given.
    async fn list_catalogs(&self, requested: Option<&str>) -> Result<Vec<ListedCatalog>, Status> {
        let listed = self.collect("list_databases", Map::new()).await?;
        let catalogs = listed.iter().flat_map(|batch| {
            let (names, kinds) = (texts(batch, "name"), texts(batch, "kind"));
            names.into_iter().zip(kinds).map(|(name, kind)| ListedCatalog { naming: TableNaming::of_kind(&kind), name })
        });
        Ok(catalogs.filter(|catalog| requested.is_none_or(|requested| catalog.name == requested)).collect())
    }

    /// The tables of `catalog`. A database that cannot be read is an error only if the client names it.
    async fn tables_of(&self, catalog: &ListedCatalog, is_named: bool) -> Result<Vec<CatalogTable>, Status> {
        let arguments = Map::from_iter([("database".to_owned(), Value::from(catalog.name.clone()))]);
        let listed = match self.collect("list_tables", arguments).await {
            Err(status) if status.code() == Code::Unavailable && !is_named => {
                tracing::warn!("database {}: its tables are not listed: {}", catalog.name, status.message());
                return Ok(Vec::new());
            }
            listed => listed?,
        };
        let names = listed.iter().flat_map(|batch| texts(batch, "name"));
        Ok(names
            .map(|full_name| {
                let (schema, name) = catalog.naming.split(&full_name);
                CatalogTable { full_name, schema, name }
            })
            .collect())
    }

    /// The columns of `table`. Those of a table that cannot be read are unknown.
    async fn columns_of(&self, catalog: &ListedCatalog, table: &CatalogTable) -> Result<SchemaRef, Status> {
        match self.exact_columns(&catalog.name, &table.full_name).await {
            Err(status) if matches!(status.code(), Code::Unavailable | Code::NotFound) => Ok(Arc::new(Schema::empty())),
            columns => Ok(columns?.unwrap_or_else(|| Arc::new(Schema::empty()))),
        }
    }

    /// The columns of `table`, from an answer without rows.
    pub(super) async fn exact_columns(&self, database: &str, table: &str) -> Result<Option<SchemaRef>, Status> {
        let arguments = json!({"database": database, "table": table, "where": "1 = 0", "limit": 1});
        let Value::Object(arguments) = arguments else { return Ok(None) };
        let Some(message) = self.run("query", arguments)?.next().await? else { return Ok(None) };
        let parsed = root_as_message(&message.data_header).ok().and_then(|message| message.header_as_schema());
        let schema = parsed.map(|schema| Some(Arc::new(fb_to_schema(schema))));
        schema.ok_or_else(|| {
            internal(self.state.registry.events(), "the answer of the tool query does not begin with a schema")
        })
    }

    /// All rows of the answer of `tool`, which is a list of bounded size.
    async fn collect(&self, tool: &str, arguments: Map<String, Value>) -> Result<Vec<RecordBatch>, Status> {
        Ok(self.collect_with_metadata(tool, arguments).await?.0)
    }

    /// The same with what the call reported at its end.
    pub(super) async fn collect_with_metadata(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<(Vec<RecordBatch>, AnswerMeta), Status> {
        let mut answer = self.run(tool, arguments)?;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some(message) = answer.next().await? {
            bytes += message.data_header.len() + message.data_body.len();
            if bytes > LIST_BYTES_MAX {
                let message = format!("the list has more than {LIST_BYTES_MAX} bytes; name a catalog");
                return Err(Status::out_of_range(message));
            }
            messages.push(message);
        }
        let batches = flight_data_to_batches(&messages).map_err(|error| self.encoding_error(&error.into()))?;
        Ok((batches, answer.metadata))
    }

    pub(super) fn encoding_error(&self, error: &FlightError) -> Status {
        internal(self.state.registry.events(), format!("a list cannot be written as Arrow: {error}"))
    }
}

/// Whether `name` may match a pattern of Flight SQL. The answer is filtered afterwards; this only saves requests for the
/// columns of tables that certainly do not match.
fn may_match(pattern: Option<&str>, name: &str) -> bool {
    let Some(pattern) = pattern else { return true };
    let literal = pattern.find(['%', '_', '\\']).and_then(|end| pattern.get(..end)).unwrap_or(pattern);
    name.starts_with(literal)
}

/// The texts of a column, without nulls.
pub(super) fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    let Some(column) = batch.column_by_name(column).and_then(|column| column.as_string_opt::<i32>()) else {
        return Vec::new();
    };
    (0..column.len()).filter(|row| column.is_valid(*row)).map(|row| column.value(row).to_owned()).collect()
}

pub(super) fn encapsulated_schema(schema: &Schema) -> Result<Bytes, FlightError> {
    let message: IpcMessage = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into()?;
    Ok(message.0)
}

/// The version of Arrow's format that answers have.
const ARROW_FORMAT_VERSION: &str = "1.5";

/// All entries of a server of `version`, for a caller that may write rows, or may not.
fn sql_info(version: &str, takes_rows: bool) -> Result<SqlInfoData, FlightError> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Tidegate");
    info.append(SqlInfo::FlightSqlServerVersion, version);
    info.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_FORMAT_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, !takes_rows);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, takes_rows);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    // Dropping the stream of an answer cancels it; there is no action of its own.
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedAtEnd as i32);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    info.append(SqlInfo::SqlBatchUpdatesSupported, false);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_as_their_database_writes_them() {
        let split = |kind: DatabaseKind, name: &str| TableNaming::of_kind(kind.name()).split(name);
        let expected = |schema: &str, name: &str| (schema.to_owned(), name.to_owned());
        assert_eq!(split(DatabaseKind::Files, "a.b"), expected("", "a.b"));
        assert_eq!(split(DatabaseKind::Postgres, "orders"), expected("", "orders"));
        assert_eq!(split(DatabaseKind::Postgres, "archive.\"the.dot\""), expected("archive", "the.dot"));
        assert_eq!(split(DatabaseKind::Federated, "pg.archive.orders"), expected("pg", "archive.orders"));
        assert_eq!(TableNaming::of_kind(DatabaseKind::Sqlite.name()), TableNaming::Dialect(SqlDialect::Sqlite));
        assert_eq!(TableNaming::of_kind("mysql"), TableNaming::Dialect(SqlDialect::MySql));
    }

    #[test]
    fn patterns_rule_tables_out_by_their_beginning() {
        assert!(may_match(None, "orders"));
        assert!(may_match(Some("ord%"), "orders"));
        assert!(may_match(Some("%"), "orders"));
        assert!(may_match(Some("orders"), "orders"));
        assert!(!may_match(Some("people"), "orders"));
        assert!(!may_match(Some("x%"), "orders"));
    }
}
