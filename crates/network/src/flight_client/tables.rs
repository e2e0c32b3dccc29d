//! The tables of a node, as it lists them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::{Action, IpcMessage};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{NodeTable, NodeTables};
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::server_kind::ServerKind;
use super::{other_catalog, status};
use crate::node_protocol::{DatabaseRequest, TABLES_ACTION, TABLES_BYTES_MAX, TABLES_MAX, TableMessage, TablesHeader};

impl NodeClient {
    /// Requests the tables that `principal` may read.
    pub(super) async fn fetch_tables(self: &Arc<Self>, principal: &Principal) -> Result<NodeTables, Error> {
        let mut attempts = self.attempts(Instant::now() + self.timeout);
        while let Some((connection, within)) = attempts.next() {
            let listing = async {
                match self.detect(&connection, principal, within).await? {
                    ServerKind::Tidegate => self.list_tables(&connection, principal, within).await,
                    ServerKind::Other(quotation) => {
                        other_catalog::list_tables(self, &connection, principal, quotation, within).await
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
pub(super) fn check_size(node: &str, tables: usize, bytes: usize) -> Result<(), Error> {
    if tables <= TABLES_MAX && bytes <= TABLES_BYTES_MAX {
        return Ok(());
    }
    let message = format!("node {node:?} lists more than {TABLES_MAX} tables, or {TABLES_BYTES_MAX} bytes of them");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// The schema in an encapsulated IPC message.
pub(super) fn decode_schema(message: Bytes) -> Result<SchemaRef, String> {
    // Messages of another program may be malformed in ways that the decoder does not expect.
    let decoded = std::panic::catch_unwind(|| Schema::try_from(IpcMessage(message)));
    let schema = decoded.map_err(|_| "a schema cannot be decoded".to_owned())?;
    schema.map(Arc::new).map_err(|error| error.to_string())
}
