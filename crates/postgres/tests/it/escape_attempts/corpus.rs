//! Data files of statements: one an entry, entries apart by empty lines, comment lines (`-- …`) before each about it.

use std::fs;
use std::path::Path;

/// One statement of a file.
#[derive(Debug)]
pub(crate) struct CorpusEntry {
    /// Its comment, in one line.
    pub(crate) comment: String,
    pub(crate) sql: String,
}

/// The corpus that the tests of the policy share: `escape_attempts`, `check_harmless_sql` or `schema`.
pub(crate) fn shared_corpus(name: &str) -> String {
    read_file(&format!("../sql/tests/corpus/postgres/{name}.sql"))
}

/// The attempts that one defence layer alone does not stop.
pub(crate) fn expected_limits(sandbox: &str) -> String {
    read_file(&format!("tests/limits/{sandbox}.sql"))
}

fn read_file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A block of comments alone is about the file.
pub(crate) fn parse_entries(text: &str) -> Vec<CorpusEntry> {
    let blocks = text.split("\n\n").map(|block| block.trim_start_matches('\n').trim_end());
    let entry = |block: &str| {
        let lines: Vec<&str> = block.split('\n').collect();
        let comments = lines.iter().take_while(|line| line.starts_with("-- ")).count();
        let comment: Vec<&str> = lines[..comments].iter().map(|line| line[3..].trim()).collect();
        CorpusEntry { comment: comment.join(" "), sql: lines[comments..].join("\n") }
    };
    blocks.map(entry).filter(|entry| !entry.sql.is_empty()).collect()
}
