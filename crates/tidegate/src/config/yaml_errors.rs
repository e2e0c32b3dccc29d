//! Errors of the YAML parser, at the line that causes them, with what would be right.
//!
//! The parser reports where it cannot go on: for a tab, the end of the line before; for a line without a colon, the line
//! after it. For wrong indentation, it names the token that it expects, which does not help an author.

/// The number of lines above that are named as right places.
const PLACES_MAX: usize = 3;

/// An error of the parser: line and column from 1, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

impl YamlError {
    /// The error that the parser describes as `info`, at `line` and `column` of `text`, both from 1.
    pub(super) fn new(text: &str, line: usize, column: usize, info: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let found = find_cause(&lines, line.saturating_sub(1), column, info);
        let (line, column, message) = found.unwrap_or_else(|| (line, column, info.to_owned()));
        Self { line, column, message: format!("is no YAML: {message}") }
    }
}

/// Line and column of the cause, and what would be right; `None` if the parser is right about both. `at` is the index of
/// the line that it reports.
fn find_cause(lines: &[&str], at: usize, column: usize, info: &str) -> Option<(usize, usize, String)> {
    if info.contains("tab") {
        let is_tabbed = |line: &&str| indentation_text(line).contains('\t');
        let index = at + lines.get(at..)?.iter().position(is_tabbed)?;
        let column = indentation_text(lines.get(index)?).find('\t')? + 1;
        return Some((index + 1, column, "a tab indents the line; indent with spaces".to_owned()));
    }
    let line = lines.get(at)?;
    let indentation = indentation_text(line).len();
    let before = lines.get(..at)?.iter().rposition(|line| is_content(line));
    let is_no_key = info.contains("expect ':'") && column == indentation + 1;
    let is_value = info.contains("mapping values");
    if let Some(before) = before.filter(|_| is_no_key || is_value) {
        let text = lines.get(before)?;
        let is_neighbour = indentation_text(text).len() == indentation && key_of(text.trim()).is_none();
        let advice = missing_space(text).or_else(|| (is_no_key || is_neighbour).then(|| NO_COLON.to_owned()));
        if let Some(advice) = advice {
            return Some((before + 1, indentation_text(text).len() + 1, advice));
        }
    }
    // Between brackets and in quotes, indentation has no meaning.
    let above = lines.get(..at).filter(|_| is_value || info.contains("block"))?;
    match indentation_advice(above, line) {
        Some(advice) => Some((at + 1, indentation + 1, advice)),
        None => is_value.then(|| (at + 1, column, "a value with a colon and a space needs quotes".to_owned())),
    }
}

const NO_COLON: &str =
    "the line has no colon; write key: value, or indent it more than the key whose text it continues";

/// The spaces and tabs at the start of a line.
fn indentation_text(line: &str) -> &str {
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default()
}

/// Whether a line has more than a comment.
fn is_content(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with('#')
}

/// The advice for a line such as `-name: x` or `name:x`, which is a text and no item or key.
fn missing_space(line: &str) -> Option<String> {
    let content = line.trim().trim_start_matches("- ");
    if content.starts_with('-') && content != "-" && !content.starts_with("--") && key_of(content).is_some() {
        return Some("a space is missing after the -".to_owned());
    }
    let (key, value) = content.split_once(':')?;
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let is_text = value.is_empty() || value.starts_with("//") || content.contains(": ");
    (is_word && !is_text).then(|| format!("a space is missing after {key}:"))
}

/// The key of a line without its indentation.
fn key_of(content: &str) -> Option<&str> {
    let key = content.split_once(": ").map(|(key, _)| key).or_else(|| content.trim_end().strip_suffix(':'))?;
    Some(key.trim_matches(['"', '\'']))
}

/// A place for a line: its indentation, and the line above that has it.
struct Place<'a> {
    indentation: usize,
    name: &'a str,
    is_item: bool,
}

/// What is wrong with the indentation of `line`, below `above`; `None` if it fits a line above it.
fn indentation_advice(above: &[&str], line: &str) -> Option<String> {
    let own = indentation_text(line).len();
    if let Some(first) = first_line_of_text(above, own) {
        return Some(format!(
            "the line is indented by {own} spaces, and the first line of its text by {first}; indent each line of a \
             text by at least as many"
        ));
    }
    let is_item = line.trim_start().starts_with("- ");
    let mut places = places(above);
    places.retain(|place| place.is_item == is_item);
    let before = above.iter().rev().find(|line| is_content(line))?;
    let is_in_block = before.trim_end().ends_with(':') && own > indentation_text(before).len();
    if places.is_empty() || is_in_block || places.iter().any(|place| place.indentation == own) {
        return None;
    }
    let named = places.iter().take(PLACES_MAX).map(|Place { indentation, name, is_item }| {
        format!("{indentation} as for {}{name}", if *is_item { "- " } else { "" })
    });
    let named: Vec<String> = named.collect();
    let spaces = if own == 1 { "space" } else { "spaces" };
    Some(format!("the line is indented by {own} {spaces}, which fits no line above it; write {}", named.join(", or ")))
}

/// The indentation of the first line of the text (`key: |`) that a line continues with fewer spaces, `own`.
fn first_line_of_text(above: &[&str], own: usize) -> Option<usize> {
    let header = above.iter().rposition(|line| is_content(line) && indentation_text(line).len() < own)?;
    let key = above.get(header)?.trim_end().trim_end_matches(['-', '+']);
    let is_text = key.ends_with(" |") || key.ends_with(" >");
    let first = above.get(header + 1..)?.iter().find(|line| !line.trim().is_empty())?;
    Some(indentation_text(first).len()).filter(|first| is_text && *first > own)
}

/// The lines that a line below `above` may be a neighbour of, the nearest first.
fn places<'a>(above: &[&'a str]) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    let mut outer = usize::MAX;
    for line in above.iter().rev().filter(|line| is_content(line)) {
        let indentation = indentation_text(line).len();
        let content = line.trim();
        let item = content.strip_prefix("- ").map(str::trim_start);
        let name = key_of(item.unwrap_or(content));
        let of_key = indentation + content.len() - item.unwrap_or(content).len();
        if let Some(name) = name.filter(|_| of_key < outer) {
            places.push(Place { indentation: of_key, name, is_item: false });
        }
        // The text of an item without a key may be a secret.
        if item.is_some() && indentation < outer {
            places.push(Place { indentation, name: name.unwrap_or("…"), is_item: true });
        }
        outer = outer.min(indentation);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str, line: usize, column: usize, info: &str) -> String {
        let YamlError { line, column, message } = YamlError::new(text, line, column, info);
        format!("{line}:{column} {message}")
    }

    #[test]
    fn the_cause_of_an_error_is_found() {
        let tabbed = error("a: b\n\tc: d\n", 1, 5, "while scanning a plain scalar, found a tab");
        assert_eq!(tabbed, "2:1 is no YAML: a tab indents the line; indent with spaces");
        let word = error("a:\n  b\n  c: 1\n", 3, 3, "simple key expect ':'");
        assert!(word.starts_with("2:3 is no YAML: the line has no colon"), "{word}");
        let space = error("a:\n  - b:c\n    d: 1\n", 3, 6, "mapping values are not allowed in this context");
        assert_eq!(space, "2:3 is no YAML: a space is missing after b:");
        let dash = error("a:\n  -b: c\n   d: 1\n", 3, 5, "mapping values are not allowed in this context");
        assert_eq!(dash, "2:3 is no YAML: a space is missing after the -");
        let quotes = error("a:\n  b: c: d\n", 2, 7, "mapping values are not allowed in this context");
        assert_eq!(quotes, "2:7 is no YAML: a value with a colon and a space needs quotes");
        assert_eq!(error("a: [\n", 2, 1, "unexpected end"), "2:1 is no YAML: unexpected end");
    }

    #[test]
    fn the_places_of_a_line_are_named() {
        let advice = |above: &str, line: &str| indentation_advice(&above.lines().collect::<Vec<_>>(), line);
        let list = "databases:\n  - name: shop\n    files: shop\n";
        let keys = "which fits no line above it; write 4 as for files, or 0 as for databases";
        assert_eq!(advice(list, "   tables: {}"), Some(format!("the line is indented by 3 spaces, {keys}")));
        assert_eq!(advice(list, "  tables: {}"), Some(format!("the line is indented by 2 spaces, {keys}")));
        let items = "the line is indented by 1 space, which fits no line above it; write 2 as for - name";
        assert_eq!(advice(list, " - name: b").as_deref(), Some(items));
        assert_eq!(advice(list, "    tables: {}"), None);
        let secret = "write 2 as for - …";
        assert!(advice("a:\n  - s3cret\n", " - b").is_some_and(|advice| advice.ends_with(secret)));
        assert_eq!(advice("a:\n", "     b: 1"), None);
        let text = advice("a:\n  sql: |\n      SELECT 1\n", "    FROM t").unwrap_or_default();
        assert!(text.contains("the first line of its text by 6"), "{text}");
    }
}
