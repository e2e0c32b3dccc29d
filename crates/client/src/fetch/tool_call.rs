//! Single requests to a server: a tool whose answer is one JSON value, a query whose answer becomes a stored result, and the
//! transports of a running server.

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::address::{ResultAddress, ResultServer};
use super::client::{RequestFailure, ResultClient, ResultCredential, run_until_cancelled};
use super::{FetchError, FetchOptions};
use crate::server::sanitize;

const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Calls `tool` of `server`. The call is repeated if it fails on the way, so `tool` must do no harm if it is called twice.
///
/// # Errors
/// Fails if the server is unreachable or refuses the call.
pub async fn call_tool(
    server: &ResultServer,
    tool: &str,
    arguments: &Map<String, Value>,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<Value, FetchError> {
    let credential = ResultCredential::new(None, options.bearer.as_ref());
    let client = ResultClient::new(server.to_string(), credential, options)?;
    let json = Value::Object(arguments.clone()).to_string();
    let attempt = async || {
        let headers = HeaderMap::from_iter([(ACCEPT, JSON), (CONTENT_TYPE, JSON)]);
        let response = client.post(server.tool_url(tool), headers, json.clone()).await?;
        let body = client.read_body(response, ANSWER_BYTES_MAX).await?;
        serde_json::from_slice(&body).map_err(|error| client.invalid_response(&format!("it is not JSON: {error}")))
    };
    let answered = run_until_cancelled(stop, client.retry(attempt)).await;
    answered.map_err(|error| match error {
        FetchError::ResultNotFound { subject, message } => {
            FetchError::RequestRejected { subject, status: 404, message }
        }
        error => error,
    })
}

/// The answer to a query contains only a preview of the rows.
const QUERY_ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A query for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteQuery {
    /// The SQL statement.
    pub sql: String,
    /// Database of the statement; may be left out if the server has only one.
    pub database: Option<String>,
}

/// Starts a query on `server` and returns the address of its result. The query continues on the server.
///
/// A request that the server may have received is not sent again: the query would run twice.
///
/// # Errors
/// Fails if the server is unreachable or refuses the query.
pub async fn start_query(
    server: &ResultServer,
    query: &RemoteQuery,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<ResultAddress, FetchError> {
    let credential = ResultCredential::new(None, options.bearer.as_ref());
    let client = ResultClient::new(server.to_string(), credential, options)?;
    let mut body = json!({"sql": query.sql, "delivery": "blocks"});
    if let Some(database) = &query.database {
        body["database"] = database.as_str().into();
    }
    let json = body.to_string();
    let attempt = async || match start_query_once(&client, server.sql_url(), &json).await {
        Err(RequestFailure::Transient { refused_call: Some((status, message)), .. }) => {
            let subject = client.subject().to_owned();
            Err(RequestFailure::Permanent(FetchError::RequestRejected { subject, status, message }))
        }
        Err(RequestFailure::Transient { reason, may_have_been_received: true, .. }) => {
            let subject = client.subject().to_owned();
            Err(RequestFailure::Permanent(FetchError::ResponseLost { subject, reason }))
        }
        started => started,
    };
    let started = run_until_cancelled(stop, client.retry(attempt)).await;
    started.map(|id| server.result(id)).map_err(|error| match error {
        FetchError::ResultNotFound { subject, message } => FetchError::path_not_found(subject, message),
        error => error,
    })
}

async fn start_query_once(client: &ResultClient, url: Url, json: &str) -> Result<Uuid, RequestFailure> {
    let headers = HeaderMap::from_iter([(ACCEPT, JSON), (CONTENT_TYPE, JSON)]);
    let response = client.post(url, headers, json.to_owned()).await?;
    let body = client.read_body(response, QUERY_ANSWER_BYTES_MAX).await?;
    let answer: Value =
        serde_json::from_slice(&body).map_err(|error| client.invalid_response(&format!("it is not JSON: {error}")))?;
    let id = answer["structured"]["id"].as_str().and_then(|id| Uuid::try_parse(id).ok());
    id.ok_or_else(|| client.invalid_response("it contains no stored result"))
}

const STATES_BYTES_MAX: usize = 64 * 1024;

/// A change of the transports of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportChange<'a> {
    /// The name of the transports.
    pub name: &'a str,
    /// Whether they run from now on.
    pub is_running: bool,
}

/// The transports of `server` and their states, after `change` if there is one.
///
/// # Errors
/// Fails if the server is unreachable or refuses the request.
pub async fn control_transports(
    server: &ResultServer,
    change: Option<TransportChange<'_>>,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<Vec<(String, String)>, FetchError> {
    let credential = ResultCredential::new(None, options.bearer.as_ref());
    let client = ResultClient::new(server.to_string(), credential, options)?;
    let headers = || HeaderMap::from_iter([(ACCEPT, JSON), (CONTENT_TYPE, JSON)]);
    let attempt = async || {
        let response = match change {
            None => client.get(server.transports_url(None), headers()).await?,
            Some(change) => client.post(server.transports_url(Some(change)), headers(), String::new()).await?,
        };
        let body = client.read_body(response, STATES_BYTES_MAX).await?;
        parse_states(&body).ok_or_else(|| client.invalid_response("it is no list of transports"))
    };
    let answered = run_until_cancelled(stop, client.retry(attempt)).await;
    answered.map_err(|error| match error {
        FetchError::ResultNotFound { subject, message } => FetchError::path_not_found(subject, message),
        error => error,
    })
}

fn parse_states(body: &[u8]) -> Option<Vec<(String, String)>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let states = answer["transports"].as_array()?.iter().map(|transport| {
        let text = |member: &str| transport[member].as_str().map(sanitize);
        Some((text("name")?, text("state")?))
    });
    states.collect()
}
