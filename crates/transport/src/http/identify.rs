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
use tidegate_core::{AuthenticationError, CallOrigin, Caller, Credentials, Principal, TransportKind};
use tidegate_mcp::RpcError;
use tokio::sync::watch;

use super::authorization::Authorization;
use super::path::transport_of;
use super::protected_resource::Challenge;
use super::response::refusal;
use super::{HttpState, PeerAddress, body};
use crate::batch::{CallerResolver, configuration_changing_error};
use crate::revalidation::{Revoked, SessionValidity};
use crate::tls::{TlsPeer, UntrustedCertificate};

/// How often a caller is asked again while a new configuration is being entered, which takes a moment.
const TRIES_MAX: usize = 100;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// Of headers that may say who calls, so many values of so many bytes are looked at.
const IDENTITY_HEADERS_MAX: usize = 16;
const IDENTITY_HEADER_BYTES_MAX: usize = 1024;

/// What a request showed of its caller. It is asked about when the request comes, when its body was read, and before
/// each message of a batch: in between a key may be revoked, and a role may lose what it had.
#[derive(Clone)]
pub(super) struct RequestCredentials {
    authorization: Authorization,
    identity_headers: Vec<(String, String)>,
    /// Who is at the other end of the connection, where it is one of TLS.
    tls: Option<Arc<TlsPeer>>,
    /// From where.
    pub(super) origin: CallOrigin,
    pub(super) toolset: Option<String>,
}

/// Who is at the other end of what lives longer than a request, or sends a batch: asked for again at each message and
/// at each sign of life.
pub(super) struct HttpCallerResolver {
    pub(super) http_state: Arc<HttpState>,
    pub(super) credentials: RequestCredentials,
    /// Who it was at the beginning. Somebody else is let in no more than nobody.
    pub(super) owner: Arc<Principal>,
}

/// Why a caller is not let in.
pub(super) enum AdmissionError {
    /// It proves nobody.
    Unauthenticated(AuthenticationError),
    /// The toolset is hidden from the caller or absent.
    NoSuchToolset(String),
    /// A new configuration is not entered yet.
    ConfigurationChanging,
}

/// Puts the [`Caller`] and its [`RequestCredentials`] into the request's extensions; 401 for one who proves nobody, 400 for what no
/// client may send as a proof, 404 for a toolset that is hidden from the caller or absent.
pub(super) async fn identify(
    State(http_state): State<Arc<HttpState>>,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let toolset = path.iter().find(|(parameter, _)| *parameter == "toolset").map(|(_, name)| name.to_owned());
    let transport = transport_of(request.uri().path());
    let request_credentials =
        RequestCredentials::from_request(&http_state, request.headers(), request.extensions(), transport, toolset);
    match request_credentials.resolve_caller(&http_state).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(request_credentials);
            next.run(request).await
        }
        Err(refused) => {
            let response = refused.to_response(&http_state, request_credentials.origin);
            body::discard(request.into_body(), http_state.options.read_within).await;
            response
        }
    }
}

impl RequestCredentials {
    /// What the head of a request to the door of `toolset` shows.
    pub(super) fn from_request(
        http_state: &HttpState,
        headers: &HeaderMap,
        extensions: &Extensions,
        transport: TransportKind,
        toolset: Option<String>,
    ) -> Self {
        let asserting = http_state.options.authenticator.identity_headers();
        let identity_headers = asserting.map_or_else(Vec::new, |names| collect_identity_headers(headers, &names));
        let origin = CallOrigin { transport, peer: PeerAddress::from_extensions(extensions) };
        let tls = extensions.get::<Arc<TlsPeer>>().cloned();
        Self { authorization: Authorization::from_headers(headers), identity_headers, tls, origin, toolset }
    }

    /// The caller by the gate and the registry of this moment, which belong together.
    pub(super) async fn resolve_caller(&self, http_state: &HttpState) -> Result<Caller, AdmissionError> {
        let authenticator = &http_state.options.authenticator;
        let bearer = match self.authorization.bearer() {
            // Where nobody is asked who calls, nothing that is shown is wrong.
            Err(_) if !authenticator.enforces_authentication() => None,
            shown => shown.map_err(AdmissionError::Unauthenticated)?,
        };
        for _ in 0..TRIES_MAX {
            let certificate = self.tls.as_ref().map(|peer| peer.certificate()).transpose();
            let certificate = certificate
                .map_err(|UntrustedCertificate| AdmissionError::Unauthenticated(AuthenticationError::Invalid))?;
            let credentials = Credentials {
                bearer,
                peer: self.origin.peer,
                certificate: certificate.flatten(),
                identity_headers: &self.identity_headers,
            };
            let principal = authenticator.authenticate(credentials).await;
            let principal = principal.map_err(AdmissionError::Unauthenticated)?;
            let state = http_state.service.registry().snapshot();
            match Caller::with_snapshot(principal, self.origin, state) {
                Some(caller) => return self.enter_toolset(caller),
                None => tokio::time::sleep(TRY_AGAIN_AFTER).await,
            }
        }
        Err(AdmissionError::ConfigurationChanging)
    }

    /// The caller at the door that its path names.
    fn enter_toolset(&self, caller: Caller) -> Result<Caller, AdmissionError> {
        let Some(name) = &self.toolset else { return Ok(caller) };
        let toolset = caller.snapshot.as_ref().and_then(|state| state.toolset(name, &caller).cloned());
        toolset
            .map(|toolset| caller.with_toolset(Some(toolset)))
            .ok_or_else(|| AdmissionError::NoSuchToolset(name.clone()))
    }
}

impl HttpCallerResolver {
    /// Whoever showed `shown` and was let in as `resolve_caller` just now, as the caller of an answer.
    pub(super) fn session_validity(
        endpoint: &Arc<HttpState>,
        request_credentials: &RequestCredentials,
        caller: &Caller,
    ) -> SessionValidity {
        let known = Self {
            http_state: endpoint.clone(),
            credentials: request_credentials.clone(),
            owner: caller.principal.clone(),
        };
        SessionValidity::new(Arc::new(known), endpoint.service.registry())
    }

    /// The caller of this moment.
    pub(super) async fn resolve_caller(&self) -> Result<Caller, AdmissionError> {
        let caller = self.credentials.resolve_caller(&self.http_state).await?;
        if caller.principal.is_same_identity(&self.owner) {
            return Ok(caller);
        }
        Err(AdmissionError::Unauthenticated(AuthenticationError::Invalid))
    }

    /// Whether it would still be let in: a key that was revoked, or a token that expired, ends what it opened.
    pub(super) async fn is_admitted(&self) -> bool {
        !self.resolve_caller().await.is_err_and(|refused| refused.is_final())
    }
}

#[async_trait]
impl CallerResolver for HttpCallerResolver {
    async fn resolve_caller(&self) -> Result<Caller, RpcError> {
        Self::resolve_caller(self).await.map_err(|refused| refused.to_rpc_error())
    }

    async fn is_admitted(&self) -> bool {
        Self::is_admitted(self).await
    }

    fn credential_reloads(&self) -> watch::Receiver<u64> {
        self.http_state.options.authenticator.credential_reloads()
    }
}

impl From<Revoked> for AdmissionError {
    fn from(Revoked: Revoked) -> Self {
        Self::Unauthenticated(AuthenticationError::Invalid)
    }
}

impl AdmissionError {
    /// Whether it stays so: who meets a change of the configuration is let in a moment later.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, Self::ConfigurationChanging)
    }

    /// What is wrong, for the caller.
    pub(super) fn to_rpc_error(&self) -> RpcError {
        match self {
            Self::Unauthenticated(reason) => RpcError::invalid_request(reason.to_string()),
            Self::NoSuchToolset(name) => RpcError::invalid_request(format!(
                "there is no toolset {name:?}; the endpoint of the whole server is /mcp"
            )),
            Self::ConfigurationChanging => configuration_changing_error(),
        }
    }

    /// The refusal of a whole request that came from `origin_of_peer`.
    pub(super) fn to_response(&self, http_state: &HttpState, origin: CallOrigin) -> Response {
        let error = self.to_rpc_error();
        match self {
            Self::Unauthenticated(reason) => {
                http_state.report_rejection(origin, &error.message);
                let mut response = refusal(status_for(*reason), None, &error);
                let challenge = http_state.options.protected_resource.challenge_header(&Challenge::from(*reason));
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
                response
            }
            Self::NoSuchToolset(_) => refusal(StatusCode::NOT_FOUND, None, &error),
            Self::ConfigurationChanging => refusal(StatusCode::SERVICE_UNAVAILABLE, None, &error),
        }
    }
}

fn status_for(reason: AuthenticationError) -> StatusCode {
    match reason {
        AuthenticationError::Missing | AuthenticationError::Invalid => StatusCode::UNAUTHORIZED,
        AuthenticationError::Malformed => StatusCode::BAD_REQUEST,
    }
}

/// Of the headers those of `names`, in the order of the names. What cannot be read, or is too much, counts as said
/// twice: that is refused wherever it counts, since nobody could say which one was meant.
fn collect_identity_headers(headers: &HeaderMap, names: &[String]) -> Vec<(String, String)> {
    let mut asserted = Vec::new();
    for name in names {
        for value in headers.get_all(name) {
            let value =
                std::str::from_utf8(value.as_bytes()).ok().filter(|value| value.len() <= IDENTITY_HEADER_BYTES_MAX);
            match value.filter(|_| asserted.len() < IDENTITY_HEADERS_MAX) {
                Some(value) => asserted.push((name.clone(), value.to_owned())),
                None => return vec![(name.clone(), String::new()); 2],
            }
        }
    }
    asserted
}
