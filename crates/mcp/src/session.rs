//! The session of a legacy client, created by its handshake.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tidegate_core::{ClientCapabilities, LogLevel};
use tidegate_runtime::ChangeListener;

use crate::in_flight::InFlightRequests;
use crate::revision::Revision;
use crate::server_requests::ServerRequests;

/// No log messages; above every level.
const NO_LOG_LEVEL: u8 = u8::MAX;

/// A legacy session: the negotiated revision and the state of the client.
#[derive(Debug)]
pub struct McpSession {
    revision: Revision,
    log_level: AtomicU8,
    in_flight: Arc<InFlightRequests>,
    pub(crate) client_capabilities: ClientCapabilities,
    pub(crate) server_requests: ServerRequests,
    pub(crate) watch: Arc<ChangeListener>,
}

impl McpSession {
    pub(crate) fn new(
        revision: Revision,
        client_capabilities: ClientCapabilities,
        in_flight: Arc<InFlightRequests>,
        watch: ChangeListener,
    ) -> Self {
        Self {
            revision,
            log_level: AtomicU8::new(NO_LOG_LEVEL),
            in_flight,
            client_capabilities,
            server_requests: ServerRequests::default(),
            watch: Arc::new(watch),
        }
    }

    /// The negotiated revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The open requests of the client.
    pub fn in_flight(&self) -> &Arc<InFlightRequests> {
        &self.in_flight
    }

    /// The least severe log message that the client requests; `None` until it sets a level.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        // There are eight levels.
        self.log_level.store(level as u8, Ordering::Relaxed);
    }
}
