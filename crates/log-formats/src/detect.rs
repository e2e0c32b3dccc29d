//! Which format a file has, from its first bytes and its name.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::column::{EntryColumnRole, NormalizedSeverity, is_usual_message_name};
use crate::entry::{EntryValue, ParsedEntry, Slot};
use crate::format::LogFormat;
use crate::parse::postgres;
use crate::reader::{EndOfInput, LogFileReader};
use crate::schema::EntrySchema;
use crate::time::{LogTimeZone, TimeContext};

/// How many bytes of a file [`detect_log_format`] reads.
pub const DETECTION_SAMPLE_BYTES: usize = 64 << 10;

/// The minimum share of the bytes that are in entries that fit.
const FITTING_SHARE_MIN: f64 = 0.8;
/// The minimum confidence of an answer.
const CONFIDENCE_MIN: f64 = 0.5;
/// From this number of entries, more of them do not increase the confidence.
const ENTRIES_FOR_CERTAINTY: usize = 4;
/// The minimum share of entries that have the parts which distinguish logs from other files of the same form.
const USUAL_SHARE_MIN: f64 = 0.7;
/// Files with more control characters are binary.
const CONTROL_SHARE_MAX: f64 = 0.05;
/// Entries of more lines on average are paragraphs of text.
const LINES_PER_ENTRY_MAX: usize = 50;
/// logfmt has at least this many pairs per entry on average.
const LOGFMT_PAIRS_MIN: usize = 2;
/// The certainty of formats that also fit the lines of a more specific one.
const GENERAL_CERTAINTY_MAX: f64 = 0.9;
/// Words of file names of logs.
const LOG_WORDS: [&str; 12] =
    ["log", "logs", "access", "error", "errors", "syslog", "messages", "journal", "audit", "events", "trace", "debug"];

/// The format that a file seems to have.
#[derive(Debug, Clone)]
pub struct DetectedLogFormat {
    /// The format.
    pub format: LogFormat,
    /// How certain it is, from 0.5 to 1.
    pub confidence: f64,
}

/// Detects the format of a file from its first bytes, after decompression, and from its name without folders. Files that
/// are no logs, such as text, CSV or JSON lines without times, have none. The format `pattern` is never detected.
#[must_use]
pub fn detect_log_format(sample: &[u8], file_name: &str) -> Option<DetectedLogFormat> {
    let sample = complete_lines(sample);
    if sample.is_empty() || is_binary(sample) {
        return None;
    }
    let is_log_name = is_log_name(file_name);
    let candidates = [
        (LogFormat::PostgresCsv, 0.0),
        (LogFormat::PostgresJson, 0.0),
        (LogFormat::PostgresText, 0.0),
        (LogFormat::Json, 0.0),
        (LogFormat::NginxError, 0.0),
        (LogFormat::ApacheError, 0.0),
        (LogFormat::Cri, 0.0),
        (LogFormat::Klog, 0.0),
        (LogFormat::Haproxy, 0.0),
        (LogFormat::Combined, 0.0),
        // Combined lines are common lines with further fields, those of HAProxy are of syslog, and these may contain pairs.
        (LogFormat::Common, 0.05),
        (LogFormat::Syslog, 0.02),
        (LogFormat::Logfmt, 0.05),
    ];
    let mut best: Option<DetectedLogFormat> = None;
    for (format, penalty) in candidates {
        let confidence = confidence(&format, sample, is_log_name) - penalty;
        let is_better = best.as_ref().is_none_or(|best| confidence > best.confidence);
        if confidence >= CONFIDENCE_MIN && is_better {
            best = Some(DetectedLogFormat { format, confidence });
        }
    }
    best
}

/// The sample without an incomplete last line, unless it is the only one.
pub(crate) fn complete_lines(sample: &[u8]) -> &[u8] {
    let sample = sample.get(..DETECTION_SAMPLE_BYTES).unwrap_or(sample);
    let end = memchr::memrchr(b'\n', sample).map_or(sample.len(), |end| end + 1);
    sample.get(..end).unwrap_or(sample)
}

fn is_binary(sample: &[u8]) -> bool {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\r' | b'\t' | 0x1B);
    let controls = sample.iter().filter(is_control).count();
    controls as f64 > sample.len() as f64 * CONTROL_SHARE_MAX
}

fn is_log_name(file_name: &str) -> bool {
    let lowered = file_name.to_lowercase();
    let mut words = lowered.split(|character: char| !character.is_alphanumeric());
    words.any(|word| LOG_WORDS.contains(&word))
}

/// What the entries of a sample have.
#[derive(Default)]
struct Evidence {
    entries: usize,
    lines: usize,
    bytes: u64,
    fitting_bytes: u64,
    fitting: usize,
    /// Fitting entries that have the parts that are usual in this format.
    usual: usize,
    members: usize,
    flags: usize,
}

impl Evidence {
    fn collect(schema: EntrySchema, sample: &[u8]) -> Self {
        // The year of dates without one does not matter here.
        let reference = SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_600_000);
        let context = TimeContext::new(LogTimeZone::utc(), reference);
        let mut evidence = Self::default();
        let mut reader = LogFileReader::new(Arc::new(schema), context);
        reader.push(sample, |entry| evidence.add(entry));
        reader.finish(EndOfInput::Complete, |entry| evidence.add(entry));
        evidence
    }

    fn add(&mut self, entry: &ParsedEntry<'_>) {
        self.entries += 1;
        self.lines += entry.text.lines().count();
        self.bytes += entry.length();
        // The zone of a PostgreSQL log may be known only to its owner, so that its times do not decide.
        let format = entry.schema.format();
        let is_postgres = match format {
            LogFormat::PostgresCsv => postgres::begins_csv_entry(entry.text.as_bytes()),
            LogFormat::PostgresJson => {
                entry.text.starts_with("{\"timestamp\":\"") && entry.text.contains("\"error_severity\":\"")
            }
            LogFormat::PostgresText => entry.text().lines().next().is_some_and(postgres::is_usual),
            _ => false,
        };
        if !entry.fits() && !is_postgres {
            return;
        }
        self.fitting += 1;
        self.fitting_bytes += entry.length();
        self.members += entry.fields.members();
        let members = (0..entry.fields.members()).filter_map(|index| entry.fields.member(index));
        self.flags += members.filter(|member| matches!(member.value, Slot::Boolean(_))).count();
        self.usual += usize::from(match format {
            LogFormat::Syslog => is_usual_syslog(entry),
            LogFormat::Haproxy => text_of(entry, "client_ip").is_some(),
            LogFormat::PostgresCsv | LogFormat::PostgresJson | LogFormat::PostgresText => is_postgres,
            LogFormat::Json | LogFormat::Logfmt => entry.time().is_some() || entry.schema.time_column().is_none(),
            _ => true,
        });
    }

    /// The share of bytes that fit, lowered if there are only a few entries.
    fn share(&self) -> f64 {
        if self.fitting == 0 || (self.usual as f64) < self.fitting as f64 * USUAL_SHARE_MIN {
            return 0.0;
        }
        let share = self.fitting_bytes as f64 / self.bytes.max(1) as f64;
        if share < FITTING_SHARE_MIN || self.lines > self.entries * LINES_PER_ENTRY_MAX {
            return 0.0;
        }
        let missing = ENTRIES_FOR_CERTAINTY.saturating_sub(self.fitting);
        share - 0.05 * missing as f64
    }
}

fn text_of<'a>(entry: &ParsedEntry<'a>, column: &str) -> Option<&'a str> {
    match entry.value(entry.schema.column_index(column)?) {
        EntryValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Whether the program is there, the host is none of the words that other logs have after the time, and the line is not one of
/// PostgreSQL, whose entries are fewer than their lines.
fn is_usual_syslog(entry: &ParsedEntry<'_>) -> bool {
    let is_host = |host: &str| {
        NormalizedSeverity::from_word(host.trim_matches(['[', ']'])).is_none() && !matches!(host, "stdout" | "stderr")
    };
    let is_postgres = entry.text().lines().next().is_some_and(postgres::is_usual);
    text_of(entry, "app").is_some() && text_of(entry, "host").is_none_or(is_host) && !is_postgres
}

fn confidence(format: &LogFormat, sample: &[u8], is_log_name: bool) -> f64 {
    let context = TimeContext::new(LogTimeZone::utc(), SystemTime::UNIX_EPOCH);
    let schema = match format {
        LogFormat::Json | LogFormat::Logfmt => EntrySchema::infer(format.clone(), &[sample], &context),
        _ => EntrySchema::new(format.clone()),
    };
    let roles = roles_score(&schema);
    let evidence = Evidence::collect(schema, sample);
    let share = evidence.share();
    let certainty = match format {
        LogFormat::Json | LogFormat::Logfmt => {
            let is_prose = evidence.flags * 3 > evidence.members;
            let has_pairs = evidence.members >= evidence.fitting * LOGFMT_PAIRS_MIN;
            if matches!(format, LogFormat::Logfmt) && (is_prose || !has_pairs) {
                return 0.0;
            }
            // Rows of data may have a time too; a severity, a message or the name of the file distinguishes logs.
            (roles + if is_log_name { 0.2 } else { 0.0 }).min(GENERAL_CERTAINTY_MAX)
        }
        LogFormat::PostgresCsv | LogFormat::PostgresJson | LogFormat::PostgresText => 1.0,
        _ => 0.9 + if is_log_name { 0.1 } else { 0.0 },
    };
    (share * certainty).min(1.0)
}

/// How much the columns are those of a log.
fn roles_score(schema: &EntrySchema) -> f64 {
    let of_role = |column: Option<usize>, score: f64| if column.is_some() { score } else { 0.0 };
    let message = schema.columns().iter().find(|column| column.role == EntryColumnRole::Message);
    let message_score = message.map_or(0.0, |column| if is_usual_message_name(&column.name) { 0.3 } else { 0.05 });
    of_role(schema.time_column(), 0.35) + of_role(schema.severity_column(), 0.3) + message_score
}
