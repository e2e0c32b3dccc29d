//! How long to wait before a transaction that met another one is tried again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first wait; it doubles, and chance adds up to as much.
const FIRST_BACKOFF: Duration = Duration::from_millis(10);

/// How long to wait before the next of so many tries.
pub(crate) fn backoff_delay(tries: u32) -> Duration {
    let least = FIRST_BACKOFF * 2_u32.saturating_pow(tries.saturating_sub(1).min(6));
    // The clock's last digits are chance enough to part two callers that met.
    let chance = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    least + least.mul_f64(f64::from(chance % 1_000) / 1_000.0)
}
