//! Log files: from the bytes of a file to entries with typed values. No Arrow, no threads, and no files except in
//! [`journal`], which reads the files of systemd journals.
//!
//! An [`EntrySchema`] has the columns of a file: those of its [`LogFormat`], those that are inferred from a sample, and
//! those that every file has. A [`LogFileReader`] receives the decompressed bytes in pieces and passes on each
//! [`ParsedEntry`]. [`detect_log_format`] finds the format of a file, [`group_rotated_logs`] the files of one log, and
//! [`recognize_roles`] the time, the message and the severity among the columns of a table. For a file of no known format,
//! [`suggest_log_format`] makes a pattern.
//!
//! # Entries
//!
//! Each byte of a file is in exactly one entry, in the order of the file. The offset of an entry is that of its first
//! byte, so that it is a position even if clocks jump.
//!
//! - A line begins an entry if it has the beginning of the format: any line of an access log or of HAProxy; a priority or
//!   a time in syslog; a time and a level in nginx's error log; `[` in Apache's; a level and a date in klog; `key=` in
//!   logfmt; `{` in JSON; a time, a user, a database and a process ID in csvlog; a time in PostgreSQL's text, unless the label
//!   after it is one as `DETAIL`; a match of the pattern.
//! - A line of a stack trace continues the entry before it: one that begins with white space, `Caused by`,
//!   `Suppressed:`, `...` or the sentences with which Python chains exceptions. `Traceback` does too, and with it the
//!   first line after its indented lines.
//! - In syslog, logfmt, klog, nginx's error log, PostgreSQL's text and patterns, any other line continues an entry that began
//!   properly. Elsewhere it is an entry of its own, which does not fit.
//! - In a log of a container (`cri`), the rule for stack traces applies to the text of its program. A part of a line (`P`)
//!   continues until a line is complete (`F`). A line of the other stream begins an entry.
//! - In csvlog, lines belong to the entry until its quotes are closed. A line that is the beginning of an entry ends
//!   one whose quotes a crash left open.
//! - In PostgreSQL's text, the lines `DETAIL`, `HINT`, `QUERY`, `CONTEXT`, `STATEMENT`, `LOCATION` and `BACKTRACE` are columns of
//!   the entry before them, if they have the same process ID; else they are part of its text.
//! - Blank lines belong to the entry before them, but not to its text.
//! - The message of an entry of several lines in syslog, klog, nginx's error log and `cri`, and in a pattern whose message
//!   ends with the line, includes the further lines. In other formats they are in the text of the entry only.
//!
//! An entry is passed on when the next one begins, because the next line may continue it. [`LogFileReader::finish`]
//! ends the last one. If the file is still being written ([`EndOfInput::Growing`]), a last line without line break is
//! not read, and [`FinishedLogFile::resume_offset`] is where to continue. A line that continues the last entry and is
//! written after that is an entry of its own.
//!
//! Entries are bounded by [`EntryBounds`]. Lines beyond the bound make further entries, which do not fit; nothing is
//! lost. Only a single line beyond the bound is cut.
//!
//! # Lines that do not fit
//!
//! An entry that does not have the form of its format is kept: its text and its offset are there, `parse_error` has the
//! reason with the position, the other values are null, and [`EntryCounts::misfits`] counts it. If only its text had to
//! be repaired, the entry has its values, and `parse_error` reports the repair: bytes that are not UTF-8 become U+FFFD,
//! NUL bytes are removed (a file that was truncated while its writer kept its position begins with them), and the end of
//! a line that is too long is cut. Line breaks may be CRLF. A byte order mark at the beginning is not part of the text.
//!
//! # Columns
//!
//! | format | columns |
//! |---|---|
//! | `common`, `combined` | `virtual_host`, `remote_addr`, `forwarded_for`, `remote_identity`, `remote_user`, `time`, `request`, `method`, `path`, `protocol`, `status`, `body_bytes`; `combined` also `referer`, `user_agent`. Members: `extra_1`, … for further fields |
//! | `nginx_error` | `time`, `level`, `process_id`, `thread_id`, `connection_id`, `message`, `client`, `server`, `request`, `subrequest`, `upstream`, `host`, `referrer`. Members: other names after the message |
//! | `apache_error` | `time`, `module`, `level`, `process_id`, `thread_id`, `source_file`, `os_error`, `client`, `code`, `message`, `referer` |
//! | `haproxy` | `time`, `host`, `process_id`, those of HAProxy's manual, `message` (the request of HTTP), `method`, `path`, `protocol`. Members: `extra_1`, … for further fields |
//! | `cri` | `time`, `stream`, `message` |
//! | `klog` | `time`, `level`, `thread_id`, `file`, `line`, `message` |
//! | `syslog` | `time`, `host`, `app`, `process_id`, `message_id`, `facility`, `severity`, `pri`, `message`. Members: structured data as `id.name` |
//! | `csvlog`, `jsonlog` | those of PostgreSQL, with its names. Members: columns and keys of later versions |
//! | `postgresql` | `log_time`, `user_name`, `database_name`, `process_id`, `error_severity`, `message`, `detail`, `hint`, `internal_query`, `context`, `query`, `location`, `backtrace` |
//! | `logfmt`, `json` | Members only. Nested objects of JSON are members such as `a.b`, to a depth of five |
//! | `pattern` | the named groups |
//!
//! Members get columns if they are in the sample (at most 200, the most frequent). Their types widen from integer to
//! float to text; integers of more than 64 bits are text. All other members, and values that do not have the type of
//! their column, are in `other_fields` as a JSON object. A value `-` of an access log and an empty value are null. If the
//! address in an access log is a list of forwarded addresses, `remote_addr` is its first, and `forwarded_for` the list.
//!
//! Every file has `entry_text`, `parse_error`, `entry_offset` and `entry_file_id`. If a column is the severity, it stays as
//! written, and `normalized_severity` and `normalized_severity_number` give the [`NormalizedSeverity`] that it means.
//!
//! # Times
//!
//! Times are nanoseconds since 1970 in UTC, as written: they may go back when a clock is set.
//!
//! - An offset in the line applies. Otherwise the zone of the [`TimeContext`] does. Of a local time that occurs twice
//!   when clocks are set back, it is the first; a local time that is skipped when clocks are set forward has the offset
//!   before that.
//! - An abbreviation (`CET`, as PostgreSQL writes it) has the offset that it has in the zone of the context at that time,
//!   which distinguishes the two equal local times. If the zone does not use it, it has its usual meaning. An
//!   abbreviation with several meanings, such as `IST`, needs a declared zone: without it the line does not fit.
//! - A time without year (RFC 3164) gets the latest year with which it is at most a day after the reference of the
//!   context, which is the time at which the file was last written. So `Dec 31` in a file of 1 January is of the year
//!   before, and `Jan 1` in a file of 31 December, 23:59, of the year after. A file that spans more than a year has
//!   wrong years in its beginning.
//! - A number is seconds, milliseconds, microseconds or nanoseconds since 1970, by its magnitude: below 10^11, 10^14,
//!   10^17, or above. In JSON and logfmt, only members with the name of a time are read so, and no number below 10^8,
//!   which is in March 1973.
//! - A group of a pattern whose type is not declared is a time if its name is that of one and its values are times; else it
//!   is text. A single value that is none is null, and `parse_error` reports it. A group `time` that has only a time of day
//!   follows the text of the group `date`.
//! - A leap second is the first second after it. Times before 1677 and after 2262 do not fit.

mod column;
mod detect;
mod entry;
mod format;
pub mod journal;
mod parse;
mod pattern;
mod reader;
mod rotation;
mod schema;
mod time;

pub use column::{
    EntryColumn, EntryColumnRole, EntryColumnType, NormalizedSeverity, RecognizedRoles, SeverityNumberScale,
    is_time_name, recognize_roles,
};
pub use detect::{
    DETECTION_SAMPLE_BYTES, DetectedLogFormat, OtherTime, SuggestedLogFormat, detect_log_format, suggest_log_format,
};
pub use entry::{EntryValue, ParsedEntry};
pub use format::{LogFormat, LogFormatNameError};
pub use pattern::{DeclaredGroup, LinePattern, LinePatternError, PatternGroupType, PatternGroupTypeError, UnreadTime};
pub use reader::{EndOfInput, EntryBounds, EntryCounts, FinishedLogFile, LogFileReader};
pub use rotation::{FILE_ID_BYTES_MAX, RotatedLog, group_rotated_logs, identify_log_file};
pub use schema::{
    ENTRY_FILE_ID, ENTRY_OFFSET, ENTRY_TEXT, EntrySchema, NORMALIZED_SEVERITY, NORMALIZED_SEVERITY_NUMBER,
    OTHER_FIELDS, PARSE_ERROR,
};
pub use time::{
    EntryTimeFormat, LogTimeZone, TimeContext, TimeFormatError, TimeFormatParts, TimeZoneError, WrittenTime,
};
