//! The server of this project behind a proxy.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_client::BearerToken;
use tidegate_client::bridge::{BridgeOptions, ServerAddress};
use tidegate_runtime::event::{Event, EventDispatcher, Subscriber};
use tidegate_transport::Metrics;
use tidegate_transport::http::{self, HttpOptions};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::proxy::FlakyProxy;
use super::{BridgeTransport, Client};
use tidegate_testkit::host::Host;

/// How often each call was started, by its arguments.
#[derive(Default)]
pub(super) struct Counts(Mutex<HashMap<String, u32>>);

impl Subscriber for Counts {
    fn on_event(&self, event: Event<'_>) {
        if let Event::CallStarted { job } = event {
            let arguments = serde_json::to_string(job.arguments()).unwrap();
            *self.0.lock().entry(arguments).or_default() += 1;
        }
    }
}

impl Counts {
    /// How often the call with `mark` in its arguments was started.
    pub(super) fn of(&self, mark: &str) -> u32 {
        self.0.lock().iter().filter(|(arguments, _)| arguments.contains(mark)).map(|(_, count)| count).sum()
    }

    /// The maximum number of starts of any call.
    pub(super) fn most(&self) -> u32 {
        self.0.lock().values().copied().max().unwrap_or_default()
    }
}

/// A server that can stop, come back and restart at the same address.
pub(super) struct Server {
    pub(super) host: Host,
    pub(super) counts: Arc<Counts>,
    pub(super) proxy: FlakyProxy,
    carrier: BridgeTransport,
    options: HttpOptions,
    _running: DropGuard,
}

impl Server {
    pub(super) async fn start(carrier: BridgeTransport) -> Self {
        Self::with(carrier, HttpOptions::default()).await
    }

    pub(super) async fn with(carrier: BridgeTransport, options: HttpOptions) -> Self {
        let counts = Arc::new(Counts::default());
        let (host, address, running) = begin(&counts, &options).await;
        Self { host, counts, proxy: FlakyProxy::start(address).await, carrier, options, _running: running }
    }

    /// Replaces the server by a new one without its state. The old one ends immediately.
    pub(super) async fn restart(&mut self) {
        self.replace().await;
        self.proxy.cut().await;
    }

    /// The same while connections to the old server still break.
    pub(super) async fn replace(&mut self) {
        let (host, address, running) = begin(&self.counts, &self.options).await;
        self.proxy.lead_to(address);
        self.host = host;
        self._running = running;
    }

    pub(super) fn options(&self) -> BridgeOptions {
        let address = match self.carrier {
            BridgeTransport::Http => format!("http://{}/mcp", self.proxy.address),
            BridgeTransport::Socket => format!("ws://{}/mcp/ws", self.proxy.address),
        };
        BridgeOptions::new(ServerAddress::parse(&address).unwrap())
    }

    pub(super) fn client(&self) -> Client {
        Client::bridged(self.options())
    }

    pub(super) fn client_with(&self, bearer: &str) -> Client {
        Client::bridged(BridgeOptions { bearer: Some(BearerToken::parse(bearer).unwrap()), ..self.options() })
    }

    /// How many calls are open.
    pub(super) fn open_calls(&self) -> usize {
        self.host.service.registry().jobs().open_count()
    }
}

async fn begin(counts: &Arc<Counts>, options: &HttpOptions) -> (Host, SocketAddr, DropGuard) {
    let host = Host::with_events(EventDispatcher::new([counts.clone() as Arc<dyn Subscriber>]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let service = host.service.clone();
    let options = HttpOptions { drain_within: Duration::ZERO, ..options.clone() };
    http::serve(listener, service, Arc::new(Metrics::new()), options, shutdown.clone()).unwrap();
    (host, address, shutdown.drop_guard())
}
