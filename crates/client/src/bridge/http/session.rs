//! The legacy session with the server, which may end and be opened again.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use tokio::sync::watch;

use crate::bridge::error::BridgeError;
use crate::bridge::handshake::Handshake;

#[derive(Debug)]
pub(super) struct NegotiatedSession {
    pub(super) handshake: Handshake,
    /// `None` for servers without sessions.
    pub(super) id: Option<HeaderValue>,
}

#[derive(Debug, Clone, Default)]
pub(super) enum HandshakeState {
    /// The client has not made a handshake.
    #[default]
    None,
    Negotiated(Arc<NegotiatedSession>),
    /// The handshake could not be repeated; the client has to make a new one.
    Broken(BridgeError),
}

#[derive(Debug, Default)]
pub(super) struct UpstreamSession {
    state: watch::Sender<HandshakeState>,
    /// Held while the handshake is repeated, so that it is repeated once for all calls.
    pub(super) renewal_lock: tokio::sync::Mutex<()>,
}

impl UpstreamSession {
    /// The session for calls; `None` before a handshake, an error when it is broken.
    pub(super) fn negotiated(&self) -> Result<Option<Arc<NegotiatedSession>>, BridgeError> {
        match &*self.state.borrow() {
            HandshakeState::None => Ok(None),
            HandshakeState::Negotiated(session) => Ok(Some(session.clone())),
            HandshakeState::Broken(failure) => Err(failure.clone()),
        }
    }

    pub(super) fn set_negotiated(&self, handshake: Handshake, id: Option<HeaderValue>) -> Arc<NegotiatedSession> {
        let session = Arc::new(NegotiatedSession { handshake, id });
        self.set_state(HandshakeState::Negotiated(session.clone()));
        session
    }

    pub(super) fn set_state(&self, state: HandshakeState) {
        self.state.send_replace(state);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<HandshakeState> {
        self.state.subscribe()
    }
}
