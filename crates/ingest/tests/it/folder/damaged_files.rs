//! Folders after a crash, and damaged files in them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The bytes of the header of a segment, and of that of a record.
pub(super) const SEGMENT_HEADER_BYTES: usize = 32;
pub(super) const RECORD_HEADER_BYTES: usize = 24;

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The folder as a crash leaves it: what only the log has stays there.
pub(super) fn crashed(folder: &Path) -> TempDir {
    // Other users cannot open it, as the folder of a server.
    let copy = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
    copy_folder(folder, copy.path());
    copy
}

/// The only segment of a log.
pub(super) fn segment(folder: &Path, log: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join(".tidegate").join(log)).unwrap().map(|entry| entry.unwrap().path());
    let segments: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    let [segment] = segments.as_slice() else { panic!("{segments:?}") };
    segment.clone()
}

/// Where the records of a segment begin and end. Between them are marks, which look like records without a payload.
pub(super) fn records(segment: &Path) -> Vec<std::ops::Range<usize>> {
    let content = fs::read(segment).unwrap();
    let mut records = Vec::new();
    let mut start = SEGMENT_HEADER_BYTES;
    while let Some(length) = content.get(start + 8..start + 12) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        if length > 0 {
            records.push(start..start + RECORD_HEADER_BYTES + length);
        }
        start += RECORD_HEADER_BYTES + length;
    }
    assert_eq!(start, content.len());
    records
}

pub(super) fn change(file: &Path, position: usize) {
    let mut content = fs::read(file).unwrap();
    content[position] ^= 0x10;
    fs::write(file, content).unwrap();
}

/// Adds a version to a Delta table, as another program does. Without its file, the table is as before.
pub(super) fn add_version(folder: &Path, table: &str, action: &Value) -> PathBuf {
    let delta_log = folder.join(table).join("_delta_log");
    let entries = fs::read_dir(&delta_log).unwrap().map(|entry| entry.unwrap().path());
    let versions = entries.filter_map(|path| path.file_stem()?.to_str()?.parse::<u64>().ok());
    let foreign = delta_log.join(format!("{:020}.json", versions.max().unwrap() + 1));
    fs::write(&foreign, action.to_string()).unwrap();
    foreign
}

/// Adds a version that has a feature which is not supported.
pub(super) fn make_unsupported(folder: &Path, table: &str) -> PathBuf {
    let features = ["deletionVectors"];
    let protocol = json!({
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
    });
    add_version(folder, table, &json!({"protocol": protocol}))
}

/// Adds a version that has a rule for writers which is not supported. Readers need not know it.
pub(super) fn make_unwritable(folder: &Path, table: &str) -> PathBuf {
    let protocol = json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["changeDataFeed"]});
    add_version(folder, table, &json!({"protocol": protocol}))
}
