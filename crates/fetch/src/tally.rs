//! How far a download is, counted by all who work on it.

use parking_lot::Mutex;

use crate::manifest::{Manifest, Status};
use crate::notice::{Notice, NoticeListener, Standing};

/// Counts, and tells each change.
pub(crate) struct Tally {
    standing: Mutex<Standing>,
    heard_by: NoticeListener,
}

impl Tally {
    pub(crate) fn new(heard_by: NoticeListener) -> Self {
        Self { standing: Mutex::default(), heard_by }
    }

    /// That is known of the result.
    pub(crate) fn knows(&self, manifest: &Manifest) {
        self.change(|standing| {
            standing.bytes_known = manifest.bytes;
            standing.rows_known = manifest.rows;
            standing.is_running = manifest.status == Status::Running;
        });
    }

    /// More bytes of blocks are here.
    pub(crate) fn arrived(&self, bytes: u64) {
        self.change(|standing| standing.bytes += bytes);
    }

    /// Bytes that were here are worth nothing.
    pub(crate) fn dropped(&self, bytes: u64) {
        self.change(|standing| standing.bytes = standing.bytes.saturating_sub(bytes));
    }

    /// A block with that many rows is here and checked.
    pub(crate) fn checked(&self, rows: u64) {
        self.change(|standing| standing.rows += rows);
    }

    fn change(&self, change: impl FnOnce(&mut Standing)) {
        let standing = {
            let mut standing = self.standing.lock();
            change(&mut standing);
            *standing
        };
        (self.heard_by)(&Notice::Moved(standing));
    }
}
