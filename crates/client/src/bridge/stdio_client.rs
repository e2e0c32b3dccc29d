//! The client side: reads lines, and forwards each message in its own task.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_mcp::{IncomingMessage, ReadLine, RpcError, RpcNotification, RpcRequest, decode, read_line};
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::BridgeOptions;
use super::call::{ClientCallGuard, OpenCalls};
use super::error::BridgeError;
use super::link::ServerLink;
use super::output::Output;
use crate::bridge::call::{ClientCall, ModernMetadata};

/// Maximum number of concurrent messages; reading stops while they are open.
const MESSAGES_MAX: usize = 512;
/// Time limit for cancelled calls to end.
const END_WITHIN: Duration = Duration::from_secs(1);

/// One client.
pub(super) struct StdioClient {
    link: Arc<dyn ServerLink>,
    output: Output,
    options: Arc<BridgeOptions>,
    calls: Arc<OpenCalls>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Fires when the latest step of the handshake is complete. Later messages wait for it.
    handshake_done: CancellationToken,
    /// Fires when waiting ends.
    ended: CancellationToken,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Box<RawValue>,
}

impl StdioClient {
    pub(super) fn new(link: Arc<dyn ServerLink>, output: Output, options: Arc<BridgeOptions>) -> Self {
        let handshake_done = CancellationToken::new();
        handshake_done.cancel();
        Self {
            link,
            output,
            options,
            calls: Arc::default(),
            permits: Arc::new(Semaphore::new(MESSAGES_MAX)),
            tasks: TaskTracker::new(),
            handshake_done,
            ended: CancellationToken::new(),
        }
    }

    /// Reads until the client closes its side or disconnects.
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
                        ReadLine::End => return Ok(()),
                        ReadLine::TooLong => self.refuse_long_line().await,
                        ReadLine::Whole => self.receive_line(Bytes::from(std::mem::take(&mut line))).await,
                    }
                    line.clear();
                }
            }
        }
    }

    /// Waits up to `drain_within` for open calls, then drops them. Notification streams end immediately.
    pub(super) async fn drain(self) {
        self.tasks.close();
        self.calls.end_streams();
        let drained = async {
            tokio::select! {
                () = self.tasks.wait() => {}
                () = self.ended.cancelled() => {}
                // The client has disconnected.
                () = self.output.closed() => {}
            }
        };
        let _ = tokio::time::timeout(self.options.drain_within, drained).await;
        self.ended.cancel();
        // A task may still wait for an output that is not read.
        let _ = tokio::time::timeout(END_WITHIN, self.tasks.wait()).await;
    }

    async fn receive_line(&mut self, line: Bytes) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match decode(&line) {
            Ok(IncomingMessage::Request(request)) if is_initialize(&request) => {
                let call = ClientCall::from_request(line, &request);
                let settling = self.begin_handshake_step();
                self.spawn_call(call, Some(settling)).await;
            }
            Ok(IncomingMessage::Request(request)) => {
                self.spawn_call(ClientCall::from_request(line, &request), None).await
            }
            Ok(IncomingMessage::Notification(notification)) => self.receive_notification(line, &notification).await,
            Ok(IncomingMessage::Response(_)) => self.spawn_notification(line, None).await,
            Ok(IncomingMessage::Batch(messages)) => {
                let call = ClientCall::from_batch(line, &messages);
                if call.ids.is_empty() {
                    self.spawn_notification(call.line, None).await;
                } else {
                    self.spawn_call(call, None).await;
                }
            }
            Err(rejection) => self.output.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    async fn receive_notification(&mut self, line: Bytes, notification: &RpcNotification) {
        match notification.method.as_str() {
            "notifications/cancelled" => self.cancel_call(line, notification).await,
            "notifications/initialized" => {
                let (before, settling) = self.begin_handshake_step();
                let link = self.link.clone();
                self.spawn(async move {
                    before.cancelled().await;
                    link.initialized(line).await;
                    drop(settling);
                })
                .await;
            }
            _ => self.spawn_notification(line, ModernMetadata::from_notification(notification)).await,
        }
    }

    /// Begins a step of the handshake: the previous step to wait for, and a guard that delays all later messages.
    fn begin_handshake_step(&mut self) -> (CancellationToken, DropGuard) {
        let mine = CancellationToken::new();
        let before = std::mem::replace(&mut self.handshake_done, mine.clone());
        (before, mine.drop_guard())
    }

    async fn cancel_call(&self, line: Bytes, notification: &RpcNotification) {
        let Ok(params) = notification.params::<CancelledParams>() else { return };
        let Some((call, is_modern)) = self.calls.cancel(params.request_id.get()) else { return };
        if !call.may_have_been_sent() || self.link.cancels_by_dropping(is_modern) {
            return call.ended.cancel();
        }
        let link = self.link.clone();
        self.spawn(async move {
            link.notify(&line, None).await;
            call.ended.cancel();
        })
        .await;
    }

    /// Forwards a call; with `settling` it is the client's handshake.
    async fn spawn_call(&self, call: ClientCall, settling: Option<(CancellationToken, DropGuard)>) {
        let open = match self.calls.open(&call) {
            Ok(open) => open,
            Err(error) => return self.output.refuse(call.ids.first(), &error).await,
        };
        let (link, output, options) = (self.link.clone(), self.output.clone(), self.options.clone());
        let task = CallTask { link, output, options, _open: open };
        let settled = self.handshake_done.clone();
        self.spawn(async move {
            match settling {
                Some((before, _settling)) => task.run(&call, before, true).await,
                None => task.run(&call, settled, false).await,
            }
        })
        .await;
    }

    async fn spawn_notification(&self, line: Bytes, modern: Option<ModernMetadata>) {
        let (link, settled) = (self.link.clone(), self.handshake_done.clone());
        self.spawn(async move {
            settled.cancelled().await;
            link.notify(&line, modern.as_ref()).await;
        })
        .await;
    }

    /// Runs `work` in a task once a permit is available, until it ends or waiting ends.
    async fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The semaphore is never closed.
        let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
        let ended = self.ended.clone();
        self.tasks.spawn(async move {
            let _permit: OwnedSemaphorePermit = permit;
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

fn is_initialize(request: &RpcRequest) -> bool {
    request.method == "initialize" && request.meta.protocol_version.is_none()
}

/// The context of the task of one call.
struct CallTask {
    link: Arc<dyn ServerLink>,
    output: Output,
    options: Arc<BridgeOptions>,
    _open: ClientCallGuard,
}

impl CallTask {
    /// Makes the call once `settled` fires, and reports a failure to the client unless it cancelled the call.
    async fn run(self, call: &ClientCall, settled: CancellationToken, is_handshake: bool) {
        let made = async {
            // Modern requests have no handshake.
            if call.modern.is_none() {
                settled.cancelled().await;
            }
            if is_handshake { self.link.initialize(call).await } else { self.link.call(call).await }
        };
        let made = tokio::select! {
            biased;
            () = call.open.ended.cancelled() => return,
            made = made => made,
        };
        if let Err(failure) = made
            && !call.open.is_cancelled()
        {
            self.send_error(call, &failure).await;
        }
    }

    async fn send_error(&self, call: &ClientCall, failure: &BridgeError) {
        let error = failure.to_rpc_error(&self.options.address);
        for id in &call.ids {
            self.output.refuse(Some(id), &error).await;
        }
    }
}
