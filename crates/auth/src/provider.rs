//! The identity provider, as far as it is asked anything over the network.
//!
//! Whatever is wrong with it is for the log alone: a caller hears that its token is not valid, and no more.

mod error;
mod http;
mod log_throttle;
mod metadata;
mod url;

use std::time::Duration;

pub(crate) use error::ProviderError;
pub(crate) use http::{ProviderClient, ProviderResponse};
pub(crate) use log_throttle::LogThrottle;
pub(crate) use metadata::discover_key_set_url;
pub use url::ProviderUrlError;
pub(crate) use url::{is_loopback, parse_url};

/// How long anything that is asked of it may take, and so how long a caller waits for it at most.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
