//! Reads a log: the newest checkpoint, then the entries after it.

use std::path::Path;

use super::action::Action;
use super::log_files::{LogListing, entry_path, log_folder, read_actions};
use super::{DeltaError, FileAccess, checkpoint};

/// Calls `apply` with the actions that make up the newest version, in order, and returns its number.
pub(super) fn read_log(
    table: &Path,
    listing: &LogListing,
    open: FileAccess<'_>,
    mut apply: impl FnMut(Action) -> Result<(), DeltaError>,
) -> Result<u64, DeltaError> {
    let newest = listing.newest_version();
    let newest = newest.ok_or_else(|| DeltaError::corrupt(&log_folder(table), "it has no version of a table"))?;
    let next = match listing.newest_checkpoint() {
        Some(checkpoint) => {
            checkpoint::read(table, &checkpoint, open, &mut apply)?;
            checkpoint.version + 1
        }
        None => 0,
    };
    check_entries(table, listing, next, newest)?;
    for version in next..=newest {
        read_actions(&entry_path(table, version), open, &mut apply)?;
    }
    Ok(newest)
}

/// The entries from `next` to `newest` must all exist: what is missing may have removed files.
fn check_entries(table: &Path, listing: &LogListing, next: u64, newest: u64) -> Result<(), DeltaError> {
    let first_missing = (next..=newest).find(|version| listing.entries.binary_search(version).is_err());
    match first_missing {
        Some(missing) => Err(DeltaError::corrupt(
            &entry_path(table, missing),
            "this entry of the log is missing, and there is no checkpoint after it",
        )),
        None => Ok(()),
    }
}
