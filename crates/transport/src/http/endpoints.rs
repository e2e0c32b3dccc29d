//! The endpoints of the HTTP server, in one table. The routes, the direct path of calls, the switches of transports,
//! the checks of web pages and the OpenAPI document derive from it. A test compares it with the pages about paths.

use axum::http::{Extensions, HeaderValue, Method};
use tidegate_core::{CallOrigin, TransportKind, WriteRows};
use tidegate_runtime::TransportGroup;

use super::answer::{ProblemDetails, ProblemType};
use super::parameters::{
    DATABASE, EXTRACT, FIELD_VALUES, FUNCTION_ROWS, LOG_ENTRIES, MAX_ROWS, METRIC_LIST, METRIC_POINTS, NODE, PATTERN,
    QueryParameter, ROWS, SAMPLES,
};
use super::protected_resource::WELL_KNOWN;
use super::rest::{RestDocument, RestHandler};
use super::results::ResultView;
use super::state::{HttpOptions, PeerAddress};

/// What answers at a path.
pub(super) struct Endpoint {
    /// A segment in braces stands for any segment, and `{*path}` for all that follow.
    pub(super) path: &'static str,
    /// The path before the first segment in braces, and the rest of it.
    prefix: &'static str,
    pub(super) pattern: &'static str,
    /// The methods that `handler` answers; endpoints with the same path answer others.
    pub(super) methods: &'static str,
    pub(super) switch: Switch,
    pub(super) access: PageAccess,
    pub(super) handler: EndpointHandler,
    /// The operation in the OpenAPI document; empty if it has none.
    pub(super) operation_id: &'static str,
    pub(super) summary: &'static str,
}

/// The option of the server that enables an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    Always,
    Mcp,
    Sse,
    WebSocket,
    Rest,
    /// With REST, which it uses.
    Console,
    Metrics,
}

/// Which web pages may send requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageAccess {
    /// Pages of allowed origins.
    AllowedOrigins,
    /// Pages of any origin may open it. They cannot read it.
    AnyOrigin,
    /// The same for addresses with a result link, which is a credential.
    Links,
    /// Pages of any origin, by any host name: the document is public.
    Public,
}

/// What answers a request, and what differs between endpoints of one handler.
#[derive(Debug, Clone, Copy)]
pub(super) enum EndpointHandler {
    Mcp,
    SseStream,
    SseMessages,
    WebSocket,
    /// `None` at other paths, which have no route of their own.
    Rest(Option<RestHandler>),
    /// `None` at other paths.
    Results(Option<ResultView>),
    /// The entry that takes the rows of a table; `None` at other paths.
    Rows(Option<WriteRows>),
    /// The entry that takes telemetry, and the argument that the path stands for.
    Telemetry(WriteRows, Option<(&'static str, &'static str)>),
    /// A file of the console. Its page is at the root, which clients of Elasticsearch use as well.
    Console,
    Metadata,
    Health,
    Ready,
    Metrics,
    /// The path has no route.
    NotFound,
}

const GET: &str = "GET, HEAD";
const POST: &str = "POST";
const MCP: &str = "GET, HEAD, POST, DELETE";
pub(super) const ROOT: &str = "/";

/// The first endpoint whose path matches is that of a request.
pub(super) static ENDPOINTS: &[Endpoint] = &[
    endpoint(Switch::Mcp, MCP, "/mcp", EndpointHandler::Mcp),
    // People write addresses with a slash at the end.
    endpoint(Switch::Mcp, MCP, "/mcp/", EndpointHandler::Mcp),
    endpoint(Switch::Sse, GET, "/mcp/sse", EndpointHandler::SseStream),
    endpoint(Switch::Sse, POST, "/mcp/messages/{session}", EndpointHandler::SseMessages),
    endpoint(Switch::Sse, GET, "/mcp/{toolset}/sse", EndpointHandler::SseStream),
    endpoint(Switch::WebSocket, GET, "/mcp/ws", EndpointHandler::WebSocket),
    endpoint(Switch::WebSocket, GET, "/mcp/{toolset}/ws", EndpointHandler::WebSocket),
    endpoint(Switch::Mcp, MCP, "/mcp/{toolset}", EndpointHandler::Mcp),
    endpoint(Switch::Mcp, MCP, "/mcp/{toolset}/", EndpointHandler::Mcp),
    endpoint(Switch::Mcp, "", "/mcp/{*path}", EndpointHandler::NotFound),
    rest(GET, "/rest", RestHandler::Page).open_to(PageAccess::AnyOrigin),
    rest(GET, "/rest/", RestHandler::Page).open_to(PageAccess::AnyOrigin),
    rest(GET, "/rest/docs", RestHandler::Page).open_to(PageAccess::AnyOrigin),
    document("/rest/tools", RestDocument::Tools).named("list_tools", "The tools that the caller may use"),
    document("/rest/tools/{name}", RestDocument::Tool).named("get_tool", "One tool"),
    document("/rest/tools/{name}/schema", RestDocument::Schema)
        .named("get_tool_schema", "The JSON Schema of the arguments of a tool"),
    rest(POST, "/rest/tools/{name}/call", RestHandler::CallNamed),
    call(POST, "/rest/query", "query", &[]).named("query", "Rows of a table"),
    call(POST, "/rest/sql", "sql", &[DATABASE, MAX_ROWS, EXTRACT]).named("sql", "The result of one SQL statement"),
    call(GET, "/rest/databases", "list_databases", &[EXTRACT]).named("list_databases", "The databases"),
    call(GET, "/rest/databases/{database}/tables", "list_tables", &[PATTERN, EXTRACT])
        .named("list_tables", "The tables of a database"),
    call(GET, "/rest/databases/{database}/tables/{table}", "get_schema", &[SAMPLES, EXTRACT])
        .named("get_table", "The columns of a table"),
    call(GET, "/rest/databases/{database}/tables/{table}/rows", "query", &ROWS).named("get_rows", "Rows of a table"),
    call(GET, "/rest/logs", "list_logs_sources", &[EXTRACT]).named("list_log_sources", "The log sources"),
    call(GET, "/rest/logs/{source}", "query_logs", &LOG_ENTRIES).named("get_log_entries", "Entries of a log"),
    call(GET, "/rest/logs/{source}/fields", "list_logs_fields", &[EXTRACT])
        .named("get_log_fields", "The fields of a log"),
    call(GET, "/rest/logs/{source}/fields/{field}", "list_logs_fields_values", &FIELD_VALUES)
        .named("get_log_values", "The values of a field with their counts"),
    call(GET, "/rest/metrics", "list_metrics", &METRIC_LIST).named("list_metrics", "The metrics"),
    call(GET, "/rest/metrics/{source}", "list_metrics", &METRIC_LIST)
        .named("list_source_metrics", "The metrics of a source"),
    call(GET, "/rest/metrics/{source}/{metric}", "query_metrics", &METRIC_POINTS)
        .named("get_metric_points", "Points of a metric over time"),
    call(GET, "/rest/functions", "list_functions", &[NODE, EXTRACT]).named("list_functions", "The functions"),
    call(GET, "/rest/functions/{function}", "list_functions", &[NODE, EXTRACT])
        .named("get_function", "The parameters and columns of a function"),
    call(POST, "/rest/functions/{function}", "execute_function", &[]).named("execute_function", "Rows of a function"),
    call(GET, "/rest/functions/{function}/rows", "execute_function", &FUNCTION_ROWS)
        .named("get_function_rows", "Rows of a function, without conditions"),
    call(GET, "/rest/jobs", "list_jobs", &[EXTRACT]).named("list_jobs", "The jobs of the caller"),
    call(GET, "/rest/jobs/{id}", "list_jobs", &[]).named("get_job", "One job"),
    call("DELETE", "/rest/jobs/{id}", "cancel_job", &[]).named("cancel_job", "Cancels a job"),
    rest(GET, "/rest/transports", RestHandler::Transports),
    rest(POST, "/rest/transports/{name}/start", RestHandler::SwitchTransport { starts: true }),
    rest(POST, "/rest/transports/{name}/stop", RestHandler::SwitchTransport { starts: false }),
    document("/rest/openapi.json", RestDocument::OpenApi).named("get_openapi", "This document"),
    endpoint(Switch::Rest, "", "/rest/{*path}", EndpointHandler::Rest(None)),
    endpoint(Switch::Rest, "", "/results", EndpointHandler::Results(None)),
    results("/results/", None),
    results("/results/{id}", Some(ResultView::Manifest))
        .named("get_result", "The manifest of a stored result: progress, columns, blocks"),
    results("/results/{id}/blocks/{n}", Some(ResultView::Block))
        .named("get_result_block", "One block of a stored result"),
    results("/results/{id}/data", Some(ResultView::Data))
        .named("get_result_data", "All rows of a stored result, or the bytes of a stored file"),
    results("/results/{*path}", None),
    rows(POST, WriteRows::AppendRows).named("post_of_table", "Adds rows to a table"),
    rows("PUT", WriteRows::ReplaceRows).named("put_of_table", "Replaces all rows of a table"),
    rows("DELETE", WriteRows::DropTable).named("delete_of_table", "Removes a table with its rows"),
    endpoint(Switch::Rest, "", "/data", EndpointHandler::Rows(None)),
    endpoint(Switch::Rest, "", "/data/", EndpointHandler::Rows(None)),
    endpoint(Switch::Rest, "", "/data/{*path}", EndpointHandler::Rows(None)),
    telemetry(POST, "/v1/logs", WriteRows::ReceiveOtlp, Some(("signal", "logs"))),
    telemetry(POST, "/v1/metrics", WriteRows::ReceiveOtlp, Some(("signal", "metrics"))),
    telemetry(POST, "/v1/traces", WriteRows::ReceiveOtlp, Some(("signal", "traces"))),
    telemetry(POST, "/api/v1/write", WriteRows::ReceivePrometheus, None),
    // Some clients of the bulk API use PUT, which this server does not.
    telemetry(POST, "/_bulk", WriteRows::ReceiveBulk, None),
    telemetry(POST, "/{index}/_bulk", WriteRows::ReceiveBulk, None),
    telemetry(GET, "/_license", WriteRows::ReceiveBulk, Some(("probe", "license"))),
    telemetry(GET, "/_cluster/health", WriteRows::ReceiveBulk, Some(("probe", "health"))),
    // Clients of Elasticsearch have an answer there, and browsers the page of the console.
    telemetry(GET, ROOT, WriteRows::ReceiveBulk, Some(("probe", "info"))).open_to(PageAccess::AnyOrigin),
    endpoint(Switch::Console, GET, "/_console/{file}", EndpointHandler::Console),
    endpoint(Switch::Always, GET, WELL_KNOWN, EndpointHandler::Metadata).open_to(PageAccess::Public),
    endpoint(Switch::Always, GET, "/.well-known/oauth-protected-resource/{*path}", EndpointHandler::Metadata)
        .open_to(PageAccess::Public),
    endpoint(Switch::Always, GET, "/health", EndpointHandler::Health),
    endpoint(Switch::Always, GET, "/ready", EndpointHandler::Ready),
    endpoint(Switch::Metrics, GET, "/metrics", EndpointHandler::Metrics),
];

/// The endpoint of all other paths.
static NOT_FOUND: Endpoint = endpoint(Switch::Always, "", "{*path}", EndpointHandler::NotFound);

const fn endpoint(switch: Switch, methods: &'static str, path: &'static str, handler: EndpointHandler) -> Endpoint {
    let mut prefix_bytes = 0;
    while prefix_bytes < path.len() && path.as_bytes()[prefix_bytes] != b'{' {
        prefix_bytes += 1;
    }
    let (prefix, pattern) = path.split_at(prefix_bytes);
    let (access, operation_id, summary) = (PageAccess::AllowedOrigins, "", "");
    Endpoint { path, prefix, pattern, methods, switch, access, handler, operation_id, summary }
}

const fn rest(methods: &'static str, path: &'static str, handler: RestHandler) -> Endpoint {
    endpoint(Switch::Rest, methods, path, EndpointHandler::Rest(Some(handler)))
}

const fn document(path: &'static str, document: RestDocument) -> Endpoint {
    rest(GET, path, RestHandler::Document(document))
}

const fn call(
    methods: &'static str,
    path: &'static str,
    tool: &'static str,
    parameters: &'static [QueryParameter],
) -> Endpoint {
    rest(methods, path, RestHandler::Call { tool, parameters })
}

const fn results(path: &'static str, view: Option<ResultView>) -> Endpoint {
    endpoint(Switch::Rest, GET, path, EndpointHandler::Results(view)).open_to(PageAccess::Links)
}

const fn rows(methods: &'static str, entry: WriteRows) -> Endpoint {
    endpoint(Switch::Rest, methods, "/data/{database}/{table}", EndpointHandler::Rows(Some(entry)))
}

const fn telemetry(
    methods: &'static str,
    path: &'static str,
    entry: WriteRows,
    argument: Option<(&'static str, &'static str)>,
) -> Endpoint {
    endpoint(Switch::Rest, methods, path, EndpointHandler::Telemetry(entry, argument))
}

/// The endpoint at `path`. Its methods are not considered.
pub(super) fn endpoint_at(path: &str) -> &'static Endpoint {
    ENDPOINTS.iter().find(|endpoint| endpoint.matches(path)).unwrap_or(&NOT_FOUND)
}

/// Whether `/mcp/{name}` belongs to another transport, so that no toolset can have the name.
pub fn is_reserved_toolset_name(name: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| {
        let below = endpoint.prefix.strip_prefix("/mcp/").and_then(|below| below.split('/').next());
        below.is_some_and(|reserved| !reserved.is_empty() && reserved == name)
    })
}

impl Endpoint {
    const fn named(self, operation_id: &'static str, summary: &'static str) -> Self {
        Self { operation_id, summary, ..self }
    }

    const fn open_to(self, access: PageAccess) -> Self {
        Self { access, ..self }
    }

    fn matches(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(self.prefix) else { return false };
        let mut segments = rest.split('/');
        for expected in self.pattern.split('/') {
            match segments.next() {
                Some(_) if expected == "{*path}" => return true,
                Some(segment) if segment == expected || expected.starts_with('{') => {}
                _ => return false,
            }
        }
        segments.next().is_none()
    }

    /// The origin of a request with these extensions.
    pub(super) fn origin(&self, extensions: &Extensions) -> CallOrigin {
        CallOrigin { transport: self.switch.transport(), peer: PeerAddress::from_extensions(extensions) }
    }

    /// The parameters of the path, each with the one of `segments` that it stands for.
    pub(super) fn parameters<T>(
        &self,
        segments: impl IntoIterator<Item = T>,
    ) -> impl Iterator<Item = (&'static str, T)> {
        let names = self.path.split('/').map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
        names.zip(segments).filter_map(|(name, segment)| Some((name?, segment)))
    }

    /// The endpoint at the same path for `method`: each path answers OPTIONS.
    pub(super) fn for_method(&'static self, method: &Method) -> Result<&'static Self, ProblemDetails> {
        if *method == Method::OPTIONS || self.answers(method) {
            return Ok(self);
        }
        self.same_path().find(|endpoint| endpoint.answers(method)).ok_or_else(|| {
            let allowed = self.allow_header();
            let supported = allowed.to_str().unwrap_or_default();
            let detail = format!("{method} is not supported here; supported methods: {supported}");
            ProblemDetails::new(ProblemType::MethodNotAllowed, detail).with_allow(allowed)
        })
    }

    fn answers(&self, method: &Method) -> bool {
        self.methods.split(", ").any(|supported| supported == method.as_str())
    }

    fn same_path(&self) -> impl Iterator<Item = &'static Self> {
        ENDPOINTS.iter().filter(move |endpoint| endpoint.path == self.path)
    }

    pub(super) fn allow_header(&self) -> HeaderValue {
        let methods = self.same_path().map(|endpoint| endpoint.methods).chain(["OPTIONS"]);
        HeaderValue::try_from(methods.collect::<Vec<_>>().join(", ")).unwrap_or(HeaderValue::from_static(self.methods))
    }
}

impl Switch {
    /// The transport of requests; Streamable HTTP unless it is another one.
    pub(super) fn transport(self) -> TransportKind {
        match self {
            Self::Sse => TransportKind::Sse,
            Self::WebSocket => TransportKind::WebSocket,
            Self::Rest | Self::Console => TransportKind::Rest,
            Self::Always | Self::Mcp | Self::Metrics => TransportKind::StreamableHttp,
        }
    }

    pub(super) fn is_on(self, options: &HttpOptions) -> bool {
        match self {
            Self::Always => true,
            Self::Mcp => options.has_mcp,
            Self::Sse => options.has_sse,
            Self::WebSocket => options.has_web_socket,
            Self::Rest => options.has_rest,
            Self::Console => options.has_rest && options.has_console,
            Self::Metrics => options.has_metrics,
        }
    }

    /// The group that an operator stops and starts.
    pub(super) fn group(self) -> Option<TransportGroup> {
        match self {
            Self::Mcp | Self::Sse | Self::WebSocket => Some(TransportGroup::Mcp),
            Self::Rest => Some(TransportGroup::Rest),
            Self::Always | Self::Console | Self::Metrics => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages with tables of paths.
    const PAGES: [&str; 4] = [
        include_str!("../../../../docs/reference/transports/rest.md"),
        include_str!("../../../../docs/reference/transports/results.md"),
        include_str!("../../../../docs/reference/transports/sse.md"),
        include_str!("../../../../docs/how-to/collect-opentelemetry.md"),
    ];

    /// The paths in the first column of a table, with the method before them and the parameters behind them.
    fn documented_paths(page: &str) -> impl Iterator<Item = &str> {
        let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        spans.filter(|span| span.split(' ').next_back().is_some_and(|path| path.starts_with('/')))
    }

    #[test]
    fn pages_have_the_paths_of_the_table() {
        let mut documented = Vec::new();
        for span in PAGES.iter().flat_map(|page| documented_paths(page)) {
            let (method, address) = span.split_once(' ').map_or((None, span), |(method, path)| (Some(method), path));
            let (path, query) = address.split_once('?').unwrap_or((address, ""));
            let endpoint = endpoint_at(path);
            assert_eq!(endpoint.path, path, "{span}");
            let method: Option<Method> = method.map(|method| method.parse().unwrap());
            let endpoint = method.map_or(endpoint, |method| endpoint.for_method(&method).unwrap());
            if let EndpointHandler::Rest(Some(RestHandler::Call { parameters, .. })) = endpoint.handler {
                for name in query.split('&').filter_map(|parameter| parameter.strip_suffix('=')) {
                    assert!(parameters.iter().any(|parameter| parameter.name == name), "{span} has no {name}");
                }
            }
            documented.push((endpoint.path, endpoint.methods));
        }
        // The page of REST, probes of clients of Elasticsearch, and a path without a result.
        let unlisted = ["/rest", "/rest/", "/rest/docs", "/results/", "/_license", "/_cluster/health", "/"];
        let is_listed = |endpoint: &&Endpoint| {
            let is_path = !endpoint.path.ends_with("{*path}") && !endpoint.methods.is_empty();
            matches!(endpoint.switch, Switch::Rest | Switch::Sse) && is_path && !unlisted.contains(&endpoint.path)
        };
        for endpoint in ENDPOINTS.iter().filter(is_listed) {
            let key = (endpoint.path, endpoint.methods);
            assert!(documented.contains(&key), "no page has {} {}", endpoint.methods, endpoint.path);
        }
    }

    #[test]
    fn paths_have_transports() {
        let transport = |path: &str| endpoint_at(path).switch.transport();
        for path in ["/mcp", "/mcp/sales", "/metrics", "/mcp/sse/more", "/ws", "/mcp/wss", "/restore", "/database"] {
            assert_eq!(transport(path), TransportKind::StreamableHttp, "{path}");
        }
        for path in ["/mcp/sse", "/mcp/sales/sse", "/mcp/messages/0123", "/mcp/messages/ws"] {
            assert_eq!(transport(path), TransportKind::Sse, "{path}");
        }
        for path in ["/mcp/ws", "/mcp/sales/ws"] {
            assert_eq!(transport(path), TransportKind::WebSocket, "{path}");
        }
        for path in [
            "/rest",
            "/rest/",
            "/rest/tools/x/call",
            "/results",
            "/results/",
            "/results/x/data",
            "/data/plant/sensors",
            "/v1/logs",
            "/app/_bulk",
        ] {
            assert_eq!(transport(path), TransportKind::Rest, "{path}");
        }
    }
}
