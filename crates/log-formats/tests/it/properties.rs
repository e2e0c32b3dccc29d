//! Pieces of any size give the same entries, which cover every byte, and no input panics.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_log_formats::{
    EndOfInput, EntryBounds, EntrySchema, EntryTimeFormat, EntryValue, LinePattern, LogFileReader, LogFormat,
    LogTimeZone, ParsedEntry, detect_log_format, group_rotated_logs, suggest_log_format,
};

use super::fixture::{context, format, rendered, schema_of};

fn format_of(name: &str) -> LogFormat {
    if name == "pattern" {
        let pattern =
            r"^(?<level>[A-Z]) (?<n__int>\d*)(?<at__time>[0-9T:Z -]*)(?<date>\d*)(?<time>[^ ]*)(?<message>.*)";
        return LogFormat::Pattern(Arc::new(LinePattern::new(pattern, &[]).expect("a pattern")));
    }
    format(name)
}

/// Parts of lines, from which files are made that come near to the formats.
const PARTS: [&str; 49] = [
    "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326",
    " \"-\" \"agent\"",
    "www:80 ",
    "10.0.0.7, ",
    "2024/03/01 12:00:00 [error] 1#2: *3 text",
    ", client: 192.0.2.7, server: x",
    ", request: \"GET / HTTP/1.1\"",
    "[Fri Mar 01 10:42:29.902022 2024] [core:error] [pid 1:tid 2] (13)No: [client 192.0.2.7:1] AH1: text, referer: x",
    "10.0.1.2:33317 [06/Feb/2009:12:14:14.655] in b/s 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {a} \"GET / H\"",
    "10.0.1.2:33317 [06/Feb/2009:12:14:14.655] in b/s 10/0/30 200 -- 1/1/1/1/0 0/0",
    "2016-10-06T00:17:09.669794202Z stdout P ",
    "2016-10-06T00:17:09.669794202Z stdout F ",
    "2016-10-06T00:17:09.669794202Z stderr F ",
    "I0102 15:04:05.678901    1234 file.go:123] text",
    "Mar  1 12:00:00 host app[12]: text",
    "Feb 29 12:00:00 ",
    "<34>1 2003-10-11T22:14:15.003Z h a p m [id a=\"b\"] text",
    "<34>",
    "[id x=\"\\]\"]",
    "key=value ",
    "ts=1709294400 ",
    "q=\"a\\\"b\" ",
    "{\"a\":1,\"b\":{\"c\":[1,{\"d\":null}]}}",
    "{\"time\":\"2024-03-01T12:00:00Z\",",
    "\"level\":\"info\"}",
    "\\ud83d",
    "\"x\":1e9}",
    "2024-03-01 12:00:00.123 CET,\"u\",\"d\",7,",
    "2024-03-01 12:00:00.123 CET [7] u@d LOG:  text",
    "2024-03-01 12:00:00.123 CET [7] u@d STATEMENT:  ",
    ",,,,,,,,,,,,,,,,,,,,,,",
    "\"\"",
    "\"",
    "\\",
    "E 12",
    "W 2024-03-01T12:00:00Z x",
    " at com.example.Main",
    "Caused by: x",
    "Traceback (most recent call last):",
    "ValueError",
    "\n",
    "\n",
    "\r\n",
    "\n\n",
    "\0",
    "ö😀",
    "-",
    " ",
    "999999999999999999999999",
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => proptest::sample::select(&PARTS[..]).prop_map(|part| part.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn read(format: &LogFormat, bytes: &[u8], piece_bytes: &[usize], bounds: EntryBounds) -> Vec<(u64, u64, bool, String)> {
    let schema = Arc::new(schema_of(format.clone(), bytes));
    let mut entries = Vec::new();
    let mut view = |entry: &ParsedEntry<'_>| {
        check_types(entry);
        entries.push((entry.offset(), entry.length(), entry.fits(), format!("{:?} {}", entry.text(), rendered(entry))));
    };
    let mut reader = LogFileReader::new(schema, context()).with_bounds(bounds);
    let mut rest = bytes;
    let mut sizes = piece_bytes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (piece, after) = rest.split_at(size);
        reader.push(piece, &mut view);
        rest = after;
    }
    let counts = reader.finish(EndOfInput::Complete, &mut view).counts;
    assert_eq!(counts.entries, entries.len() as u64);
    assert_eq!(counts.misfits, entries.iter().filter(|(_, _, fits, _)| !fits).count() as u64);
    entries
}

fn check_types(entry: &ParsedEntry<'_>) {
    for (index, column) in entry.schema().columns().iter().enumerate() {
        let type_name = match entry.value(index) {
            EntryValue::Null => continue,
            EntryValue::Text(_) => "text",
            EntryValue::Integer(_) => "integer",
            EntryValue::Float(_) => "float",
            EntryValue::Timestamp(_) => "time",
            EntryValue::Boolean(_) => "boolean",
        };
        assert_eq!(type_name, column.column_type.name(), "{}", column.name);
    }
    assert_eq!(entry.value(entry.schema().columns().len()), EntryValue::Null);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_of_any_size_give_the_same_entries(
        bytes in bytes(),
        sizes in proptest::collection::vec(1_usize..60, 1..8),
        bytes_max in 1_usize..200,
        lines_max in 1_usize..6,
    ) {
        for name in LogFormat::names() {
            for bounds in [EntryBounds::default(), EntryBounds { bytes_max, lines_max }] {
                let format = format_of(name);
                let whole = read(&format, &bytes, &[], bounds);
                prop_assert_eq!(&whole, &read(&format, &bytes, &sizes, bounds), "{}", name);
                prop_assert_eq!(&whole, &read(&format, &bytes, &[1], bounds), "{}", name);
                let mut next = 0;
                for (offset, length, _, _) in &whole {
                    prop_assert_eq!(*offset, next, "{}", name);
                    next += length;
                }
                prop_assert_eq!(next, bytes.len() as u64, "{}", name);
            }
        }
    }

    #[test]
    fn a_growing_file_that_is_resumed_covers_every_byte(bytes in bytes(), cut in 0_usize..400) {
        let cut = cut.min(bytes.len());
        for name in LogFormat::names() {
            let schema = Arc::new(EntrySchema::new(format_of(name)));
            let mut spans = Vec::new();
            let mut reader = LogFileReader::new(schema.clone(), context());
            reader.push(&bytes[..cut], |entry| spans.push((entry.offset(), entry.length())));
            let end = reader.finish(EndOfInput::Growing, |entry| spans.push((entry.offset(), entry.length())));
            let mut reader = LogFileReader::new(schema, context()).with_offset(end.resume_offset);
            let start = usize::try_from(end.resume_offset).expect("an index");
            prop_assert!(start <= cut && (start == 0 || bytes[start - 1] == b'\n'));
            reader.push(&bytes[start..], |entry| spans.push((entry.offset(), entry.length())));
            reader.finish(EndOfInput::Complete, |entry| spans.push((entry.offset(), entry.length())));
            let mut next = 0;
            for (offset, length) in spans {
                prop_assert_eq!(offset, next, "{}", name);
                next += length;
            }
            prop_assert_eq!(next, bytes.len() as u64, "{}", name);
        }
    }

    #[test]
    fn nothing_panics(bytes in bytes(), text in ".{0,40}", digits in "[0-9TZ:,. +-]{0,30}") {
        let _ = detect_log_format(&bytes, &text);
        let _ = suggest_log_format(&bytes, &context());
        let _ = LogTimeZone::from_name(&text);
        let _ = EntryTimeFormat::parse(&text);
        let _ = LinePattern::new(&text, &[]);
        let _ = LogFormat::from_name(&text);
        let names = [text.as_str(), digits.as_str(), "app.log"];
        let files: usize = group_rotated_logs(names).iter().map(|log| log.files.len() + log.duplicates.len()).sum();
        prop_assert_eq!(files, names.len());
        let line = format!("{{\"time\":\"{digits}\",\"n\":{digits}}}\n{digits} {text}\n<1>{digits} a: b\n");
        for name in LogFormat::names() {
            read(&format_of(name), line.as_bytes(), &[], EntryBounds::default());
        }
    }
}
