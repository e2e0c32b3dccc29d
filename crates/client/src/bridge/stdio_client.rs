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

use super::options::BridgeOptions;
use super::output::Output;
use super::request::{ClientRequest, ModernMetadata, PendingRequestGuard, PendingRequests, ServerTransport};

/// Maximum number of concurrent messages; reading stops while they are open.
const MESSAGES_MAX: usize = 512;
const END_WITHIN: Duration = Duration::from_secs(1);

pub(super) struct StdioClient {
    transport: Arc<dyn ServerTransport>,
    output: Output,
    options: Arc<BridgeOptions>,
    requests: Arc<PendingRequests>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Fires when the latest step of the handshake is complete. Later messages wait for it.
    handshake_done: CancellationToken,
    ended: CancellationToken,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Box<RawValue>,
}

impl StdioClient {
    pub(super) fn new(transport: Arc<dyn ServerTransport>, output: Output, options: Arc<BridgeOptions>) -> Self {
        let handshake_done = CancellationToken::new();
        handshake_done.cancel();
        Self {
            transport,
            output,
            options,
            requests: Arc::default(),
            permits: Arc::new(Semaphore::new(MESSAGES_MAX)),
            tasks: TaskTracker::new(),
            handshake_done,
            ended: CancellationToken::new(),
        }
    }

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
        self.requests.end_streams();
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
                let step = self.begin_handshake_step();
                self.spawn_request(ClientRequest::new(line, &request), Some(step)).await;
            }
            Ok(IncomingMessage::Request(request)) => self.spawn_request(ClientRequest::new(line, &request), None).await,
            Ok(IncomingMessage::Notification(notification)) => self.receive_notification(line, &notification).await,
            Ok(IncomingMessage::Response(_)) => self.spawn_notification(line, None).await,
            Ok(IncomingMessage::Batch(messages)) => {
                let request = ClientRequest::from_batch(line, &messages);
                if request.ids.is_empty() {
                    self.spawn_notification(request.line, None).await;
                } else {
                    self.spawn_request(request, None).await;
                }
            }
            Err(rejection) => self.output.refuse(rejection.id.as_ref(), &rejection.error).await,
        }
    }

    async fn receive_notification(&mut self, line: Bytes, notification: &RpcNotification) {
        match notification.method.as_str() {
            "notifications/cancelled" => self.cancel_request(line, notification).await,
            "notifications/initialized" => {
                let (previous, step) = self.begin_handshake_step();
                let transport = self.transport.clone();
                self.spawn(async move {
                    previous.cancelled().await;
                    transport.initialized(line).await;
                    drop(step);
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

    async fn cancel_request(&self, line: Bytes, notification: &RpcNotification) {
        let Ok(params) = notification.params::<CancelledParams>() else { return };
        let Some((state, is_modern)) = self.requests.cancel(params.request_id.get()) else { return };
        if !state.may_have_been_sent() || self.transport.cancels_by_dropping(is_modern) {
            return state.ended.cancel();
        }
        let transport = self.transport.clone();
        self.spawn(async move {
            transport.notify(&line, None).await;
            state.ended.cancel();
        })
        .await;
    }

    /// Forwards a request; with `step` it is the client's handshake.
    async fn spawn_request(&self, request: ClientRequest, step: Option<(CancellationToken, DropGuard)>) {
        let pending = match self.requests.add(&request) {
            Ok(pending) => pending,
            Err(error) => return self.output.refuse(request.ids.first(), &error).await,
        };
        let (transport, output, options) = (self.transport.clone(), self.output.clone(), self.options.clone());
        let task = RequestTask { transport, output, options, _pending: pending };
        let settled = self.handshake_done.clone();
        self.spawn(async move {
            match step {
                Some((previous, _step)) => task.run(&request, previous, true).await,
                None => task.run(&request, settled, false).await,
            }
        })
        .await;
    }

    async fn spawn_notification(&self, line: Bytes, modern: Option<ModernMetadata>) {
        let (transport, settled) = (self.transport.clone(), self.handshake_done.clone());
        self.spawn(async move {
            settled.cancelled().await;
            transport.notify(&line, modern.as_ref()).await;
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

struct RequestTask {
    transport: Arc<dyn ServerTransport>,
    output: Output,
    options: Arc<BridgeOptions>,
    _pending: PendingRequestGuard,
}

impl RequestTask {
    /// Sends the request once `settled` fires, and reports a failure to the client unless it cancelled the request.
    async fn run(self, request: &ClientRequest, settled: CancellationToken, is_handshake: bool) {
        let exchange = async {
            // Modern requests have no handshake.
            if request.modern.is_none() {
                settled.cancelled().await;
            }
            if is_handshake { self.transport.initialize(request).await } else { self.transport.send(request).await }
        };
        let result = tokio::select! {
            biased;
            () = request.state.ended.cancelled() => return,
            result = exchange => result,
        };
        if let Err(failure) = result
            && !request.state.is_cancelled()
        {
            let error = failure.to_rpc_error(&self.options.address);
            for id in &request.ids {
                self.output.refuse(Some(id), &error).await;
            }
        }
    }
}
