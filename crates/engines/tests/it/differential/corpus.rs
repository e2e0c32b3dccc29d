//! The statements of `tests/differential/corpus`, one area a file.

use std::fs;
use std::path::PathBuf;

/// A statement of the corpus.
#[derive(Debug, Clone)]
pub(crate) struct CorpusStatement {
    pub(crate) area: String,
    /// The line that it begins on.
    pub(crate) line: usize,
    pub(crate) sql: String,
    /// Why the engine refuses it, where it is expected to.
    pub(crate) refused: Option<String>,
}

/// The folder of the differential test's data.
pub(crate) fn folder() -> PathBuf {
    super::workspace().join("tests/differential")
}

/// The statements of all files in `name` below the folder whose area or text contains `filter`.
pub(crate) fn statements(name: &str, filter: Option<&str>) -> Vec<CorpusStatement> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let area = path.file_stem().unwrap().to_string_lossy().into_owned();
        found.extend(parse(&area, &fs::read_to_string(&path).unwrap()));
    }
    if let Some(filter) = filter {
        let fits = |statement: &CorpusStatement| statement.area == filter || statement.sql.contains(filter);
        found.retain(fits);
    }
    found
}

/// The statements of a file: each ends with a semicolon at the end of a line.
pub(crate) fn parse(area: &str, text: &str) -> Vec<CorpusStatement> {
    let mut statements = Vec::new();
    let (mut sql, mut first_line, mut refused) = (String::new(), 0, None);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if sql.is_empty() && (trimmed.is_empty() || trimmed.starts_with("--")) {
            if let Some(reason) = trimmed.strip_prefix("-- refused:") {
                refused = Some(reason.trim().to_owned());
            }
            continue;
        }
        if sql.is_empty() {
            first_line = index + 1;
        } else {
            sql.push('\n');
        }
        sql.push_str(line);
        if trimmed.ends_with(';') {
            let sql = std::mem::take(&mut sql).trim().trim_end_matches(';').to_owned();
            statements.push(CorpusStatement { area: area.to_owned(), line: first_line, sql, refused: refused.take() });
        }
    }
    assert!(sql.trim().is_empty(), "{area}: the last statement has no semicolon: {sql}");
    statements
}

/// Whether the outermost query of `sql` has ORDER BY, so that the sequence of the rows means something.
pub(crate) fn is_ordered(sql: &str) -> bool {
    let (mut depth, mut words, mut quote) = (0, String::new(), None);
    for character in sql.chars() {
        match (quote, character) {
            (Some(end), character) if character == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => {
                depth -= 1;
                words.push(' ');
            }
            (None, character) if depth == 0 => words.push(character.to_ascii_lowercase()),
            (None, _) => {}
        }
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    words.windows(2).any(|pair| pair == ["order", "by"])
}

#[test]
fn statements_are_read_from_text() {
    let text = "-- A comment.\n\nSELECT 1;\n-- refused: no such type\nSELECT ';'\n  , 2;\nSELECT 3;\n";
    let statements = parse("x", text);
    let visible: Vec<_> = statements.iter().map(|s| (s.line, s.sql.as_str(), s.refused.as_deref())).collect();
    assert_eq!(visible, [(3, "SELECT 1", None), (5, "SELECT ';'\n  , 2", Some("no such type")), (7, "SELECT 3", None)]);
    assert!(is_ordered("SELECT a FROM (SELECT 1 AS a) t ORDER\nBY a"));
    assert!(!is_ordered("SELECT array_agg(a ORDER BY a), 'order by' FROM (SELECT 1 AS a ORDER BY 1) t"));
}
