//! The identity provider, as far as it is asked anything over the network.
//!
//! Whatever is wrong with it is for the log alone: a caller hears that its token is not valid, and no more.

mod address;
mod failure;
mod http;
mod metadata;
mod seldom;

use std::time::Duration;

pub use address::AddressError;
pub(crate) use address::{is_loopback, parse};
pub(crate) use failure::Failure;
pub(crate) use http::{Http, Page};
pub(crate) use metadata::key_set_address;
pub(crate) use seldom::Seldom;

/// How long anything that is asked of it may take, and so how long a caller waits for it at most.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
