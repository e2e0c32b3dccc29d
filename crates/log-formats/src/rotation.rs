//! Rotated files: which files of a folder are one log, from the oldest to the newest.

use std::collections::BTreeMap;

use chrono::DateTime;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
