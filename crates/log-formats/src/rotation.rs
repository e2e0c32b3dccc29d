//! Rotated files: which files of a folder are one log, from the oldest to the newest, and the identity of a file.
//!
//! The identity stays the same when the file is renamed, compressed or grows. Neither the name nor the number that the file
//! system gives a file does: rotation changes the name, and compression or a copy the number. The beginning of the
//! decompressed file stays. The identity is the time of the first line that has one, and a hash of everything up to the end of
//! this line. It does not depend on the lines after it, which may not be written yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::DateTime;

use crate::reader::{EndOfInput, LogFileReader};
use crate::schema::EntrySchema;
use crate::time::TimeContext;

/// Endings of compressed files, which may follow any other ending.
const COMPRESSION_ENDINGS: [&str; 8] = [".gz", ".zst", ".bz2", ".xz", ".lz4", ".zstd", ".Z", ".br"];
/// Endings that are not part of the name of a table.
const FILE_ENDINGS: [&str; 9] = ["log", "txt", "json", "jsonl", "ndjson", "csv", "out", "err", "logfmt"];
/// Longer numbers are not counted by rotation.
const NUMBER_DIGITS_MAX: usize = 5;
/// Digits of a date with its time: year, month, day, hour, minute, second.
const DATE_DIGITS: usize = 14;

/// The files of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedLog {
    /// The name of the table, unique among the logs of the folder.
    pub table: String,
    /// The name of the file that is written now, such as `access.log`. It may be missing.
    pub base_name: String,
    /// The names of the files, from the oldest to the newest.
    pub files: Vec<String>,
    /// Compressed copies of files in `files`, which exist while they are being compressed. To read them would give each
    /// line twice.
    pub duplicates: Vec<String>,
}

/// When a file was rotated; smaller is older.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// Digits of a date with its time, and a number: several files of one date.
    Dated(String, DateNumber),
    /// Rotated this often. The greatest number is the oldest.
    Numbered(std::cmp::Reverse<u64>),
    Current,
}

/// The number of a file among those of its date.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum DateNumber {
    /// After the whole name, as logrotate counts: the greatest number is the oldest.
    Descending(std::cmp::Reverse<u64>),
    /// None, or before the ending, as most libraries count.
    Ascending(u64),
}

/// Groups the names of the files of one folder by the log that they belong to. The names have no folders, and should be
/// those of log files: a date in the name of another file is taken for that of a rotation too.
#[must_use]
pub fn group_rotated_logs<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<RotatedLog> {
    let mut logs: BTreeMap<String, Vec<(Age, &str)>> = BTreeMap::new();
    for name in names {
        let (base_name, age) = base_name_and_age(without_compression(name));
        logs.entry(base_name).or_default().push((age, name));
    }
    let mut tables: BTreeMap<String, usize> = BTreeMap::new();
    for base_name in logs.keys() {
        *tables.entry(table_name(base_name).to_owned()).or_default() += 1;
    }
    let groups = logs.into_iter().map(|(base_name, mut files)| {
        files.sort();
        let is_copy = |name: &str| {
            let plain = without_compression(name);
            plain != name && files.iter().any(|(_, other)| *other == plain)
        };
        let (duplicates, kept): (Vec<&str>, Vec<&str>) =
            files.iter().map(|(_, name)| *name).partition(|name| is_copy(name));
        let short = table_name(&base_name);
        let table = if tables.get(short) == Some(&1) { short.to_owned() } else { base_name.clone() };
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        RotatedLog { table, base_name, files: owned(kept), duplicates: owned(duplicates) }
    });
    groups.collect()
}

fn without_compression(name: &str) -> &str {
    let stripped = COMPRESSION_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    stripped.filter(|stripped| !stripped.is_empty()).unwrap_or(name)
}

/// A name without the ending of the file, as tables of other files have it.
fn table_name(base_name: &str) -> &str {
    match base_name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && FILE_ENDINGS.contains(&ending) => stem,
        _ => base_name,
    }
}

fn base_name_and_age(name: &str) -> (String, Age) {
    let with_date = dated(name);
    // `app.2024-01-01.1` has no ending after which logrotate could count, and `app.2024.01.01` ends with its date.
    if let Some((base_name, date, number)) = with_date.filter(|(base_name, _, _)| trailing_number(base_name).is_none())
    {
        return (base_name, Age::Dated(date, DateNumber::Ascending(number)));
    }
    if let Some((stem, number)) = trailing_number(name) {
        // `app-20240101.log.1`.
        if let Some((base_name, date, _)) = dated(stem) {
            return (base_name, Age::Dated(date, DateNumber::Descending(std::cmp::Reverse(number))));
        }
        return (stem.to_owned(), Age::Numbered(std::cmp::Reverse(number)));
    }
    if let Some(stem) = name.strip_suffix(".old").filter(|stem| !stem.is_empty()) {
        return (stem.to_owned(), Age::Numbered(std::cmp::Reverse(1)));
    }
    (name.to_owned(), Age::Current)
}

/// `access.log.1` as `access.log` and 1.
fn trailing_number(name: &str) -> Option<(&str, u64)> {
    let (stem, digits) = name.rsplit_once('.')?;
    let is_number = (1..=NUMBER_DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if stem.is_empty() || !is_number {
        return None;
    }
    Some((stem, digits.parse().ok()?))
}

/// The base name, the digits of the date and the number of a name with a date, which is its last part or stands before
/// its ending.
fn dated(name: &str) -> Option<(String, String, u64)> {
    let separators = name.char_indices().filter(|(_, character)| matches!(character, '-' | '.' | '_'));
    for (position, _) in separators.filter(|(position, _)| *position > 0) {
        let Some(after) = name.get(position + 1..) else { continue };
        let Some((date, length)) = date_digits(after) else { continue };
        let Some((number, ending)) = after.get(length..).and_then(number_and_ending) else { continue };
        let stem = name.get(..position)?;
        return Some((format!("{stem}{ending}"), date, number));
    }
    None
}

/// What may follow a date: nothing, a number, an ending, or a number and an ending.
fn number_and_ending(text: &str) -> Option<(u64, &str)> {
    if text.is_empty() {
        return Some((0, ""));
    }
    let after_separator = text.strip_prefix(['.', '-', '_'])?;
    let digits = after_separator.bytes().take_while(u8::is_ascii_digit).count();
    let (number, ending) = if (1..=NUMBER_DIGITS_MAX).contains(&digits) {
        (after_separator.get(..digits)?.parse().ok()?, after_separator.get(digits..)?)
    } else {
        (0, text)
    };
    let is_ending = |ending: &str| {
        ending.strip_prefix('.').is_some_and(|letters| letters.starts_with(|first: char| first.is_ascii_alphabetic()))
    };
    (ending.is_empty() || is_ending(ending)).then_some((number, ending))
}

/// The digits of a date with its time, filled with zeros, and how many bytes they take: `20240301`, `2024-03-01`,
/// `2024-03-01_120000`, `20240301-12`, `2024-03-01T12:00:00`, or ten digits of seconds since 1970.
fn date_digits(text: &str) -> Option<(String, usize)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if count == 10 && text.starts_with('1') && !is_date(text.get(..8)?) {
        let time = DateTime::from_timestamp(text.get(..10)?.parse().ok()?, 0)?;
        return Some((time.format("%Y%m%d%H%M%S").to_string(), 10));
    }
    let mut digits = String::new();
    let mut position = 0;
    if (8..=DATE_DIGITS).contains(&count) && count % 2 == 0 {
        digits.push_str(text.get(..count)?);
        position = count;
    } else if count == 4 {
        digits.push_str(text.get(..4)?);
        let separator = text.get(4..5).filter(|separator| matches!(*separator, "-" | "_" | "."))?;
        for part in [5..7, 8..10] {
            if text.get(part.start - 1..part.start)? != separator {
                return None;
            }
            digits.push_str(text.get(part)?);
        }
        position = 10;
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !is_date(digits.get(..8)?) {
        return None;
    }
    if digits.len() == 8 {
        position += time_digits(text.get(position..)?, &mut digits);
    }
    digits.extend(std::iter::repeat_n('0', DATE_DIGITS.saturating_sub(digits.len())));
    Some((digits, position))
}

/// Appends the digits of a time of day that follows a date, and gives how many bytes it takes.
fn time_digits(text: &str, digits: &mut String) -> usize {
    let Some(after) = text.strip_prefix(['-', '_', 'T', '.']) else { return 0 };
    let mut time = String::new();
    let mut length = 1;
    for part in after.as_bytes().chunks(3) {
        let [tens @ b'0'..=b'9', ones @ b'0'..=b'9', ..] = part else { break };
        time.extend([char::from(*tens), char::from(*ones)]);
        length += 2;
        if time.len() == 6 {
            break;
        }
        match part {
            [_, _, b':' | b'-' | b'.'] => length += 1,
            _ => break,
        }
    }
    let compact = after.bytes().take_while(u8::is_ascii_digit).count();
    if matches!(compact, 4 | 6) {
        time = after.get(..compact).unwrap_or_default().to_owned();
        length = 1 + compact;
    } else if compact != 2 {
        return 0;
    }
    // A separator after the last part belongs to the ending.
    if text.get(length - 1..length).is_some_and(|last| matches!(last, ":" | "-" | ".")) {
        length -= 1;
    }
    let hour_is_valid = time.get(..2).and_then(|hour| hour.parse::<u32>().ok()).is_some_and(|hour| hour < 24);
    // A single digit or two after a point is the number of a file: `app.2024-01-01.10.log`.
    if !hour_is_valid || (text.starts_with('.') && compact < 6) {
        return 0;
    }
    digits.push_str(&time);
    length + usize::from(text.get(length..).is_some_and(|rest| rest.starts_with('Z')))
}

fn is_date(digits: &str) -> bool {
    let part = |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day)) = (part(0..4), part(4..6), part(6..8)) else { return false };
    (1990..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// The maximum number of bytes at the beginning of a file that its identity depends on.
pub const FILE_ID_BYTES_MAX: usize = 64 << 10;

const HASH_BITS: u32 = 28;
/// Seconds since 1970 fit these bits until the year 3058, and leave the sign free.
const SECONDS_BITS: u32 = 35;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// The identity of the file that begins with these decompressed bytes, of which [`FILE_ID_BYTES_MAX`] count. It is not
/// negative and grows with the time of the first line that has one, in seconds. Only files whose beginning is the same up to
/// this line have the same identity, apart from one in 2^28 of those that began in the same second.
#[must_use]
pub fn identify_log_file(beginning: &[u8], schema: &Arc<EntrySchema>, context: &TimeContext) -> i64 {
    let beginning = beginning.get(..FILE_ID_BYTES_MAX).unwrap_or(beginning);
    let mut first_line_end = None;
    let mut end = 0;
    for line in beginning.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        end += line.len();
        first_line_end = first_line_end.or(Some(end));
        if let Some(time) = time_of_line(line, schema, context) {
            return file_id(time.div_euclid(NANOSECONDS_PER_SECOND), beginning.get(..end).unwrap_or_default());
        }
        end += 1;
    }
    file_id(0, beginning.get(..first_line_end.unwrap_or_default()).unwrap_or_default())
}

fn time_of_line(line: &[u8], schema: &Arc<EntrySchema>, context: &TimeContext) -> Option<i64> {
    let mut reader = LogFileReader::new(schema.clone(), context.clone());
    let mut time = None;
    reader.push(line, |entry| time = time.or(entry.time()));
    reader.finish(EndOfInput::Complete, |entry| time = time.or(entry.time()));
    time
}

fn file_id(seconds: i64, beginning: &[u8]) -> i64 {
    let seconds = seconds.clamp(0, (1 << SECONDS_BITS) - 1);
    // FNV-1a: cursors contain identities, so that the hash must be the same in every process.
    let hash = beginning
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> HASH_BITS) ^ (hash >> (2 * HASH_BITS))) & ((1 << HASH_BITS) - 1);
    // 28 bits fit.
    (seconds << HASH_BITS) | hash as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::LogFormat;
    use crate::time::LogTimeZone;

    fn groups(names: &[&str]) -> Vec<(String, Vec<String>)> {
        let logs = group_rotated_logs(names.iter().copied());
        logs.into_iter().map(|log| (log.table, log.files)).collect()
    }

    #[test]
    fn numbers_count_backward() {
        let names =
            ["access.log.10.gz", "access.log", "access.log.2.gz", "error.log", "access.log.1", "syslog.1", "syslog"];
        let expected = [
            ("access", vec!["access.log.10.gz", "access.log.2.gz", "access.log.1", "access.log"]),
            ("error", vec!["error.log"]),
            ("syslog", vec!["syslog.1", "syslog"]),
        ];
        let expected =
            expected.map(|(table, files)| (table.to_owned(), files.into_iter().map(str::to_owned).collect()));
        assert_eq!(groups(&names), expected);
    }

    #[test]
    fn dates_count_forward_in_every_form() {
        let table = [
            vec!["app-20231231.log.gz", "app-20240101.log", "app.log-20240102.gz", "app.2024-01-03.log.zst", "app.log"],
            vec![
                "postgresql-2024-03-01_000000.log",
                "postgresql-2024-03-01_120000.log",
                "postgresql-2024-03-02_000000.log",
            ],
            vec!["messages-20240301", "messages-20240302", "messages"],
            vec!["app.log-2023123123", "app.log-2024010100", "app.log"],
            vec!["app.log-1704067100", "app.log-1704067200", "app.log"],
            vec!["app.log.2024-03-01.gz", "app.log.2024-03-01-13", "app.log.2024-03-02"],
            vec!["app_2024_03_01.txt", "app_2024_03_02.txt"],
            vec!["app.2024-03-01.0.log", "app.2024-03-01.1.log", "app.2024-03-01.10.log", "app.log"],
            vec!["app-20240101.log.2", "app-20240101.log.1", "app-20240101.log", "app.log.1", "app.log"],
            vec!["app.log.2024-03-01T10:00:00Z", "app.log.2024-03-01T11:30:00Z"],
        ];
        for files in table {
            let reversed: Vec<&str> = files.iter().rev().copied().collect();
            let grouped = groups(&reversed);
            assert_eq!(grouped.len(), 1, "{grouped:?}");
            assert_eq!(grouped.first().expect("one log").1, files);
        }
    }

    #[test]
    fn names_without_rotation_stay_apart() {
        let names = [
            "app-1.log",
            "app-2.log",
            "postgresql-15-main.log",
            "node20240101x.log",
            "v1.2024.log",
            "app.log",
            "app.json",
        ];
        let tables: Vec<String> = groups(&names).into_iter().map(|(table, _)| table).collect();
        let expected = ["app-1", "app-2", "app.json", "app.log", "node20240101x", "postgresql-15-main", "v1.2024"];
        assert_eq!(tables, expected);
    }

    #[test]
    fn a_file_that_is_being_compressed_is_read_once() {
        let logs = group_rotated_logs(["app.log.1.gz", "app.log.1", "app.log"]);
        let log = logs.first().expect("one log");
        assert_eq!(
            (log.files.join(" "), log.duplicates.join(" ")),
            ("app.log.1 app.log".into(), "app.log.1.gz".into())
        );
    }

    fn identify(text: &str) -> i64 {
        let schema = Arc::new(EntrySchema::new(LogFormat::from_name("syslog").expect("a format")));
        let context = TimeContext::new(LogTimeZone::utc(), std::time::SystemTime::UNIX_EPOCH);
        identify_log_file(text.as_bytes(), &schema, &context)
    }

    const FIRST: &str = "2026-03-01T12:00:00Z h a: one";

    #[test]
    fn lines_that_follow_do_not_change_the_identity() {
        let id = identify(FIRST);
        assert_eq!(identify(&format!("{FIRST}\n")), id);
        assert_eq!(identify(&format!("{FIRST}\n  at line 2\n2026-03-01T12:00:01Z h a: two\n")), id);
        let long = format!("{FIRST}\n{}", "x".repeat(2 * FILE_ID_BYTES_MAX));
        assert_eq!(identify(&long), id);
    }

    #[test]
    fn files_that_began_later_have_larger_identities() {
        let mut ids =
            ["no time", FIRST, "2026-03-01T12:00:01Z h a: one", "2027-01-01T00:00:00Z h a: one"].map(identify);
        assert!(ids.is_sorted() && ids[0] >= 0, "{ids:?}");
        ids[0] = identify("");
        assert!(ids[0] >= 0 && ids.is_sorted(), "{ids:?}");
    }

    /// Each file begins with the same line, and a file in the same second with another one.
    #[test]
    fn what_is_before_the_first_time_and_its_line_distinguish_files() {
        let with_banner = |line: &str| identify(&format!("--- log opened ---\n{line}\n"));
        let later = "2026-03-01T12:00:00Z h a: another";
        let ids = [identify(FIRST), identify(later), with_banner(FIRST), with_banner(later)];
        let distinct: std::collections::BTreeSet<i64> = ids.into_iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    }
}
