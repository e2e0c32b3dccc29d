//! Stops and starts groups of transports while the server runs.

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tidegate_core::{Caller, Error, ErrorKind};
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::Event;

use super::route::{RestHandler, RestRoute};
use crate::http::answer::ProblemDetails;
use crate::http::response::json;
use crate::http::state::HttpState;

/// Switches the group of `route`, if it names one, and answers with the state of all groups.
pub(super) fn respond(
    http_state: &HttpState,
    route: &RestRoute<'_>,
    caller: &Caller,
) -> Result<Response, ProblemDetails> {
    // The operator of one tenant must not stop the others.
    let may_operate = caller.principal.grants.is_operator() && caller.principal.tenant.is_none();
    if http_state.options.authenticator.enforces_authentication() && !may_operate {
        let message = "this requires a role with the access name \"operator\", and a caller without a tenant";
        return Err(Error::new(ErrorKind::Forbidden, message).into());
    }
    let registry = http_state.service.registry();
    let switches = registry.transport_switches();
    if let RestHandler::SwitchTransport { starts } = route.handler {
        let (name, action) = (route.name(), if starts { "start" } else { "stop" });
        let group = TransportGroup::ALL.into_iter().find(|group| group.name() == name).ok_or_else(|| {
            let choices = TransportGroup::ALL.map(|group| group.name().to_owned());
            Error::new(ErrorKind::NotFound, format!("there is no transport {name:?} to {action}")).with_choices(choices)
        })?;
        switches.set_running(group, starts)?;
        let state = switches.state(group).name();
        registry.events().emit(Event::TransportSwitched { caller, group: group.name(), state });
    }
    let states = TransportGroup::ALL.map(|group| json!({"name": group.name(), "state": switches.state(group).name()}));
    Ok(json(StatusCode::OK, Bytes::from(json!({"transports": states}).to_string())))
}
