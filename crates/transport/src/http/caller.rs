//! Resolves the caller of a request and the toolset of its endpoint: before any other check, and again for each
//! message. Credentials are in the `Authorization` header, or in a subprotocol of a WebSocket. Whether a key or token is
//! valid is checked by the authenticator.
//!
//! [MCP 2026-07-28, Authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization),
//! [RFC 6750, 2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1) and
//! [3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1), [RFC 9110, 11](https://www.rfc-editor.org/rfc/rfc9110#section-11)

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::{Extensions, HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_core::{
    AuthenticationError, CallOrigin, Caller, Credentials, ErrorKind, Principal, TransportKind, is_bearer_token,
};
use tidegate_mcp::RpcError;
use tidegate_runtime::Snapshot;
use tokio::sync::watch;

use super::answer::{ProblemDetails, ProblemType};
use super::body;
use super::browser::is_direct;
use super::endpoints::endpoint_at;
use super::protected_resource::Challenge;
use super::response::refusal;
use super::state::{HttpState, PeerAddress};
use crate::revalidation::{CallerResolver, CallerRevalidator, Revoked, configuration_changing_error};
use crate::tls::{TlsPeer, UntrustedCertificate};

/// Number and interval of attempts while a new configuration is being applied, which takes a moment.
const TRIES_MAX: usize = 100;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// A caller that was resolved less than this time ago is not resolved again.
pub(super) const REVALIDATE_AFTER: Duration = Duration::from_millis(10);
/// Limits for identity headers: number of values, and bytes of each.
const IDENTITY_HEADERS_MAX: usize = 16;
const IDENTITY_HEADER_BYTES_MAX: usize = 1024;

/// Resolved when the request arrives, after its body is read, and before each message of a JSON-RPC batch: a key may be
/// revoked.
#[derive(Clone)]
pub(super) struct RequestCredentials {
    authorization: Authorization,
    identity_headers: Vec<(String, String)>,
    is_direct: bool,
    tls: Option<Arc<TlsPeer>>,
    pub(super) origin: CallOrigin,
    pub(super) toolset: Option<String>,
}

/// Resolves the caller of a connection or a JSON-RPC batch again, at each message and at each keep-alive.
pub(super) struct HttpCallerResolver {
    pub(super) http_state: Arc<HttpState>,
    pub(super) credentials: RequestCredentials,
    /// The principal at the beginning. A different principal is rejected.
    pub(super) owner: Arc<Principal>,
}

/// Why a request has no caller.
pub(super) enum CallerError {
    /// The credentials are missing or invalid.
    Unauthenticated(AuthenticationError),
    /// The toolset is hidden from the caller or absent.
    NoSuchToolset(String),
    /// A new configuration is not completely applied yet.
    ConfigurationChanging,
}

/// A request with its caller. Handlers of MCP take it instead of a request.
pub(super) struct AuthenticatedRequest {
    pub(super) caller: Caller,
    pub(super) credentials: RequestCredentials,
    pub(super) request: Request,
}

/// The status is 401 for missing or invalid credentials, 400 for a malformed header, and 404 for a toolset that is absent
/// or hidden from the caller.
impl FromRequest<Arc<HttpState>> for AuthenticatedRequest {
    type Rejection = Response;

    async fn from_request(request: Request, http_state: &Arc<HttpState>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let path = RawPathParams::from_request_parts(&mut parts, http_state).await;
        let path = path.map_err(IntoResponse::into_response)?;
        let toolset = path.iter().find(|(parameter, _)| *parameter == "toolset").map(|(_, name)| name.to_owned());
        Self::authenticate(Request::from_parts(parts, body), toolset, http_state).await
    }
}

impl AuthenticatedRequest {
    /// The request to the endpoint of `toolset`, or of the whole server. The error is the response.
    pub(super) async fn authenticate(
        request: Request,
        toolset: Option<String>,
        http_state: &HttpState,
    ) -> Result<Self, Response> {
        let transport = endpoint_at(request.uri().path()).switch.transport();
        let credentials =
            RequestCredentials::from_request(http_state, request.headers(), request.extensions(), transport, toolset);
        match credentials.resolve_caller(http_state).await {
            Ok(caller) => Ok(Self { caller, credentials, request }),
            Err(refused) => {
                let response = refused.to_response(http_state, credentials.origin);
                body::discard(request.into_body(), http_state.options.read_within).await;
                Err(response)
            }
        }
    }
}

/// The caller of a request of REST, whose rate is counted.
pub(super) async fn admit_rest_caller(
    http_state: &HttpState,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<(RequestCredentials, Caller), ProblemDetails> {
    let credentials = RequestCredentials::from_request(http_state, headers, extensions, TransportKind::Rest, None);
    let caller = credentials.resolve_caller(http_state).await?;
    http_state.service.registry().admit_request(&caller).await?;
    Ok((credentials, caller))
}

impl RequestCredentials {
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
        let authorization = match transport {
            TransportKind::WebSocket => Authorization::from_web_socket_headers(headers),
            _ => Authorization::from_headers(headers),
        };
        Self { authorization, identity_headers, is_direct: is_direct(headers), tls, origin, toolset }
    }

    /// The caller according to the current authenticator and registry, which belong to the same configuration.
    pub(super) async fn resolve_caller(&self, http_state: &HttpState) -> Result<Caller, CallerError> {
        let authenticator = &http_state.options.authenticator;
        let bearer = match self.authorization.bearer() {
            // Without authentication, unusable credentials are ignored.
            Err(_) if !authenticator.enforces_authentication() => None,
            parsed => parsed.map_err(CallerError::Unauthenticated)?,
        };
        for _ in 0..TRIES_MAX {
            let certificate = self.tls.as_ref().map(|peer| peer.certificate()).transpose();
            let certificate = certificate
                .map_err(|UntrustedCertificate| CallerError::Unauthenticated(AuthenticationError::Invalid))?;
            let credentials = Credentials {
                bearer,
                peer: self.origin.peer,
                certificate: certificate.flatten(),
                identity_headers: &self.identity_headers,
                is_direct: self.is_direct,
            };
            let principal = authenticator.authenticate(credentials).await;
            let principal = principal.map_err(CallerError::Unauthenticated)?;
            let snapshot = http_state.service.registry().snapshot();
            match snapshot.create_caller(principal, self.origin) {
                Some(caller) => return self.enter_toolset(caller),
                None => tokio::time::sleep(TRY_AGAIN_AFTER).await,
            }
        }
        Err(CallerError::ConfigurationChanging)
    }

    fn enter_toolset(&self, caller: Caller) -> Result<Caller, CallerError> {
        let Some(name) = &self.toolset else { return Ok(caller) };
        let toolset = Snapshot::for_caller(&caller).and_then(|snapshot| snapshot.toolset(name, &caller).cloned());
        toolset
            .map(|toolset| caller.with_toolset(Some(toolset)))
            .ok_or_else(|| CallerError::NoSuchToolset(name.clone()))
    }
}

impl HttpCallerResolver {
    pub(super) fn new(http_state: &Arc<HttpState>, credentials: RequestCredentials, caller: &Caller) -> Self {
        Self { http_state: http_state.clone(), credentials, owner: caller.principal.clone() }
    }

    pub(super) fn into_revalidator(self) -> CallerRevalidator {
        let http_state = self.http_state.clone();
        CallerRevalidator::new(Arc::new(self), http_state.service.registry())
    }

    pub(super) async fn resolve_caller(&self) -> Result<Caller, CallerError> {
        let caller = self.credentials.resolve_caller(&self.http_state).await?;
        if caller.principal.is_same_identity(&self.owner) {
            return Ok(caller);
        }
        Err(CallerError::Unauthenticated(AuthenticationError::Invalid))
    }

    /// Whether the caller is still admitted: a revoked key or an expired token ends its streams.
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

impl From<Revoked> for CallerError {
    fn from(Revoked: Revoked) -> Self {
        Self::Unauthenticated(AuthenticationError::Invalid)
    }
}

impl CallerError {
    /// Whether the error is permanent. A configuration change is over after a moment.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, Self::ConfigurationChanging)
    }

    pub(super) fn to_rpc_error(&self) -> RpcError {
        match self {
            Self::Unauthenticated(reason) => RpcError::invalid_request(reason.to_string()),
            Self::NoSuchToolset(name) => RpcError::invalid_request(format!(
                "there is no toolset {name:?}; the endpoint of the whole server is /mcp"
            )),
            Self::ConfigurationChanging => configuration_changing_error(),
        }
    }

    pub(super) fn problem_type(&self) -> ProblemType {
        match self {
            Self::Unauthenticated(AuthenticationError::Malformed) => ProblemType::BadRequest,
            Self::Unauthenticated(_) => ProblemType::Call(ErrorKind::Unauthenticated),
            Self::NoSuchToolset(_) => ProblemType::Call(ErrorKind::NotFound),
            Self::ConfigurationChanging => ProblemType::Call(ErrorKind::Unavailable),
        }
    }

    pub(super) fn to_response(&self, http_state: &HttpState, origin: CallOrigin) -> Response {
        let error = self.to_rpc_error();
        let mut response = refusal(self.problem_type().status(), None, &error);
        if let Self::Unauthenticated(reason) = self {
            http_state.report_rejection(origin, &error.message);
            let challenge = http_state.options.protected_resource.challenge_header(&Challenge::from(*reason));
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// A value that is unreadable or over the limits counts as a duplicate, which is rejected wherever the header matters.
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

#[derive(Clone)]
enum Authorization {
    Absent,
    Bearer(Arc<str>),
    /// Credentials of another scheme, which are not supported. The challenge then does not report an invalid token.
    OtherScheme,
    /// A header that no client may send.
    Malformed,
}

impl Authorization {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Self::Absent };
        if values.next().is_some() {
            // A proxy in front of the server may have checked the other value.
            return Self::Malformed;
        }
        value.to_str().map_or(Self::Malformed, Self::parse)
    }

    /// The same for the handshake of a WebSocket. Web pages cannot set its headers, but they can offer subprotocols:
    /// one that contains the token counts like the `Authorization` header. It is never selected, so the response does
    /// not contain it.
    fn from_web_socket_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
        let offers = values.flat_map(|value| value.split(',')).map(str::trim);
        let mut bearers = offers.filter_map(parse_bearer_subprotocol);
        match (bearers.next(), bearers.next()) {
            (None, _) => Self::from_headers(headers),
            (Some(bearer), None) if !headers.contains_key(header::AUTHORIZATION) => bearer,
            // It is not clear which of them authenticates the caller.
            _ => Self::Malformed,
        }
    }

    /// The scheme is case-insensitive.
    fn parse(value: &str) -> Self {
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return if is_scheme(scheme) { Self::OtherScheme } else { Self::Malformed };
        }
        let token = rest.trim_matches(' ');
        if is_bearer_token(token) { Self::Bearer(token.into()) } else { Self::Malformed }
    }

    /// The key or token, if there is one; an error for any other content, which does not authenticate a caller.
    pub(super) fn bearer(&self) -> Result<Option<&str>, AuthenticationError> {
        match self {
            Self::Absent => Ok(None),
            Self::Bearer(bearer) => Ok(Some(bearer)),
            Self::OtherScheme => Err(AuthenticationError::Missing),
            Self::Malformed => Err(AuthenticationError::Malformed),
        }
    }
}

/// The token in the subprotocol `bearer.TOKEN`, or in `base64url.bearer.TOKEN-AS-BASE64URL`, because subprotocols must
/// not contain `/` and `=`; `None` for another subprotocol.
fn parse_bearer_subprotocol(offer: &str) -> Option<Authorization> {
    let token = if let Some(encoded) = offer.strip_prefix("base64url.bearer.") {
        URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    } else {
        offer.strip_prefix("bearer.")?.to_owned()
    };
    Some(if is_bearer_token(&token) { Authorization::Bearer(token.into()) } else { Authorization::Malformed })
}

fn is_scheme(text: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn parses_authorization_headers() {
        let visible: [&[&[u8]]; 22] = [
            &[],
            &[b"Bearer abc"],
            &[b"bEARER   a-b.c_d~e+f/g=="],
            &[b"Bearer"],
            &[b"Bearer "],
            &[b"Bearer ="],
            &[b"Bearer a b"],
            &[b"Bearer a,b"],
            &[b"Bearer a, Bearer b"],
            &[b"Bearer a=b"],
            &[b"Bearer \"a\""],
            &[b"Bearer a:b"],
            &[b"Bearer\ta"],
            &[b"Bearer \xc3\xa4"],
            &[b"\xc3\xa4 a"],
            &[b""],
            &[b"(a) b"],
            &[b"Basic Zm9v"],
            &[b"Digest username=\"a\", realm=\"b\""],
            &[b"tg_abcdefgh_c2VjcmV0"],
            &[b"Bearer a", b"Bearer a"],
            &[b"Basic a", b"Bearer a"],
        ];
        let message = visible.map(|values| {
            let value = |bytes: &&[u8]| (header::AUTHORIZATION, HeaderValue::from_bytes(bytes).unwrap());
            let mut headers = HeaderMap::new();
            for (name, value) in values.iter().map(value) {
                headers.append(name, value);
            }
            let message = match Authorization::from_headers(&headers) {
                Authorization::Absent => "absent".to_owned(),
                Authorization::Bearer(token) => format!("bearer {token}"),
                Authorization::OtherScheme => "other scheme".to_owned(),
                Authorization::Malformed => "malformed".to_owned(),
            };
            let values: Vec<_> =
                values.iter().map(|value| String::from_utf8_lossy(value).escape_debug().to_string()).collect();
            format!("{:32} {message}", if values.is_empty() { "no field".to_owned() } else { values.join(" | ") })
        });
        insta::assert_snapshot!(message.join("\n"), @r#"
        no field                         absent
        Bearer abc                       bearer abc
        bEARER   a-b.c_d~e+f/g==         bearer a-b.c_d~e+f/g==
        Bearer                           malformed
        Bearer                           malformed
        Bearer =                         malformed
        Bearer a b                       malformed
        Bearer a,b                       malformed
        Bearer a, Bearer b               malformed
        Bearer a=b                       malformed
        Bearer \"a\"                     malformed
        Bearer a:b                       malformed
        Bearer\ta                        malformed
        Bearer ä                         malformed
        ä a                              malformed
                                         malformed
        (a) b                            malformed
        Basic Zm9v                       other scheme
        Digest username=\"a\", realm=\"b\" other scheme
        tg_abcdefgh_c2VjcmV0             other scheme
        Bearer a | Bearer a              malformed
        Basic a | Bearer a               malformed
        "#);
    }
}
