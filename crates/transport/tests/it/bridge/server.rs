//! A server behind a proxy: ours over HTTP, or ours over pipes with a WebSocket of a few lines before it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tidegate_core::event::{Event, Events, Subscriber};
use tidegate_mcp::Service;
use tidegate_transport::Metrics;
use tidegate_transport::bridge::{Bearer, BridgeOptions, ServerAddress};
use tidegate_transport::http::{self, HttpOptions};
use tidegate_transport::stdio::{self, StdioOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::proxy::Proxy;
use super::{Carrier, Client};
use crate::host::Host;

/// How often each call was begun, by its arguments.
#[derive(Default)]
pub(super) struct Counts(Mutex<HashMap<String, u32>>);

impl Subscriber for Counts {
    fn hear(&self, event: Event<'_>) {
        if let Event::CallStarted { job } = event {
            let arguments = serde_json::to_string(job.arguments()).unwrap();
            *self.0.lock().entry(arguments).or_default() += 1;
        }
    }
}

impl Counts {
    /// How often a call with `mark` in its arguments was begun.
    pub(super) fn of(&self, mark: &str) -> u32 {
        self.0.lock().iter().filter(|(arguments, _)| arguments.contains(mark)).map(|(_, count)| count).sum()
    }

    /// The most that any call was begun.
    pub(super) fn most(&self) -> u32 {
        self.0.lock().values().copied().max().unwrap_or_default()
    }
}

/// A server that can go away, come back and begin anew at the same address.
pub(super) struct Server {
    pub(super) host: Host,
    pub(super) counts: Arc<Counts>,
    pub(super) proxy: Proxy,
    carrier: Carrier,
    options: HttpOptions,
    _running: DropGuard,
}

impl Server {
    pub(super) async fn start(carrier: Carrier) -> Self {
        Self::with(carrier, HttpOptions::default()).await
    }

    pub(super) async fn with(carrier: Carrier, options: HttpOptions) -> Self {
        let counts = Arc::new(Counts::default());
        let (host, address, running) = begin(carrier, &counts, &options).await;
        Self { host, counts, proxy: Proxy::start(address).await, carrier, options, _running: running }
    }

    /// Replaces the server by one that knows nothing of the one before, which ends at once.
    pub(super) async fn begin_anew(&mut self) {
        self.replace().await;
        self.proxy.cut().await;
    }

    /// The same while connections to the one before still break.
    pub(super) async fn replace(&mut self) {
        let (host, address, running) = begin(self.carrier, &self.counts, &self.options).await;
        self.proxy.lead_to(address);
        self.host = host;
        self._running = running;
    }

    pub(super) fn options(&self) -> BridgeOptions {
        let address = match self.carrier {
            Carrier::Http => format!("http://{}/mcp", self.proxy.address),
            Carrier::Socket => format!("ws://{}/mcp/ws", self.proxy.address),
        };
        BridgeOptions::new(ServerAddress::parse(&address).unwrap())
    }

    pub(super) fn client(&self) -> Client {
        Client::bridged(self.options())
    }

    pub(super) fn client_with(&self, bearer: &str) -> Client {
        Client::bridged(BridgeOptions { bearer: Some(Bearer::parse(bearer).unwrap()), ..self.options() })
    }

    /// How many calls are open.
    pub(super) fn open_calls(&self) -> usize {
        self.host.service.registry().jobs().open_count()
    }
}

async fn begin(carrier: Carrier, counts: &Arc<Counts>, options: &HttpOptions) -> (Host, SocketAddr, DropGuard) {
    let host = Host::heard_by(Events::new([counts.clone() as Arc<dyn Subscriber>]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let service = host.service.clone();
    match carrier {
        Carrier::Http => {
            let options = HttpOptions { drain_within: Duration::ZERO, ..options.clone() };
            let metrics = Arc::new(Metrics::new());
            http::serve(listener, service, metrics, options, shutdown.clone()).unwrap();
        }
        Carrier::Socket => {
            tokio::spawn(serve_sockets(listener, service, shutdown.clone()));
        }
    }
    (host, address, shutdown.drop_guard())
}

async fn serve_sockets(listener: TcpListener, service: Arc<Service>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                tokio::spawn(serve_socket(stream, service.clone(), shutdown.clone()));
            }
        }
    }
}

/// Each text is a line of stdio, in both directions.
async fn serve_socket(stream: TcpStream, service: Arc<Service>, shutdown: CancellationToken) {
    let Ok(socket) = accept_hdr_async(stream, choose_mcp).await else { return };
    let (mut sink, mut texts) = socket.split();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let ended = shutdown.child_token();
    let options = StdioOptions { drain_within: Duration::ZERO, ..StdioOptions::default() };
    let serving = tokio::spawn(stdio::serve(service, reader, writer, options, ended.clone()));
    let (reader, mut writer) = tokio::io::split(ours);
    let talking = async {
        while let Some(Ok(message)) = texts.next().await {
            if let Message::Text(text) = message {
                let _ = writer.write_all(text.as_bytes()).await;
                let _ = writer.write_all(b"\n").await;
            }
        }
    };
    let hearing = async {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if sink.send(Message::text(line)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = talking => {}
        () = hearing => {}
        () = shutdown.cancelled() => {}
    }
    ended.cancel();
    let _ = serving.await;
}

#[allow(clippy::result_large_err, reason = "the library wants it so")]
fn choose_mcp(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    assert_eq!(request.headers()[SEC_WEBSOCKET_PROTOCOL], "mcp");
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, "mcp".parse().unwrap());
    Ok(response)
}
