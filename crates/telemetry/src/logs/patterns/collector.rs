//! Counts messages by their pattern, in bounded memory.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::merge::{TokenGap, merge_groups, token_gaps};
use super::template::write_template;

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
pub(in crate::logs) struct PatternCollector {
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
    pub(in crate::logs) fn add(&mut self, message: &str, time: Option<i64>) {
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

    pub(in crate::logs) fn finish(mut self, patterns_max: usize) -> LogPatterns {
        self.merge();
        let mut patterns = self.patterns;
        patterns
            .sort_unstable_by(|one, other| other.rows.cmp(&one.rows).then_with(|| one.template.cmp(&other.template)));
        let mut answer = LogPatterns { patterns, uncounted_rows: self.uncounted_rows, ..LogPatterns::default() };
        answer.shorten(patterns_max);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
