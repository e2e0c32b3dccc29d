//! The id of a request: a string or a number, returned unchanged.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

/// The maximum length of ids in bytes; they are stored as long as their request is open.
const ID_BYTES_MAX: usize = 4_096;

/// A request's id as the received JSON text, so that `7`, `7.0` and a 23-digit integer are returned unchanged.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The id in `raw`, if it is a string or a number of allowed length.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_id = match text.bytes().next()? {
            // Half a surrogate pair is not valid text: the client could not decode the id in the response.
            b'"' => serde_json::from_str::<String>(text).is_ok(),
            first => first == b'-' || first.is_ascii_digit(),
        };
        (is_id && text.len() <= ID_BYTES_MAX).then(|| Self(text.into()))
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
