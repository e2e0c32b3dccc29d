//! Stored results: downloads of large answers, as a whole or block by block.
//!
//! A request becomes one read of a resource, like over MCP. Entity tags, ranges and content codings are applied here to
//! the bytes of that call.
//!
//! The caller is known by its credentials, or by a link to the result. A link is a key to one result for a short time. It is
//! part of the URL, so it never appears in an answer or in the log.

mod answer;
mod range;

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use tidegate_core::{AuthMethod, CallOrigin, CallTarget, Caller, Error, ErrorKind, Format, Principal, TransportKind};
use tidegate_mcp::RpcError;
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::Event;
use tokio::sync::watch;
use uuid::Uuid;

use super::answer::{Accept, ProblemDetails, ProblemType, into_response, new_call, options_response};
use super::body;
use super::caller::{CallerError, HttpCallerResolver, RequestCredentials};
use super::endpoints::{Endpoint, EndpointHandler, endpoint_at};
use super::parameters::{FORMAT, ParameterKind, QueryParameter, parse_query};
use super::protected_resource::Challenge;
use super::state::{HttpState, PeerAddress};
use crate::revalidation::{CallerResolver, CallerRevalidator, Revoked};

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let result = respond(&http_state, &parts, body).await;
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: Body) -> Result<Response, ProblemDetails> {
    // No path accepts a body. It is read so that the connection can be reused.
    body::discard(body, http_state.options.read_within).await;
    let route = ResultRoute::parse(parts.uri.path(), &parts.method)?;
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.endpoint));
    }
    http_state.service.registry().transport_switches().require_running(TransportGroup::Rest)?;
    let (caller, revalidator) = resolve_caller(http_state, parts, &route).await?;
    http_state.service.registry().admit_request(&caller).await?;
    let mut result_request = ResultRequest::read(&route, parts)?;
    let Some(uri) = route.uri() else { return Err(not_found_problem(http_state, &caller, &route)) };
    let (arguments, format) = (result_request.arguments.clone(), result_request.format);
    let call = new_call(CallTarget::Resource(uri), caller, arguments, format, &parts.headers);
    let reply = http_state.service.registry().call(call)?;
    answer::answer(reply, revalidator, &route, &mut result_request, parts).await
}

/// The problem of a path that no result can have: the same as for a result that does not exist.
fn not_found_problem(http_state: &HttpState, caller: &Caller, route: &ResultRoute) -> ProblemDetails {
    let outcome = ErrorKind::NotFound.name();
    // The path itself is not logged: if the `?` before a link is mistyped, the path contains the link.
    http_state.service.registry().events().emit(Event::CallRefused {
        caller,
        kind: "resource",
        name: "tidegate://results/{id}",
        outcome,
    });
    Error::new(ErrorKind::NotFound, format!("there is no resource {:?}", route.requested_uri())).into()
}

const URI_PREFIX: &str = "tidegate://results/";
const FILE_ID_DIGITS: usize = 8;
const ID_BYTES: usize = 36;

/// The parsed path, whether or not such a result can exist.
struct ResultRoute {
    endpoint: &'static Endpoint,
    /// The canonical id; as in the path if it is invalid.
    id: String,
    view: ResultView,
    /// The number of the block; empty for another view.
    block: String,
    is_valid: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultView {
    Manifest,
    Block,
    Data,
}

impl ResultRoute {
    fn parse(path: &str, method: &Method) -> Result<Self, ProblemDetails> {
        let endpoint = endpoint_at(path);
        let EndpointHandler::Results(Some(view)) = endpoint.handler else {
            let detail = "unknown path; the manifest of a result is at /results/{id}, its rows at \
                          /results/{id}/data, and its blocks at /results/{id}/blocks/{n}";
            return Err(ProblemDetails::new(ProblemType::NoSuchPath, detail));
        };
        endpoint.for_method(method)?;
        let mut values = endpoint.parameters(path.split('/')).map(|(_, value)| value);
        let (id, block) = (values.next().unwrap_or_default(), values.next());
        let canonical = parse_id(id).zip(block.map_or(Some(String::new()), parse_block));
        let is_valid = canonical.is_some();
        let (id, block) = canonical.unwrap_or_else(|| (id.to_owned(), block.unwrap_or_default().to_owned()));
        Ok(Self { endpoint, id, view, block, is_valid })
    }

    /// The URI of the resource; `None` if it cannot exist.
    fn uri(&self) -> Option<String> {
        self.is_valid.then(|| self.requested_uri())
    }

    /// The same, without a check that it can exist.
    fn requested_uri(&self) -> String {
        view_uri(&self.id, self.view, &self.block)
    }

    /// The file name without extension; `None` for a view that is not a file.
    fn file_stem(&self) -> Option<String> {
        let id = self.id.get(..FILE_ID_DIGITS)?;
        match self.view {
            ResultView::Manifest => None,
            ResultView::Block => Some(format!("result-{id}-{}", self.block)),
            ResultView::Data => Some(format!("result-{id}")),
        }
    }
}

/// The id in canonical form; `None` if it is invalid.
fn parse_id(segment: &str) -> Option<String> {
    let id = percent_decode_str(segment).decode_utf8().ok().filter(|id| id.len() == ID_BYTES)?;
    Some(Uuid::try_parse(&id).ok()?.hyphenated().to_string())
}

/// The number of a block, which has exactly one path: `+7` and `007` are invalid.
fn parse_block(segment: &str) -> Option<String> {
    let number = percent_decode_str(segment).decode_utf8().ok()?;
    let read: u32 = number.parse().ok()?;
    Some(read.to_string()).filter(|text| *text == *number)
}

pub(super) fn view_uri(id: &str, view: ResultView, block: &str) -> String {
    match view {
        ResultView::Manifest => format!("{URI_PREFIX}{id}"),
        ResultView::Block => format!("{URI_PREFIX}{id}/blocks/{block}"),
        ResultView::Data => format!("{URI_PREFIX}{id}/data"),
    }
}

pub(super) const PARTIAL: QueryParameter =
    QueryParameter::new("partial", ParameterKind::Flag, "Whether to return the existing rows of an incomplete result");

#[derive(Debug)]
struct ResultRequest {
    format: Format,
    arguments: Map<String, Value>,
    /// Why no row format is acceptable. The result may still be a file, which needs no row format.
    format_problem: Option<ProblemDetails>,
    has_link: bool,
}

impl ResultRequest {
    fn read(route: &ResultRoute, parts: &Parts) -> Result<Self, ProblemDetails> {
        let parameters: &[QueryParameter] = match route.view {
            ResultView::Data => &[PARTIAL, LINK],
            ResultView::Block | ResultView::Manifest => &[LINK],
        };
        let (mut arguments, format) = parse_query(&parts.uri, parameters)?;
        let has_link = arguments.remove(LINK.name).is_some();
        let accepted = Accept::best_of(&parts.headers, format.as_deref(), &offered_formats(route.view));
        let may_be_file = route.view == ResultView::Data && format.is_none();
        let (format, refused) = match accepted {
            Ok(accepted) => {
                // A format in the query string applies to any kind of result.
                let requested = format.filter(|_| route.view == ResultView::Data);
                arguments.extend(requested.map(|format| (FORMAT.name.to_owned(), format.into())));
                (accepted, None)
            }
            Err(problem) if may_be_file => (Format::Arrow, Some(problem)),
            Err(problem) => return Err(problem),
        };
        Ok(Self { format, arguments, format_problem: refused, has_link })
    }
}

/// The formats of a view, the stored one first.
pub(super) fn offered_formats(view: ResultView) -> Vec<Format> {
    if view == ResultView::Manifest {
        return vec![Format::Json];
    }
    let is_other = |format: &Format| *format != Format::Arrow && Format::FOR_DOWNLOADS.contains(format);
    std::iter::once(Format::Arrow).chain(Format::FOR_REST.into_iter().filter(is_other)).collect()
}

/// A link replaces the key of the caller that created it.
const LINK: QueryParameter =
    QueryParameter::new("link", ParameterKind::Text, "A link to this result, instead of a key");

/// The caller of the link, if there is one; otherwise of the credentials. Revalidated while the answer streams.
async fn resolve_caller(
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
pub(super) fn link_parameter(uri: &Uri) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0a1b2c3d-1111-4222-8333-444455556666";

    #[test]
    fn maps_paths_to_resource_uris() {
        let mut table = String::new();
        for path in [
            "/results/ID",
            "/results/ID/data",
            "/results/ID/blocks/0",
            "/results/ID/blocks/4294967295",
            "/results/%30a1b2c3d-1111-4222-8333-444455556666/blocks/%37",
            "/results/0A1B2C3D-1111-4222-8333-444455556666",
            "/results/ID/blocks/4294967296",
            "/results/ID/blocks/+7",
            "/results/ID/blocks/007",
            "/results/ID/blocks/-1",
            "/results/ID/blocks/%FF",
            "/results/ID/blocks/",
            "/results/0a1b2c3d111142228333444455556666",
            "/results/{ID}",
            "/results/nothing/data",
            "/results/%FF",
            "/results/ID/blocks",
            "/results/ID/rows",
            "/results/ID/",
            "/results/",
            "/results",
        ] {
            let route = ResultRoute::parse(&path.replace("ID", ID), &Method::GET);
            let message = route.map_or("no such path".to_owned(), |route| route.uri().unwrap_or("absent".to_owned()));
            table.push_str(&format!("{path:60} {}\n", message.replace(ID, "ID")));
        }
        insta::assert_snapshot!(table, @r#"
        /results/ID                                                  tidegate://results/ID
        /results/ID/data                                             tidegate://results/ID/data
        /results/ID/blocks/0                                         tidegate://results/ID/blocks/0
        /results/ID/blocks/4294967295                                tidegate://results/ID/blocks/4294967295
        /results/%30a1b2c3d-1111-4222-8333-444455556666/blocks/%37   tidegate://results/ID/blocks/7
        /results/0A1B2C3D-1111-4222-8333-444455556666                tidegate://results/ID
        /results/ID/blocks/4294967296                                absent
        /results/ID/blocks/+7                                        absent
        /results/ID/blocks/007                                       absent
        /results/ID/blocks/-1                                        absent
        /results/ID/blocks/%FF                                       absent
        /results/ID/blocks/                                          absent
        /results/0a1b2c3d111142228333444455556666                    absent
        /results/{ID}                                                absent
        /results/nothing/data                                        absent
        /results/%FF                                                 absent
        /results/ID/blocks                                           no such path
        /results/ID/rows                                             no such path
        /results/ID/                                                 no such path
        /results/                                                    no such path
        /results                                                     no such path
        "#);
    }
}
