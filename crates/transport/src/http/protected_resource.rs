//! OAuth protected resource metadata: the authorization servers whose tokens are accepted, and the challenges that
//! refer to them.
//!
//! [RFC 9728](https://www.rfc-editor.org/rfc/rfc9728), [RFC 6750, 3](https://www.rfc-editor.org/rfc/rfc6750#section-3),
//! [MCP 2026-07-28, Authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)

use std::fmt::Write as _;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate_core::{AuthenticationError, is_scope};

/// The well-known path of the metadata, before the path of the resource.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of the resource that this server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedResource {
    resource: String,
    authorization_servers: Vec<String>,
    scopes: Vec<String>,
    metadata: String,
}

impl ProtectedResource {
    /// The resource with the URL `resource`, which tokens contain as audience and which clients use. `scopes` suffice
    /// for most operations.
    ///
    /// # Errors
    /// For an invalid URL or scope. URLs use https, or http on this machine.
    pub fn new(
        resource: impl Into<String>,
        authorization_servers: Vec<String>,
        scopes: Vec<String>,
    ) -> Result<Self, String> {
        let resource = resource.into();
        let metadata = parse_address(&resource).map(|uri| metadata_url(&uri)).ok_or_else(|| {
            format!("invalid resource {resource:?}: expected an https URL such as https://data.example.com/mcp")
        })?;
        if let Some(server) = authorization_servers.iter().find(|server| parse_address(server).is_none()) {
            return Err(format!("invalid issuer {server:?}: expected an https URL such as https://login.example.com"));
        }
        if let Some(scope) = scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(format!("invalid scope {scope:?}: expected a word without spaces, quotes and backslashes"));
        }
        Ok(Self { resource, authorization_servers, scopes, metadata })
    }

    /// The URLs of the resource and of the endpoints below it that clients may request tokens for: those of `toolsets`,
    /// and their transports.
    pub fn endpoint_urls(resource: &str, toolsets: impl IntoIterator<Item = String>) -> Vec<String> {
        let roots = std::iter::once(String::new()).chain(toolsets.into_iter().map(|name| format!("/{name}")));
        let below = roots.flat_map(|root| ["", "/sse", "/ws"].map(|transport| format!("{root}{transport}")));
        below.map(|below| endpoint_url(resource, &below)).collect()
    }

    /// The document at the metadata path with `suffix`: about the resource, or about an endpoint below it. `None` if
    /// `suffix` is none of its paths.
    fn document_at(&self, suffix: &str) -> Option<Value> {
        let suffix = suffix.trim_end_matches('/');
        let uri = parse_address(&self.resource)?;
        let path = uri.path().trim_end_matches('/');
        let below = if suffix.is_empty() { suffix } else { suffix.strip_prefix(path)? };
        // A whole host is the resource of its endpoints: only its own URL is an audience.
        if path.is_empty() && below.strip_prefix("/mcp").is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Some(self.to_json(&self.resource));
        }
        // Which toolsets exist is not revealed.
        is_endpoint_below(below).then(|| self.to_json(&endpoint_url(&self.resource, below)))
    }

    fn to_json(&self, resource: &str) -> Value {
        let mut document = json!({
            "resource": resource,
            "authorization_servers": self.authorization_servers,
            "bearer_methods_supported": ["header"],
        });
        if !self.scopes.is_empty() {
            document["scopes_supported"] = json!(self.scopes);
        }
        document
    }
}

/// The URL of the endpoint at the path `below` that of `resource`.
fn endpoint_url(resource: &str, below: &str) -> String {
    if below.is_empty() { resource.to_owned() } else { format!("{}{below}", resource.trim_end_matches('/')) }
}

/// Whether `below` is a path below that of the resource at which there may be an endpoint: none, that of a toolset or of
/// a transport, or both.
fn is_endpoint_below(below: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_plain);
    match below.split('/').collect::<Vec<_>>().as_slice() {
        [""] => true,
        ["", name] | ["", name, "sse" | "ws"] => is_name(name),
        _ => false,
    }
}

/// Parses the URL of a resource or an issuer; `None` if it is not acceptable.
fn parse_address(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let host = uri.host()?;
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let is_safe = uri.scheme_str() == Some("https") || (uri.scheme_str() == Some("http") && is_here);
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"#\"\\".contains(&byte));
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    (is_safe && is_plain && !has_user).then_some(uri)
}

/// The metadata URL of `resource`: the well-known part comes before its path (RFC 9728, 3.1).
fn metadata_url(resource: &Uri) -> String {
    let mut parts = resource.clone().into_parts();
    let path = parts.path_and_query.as_ref().map_or("", |path| path.as_str());
    let path = if path == "/" { "" } else { path };
    // A valid path stays valid with a path before it.
    parts.path_and_query = format!("{WELL_KNOWN}{path}").parse().ok();
    Uri::from_parts(parts).map(|uri| uri.to_string()).unwrap_or_default()
}

/// What a caller lacks that was rejected: the reason of an authentication challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Credentials.
    Missing { scopes: Vec<String> },
    /// Valid credentials.
    Invalid,
    /// Credentials in a valid form.
    Malformed,
    /// OAuth scopes, all of which are required.
    Scopes(Vec<String>),
}

impl From<AuthenticationError> for Challenge {
    fn from(reason: AuthenticationError) -> Self {
        match reason {
            AuthenticationError::Missing => Self::Missing { scopes: Vec::new() },
            AuthenticationError::Invalid => Self::Invalid,
            AuthenticationError::Malformed => Self::Malformed,
        }
    }
}

/// The published metadata. Clones share it, so a host application keeps one and can change it while the server runs.
#[derive(Debug, Clone, Default)]
pub struct SharedProtectedResource(Arc<ArcSwapOption<ProtectedResource>>);

impl SharedProtectedResource {
    /// Publishes `resource` from now on, or nothing.
    pub fn publish(&self, resource: Option<ProtectedResource>) {
        self.0.store(resource.map(Arc::new));
    }

    pub(super) fn is_published(&self) -> bool {
        self.0.load().is_some()
    }

    pub(super) fn challenge_header(&self, challenge: &Challenge) -> HeaderValue {
        let mut text = "Bearer realm=\"tidegate\"".to_owned();
        let published = self.0.load();
        // Writing to a string cannot fail.
        let first = published.as_ref().map(|resource| resource.scopes.as_slice()).unwrap_or_default();
        let (error, scopes): (_, Vec<&String>) = match challenge {
            // A client that authenticates for this call will make others after it.
            Challenge::Missing { scopes } => {
                let further = scopes.iter().filter(|scope| is_scope(scope) && !first.contains(scope));
                (None, first.iter().chain(further).collect())
            }
            Challenge::Invalid => (Some("invalid_token"), first.iter().collect()),
            // No scope corrects a malformed header.
            Challenge::Malformed => (Some("invalid_request"), Vec::new()),
            Challenge::Scopes(scopes) => {
                (Some("insufficient_scope"), scopes.iter().filter(|scope| is_scope(scope)).collect())
            }
        };
        if let Some(error) = error {
            let _ = write!(text, ", error=\"{error}\"");
        }
        if !scopes.is_empty() {
            let scopes: Vec<&str> = scopes.into_iter().map(String::as_str).collect();
            let _ = write!(text, ", scope=\"{}\"", scopes.join(" "));
        }
        if let Some(resource) = published.as_ref() {
            let _ = write!(text, ", resource_metadata=\"{}\"", resource.metadata);
        }
        // Each part consists of visible ASCII characters.
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer realm=\"tidegate\""))
    }
}

/// The document of the path's own resource, which clients compare with the URL that they use.
pub(super) async fn metadata(State(published): State<SharedProtectedResource>, uri: Uri, method: Method) -> Response {
    const METHODS: &str = "GET, HEAD, OPTIONS";
    let Some(resource) = published.0.load_full() else { return StatusCode::NOT_FOUND.into_response() };
    let document = resource.document_at(uri.path().strip_prefix(WELL_KNOWN).unwrap_or_default());
    let (status, body) = match method {
        // Pages of other origins can read the status, too, and then request the document of the whole server.
        Method::GET | Method::HEAD if document.is_none() => (StatusCode::NOT_FOUND, "{}".to_owned()),
        Method::GET | Method::HEAD => (StatusCode::OK, document.unwrap_or_default().to_string()),
        Method::OPTIONS => (StatusCode::NO_CONTENT, String::new()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::ALLOW, METHODS),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        // A reload may change the metadata.
        (header::CACHE_CONTROL, "max-age=60"),
    ];
    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_url_precedes_the_resource_path() {
        let metadata = |resource: &str| ProtectedResource::new(resource, vec![], vec![]).map(|it| it.metadata);
        let message = [
            "https://data.example.com/mcp",
            "https://data.example.com",
            "https://data.example.com/",
            "https://data.example.com:8443/a/mcp",
            "http://localhost:7070/mcp",
            "http://data.example.com/mcp",
            "https://ann@data.example.com/mcp",
            "https://data.example.com/mcp#a",
            "data.example.com",
            "/mcp",
        ];
        let message = message.map(|resource| match metadata(resource) {
            Ok(metadata) => metadata,
            Err(problem) => problem,
        });
        insta::assert_snapshot!(message.join("\n"), @r#"
        https://data.example.com/.well-known/oauth-protected-resource/mcp
        https://data.example.com/.well-known/oauth-protected-resource
        https://data.example.com/.well-known/oauth-protected-resource
        https://data.example.com:8443/.well-known/oauth-protected-resource/a/mcp
        http://localhost:7070/.well-known/oauth-protected-resource/mcp
        invalid resource "http://data.example.com/mcp": expected an https URL such as https://data.example.com/mcp
        invalid resource "https://ann@data.example.com/mcp": expected an https URL such as https://data.example.com/mcp
        invalid resource "https://data.example.com/mcp#a": expected an https URL such as https://data.example.com/mcp
        invalid resource "data.example.com": expected an https URL such as https://data.example.com/mcp
        invalid resource "/mcp": expected an https URL such as https://data.example.com/mcp
        "#);
    }

    #[test]
    fn endpoints_below_a_resource_have_urls() {
        let urls = ProtectedResource::endpoint_urls("https://a.example/mcp", ["sales".to_owned()]);
        let below = ["", "/sse", "/ws", "/sales", "/sales/sse", "/sales/ws"];
        assert_eq!(urls, below.map(|below| format!("https://a.example/mcp{below}")));
        let resource = ProtectedResource::new("https://a.example", vec![], vec![]).unwrap();
        let named = |suffix: &str| resource.document_at(suffix).map(|document| document["resource"].clone());
        assert_eq!(named("/"), Some("https://a.example".into()));
        assert_eq!(named("/sales"), Some("https://a.example/sales".into()));
        assert_eq!(named("/sales/more"), None);
        for path in ["/mcp", "/mcp/sales", "/mcp/sales/ws"] {
            assert_eq!(named(path), Some("https://a.example".into()), "{path}");
        }
    }

    #[test]
    fn rejects_malformed_scopes() {
        for wrong in ["", "a b", "a\"b", "a\\b", "ä"] {
            let problem = ProtectedResource::new("https://a.example", vec![], vec![wrong.to_owned()]).unwrap_err();
            assert!(problem.starts_with(&format!("invalid scope {wrong:?}")), "{problem}");
        }
    }
}
