//! Who fetches, and the bounds.

use std::sync::Arc;
use std::time::Duration;

use crate::bearer::Bearer;
use crate::notice::{Notice, NoticeListener};

/// Who fetches, and the bounds.
#[derive(Clone)]
pub struct FetchOptions {
    /// Proves who calls. It stays at home where a result was named by a link, which is proof enough.
    pub bearer: Option<Bearer>,
    /// Blocks that are fetched at once.
    pub parallel: usize,
    /// Whether a result that ended incomplete is taken as far as it goes.
    pub takes_incomplete: bool,
    /// Attempts at one thing without any progress, after which it is given up. A server that has not answered at all
    /// yet gets fewer.
    pub attempts_max: u32,
    /// The delay after the first failed attempt; it doubles.
    pub delay_first: Duration,
    /// The longest delay between attempts.
    pub delay_longest: Duration,
    /// How long a connection may take to stand.
    pub connect_within: Duration,
    /// How long a server may be silent in the middle of an answer.
    pub silence_max: Duration,
    /// How long a running result may not grow.
    pub standstill_max: Duration,
    /// How long a question may take until its result has begun.
    pub answer_within: Duration,
    /// Hears how far it is, and what went wrong on the way.
    pub heard_by: NoticeListener,
}

impl Default for FetchOptions {
    /// Nobody in particular, four blocks at once, and half a minute of patience with a server that went away.
    fn default() -> Self {
        Self {
            bearer: None,
            parallel: 4,
            takes_incomplete: false,
            attempts_max: 10,
            delay_first: Duration::from_millis(100),
            delay_longest: Duration::from_secs(5),
            connect_within: Duration::from_secs(10),
            silence_max: Duration::from_secs(60),
            standstill_max: Duration::from_secs(15 * 60),
            answer_within: Duration::from_secs(15 * 60),
            heard_by: Arc::new(|_| {}),
        }
    }
}

impl FetchOptions {
    pub(crate) fn tell(&self, notice: &Notice) {
        (self.heard_by)(notice);
    }
}
