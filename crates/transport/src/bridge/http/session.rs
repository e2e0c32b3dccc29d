//! The legacy session with the server, which may end and be opened again.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use tokio::sync::watch;

use crate::bridge::error::BridgeError;
use crate::bridge::handshake::Handshake;

/// What the client agreed on with the server, and under which name the server knows it.
#[derive(Debug)]
pub(super) struct NegotiatedSession {
    pub(super) handshake: Handshake,
    /// Servers without sessions give none.
    pub(super) session: Option<HeaderValue>,
}

/// Where the handshake stands.
#[derive(Debug, Clone, Default)]
pub(super) enum HandshakeState {
    /// The client has made none.
    #[default]
    None,
    Negotiated(Arc<NegotiatedSession>),
    /// It could not be made again; only a new one of the client helps.
    Broken(BridgeError),
}

/// The standing of the handshake, for calls to read and for the listener to follow.
#[derive(Debug)]
pub(super) struct UpstreamSession {
    state: watch::Sender<HandshakeState>,
    /// Held while the handshake is made again, so that it is made once for all calls that need it.
    pub(super) renewal_lock: tokio::sync::Mutex<()>,
}

impl UpstreamSession {
    pub(super) fn new() -> Self {
        Self { state: watch::Sender::new(HandshakeState::None), renewal_lock: tokio::sync::Mutex::new(()) }
    }

    /// What calls are to be sent with; none before a handshake.
    ///
    /// # Errors
    /// When the handshake is broken.
    pub(super) fn negotiated(&self) -> Result<Option<Arc<NegotiatedSession>>, BridgeError> {
        match &*self.state.borrow() {
            HandshakeState::None => Ok(None),
            HandshakeState::Negotiated(agreed) => Ok(Some(agreed.clone())),
            HandshakeState::Broken(failure) => Err(failure.clone()),
        }
    }

    /// Enters what was agreed on, and gives it.
    pub(super) fn set_negotiated(&self, handshake: Handshake, session: Option<HeaderValue>) -> Arc<NegotiatedSession> {
        let agreed = Arc::new(NegotiatedSession { handshake, session });
        self.state.send_replace(HandshakeState::Negotiated(agreed.clone()));
        agreed
    }

    pub(super) fn set_state(&self, handshake_state: HandshakeState) {
        self.state.send_replace(handshake_state);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<HandshakeState> {
        self.state.subscribe()
    }
}
