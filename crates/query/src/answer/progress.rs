//! What a caller hears of an answer while its rows come.

use std::time::{Duration, Instant};

use tidegate_core::{Error, ReplySender};

/// Progress is told no more often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// When progress was told last, and what.
#[derive(Default)]
pub(crate) struct Progress {
    told: Option<(Instant, u64)>,
}

impl Progress {
    /// Tells that `rows` are done, if that is news and the last news are old enough.
    pub(crate) async fn tell(&mut self, rows: u64, reply: &ReplySender) -> Result<(), Error> {
        let (at, before) = *self.told.get_or_insert_with(|| (Instant::now(), 0));
        if rows <= before || at.elapsed() < PROGRESS_INTERVAL {
            return Ok(());
        }
        self.told = Some((Instant::now(), rows));
        // A float holds every number of rows that will ever be counted.
        reply.progress(rows as f64, None, Some(format!("{rows} rows"))).await
    }
}
