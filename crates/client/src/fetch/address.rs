//! Addresses of servers and results. Their display form contains no secrets.

use std::fmt;

use reqwest::Url;
use uuid::Uuid;

use super::tool_call::TransportChange;
use crate::server::{self, AddressError};

const RESULTS: &str = "results";
/// Path suffixes of a server address that name an endpoint.
const ENDPOINT_PATHS: [&[&str]; 3] = [&["mcp"], &["rest", "sql"], &["rest"]];

/// A server that stores results, with the base path that a proxy gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl ResultServer {
    /// Parses a URL with the scheme http or https. The URL of the server's MCP or REST endpoint is accepted as well.
    ///
    /// # Errors
    /// Fails if the text is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let url = parse_http_url(text)?;
        let segments = path_segments(&url);
        let server_path = ENDPOINT_PATHS.iter().find_map(|endpoint| {
            let (before, end) = segments.split_at_checked(segments.len().checked_sub(endpoint.len())?)?;
            (end == *endpoint).then_some(before)
        });
        Ok(Self { base: base_url(&url, server_path.unwrap_or(&segments)) })
    }

    /// The result `id` of this server.
    pub fn result(&self, id: Uuid) -> ResultAddress {
        ResultAddress { server: self.clone(), id, link: None }
    }

    /// Whether requests leave this machine unencrypted.
    pub fn is_sent_unencrypted(&self) -> bool {
        server::is_sent_unencrypted(&self.base)
    }

    pub(crate) fn sql_url(&self) -> Url {
        self.url_for("rest/sql")
    }

    /// The URL of a table that takes rows.
    pub(crate) fn data_url(&self, database: &str, table: &str) -> Url {
        let mut url = self.base.clone();
        // The scheme is http or https, whose URLs have paths.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["data", database, table]);
        }
        url
    }

    /// The URL that calls a tool. Names of tools are plain words.
    pub(super) fn tool_url(&self, tool: &str) -> Url {
        self.url_for(&format!("rest/tools/{tool}/call"))
    }

    /// The URL of the transports, or of a change of them. Names of transports are plain words.
    pub(super) fn transports_url(&self, change: Option<TransportChange<'_>>) -> Url {
        match change {
            None => self.url_for("rest/transports"),
            Some(TransportChange { name, is_running }) => {
                self.url_for(&format!("rest/transports/{name}/{}", if is_running { "start" } else { "stop" }))
            }
        }
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
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let url = parse_http_url(text)?;
        let mut segments = path_segments(&url);
        if segments.last().is_some_and(|last| last == "data") {
            segments.pop();
        }
        let (before, id) = match segments.as_slice() {
            [before @ .., results, id] if results == RESULTS => (before, Uuid::try_parse(id).ok()),
            _ => return Err(AddressError::NoResult),
        };
        let link = url.query_pairs().find(|(name, _)| name == "link").map(|(_, value)| value.into_owned());
        let server = ResultServer { base: base_url(&url, before) };
        Ok(Self { server, id: id.ok_or(AddressError::NoResult)?, link: link.filter(|link| !link.is_empty()) })
    }

    /// The server that stores the result.
    pub fn server(&self) -> &ResultServer {
        &self.server
    }

    /// The id of the result.
    pub fn id(&self) -> Uuid {
        self.id
    }

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

fn parse_http_url(text: &str) -> Result<Url, AddressError> {
    server::parse_url(text, &["http", "https"], "http://127.0.0.1:7070/results/ID")
}

/// The segments of the path as written, without empty ones.
fn path_segments(url: &Url) -> Vec<String> {
    url.path().split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

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
    }

    #[test]
    fn rejects_urls_without_result() {
        let refused = |text: &str| ResultAddress::parse(&text.replace("ID", ID)).unwrap_err();
        for text in
            ["http://h/", "http://h/results", "http://h/results/7", "http://h/ID", "http://h/results/ID/blocks/0"]
        {
            assert_eq!(refused(text), AddressError::NoResult, "{text}");
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
}
