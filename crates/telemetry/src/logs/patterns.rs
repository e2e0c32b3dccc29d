//! Messages grouped by their pattern, which has placeholders for numbers, addresses, times and other parts that vary.
//!
//! They are counted in bounded memory. Patterns that differ in one token, such as a name without digits, become one.
//! The patterns of a window of time are compared with those of a baseline of the same length: what is new, and what is
//! more frequent.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::Ipv6Addr;

use foldhash::fast::{FixedState, RandomState};

/// The number of bytes of a message that its pattern contains; the rest and further lines are ignored.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// Words of letters and digits of at least this length are identifiers.
const IDENTIFIER_LENGTH_MIN: usize = 20;
/// Words of hexadecimal digits of at least this length, with a letter and a digit, are hexadecimal numbers.
const HEXADECIMAL_LENGTH_MIN: usize = 8;

/// Writes the pattern of `message` to `out`, which is cleared before.
fn write_template(message: &str, out: &mut String) {
    out.clear();
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = line.get(..line.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or(line).trim_end();
    let mut rest = line;
    let mut is_in_word = false;
    while let Some(first) = rest.chars().next() {
        let (length, placeholder) = match first {
            '"' | '\'' if !is_in_word => (quoted(rest), "<string>"),
            c if is_in_word || !(c.is_ascii_alphanumeric() || c == ':') => (None, ""),
            _ => placeholder(rest),
        };
        let length = if let Some(length) = length {
            out.push_str(placeholder);
            length
        } else {
            write_word(rest, first, out)
        };
        let (done, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        is_in_word = done.ends_with(char::is_alphanumeric);
        rest = after;
    }
}

/// Writes a word without the digits in it, or one other character, and returns its length.
fn write_word(rest: &str, first: char, out: &mut String) -> usize {
    if !first.is_ascii_alphanumeric() {
        out.push(if first.is_whitespace() { ' ' } else { first });
        return first.len_utf8();
    }
    let word = rest.get(..word_length(rest)).unwrap_or_default();
    let mut is_number = false;
    for character in word.chars() {
        if !character.is_ascii_digit() {
            out.push(character);
        } else if !is_number {
            out.push_str("<number>");
        }
        is_number = character.is_ascii_digit();
    }
    word.len()
}

/// The length of what a placeholder replaces at the start of `text`, and the placeholder.
fn placeholder(text: &str) -> (Option<usize>, &'static str) {
    let bytes = text.as_bytes();
    let found = time(bytes)
        .map(|length| (length, "<time>"))
        .or_else(|| uuid(bytes).map(|length| (length, "<uuid>")))
        .or_else(|| ip_address(text).map(|length| (length, "<ip>")))
        .or_else(|| word_placeholder(text));
    found.map_or((None, ""), |(length, placeholder)| (Some(length), placeholder))
}

fn word_length(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len())
}

fn word_placeholder(text: &str) -> Option<(usize, &'static str)> {
    let mut length = word_length(text);
    let word = text.get(..length)?.as_bytes();
    let has_digit = word.iter().any(u8::is_ascii_digit);
    if !has_digit {
        return None;
    }
    if word.iter().all(u8::is_ascii_digit) {
        // A decimal or a version; a unit after it is a part of the pattern.
        while let Some(digits) = text.get(length..)?.strip_prefix('.').map(|rest| digit_count(rest.as_bytes()))
            && digits > 0
        {
            length += 1 + digits;
        }
        return Some((length, "<number>"));
    }
    let is_hexadecimal = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let is_prefixed = word.strip_prefix(b"0x").is_some_and(|digits| !digits.is_empty() && is_hexadecimal(digits));
    if is_prefixed || (word.len() >= HEXADECIMAL_LENGTH_MIN && is_hexadecimal(word)) {
        return Some((length, "<hex>"));
    }
    (word.len() >= IDENTIFIER_LENGTH_MIN).then_some((length, "<id>"))
}

fn digit_count(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of text in quotes. A name in quotes before a colon, as in JSON, is no value.
fn quoted(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    let (_, quote) = characters.next()?;
    while let Some((index, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote {
            let end = index + quote.len_utf8();
            let after = text.get(end..)?.chars().next();
            return after.is_none_or(|after| after != ':' && !after.is_alphanumeric()).then_some(end);
        }
    }
    None
}

fn uuid(bytes: &[u8]) -> Option<usize> {
    const LENGTH: usize = 36;
    let candidate = bytes.get(..LENGTH)?;
    let is_separator = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let fits = candidate.iter().enumerate().all(|(index, byte)| match is_separator(index) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    });
    let ends = bytes.get(LENGTH).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (fits && ends).then_some(LENGTH)
}

fn ip_address(text: &str) -> Option<usize> {
    ipv4_address(text.as_bytes()).or_else(|| {
        let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
        let length = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
        let candidate = text.get(..length)?.trim_end_matches(['.', ':']);
        let is_address = candidate.contains("::") || candidate.matches(':').count() == 7;
        (is_address && candidate.len() > 2 && candidate.parse::<Ipv6Addr>().is_ok()).then_some(candidate.len())
    })
}

/// An IPv4 address, with its port if there is one.
fn ipv4_address(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            length += usize::from(*bytes.get(length)? == b'.');
        }
        let digits = digit_count(bytes.get(length..)?);
        if !(1..=3).contains(&digits) {
            return None;
        }
        length += digits;
    }
    let dots = bytes.get(..length)?.iter().filter(|byte| **byte == b'.').count();
    let next = bytes.get(length).copied();
    let continues = bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
    match next {
        _ if dots != 3 => None,
        Some(byte) if byte.is_ascii_alphanumeric() || (byte == b'.' && continues) => None,
        Some(b':') if continues => Some(length + 1 + digit_count(bytes.get(length + 1..)?)),
        _ => Some(length),
    }
}

/// A date with or without a time of day, or a time of day with seconds.
fn time(bytes: &[u8]) -> Option<usize> {
    let date = matched(bytes, "dddd-dd-dd").or_else(|| matched(bytes, "dddd/dd/dd"));
    let access_log = matched(bytes, "dd/aaa/dddd:dd:dd:dd");
    let mut length = access_log.or(date).unwrap_or(0);
    let rest = bytes.get(length..)?;
    if date.is_some() {
        let clock = match rest.first() {
            Some(b'T' | b' ') => rest.get(1..).and_then(clock).map(|clock| clock + 1),
            _ => None,
        };
        length += clock.unwrap_or(0);
    } else if access_log.is_none() {
        length = clock(rest)?;
    }
    length += zone(bytes.get(length..)?);
    let is_end = bytes.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    is_end.then_some(length)
}

fn clock(bytes: &[u8]) -> Option<usize> {
    let length = matched(bytes, "dd:dd:dd")?;
    let rest = bytes.get(length..)?;
    let fraction = match rest.first() {
        Some(b'.' | b',') => rest.get(1..).map_or(0, digit_count),
        _ => 0,
    };
    Some(if fraction > 0 { length + 1 + fraction } else { length })
}

fn zone(bytes: &[u8]) -> usize {
    let forms = ["Z", "+dd:dd", "-dd:dd", "+dddd", "-dddd", " +dddd", " -dddd"];
    forms.iter().find_map(|form| matched(bytes, form)).unwrap_or(0)
}

/// The length of `form` if `bytes` begin with it: `d` is a digit, `a` a letter, and others are themselves.
fn matched(bytes: &[u8], form: &str) -> Option<usize> {
    let start = bytes.get(..form.len())?;
    let fits = start.iter().zip(form.bytes()).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        form => *byte == form,
    });
    fits.then_some(form.len())
}

/// The maximum number of patterns in an answer.
pub const PATTERNS_MAX: usize = 1_000;
/// The maximum number of patterns that are counted.
const COUNTED_PATTERNS_MAX: usize = 4_000;

/// Messages grouped by their pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPatterns {
    /// The patterns with the most messages first, then in the order of their text.
    pub patterns: Vec<LogPattern>,
    /// The number of patterns that were counted and are not in `patterns`.
    pub left_out_patterns: u64,
    /// The number of messages that have one of them.
    pub left_out_rows: u64,
    /// The number of messages whose pattern was not counted, because there are too many patterns.
    pub uncounted_rows: u64,
}

/// A pattern of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPattern {
    /// The text of the messages, with placeholders such as `<number>` for what varies.
    pub template: String,
    /// The number of messages.
    pub rows: u64,
    /// The time of the first and the last message in nanoseconds UTC; `None` if none has a time.
    pub times: Option<(i64, i64)>,
}

impl LogPatterns {
    /// Leaves out all but the first `patterns_max` patterns.
    pub fn shorten(&mut self, patterns_max: usize) {
        let left_out = self.patterns.split_off(patterns_max.min(self.patterns.len()));
        self.left_out_patterns += left_out.len() as u64;
        self.left_out_rows += left_out.iter().map(|pattern| pattern.rows).sum::<u64>();
    }
}

impl LogPattern {
    fn add(&mut self, rows: u64, times: Option<(i64, i64)>) {
        self.rows += rows;
        self.times = match (self.times, times) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (one, other) => one.or(other),
        };
    }
}

/// Groups messages by their pattern.
#[derive(Debug, Default)]
pub(super) struct PatternCollector {
    patterns: Vec<LogPattern>,
    index_of: HashMap<Box<str>, usize, RandomState>,
    /// Merged patterns by the token in which their members differ.
    merged: HashMap<TokenGap, usize, RandomState>,
    uncounted_rows: u64,
    is_full: bool,
    buffer: String,
}

impl PatternCollector {
    /// Adds a message with its time in nanoseconds UTC.
    pub(super) fn add(&mut self, message: &str, time: Option<i64>) {
        let times = time.map(|time| (time, time));
        let mut template = std::mem::take(&mut self.buffer);
        write_template(message, &mut template);
        match self.index(&template).and_then(|index| self.patterns.get_mut(index)) {
            Some(pattern) => pattern.add(1, times),
            None => self.uncounted_rows += 1,
        }
        self.buffer = template;
    }

    fn index(&mut self, template: &str) -> Option<usize> {
        if let Some(index) = self.known_index(template) {
            return Some(index);
        }
        if self.patterns.len() >= COUNTED_PATTERNS_MAX && !self.is_full {
            self.merge();
            if let Some(index) = self.known_index(template) {
                return Some(index);
            }
            // Merging again for each further pattern would cost more than it finds.
            self.is_full = self.patterns.len() > COUNTED_PATTERNS_MAX / 2;
        }
        if self.is_full && self.patterns.len() >= COUNTED_PATTERNS_MAX {
            return None;
        }
        self.index_of.insert(template.into(), self.patterns.len());
        self.patterns.push(LogPattern { template: template.to_owned(), rows: 0, times: None });
        Some(self.patterns.len() - 1)
    }

    fn known_index(&self, template: &str) -> Option<usize> {
        if let Some(index) = self.index_of.get(template) {
            return Some(*index);
        }
        if self.merged.is_empty() {
            return None;
        }
        let candidates = token_gaps(template).into_iter().filter_map(|gap| Some((gap, *self.merged.get(&gap)?)));
        candidates
            .filter(|(gap, index)| {
                self.patterns.get(*index).is_some_and(|pattern| gap.replace_in(template) == pattern.template)
            })
            .map(|(_, index)| index)
            .next()
    }

    /// Joins patterns that differ in one token.
    fn merge(&mut self) {
        let templates: Vec<&str> = self.patterns.iter().map(|pattern| pattern.template.as_str()).collect();
        let groups = merge_groups(&templates);
        if groups.is_empty() {
            return;
        }
        let mut patterns: Vec<Option<LogPattern>> = std::mem::take(&mut self.patterns).into_iter().map(Some).collect();
        let mut gaps = Vec::new();
        for (template, gap, members) in groups {
            let mut members = members.into_iter().filter_map(|member| patterns.get_mut(member)?.take());
            let Some(mut pattern) = members.next() else { continue };
            members.for_each(|member| pattern.add(member.rows, member.times));
            pattern.template = template;
            gaps.push((gap, self.patterns.len()));
            self.patterns.push(pattern);
        }
        let earlier: HashMap<usize, TokenGap> = self.merged.drain().map(|(gap, index)| (index, gap)).collect();
        for (old, pattern) in patterns.into_iter().enumerate() {
            let Some(pattern) = pattern else { continue };
            gaps.extend(earlier.get(&old).map(|gap| (*gap, self.patterns.len())));
            self.patterns.push(pattern);
        }
        self.merged.extend(gaps);
        let indexes = self.patterns.iter().enumerate();
        self.index_of = indexes.map(|(index, pattern)| (pattern.template.as_str().into(), index)).collect();
    }

    pub(super) fn finish(mut self, patterns_max: usize) -> LogPatterns {
        self.merge();
        let mut patterns = self.patterns;
        patterns
            .sort_unstable_by(|one, other| other.rows.cmp(&one.rows).then_with(|| one.template.cmp(&other.template)));
        let mut answer = LogPatterns { patterns, uncounted_rows: self.uncounted_rows, ..LogPatterns::default() };
        answer.shorten(patterns_max);
        answer
    }
}

/// The placeholder of a token in which patterns differ.
const ANY_TOKEN: &str = "<any>";
/// The number of patterns that must differ in the same token. Fewer are more likely a few cases of their own, such as
/// `opened` and `closed`.
const MERGED_PATTERNS_MIN: usize = 5;
/// Patterns with fewer tokens have too little in common without one of them.
const TOKENS_MIN: usize = 3;
/// The number of tokens at the start of a pattern in which it may differ.
const TOKENS_MAX: usize = 64;

/// A token of a pattern that may differ: the number of tokens, its index, and a hash of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TokenGap {
    tokens: usize,
    index: usize,
    others: u64,
}

/// The gaps of a pattern.
fn token_gaps(template: &str) -> Vec<TokenGap> {
    let tokens: Vec<&str> = template.split(' ').collect();
    if tokens.len() < TOKENS_MIN {
        return Vec::new();
    }
    let state = FixedState::with_seed(0);
    let hashes: Vec<u64> = tokens.iter().enumerate().map(|(index, token)| state.hash_one((index, token))).collect();
    let all = hashes.iter().fold(0u64, |sum, hash| sum.wrapping_add(*hash));
    let gap = |(index, hash): (usize, &u64)| TokenGap { tokens: tokens.len(), index, others: all.wrapping_sub(*hash) };
    hashes.iter().enumerate().take(TOKENS_MAX).map(gap).collect()
}

impl TokenGap {
    /// The pattern with a placeholder instead of the token.
    fn replace_in(&self, template: &str) -> String {
        let tokens = template.split(' ').enumerate();
        let tokens: Vec<&str> =
            tokens.map(|(index, token)| if index == self.index { ANY_TOKEN } else { token }).collect();
        tokens.join(" ")
    }
}

/// Groups of patterns that become one, each with the pattern that it becomes. A pattern is in one group at most.
fn merge_groups(templates: &[&str]) -> Vec<(String, TokenGap, Vec<usize>)> {
    let mut members: HashMap<TokenGap, Vec<usize>, RandomState> = HashMap::default();
    for (index, template) in templates.iter().enumerate() {
        for gap in token_gaps(template) {
            members.entry(gap).or_default().push(index);
        }
    }
    let mut groups: Vec<(TokenGap, Vec<usize>)> =
        members.into_iter().filter(|(_, members)| members.len() >= MERGED_PATTERNS_MIN).collect();
    // The largest first; the rest of the order only makes the result the same each time.
    groups.sort_unstable_by_key(|(gap, members)| (usize::MAX - members.len(), gap.index, members.first().copied()));
    let mut is_merged = vec![false; templates.len()];
    let mut merged = Vec::new();
    for (gap, members) in groups {
        let is_open = |member: &usize| is_merged.get(*member) == Some(&false);
        let mut open = members.into_iter().filter(is_open);
        let Some(first) = open.next() else { continue };
        let text = templates.get(first).map(|template| gap.replace_in(template)).unwrap_or_default();
        // Equal hashes do not prove equal tokens.
        let is_equal = |member: &usize| templates.get(*member).is_some_and(|other| gap.replace_in(other) == text);
        let group: Vec<usize> = std::iter::once(first).chain(open.filter(is_equal)).collect();
        if group.len() < MERGED_PATTERNS_MIN {
            continue;
        }
        for member in &group {
            if let Some(place) = is_merged.get_mut(*member) {
                *place = true;
            }
        }
        merged.push((text, gap, group));
    }
    merged
}

/// Whether `template`, in which [`ANY_TOKEN`] stands for any token, covers `other`.
fn covers(template: &str, other: &str) -> bool {
    let (mut tokens, mut others) = (template.split(' '), other.split(' '));
    loop {
        match (tokens.next(), others.next()) {
            (None, None) => return true,
            (Some(token), Some(other)) if token == other || token == ANY_TOKEN => {}
            _ => return false,
        }
    }
}

/// A pattern is more frequent from this factor on.
const FACTOR_MIN: f64 = 2.0;
/// Fewer messages are too few to compare.
const ROWS_MIN: u64 = 10;

/// How a pattern changed from the baseline to the window.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternChange {
    /// The pattern, with the numbers of the window.
    pub pattern: LogPattern,
    /// The number of messages in the baseline.
    pub baseline_rows: u64,
    /// How many times more messages there are; `None` if the pattern is new.
    pub factor: Option<f64>,
    /// Whether a new pattern may be among the messages of the baseline that were not counted.
    pub is_uncertain: bool,
}

/// The patterns of `window` that are new, and those that are at least twice as frequent as in `baseline`: new ones first,
/// then those with the largest factor. What a baseline left out counts as absent, so that it should leave out nothing.
pub fn compare_patterns(window: &LogPatterns, baseline: &LogPatterns) -> Vec<PatternChange> {
    let known: HashMap<&str, u64> =
        baseline.patterns.iter().map(|pattern| (pattern.template.as_str(), pattern.rows)).collect();
    let has_gap = |pattern: &&LogPattern| pattern.template.contains(ANY_TOKEN);
    let merged: Vec<&LogPattern> = baseline.patterns.iter().filter(has_gap).collect();
    let is_uncertain = baseline.uncounted_rows > 0 || baseline.left_out_rows > 0;
    let mut changes: Vec<PatternChange> = Vec::new();
    for pattern in &window.patterns {
        let template = pattern.template.as_str();
        let exact = known.get(template).copied();
        let covering = || merged.iter().find(|other| covers(&other.template, template)).map(|other| other.rows);
        // A pattern that was merged in the window only: the messages of the baseline that it covers.
        let covered = || -> u64 {
            let others = baseline.patterns.iter();
            others.filter(|other| covers(template, &other.template)).map(|other| other.rows).sum()
        };
        let mut rows = exact.or_else(covering).unwrap_or(0);
        if rows == 0 && template.contains(ANY_TOKEN) {
            rows = covered();
        }
        let factor = (rows > 0).then(|| pattern.rows as f64 / rows as f64);
        let is_change = factor.is_none_or(|factor| factor >= FACTOR_MIN && pattern.rows >= ROWS_MIN);
        if is_change {
            let is_uncertain = is_uncertain && factor.is_none();
            changes.push(PatternChange { pattern: pattern.clone(), baseline_rows: rows, factor, is_uncertain });
        }
    }
    changes.sort_by(|one, other| {
        let factor = |change: &PatternChange| change.factor.unwrap_or(f64::INFINITY);
        factor(other).total_cmp(&factor(one)).then_with(|| other.pattern.rows.cmp(&one.pattern.rows))
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(message: &str) -> String {
        let mut out = String::new();
        write_template(message, &mut out);
        out
    }

    #[test]
    fn what_varies_becomes_a_placeholder() {
        let check = |message: &str, expected: &str| assert_eq!(template(message), expected, "{message}");
        check("took 12ms, 3.5 of 10", "took <number>ms, <number> of <number>");
        check("user 550e8400-e29b-41d4-a716-446655440000 gone", "user <uuid> gone");
        check("from 10.0.0.1:8080 to [2001:db8::1]", "from <ip> to [<ip>]");
        check("at 0xdeadbeef and 5f3a9c01", "at <hex> and <hex>");
        check("2026-03-01T12:30:00.123Z start", "<time> start");
        check("2026-03-01 12:30:00,5 +0100 start 12:30:01", "<time> start <time>");
        check("[01/Mar/2026:12:30:00 +0000]", "[<time>]");
        check("open \"a b\" failed: 'x'", "open <string> failed: <string>");
        check("GET /users/42/orders?id=7", "GET /users/<number>/orders?id=<number>");
        check("worker-3 on eth0", "worker-<number> on eth<number>");
        check("token AKIAIOSFODNN7EXAMPLE0", "token <id>");
        check("can't open the file", "can't open the file");
        check("{\"level\":\"info\"}", "{\"level\":<string>}");
        check("first\nsecond", "first");
        check("deadline feedface", "deadline feedface");
        check("größe 5", "größe <number>");
        check("10.0.0.256.1 1.2.3", "<number> <number>");
        check("", "");
    }

    proptest::proptest! {
        #[test]
        fn no_message_panics(message in ".{0,60}", repeated in 0usize..40) {
            template(&message);
            template(&message.repeat(repeated));
        }
    }

    fn collect(messages: impl IntoIterator<Item = String>) -> LogPatterns {
        let mut collector = PatternCollector::default();
        for (time, message) in (0..).zip(messages) {
            collector.add(&message, Some(time));
        }
        collector.finish(10)
    }

    #[test]
    fn messages_with_one_pattern_are_counted_together() {
        let patterns = collect((0..4).map(|number| format!("job {number} done")));
        let expected = LogPattern { template: "job <number> done".to_owned(), rows: 4, times: Some((0, 3)) };
        assert_eq!(patterns.patterns, [expected]);
    }

    #[test]
    fn names_in_one_token_are_merged() {
        let names = ["ann", "bob", "cy", "dee", "eve"];
        let patterns = collect(names.iter().map(|name| format!("user {name} signed in")));
        assert_eq!(patterns.patterns.len(), 1);
        assert_eq!(patterns.patterns[0].template, "user <any> signed in");
        assert_eq!(patterns.patterns[0].rows, 5);
        let few = collect(["connection was opened", "connection was closed"].map(str::to_owned));
        assert_eq!(few.patterns.len(), 2);
    }

    #[test]
    fn too_many_patterns_are_counted_as_one_number() {
        let letters = |number: u32| -> String { number.to_string().bytes().map(|b| char::from(b + 49)).collect() };
        let unlike = (0..10_000).map(|number| format!("{}{} x {}", letters(number), letters(number), letters(number)));
        let patterns = collect(unlike);
        let counted: u64 = patterns.patterns.iter().map(|pattern| pattern.rows).sum();
        assert_eq!(counted + patterns.left_out_rows + patterns.uncounted_rows, 10_000);
        assert!(patterns.uncounted_rows > 0);
        // Names that vary without end are merged when there are too many patterns, and then recognized.
        let names = collect((0..10_000).map(|number| format!("user {} signed in", letters(number))));
        assert_eq!((names.patterns.len(), names.patterns[0].rows, names.uncounted_rows), (1, 10_000, 0));
    }

    fn patterns(rows: &[(&str, u64)]) -> LogPatterns {
        let pattern =
            |(template, rows): &(&str, u64)| LogPattern { template: (*template).to_owned(), rows: *rows, times: None };
        LogPatterns { patterns: rows.iter().map(pattern).collect(), ..LogPatterns::default() }
    }

    #[test]
    fn new_and_more_frequent_patterns_are_changes() {
        let window = patterns(&[("disk full", 3), ("timeout <number>", 40), ("ok", 100), ("user bob left now", 20)]);
        let baseline = patterns(&[("timeout <number>", 2), ("ok", 100), ("user <any> left now", 2)]);
        let changes = compare_patterns(&window, &baseline);
        let found: Vec<_> = changes.iter().map(|change| (change.pattern.template.as_str(), change.factor)).collect();
        let expected = [("disk full", None), ("timeout <number>", Some(20.0)), ("user bob left now", Some(10.0))];
        assert_eq!(found, expected);
        assert!(!changes[0].is_uncertain);
    }
}
