//! Starts a query on a server, which writes its answer to a stored result.

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::address::{ResultAddress, ResultServer};
use super::client::{RequestFailure, ResultClient, ResultCredential};
use super::download::run_until_cancelled;
use super::error::FetchError;
use crate::fetch::FetchOptions;

/// Maximum size of the response, in bytes; it contains only a preview of the rows.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

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
    let body = client.read_body(response, ANSWER_BYTES_MAX).await?;
    let answer: Value =
        serde_json::from_slice(&body).map_err(|error| client.invalid_response(&format!("it is not JSON: {error}")))?;
    let id = answer["structured"]["id"].as_str().and_then(|id| Uuid::try_parse(id).ok());
    id.ok_or_else(|| client.invalid_response("it contains no stored result"))
}
