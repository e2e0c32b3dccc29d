//! Options for a log of no known format, which read it as it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use regex::Regex;

use crate::column::NormalizedSeverity;
use crate::detect::complete_lines;
use crate::entry::ParsedEntry;
use crate::format::LogFormat;
use crate::pattern::{DeclaredGroup, LinePattern, PatternGroupType};
use crate::reader::{EndOfInput, LogFileReader};
use crate::schema::EntrySchema;
use crate::time::{TIME_SHAPES, TimeContext, best_time_form};

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
