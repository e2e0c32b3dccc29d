//! Finds the endpoint of a request, and the parameters of its path.

use std::borrow::Cow;

use axum::http::Method;
use percent_encoding::percent_decode_str;
use tidegate_mcp::NAME_BYTES_MAX;

use crate::http::answer::{ProblemDetails, ProblemType, QueryParameter};
use crate::http::endpoints::{Endpoint, EndpointHandler, endpoint_at};

/// What answers at an endpoint of REST.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum RestHandler {
    /// The page that lists the tools and lets people try them.
    Page,
    Document(RestDocument),
    /// The tool that the path names.
    CallNamed,
    Call {
        tool: &'static str,
        parameters: &'static [QueryParameter],
    },
    /// The transports that an operator can stop and start.
    Transports,
    SwitchTransport {
        starts: bool,
    },
}

/// A document that is read from the registry itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum RestDocument {
    Tools,
    Tool,
    /// The schema of the arguments of a tool.
    Schema,
    OpenApi,
}

impl RestHandler {
    /// Whether the body may be a plain SQL statement.
    pub(super) fn takes_sql(self) -> bool {
        matches!(self, Self::Call { tool: "sql", .. })
    }
}

impl RestDocument {
    pub(super) fn media_type(self) -> &'static str {
        if self == Self::Schema { "application/schema+json" } else { "application/json" }
    }
}

pub(super) struct RestRoute<'a> {
    pub(super) endpoint: &'static Endpoint,
    pub(super) handler: RestHandler,
    segments: Vec<Cow<'a, str>>,
}

impl<'a> RestRoute<'a> {
    /// Parses a path. Each segment is percent-decoded separately, because names may contain slashes.
    pub(super) fn parse(path: &'a str, method: &Method) -> Result<Self, ProblemDetails> {
        let segments: Option<Vec<_>> =
            path.split('/').map(|segment| percent_decode_str(segment).decode_utf8().ok()).collect();
        let segments =
            segments.ok_or_else(|| ProblemDetails::bad_request("the path is not UTF-8 after percent-decoding"))?;
        if let Some(name) = segments.iter().find(|segment| segment.len() > NAME_BYTES_MAX) {
            let detail = format!("the name is {} bytes long; at most {NAME_BYTES_MAX}", name.len());
            return Err(ProblemDetails::bad_request(detail));
        }
        let at_path = if path.contains('%') {
            let plain: Vec<String> = segments.iter().map(|segment| segment.replace('/', "_")).collect();
            endpoint_at(&plain.join("/"))
        } else {
            endpoint_at(path)
        };
        let EndpointHandler::Rest(Some(_)) = at_path.handler else { return Err(no_such_path(path)) };
        let endpoint = at_path.for_method(method)?;
        let EndpointHandler::Rest(Some(handler)) = endpoint.handler else { return Err(no_such_path(path)) };
        Ok(Self { endpoint, handler, segments })
    }

    /// The parameters of the path with their values.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.endpoint.parameters(self.segments.iter().map(|segment| &**segment))
    }

    /// The first parameter of the path; empty if it has none.
    pub(super) fn name(&self) -> &str {
        self.parameters().next().map_or("", |(_, name)| name)
    }
}

fn no_such_path(path: &str) -> ProblemDetails {
    ProblemDetails::new(ProblemType::NoSuchPath, format!("there is no path {path}; /rest/ lists the tools"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded_before_they_are_compared() {
        let route = RestRoute::parse("/rest/%64atabases/a%2Fb/tables/", &Method::GET).unwrap();
        assert_eq!(route.parameters().collect::<Vec<_>>(), [("database", "a/b"), ("table", "")]);
        assert!(RestRoute::parse("/rest/databases/a/b/tables", &Method::GET).is_err());
    }
}
