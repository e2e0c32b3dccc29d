//! PostgreSQL's log in text, whose lines begin as `2024-03-01 12:00:00.123 CET [1234] user@db LOG:  `.
//!
//! What is between the time and the label depends on `log_line_prefix`. The process ID is a number in brackets or follows
//! `pid=`; the user and the database are `user@db` or follow `user=` and `db=`. Labels have the language of the server. A line with a
//! label such as `DETAIL` belongs to the line before it of the same process.

use super::{EntryText, declare_columns};
use crate::defect::Misfit;
use crate::entry::{EntryFields, Piece, Slot};
use crate::time::{Cursor, TimeResolver};

declare_columns! {
    COLUMNS:
    TIME "log_time" Timestamp Time,
    USER "user_name" Text Field,
    DATABASE "database_name" Text Field,
    PROCESS_ID "process_id" Integer Field,
    LEVEL "error_severity" Text Severity,
    MESSAGE "message" Text Message,
    _ "detail" Text Field,
    _ "hint" Text Field,
    _ "internal_query" Text Field,
    _ "context" Text Field,
    _ "query" Text Field,
    _ "location" Text Field,
    _ "backtrace" Text Field,
}

/// The labels of further lines of an entry, and their columns.
const FURTHER_LABELS: [(&str, usize); 7] =
    [("DETAIL", 6), ("HINT", 7), ("QUERY", 8), ("CONTEXT", 9), ("STATEMENT", 10), ("LOCATION", 11), ("BACKTRACE", 12)];
/// The first bytes of each line.
const TIME_BYTES: usize = "2024-03-01 12:00:00".len();

/// What a line has before its text.
struct LineStart<'a> {
    /// Between the time and the label.
    prefix: &'a str,
    label: &'a str,
    /// Where the text begins.
    text: usize,
}

impl<'a> LineStart<'a> {
    fn find(line: &'a str) -> Option<Self> {
        if !begins_with_time(line.as_bytes()) {
            return None;
        }
        let after_time = line.get(TIME_BYTES..)?;
        after_time.match_indices(':').find_map(|(colon, _)| {
            let (before, after) = after_time.split_at_checked(colon)?;
            let after = after.get(1..)?;
            let has_blanks = after.starts_with("  ");
            // A query may begin with a line break, and lines come without their last blanks.
            if !has_blanks && !after.trim_ascii_start().is_empty() {
                return None;
            }
            let prefix = before.trim_end_matches(char::is_alphanumeric);
            let label = before.get(prefix.len()..)?;
            let is_label = label.starts_with(char::is_alphabetic) && !label.contains(char::is_lowercase);
            is_label.then_some(Self { prefix, label, text: TIME_BYTES + colon + if has_blanks { 3 } else { 1 } })
        })
    }

    /// The column of the text, if the line belongs to the one before it.
    fn further_column(&self) -> Option<usize> {
        FURTHER_LABELS.iter().find(|(label, _)| *label == self.label).map(|(_, column)| *column)
    }

    /// The parts of the prefix.
    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.prefix.split([' ', ',', ':', ';', '|'])
    }

    fn process_id(&self) -> Option<i64> {
        self.words().find_map(|word| {
            // With the number of the line in its session, as `[1234-1]`.
            let in_brackets = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
            let number = in_brackets.or_else(|| word.strip_prefix("pid="))?;
            number.split('-').next()?.parse().ok()
        })
    }

    fn named(&self, names: [&str; 2]) -> Option<&'a str> {
        let value = |word: &'a str, name: &str| word.strip_prefix(name)?.strip_prefix('=');
        self.words().find_map(|word| names.into_iter().find_map(|name| value(word, name)))
    }

    fn user_and_database(&self) -> (Option<&'a str>, Option<&'a str>) {
        let (user, database) = (self.named(["user", "usr"]), self.named(["db", "database"]));
        let both = self.words().filter(|word| !word.contains('=')).find_map(|word| word.split_once('@'));
        (user.or(both.map(|(user, _)| user)), database.or(both.map(|(_, database)| database)))
    }
}

pub(crate) fn parse(text: EntryText<'_>, times: &mut TimeResolver, fields: &mut EntryFields) -> Result<(), Misfit> {
    let line = text.first_line;
    let mut cursor = Cursor::new(line.as_bytes());
    let time = times.iso_time(&mut cursor);
    let time = time.ok_or(Misfit::expected("a time such as 2024-03-01 12:00:00.123 UTC", 0))?;
    let head = LineStart::find(line);
    let head = head.ok_or(Misfit::expected("a level and two blanks, such as LOG:", cursor.position()))?;
    fields.set(TIME, Slot::Timestamp(time));
    let process_id = head.process_id();
    fields.set(PROCESS_ID, process_id.map_or(Slot::Null, Slot::Integer));
    let (user, database) = head.user_and_database();
    for (column, value) in [(USER, user), (DATABASE, database), (LEVEL, Some(head.label))] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let value = fields.write_scratch(|scratch| scratch.push_str(value));
            fields.set(column, Slot::Text(value));
        }
    }
    let (mut column, mut start) = (head.further_column().unwrap_or(MESSAGE), head.text);
    let mut line_start = 0;
    for line in text.whole.split_inclusive('\n') {
        let next = Some(line_start).filter(|start| *start > 0).and_then(|_| LineStart::find(line));
        // A line of another process stays in the text.
        let next = next.filter(|next| next.process_id() == process_id);
        if let Some((next, next_column)) = next.and_then(|next| Some((next.text, next.further_column()?)))
            && next_column != column
            && fields.slot(next_column) == Slot::Null
        {
            set_part(text.whole, column, (start, line_start), fields);
            (column, start) = (next_column, line_start + next);
        }
        line_start += line.len();
    }
    set_part(text.whole, column, (start, text.end_of_message()), fields);
    Ok(())
}

/// Sets a column to a part of the text, without the tabs that PostgreSQL writes at the beginning of further lines.
fn set_part(whole: &str, column: usize, (start, end): (usize, usize), fields: &mut EntryFields) {
    let part = whole.get(start..end).unwrap_or_default().trim_end_matches(['\r', '\n']);
    let value = match part.contains("\n\t") {
        false => Piece::of_text(start, start + part.len()),
        true => fields.write_scratch(|scratch| {
            for (index, line) in part.split("\n\t").enumerate() {
                scratch.push_str(if index > 0 { "\n" } else { "" });
                scratch.push_str(line);
            }
        }),
    };
    fields.set(column, if value.is_empty() { Slot::Null } else { Slot::Text(value) });
}

fn begins_with_time(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    cursor.number(4, 4).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take(b'-')
        && cursor.number(2, 2).is_some()
        && cursor.take_any(b" T")
        && cursor.time_of_day().is_some()
}

/// Whether a line begins an entry: with a time, and no label of a further line.
pub(crate) fn begins_entry(line: &[u8]) -> bool {
    let is_further = |line: &str| LineStart::find(line).is_some_and(|start| start.further_column().is_some());
    begins_with_time(line) && !std::str::from_utf8(line).is_ok_and(is_further)
}

/// Whether a line has a label and a process, which other logs do not have in this form. Lines of syslog have the program, too:
/// `postgres[712]: [3-1]`.
pub(crate) fn is_usual(line: &str) -> bool {
    let is_program = |word: &str| word.ends_with(']') && word.split_once('[').is_some_and(|(name, _)| !name.is_empty());
    LineStart::find(line).is_some_and(|start| start.process_id().is_some() && !start.words().any(is_program))
}
