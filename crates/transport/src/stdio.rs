//! MCP over standard input and output: one message per line, and nothing else on the output.
//!
//! [MCP 2026-07-28, stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio)

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_core::{AllowAll, AllowedNames, Authenticator, CallOrigin, Caller, Toolset, TransportKind};
use tidegate_mcp::{McpService, ReadLine, RpcError, decode, read_line};
use tidegate_runtime::event::Event;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::mcp_connection::{ConnectionLimits, McpConnection};
use crate::outbox::{Outbox, OutgoingMessage};
use crate::revalidation::{CallerResolver, configuration_changing_error};

/// Maximum number of messages in the outgoing queue. Calls wait while it is full.
const OUTGOING_MAX: usize = 64;
/// Maximum number of concurrent requests. Reading stops while they are open.
const REQUESTS_MAX: usize = 512;
/// The maximum size of an inline answer in a line, where answers are bounded. Common clients refuse lines over 10 MiB.
/// JSON escaping at most doubles rows, except for control characters.
pub const INLINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Attempts to read an authenticator and a registry of the same configuration, which differ only for a moment.
const TRIES_MAX: usize = 10_000;

/// The local user, the toolset and the limits of a connection over standard input and output.
#[derive(Clone)]
pub struct StdioOptions {
    /// Determines the principal of the user that runs the process.
    pub authenticator: Arc<dyn Authenticator>,
    /// The name of the toolset to serve; `None` serves the whole registry.
    pub toolset: Option<String>,
    /// Maximum size of a message of the client in bytes; longer ones are refused.
    pub message_bytes_max: usize,
    /// Maximum size of an answer in bytes; a longer one is refused. Answers are spooled to disk until they are
    /// complete.
    pub answer_bytes_max: u64,
    /// How long running calls may take to end after the client has closed its side.
    pub drain_within: Duration,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            authenticator: Arc::new(AllowAll),
            toolset: None,
            message_bytes_max: 4 * 1024 * 1024,
            answer_bytes_max: 16 * 1024 * 1024 * 1024,
            drain_within: Duration::from_secs(10),
        }
    }
}

/// Serves one client until it closes its side or `shutdown` fires. Then waits up to `drain_within` for running calls.
///
/// # Errors
/// When a stream breaks. A client that disconnects is not an error.
pub async fn serve(
    service: Arc<McpService>,
    reader: impl tokio::io::AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    options: StdioOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let transport = TransportKind::Stdio;
    service.registry().events().emit(Event::ConnectionOpened { transport });
    let limits = ConnectionLimits {
        requests_max: REQUESTS_MAX,
        outgoing_max: OUTGOING_MAX,
        inline_bytes_max: INLINE_BYTES_MAX,
        answer_bytes_max: options.answer_bytes_max,
        // Clients send several requests at a time.
        streams_lone_answers: false,
    };
    let (connection, outbox) = McpConnection::open(service.clone(), CallOrigin { transport, peer: None }, limits);
    let mut writing = tokio::spawn(write_lines(outbox, writer));
    let (drain_within, message_bytes_max) = (options.drain_within, options.message_bytes_max);
    let user: Arc<dyn CallerResolver> = Arc::new(LocalCallerResolver {
        service: service.clone(),
        authenticator: options.authenticator,
        toolset: options.toolset,
    });
    let session = user.resolve_caller().await.ok().map(|caller| service.registry().sessions().open(&caller));
    // Shutdown ends the reading also if a client that does not read blocks the output.
    let reading = read_until_end(&connection, &user, reader, message_bytes_max);
    let read = shutdown.run_until_cancelled(reading).await.unwrap_or(Ok(()));
    connection.drain(drain_within).await;
    // A client that no longer reads must not keep the process alive.
    let written = match tokio::time::timeout(drain_within, &mut writing).await {
        Ok(joined) => joined.unwrap_or(Ok(())),
        Err(_) => {
            writing.abort();
            Ok(())
        }
    };
    drop(session);
    service.registry().events().emit(Event::ConnectionClosed { transport });
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

async fn write_line(
    writer: &mut (impl AsyncWrite + Unpin + Send),
    mut message: OutgoingMessage,
) -> std::io::Result<()> {
    while let Some(piece) = message.next().await? {
        writer.write_all(&piece).await?;
    }
    writer.write_all(b"\n").await
}

struct LocalCallerResolver {
    service: Arc<McpService>,
    authenticator: Arc<dyn Authenticator>,
    toolset: Option<String>,
}

impl LocalCallerResolver {
    async fn local_caller(&self) -> Result<Caller, RpcError> {
        let origin = CallOrigin { transport: TransportKind::Stdio, peer: None };
        for _ in 0..TRIES_MAX {
            let snapshot = self.service.registry().snapshot();
            match snapshot.create_caller(self.authenticator.local_principal(), origin) {
                Some(caller) => return Ok(caller),
                // They differ for a moment while a new configuration is applied.
                None => tokio::task::yield_now().await,
            }
        }
        Err(configuration_changing_error())
    }
}

#[async_trait]
impl CallerResolver for LocalCallerResolver {
    async fn resolve_caller(&self) -> Result<Caller, RpcError> {
        let caller = self.local_caller().await?;
        let toolset = self.toolset.as_ref().map(|name| {
            // A toolset that a reload removed is empty.
            let removed = || Arc::new(Toolset { name: name.clone(), entries: AllowedNames::NOTHING });
            self.service.registry().snapshot_for(&caller).toolset(name, &caller).cloned().unwrap_or_else(removed)
        });
        Ok(caller.with_toolset(toolset))
    }

    async fn is_admitted(&self) -> bool {
        true
    }

    fn credential_reloads(&self) -> watch::Receiver<u64> {
        self.authenticator.credential_reloads()
    }
}

async fn read_until_end(
    connection: &Arc<McpConnection>,
    user: &Arc<dyn CallerResolver>,
    reader: impl tokio::io::AsyncRead + Unpin,
    message_bytes_max: usize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = connection.output_closed() => return Ok(()),
            read = read_line(&mut reader, &mut line, message_bytes_max) => {
                match read? {
                    ReadLine::End => return Ok(()),
                    ReadLine::TooLong => {
                        let message = format!("Invalid request: the message is longer than {message_bytes_max} bytes");
                        connection.refuse(None, &RpcError::invalid_request(message)).await;
                    }
                    ReadLine::Whole => receive_line(connection, user, &line).await,
                }
                line.clear();
            }
        }
    }
}

async fn receive_line(connection: &Arc<McpConnection>, user: &Arc<dyn CallerResolver>, line: &[u8]) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    connection.receive_decoded(decode(line), user.resolve_caller().await, user).await;
}
