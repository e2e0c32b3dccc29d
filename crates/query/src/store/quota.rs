//! Which results go when there is no room for more: the oldest that are finished, first those of whoever needs the room.

use std::collections::HashMap;
use std::sync::Arc;

use super::id::ResultId;
use super::limits::StoreLimits;
use super::owner::Owner;
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

/// Those that have to go so that `owner` can write `bytes` more.
///
/// # Errors
/// When not even that would help.
pub(super) fn leaving(
    results: &HashMap<ResultId, Arc<StoredResult>>,
    limits: &StoreLimits,
    owner: &Owner,
    bytes: u64,
) -> Result<Vec<ResultId>, Shortage> {
    let mut finished: Vec<&Arc<StoredResult>> = results.values().filter(|result| has_ended(result)).collect();
    finished.sort_by_key(|result| (result.head.created_at_ms, result.head.id));
    let size = |result: &StoredResult| result.stage.borrow().bytes();
    let mut of_all: u64 = results.values().map(|result| size(result)).sum::<u64>() + bytes;
    let mut of_one: u64 = bytes + results.values().filter(|it| it.head.owner == *owner).map(|it| size(it)).sum::<u64>();
    let mut leaving = Vec::new();
    for result in finished.iter().filter(|result| result.head.owner == *owner) {
        if of_one <= limits.bytes_of_one {
            break;
        }
        of_one -= size(result);
        of_all -= size(result);
        leaving.push(result.head.id);
    }
    if of_one > limits.bytes_of_one {
        return Err(Shortage::OfOne);
    }
    for result in finished {
        if of_all <= limits.total_bytes && results.len() - leaving.len() <= limits.results {
            break;
        }
        if !leaving.contains(&result.head.id) {
            of_all -= size(result);
            leaving.push(result.head.id);
        }
    }
    let fits = of_all <= limits.total_bytes && results.len() - leaving.len() <= limits.results;
    if fits { Ok(leaving) } else { Err(Shortage::OfAll) }
}

pub(super) fn has_ended(result: &StoredResult) -> bool {
    result.stage.borrow().end.is_some()
}
