//! The identity of a file of a log: it stays the same when the file is renamed, compressed or grows.
//!
//! Neither the name nor the number that the file system gives a file does: rotation changes the name, and compression or a
//! copy the number. The beginning of the decompressed file stays. The identity is the time of the first line that has one,
//! and a hash of everything up to the end of this line. It does not depend on the lines after it, which may not be written
//! yet.

use std::sync::Arc;

use crate::reader::{EndOfInput, LogFileReader};
use crate::schema::EntrySchema;
use crate::time::TimeContext;

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
