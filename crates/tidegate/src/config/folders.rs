//! The folders whose files callers may read.

use tidegate_tools::SharedFolder;

use super::LoadedConfig;
use super::problems::Problems;
use super::telemetry_sources::check_names;

/// Builds them, and checks that they exist.
pub(super) fn build_folders(loaded: &LoadedConfig, problems: &Problems) -> Vec<SharedFolder> {
    let entries = &loaded.config.folders;
    check_names("folders", "folder", entries.iter().map(|entry| entry.name.as_str()), problems);
    let mut folders = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let path = loaded.resolve(&entry.path);
        if !path.is_dir() {
            let message = format!("no such file or folder: {}; name a folder", entry.path.display());
            problems.add(format_args!("folders[{index}].path"), message);
        }
        folders.push(SharedFolder { name: entry.name.clone(), path, access: entry.access.clone() });
    }
    folders
}
