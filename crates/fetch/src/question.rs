//! A question to a server whose answer becomes a stored result.

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::access::Access;
use crate::address::{ResultAddress, Server};
use crate::client::Client;
use crate::download::until;
use crate::error::FetchError;
use crate::options::FetchOptions;
use crate::refusal::Trouble;

/// Larger answers are no previews, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One statement of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The statement.
    pub sql: String,
    /// The database to ask, where there are several.
    pub database: Option<String>,
}

/// Asks `server`, which writes the answer down while it runs on, and tells where the result is.
///
/// A question that may have been heard is not asked again: its work would be done twice.
///
/// # Errors
/// When the server cannot be reached, or refuses the question.
pub async fn ask(
    server: &Server,
    question: &Question,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<ResultAddress, FetchError> {
    let access = Access::new(None, options.bearer.as_ref());
    let client = Client::new(server.to_string(), access, options)?;
    let json = question.json();
    let asking = async {
        let mut patience = client.patience();
        loop {
            match ask_once(&client, server.sql(), &json).await {
                Ok(id) => return Ok(server.result(id)),
                Err(Trouble::Passing { reason, was_heard: true, .. }) => {
                    let subject = client.subject().to_owned();
                    return Err(FetchError::Unanswered { subject, reason });
                }
                Err(trouble) => patience.after(trouble).await?,
            }
        }
    };
    until(stop, asking).await.map_err(|error| match error {
        FetchError::NoSuchResult { subject, words } => FetchError::NoRest { subject, status: 404, words },
        error => error,
    })
}

async fn ask_once(client: &Client, url: Url, json: &str) -> Result<Uuid, Trouble> {
    let headers = HeaderMap::from_iter([(ACCEPT, JSON), (CONTENT_TYPE, JSON)]);
    let response = client.post(url, headers, json.to_owned()).await?;
    let body = client.body(response, ANSWER_BYTES_MAX).await?;
    let answer: Value = serde_json::from_slice(&body)
        .map_err(|error| Trouble::Final(client.garbage(&format!("it is no JSON: {error}"))))?;
    let id = answer["structured"]["id"].as_str().and_then(|id| Uuid::try_parse(id).ok());
    id.ok_or_else(|| Trouble::Final(client.garbage("it names no stored result")))
}

impl Question {
    fn json(&self) -> String {
        let mut body = Map::new();
        body.insert("sql".to_owned(), self.sql.as_str().into());
        body.extend(self.database.as_deref().map(|database| ("database".to_owned(), database.into())));
        body.insert("delivery".to_owned(), "blocks".into());
        Value::Object(body).to_string()
    }
}
