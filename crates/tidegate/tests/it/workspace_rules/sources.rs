//! The Rust sources of the workspace, parsed.

use std::path::Path;

use super::workspace;

/// One file below `crates`, `bench` or `fuzz`.
pub(super) struct Source {
    /// The path within the workspace.
    pub(super) name: String,
    pub(super) file: syn::File,
}

pub(super) fn rust_files() -> Vec<Source> {
    let texts = rust_texts().into_iter();
    let parsed = texts.map(|(name, text)| {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Source { name, file }
    });
    parsed.collect()
}

/// The paths and the texts of the sources.
pub(super) fn rust_texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for folder in ["crates", "bench", "fuzz"] {
        collect(&workspace().join(folder), &mut texts);
    }
    assert!(texts.len() > 1000, "only {} source files were found", texts.len());
    texts
}

fn collect(folder: &Path, texts: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("the source is readable");
            let name = path.strip_prefix(workspace()).expect("a path within the workspace").display().to_string();
            texts.push((name, text));
        }
    }
}
