//! `rmcp` as a foreign client of the binary, over HTTP and standard input and output, modern and legacy.

use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};

use super::server::Server;
use super::{ConfiguredFolder, tidegate};

/// A way to reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientTransport {
    /// Over HTTP instead of standard input and output.
    pub(super) is_http: bool,
    /// With the handshake of 2025-11-25.
    pub(super) is_legacy: bool,
}

/// All of them.
pub(super) const CLIENT_TRANSPORTS: [ClientTransport; 4] = [
    ClientTransport { is_http: true, is_legacy: false },
    ClientTransport { is_http: true, is_legacy: true },
    ClientTransport { is_http: false, is_legacy: false },
    ClientTransport { is_http: false, is_legacy: true },
];

/// A server of the configuration that listens.
pub(super) fn serve(configured: &ConfiguredFolder) -> Server {
    Server::start(tidegate().current_dir(configured.folder()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]))
}

/// Connects `handler` that way: to `server`, or to one of its own.
pub(super) async fn connect<H: ClientHandler>(
    handler: H,
    way: ClientTransport,
    server: &Server,
    configured: &ConfiguredFolder,
) -> RunningService<RoleClient, H> {
    let lifecycle = if way.is_legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    };
    if way.is_http {
        let transport = StreamableHttpClientTransport::from_uri(server.url.as_str());
        return handler.serve_with_lifecycle(transport, lifecycle).await.unwrap();
    }
    let mut command = tidegate();
    command.current_dir(configured.folder()).args(["stdio", "--log", "error"]);
    let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    handler.serve_with_lifecycle(transport, lifecycle).await.unwrap()
}
