//! HTTP requests to the identity provider.
//!
//! Failures are logged. A caller learns only that its token is invalid.

mod error;
mod http;
mod metadata;
mod url;

use std::time::Duration;

pub(crate) use error::ProviderError;
pub(crate) use http::{LogThrottle, ProviderClient, ProviderResponse};
pub(crate) use metadata::discover_key_set_url;
pub use url::ProviderUrlError;
pub(crate) use url::{is_loopback, parse_url};

/// The time limit of one request, and so the longest wait of a caller.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
