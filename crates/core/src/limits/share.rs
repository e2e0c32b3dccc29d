//! What the principals of one tenant may have together of what all callers share.

use std::ops::Div;

/// What the principals of one tenant may have together of `of_all` places, results or bytes: half, so that, however many
/// they are, others find room; never nothing.
///
/// Whoever has no tenant is not held to it.
pub fn tenant_share<N: From<u8> + Div<Output = N> + Ord>(of_all: N) -> N {
    (of_all / N::from(2)).max(N::from(1))
}
