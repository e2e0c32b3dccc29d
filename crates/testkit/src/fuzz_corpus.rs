//! The stored corpus of a fuzz target, for the tests of the crate that it fuzzes.

use std::path::Path;

/// The contents of all files of the corpus of `target`.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let entries: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(entries.len() >= 10, "{} holds {} files only", folder.display(), entries.len());
    entries
}
