//! The transports, each in the eras that it supports.

use std::fmt;

use async_trait::async_trait;
use tidegate_mcp::Revision;

use super::fixture::TestServer;
use super::mcp::Mcp;
use super::outcome::StepResult;
use super::rest::Rest;
use super::step::StepRequest;
use super::wire::http::HttpWire;
use super::wire::pipe::PipeWire;
use super::wire::socket::SocketWire;
use super::wire::sse::SseWire;

/// The transport of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    Http,
    Sse,
    WebSocket,
    Rest,
    /// Standard input and output, bridged to HTTP.
    BridgedHttp,
    /// Standard input and output, bridged to WebSocket.
    BridgedSocket,
}

/// A transport and a revision; REST has the features of the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) transport: Transport,
    pub(super) revision: Revision,
}

/// A connection of one user.
#[async_trait]
pub(super) trait Client: Send {
    /// The result of `ask`.
    async fn ask(&mut self, ask: &StepRequest) -> StepResult;

    /// Whether the server has kept the connection open.
    fn is_open(&self) -> bool {
        true
    }
}

impl Transport {
    pub(super) const ALL: [Self; 7] =
        [Self::Stdio, Self::Http, Self::Sse, Self::WebSocket, Self::Rest, Self::BridgedHttp, Self::BridgedSocket];

    /// The name of the transport in steps.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "ws",
            Self::Rest => "rest",
            Self::BridgedHttp => "bridge to http",
            Self::BridgedSocket => "bridge to ws",
        }
    }
}

impl Channel {
    /// Every transport in each era.
    pub(super) fn all() -> [Self; 14] {
        use Revision::{V2024_11_05, V2025_11_25, V2026_07_28};
        use Transport::{BridgedHttp, BridgedSocket, Http, Rest, Sse, Stdio, WebSocket};
        [
            (Stdio, V2024_11_05),
            (Stdio, V2025_11_25),
            (Stdio, V2026_07_28),
            (Http, V2025_11_25),
            (Http, V2026_07_28),
            (Sse, V2024_11_05),
            (Sse, V2025_11_25),
            (WebSocket, V2025_11_25),
            (WebSocket, V2026_07_28),
            (Rest, V2026_07_28),
            (BridgedHttp, V2025_11_25),
            (BridgedHttp, V2026_07_28),
            (BridgedSocket, V2025_11_25),
            (BridgedSocket, V2026_07_28),
        ]
        .map(|(transport, revision)| Self { transport, revision })
    }

    /// The channels of one transport.
    pub(super) fn of(transport: Transport) -> impl Iterator<Item = Self> {
        Self::all().into_iter().filter(move |channel| channel.transport == transport)
    }

    /// A connection of `by` to the endpoint of the toolset `through` or of all tools; or why there is none.
    pub(super) async fn open(
        self,
        world: &TestServer,
        by: Option<&str>,
        through: Option<&str>,
    ) -> Result<Box<dyn Client>, StepResult> {
        let revision = self.revision;
        Ok(match self.transport {
            Transport::Stdio => Box::new(Mcp::new(PipeWire::of_process(world, revision, by, through).await)),
            Transport::BridgedHttp => Box::new(Mcp::new(PipeWire::bridged(world, revision, by, through, "http").await)),
            Transport::BridgedSocket => Box::new(Mcp::new(PipeWire::bridged(world, revision, by, through, "ws").await)),
            Transport::Http => Box::new(Mcp::new(HttpWire::open(world, revision, by, through).await?)),
            Transport::Sse => Box::new(Mcp::new(SseWire::open(world, revision, by, through).await?)),
            Transport::WebSocket => Box::new(Mcp::new(SocketWire::open(world, revision, by, through).await?)),
            Transport::Rest => Box::new(Rest::new(world, by)),
        })
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transport {
            Transport::Rest => f.write_str("rest"),
            transport => write!(f, "{} {}", transport.name(), self.revision.name()),
        }
    }
}
