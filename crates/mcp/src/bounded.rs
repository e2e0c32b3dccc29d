//! Names and URIs as clients send them: they are kept by sessions, jobs and the log, so they are bounded where they are
//! read.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Longer names of tools and prompts are refused, in bytes; none that is offered comes near it.
pub const NAME_BYTES_MAX: usize = 4 * 1024;
/// Longer URIs are refused, in bytes.
const URI_BYTES_MAX: usize = 8 * 1024;

/// Reads a name.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(deserializer, "name", NAME_BYTES_MAX)
}

/// Reads a URI.
pub(crate) fn uri<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(deserializer, "URI", URI_BYTES_MAX)
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D, subject: &str, bytes_max: usize) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() > bytes_max {
        return Err(D::Error::custom(format_args!("the {subject} is {} bytes long; at most {bytes_max}", text.len())));
    }
    Ok(text)
}
