//! The tables of a node: as it lists them, or, for a server of another program, as its command returns them. Servers without
//! that command have `SHOW TABLES`, and for each table the columns of an answer without rows.
//!
//! The tables as last known are kept for each identity of callers. A list that is old is returned while a newer one is
//! fetched in the background, so that a statement does not wait for a list that has usually not changed. A statement waits
//! for a list that is older than a minute: a table that the node got since then would be missing without a word. A node that
//! is away keeps its tables.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow_flight::sql::{Any, CommandGetTables, CommandStatementQuery, ProstMessageExt};
use arrow_flight::{Action, IpcMessage};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{NodeTable, NodeTables, is_node_failure};
use tidegate_sql::SqlDialect;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::other_server::is_refused;
use super::server_kind::{Quotation, ServerKind};
use super::status;
use crate::node_protocol::{DatabaseRequest, TABLES_ACTION, TABLES_BYTES_MAX, TABLES_MAX, TableMessage, TablesHeader};

impl NodeClient {
    /// Requests the tables that `principal` may read.
    async fn fetch_tables(self: &Arc<Self>, principal: &Principal) -> Result<NodeTables, Error> {
        let mut attempts = self.attempts(Instant::now() + self.timeout);
        while let Some((connection, within)) = attempts.next() {
            let listing = async {
                match self.detect(&connection, principal, within).await? {
                    ServerKind::Tidegate => self.list_tables(&connection, principal, within).await,
                    ServerKind::Other(quotation) => {
                        list_other_tables(self, &connection, principal, quotation, within).await
                    }
                }
            };
            let known_since = SystemTime::now();
            let listed = timeout(within, listing).await;
            let listed = listed.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())));
            let tables = listed.map(|mut tables| {
                tables.sort_by(|left, right| left.name.cmp(&right.name));
                NodeTables { tables, known_since }
            });
            if let ControlFlow::Break(result) = attempts.settle(tables) {
                return result;
            }
        }
        Err(status::unavailable(&self.name, "no replica answered"))
    }

    async fn list_tables(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        within: Duration,
    ) -> Result<Vec<NodeTable>, Error> {
        let begun = Instant::now();
        let mut lease = connection.lease().await;
        // Text always serializes.
        let request = DatabaseRequest { database: self.database.clone() };
        let body = serde_json::to_vec(&request).unwrap_or_default().into();
        let action = Action { r#type: TABLES_ACTION.to_owned(), body };
        let request = self.request(action, principal, within)?;
        let failed = |status: Status| match status.code() {
            Code::Unimplemented => status::malformed(&self.name, "it is an older version that does not list tables"),
            _ => status::to_error(&self.name, &status),
        };
        let malformed = |problem: &str| status::malformed(&self.name, problem);
        let mut parts = lease.client.do_action(request).await.map_err(failed)?.into_inner();
        let header = parts.message().await.map_err(failed)?.ok_or_else(|| malformed("a list of tables is empty"))?;
        let header: TablesHeader =
            serde_json::from_slice(&header.body).map_err(|error| malformed(&error.to_string()))?;
        self.observe_version(&header.version);
        // The server may have been replaced since the connection was checked.
        status::check_protocol(&self.name, header.protocol, &header.version)?;
        self.observe_answer(Some(begun.elapsed()));
        self.check_dialect(Some(&header.dialect))?;
        let (mut tables, mut bytes) = (Vec::new(), 0_usize);
        while let Some(part) = parts.message().await.map_err(failed)? {
            bytes = bytes.saturating_add(part.body.len());
            check_size(&self.name, tables.len() + 1, bytes)?;
            let table: TableMessage =
                serde_json::from_slice(&part.body).map_err(|error| malformed(&error.to_string()))?;
            let TableMessage { name, rows, comment, schema, unreadable } = table;
            let schema = match &unreadable {
                Some(_) => Arc::new(Schema::empty()),
                None => {
                    let schema = STANDARD.decode(&schema).map_err(|error| malformed(&error.to_string()))?;
                    decode_schema(schema.into()).map_err(|problem| malformed(&problem))?
                }
            };
            tables.push(NodeTable { name, schema, rows, comment, unreadable });
        }
        Ok(tables)
    }
}

/// Fails if a list of tables is too long.
fn check_size(node: &str, tables: usize, bytes: usize) -> Result<(), Error> {
    if tables <= TABLES_MAX && bytes <= TABLES_BYTES_MAX {
        return Ok(());
    }
    let message = format!("node {node:?} lists more than {TABLES_MAX} tables, or {TABLES_BYTES_MAX} bytes of them");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// The schema in an encapsulated IPC message.
fn decode_schema(message: Bytes) -> Result<SchemaRef, String> {
    // Messages of another program may be malformed in ways that the decoder does not expect.
    let decoded = std::panic::catch_unwind(|| Schema::try_from(IpcMessage(message)));
    let schema = decoded.map_err(|_| "a schema cannot be decoded".to_owned())?;
    schema.map(Arc::new).map_err(|error| error.to_string())
}

/// Schemas that describe the database itself.
const SYSTEM_SCHEMAS: [&str; 2] = ["information_schema", "pg_catalog"];
/// The schema whose tables need no schema before their names.
const DEFAULT_POSTGRES_SCHEMA: &str = "public";

/// The tables of the configured catalog, or of all catalogs.
///
/// A statement names a table as the list does. In PostgreSQL's dialect, a schema may come first; in others it cannot, so
/// that names that several schemas have are left out.
async fn list_other_tables(
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
            let listed = list_by_statement(client, connection, principal, quotation, within).await;
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
async fn list_by_statement(
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
        let found = first_texts(batch, &NAME_COLUMNS);
        let found = found.ok_or_else(|| status::malformed(&client.name, "SHOW TABLES has no names of tables"))?;
        let schemas = first_texts(batch, &SCHEMA_COLUMNS).unwrap_or_default();
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
fn first_texts(batch: &RecordBatch, names: &[&str]) -> Option<Vec<Option<String>>> {
    let column = names.iter().find_map(|name| batch.column_by_name(name))?;
    let texts = cast(column, &DataType::Utf8).ok()?;
    Some(texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
}

/// Identities whose tables are kept; the one that was not used for the longest time is forgotten.
const IDENTITIES_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// How long a list is fresh.
const FRESH_FOR: Duration = Duration::from_secs(10);
/// How old a list is that is fetched again because it lacks a table. Otherwise a misspelled name in each of many
/// statements would be as many requests to the node.
const NEWER_AFTER: Duration = Duration::from_secs(1);
/// How long a list may be returned while a newer one is fetched.
const USABLE_FOR: Duration = Duration::from_secs(60);
/// The interval of attempts to fetch a list from a node that is away.
const RETRY_AFTER: Duration = Duration::from_secs(5);

pub(super) struct TableCache(Mutex<LruCache<[u8; 32], Arc<CachedTables>>>);

#[derive(Default)]
struct CachedTables {
    state: Mutex<CacheState>,
    /// Held during a fetch.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct CacheState {
    tables: Option<(Arc<NodeTables>, Instant)>,
    /// The failure of the last fetch.
    failure: Option<(Error, Instant)>,
    /// Whether a statement found other tables than these.
    is_suspect: bool,
}

enum Cached {
    Fresh(Arc<NodeTables>),
    Old(Arc<NodeTables>),
    /// A fetch failed a moment ago.
    Failed(Error),
    Unknown,
}

impl Default for TableCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(IDENTITIES_MAX)))
    }
}

impl CachedTables {
    fn get(&self) -> Cached {
        let state = self.state.lock();
        let has_just_failed = state.failure.as_ref().is_some_and(|(_, at)| at.elapsed() < RETRY_AFTER);
        match (&state.tables, &state.failure) {
            (Some((tables, _)), _) if has_just_failed => Cached::Fresh(tables.clone()),
            (Some(_), _) if state.is_suspect => Cached::Unknown,
            (Some((tables, at)), _) if at.elapsed() < FRESH_FOR => Cached::Fresh(tables.clone()),
            // While the node is away, there is no newer one.
            (Some((tables, at)), failure) if at.elapsed() < USABLE_FOR || failure.is_some() => {
                Cached::Old(tables.clone())
            }
            (None, Some((error, _))) if has_just_failed => Cached::Failed(error.clone()),
            _ => Cached::Unknown,
        }
    }

    /// Makes the next caller wait for a newer list, unless this one is new.
    fn suspect_if_old(&self) {
        let mut state = self.state.lock();
        let is_old = state.tables.as_ref().is_some_and(|(_, at)| at.elapsed() >= NEWER_AFTER);
        state.is_suspect |= is_old;
    }

    /// Stores the result of a fetch, and returns what callers get.
    fn store(&self, fetched: Result<NodeTables, Error>) -> Result<Arc<NodeTables>, Error> {
        let mut state = self.state.lock();
        state.is_suspect = false;
        match fetched {
            Ok(tables) => {
                let tables = Arc::new(tables);
                *state = CacheState { tables: Some((tables.clone(), Instant::now())), ..CacheState::default() };
                Ok(tables)
            }
            Err(error) => {
                state.failure = Some((error.clone(), Instant::now()));
                // A node that refuses the caller is not away.
                let is_refused = matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::Forbidden);
                if is_refused || !is_node_failure(&error) {
                    state.tables = None;
                }
                state.tables.as_ref().map(|(tables, _)| tables.clone()).ok_or(error)
            }
        }
    }
}

impl NodeClient {
    /// The tables that `principal` may read, as last known.
    pub(super) async fn known_tables(self: &Arc<Self>, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        let cached = self.cached_tables(principal);
        match cached.get() {
            Cached::Fresh(tables) => return Ok(tables),
            Cached::Failed(error) => return Err(error),
            Cached::Old(tables) => {
                self.refresh(&cached, principal);
                return Ok(tables);
            }
            Cached::Unknown => {}
        }
        let (client, principal) = (self.clone(), principal.clone());
        self.finish(async move {
            let _fetching = cached.fetching.lock().await;
            // Another caller may have fetched them in the meantime.
            match cached.get() {
                Cached::Fresh(tables) | Cached::Old(tables) => Ok(tables),
                Cached::Failed(error) => Err(error),
                Cached::Unknown => cached.store(client.fetch_tables(&principal).await),
            }
        })
        .await
    }

    /// The tables that `principal` may read, from a list that is at most a second old if the node answers.
    pub(super) async fn newer_tables(self: &Arc<Self>, principal: &Principal) -> Result<Arc<NodeTables>, Error> {
        self.cached_tables(principal).suspect_if_old();
        self.known_tables(principal).await
    }

    /// The next request for the tables of `principal` fetches them, because a statement found others.
    pub(super) fn suspect_tables(&self, principal: &Principal) {
        if let Some(cached) = self.tables.0.lock().peek(&self.identity(principal)) {
            cached.state.lock().is_suspect = true;
        }
    }

    fn cached_tables(&self, principal: &Principal) -> Arc<CachedTables> {
        self.tables.0.lock().get_or_insert(self.identity(principal), Arc::default).clone()
    }

    fn refresh(self: &Arc<Self>, cached: &Arc<CachedTables>, principal: &Principal) {
        let Ok(fetching) = cached.fetching.clone().try_lock_owned() else { return };
        let (client, cached, principal) = (self.clone(), cached.clone(), principal.clone());
        self.spawn(async move {
            let _fetching = fetching;
            // A failure is stored too.
            let _ = cached.store(client.fetch_tables(&principal).await);
        });
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn tables() -> NodeTables {
        NodeTables { tables: Vec::new(), known_since: SystemTime::UNIX_EPOCH }
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_list_is_used_for_a_minute_and_while_the_node_is_away() {
        let cached = CachedTables::default();
        assert!(matches!(cached.get(), Cached::Unknown));
        cached.store(Ok(tables())).unwrap();
        assert!(matches!(cached.get(), Cached::Fresh(_)));
        tokio::time::advance(FRESH_FOR).await;
        assert!(matches!(cached.get(), Cached::Old(_)));
        tokio::time::advance(USABLE_FOR).await;
        assert!(matches!(cached.get(), Cached::Unknown));
        cached.store(Err(Error::new(ErrorKind::Unavailable, "connection refused"))).unwrap();
        tokio::time::advance(RETRY_AFTER).await;
        assert!(matches!(cached.get(), Cached::Old(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_without_a_table_is_fetched_again_once_a_second() {
        let cached = CachedTables::default();
        cached.store(Ok(tables())).unwrap();
        cached.suspect_if_old();
        assert!(matches!(cached.get(), Cached::Fresh(_)));
        tokio::time::advance(NEWER_AFTER).await;
        cached.suspect_if_old();
        assert!(matches!(cached.get(), Cached::Unknown));
        cached.store(Ok(tables())).unwrap();
        cached.suspect_if_old();
        assert!(matches!(cached.get(), Cached::Fresh(_)));
    }
}
