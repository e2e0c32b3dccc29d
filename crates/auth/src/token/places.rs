//! Places for questions to the issuer: so many at once, and so many of them for one network. Whoever asks about one made-up
//! token after the other waits in its own line, and not before everybody else.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_core::network_of;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Questions that are on their way at the same time.
const QUESTIONS_MAX: usize = 32;
/// Of them, those of one network.
const OF_ONE_MAX: usize = 8;

/// All places.
pub(super) struct Places {
    all: Semaphore,
    /// The lines of networks from which somebody waits or asks.
    lines: Mutex<HashMap<Option<IpAddr>, Arc<Semaphore>>>,
}

/// One place, free again when it is dropped.
pub(super) struct Place<'a> {
    _of_all: Option<SemaphorePermit<'a>>,
    _of_one: Option<OwnedSemaphorePermit>,
    _line: Line<'a>,
}

/// Keeps a network's line as long as somebody stands in it.
struct Line<'a> {
    places: &'a Places,
    network: Option<IpAddr>,
    semaphore: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self { all: Semaphore::new(QUESTIONS_MAX), lines: Mutex::default() }
    }
}

impl Places {
    /// Waits for a place for a question of `peer`: first in its own line, so that it holds none of the others' meanwhile.
    pub(super) async fn take(&self, peer: Option<IpAddr>) -> Place<'_> {
        let network = peer.map(network_of);
        let semaphore =
            self.lines.lock().entry(network).or_insert_with(|| Arc::new(Semaphore::new(OF_ONE_MAX))).clone();
        let line = Line { places: self, network, semaphore };
        // Nobody closes them.
        let of_one = line.semaphore.clone().acquire_owned().await.ok();
        let of_all = self.all.acquire().await.ok();
        Place { _of_all: of_all, _of_one: of_one, _line: line }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut lines = self.places.lines.lock();
        // The map has one, and this is the other.
        let is_last = Arc::strong_count(&self.semaphore) <= 2;
        if is_last {
            lines.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn one_network_leaves_places_for_others() {
        let places = Places::default();
        let of = |peer: &str| places.take(peer.parse().ok()).now_or_never();
        let of_one: Vec<_> = (0..=OF_ONE_MAX).map(|number| of(&format!("2001:db8::{number:x}"))).collect();
        assert_eq!(of_one.iter().flatten().count(), OF_ONE_MAX);
        let others: Vec<_> = (0..=QUESTIONS_MAX).map(|number| of(&format!("10.0.0.{number}"))).collect();
        assert_eq!(others.iter().flatten().count(), QUESTIONS_MAX - OF_ONE_MAX);
        drop(of_one);
        assert!(of("2001:db8::1").is_some());
        drop(others);
        assert!(places.lines.lock().is_empty());
    }
}
