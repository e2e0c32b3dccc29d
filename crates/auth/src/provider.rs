//! HTTP requests to the identity provider.
//!
//! Failures are logged. A caller learns only that its token is invalid.

mod http;
mod metadata;

pub(crate) use http::{LogThrottle, ProviderClient, ProviderError, ProviderResponse, REQUEST_TIMEOUT, parse_url};
pub(crate) use metadata::discover_key_set_url;
