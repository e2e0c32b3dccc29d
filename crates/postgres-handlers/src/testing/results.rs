//! Parses results in the rows of a statement, in the format of the [Test Anything Protocol](https://testanything.org).

use super::TestResult;

/// The maximum length of a name or a note, in characters.
const CHARACTERS_MAX: usize = 10_000;
/// The maximum number of notes of one result.
const NOTES_MAX: usize = 100;

/// A line that is a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedResult {
    pub(super) number: u64,
    pub(super) result: TestResult,
}

/// The results in a value of the statement in `line`. Lines after a result that begin with `#` are its notes.
pub(super) fn parse_value(value: &str, line: usize) -> Vec<NumberedResult> {
    let mut found: Vec<NumberedResult> = Vec::new();
    for text in value.lines() {
        if let Some(numbered) = parse_line(text, line) {
            found.push(numbered);
        } else if let (Some(note), Some(last)) = (text.strip_prefix('#'), found.last_mut())
            && last.result.notes.len() < NOTES_MAX
        {
            last.result.notes.push(truncate_text(note.trim()));
        }
    }
    found
}

/// Parses `ok 1 - name` or `not ok 1 - name`. Text without a number may be ordinary data.
fn parse_line(text: &str, line: usize) -> Option<NumberedResult> {
    let (is_ok, rest) = match text.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok ")?),
    };
    let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
    let number = number.parse().ok()?;
    let name = name.strip_prefix("- ").unwrap_or(name);
    Some(NumberedResult {
        number,
        result: TestResult { line: Some(line), name: truncate_text(name), is_ok, notes: Vec::new() },
    })
}

fn truncate_text(text: &str) -> String {
    text.chars().take(CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_their_notes() {
        let numbered_results = parse_value("ok 1 - first\nnot ok 2 - second\n#   got    1\n#   wanted 2\nok 3", 7);
        let read: Vec<(u64, bool, &str, String)> = numbered_results
            .iter()
            .map(|one| (one.number, one.result.is_ok, one.result.name.as_str(), one.result.notes.join("|")))
            .collect();
        assert_eq!(
            read,
            [
                (1, true, "first", String::new()),
                (2, false, "second", "got    1|wanted 2".to_owned()),
                (3, true, "", String::new())
            ]
        );
        assert!(numbered_results.iter().all(|one| one.result.line == Some(7)));
    }

    #[test]
    fn other_text_is_no_result() {
        for text in ["", "ok", "okay 1 - x", "ok - x", "not ok", "1..3", "# 1 of 3 failed", "{\"ok 1\": 1}"] {
            assert_eq!(parse_value(text, 1), [], "{text}");
        }
    }
}
