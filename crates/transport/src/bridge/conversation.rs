//! The client's side: reads its lines, and gives each to the link in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_mcp::{Incoming, Notification, Request, RpcError, decode};
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::BridgeOptions;
use super::calls::{Calls, OpenGuard};
use super::failure::Failure;
use super::link::Link;
use super::output::Output;
use super::request::{Call, Modern};
use crate::lines::{Line, read_line};

/// Messages that are passed on at the same time; reading stops beyond them.
const MESSAGES_MAX: usize = 512;
/// How long calls that were told to end may take to do so.
const END_WITHIN: Duration = Duration::from_secs(1);

/// One client.
pub(super) struct Conversation {
    link: Arc<Link>,
    output: Output,
    options: Arc<BridgeOptions>,
    calls: Arc<Calls>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Fires when the part of the handshake that came last is done with: what comes after it waits.
    settled: CancellationToken,
    /// Fires when nothing is to be waited for any more.
    ended: CancellationToken,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Box<RawValue>,
}

impl Conversation {
    pub(super) fn new(link: Arc<Link>, output: Output, options: Arc<BridgeOptions>) -> Self {
        let settled = CancellationToken::new();
        settled.cancel();
        Self {
            link,
            output,
            options,
            calls: Arc::default(),
            places: Arc::new(Semaphore::new(MESSAGES_MAX)),
            tasks: TaskTracker::new(),
            settled,
            ended: CancellationToken::new(),
        }
    }

    /// Reads until the client closes its side or hangs up.
    pub(super) async fn read_until_end(&mut self, reader: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let mut reader = BufReader::new(reader);
        let output = self.output.clone();
        let mut line = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = output.closed() => {
                    self.ended.cancel();
                    return Ok(());
                }
                read = read_line(&mut reader, &mut line, self.options.message_bytes_max) => {
                    match read? {
                        Line::End => return Ok(()),
                        Line::TooLong => self.refuse_long_line().await,
                        Line::Whole => self.hear(Bytes::from(std::mem::take(&mut line))).await,
                    }
                    line.clear();
                }
            }
        }
    }

    /// Lets open calls end within the bound, then gives them up. Nobody waits for streams of notifications.
    pub(super) async fn drain(self) {
        self.tasks.close();
        self.calls.end_streams();
        let drained = async {
            tokio::select! {
                () = self.tasks.wait() => {}
                () = self.ended.cancelled() => {}
                // Nobody is left to hear an answer.
                () = self.output.closed() => {}
            }
        };
        let _ = tokio::time::timeout(self.options.drain_within, drained).await;
        self.ended.cancel();
        // A task may still wait for an output that nobody reads.
        let _ = tokio::time::timeout(END_WITHIN, self.tasks.wait()).await;
    }

    async fn hear(&mut self, line: Bytes) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match decode(&line) {
            Ok(Incoming::Request(request)) if is_handshake(&request) => {
                let call = Call::of_request(line, &request);
                let settling = self.next_settling();
                self.spawn_call(call, Some(settling)).await;
            }
            Ok(Incoming::Request(request)) => self.spawn_call(Call::of_request(line, &request), None).await,
            Ok(Incoming::Notification(notification)) => self.hear_notification(line, &notification).await,
            Ok(Incoming::Response(_)) => self.spawn_notification(line, None).await,
            Ok(Incoming::Batch(messages)) => {
                let call = Call::of_batch(line, &messages);
                if call.ids.is_empty() {
                    self.spawn_notification(call.line, None).await;
                } else {
                    self.spawn_call(call, None).await;
                }
            }
            Err(rejection) => self.output.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    async fn hear_notification(&mut self, line: Bytes, notification: &Notification) {
        match notification.method.as_str() {
            "notifications/cancelled" => self.take_back(line, notification).await,
            "notifications/initialized" => {
                let (before, settling) = self.next_settling();
                let link = self.link.clone();
                self.spawn(async move {
                    before.cancelled().await;
                    link.initialized(line).await;
                    drop(settling);
                })
                .await;
            }
            _ => self.spawn_notification(line, Modern::of_notification(notification)).await,
        }
    }

    /// A part of the handshake: what it waits for, and what keeps all that comes later waiting.
    fn next_settling(&mut self) -> (CancellationToken, DropGuard) {
        let mine = CancellationToken::new();
        let before = std::mem::replace(&mut self.settled, mine.clone());
        (before, mine.drop_guard())
    }

    async fn take_back(&self, line: Bytes, notification: &Notification) {
        let Ok(params) = notification.params::<CancelledParams>() else { return };
        let Some((call, is_modern)) = self.calls.take_back(params.request_id.get()) else { return };
        if !call.is_under_way() || self.link.cancels_by_dropping(is_modern) {
            return call.ended.cancel();
        }
        let link = self.link.clone();
        self.spawn(async move {
            link.notify(&line, None).await;
            call.ended.cancel();
        })
        .await;
    }

    /// Passes a call on; with `settling` it is the client's handshake.
    async fn spawn_call(&self, call: Call, settling: Option<(CancellationToken, DropGuard)>) {
        let open = match self.calls.open(&call) {
            Ok(open) => open,
            Err(error) => return self.output.refuse(call.ids.first(), &error).await,
        };
        let (link, output, options) = (self.link.clone(), self.output.clone(), self.options.clone());
        let task = CallTask { link, output, options, _open: open };
        let settled = self.settled.clone();
        self.spawn(async move {
            match settling {
                Some((before, _settling)) => task.run(&call, before, true).await,
                None => task.run(&call, settled, false).await,
            }
        })
        .await;
    }

    async fn spawn_notification(&self, line: Bytes, modern: Option<Modern>) {
        let (link, settled) = (self.link.clone(), self.settled.clone());
        self.spawn(async move {
            settled.cancelled().await;
            link.notify(&line, modern.as_ref()).await;
        })
        .await;
    }

    /// Runs `work` when there is a place for it, until it is done or nothing is waited for any more.
    async fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The semaphore is never closed.
        let Ok(place) = self.places.clone().acquire_owned().await else { return };
        let ended = self.ended.clone();
        self.tasks.spawn(async move {
            let _place: OwnedSemaphorePermit = place;
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = work => {}
            }
        });
    }

    async fn refuse_long_line(&self) {
        let message = format!("Invalid request: the message is longer than {} bytes", self.options.message_bytes_max);
        self.output.refuse(None, &RpcError::invalid_request(message)).await;
    }
}

fn is_handshake(request: &Request) -> bool {
    request.method == "initialize" && request.meta.protocol_version.is_none()
}

/// What the task of one call needs.
struct CallTask {
    link: Arc<Link>,
    output: Output,
    options: Arc<BridgeOptions>,
    _open: OpenGuard,
}

impl CallTask {
    /// Makes the call once `settled` fires, and tells the client what became of it, unless it took the call back.
    async fn run(self, call: &Call, settled: CancellationToken, is_handshake: bool) {
        let made = async {
            // Modern requests know no handshake.
            if call.modern.is_none() {
                settled.cancelled().await;
            }
            if is_handshake { self.link.shake_hands(call).await } else { self.link.call(call).await }
        };
        let made = tokio::select! {
            biased;
            () = call.open.ended.cancelled() => return,
            made = made => made,
        };
        if let Err(failure) = made
            && !call.open.is_taken_back()
        {
            self.fail(call, &failure).await;
        }
    }

    async fn fail(&self, call: &Call, failure: &Failure) {
        let error = failure.to_error(&self.options.address);
        for id in &call.ids {
            self.output.refuse(Some(id), &error).await;
        }
    }
}
