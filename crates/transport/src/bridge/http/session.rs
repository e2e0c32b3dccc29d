//! The legacy session with the server, which may end and be opened again.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use tokio::sync::watch;

use crate::bridge::failure::Failure;
use crate::bridge::handshake::Handshake;

/// What the client agreed on with the server, and under which name the server knows it.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) handshake: Handshake,
    /// Servers without sessions give none.
    pub(super) session: Option<HeaderValue>,
}

/// Where the handshake stands.
#[derive(Debug, Clone, Default)]
pub(super) enum Standing {
    /// The client has made none.
    #[default]
    None,
    Agreed(Arc<Agreed>),
    /// It could not be made again; only a new one of the client helps.
    Broken(Failure),
}

/// The standing of the handshake, for calls to read and for the listener to follow.
#[derive(Debug)]
pub(super) struct Session {
    standing: watch::Sender<Standing>,
    /// Held while the handshake is made again, so that it is made once for all calls that need it.
    pub(super) renewing: tokio::sync::Mutex<()>,
}

impl Session {
    pub(super) fn new() -> Self {
        Self { standing: watch::Sender::new(Standing::None), renewing: tokio::sync::Mutex::new(()) }
    }

    /// What calls are to be sent with; none before a handshake.
    ///
    /// # Errors
    /// When the handshake is broken.
    pub(super) fn agreed(&self) -> Result<Option<Arc<Agreed>>, Failure> {
        match &*self.standing.borrow() {
            Standing::None => Ok(None),
            Standing::Agreed(agreed) => Ok(Some(agreed.clone())),
            Standing::Broken(failure) => Err(failure.clone()),
        }
    }

    /// Enters what was agreed on, and gives it.
    pub(super) fn agree(&self, handshake: Handshake, session: Option<HeaderValue>) -> Arc<Agreed> {
        let agreed = Arc::new(Agreed { handshake, session });
        self.standing.send_replace(Standing::Agreed(agreed.clone()));
        agreed
    }

    pub(super) fn set(&self, standing: Standing) {
        self.standing.send_replace(standing);
    }

    pub(super) fn follow(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }
}
