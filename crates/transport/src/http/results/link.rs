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
use tidegate_core::{Caller, ErrorKind, Origin, Principal, Proof, TransportKind};
use tidegate_mcp::RpcError;
use tokio::sync::watch;

use super::super::identify::{Known, Refused, Shown};
use super::super::protected::Challenge;
use super::super::rest::{Kind, Parameter, Problem, Sort};
use super::super::{Door, PeerAddress};
use super::route::Route;
use crate::batch::Identity;
use crate::standing::{Lapsed, Standing};

/// Stands for the key of whoever made the link.
pub(super) const LINK: Parameter = Parameter::new("link", Kind::Text, "A link to this one result, instead of a key");

/// The caller by the link of the address, if it has one, else by what the headers show; that is asked again while the
/// answer streams.
pub(super) async fn caller(
    door: &Arc<Door>,
    parts: &Parts,
    route: &Route,
) -> Result<(Caller, Option<Standing>), Problem> {
    let Some(link) = shown_link(&parts.uri) else {
        let shown = Shown::by(door, &parts.headers, &parts.extensions, TransportKind::Rest, None);
        let caller = shown.caller(door).await.map_err(|refused| Problem::refused(&refused))?;
        let standing = Known::standing(door, &shown, &caller);
        return Ok((caller, Some(standing)));
    };
    let opened = door.options.links.as_ref().and_then(|links| links.opened_by(&route.id, &link));
    let maker = opened.filter(|maker| is_let_in(door, &maker.principal)).ok_or_else(not_opened)?;
    let peer = match maker.principal.proof {
        // Those who showed nothing are told apart by their addresses: the link speaks for its maker's.
        Proof::Anonymous => maker.origin.peer,
        _ => PeerAddress::of(&parts.extensions),
    };
    let origin = Origin { transport: TransportKind::Rest, peer };
    let caller = Caller { origin, has_link_alone: true, ..maker };
    let maker = Maker { door: door.clone(), caller: caller.clone() };
    let standing = Standing::new(Arc::new(maker), door.service.registry());
    Ok((caller, Some(standing)))
}

/// Whoever made a link, while what it opened streams. No link outlives the configuration and the reading of keys that its
/// maker was let in by, so a key that is revoked takes its links with it, nor the end of its maker's key or token. That
/// the link's own time is over ends nothing that it began.
struct Maker {
    door: Arc<Door>,
    caller: Caller,
}

#[async_trait]
impl Identity for Maker {
    async fn caller(&self) -> Result<Caller, RpcError> {
        match self.is_let_in().await {
            true => Ok(self.caller.clone()),
            false => Err(Refused::from(Lapsed).error()),
        }
    }

    async fn is_let_in(&self) -> bool {
        is_let_in(&self.door, &self.caller.principal)
    }

    fn renewals(&self) -> watch::Receiver<u64> {
        self.door.options.authenticator.renewals()
    }
}

/// Whether whoever made a link would still be let in, as far as is known without what it showed.
fn is_let_in(door: &Door, principal: &Principal) -> bool {
    let is_of_now = door.service.registry().snapshot().is_of(principal) && principal.is_good_at(SystemTime::now());
    is_of_now && door.options.authenticator.stands_by(principal)
}

/// The link of an address. Whether there is more than one is asked later, of those who are let in.
fn shown_link(uri: &Uri) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().find(|(name, _)| name == LINK.name).map(|(_, link)| link)
}

/// The same whether the result exists or not.
fn not_opened() -> Problem {
    let detail = "the link opens nothing here: it is for another result, or its time is over".to_owned();
    Problem::new(Sort::Call(ErrorKind::Unauthenticated), detail).challenging(Challenge::Invalid).with_hint(
        "A link lives for a few minutes. The manifest of the result, GET /results/{id} with a key, or the resource \
             tidegate://results/{id} over MCP, has a fresh one.",
    )
}
