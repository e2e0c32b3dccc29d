//! Issuer metadata ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-3) and [OpenID Connect
//! Discovery](https://openid.net/specs/openid-connect-discovery-1_0.html)), read for the URL of the key set.

use reqwest::Url;
use serde_json::{Map, Value};

use super::http::{NOT_PRIVATE, ProviderClient, ProviderError, is_loopback, parse_url};

const NO_KEY_SET: &str = "its metadata have no jwks_uri";

/// The URL of the key set of `issuer`. `url` is the same issuer as a parsed URL.
pub(crate) async fn discover_key_set_url(http: &ProviderClient, issuer: &str, url: &Url) -> Result<Url, ProviderError> {
    let mut last = ProviderError::other(NO_KEY_SET);
    for metadata_url in metadata_urls(url) {
        match http.get(&metadata_url).await {
            // An issuer may use only one of these URLs; some serve an HTML page at the others.
            Ok(page) => match parse_metadata(&page.body, issuer, url) {
                Err(failure @ ProviderError::NotJson) => last = failure,
                result => return result,
            },
            Err(failure @ ProviderError::Status(_)) => last = failure,
            Err(failure) => return Err(failure),
        }
    }
    Err(last)
}

/// In the order of the MCP specification: both names before the path (RFC 8414), then the OpenID name after it.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let with_path = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        url
    };
    paths.into_iter().map(with_path).collect()
}

fn parse_metadata(body: &[u8], issuer: &str, url: &Url) -> Result<Url, ProviderError> {
    let metadata: Map<String, Value> = serde_json::from_slice(body).map_err(|_| ProviderError::NotJson)?;
    let named_issuer = metadata.get("issuer").and_then(Value::as_str).unwrap_or_default();
    if named_issuer != issuer {
        let named_issuer: String = named_issuer.chars().take(200).collect();
        return Err(ProviderError::other(format_args!("its metadata name another issuer: {named_issuer:?}")));
    }
    let keys = metadata.get("jwks_uri").and_then(Value::as_str).ok_or_else(|| ProviderError::other(NO_KEY_SET))?;
    let invalid = |problem| ProviderError::other(format_args!("the jwks_uri of its metadata {problem}"));
    let keys = parse_url(keys).map_err(invalid)?;
    // A remote issuer must not direct requests to services on this machine.
    if is_loopback(&keys) && !is_loopback(url) {
        return Err(invalid(NOT_PRIVATE));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_urls_follow_the_specifications() {
        let urls = |issuer: &str| -> Vec<String> {
            super::metadata_urls(&Url::parse(issuer).unwrap()).into_iter().map(String::from).collect()
        };
        let bare = [
            "https://login.example/.well-known/oauth-authorization-server",
            "https://login.example/.well-known/openid-configuration",
        ];
        assert_eq!(urls("https://login.example"), bare);
        assert_eq!(urls("https://login.example/"), bare);
        assert_eq!(
            urls("https://login.example:8443/realms/one/"),
            [
                "https://login.example:8443/.well-known/oauth-authorization-server/realms/one",
                "https://login.example:8443/.well-known/openid-configuration/realms/one",
                "https://login.example:8443/realms/one/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn rejects_metadata_of_another_issuer_and_insecure_jwks_uri() {
        let of = |metadata: &str| {
            let url = Url::parse("https://login.example").unwrap();
            parse_metadata(metadata.as_bytes(), "https://login.example", &url).map(String::from)
        };
        let keys = r#"{"issuer": "https://login.example", "jwks_uri": "https://keys.example/set"}"#;
        assert_eq!(of(keys), Ok("https://keys.example/set".to_owned()));
        assert_eq!(of("[]"), Err(ProviderError::NotJson));
        let other = r#"{"issuer": "https://login.example/", "jwks_uri": "https://keys.example/set"}"#;
        assert_eq!(
            of(other),
            Err(ProviderError::other("its metadata name another issuer: \"https://login.example/\""))
        );
        assert_eq!(of(r#"{"issuer": "https://login.example"}"#), Err(ProviderError::other(NO_KEY_SET)));
        for odd in ["http://keys.example", "file:///etc/passwd", "http://127.0.0.1:1/set", "https://[::1]/set"] {
            let metadata = format!(r#"{{"issuer": "https://login.example", "jwks_uri": "{odd}"}}"#);
            let problem = of(&metadata).unwrap_err().to_string();
            assert!(problem.starts_with("the jwks_uri of its metadata "), "{odd}: {problem}");
        }
    }
}
