//! Which program a server is: Tidegate, or another one, what that reports of itself, and how it reads quotation marks. It is
//! found out once for each connection.
//!
//! In some servers `"name"` is a text, `'it''s'` is `its`, or a backslash begins an escape. A statement would then have
//! another answer without an error. So two statements are tried, before the first one of a caller is sent.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow_flight::Empty;
use arrow_flight::sql::{CommandGetSqlInfo, CommandStatementQuery, ProstMessageExt, SqlInfo};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_sql::SqlDialect;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::connection::NodeConnection;
use super::node_client::{NodeAction, NodeClient};
use super::other_server::is_refused;
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
        find_quotation(self, connection, principal, within).await.map(ServerKind::Other)
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
        let message =
            format!("node {:?} has SQL of the dialect {reported}, but the configuration has {configured}", self.name);
        let hint = match SqlDialect::from_key(reported) {
            Some(_) => format!("Set dialect: {reported} where the node is configured."),
            None => "The node is a newer version of the program; upgrade this one.".to_owned(),
        };
        Err(Error::new(ErrorKind::Unavailable, message).with_hint(hint))
    }
}

/// Whether the server reports that it does not have a request. Some servers have no code for this.
pub(super) fn is_missing_feature(status: &Status) -> bool {
    let is_reported = std::error::Error::source(status).is_none();
    is_reported && matches!(status.code(), Code::Unimplemented | Code::Unknown | Code::Internal)
}

/// Texts as literals: what a server with standard texts reads, and what any server reads.
const STANDARD_TEXT: (&str, &str) = (r"'a''b\c'", r"a'b\c");
const PLAIN_TEXT: (&str, &str) = ("'a'", "a");

/// How a server reads quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quotation {
    /// The quotation mark of identifiers.
    pub(super) identifiers: char,
    /// Whether two quotation marks in a text are one, and a backslash is itself.
    pub(super) has_standard_texts: bool,
}

/// Tries how the server reads quotation marks.
///
/// # Errors
/// `Failed` when it reads neither `"` nor backquotes as those of identifiers.
async fn find_quotation(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    within: Duration,
) -> Result<Quotation, Error> {
    let reported = reported_quote(client, connection, principal, within).await?;
    let first = reported.filter(|quote| *quote == '`').unwrap_or('"');
    let mut refusal = None;
    for identifiers in [first, if first == '`' { '"' } else { '`' }] {
        for (has_standard_texts, (literal, expected)) in [(true, STANDARD_TEXT), (false, PLAIN_TEXT)] {
            match client.read_text(connection, principal, (identifiers, literal), within).await {
                Ok(text) if text.as_deref() == Some(expected) => {
                    return Ok(Quotation { identifiers, has_standard_texts });
                }
                Ok(_) => {}
                Err(error) if is_refused(&error) => refusal = Some(error),
                Err(error) => return Err(error),
            }
        }
    }
    let message = format!("node {:?} quotes identifiers neither with \" nor with backquotes", client.name);
    let error = Error::new(ErrorKind::Failed, message);
    Err(match refusal {
        Some(refusal) => error.with_hint(refusal.message()),
        None => error,
    })
}

impl NodeClient {
    /// What the server reads as `literal`, through a quoted name.
    async fn read_text(
        &self,
        connection: &NodeConnection,
        principal: &Principal,
        (quote, literal): (char, &str),
        within: Duration,
    ) -> Result<Option<String>, Error> {
        let query = format!("SELECT {quote}x y{quote} FROM (SELECT {literal} AS {quote}x y{quote}) AS t");
        let command = CommandStatementQuery { query, transaction_id: None };
        let batches = self.collect(connection, principal, command.as_any(), within).await?;
        let column = batches.iter().find(|batch| batch.num_rows() > 0).and_then(|batch| batch.columns().first());
        let text = column.and_then(|column| cast(column, &DataType::Utf8).ok());
        let text = text.filter(|text| text.is_valid(0));
        Ok(text.map(|text| text.as_string::<i32>().value(0).to_owned()))
    }
}

/// The quotation mark of identifiers, as the server reports it.
async fn reported_quote(
    client: &NodeClient,
    connection: &NodeConnection,
    principal: &Principal,
    within: Duration,
) -> Result<Option<char>, Error> {
    let text = client.sql_info(connection, principal, SqlInfo::SqlIdentifierQuoteChar, within).await?;
    let mut characters = text.as_deref().unwrap_or_default().chars();
    Ok(characters.next().filter(|quote| !quote.is_whitespace() && characters.next().is_none()))
}

/// The name and the version of the server, as it reports it.
pub(super) async fn server_version(
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
}

/// The first value of a dense union, if it is a text.
fn text_in(values: &ArrayRef) -> Option<String> {
    let values = values.as_union_opt()?;
    let value = (!values.is_empty()).then(|| values.value(0))?;
    let texts = value.as_string_opt::<i32>()?;
    (!texts.is_empty() && texts.is_valid(0)).then(|| texts.value(0).to_owned())
}
