//! Addresses of servers and results. Their display form contains no secrets.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;
use uuid::Uuid;

/// Path segment before the id of a result.
const RESULTS: &str = "results";
/// Path suffixes of a server address that name an endpoint.
const ENDPOINT_PATHS: [&[&str]; 3] = [&["mcp"], &["rest", "sql"], &["rest"]];

/// A server that stores results, with the base path that a proxy gives it.
#[derive(Clone, PartialEq, Eq)]
pub struct ResultServer {
    /// Base URL; ends with a slash, so that paths can be joined to it.
    base: Url,
}

/// The address of one result on one server, with the token of its link if it has one.
#[derive(Clone, PartialEq, Eq)]
pub struct ResultAddress {
    server: ResultServer,
    id: Uuid,
    link: Option<String>,
}

/// A text is not a valid address. The text is not repeated: it may contain a password or the token of a link.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ResultAddressError {
    /// The text is not a URL.
    #[error("not a valid URL ({0}); an example is http://127.0.0.1:7070/results/ID")]
    NotAUrl(String),
    /// The URL contains a user name or password.
    #[error(
        "the URL contains a user name or a password, which is visible in process lists and logs; \
         use --bearer, or TIDEGATE_BEARER in the environment"
    )]
    ContainsCredentials,
    /// The URI is a resource URI of MCP.
    #[error("tidegate:// is the URI of a result in MCP; use http://HOST/results/ID of the same server")]
    McpResourceUri,
    /// The scheme is neither http nor https.
    #[error("the scheme {0:?} is not supported; use http or https")]
    UnsupportedScheme(String),
    /// The URL has no host.
    #[error("the URL has no host; an example is http://127.0.0.1:7070/results/ID")]
    NoHost,
    /// The path is not the path of a result.
    #[error("the URL is not the URL of a result: its path must end in /results/ID or /results/ID/data")]
    NoResult,
}

impl ResultServer {
    /// Parses a URL with the scheme http or https. The URL of the server's MCP or REST endpoint is accepted as well.
    ///
    /// # Errors
    /// Fails if the text is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, ResultAddressError> {
        let url = parse_http_url(text)?;
        let segments = path_segments(&url);
        let of_server = ENDPOINT_PATHS.iter().find_map(|endpoint| {
            let (before, end) = segments.split_at_checked(segments.len().checked_sub(endpoint.len())?)?;
            (end == *endpoint).then_some(before)
        });
        Ok(Self { base: base_url(&url, of_server.unwrap_or(&segments)) })
    }

    /// The result `id` of this server.
    pub fn result(&self, id: Uuid) -> ResultAddress {
        ResultAddress { server: self.clone(), id, link: None }
    }

    /// Whether requests are unencrypted and leave this machine.
    pub fn is_in_the_clear(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_loopback =
            host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.base.scheme() == "http" && !is_loopback
    }

    /// The URL of the REST endpoint for SQL.
    pub(crate) fn sql_url(&self) -> Url {
        self.url_for("rest/sql")
    }

    /// The URL of `path`, which has no leading slash, on this server.
    fn url_for(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }
}

impl ResultAddress {
    /// Parses a URL whose path ends in `/results/{id}` or `/results/{id}/data`. Of its query, only `link` is used.
    ///
    /// # Errors
    /// Fails if the text is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, ResultAddressError> {
        let url = parse_http_url(text)?;
        let mut segments = path_segments(&url);
        if segments.last().is_some_and(|last| last == "data") {
            segments.pop();
        }
        let (before, id) = match segments.as_slice() {
            [before @ .., results, id] if results == RESULTS => (before, Uuid::try_parse(id).ok()),
            _ => return Err(ResultAddressError::NoResult),
        };
        let link = url.query_pairs().find(|(name, _)| name == "link").map(|(_, value)| value.into_owned());
        let server = ResultServer { base: base_url(&url, before) };
        Ok(Self { server, id: id.ok_or(ResultAddressError::NoResult)?, link: link.filter(|link| !link.is_empty()) })
    }

    /// The server that stores the result.
    pub fn server(&self) -> &ResultServer {
        &self.server
    }

    /// The id of the result.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The token of the link, if the address has one.
    pub(crate) fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    pub(crate) fn manifest_url(&self) -> Url {
        self.server.url_for(&format!("{RESULTS}/{}", self.id))
    }

    pub(crate) fn block_url(&self, index: u64) -> Url {
        self.server.url_for(&format!("{RESULTS}/{}/blocks/{index}", self.id))
    }

    pub(crate) fn data_url(&self) -> Url {
        self.server.url_for(&format!("{RESULTS}/{}/data", self.id))
    }
}

impl fmt::Display for ResultServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str())
    }
}

impl fmt::Debug for ResultServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ResultAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.manifest_url().as_str())
    }
}

impl fmt::Debug for ResultAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn parse_http_url(text: &str) -> Result<Url, ResultAddressError> {
    let url = Url::parse(text.trim()).map_err(|error| ResultAddressError::NotAUrl(error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ResultAddressError::ContainsCredentials);
    }
    match url.scheme() {
        "http" | "https" => {}
        "tidegate" => return Err(ResultAddressError::McpResourceUri),
        other => return Err(ResultAddressError::UnsupportedScheme(other.to_owned())),
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(ResultAddressError::NoHost);
    }
    Ok(url)
}

/// The segments of the path as written, without empty ones.
fn path_segments(url: &Url) -> Vec<String> {
    url.path().split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// The base URL of `url` with the path of `segments`.
fn base_url(url: &Url, segments: &[String]) -> Url {
    let mut base = url.clone();
    base.set_query(None);
    base.set_fragment(None);
    let path: String = segments.iter().map(|segment| format!("{segment}/")).collect();
    base.set_path(&path);
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "2f1c1f0e-9d1b-4c55-8a33-0d6a3a1f7c11";

    fn parsed(text: &str) -> ResultAddress {
        ResultAddress::parse(text).unwrap()
    }

    #[test]
    fn parses_manifest_and_data_urls() {
        for (text, manifest) in [
            ("http://127.0.0.1:7070/results/ID", "http://127.0.0.1:7070/results/ID"),
            ("http://127.0.0.1:7070/results/ID/", "http://127.0.0.1:7070/results/ID"),
            ("https://data.example.com/results/ID/data?format=csv", "https://data.example.com/results/ID"),
            ("https://example.com/data/node%201/results/ID/data#x", "https://example.com/data/node%201/results/ID"),
        ] {
            let address = parsed(&text.replace("ID", ID));
            assert_eq!(address.manifest_url().as_str(), manifest.replace("ID", ID));
            assert_eq!(address.block_url(7).as_str(), format!("{}/blocks/7", manifest.replace("ID", ID)));
            assert_eq!(address.data_url().as_str(), format!("{}/data", manifest.replace("ID", ID)));
            assert_eq!(address.link(), None);
        }
    }

    #[test]
    fn display_hides_secrets() {
        let address = parsed(&format!("https://example.com/results/{ID}/data?link=secret%2B1&partial=true"));
        assert_eq!(address.link(), Some("secret+1"));
        assert!(!format!("{address} {address:?}").contains("secret"));
        for text in ["http://anna:secret@localhost/results/x", "http://se%cret@[::1"] {
            let refused = ResultAddress::parse(text).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }

    #[test]
    fn rejects_urls_without_result() {
        let refused = |text: &str| ResultAddress::parse(&text.replace("ID", ID)).unwrap_err();
        assert_eq!(refused("ftp://localhost/results/ID"), ResultAddressError::UnsupportedScheme("ftp".to_owned()));
        assert_eq!(refused("tidegate://results/ID"), ResultAddressError::McpResourceUri);
        assert!(matches!(refused("/results/ID"), ResultAddressError::NotAUrl(_)));
        for text in
            ["http://h/", "http://h/results", "http://h/results/7", "http://h/ID", "http://h/results/ID/blocks/0"]
        {
            assert_eq!(refused(text), ResultAddressError::NoResult, "{text}");
        }
    }

    #[test]
    fn parses_server_from_endpoint_urls() {
        for (text, sql) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070/rest/sql"),
            ("http://127.0.0.1:7070/mcp", "http://127.0.0.1:7070/rest/sql"),
            ("https://example.com/node/rest/", "https://example.com/node/rest/sql"),
            ("https://example.com/node/rest/sql?x=1", "https://example.com/node/rest/sql"),
        ] {
            assert_eq!(ResultServer::parse(text).unwrap().sql_url().as_str(), sql, "{text}");
        }
        let id = Uuid::try_parse(ID).unwrap();
        assert_eq!(
            ResultServer::parse("https://h/a/mcp").unwrap().result(id),
            parsed(&format!("https://h/a/results/{ID}"))
        );
    }

    #[test]
    fn detects_unencrypted_remote_servers() {
        let is_in_the_clear = |text: &str| ResultServer::parse(text).unwrap().is_in_the_clear();
        assert!(is_in_the_clear("http://data.example.com/"));
        for local in ["http://localhost:7070/", "http://127.0.0.9/", "http://[::1]:1/", "https://example.com/"] {
            assert!(!is_in_the_clear(local), "{local}");
        }
    }
}
