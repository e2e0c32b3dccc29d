//! The actions of nodes that have one answer: the check, and the storage of a table.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::Action;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_core::{Error, Principal};
use tidegate_query::TableStorage;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::server_kind::ServerKind;
use super::status;
use crate::node_protocol::{CHECK_ACTION, CheckAnswer, DatabaseRequest, STORAGE_ACTION, StorageAnswer, TableRequest};

/// An action on one connection.
pub(super) struct NodeAction<'a> {
    pub(super) client: &'a Arc<NodeClient>,
    pub(super) connection: &'a Arc<NodeConnection>,
    pub(super) principal: &'a Principal,
    pub(super) within: Duration,
}

impl NodeAction<'_> {
    /// The answer of the node to the action called `name`.
    async fn run<A: DeserializeOwned>(&self, name: &str, body: &impl Serialize) -> Result<Result<A, Status>, Error> {
        let mut lease = self.connection.lease().await;
        // Texts and numbers always serialize.
        let body = serde_json::to_vec(body).unwrap_or_default().into();
        let action = Action { r#type: name.to_owned(), body };
        let request = self.client.request(action, self.principal, self.within)?;
        let answer = async {
            let mut parts = lease.client.do_action(request).await?.into_inner();
            let first = parts.message().await?;
            // The status of the action follows its answer.
            while parts.message().await?.is_some() {}
            Ok(first)
        };
        let answer = match answer.await {
            Ok(answer) => answer,
            Err(status) => return Ok(Err(status)),
        };
        let malformed = |problem: &str| status::malformed(&self.client.name, problem);
        let answer = answer.ok_or_else(|| malformed(&format!("the action {name} has no answer")))?;
        serde_json::from_slice(&answer.body).map(Ok).map_err(|error| malformed(&error.to_string()))
    }

    pub(super) async fn check(&self) -> Result<CheckAnswer, Error> {
        let request = DatabaseRequest { database: self.client.database.clone() };
        let answer: Result<CheckAnswer, Status> = self.run(CHECK_ACTION, &request).await?;
        let answer = answer.map_err(|status| status::to_error(&self.client.name, &status))?;
        self.client.observe_version(&answer.version);
        status::check_protocol(&self.client.name, answer.protocol, &answer.version)?;
        Ok(answer)
    }

    /// How `table` is stored. Nothing is known of tables of older versions and of other programs.
    async fn table_storage(&self, table: &str) -> Result<TableStorage, Error> {
        if self.client.detect(self.connection, self.principal, self.within).await? != ServerKind::Tidegate {
            return Ok(TableStorage::default());
        }
        let request = TableRequest { database: self.client.database.clone(), table: table.to_owned() };
        match self.run(STORAGE_ACTION, &request).await? {
            Ok(StorageAnswer { bytes, indexed_columns }) => Ok(TableStorage { bytes, indexed_columns }),
            Err(status) if status.code() == Code::Unimplemented => Ok(TableStorage::default()),
            Err(status) => Err(status::to_error(&self.client.name, &status)),
        }
    }
}

impl NodeClient {
    /// How `table` is stored at the first replica that answers.
    pub(super) async fn table_storage(
        self: &Arc<Self>,
        table: &str,
        principal: &Principal,
    ) -> Result<TableStorage, Error> {
        let mut attempts = self.attempts(Instant::now() + self.timeout);
        while let Some((connection, within)) = attempts.next() {
            let action = NodeAction { client: self, connection: &connection, principal, within };
            let storage = timeout(within, action.table_storage(table)).await;
            let storage = storage.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())));
            if let ControlFlow::Break(result) = attempts.settle(storage) {
                return result;
            }
        }
        Err(status::unavailable(&self.name, "no replica answered"))
    }
}
