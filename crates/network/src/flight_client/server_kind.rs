//! Which program a server is: Tidegate, or another one. It is found out once for each connection.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::Empty;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_sql::SqlDialect;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::action::NodeAction;
use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::quotation::{self, Quotation};
use super::status;
use crate::node_protocol::TABLES_ACTION;

/// Actions of one server.
const ACTIONS_MAX: usize = 1000;

/// The program of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// A node whose dialect is the configured one.
    Tidegate,
    /// Another program.
    Other(Quotation),
}

impl NodeClient {
    /// The program of the server of `connection`. Finding it out does not end with its caller: the next one needs it, too.
    pub(super) async fn detect(
        self: &Arc<Self>,
        connection: &Arc<NodeConnection>,
        principal: &Principal,
        within: Duration,
    ) -> Result<ServerKind, Error> {
        if let Some(kind) = connection.kind() {
            return Ok(kind);
        }
        let (client, connection, principal) = (self.clone(), connection.clone(), principal.clone());
        self.finish(async move {
            let kind = timeout(within, client.find_kind(&connection, &principal, within)).await;
            let kind = kind.unwrap_or_else(|_| Err(status::timed_out(&client.name, within.as_secs_f64())))?;
            connection.set_kind(kind);
            Ok(kind)
        })
        .await
    }

    async fn find_kind(
        self: &Arc<Self>,
        connection: &Arc<NodeConnection>,
        principal: &Principal,
        within: Duration,
    ) -> Result<ServerKind, Error> {
        if self.is_tidegate(connection, principal, within).await? {
            let answer = NodeAction { client: self, connection, principal, within }.check().await?;
            self.check_dialect(answer.dialect.as_deref())?;
            return Ok(ServerKind::Tidegate);
        }
        quotation::find(self, connection, principal, within).await.map(ServerKind::Other)
    }

    async fn is_tidegate(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        within: Duration,
    ) -> Result<bool, Error> {
        let mut lease = connection.lease().await;
        let request = self.request(Empty {}, principal, within)?;
        let actions = async {
            let mut actions = lease.client.list_actions(request).await?.into_inner();
            for _ in 0..ACTIONS_MAX {
                let Some(action) = actions.message().await? else { break };
                if action.r#type == TABLES_ACTION {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match actions.await {
            Ok(is_tidegate) => Ok(is_tidegate),
            Err(status) if is_missing_feature(&status) => Ok(false),
            Err(status) => Err(status::to_error(&self.name, &status)),
        }
    }

    /// Fails if the node reports another dialect than the configured one.
    pub(super) fn check_dialect(&self, reported: Option<&str>) -> Result<(), Error> {
        let configured = self.dialect.key();
        let Some(reported) = reported.filter(|reported| *reported != configured) else { return Ok(()) };
        let keys = [SqlDialect::DataFusion, SqlDialect::Postgres, SqlDialect::Sqlite].map(SqlDialect::key);
        let message =
            format!("node {:?} has SQL of the dialect {reported}, but the configuration has {configured}", self.name);
        let hint = match keys.contains(&reported) {
            true => format!("Set dialect: {reported} where the node is configured."),
            false => "The node is a newer version of the program; upgrade this one.".to_owned(),
        };
        Err(Error::new(ErrorKind::Unavailable, message).with_hint(hint))
    }
}

/// Whether the server reports that it does not have a request. Some servers have no code for this.
pub(super) fn is_missing_feature(status: &Status) -> bool {
    let is_reported = std::error::Error::source(status).is_none();
    is_reported && matches!(status.code(), Code::Unimplemented | Code::Unknown | Code::Internal)
}
