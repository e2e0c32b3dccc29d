//! The addresses at which an identity provider may be asked.

use std::net::IpAddr;

use reqwest::Url;

/// Why an address is none at which an identity provider may be asked. The address is not repeated: it may hold a
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderUrlError {
    /// It is no address at all.
    #[error("is not a complete URL such as https://login.example.com/keys")]
    Malformed,
    /// Whoever is on the way could answer in the provider's place.
    #[error("must begin with https://; http:// is allowed for this machine only (localhost, 127.0.0.1)")]
    NotPrivate,
    /// A name and password stand in it.
    #[error("must not contain a user name or password")]
    HoldsCredentials,
    /// A part of it is never sent.
    #[error("must not have a part after #")]
    HasFragment,
}

/// The address `text`.
///
/// # Errors
/// When nobody's word from there could be trusted, or it is no address.
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

/// Whether `url` leads to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
