//! The actions for other nodes: the tables of a database with their columns, the storage of a table, and a check.
//!
//! Like all requests they are answered by tools that are called for the client, so that they disclose nothing else.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tidegate_runtime::AdapterDetail;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::catalog::{encapsulated_schema, texts};
use super::service::FlightRequest;
use crate::node_protocol::{
    CheckAnswer, DatabaseRequest, PROTOCOL_VERSION, StorageAnswer, TABLES_BYTES_MAX, TABLES_MAX, TableMessage,
    TableRequest, TablesHeader,
};

/// Tables of one call of `get_schema`.
const TABLES_PER_CALL: usize = 100;
/// Tables whose exact columns are remembered, and for how long, as long as `get_schema` reports the same of them.
const DESCRIBED_MAX: NonZeroUsize = NonZeroUsize::new(8192).unwrap();
const DESCRIBED_FOR: Duration = Duration::from_secs(5 * 60);
/// Bytes of a remembered schema.
const DESCRIBED_BYTES_MAX: usize = 16 * 1024;

/// The exact columns of tables, by what their callers see of them in other ways.
///
/// Other nodes request the tables every few seconds. The exact columns need a statement for each table, while the names
/// of their types need one call for a hundred tables.
pub(super) struct DescribedTables(Mutex<LruCache<[u8; 32], (String, Instant)>>);

impl Default for DescribedTables {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(DESCRIBED_MAX)))
    }
}

struct ListedTable {
    name: String,
    rows: Option<u64>,
    comment: Option<String>,
}

struct TableListing {
    database: String,
    dialect: String,
    tables: Vec<ListedTable>,
}

impl FlightRequest {
    /// The messages of the answer to `tidegate.tables`.
    pub(super) async fn list_tables_for_node(&self, body: &[u8]) -> Result<Vec<Bytes>, Status> {
        let listing = self.list_database(parse_database(body)?).await?;
        let TableListing { database, dialect, tables } = listing;
        let mut described = self.describe_tables(&database, &tables).await?;
        let version = self.state.version.clone();
        let header = TablesHeader { database: database.clone(), protocol: PROTOCOL_VERSION, dialect, version };
        let mut messages = vec![to_json(&header)];
        let mut bytes = 0;
        for ListedTable { name, rows, comment } in tables {
            // A network must know of a table that cannot be read: its rows are missing there.
            let schema = match described.remove(&name) {
                Some(Ok(description)) => self.exact_schema(&database, &name, &description).await,
                Some(Err(status)) => Err(status),
                None => continue,
            };
            let (schema, unreadable) = match schema {
                Ok(schema) => (schema, None),
                // It was dropped since it was listed.
                Err(status) if status.code() == Code::NotFound => continue,
                Err(status) if is_about_tables(&status) => (String::new(), Some(status.message().to_owned())),
                Err(status) => return Err(status),
            };
            let message = to_json(&TableMessage { name, rows, comment, schema, unreadable });
            bytes += message.len();
            if messages.len() > TABLES_MAX || bytes > TABLES_BYTES_MAX {
                let message = format!(
                    "database {database:?} has more than {TABLES_MAX} tables, or {TABLES_BYTES_MAX} bytes of columns; \
                     other nodes cannot list them"
                );
                return Err(Status::out_of_range(message));
            }
            messages.push(message);
        }
        Ok(messages)
    }

    /// The answer to `tidegate.storage`.
    pub(super) async fn table_storage_for_node(&self, body: &[u8]) -> Result<Bytes, Status> {
        let TableRequest { database, table } = parse(body)?;
        let mut arguments = Map::from_iter([("table".to_owned(), table.into())]);
        arguments.extend(database.map(|database| ("database".to_owned(), database.into())));
        let (_, metadata) = self.collect_with_metadata("get_schema", arguments).await?;
        let (bytes, indexed_columns) = match metadata.adapter.map(|detail| *detail) {
            Some(AdapterDetail::Table { bytes, indexed_columns }) => (bytes, indexed_columns),
            _ => Default::default(),
        };
        Ok(to_json(&StorageAnswer { bytes, indexed_columns }))
    }

    /// The answer to `tidegate.check`.
    pub(super) async fn check_for_node(&self, body: &[u8]) -> Result<Bytes, Status> {
        let dialect = match self.list_database(parse_database(body)?).await {
            Ok(listing) => Some(listing.dialect),
            // A caller without this tool may still run statements, and a database that is away has no dialect to check.
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument | Code::Unavailable) => None,
            Err(status) => return Err(status),
        };
        let jobs = self.state.registry.jobs().list(&self.caller);
        let running = jobs.iter().filter(|job| !job.state.has_ended()).count();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(to_json(&CheckAnswer {
            version: self.state.version.clone(),
            protocol: PROTOCOL_VERSION,
            time_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            running_calls: running as u64,
            subject: self.caller.principal.subject.clone(),
            dialect,
        }))
    }

    async fn list_database(&self, request: DatabaseRequest) -> Result<TableListing, Status> {
        let mut arguments = Map::new();
        if let Some(database) = request.database {
            arguments.insert("database".to_owned(), database.into());
        }
        let (batches, metadata) = self.collect_with_metadata("list_tables", arguments).await?;
        let Some(AdapterDetail::Database { name, dialect }) = metadata.adapter.as_deref() else {
            let message = "there are several databases, or none; the client must name the one that it reads";
            return Err(Status::invalid_argument(message));
        };
        let tables = batches.iter().flat_map(listed_tables).collect();
        Ok(TableListing { database: name.clone(), dialect: (*dialect).to_owned(), tables })
    }

    /// What `get_schema` reports of each table, or why it cannot be read.
    async fn describe_tables(
        &self,
        database: &str,
        tables: &[ListedTable],
    ) -> Result<BTreeMap<String, Result<String, Status>>, Status> {
        let (mut descriptions, mut failures) = (BTreeMap::new(), BTreeMap::new());
        let mut pending: Vec<&[ListedTable]> = tables.chunks(TABLES_PER_CALL).collect();
        while let Some(chunk) = pending.pop() {
            let names: Vec<&str> = chunk.iter().map(|table| table.name.as_str()).collect();
            let Value::Object(arguments) = json!({"database": database, "table": names}) else { continue };
            match self.collect_with_metadata("get_schema", arguments).await {
                Ok((batches, _)) => batches.iter().for_each(|batch| add_descriptions(batch, &mut descriptions)),
                Err(status) if !is_about_tables(&status) => return Err(status),
                // One table that cannot be read fails the call.
                Err(_) if chunk.len() > 1 => {
                    let (left, right) = chunk.split_at(chunk.len() / 2);
                    pending.extend([left, right]);
                }
                Err(status) => failures.extend(names.first().map(|name| ((*name).to_owned(), status))),
            }
        }
        // If none can be read, the reason is not a table.
        match failures.first_entry().filter(|_| descriptions.is_empty()) {
            Some(failure) => Err(failure.remove()),
            None => {
                let described = descriptions.into_iter().map(|(name, description)| (name, Ok(description)));
                Ok(described.chain(failures.into_iter().map(|(name, status)| (name, Err(status)))).collect())
            }
        }
    }

    /// The columns of `table` as an encapsulated IPC message in base64.
    async fn exact_schema(&self, database: &str, table: &str, description: &str) -> Result<String, Status> {
        let key = description_key(database, table, description);
        let known = self.state.described.0.lock().get(&key).cloned();
        if let Some((schema, _)) = known.filter(|(_, at)| at.elapsed() < DESCRIBED_FOR) {
            return Ok(schema);
        }
        let columns = self.exact_columns(database, table).await?;
        let columns = columns.ok_or_else(|| Status::unavailable("the answer of the tool query has no schema"))?;
        let schema = encapsulated_schema(&columns).map_err(|error| self.encoding_error(&error))?;
        let schema = STANDARD.encode(schema);
        if schema.len() <= DESCRIBED_BYTES_MAX {
            self.state.described.0.lock().put(key, (schema.clone(), Instant::now()));
        }
        Ok(schema)
    }
}

/// A caller that sees the same of a table in other ways may see the exact columns that another caller caused to be read.
fn description_key(database: &str, table: &str, description: &str) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [database, table, description] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// Whether a call failed because of the tables that it names.
fn is_about_tables(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::NotFound | Code::InvalidArgument | Code::PermissionDenied | Code::Unknown
    )
}

fn parse_database(body: &[u8]) -> Result<DatabaseRequest, Status> {
    if body.is_empty() { Ok(DatabaseRequest::default()) } else { parse(body) }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::invalid_argument(format!("the request is malformed: {error}; expected a JSON object")))
}

fn to_json(value: &impl Serialize) -> Bytes {
    // Texts and numbers always serialize.
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn listed_tables(batch: &RecordBatch) -> Vec<ListedTable> {
    let column = |name: &str| batch.column_by_name(name);
    let (Some(names), Some(comments)) = (
        column("name").and_then(|column| column.as_string_opt::<i32>()),
        column("comment").and_then(|column| column.as_string_opt::<i32>()),
    ) else {
        return Vec::new();
    };
    let rows = column("rows").and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let listed = (0..batch.num_rows()).filter(|row| names.is_valid(*row)).map(|row| ListedTable {
        name: names.value(row).to_owned(),
        rows: rows.filter(|rows| rows.is_valid(row)).map(|rows| rows.value(row)),
        comment: comments.is_valid(row).then(|| comments.value(row).to_owned()),
    });
    listed.collect()
}

/// Adds the columns of each table of `batch` as one text.
fn add_descriptions(batch: &RecordBatch, descriptions: &mut BTreeMap<String, String>) {
    let options = FormatOptions::default();
    let described = ["name", "type", "nullable"].map(|name| batch.column_by_name(name));
    let formatters: Vec<_> =
        described.into_iter().flatten().filter_map(|column| ArrayFormatter::try_new(column, &options).ok()).collect();
    for (row, table) in texts(batch, "table").into_iter().enumerate() {
        let description = descriptions.entry(table).or_default();
        for formatter in &formatters {
            description.push_str(&formatter.value(row).to_string());
            description.push('\n');
        }
    }
}
