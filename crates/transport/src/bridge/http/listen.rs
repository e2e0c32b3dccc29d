//! GET: hearing what the server tells a legacy session that no request asked for.
//!
//! [MCP 2025-11-25, Listening for Messages from the Server](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server)

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};

use super::event::{Events, Item};
use super::session::{Agreed, Standing};
use super::{HttpLink, head, reason};
use crate::bridge::arriving::Arriving;
use crate::bridge::backoff::Backoff;
use crate::bridge::failure::Failure;
use crate::bridge::notice::Notice;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Servers may ask for a longer pause than this; the client waits no longer to hear of changes.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What one listener knows from the connections that it had.
#[derive(Default)]
struct Heard {
    last_id: Option<HeaderValue>,
    pause: Option<Duration>,
    /// Whether something may have been said while nobody listened.
    has_gap: bool,
    backoff: Backoff,
}

impl HttpLink {
    /// Listens to whichever session holds, until it is dropped.
    pub(in crate::bridge) async fn listen(&self) {
        let mut standings = self.session.follow();
        loop {
            let agreed = match &*standings.borrow_and_update() {
                // Before the client ended the handshake nothing is to be heard.
                Standing::Agreed(agreed) if agreed.handshake.initialized.is_some() => Some(agreed.clone()),
                _ => None,
            };
            tokio::select! {
                changed = standings.changed() => if changed.is_err() { return },
                () = self.listen_to(agreed) => if standings.changed().await.is_err() { return },
            }
        }
    }

    /// Returns when the server has nothing to tell that session.
    async fn listen_to(&self, agreed: Option<Arc<Agreed>>) {
        let Some(agreed) = agreed else { return };
        let mut heard = Heard::default();
        loop {
            let epoch = self.reach.epoch();
            let mut headers = head::listening(self.options.bearer.as_ref(), &agreed);
            headers.extend(heard.last_id.clone().map(|id| (LAST_EVENT_ID, id)));
            match self.client.get(self.options.address.url().clone()).headers(headers).send().await {
                Err(error) if error.is_connect() => {
                    self.reach.until_back(epoch, &reason(&error), &self.options).await;
                }
                Err(_) => tokio::time::sleep(heard.backoff.next_delay()).await,
                Ok(response) if response.status() == StatusCode::NOT_FOUND && agreed.session.is_some() => {
                    match self.renew(&agreed, self.deadline()).await {
                        // The new session is listened to instead.
                        Ok(_) | Err(Failure::OtherVersion { .. }) => return,
                        Err(_) => tokio::time::sleep(heard.backoff.next_delay()).await,
                    }
                }
                Ok(response) if is_event_stream(&response) => {
                    self.reach.found(&self.options);
                    heard.backoff.reset();
                    if heard.has_gap && heard.last_id.is_none() {
                        self.tell_of_lists(&agreed).await;
                    }
                    self.hear(response, &mut heard).await;
                    let pause = heard.pause.map_or_else(|| heard.backoff.next_delay(), |pause| pause.min(PAUSE_MAX));
                    tokio::time::sleep(pause).await;
                }
                // A server need not have anything to listen to; one that refuses is not asked again and again.
                Ok(_) => return,
            }
            heard.has_gap = true;
        }
    }

    /// Passes on what comes until the stream ends.
    async fn hear(&self, mut response: Response, heard: &mut Heard) {
        let mut events = Events::new();
        let mut arriving = Some(Arriving::new(self.options.answer_bytes_max));
        while let Ok(Some(piece)) = response.chunk().await {
            events.feed(piece);
            while let Some(item) = events.next() {
                match item {
                    Item::Data(data) => {
                        let Some(message) = &mut arriving else { continue };
                        if message.is_empty() && data.trim_ascii().is_empty() {
                            continue;
                        }
                        if let Err(error) = message.push(data).await {
                            self.options.tell(&Notice::Ignored(error.to_string()));
                            arriving = None;
                        }
                    }
                    Item::End => {
                        let whole = arriving.replace(Arriving::new(self.options.answer_bytes_max));
                        if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
                            self.pass_on(whole).await;
                        }
                        let id = events.last_id.as_deref().and_then(|id| HeaderValue::from_bytes(id).ok());
                        heard.last_id = id.or(heard.last_id.take());
                        heard.pause = events.retry.or(heard.pause);
                    }
                }
            }
        }
    }

    async fn pass_on(&self, whole: Arriving) {
        match whole.finish() {
            Ok(arrived) if arrived.shape.has_method => self.output.send(arrived.line).await,
            Ok(_) => self.options.tell(&Notice::Ignored("an answer that nobody waits for".to_owned())),
            Err(error) => self.options.tell(&Notice::Ignored(error.to_string())),
        }
    }
}

fn is_event_stream(response: &Response) -> bool {
    let media_type = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status().is_success() && media_type.is_some_and(|text| text.trim_start().starts_with("text/event-stream"))
}
