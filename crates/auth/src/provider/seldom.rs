//! Things that may go wrong with every request and are told now and then.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often the same is told.
const EVERY: Duration = Duration::from_secs(60);

/// Whether it is time to tell something again.
#[derive(Default)]
pub(crate) struct Seldom {
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    at: Option<Instant>,
    untold: u64,
}

impl Seldom {
    /// How often it happened since it was told last, this time included; none if it was told a moment ago.
    pub(crate) fn tell(&self) -> Option<u64> {
        let mut told = self.told.lock();
        told.untold += 1;
        if told.at.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        told.at = Some(Instant::now());
        Some(std::mem::take(&mut told.untold))
    }

    /// It went well again: says whether anybody was told of the contrary, and what comes next is told at once.
    pub(crate) fn is_over(&self) -> bool {
        let mut told = self.told.lock();
        told.untold = 0;
        told.at.take().is_some()
    }
}
