//! Connections of tests: a TCP proxy in front of a server that tests make unreachable, slow and reachable again; standard input
//! and output as a pipe in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{BufReader, DuplexStream, ReadHalf, WriteHalf, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

/// A proxy that closes new connections at first. Dropping it ends it.
pub struct HeldProxy {
    pub address: SocketAddr,
    state: watch::Sender<ProxyState>,
    held: Arc<AtomicUsize>,
    server: AbortHandle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyState {
    Closing,
    /// Connections are accepted, and forwarded when the proxy is released.
    Holding,
    Released,
}

impl HeldProxy {
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, changes) = watch::channel(ProxyState::Closing);
        let held = Arc::new(AtomicUsize::new(0));
        let counter = held.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = *changes.borrow();
                if state == ProxyState::Holding {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
                if state != ProxyState::Closing {
                    tokio::spawn(forward(stream, server, changes.clone()));
                }
            }
        });
        Self { address, state, held, server: accepting.abort_handle() }
    }

    pub fn hold(&self) {
        self.state.send_replace(ProxyState::Holding);
    }

    pub fn release(&self) {
        self.state.send_replace(ProxyState::Released);
    }

    /// The number of connections that were accepted while it held them.
    pub fn held_connections(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }
}

impl Drop for HeldProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr, mut state: watch::Receiver<ProxyState>) {
    // Without the proxy, nobody waits any more.
    if state.wait_for(|state| *state == ProxyState::Released).await.is_err() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    // Either end may be gone.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// The capacity of the pipe, like that of operating systems.
const PIPE_BYTES: usize = 64 * 1024;

pub type Reader = ReadHalf<DuplexStream>;
pub type Writer = WriteHalf<DuplexStream>;
/// The task that serves the other end.
pub type ServerTask = JoinHandle<std::io::Result<()>>;

/// The client end of a pipe, and the task that serves the other end.
pub struct PipeEnds {
    pub writer: Writer,
    pub reader: BufReader<Reader>,
    pub served: ServerTask,
    pub shutdown: CancellationToken,
}

impl PipeEnds {
    /// A pipe whose other end `serve` serves.
    pub fn new(serve: impl FnOnce(Reader, Writer, CancellationToken) -> ServerTask) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let served = serve(reader, writer, shutdown.clone());
        let (reader, writer) = tokio::io::split(ours);
        Self { writer, reader: BufReader::new(reader), served, shutdown }
    }
}
