//! URLs of an identity provider.

use std::net::IpAddr;

use reqwest::Url;

/// Why a URL is not allowed for an identity provider. The URL is not repeated, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderUrlError {
    /// Not a complete URL.
    #[error("is not a complete URL such as https://login.example.com/keys")]
    Malformed,
    /// Not encrypted, so a third party could answer in place of the provider.
    #[error("must begin with https://; http:// is allowed for this machine only (localhost, 127.0.0.1)")]
    NotPrivate,
    /// The URL contains a user name or password.
    #[error("must not contain a user name or password")]
    HoldsCredentials,
    /// The URL has a fragment, which is never sent.
    #[error("must not have a part after #")]
    HasFragment,
}

/// Parses the URL `text`.
///
/// # Errors
/// When it is not a URL, or not allowed.
pub(crate) fn parse_url(text: &str) -> Result<Url, ProviderUrlError> {
    let url = Url::parse(text).map_err(|_| ProviderUrlError::Malformed)?;
    if !url.has_host() {
        return Err(ProviderUrlError::Malformed);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ProviderUrlError::HoldsCredentials);
    }
    if url.fragment().is_some() {
        return Err(ProviderUrlError::HasFragment);
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err(ProviderUrlError::NotPrivate),
    }
}

/// Whether the host of `url` is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
