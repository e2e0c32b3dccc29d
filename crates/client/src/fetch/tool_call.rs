//! Calls a tool of a server whose answer is one JSON value.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::address::ResultServer;
use super::client::{ResultClient, ResultCredential};
use super::download::run_until_cancelled;
use super::error::FetchError;
use crate::fetch::FetchOptions;

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
