//! Who calls, and through which toolset's door: found out before anything else is looked at, and again for each message.
//!
//! [MCP 2026-07-28, Authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use tidegate_core::{Caller, Credentials, Origin, Principal, TransportKind, Unauthenticated};
use tidegate_mcp::RpcError;
use tokio::sync::watch;

use super::authorization::Authorization;
use super::path::transport_of;
use super::protected::Challenge;
use super::response::refusal;
use super::{Door, PeerAddress, body};
use crate::batch::{Identity, changing};
use crate::standing::{Lapsed, Standing};
use crate::tls::{TlsPeer, Untrusted};

/// How often a caller is asked again while a new configuration is being entered, which takes a moment.
const TRIES_MAX: usize = 100;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// Of headers that may say who calls, so many values of so many bytes are looked at.
const ASSERTED_MAX: usize = 16;
const ASSERTED_BYTES_MAX: usize = 1024;

/// What a request showed of its caller. It is asked about when the request comes, when its body was read, and before
/// each message of a batch: in between a key may be revoked, and a role may lose what it had.
#[derive(Clone)]
pub(super) struct Shown {
    authorization: Authorization,
    asserted: Vec<(String, String)>,
    /// Who is at the other end of the connection, where it is one of TLS.
    tls: Option<Arc<TlsPeer>>,
    /// From where.
    pub(super) origin: Origin,
    pub(super) toolset: Option<String>,
}

/// Who is at the other end of what lives longer than a request, or sends a batch: asked for again at each message and
/// at each sign of life.
pub(super) struct Known {
    pub(super) door: Arc<Door>,
    pub(super) shown: Shown,
    /// Who it was at the beginning. Somebody else is let in no more than nobody.
    pub(super) owner: Arc<Principal>,
}

/// Why a caller is not let in.
pub(super) enum Refused {
    /// It proves nobody.
    Unauthenticated(Unauthenticated),
    /// The toolset is hidden from the caller or absent.
    NoSuchToolset(String),
    /// A new configuration is not entered yet.
    Changing,
}

/// Puts the [`Caller`] and what it [`Shown`] into the request's extensions; 401 for one who proves nobody, 400 for what no
/// client may send as a proof, 404 for a toolset that is hidden from the caller or absent.
pub(super) async fn identify(
    State(door): State<Arc<Door>>,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let toolset = path.iter().find(|(parameter, _)| *parameter == "toolset").map(|(_, name)| name.to_owned());
    let transport = transport_of(request.uri().path());
    let shown = Shown::by(&door, request.headers(), request.extensions(), transport, toolset);
    match shown.caller(&door).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(shown);
            next.run(request).await
        }
        Err(refused) => {
            let response = refused.response(&door, shown.origin);
            body::discard(request.into_body(), door.options.read_within).await;
            response
        }
    }
}

impl Shown {
    /// What the head of a request to the door of `toolset` shows.
    pub(super) fn by(
        door: &Door,
        headers: &HeaderMap,
        extensions: &Extensions,
        transport: TransportKind,
        toolset: Option<String>,
    ) -> Self {
        let asserting = door.options.authenticator.asserting_headers();
        let asserted = asserting.map_or_else(Vec::new, |names| asserted(headers, &names));
        let origin = Origin { transport, peer: PeerAddress::of(extensions) };
        let tls = extensions.get::<Arc<TlsPeer>>().cloned();
        Self { authorization: Authorization::of(headers), asserted, tls, origin, toolset }
    }

    /// The caller by the gate and the registry of this moment, which belong together.
    pub(super) async fn caller(&self, door: &Door) -> Result<Caller, Refused> {
        let authenticator = &door.options.authenticator;
        let bearer = match self.authorization.bearer() {
            // Where nobody is asked who calls, nothing that is shown is wrong.
            Err(_) if !authenticator.is_configured() => None,
            shown => shown.map_err(Refused::Unauthenticated)?,
        };
        for _ in 0..TRIES_MAX {
            let certificate = self.tls.as_ref().map(|peer| peer.certificate()).transpose();
            let certificate = certificate.map_err(|Untrusted| Refused::Unauthenticated(Unauthenticated::Invalid))?;
            let credentials = Credentials {
                bearer,
                peer: self.origin.peer,
                certificate: certificate.flatten(),
                asserted: &self.asserted,
            };
            let principal = authenticator.authenticate(credentials).await;
            let principal = principal.map_err(Refused::Unauthenticated)?;
            let state = door.service.registry().snapshot();
            match Caller::into_state(principal, self.origin, state) {
                Some(caller) => return self.enter(caller),
                None => tokio::time::sleep(TRY_AGAIN_AFTER).await,
            }
        }
        Err(Refused::Changing)
    }

    /// The caller at the door that its path names.
    fn enter(&self, caller: Caller) -> Result<Caller, Refused> {
        let Some(name) = &self.toolset else { return Ok(caller) };
        let toolset = caller.state.as_ref().and_then(|state| state.toolset(name, &caller).cloned());
        toolset.map(|toolset| caller.through(Some(toolset))).ok_or_else(|| Refused::NoSuchToolset(name.clone()))
    }
}

impl Known {
    /// Whoever showed `shown` and was let in as `caller` just now, as the caller of an answer.
    pub(super) fn standing(door: &Arc<Door>, shown: &Shown, caller: &Caller) -> Standing {
        let known = Self { door: door.clone(), shown: shown.clone(), owner: caller.principal.clone() };
        Standing::new(Arc::new(known), door.service.registry())
    }

    /// The caller of this moment.
    pub(super) async fn caller(&self) -> Result<Caller, Refused> {
        let caller = self.shown.caller(&self.door).await?;
        if caller.principal.is_same_as(&self.owner) {
            return Ok(caller);
        }
        Err(Refused::Unauthenticated(Unauthenticated::Invalid))
    }

    /// Whether it would still be let in: a key that was revoked, or a token that expired, ends what it opened.
    pub(super) async fn is_let_in(&self) -> bool {
        !self.caller().await.is_err_and(|refused| refused.is_final())
    }
}

#[async_trait]
impl Identity for Known {
    async fn caller(&self) -> Result<Caller, RpcError> {
        Self::caller(self).await.map_err(|refused| refused.error())
    }

    async fn is_let_in(&self) -> bool {
        Self::is_let_in(self).await
    }

    fn renewals(&self) -> watch::Receiver<u64> {
        self.door.options.authenticator.renewals()
    }
}

impl From<Lapsed> for Refused {
    fn from(Lapsed: Lapsed) -> Self {
        Self::Unauthenticated(Unauthenticated::Invalid)
    }
}

impl Refused {
    /// Whether it stays so: who meets a change of the configuration is let in a moment later.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, Self::Changing)
    }

    /// What is wrong, for the caller.
    pub(super) fn error(&self) -> RpcError {
        match self {
            Self::Unauthenticated(reason) => RpcError::invalid_request(reason.to_string()),
            Self::NoSuchToolset(name) => {
                RpcError::invalid_request(format!("there is no toolset {name:?}; the whole of the server is at /mcp"))
            }
            Self::Changing => changing(),
        }
    }

    /// The refusal of a whole request that came from `origin`.
    pub(super) fn response(&self, door: &Door, origin: Origin) -> Response {
        let error = self.error();
        match self {
            Self::Unauthenticated(reason) => {
                door.tell_of_refusal(origin, &error.message);
                let mut response = refusal(status_of(*reason), None, &error);
                let challenge = door.options.protected_resource.field(&Challenge::from(*reason));
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
                response
            }
            Self::NoSuchToolset(_) => refusal(StatusCode::NOT_FOUND, None, &error),
            Self::Changing => refusal(StatusCode::SERVICE_UNAVAILABLE, None, &error),
        }
    }
}

fn status_of(reason: Unauthenticated) -> StatusCode {
    match reason {
        Unauthenticated::Missing | Unauthenticated::Invalid => StatusCode::UNAUTHORIZED,
        Unauthenticated::Malformed => StatusCode::BAD_REQUEST,
    }
}

/// Of the headers those of `names`, in the order of the names. What cannot be read, or is too much, counts as said
/// twice: that is refused wherever it counts, since nobody could say which one was meant.
fn asserted(headers: &HeaderMap, names: &[String]) -> Vec<(String, String)> {
    let mut asserted = Vec::new();
    for name in names {
        for value in headers.get_all(name) {
            let value = std::str::from_utf8(value.as_bytes()).ok().filter(|value| value.len() <= ASSERTED_BYTES_MAX);
            match value.filter(|_| asserted.len() < ASSERTED_MAX) {
                Some(value) => asserted.push((name.clone(), value.to_owned())),
                None => return vec![(name.clone(), String::new()); 2],
            }
        }
    }
    asserted
}
