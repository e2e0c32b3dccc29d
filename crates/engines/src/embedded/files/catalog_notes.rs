//! Notes of the catalog about files: which were merged into one table, which were not, and which were skipped.

use super::layout::TableCandidate;
use super::skipped_files::SkippedFiles;
use super::table::FileTable;

/// Maximum number of notes of a catalog.
const NOTES_MAX: usize = 20;

/// The note that the files of a folder are one table.
pub(super) fn describe_merged_folder(candidate: &TableCandidate, table: &FileTable) -> String {
    let comment = table.comment.as_deref().unwrap_or_default();
    format!("{} is one table: {comment}", candidate.name)
}

/// The note that the files of a folder are separate tables.
pub(super) fn describe_separate_files(candidate: &TableCandidate, reason: &str) -> String {
    let files = candidate.files.len();
    format!("the {files} files of {} are separate tables: {reason}", candidate.name)
}

/// Adds the lines of `skipped` to `notes`, and limits their number.
pub(super) fn limit_notes(mut notes: Vec<String>, skipped: &SkippedFiles) -> Vec<String> {
    let of_skipped: Vec<String> = skipped.lines().collect();
    let room = NOTES_MAX.saturating_sub(of_skipped.len() + 1);
    if notes.len() > room + 1 {
        let more = notes.len() - room;
        notes.truncate(room);
        notes.push(format!("and {more} more folders"));
    }
    notes.extend(of_skipped);
    notes
}
