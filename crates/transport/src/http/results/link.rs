//! Who asks: whoever shows a key, or whoever has a link to the result.
//!
//! A link is a key to one result for a short time. It stands in the address, so nothing of it is ever told: neither in
//! an answer nor in the log.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use axum::extract::Query;
use axum::http::Uri;
use axum::http::request::Parts;
use tidegate_core::{AuthMethod, CallOrigin, Caller, ErrorKind, Principal, TransportKind};
use tidegate_mcp::RpcError;
use tokio::sync::watch;

use super::super::identify::{AdmissionError, HttpCallerResolver, RequestCredentials};
use super::super::protected_resource::Challenge;
use super::super::rest::{ParameterKind, ProblemDetails, ProblemType, QueryParameter};
use super::super::{HttpState, PeerAddress};
use super::route::ResultRoute;
use crate::batch::CallerResolver;
use crate::revalidation::{Revoked, SessionValidity};

/// Stands for the key of whoever made the link.
pub(super) const LINK: QueryParameter =
    QueryParameter::new("link", ParameterKind::Text, "A link to this result, instead of a key");

/// The caller by the link of the address, if it has one, else by what the headers show; that is asked again while the
/// answer streams.
pub(super) async fn resolve_caller(
    endpoint: &Arc<HttpState>,
    parts: &Parts,
    route: &ResultRoute,
) -> Result<(Caller, Option<SessionValidity>), ProblemDetails> {
    let Some(link) = link_parameter(&parts.uri) else {
        let request_credentials =
            RequestCredentials::from_request(endpoint, &parts.headers, &parts.extensions, TransportKind::Rest, None);
        let caller = request_credentials
            .resolve_caller(endpoint)
            .await
            .map_err(|refused| ProblemDetails::from_admission_error(&refused))?;
        let validity = HttpCallerResolver::session_validity(endpoint, &request_credentials, &caller);
        return Ok((caller, Some(validity)));
    };
    let opened = endpoint.options.links.as_ref().and_then(|links| links.verify_link(&route.id, &link));
    let maker =
        opened.filter(|maker| is_maker_admitted(endpoint, &maker.principal)).ok_or_else(invalid_link_problem)?;
    let peer = match maker.principal.auth_method {
        // Those who showed nothing are told apart by their addresses: the link speaks for its maker's.
        AuthMethod::Anonymous => maker.origin.peer,
        _ => PeerAddress::from_extensions(&parts.extensions),
    };
    let origin = CallOrigin { transport: TransportKind::Rest, peer };
    let caller = Caller { origin, is_link_only: true, ..maker };
    let maker = LinkCallerResolver { http_state: endpoint.clone(), caller: caller.clone() };
    let validity = SessionValidity::new(Arc::new(maker), endpoint.service.registry());
    Ok((caller, Some(validity)))
}

/// Whoever made a link, while what it opened streams. No link outlives the configuration and the reading of keys that its
/// maker was let in by, so a key that is revoked takes its links with it, nor the end of its maker's key or token. That
/// the link's own time is over ends nothing that it began.
struct LinkCallerResolver {
    http_state: Arc<HttpState>,
    caller: Caller,
}

#[async_trait]
impl CallerResolver for LinkCallerResolver {
    async fn resolve_caller(&self) -> Result<Caller, RpcError> {
        match self.is_admitted().await {
            true => Ok(self.caller.clone()),
            false => Err(AdmissionError::from(Revoked).to_rpc_error()),
        }
    }

    async fn is_admitted(&self) -> bool {
        is_maker_admitted(&self.http_state, &self.caller.principal)
    }

    fn credential_reloads(&self) -> watch::Receiver<u64> {
        self.http_state.options.authenticator.credential_reloads()
    }
}

/// Whether whoever made a link would still be let in, as far as is known without what it showed.
fn is_maker_admitted(http_state: &HttpState, principal: &Principal) -> bool {
    let is_of_now = http_state.service.registry().snapshot().matches_generation(principal)
        && principal.is_valid_at(SystemTime::now());
    is_of_now && http_state.options.authenticator.is_still_valid(principal)
}

/// The link of an address. Whether there is more than one is asked later, of those who are let in.
fn link_parameter(uri: &Uri) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().find(|(name, _)| name == LINK.name).map(|(_, link)| link)
}

/// The same whether the result exists or not.
fn invalid_link_problem() -> ProblemDetails {
    let detail = "invalid result link: it belongs to another result, or it has expired".to_owned();
    ProblemDetails::new(ProblemType::Call(ErrorKind::Unauthenticated), detail)
        .with_challenge(Challenge::Invalid)
        .with_hint(
            "A link is valid for a few minutes. Read the manifest of the result for a new one: GET /results/{id} with \
             a key, or the resource tidegate://results/{id} over MCP.",
        )
}
