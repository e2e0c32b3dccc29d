//! Which format a file has, from its first bytes and its name. For a log of no known format: options that read it as it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use regex::Regex;

use crate::column::{EntryColumnRole, NormalizedSeverity, is_usual_message_name};
use crate::entry::{EntryValue, ParsedEntry, Slot};
use crate::format::LogFormat;
use crate::parse::postgres;
use crate::pattern::{DeclaredGroup, LinePattern, PatternGroupType};
use crate::reader::{EndOfInput, LogFileReader};
use crate::schema::EntrySchema;
use crate::time::{LogTimeZone, TIME_SHAPES, TimeContext, best_time_form};

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
fn complete_lines(sample: &[u8]) -> &[u8] {
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

/// How many lines are compared.
const LINES_MAX: usize = 500;
/// How many beginnings of words of a line may be that of its time.
const TIME_STARTS_MAX: usize = 12;
/// How many words after the time may be the severity.
const SEVERITY_WORDS_MAX: usize = 8;
/// A line of each entry reads as this pattern, whatever it is.
const MESSAGE_ONLY: &str = "^(?<message>.*)$";
/// What is after the time if nothing else is known of it.
const MESSAGE_AFTER_TIME: &str = r"[\]):,|]?\s*(?<message>.*)$";

/// Options that read a log of no known format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuggestedLogFormat {
    /// The format `json`.
    Json {
        /// Whether entries have a time.
        has_time: bool,
    },
    /// A pattern.
    Pattern {
        /// The regular expression.
        expression: String,
        /// The type of the group `time` as the configuration declares it, if its form is not one of the usual.
        time: Option<String>,
        /// Other types that may be meant.
        other_time: Option<OtherTime>,
    },
}

/// Times of a log that have two readings, such as `03/04/24`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherTime {
    /// The last time of the sample.
    pub example: String,
    /// The types by which it is another time, as the configuration declares them.
    pub declarations: Vec<String>,
}

/// Suggests how to read a log of no known format from its first bytes: each entry of them has a time, if the lines have one,
/// and all of its text is in columns.
#[must_use]
pub fn suggest_log_format(sample: &[u8], context: &TimeContext) -> SuggestedLogFormat {
    let sample = complete_lines(sample);
    let as_json = SampleCounts::of(LogFormat::Json, sample, context);
    if as_json.fits() {
        return SuggestedLogFormat::Json { has_time: as_json.with_time > 0 };
    }
    let text = String::from_utf8_lossy(sample);
    // Lines of stack traces and other indented lines continue an entry.
    let begins_entry = |line: &&str| line.bytes().next().is_some_and(|first| !first.is_ascii_whitespace());
    let lines: Vec<&str> = text.lines().filter(begins_entry).take(LINES_MAX).collect();
    let with_time = TimedLines::find(&lines).and_then(|timed| timed.suggest(sample, context));
    with_time.unwrap_or_else(|| SuggestedLogFormat::Pattern {
        expression: MESSAGE_ONLY.to_owned(),
        time: None,
        other_time: None,
    })
}

/// How a format reads a sample.
#[derive(Debug, Clone, Copy, Default)]
struct SampleCounts {
    entries: usize,
    fitting: usize,
    with_time: usize,
    /// Entries that fit, but without a time although there is a column for it.
    without_time: usize,
}

impl SampleCounts {
    fn of(format: LogFormat, sample: &[u8], context: &TimeContext) -> Self {
        let schema = Arc::new(EntrySchema::infer(format, &[sample], context));
        let has_time = schema.time_column().is_some();
        let mut counts = Self::default();
        let mut add = |entry: &ParsedEntry<'_>| {
            counts.entries += 1;
            counts.fitting += usize::from(entry.fits());
            counts.with_time += usize::from(entry.time().is_some());
            counts.without_time += usize::from(entry.fits() && has_time && entry.time().is_none());
        };
        let mut reader = LogFileReader::new(schema, context.clone());
        reader.push(sample, &mut add);
        reader.finish(EndOfInput::Complete, &mut add);
        counts
    }

    /// Whether all but a few entries fit.
    fn fits(self) -> bool {
        self.fitting > 0 && self.fitting * 20 >= self.entries * 19
    }
}

/// The lines of a sample whose times look alike and are in the same place.
struct TimedLines<'a> {
    shape: usize,
    /// The regular expression of what is before the time.
    prefix: String,
    /// The number of groups in it.
    prefix_groups: usize,
    times: Vec<&'a str>,
    /// What is after the time.
    tails: Vec<&'a str>,
}

impl<'a> TimedLines<'a> {
    /// The most frequent place, if most lines have their time there.
    fn find(lines: &[&'a str]) -> Option<Self> {
        let shapes = TIME_SHAPES.iter().map(|shape| Regex::new(&format!("^{}", shape.expression())).ok());
        let shapes: Vec<Option<Regex>> = shapes.collect();
        let mut by_place: BTreeMap<(usize, String), Self> = BTreeMap::new();
        for line in lines {
            let Some((shape, start, end)) = find_time(line, &shapes) else { continue };
            let (prefix, prefix_groups) = prefix_expression(line.get(..start).unwrap_or_default());
            let place = by_place.entry((shape, prefix.clone())).or_insert_with(|| Self {
                shape,
                prefix,
                prefix_groups,
                times: Vec::new(),
                tails: Vec::new(),
            });
            place.times.extend(line.get(start..end));
            place.tails.extend(line.get(end..));
        }
        let most = by_place.into_values().max_by_key(|place| place.times.len())?;
        (most.times.len() * 2 > lines.len()).then_some(most)
    }

    fn suggest(&self, sample: &[u8], context: &TimeContext) -> Option<SuggestedLogFormat> {
        let shape = TIME_SHAPES.get(self.shape)?;
        let found = best_time_form(shape.forms, &self.times, context)?;
        let time = (found.form != "any").then(|| format!("time {}", found.form));
        let example = self.times.last().filter(|_| !found.others.is_empty());
        let other_time = example.map(|example| OtherTime {
            example: (*example).to_owned(),
            declarations: found.others.iter().map(|form| format!("time {form}")).collect(),
        });
        let head = format!("^{}(?<time>{})", self.prefix, shape.expression());
        let read = |tail: &str| {
            let expression = format!("{head}{tail}");
            let declared = time_group(time.as_deref())?;
            let pattern = LinePattern::new(&expression, &declared).ok()?;
            let counts = SampleCounts::of(LogFormat::Pattern(Arc::new(pattern)), sample, context);
            (counts.fits() && counts.without_time == 0).then_some((expression, counts))
        };
        let (plain, counts) = read(MESSAGE_AFTER_TIME)?;
        // Lines that the pattern does not match would continue other entries.
        let with_severity =
            self.severity_tail().or_else(|| self.delimited_severity_tail()).and_then(|tail| read(&tail));
        let with_severity = with_severity.filter(|(_, other)| other.fitting == counts.fitting);
        let expression = with_severity.map_or(plain, |(expression, _)| expression);
        Some(SuggestedLogFormat::Pattern { expression, time, other_time })
    }

    /// The regular expression of what is after the time, if a word of all lines is their severity.
    fn severity_tail(&self) -> Option<String> {
        let words: Vec<Vec<&str>> =
            self.tails.iter().map(|tail| tail.split_whitespace().take(SEVERITY_WORDS_MAX).collect()).collect();
        let column = |index: usize| words.iter().map(move |line| line.get(index).copied().unwrap_or_default());
        let is_severity = |word: &str| NormalizedSeverity::from_word(bare(word)).is_some();
        let index = (0..SEVERITY_WORDS_MAX).find(|index| column(*index).all(is_severity))?;
        let (mut tail, mut groups) = (r"\s*".to_owned(), self.prefix_groups);
        for before in 0..index {
            let first = column(before).next()?;
            if bare(first).is_empty() && column(before).all(|word| word == first) {
                tail.push_str(&regex::escape(first));
            } else {
                push_word_group(&mut tail, &mut groups);
            }
            tail.push_str(r"\s+");
        }
        let lead_of = |word: &'a str| word.split(bare(word)).next().unwrap_or_default();
        let trail_of = |word: &'a str| word.get(lead_of(word).len() + bare(word).len()..).unwrap_or_default();
        let lead = column(index).map(lead_of).next()?;
        let trail = column(index).map(trail_of).max_by_key(|trail| trail.len())?;
        let end = if trail.is_empty() { String::new() } else { format!(r"\s*{}", regex::escape(trail)) };
        // Writing into memory cannot fail.
        let _ = write!(tail, r"{}(?<level>\w+){end}\s*(?<message>.*)$", regex::escape(lead));
        Some(tail)
    }

    /// The same of lines whose values are separated by `|` and not by blanks.
    fn delimited_severity_tail(&self) -> Option<String> {
        let values: Vec<Vec<&str>> =
            self.tails.iter().map(|tail| tail.split('|').take(SEVERITY_WORDS_MAX).map(str::trim).collect()).collect();
        let is_severity = |line: &Vec<&str>, index: usize| {
            line.get(index).is_some_and(|value| NormalizedSeverity::from_word(value).is_some())
        };
        let index = (1..SEVERITY_WORDS_MAX).find(|index| values.iter().all(|line| is_severity(line, *index)))?;
        let (mut tail, mut groups) = (r"\s*\|".to_owned(), self.prefix_groups);
        for _ in 1..index {
            groups += 1;
            // Writing into memory cannot fail.
            let _ = write!(tail, r"\s*(?<field_{groups}>[^|]*?)\s*\|");
        }
        tail.push_str(r"\s*(?<level>\w+)\s*(?:\|\s*(?<message>.*))?$");
        Some(tail)
    }
}

/// The types of the groups of a suggested pattern.
fn time_group(time: Option<&str>) -> Option<Vec<DeclaredGroup>> {
    let Some((name, form)) = time.and_then(|time| time.split_once(' ')) else { return Some(Vec::new()) };
    let group_type = PatternGroupType::from_name(name, Some(form)).ok()?;
    Some(vec![DeclaredGroup { name: "time".to_owned(), group_type }])
}

/// The first time in a line: its shape, its start and its end.
fn find_time(line: &str, shapes: &[Option<Regex>]) -> Option<(usize, usize, usize)> {
    let is_start = |index: &usize| {
        let before = line.get(..*index).unwrap_or_default();
        before.is_empty() || before.ends_with([' ', '\t', '[', '(', '<', '"', '|', ',', ';', '='])
    };
    let ends_word = |rest: &str| rest.chars().next().is_none_or(|next| !next.is_alphanumeric());
    let mut starts = line.char_indices().map(|(index, _)| index).filter(is_start).take(TIME_STARTS_MAX);
    starts.find_map(|start| {
        let rest = line.get(start..)?;
        shapes.iter().enumerate().find_map(|(shape, regex)| {
            let bytes = regex.as_ref()?.find(rest)?.end();
            ends_word(rest.get(bytes..)?).then_some((shape, start, start + bytes))
        })
    })
}

/// A regular expression of what is before the time, with a group for each word, and the number of groups.
fn prefix_expression(prefix: &str) -> (String, usize) {
    let words_end = prefix.rfind([' ', '\t']).map_or(0, |blank| blank + 1);
    let (words, attached) = prefix.split_at_checked(words_end).unwrap_or_default();
    let (mut expression, mut groups) = (String::new(), 0);
    for _ in words.split_whitespace() {
        push_word_group(&mut expression, &mut groups);
        expression.push_str(r"\s+");
    }
    // Values that are attached to the time, as in `7|2024-03-01`, differ from line to line.
    let delimiter = attached.chars().next_back().filter(|_| attached.contains(char::is_alphanumeric));
    if let Some(delimiter) = delimiter {
        push_word_group(&mut expression, &mut groups);
        expression.push_str(&regex::escape(&delimiter.to_string()));
    } else {
        expression.push_str(&regex::escape(attached));
    }
    (expression, groups)
}

fn push_word_group(expression: &mut String, groups: &mut usize) {
    *groups += 1;
    // Writing into memory cannot fail.
    let _ = write!(expression, r"(?<field_{groups}>\S+)");
}

/// A word without the punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric())
}
