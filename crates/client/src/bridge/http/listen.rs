//! GET: receives the messages of the server that belong to a legacy session but to no request.
//!
//! [MCP 2025-11-25, Listening for Messages from the Server](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server)

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};

use super::answer::EventReader;
use super::session::{HandshakeState, NegotiatedSession};
use super::{HttpTransport, headers};
use crate::bridge::error::BridgeError;
use crate::bridge::incoming::{ReceiveError, ReceivedMessage};
use crate::bridge::options::{BridgeNotice, reconnection_backoff};
use tidegate_core::Backoff;
use tidegate_http_client::innermost_cause;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Maximum reconnection delay. A server may request a longer one, but the client then receives changes too late.
const PAUSE_MAX: Duration = Duration::from_secs(30);

struct ListenProgress {
    last_id: Option<HeaderValue>,
    pause: Option<Duration>,
    has_gap: bool,
    backoff: Backoff,
}

impl HttpTransport {
    /// Listens to the current session, until it is dropped.
    pub(super) async fn listen(&self) {
        let mut states = self.session.subscribe();
        loop {
            let session = match &*states.borrow_and_update() {
                // Nothing is sent before the client has completed the handshake.
                HandshakeState::Negotiated(session) if session.handshake.initialized.is_some() => Some(session.clone()),
                _ => None,
            };
            tokio::select! {
                changed = states.changed() => if changed.is_err() { return },
                () = self.listen_to_session(session) => if states.changed().await.is_err() { return },
            }
        }
    }

    /// Returns when the server offers no event stream for that session.
    async fn listen_to_session(&self, session: Option<Arc<NegotiatedSession>>) {
        let Some(session) = session else { return };
        let mut progress =
            ListenProgress { last_id: None, pause: None, has_gap: false, backoff: reconnection_backoff() };
        loop {
            let epoch = self.reachability.epoch();
            let mut headers = headers::listen_headers(self.options.bearer.as_ref(), &session);
            headers.extend(progress.last_id.clone().map(|id| (LAST_EVENT_ID, id)));
            match self.client.get(self.options.address.url().clone()).headers(headers).send().await {
                Err(error) if error.is_connect() => {
                    self.reachability.wait_until_reachable(epoch, &innermost_cause(&error), &self.options).await;
                }
                Err(_) => tokio::time::sleep(progress.backoff.next_delay()).await,
                Ok(response) if response.status() == StatusCode::NOT_FOUND && session.id.is_some() => {
                    match self.renew_session(&session, self.deadline()).await {
                        // The listener switches to the new session.
                        Ok(_) | Err(BridgeError::VersionChanged { .. }) => return,
                        Err(_) => tokio::time::sleep(progress.backoff.next_delay()).await,
                    }
                }
                Ok(response) if is_event_stream(&response) => {
                    self.reachability.mark_reachable(&self.options);
                    progress.backoff.reset();
                    if progress.has_gap && progress.last_id.is_none() {
                        self.notify_lists_changed(&session).await;
                    }
                    self.forward_events(response, &mut progress).await;
                    let pause = progress.pause.map(|pause| pause.min(PAUSE_MAX));
                    tokio::time::sleep(pause.unwrap_or_else(|| progress.backoff.next_delay())).await;
                }
                // Servers need not offer an event stream. After a refusal the bridge does not retry.
                Ok(_) => return,
            }
            progress.has_gap = true;
        }
    }

    async fn forward_events(&self, response: Response, progress: &mut ListenProgress) {
        let meter = self.meter();
        let mut events = EventReader::new(response, meter.clone());
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) | Err(ReceiveError::ConnectionLost(_)) => return,
                Err(error) => return self.options.notify(&BridgeNotice::Ignored(error.to_string())),
            };
            if let Some(data) = event.data.filter(|data| !data.trim_ascii().is_empty()) {
                self.forward_message(meter.finish(data)).await;
            }
            let id = event.id.and_then(|id| HeaderValue::try_from(id).ok());
            progress.last_id = id.or(progress.last_id.take());
            progress.pause = event.retry.map(Duration::from_millis).or(progress.pause);
        }
    }

    async fn forward_message(&self, message: Result<ReceivedMessage, ReceiveError>) {
        match message {
            Ok(message) if message.shape.has_method => self.output.send(message.line).await,
            Ok(_) => self.options.notify(&BridgeNotice::Ignored("an answer to no open request".to_owned())),
            Err(error) => self.options.notify(&BridgeNotice::Ignored(error.to_string())),
        }
    }
}

fn is_event_stream(response: &Response) -> bool {
    let media_type = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status().is_success() && media_type.is_some_and(|text| text.trim_start().starts_with("text/event-stream"))
}
