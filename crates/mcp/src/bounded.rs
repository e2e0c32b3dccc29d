//! Limits on names and URIs from clients. Sessions, jobs and the log store them, so their length is checked when they
//! are read.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The maximum length of names of tools and prompts in bytes. No registered name is nearly as long.
pub const NAME_BYTES_MAX: usize = 4 * 1024;
const URI_BYTES_MAX: usize = 8 * 1024;

pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(deserializer, "name", NAME_BYTES_MAX)
}

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
