//! Memory that work reserves before it uses it, so that all work together stays within the memory of the node.

use std::fmt;
use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// When a caller may try again after other work held the memory.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The memory of one piece of work. It returns to the node when this is dropped.
pub trait MemoryReservation: fmt::Debug + Send {
    /// Changes the size of the reservation. Less is never refused.
    ///
    /// # Errors
    /// A limit does not admit `bytes`. The reservation stays as it was.
    fn resize(&mut self, bytes: usize) -> Result<(), MemoryRefusal>;
}

/// Why memory was not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRefusal {
    /// Whether the limit is that of the tenant. Else it is that of the node.
    pub is_of_tenant: bool,
    /// What the work would have had.
    pub requested_bytes: usize,
    /// What all work under the limit has.
    pub used_bytes: usize,
    /// The limit.
    pub limit_bytes: usize,
}

impl fmt::Display for MemoryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_of_tenant, requested_bytes, used_bytes, limit_bytes } = self;
        let owner = if *is_of_tenant { "a tenant" } else { "the node" };
        write!(f, "{requested_bytes} bytes do not fit: {used_bytes} of the {limit_bytes} bytes of {owner} are in use")
    }
}

impl From<MemoryRefusal> for Error {
    /// The error of rows that are not taken. Only work that the limit would admit alone can succeed later.
    fn from(refusal: MemoryRefusal) -> Self {
        let (requested, limit) = (refusal.requested_bytes, refusal.limit_bytes);
        if requested > limit {
            let message = format!(
                "the rows need {requested} bytes of memory at once, and {limit} are available; nothing was stored"
            );
            return Self::new(ErrorKind::TooLarge, message)
                .with_hint("Send fewer or smaller rows in one request. The server's limit is limits.memory.");
        }
        Self::new(ErrorKind::Unavailable, "other work holds the memory that the rows need; nothing was stored")
            .with_hint("Retry later, or send smaller requests. The server's limit is limits.memory.")
            .with_detail(refusal.to_string())
            .with_retry_after(RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_fit_later_may_be_tried_again() {
        let refusal = MemoryRefusal { is_of_tenant: true, requested_bytes: 60, used_bytes: 50, limit_bytes: 100 };
        let error = Error::from(refusal);
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::Unavailable, Some(RETRY_AFTER)));
        assert_eq!(error.detail(), Some("60 bytes do not fit: 50 of the 100 bytes of a tenant are in use"));
        let error = Error::from(MemoryRefusal { requested_bytes: 101, ..refusal });
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::TooLarge, None));
    }
}
