//! From bytes to entries.

use std::sync::Arc;

use tidegate_log_formats::{
    EndOfInput, EntryBounds, EntryCounts, EntrySchema, FinishedLogFile, LogFileReader, LogFormat,
};

use super::fixture::{context, format, rendered};

const BOUNDS: EntryBounds = EntryBounds { bytes_max: 40, lines_max: 4 };

/// `offset+length text | reason` of each entry, and the end.
fn read_pieces(
    format: LogFormat,
    bounds: EntryBounds,
    pieces: &[&[u8]],
    end: EndOfInput,
) -> (Vec<String>, FinishedLogFile) {
    let mut entries = Vec::new();
    let mut view = |entry: &tidegate_log_formats::ParsedEntry<'_>| {
        let reason = entry.parse_error().map_or_else(String::new, |reason| format!(" | {reason}"));
        entries.push(format!("{}+{} {:?}{reason}", entry.offset(), entry.length(), entry.text()));
    };
    let mut reader = LogFileReader::new(Arc::new(EntrySchema::new(format)), context()).with_bounds(bounds);
    for piece in pieces {
        reader.push(piece, &mut view);
    }
    let end = reader.finish(end, &mut view);
    (entries, end)
}

fn read(format_name: &str, bytes: &[u8]) -> Vec<String> {
    read_pieces(format(format_name), EntryBounds::default(), &[bytes], EndOfInput::Complete).0
}

#[test]
fn line_breaks_byte_order_mark_and_blank_lines() {
    let entries = read("logfmt", b"\xEF\xBB\xBFa=1\r\n\r\na=2\r\n  more\r\n\n\na=3");
    assert_eq!(entries, [r#"0+10 "a=1""#, r#"10+15 "a=2\r\n  more""#, r#"25+3 "a=3""#]);
    assert_eq!(read("logfmt", b"\n\na=1\n"), [r#"0+2 "" | the line is blank"#, r#"2+4 "a=1""#]);
    assert_eq!(read("logfmt", b""), Vec::<String>::new());
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_reported() {
    assert_eq!(
        read("logfmt", b"a=\xFF\xFEx b=\xC3\n\0\0\0a=2\0\n"),
        [r#"0+10 "a=��x b=�" | bytes that are not UTF-8 were replaced"#, r#"10+8 "a=2" | 4 NUL bytes were removed"#,]
    );
    // The entries fit, so that they have their values.
    let (_, end) = read_pieces(format("logfmt"), EntryBounds::default(), &[b"a=\xFF\nx\n"], EndOfInput::Complete);
    assert_eq!(end.counts, EntryCounts { entries: 1, misfits: 0, repaired: 1 });
}

#[test]
fn a_long_line_is_cut() {
    let line = format!("a={}\n", "ö".repeat(30));
    let text = format!("{line}b=1\n{line}");
    let (entries, end) = read_pieces(format("logfmt"), BOUNDS, &[text.as_bytes()], EndOfInput::Complete);
    let cut = format!("{:?} | the line is too long, its last 22 bytes were cut", format!("a={}", "ö".repeat(19)));
    assert_eq!(entries, [format!("0+63 {cut}"), r#"63+4 "b=1""#.to_owned(), format!("67+63 {cut}")]);
    assert_eq!(end.counts, EntryCounts { entries: 3, misfits: 0, repaired: 2 });
}

#[test]
fn entries_are_bounded_in_lines_and_bytes() {
    let lines = format!("a=1\n{}b=2\n", " x\n".repeat(9));
    let (entries, end) = read_pieces(format("logfmt"), BOUNDS, &[lines.as_bytes()], EndOfInput::Complete);
    let overflow = "continues the entry before it, which has as many lines or bytes as an entry may have";
    assert_eq!(
        entries,
        [
            r#"0+13 "a=1\n x\n x\n x""#.to_owned(),
            format!(r#"13+12 " x\n x\n x\n x" | {overflow}"#),
            format!(r#"25+6 " x\n x" | {overflow}"#),
            r#"31+4 "b=2""#.to_owned(),
        ]
    );
    assert_eq!(end.counts.misfits, 2);
    let lines = format!("a=1\n  {}\n  {0}\n", "x".repeat(25));
    let (entries, _) = read_pieces(format("logfmt"), BOUNDS, &[lines.as_bytes()], EndOfInput::Complete);
    assert_eq!(entries.len(), 2);
}

#[test]
fn a_growing_file_keeps_its_incomplete_line() {
    let text = b"a=1\n at x\na=2 b";
    let (entries, end) = read_pieces(format("logfmt"), EntryBounds::default(), &[text], EndOfInput::Growing);
    assert_eq!((entries, end.resume_offset), (vec![r#"0+10 "a=1\n at x""#.to_owned()], 10));

    let mut later = Vec::new();
    let mut reader = LogFileReader::new(Arc::new(EntrySchema::new(format("logfmt"))), context()).with_offset(10);
    reader.push(b"a=2 b=3\n", |entry| later.push((entry.offset(), rendered(entry))));
    let end = reader.finish(EndOfInput::Growing, |entry| later.push((entry.offset(), rendered(entry))));
    assert_eq!(later, [(10, r#"other_fields="{\"a\":2,\"b\":3}""#.to_owned())]);
    assert_eq!(end.resume_offset, 18);
}

#[test]
fn an_entry_is_given_when_the_next_one_begins() {
    let mut count = 0;
    let mut reader = LogFileReader::new(Arc::new(EntrySchema::new(format("logfmt"))), context());
    reader.push(b"a=1\n", |_| count += 1);
    assert_eq!(count, 0);
    reader.push(b"a=2\n", |_| count += 1);
    assert_eq!(count, 1);
    assert_eq!(reader.counts().entries, 1);
}

#[test]
fn values_are_those_of_generated_columns() {
    let schema = Arc::new(EntrySchema::new(format("syslog")));
    let mut values = Vec::new();
    let mut reader = LogFileReader::new(schema.clone(), context());
    reader.push(b"<11>Mar  1 12:00:00 h a: m\nMar  1 12:00:00\xFF\n", |_| {});
    reader.finish(EndOfInput::Complete, |entry| {
        let names = ["entry_text", "parse_error", "entry_offset", "normalized_severity", "normalized_severity_number"];
        let indexes = names.map(|name| schema.column_index(name).expect("a column"));
        values.push(format!("{:?}", indexes.map(|index| entry.value(index))));
    });
    assert_eq!(
        values,
        [
            r#"[Text("Mar  1 12:00:00�"), Text("expected a blank after the time at byte 16; bytes that are not UTF-8 were replaced"), Integer(27), Null, Null]"#
        ]
    );
}
