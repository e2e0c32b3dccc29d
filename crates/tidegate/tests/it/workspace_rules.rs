//! Rules of the workspace, checked by a machine because written rules drift.
//!
//! - `comments`: words that no comment contains.
//! - `dependencies`: which crate may know which, and which third-party library stays where.
//! - `documents`: the pages for developers name files, types and functions that exist.
//! - `features`: every selection of crates builds the large libraries with the same features.
//! - `formats`: texts that list the formats of answers name each one.
//! - `names`: words that no name contains, and type names that one crate owns.
//! - `sizes`: how long files and functions may be.
//! - `standard_streams`: where standard output and standard error are opened.

mod comments;
mod dependencies;
mod documents;
mod features;
mod formats;
mod names;
mod sizes;
mod sources;
mod standard_streams;

use std::path::PathBuf;

/// The workspace's folder.
fn workspace() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies in crates/tidegate").to_owned()
}
