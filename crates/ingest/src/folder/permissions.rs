//! Folders that other users can open. New ones are private; those of earlier versions, or from a backup, may not be.

use std::fs::File;
use std::path::Path;

use tidegate_core::private_file::is_open_to_others;

use super::TIDEGATE_FOLDER;
use super::options::check_table_name;

/// Folders that are named.
const NAMED_MAX: usize = 5;

/// What other users can open in the folder of tables `root`, in one sentence; `None` if that is nothing. If `root` itself is
/// private, nothing in it can be opened.
pub fn permission_problem(root: &Path) -> Option<String> {
    if !is_open(root) {
        return None;
    }
    let is_ours = |name: &String| name == TIDEGATE_FOLDER || check_table_name(name).is_ok();
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut open: Vec<String> = names.filter(|name| is_ours(name) && is_open(&root.join(name))).collect();
    open.sort();
    let more = open.len().saturating_sub(NAMED_MAX);
    open.truncate(NAMED_MAX);
    let names = open.join(", ");
    let named = match (open.is_empty(), more) {
        (true, _) => return None,
        (false, 0) => names,
        (false, more) => format!("{names} and {more} more"),
    };
    Some(format!(
        "other users can open the folder of the database and, in it, {named}: take their rights away, with \
         chmod -R go= on the folder, and restart the server"
    ))
}

/// Whether others have rights to a folder. What cannot be opened is reported elsewhere.
fn is_open(folder: &Path) -> bool {
    folder.is_dir() && File::open(folder).and_then(|folder| is_open_to_others(&folder)).unwrap_or(false)
}
