//! Parses URLs of servers.

use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

/// Why a text is not a valid address. The error does not repeat the text, which may contain a password or the token of
/// a link.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum AddressError {
    #[error("not a valid URL ({reason}); an example is {example}")]
    NotAUrl { reason: String, example: &'static str },
    #[error(
        "the URL contains a user name or a password, which is visible in process lists and logs; \
         use --bearer, or TIDEGATE_BEARER in the environment"
    )]
    ContainsCredentials,
    #[error("tidegate:// is the URI of a result in MCP; use http://HOST/results/ID of the same server")]
    McpResourceUri,
    #[error("the scheme {scheme:?} is not supported; use {supported}")]
    UnsupportedScheme { scheme: String, supported: String },
    #[error("the URL has no host; an example is {example}")]
    NoHost { example: &'static str },
    #[error("the URL is not the URL of a result: its path must end in /results/ID or /results/ID/data")]
    NoResult,
}

/// Parses a URL without credentials that has one of `schemes`. `example` is for the error message.
pub(crate) fn parse_url(text: &str, schemes: &[&str], example: &'static str) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|error| AddressError::NotAUrl { reason: error.to_string(), example })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::ContainsCredentials);
    }
    match url.scheme() {
        scheme if schemes.contains(&scheme) => {}
        "tidegate" => return Err(AddressError::McpResourceUri),
        scheme => {
            return Err(AddressError::UnsupportedScheme { scheme: scheme.to_owned(), supported: schemes.join(", ") });
        }
    }
    if host(&url).is_empty() {
        return Err(AddressError::NoHost { example });
    }
    Ok(url)
}

/// The host without the brackets of an IPv6 address.
pub(crate) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}

/// Whether requests leave this machine unencrypted.
pub(crate) fn is_sent_unencrypted(url: &Url) -> bool {
    let host = host(url);
    let is_loopback =
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    matches!(url.scheme(), "http" | "ws") && !is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "http://127.0.0.1:7070/";

    fn parse(text: &str) -> Result<Url, AddressError> {
        parse_url(text, &["http", "https", "ws"], EXAMPLE)
    }

    #[test]
    fn errors_do_not_repeat_secrets() {
        for text in ["http://anna:secret@localhost/mcp", "http://:secret@localhost/mcp", "http://se%cret@[::1"] {
            let error = parse(text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert_eq!(parse("http://a@localhost/mcp").unwrap_err(), AddressError::ContainsCredentials);
    }

    #[test]
    fn rejects_other_schemes() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("ftp://localhost/"), r#"the scheme "ftp" is not supported; use http, https, ws"#);
        assert_eq!(error("localhost:7070"), r#"the scheme "localhost" is not supported; use http, https, ws"#);
        assert_eq!(parse("tidegate://results/7").unwrap_err(), AddressError::McpResourceUri);
        for text in ["/mcp", "http://"] {
            assert!(matches!(parse(text).unwrap_err(), AddressError::NotAUrl { example: EXAMPLE, .. }), "{text}");
        }
    }

    #[test]
    fn detects_unencrypted_remote_servers() {
        let is_unencrypted = |text: &str| is_sent_unencrypted(&parse(text).unwrap());
        for remote in ["http://data.example.com/mcp", "ws://10.0.0.1/mcp/ws", "http://localhost.example.com/mcp"] {
            assert!(is_unencrypted(remote), "{remote}");
        }
        for local in ["http://localhost:7070/mcp", "http://127.0.0.9/mcp", "ws://[::1]:1/mcp", "https://example.com/"] {
            assert!(!is_unencrypted(local), "{local}");
        }
    }
}
