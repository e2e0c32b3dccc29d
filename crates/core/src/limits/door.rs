//! What a call gets at the door: places to wait for, and those to whom it is charged.
//!
//! A call waits for a place among its principal's, its tenant's, its tool's and all calls, in this order: whoever waits in
//! a line of many holds no more than places of fewer, so that one that has its fill keeps nobody else waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::charges::Charges;
use super::meter::OpenCall;
use crate::error::{Error, ErrorKind};

/// What a call gets at the door.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Where it waits for places; none for a call on behalf of one that holds them already.
    pub(crate) places: Option<Places>,
    pub(crate) charges: Charges,
    /// What it holds until it has ended.
    pub(crate) held: Held,
}

/// What a call holds until it has ended, also while it asks.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(super) open: Vec<OpenCall>,
    /// Of a call on behalf of another one: the place among those of its tool.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// Where calls wait for a place, in order.
#[derive(Debug, Clone)]
pub(crate) struct Places(pub(super) Vec<Arc<Semaphore>>);

/// A place that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldPlaces {
    _places: Vec<OwnedSemaphorePermit>,
}

impl Places {
    /// Waits for a place.
    pub(crate) async fn take(&self) -> Result<HeldPlaces, Error> {
        let mut places = Vec::with_capacity(self.0.len());
        for line in &self.0 {
            // The semaphores are never closed.
            let closed = |_| Error::new(ErrorKind::Unavailable, "the server is shutting down");
            places.push(line.clone().acquire_owned().await.map_err(closed)?);
        }
        Ok(HeldPlaces { _places: places })
    }
}
