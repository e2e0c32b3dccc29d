//! Places among the running calls: a call waits for one among its principal's, then for one among all, and gives both back
//! while it waits for a person.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, ErrorKind};

/// Where calls wait for a place.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Those of the call's principal, where that is bounded.
    pub(crate) of_one: Option<Arc<Semaphore>>,
    pub(crate) of_all: Arc<Semaphore>,
}

/// A place that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldPlace {
    _of_one: Option<OwnedSemaphorePermit>,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    /// Waits for a place.
    pub(crate) async fn take(&self) -> Result<HeldPlace, Error> {
        // The semaphores are never closed.
        let closed = |_| Error::new(ErrorKind::Unavailable, "the server is shutting down");
        let of_one = match &self.of_one {
            Some(of_one) => Some(of_one.clone().acquire_owned().await.map_err(closed)?),
            None => None,
        };
        let of_all = self.of_all.clone().acquire_owned().await.map_err(closed)?;
        Ok(HeldPlace { _of_one: of_one, _of_all: of_all })
    }
}
