//! Which results go when there is no room for more: the oldest that are finished, first those of whoever needs the room.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::id::ResultId;
use super::limits::StoreLimits;
use super::result::StoredResult;

/// What stands in the way of more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    /// The principal has as much as it may.
    OfOne,
    /// All have as much as they may together.
    OfAll,
}

impl Shortage {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::OfOne => "your stored results take as much room as they may",
            Self::OfAll => "all stored results of the server take as much room as they may",
        }
    }
}

/// What some results take.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    bytes: u64,
    results: usize,
}

impl Use {
    fn of<'a>(results: impl Iterator<Item = &'a Arc<StoredResult>>) -> Self {
        results
            .fold(Self::default(), |used, result| Self { bytes: used.bytes + result.size(), results: used.results + 1 })
    }

    fn without(self, result: &StoredResult) -> Self {
        Self { bytes: self.bytes.saturating_sub(result.size()), results: self.results.saturating_sub(1) }
    }

    fn fits(self, bytes_max: u64, results_max: usize) -> bool {
        self.bytes <= bytes_max && self.results <= results_max
    }
}

/// Those that have to go so that `writing`, which is one of `results`, can have `bytes` more.
///
/// # Errors
/// When not even that would help.
pub(super) fn leaving(
    results: &HashMap<ResultId, Arc<StoredResult>>,
    limits: &StoreLimits,
    writing: &StoredResult,
    bytes: u64,
) -> Result<Vec<Arc<StoredResult>>, Shortage> {
    let is_own = |result: &&Arc<StoredResult>| result.head.owner == writing.head.owner;
    let (mut of_all, mut of_one) = (Use::of(results.values()), Use::of(results.values().filter(is_own)));
    of_all.bytes = of_all.bytes.saturating_add(bytes);
    of_one.bytes = of_one.bytes.saturating_add(bytes);
    let one_fits = |used: Use| used.fits(limits.bytes_of_one, limits.results_of_one);
    let all_fit = |used: Use| used.fits(limits.total_bytes, limits.results);
    if one_fits(of_one) && all_fit(of_all) {
        return Ok(Vec::new());
    }
    let mut finished: Vec<&Arc<StoredResult>> = results.values().filter(|result| has_ended(result)).collect();
    finished.sort_unstable_by_key(|result| (result.head.created_at_ms, result.head.id));
    let mut leaving: Vec<Arc<StoredResult>> = Vec::new();
    for result in finished.iter().copied().filter(is_own) {
        if one_fits(of_one) {
            break;
        }
        (of_one, of_all) = (of_one.without(result), of_all.without(result));
        leaving.push(result.clone());
    }
    if !one_fits(of_one) {
        return Err(Shortage::OfOne);
    }
    let gone: HashSet<ResultId> = leaving.iter().map(|result| result.head.id).collect();
    for result in finished.into_iter().filter(|result| !gone.contains(&result.head.id)) {
        if all_fit(of_all) {
            break;
        }
        of_all = of_all.without(result);
        leaving.push(result.clone());
    }
    if all_fit(of_all) { Ok(leaving) } else { Err(Shortage::OfAll) }
}

pub(super) fn has_ended(result: &StoredResult) -> bool {
    result.stage.borrow().end.is_some()
}
