//! Stops and starts transports of a running server, and reads their state.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::address::ResultServer;
use super::client::{ResultClient, ResultCredential};
use super::download::run_until_cancelled;
use super::error::FetchError;
use crate::fetch::FetchOptions;
use crate::refusal::sanitize;

const ANSWER_BYTES_MAX: usize = 64 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

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
        let body = client.read_body(response, ANSWER_BYTES_MAX).await?;
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
