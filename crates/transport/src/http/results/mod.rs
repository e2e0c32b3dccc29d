//! Stored results: a large answer as a whole or block by block, for programs that download.
//!
//! A request becomes one call of one resource, through the same door as everywhere. What HTTP has for things that stay
//! as they are (entity tags, ranges, codings) is done here, above the bytes of that call.

mod answer;
mod asked;
mod coding;
mod conditions;
mod link;
mod range;
mod route;
mod tag;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use tidegate_core::event::Event;
use tidegate_core::{Call, Caller, Error, ErrorKind, Target};

use self::asked::Asked;
pub(super) use self::asked::{PARTIAL, offered};
use self::route::Route;
pub(super) use self::route::{View, uri_of};
use super::rest::{Problem, Sort, finish, options, trace};
use super::{Door, PeerAddress, body};

/// The methods that every path takes.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Answers any request under `/results`.
pub(super) async fn answer(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answered = respond(&door, &parts, body).await;
    finish(&door, PeerAddress::of(&parts.extensions), answered)
}

async fn respond(door: &Arc<Door>, parts: &Parts, body: Body) -> Result<Response, Problem> {
    // No path takes a body; it is read so that its connection lives on.
    body::discard(body, door.options.read_within).await;
    let route = Route::find(parts.uri.path())?;
    let allowed = HeaderValue::from_static(METHODS);
    match parts.method {
        Method::GET | Method::HEAD => {}
        Method::OPTIONS => return Ok(options(allowed)),
        ref method => {
            let detail = format!("{method} is not taken here; {METHODS} are");
            return Err(Problem::new(Sort::MethodNotAllowed, detail).allowing(allowed));
        }
    }
    let (caller, standing) = link::caller(door, parts, &route).await?;
    door.service.registry().admit_request(&caller).await?;
    let mut asked = Asked::read(&route, parts)?;
    let Some(uri) = route.uri() else { return Err(absent(door, &caller, &route)) };
    let mut call = Call::new(Target::Resource(uri), caller);
    call.arguments = asked.arguments.clone();
    call.format = Some(asked.format);
    trace(&mut call, &parts.headers);
    let reply = door.service.registry().call(call)?;
    answer::answer(reply, standing, &route, &mut asked, parts).await
}

/// What is at a path that no result can have: the same as at one that no result has.
fn absent(door: &Door, caller: &Caller, route: &Route) -> Problem {
    let outcome = ErrorKind::NotFound.name();
    // The path itself stays out of the log: whoever mistypes the `?` before a link has the link in it.
    door.service.registry().events().tell(Event::CallRefused {
        caller,
        kind: "resource",
        name: "tidegate://results/{id}",
        outcome,
    });
    Error::new(ErrorKind::NotFound, format!("there is no resource {:?}", route.asked_for())).into()
}
