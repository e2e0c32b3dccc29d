//! MCP over the standard streams: one message a line, nothing else on the output.
//!
//! [MCP 2026-07-28, stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio)

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_core::event::Event;
use tidegate_core::{Allowed, Authenticator, Caller, LetEverybodyIn, Origin, Toolset, TransportKind};
use tidegate_mcp::{RpcError, Service, decode};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::batch::{Identity, changing};
use crate::conversation::{Bounds, Conversation};
use crate::lines::{Line, read_line, write_line};
use crate::outbox::Outbox;

/// Messages that wait for the output; more of them make their calls wait.
const OUTGOING_MAX: usize = 64;
/// Requests that are answered at the same time; reading stops beyond them.
const REQUESTS_MAX: usize = 512;
/// Stock clients refuse longer lines than 10 MiB. Rows are counted before they are escaped, which
/// at most doubles them but for control characters.
const CARRIED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often it is looked whether gate and registry belong together, which takes a moment while both change.
const TRIES_MAX: usize = 10_000;

/// Whose connection it is, and its bounds.
#[derive(Clone)]
pub struct StdioOptions {
    /// Says who the process's own user is.
    pub authenticator: Arc<dyn Authenticator>,
    /// The name of the toolset that is served; none for the whole registry.
    pub toolset: Option<String>,
    /// Longer messages of the client are refused, in bytes.
    pub message_bytes_max: usize,
    /// Longer answers are refused, in bytes; they wait on disk until they are complete.
    pub answer_bytes_max: u64,
    /// How long running calls may take to end after the client closed its side.
    pub drain_within: Duration,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            authenticator: Arc::new(LetEverybodyIn),
            toolset: None,
            message_bytes_max: 4 * 1024 * 1024,
            answer_bytes_max: 16 * 1024 * 1024 * 1024,
            drain_within: Duration::from_secs(10),
        }
    }
}

/// Serves one client until it closes its side or `shutdown` fires, then lets running calls end
/// within the bound.
///
/// # Errors
/// When a stream breaks. A client that hangs up is no error.
pub async fn serve(
    service: Arc<Service>,
    reader: impl tokio::io::AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    options: StdioOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let transport = TransportKind::Stdio;
    service.registry().events().tell(Event::ConnectionOpened { transport });
    let bounds = Bounds {
        requests_max: REQUESTS_MAX,
        outgoing_max: OUTGOING_MAX,
        carried_bytes_max: CARRIED_BYTES_MAX,
        answer_bytes_max: options.answer_bytes_max,
    };
    let (conversation, outbox) = Conversation::open(service.clone(), Origin { transport, peer: None }, bounds);
    let mut writing = tokio::spawn(write_lines(outbox, writer));
    let (drain_within, message_bytes_max) = (options.drain_within, options.message_bytes_max);
    let user =
        Arc::new(User { service: service.clone(), authenticator: options.authenticator, toolset: options.toolset });
    let read = tokio::select! {
        biased;
        // Also while a client that does not read holds up what it is told.
        () = shutdown.cancelled() => Ok(()),
        read = read_until_end(&conversation, &user, reader, message_bytes_max) => read,
    };
    conversation.drain(drain_within).await;
    // A client that no longer reads must not keep the process.
    let written = match tokio::time::timeout(drain_within, &mut writing).await {
        Ok(joined) => joined.unwrap_or(Ok(())),
        Err(_) => {
            writing.abort();
            Ok(())
        }
    };
    service.registry().events().tell(Event::ConnectionClosed { transport });
    read.and(written)
}

async fn write_lines(mut outbox: Outbox, writer: impl AsyncWrite + Unpin + Send) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(message) = outbox.next().await {
        write_line(&mut writer, message).await?;
        if outbox.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

/// The user of the process, at the door of a toolset or of all.
struct User {
    service: Arc<Service>,
    authenticator: Arc<dyn Authenticator>,
    toolset: Option<String>,
}

impl User {
    /// The user by the gate and the registry of this moment, which belong together.
    async fn caller(&self) -> Result<Caller, RpcError> {
        let caller = self.entered().await?;
        let toolset = self.toolset.as_ref().map(|name| {
            // A toolset that a reload took away has nothing in it.
            let gone = || Arc::new(Toolset { name: name.clone(), entries: Allowed::NOTHING });
            self.service.registry().state_for(&caller).toolset(name, &caller).cloned().unwrap_or_else(gone)
        });
        Ok(caller.through(toolset))
    }

    async fn entered(&self) -> Result<Caller, RpcError> {
        let origin = Origin { transport: TransportKind::Stdio, peer: None };
        for _ in 0..TRIES_MAX {
            let state = self.service.registry().snapshot();
            match Caller::into_state(self.authenticator.local(), origin, state) {
                Some(caller) => return Ok(caller),
                // While a new configuration is entered they may not, for a moment.
                None => tokio::task::yield_now().await,
            }
        }
        Err(changing())
    }
}

#[async_trait]
impl Identity for User {
    async fn caller(&self) -> Result<Caller, RpcError> {
        self.caller().await
    }

    /// Whoever started the process may let it go on.
    async fn is_let_in(&self) -> bool {
        true
    }

    fn renewals(&self) -> watch::Receiver<u64> {
        self.authenticator.renewals()
    }
}

async fn read_until_end(
    conversation: &Conversation,
    user: &Arc<User>,
    reader: impl tokio::io::AsyncRead + Unpin,
    message_bytes_max: usize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = conversation.unheard() => return Ok(()),
            read = read_line(&mut reader, &mut line, message_bytes_max) => {
                match read? {
                    Line::End => return Ok(()),
                    Line::TooLong => {
                        let message = format!("Invalid request: the message is longer than {message_bytes_max} bytes");
                        conversation.refuse(None, &RpcError::invalid_request(message)).await;
                    }
                    Line::Whole => hear(conversation, user, &line).await,
                }
                line.clear();
            }
        }
    }
}

async fn hear(conversation: &Conversation, user: &Arc<User>, line: &[u8]) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    let identity: Arc<dyn Identity> = user.clone();
    conversation.hear_read(decode(line), User::caller(user).await, &identity).await;
}
