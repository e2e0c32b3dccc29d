//! Journal files against the answers of `journalctl`:
//! - `fixtures`: committed files of each form; their README says how they were made;
//! - `writer`: files that grow and are rotated while they are read, written by `systemd-journal-remote` if it is installed;
//! - `corruption`: files with wrong bytes.
//!
//! Entries are compared as JSON (`json`).

mod corruption;
mod fixtures;
mod json;
mod writer;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tidegate_log_formats::journal::{CheckedFiles, Journal, JournalQuery, ReadEntry};

use json::write_json;

/// The bytes of a fixture, which are unpacked once, because that is slow in a debug build.
pub(crate) fn unpack(name: &str) -> Arc<Vec<u8>> {
    static UNPACKED: Mutex<BTreeMap<String, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let mut unpacked = UNPACKED.lock().unwrap();
    let bytes = unpacked.entry(name.to_owned()).or_insert_with(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/journal/data").join(format!("{name}.gz"));
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        bytes.into()
    });
    bytes.clone()
}

/// The fixture `name` as a file in `folder`.
pub(crate) fn unpack_journal(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(format!("{name}.journal"));
    std::fs::write(&path, &*unpack(&format!("{name}.journal"))).unwrap();
    path
}

/// The entries in the lines of `journalctl -o json`.
pub(crate) fn parse_lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| sorted(serde_json::from_slice(line).unwrap())).collect()
}

/// Fields with several values list them in any order.
fn sorted(mut entry: Value) -> Value {
    for value in entry.as_object_mut().unwrap().values_mut() {
        // A list of numbers is a value that is not printable.
        if let Value::Array(values) = value
            && !values.first().is_some_and(Value::is_number)
        {
            values.sort_by_key(Value::to_string);
        }
    }
    entry
}

pub(crate) fn open(paths: &[PathBuf]) -> Journal {
    Journal::open(paths, &CheckedFiles::default()).unwrap()
}

/// The entries and the defects that `query` finds.
pub(crate) fn read(journal: &Journal, query: JournalQuery) -> (Vec<Value>, Vec<String>) {
    let (mut reader, mut values) = (journal.read(query), Vec::new());
    let (mut entries, mut defects) = (Vec::new(), Vec::new());
    while let Some(read) = reader.next_entry(&mut values).unwrap() {
        match read {
            ReadEntry::Entry { head, seqnum_id, .. } => {
                let mut json = String::new();
                write_json(seqnum_id, &head, &values, &mut json);
                entries.push(sorted(serde_json::from_str(&json).unwrap()));
            }
            ReadEntry::Defect(error) => defects.push(error.to_string()),
        }
    }
    (entries, defects)
}
