//! Listens, accepts connections with or without TLS, and shuts down in order.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_core::{Authenticator, CallOrigin, TransportKind};
use tidegate_runtime::Registry;
use tidegate_runtime::event::Event;
use tidegate_transport::tls::Tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use super::FlightState;
use super::caller::FlightPeer;
use super::node_actions::DescribedTables;
use super::service::{BoundedFlightService, TidegateFlightService};
use super::ticket::{PreparedStatements, TicketSigner};

/// Bytes of the headers of a request.
const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Open requests of one connection.
const STREAMS_PER_CONNECTION_MAX: u32 = 128;
/// Bytes that wait in the buffers of the client for one answer, and for all answers of a connection.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// A connection whose client does not answer a ping is closed.
const PING_EVERY: Duration = Duration::from_secs(60);
const PING_WITHIN: Duration = Duration::from_secs(20);
/// Delay after a failed accept (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections after their handshake that were not taken yet.
const ACCEPTED_MAX: usize = 16;

/// The options of a Flight SQL server.
#[derive(Clone)]
pub struct FlightOptions {
    /// The authenticator of callers.
    pub authenticator: Arc<dyn Authenticator>,
    /// TLS, for the protocol HTTP/2; `None` for plain connections.
    pub tls: Option<Arc<Tls>>,
    /// The maximum number of open connections; further ones wait.
    pub connections_max: usize,
    /// How long running answers may take when the server ends.
    pub drain_within: Duration,
    /// The version of the server, as clients see it.
    pub version: String,
}

/// A Flight SQL server that runs in its own tasks.
#[derive(Debug)]
pub struct RunningFlightServer {
    address: SocketAddr,
    running: tokio::task::JoinHandle<()>,
}

impl RunningFlightServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the server has shut down.
    pub async fn wait(self) {
        // The task neither panics nor is it aborted.
        let _ = self.running.await;
    }
}

/// Serves Flight SQL on `listener` until `shutdown` fires.
///
/// # Errors
/// When the listener has no address.
pub fn serve_flight(
    listener: TcpListener,
    registry: Arc<Registry>,
    options: FlightOptions,
    shutdown: CancellationToken,
) -> std::io::Result<RunningFlightServer> {
    let address = listener.local_addr()?;
    let state = Arc::new(FlightState {
        registry: registry.clone(),
        authenticator: options.authenticator.clone(),
        tickets: TicketSigner::new(),
        prepared: PreparedStatements::default(),
        described: DescribedTables::default(),
        version: options.version.clone(),
    });
    let (sender, accepted) = mpsc::channel(ACCEPTED_MAX);
    let acceptor = Acceptor {
        listener,
        registry,
        tls: options.tls,
        permits: Arc::new(Semaphore::new(options.connections_max)),
        sender,
        shutdown: shutdown.clone(),
    };
    tokio::spawn(acceptor.run());
    let service = BoundedFlightService::new(TidegateFlightService::new(state));
    let router = Server::builder()
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_WITHIN))
        .add_service(service);
    let connections = ReceiverStream::new(accepted);
    let running = tokio::spawn(async move {
        let ended = shutdown.clone();
        let serving = router.serve_with_incoming_shutdown(connections, shutdown.cancelled_owned());
        let drained = async {
            ended.cancelled().await;
            tokio::time::sleep(options.drain_within).await;
        };
        tokio::select! {
            served = serving => {
                if let Err(error) = served {
                    tracing::error!("the Flight SQL server ended: {error}");
                }
            }
            // Clients that still read are cut off.
            () = drained => {}
        }
    });
    Ok(RunningFlightServer { address, running })
}

/// Accepts connections, each with its handshake in a task of its own.
struct Acceptor {
    listener: TcpListener,
    registry: Arc<Registry>,
    tls: Option<Arc<Tls>>,
    permits: Arc<Semaphore>,
    sender: mpsc::Sender<std::io::Result<FlightConnection>>,
    shutdown: CancellationToken,
}

impl Acceptor {
    async fn run(self) {
        while let Some(accepted) = self.shutdown.run_until_cancelled(self.accept()).await {
            let Some((stream, peer, permit)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (tls, registry, sender) = (self.tls.clone(), self.registry.clone(), self.sender.clone());
            tokio::spawn(async move {
                if let Some(connection) = open_connection(stream, peer, tls, permit, registry).await {
                    // An error means that the server ends.
                    let _ = sender.send(Ok(connection)).await;
                }
            });
        }
    }

    async fn accept(&self) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let permit = self.permits.clone().acquire_owned().await.ok()?;
        let (stream, peer) = self.listener.accept().await.ok()?;
        Some((stream, peer, permit))
    }
}

async fn open_connection(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    permit: OwnedSemaphorePermit,
    registry: Arc<Registry>,
) -> Option<FlightConnection> {
    // Without it, small answers wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let open = OpenFlightConnection::new(registry, permit);
    let (stream, tls): (Box<dyn Connection>, _) = match tls {
        None => (Box::new(stream), None),
        Some(tls) => match tls.accept(stream).await {
            Ok((stream, peer)) => (Box::new(stream), Some(peer)),
            Err(error) => {
                let origin = CallOrigin { transport: TransportKind::FlightSql, peer: Some(address.ip()) };
                let reason = format!("TLS handshake failed: {error}");
                let CallOrigin { transport, peer } = origin;
                open.registry.events().emit(Event::MessageRefused { transport, peer, reason: &reason });
                return None;
            }
        },
    };
    Some(FlightConnection { stream, peer: FlightPeer { address, tls }, _open: open })
}

trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Reports the end of the connection and frees its place when it is dropped.
struct OpenFlightConnection {
    registry: Arc<Registry>,
    _permit: OwnedSemaphorePermit,
}

impl OpenFlightConnection {
    fn new(registry: Arc<Registry>, permit: OwnedSemaphorePermit) -> Self {
        registry.events().emit(Event::ConnectionOpened { transport: TransportKind::FlightSql });
        Self { registry, _permit: permit }
    }
}

impl Drop for OpenFlightConnection {
    fn drop(&mut self) {
        self.registry.events().emit(Event::ConnectionClosed { transport: TransportKind::FlightSql });
    }
}

/// A connection with its peer, for tonic.
struct FlightConnection {
    stream: Box<dyn Connection>,
    peer: FlightPeer,
    _open: OpenFlightConnection,
}

impl Connected for FlightConnection {
    type ConnectInfo = FlightPeer;

    fn connect_info(&self) -> FlightPeer {
        self.peer.clone()
    }
}

impl AsyncRead for FlightConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

impl AsyncWrite for FlightConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
