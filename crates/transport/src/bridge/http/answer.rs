//! What the server answers to a POST: one JSON document, a stream of events, or a refusal.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Events, Item};
use super::reason;
use crate::bridge::BridgeOptions;
use crate::bridge::arriving::{Arrived, Arriving, Broken};
use crate::bridge::failure::{Failure, Words};
use crate::bridge::output::Output;
use crate::bridge::request::Call;
use crate::bridge::scanner::Shape;
use crate::outbox::Outgoing;
use crate::spool::SpoolError;

/// Bytes of a refusal that are read, and for how long.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

/// What is needed to read an answer.
pub(super) struct Receiver<'a> {
    pub(super) options: &'a BridgeOptions,
    pub(super) output: &'a Output,
}

#[derive(Deserialize)]
struct Refusal<'a> {
    #[serde(borrow)]
    error: &'a RawValue,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

impl Receiver<'_> {
    /// The answer to `call`. What the server says before it goes to the client at once.
    pub(super) async fn receive(&self, response: Response, call: &Call) -> Result<Arrived, Failure> {
        let status = response.status();
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_for_the_caller = !matches!(status.as_u16(), 300..=399 | 401 | 403);
        match media_type.as_str() {
            "text/event-stream" if status.is_success() => self.receive_events(response, call).await,
            "application/json" if is_for_the_caller => self.receive_json(response, call).await,
            _ if status.is_success() => {
                let what = format!("to a request it gave {status} and {media_type:?}, not JSON and no events");
                Err(Failure::Garbage { what })
            }
            _ => Err(self.refusal(response).await),
        }
    }

    async fn receive_json(&self, response: Response, call: &Call) -> Result<Arrived, Failure> {
        let status = response.status();
        match self.read_json(response).await.and_then(|arrived| judge(arrived, call)) {
            // What is no answer says no more than its status does.
            Err(Failure::Garbage { .. }) if !status.is_success() => Err(self.failure_of(status, Words::default())),
            judged => judged,
        }
    }

    async fn read_json(&self, mut response: Response) -> Result<Arrived, Failure> {
        let mut arriving = Arriving::new(self.options.answer_bytes_max);
        while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
            arriving.push(piece).await.map_err(|error| self.broken(error))?;
        }
        arriving.finish().map_err(|error| self.broken(error.into()))
    }

    async fn receive_events(&self, mut response: Response, call: &Call) -> Result<Arrived, Failure> {
        let mut events = Events::new();
        let mut arriving = Arriving::new(self.options.answer_bytes_max);
        let mut open = call.ids.clone();
        while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
            events.feed(piece);
            while let Some(item) = events.next() {
                match item {
                    Item::Data(data) if arriving.is_empty() && data.trim_ascii().is_empty() => {}
                    Item::Data(data) => arriving.push(data).await.map_err(|error| self.broken(error))?,
                    Item::End if arriving.is_empty() => {}
                    Item::End => {
                        let whole = std::mem::replace(&mut arriving, Arriving::new(self.options.answer_bytes_max));
                        let arrived = whole.finish().map_err(|error| self.broken(error.into()))?;
                        if !arrived.shape.is_batch && arrived.shape.has_method {
                            self.output.send(arrived.line).await;
                            continue;
                        }
                        let arrived = judge(arrived, call)?;
                        let answered = arrived.shape.id.as_deref().and_then(|id| call.position_of(id));
                        open.retain(|id| answered.is_none_or(|position| *id != call.ids[position]));
                        if open.is_empty() || arrived.shape.is_batch || answered.is_none() {
                            return Ok(arrived);
                        }
                        self.output.send(arrived.line).await;
                    }
                }
            }
        }
        Err(Failure::Garbage { what: "its stream of events ended without an answer".to_owned() })
    }

    /// Why a response is no answer, in the server's own words where it has some.
    async fn refusal(&self, mut response: Response) -> Failure {
        let status = response.status();
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(piece)) = response.chunk().await {
                let room = REFUSAL_BYTES_MAX - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if body.len() == REFUSAL_BYTES_MAX {
                    break;
                }
            }
        };
        // Half a refusal says enough.
        let _ = tokio::time::timeout(REFUSAL_WITHIN, reading).await;
        let said = serde_json::from_slice::<Refusal<'_>>(&body)
            .ok()
            .and_then(|refusal| serde_json::from_str::<Message>(refusal.error.get()).ok())
            .map(|error| error.message);
        self.failure_of(status, said.map_or_else(Words::default, |said| self.words(&said)))
    }

    fn words(&self, said: &str) -> Words {
        Words::new(said, self.options.bearer.as_ref())
    }

    fn failure_of(&self, status: StatusCode, words: Words) -> Failure {
        let code = status.as_u16();
        match code {
            401 if self.options.bearer.is_some() => Failure::WrongToken { words },
            401 => Failure::NoToken { words },
            403 => Failure::Forbidden { words },
            404 | 405 => Failure::NoEndpoint { status: code, usual_path: self.options.address.usual_path(), words },
            300..=399 => Failure::Redirects { status: code },
            500.. => Failure::Failed { status: code, words },
            _ => Failure::Refused { status: code, words },
        }
    }

    fn broken(&self, broken: Broken) -> Failure {
        match broken {
            Broken::Malformed(malformed) => Failure::Garbage { what: malformed.to_string() },
            Broken::Spool(SpoolError::TooLarge(bytes)) => {
                Failure::TooLarge { what: format!("the answer is larger than {bytes} bytes, the bound of the bridge") }
            }
            Broken::Spool(SpoolError::Io(error)) => {
                // A disk that is full is the operator's affair, and the answer does not arrive for it.
                Failure::TooLarge { what: format!("the bridge cannot keep the answer: {error}") }
            }
        }
    }
}

fn lost(error: &reqwest::Error) -> Failure {
    Failure::Lost { reason: reason(error) }
}

/// Lets a message pass that answers `call`. A refusal without an id means this call, the only one of its POST.
fn judge(arrived: Arrived, call: &Call) -> Result<Arrived, Failure> {
    let shape = &arrived.shape;
    if shape.is_batch {
        return if call.is_batch { Ok(arrived) } else { Err(garbage("it is a batch, to a single request")) };
    }
    if !shape.is_answer() {
        return Err(garbage("it is no answer of JSON-RPC"));
    }
    match &shape.id {
        Some(id) if call.position_of(id).is_some() => Ok(arrived),
        Some(id) => {
            let asked: Vec<&str> = call.ids.iter().map(tidegate_mcp::RequestId::as_json).collect();
            Err(garbage(&format!(
                "it has the id {}, and the request {}",
                Words::new(id, None).text(),
                asked.join(", ")
            )))
        }
        None if shape.has_error && call.is_batch => Ok(arrived),
        None => {
            let refusal = arrived.bytes().and_then(|bytes| serde_json::from_slice::<Refusal<'_>>(bytes).ok());
            let (Some(refusal), Some(id)) = (refusal, call.ids.first()) else { return Err(garbage("it has no id")) };
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}", id.as_json(), refusal.error.get());
            let shape = Shape { id: Some(id.as_json().to_owned()), ..arrived.shape.clone() };
            Ok(Arrived { shape, line: Outgoing::Whole(Bytes::from(line)) })
        }
    }
}

fn garbage(what: &str) -> Failure {
    Failure::Garbage { what: what.to_owned() }
}
