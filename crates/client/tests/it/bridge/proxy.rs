//! A proxy to a server that breaks connections on demand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::AbortHandle;

/// How long a connection may take to notice that its peer is gone.
const RECEIVED_WITHIN: Duration = Duration::from_secs(1);

/// Forwards bytes between connections and the current target server.
pub(super) struct FlakyProxy {
    pub(super) address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    /// By the address of the client.
    connections: Arc<Mutex<Vec<(SocketAddr, AbortHandle)>>>,
    listening: Mutex<Option<AbortHandle>>,
    /// Keeps the port while the proxy does not listen, so that no other socket receives it.
    _reserved_port: TcpSocket,
}

impl FlakyProxy {
    pub(super) async fn start(target: SocketAddr) -> Self {
        let reserved_port = TcpSocket::new_v4().unwrap();
        // Listeners share the port with it.
        reserved_port.set_reuseaddr(true).unwrap();
        reserved_port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = reserved_port.local_addr().unwrap();
        let proxy = Self {
            address,
            target: Arc::new(Mutex::new(target)),
            connections: Arc::default(),
            listening: Mutex::default(),
            _reserved_port: reserved_port,
        };
        proxy.listen_again().await;
        proxy
    }

    fn listen(&self, listener: TcpListener) {
        let (target, connections) = (self.target.clone(), self.connections.clone());
        let listening = tokio::spawn(async move {
            loop {
                let Ok((mut near, peer)) = listener.accept().await else { continue };
                let target = *target.lock();
                let connection = tokio::spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
                connections.lock().push((peer, connection.abort_handle()));
            }
        });
        *self.listening.lock() = Some(listening.abort_handle());
    }

    /// Forwards new connections to another server.
    pub(super) fn lead_to(&self, target: SocketAddr) {
        *self.target.lock() = target;
    }

    /// Breaks all connections, and returns when their peers have noticed it.
    pub(super) async fn cut(&self) {
        // The last connection ends last.
        let mut last = TcpStream::connect(self.address).await.unwrap();
        let address = last.local_addr().unwrap();
        while !self.connections.lock().iter().any(|(peer, _)| *peer == address) {
            tokio::task::yield_now().await;
        }
        self.break_off();
        let _ = last.read(&mut [0]).await;
        tokio::task::yield_now().await;
    }

    /// Breaks all connections.
    pub(super) fn break_off(&self) {
        for (_, connection) in self.connections.lock().drain(..) {
            connection.abort();
        }
    }

    /// Accepts no more connections, and breaks the existing ones.
    pub(super) async fn stop_listening(&self) {
        if let Some(listening) = self.listening.lock().take() {
            listening.abort();
        }
        // The port is free once the task has ended. A connection that was accepted before ends like the others.
        let mut last = None;
        while let Ok(connection) = TcpStream::connect(self.address).await {
            last = Some(connection);
            tokio::task::yield_now().await;
        }
        self.break_off();
        if let Some(mut last) = last {
            // A connection that arrived while the listener closed has no peer that could report its end.
            let _ = tokio::time::timeout(RECEIVED_WITHIN, last.read(&mut [0])).await;
        }
        tokio::task::yield_now().await;
    }

    /// Accepts connections again.
    pub(super) async fn listen_again(&self) {
        self.listen(TcpListener::bind(self.address).await.unwrap());
    }
}
