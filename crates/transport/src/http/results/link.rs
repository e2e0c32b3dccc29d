//! Resolves the caller of a download: by its credentials, or by a link to the result.
//!
//! A link is a key to one result for a short time. It is part of the URL, so it never appears in an answer or in the
//! log.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use axum::extract::Query;
use axum::http::Uri;
use axum::http::request::Parts;
use tidegate_core::{AuthMethod, CallOrigin, Caller, ErrorKind, Principal, TransportKind};
use tidegate_mcp::RpcError;
use tokio::sync::watch;

use super::super::answer::{ParameterKind, ProblemDetails, ProblemType, QueryParameter};
use super::super::caller::{CallerError, HttpCallerResolver, RequestCredentials};
use super::super::protected_resource::Challenge;
use super::super::state::{HttpState, PeerAddress};
use super::route::ResultRoute;
use crate::revalidation::{CallerResolver, CallerRevalidator, Revoked};

/// A link replaces the key of the caller that created it.
pub(super) const LINK: QueryParameter =
    QueryParameter::new("link", ParameterKind::Text, "A link to this result, instead of a key");

/// The caller of the link, if there is one; otherwise of the credentials. Revalidated while the answer streams.
pub(super) async fn resolve_caller(
    http_state: &Arc<HttpState>,
    parts: &Parts,
    route: &ResultRoute,
) -> Result<(Caller, CallerRevalidator), ProblemDetails> {
    let Some(link) = link_parameter(&parts.uri) else {
        let credentials =
            RequestCredentials::from_request(http_state, &parts.headers, &parts.extensions, TransportKind::Rest, None);
        let caller = credentials.resolve_caller(http_state).await?;
        let revalidator = HttpCallerResolver::new(http_state, credentials, &caller).into_revalidator();
        return Ok((caller, revalidator));
    };
    let creator = http_state.options.links.as_ref().and_then(|links| links.verify_link(&route.id, &link));
    let creator = creator.filter(|creator| is_creator_admitted(http_state, &creator.principal));
    let creator = creator.ok_or_else(invalid_link_problem)?;
    let peer = match creator.principal.auth_method {
        // Anonymous callers are distinguished by address; a link keeps the address of its creator.
        AuthMethod::Anonymous => creator.origin.peer,
        _ => PeerAddress::from_extensions(&parts.extensions),
    };
    let origin = CallOrigin { transport: TransportKind::Rest, peer };
    let caller = Caller { origin, is_link_only: true, ..creator };
    let resolver = LinkCallerResolver { http_state: http_state.clone(), caller: caller.clone() };
    let revalidator = CallerRevalidator::new(Arc::new(resolver), http_state.service.registry());
    Ok((caller, revalidator))
}

/// The creator of a link, while an answer is streamed. A link does not outlive the configuration and the load of keys
/// that admitted its creator, nor the creator's key or token. A revoked key therefore revokes its links. When the link
/// itself expires, running downloads continue.
struct LinkCallerResolver {
    http_state: Arc<HttpState>,
    caller: Caller,
}

#[async_trait]
impl CallerResolver for LinkCallerResolver {
    async fn resolve_caller(&self) -> Result<Caller, RpcError> {
        match self.is_admitted().await {
            true => Ok(self.caller.clone()),
            false => Err(CallerError::from(Revoked).to_rpc_error()),
        }
    }

    async fn is_admitted(&self) -> bool {
        is_creator_admitted(&self.http_state, &self.caller.principal)
    }

    fn credential_reloads(&self) -> watch::Receiver<u64> {
        self.http_state.options.authenticator.credential_reloads()
    }
}

/// Whether the creator of a link would still be admitted, as far as is known without its credentials.
fn is_creator_admitted(http_state: &HttpState, principal: &Principal) -> bool {
    let is_current = http_state.service.registry().snapshot().matches_generation(principal)
        && principal.is_valid_at(SystemTime::now());
    is_current && http_state.options.authenticator.is_still_valid(principal)
}

/// The link in the query string. Duplicates are rejected later, when the caller is known.
pub(in super::super) fn link_parameter(uri: &Uri) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().find(|(name, _)| name == LINK.name).map(|(_, link)| link)
}

/// The same problem, whether or not the result exists.
fn invalid_link_problem() -> ProblemDetails {
    let detail = "invalid result link: it belongs to another result, or it has expired".to_owned();
    ProblemDetails::new(ProblemType::Call(ErrorKind::Unauthenticated), detail)
        .with_challenge(Challenge::Invalid)
        .with_hint(
            "A link is valid for a few minutes. Read the manifest of the result for a new one: GET /results/{id} with \
             a key, or the resource tidegate://results/{id} over MCP.",
        )
}
