//! Which program a server is: Tidegate, or another one. It is found out once for each connection.

use std::time::Duration;

use arrow_flight::{Action, Empty};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_sql::SqlDialect;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::connection::NodeConnection;
use super::node_client::NodeClient;
use super::quotation::{self, Quotation};
use super::status;
use crate::node_protocol::{CHECK_ACTION, CheckAnswer, DatabaseRequest, TABLES_ACTION};

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
    /// The program of the server of `connection`.
    pub(super) async fn detect(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        within: Duration,
    ) -> Result<ServerKind, Error> {
        if let Some(kind) = connection.kind() {
            return Ok(kind);
        }
        let detection = async {
            if self.is_tidegate(connection, principal, within).await? {
                let answer = self.send_check(connection, principal, within).await?;
                self.check_dialect(answer.dialect.as_deref())?;
                return Ok(ServerKind::Tidegate);
            }
            quotation::find(self, connection, principal, within).await.map(ServerKind::Other)
        };
        let kind = timeout(within, detection).await;
        let kind = kind.unwrap_or_else(|_| Err(status::timed_out(&self.name, within.as_secs_f64())))?;
        connection.set_kind(kind);
        Ok(kind)
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

    pub(super) async fn send_check(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        within: Duration,
    ) -> Result<CheckAnswer, Error> {
        let mut lease = connection.lease().await;
        let body = DatabaseRequest { database: self.database.clone() };
        // Text always serializes.
        let body = serde_json::to_vec(&body).unwrap_or_default().into();
        let action = Action { r#type: CHECK_ACTION.to_owned(), body };
        let request = self.request(action, principal, within)?;
        let answer = async {
            let mut parts = lease.client.do_action(request).await?.into_inner();
            let first = parts.message().await?;
            // The status of the action follows its answer.
            while parts.message().await?.is_some() {}
            Ok(first)
        };
        let answer = answer.await.map_err(|status: Status| status::to_error(&self.name, &status))?;
        let answer = answer.ok_or_else(|| status::malformed(&self.name, "a check has no answer"))?;
        let answer: CheckAnswer =
            serde_json::from_slice(&answer.body).map_err(|error| status::malformed(&self.name, &error.to_string()))?;
        self.observe_version(&answer.version);
        Ok(answer)
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
