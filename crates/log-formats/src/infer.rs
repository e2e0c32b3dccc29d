//! Columns for the members of entries, inferred from a sample.

use std::collections::HashMap;
use std::sync::Arc;

use crate::column::EntryColumnType;
use crate::entry::{ParsedEntry, Slot};
use crate::reader::{EndOfInput, LogFileReader};
use crate::roles::is_time_name;
use crate::schema::EntrySchema;
use crate::time::{EPOCH_SECONDS_MIN, TimeContext, TimeResolver};
use crate::value_types::{is_integer, is_json_number};

/// The maximum number of columns for members. The most frequent members get them.
pub(crate) const MEMBER_COLUMNS_MAX: usize = 200;
/// The maximum number of names that are counted.
const NAMES_MAX: usize = 5_000;
/// Longer names get no column.
const NAME_BYTES_MAX: usize = 128;

/// What the values of one member were.
#[derive(Debug, Default)]
struct ObservedMember {
    name: String,
    /// Whether the name is usual for a time.
    is_time: bool,
    entries: usize,
    has_integer: bool,
    has_float: bool,
    has_boolean: bool,
    has_time: bool,
    has_text: bool,
    /// Numbers that are too small for times since 1970.
    has_small_number: bool,
}

/// The names and types of the members that get columns, in the order in which they first occur.
pub(crate) fn infer_members(
    schema: &EntrySchema,
    samples: &[&[u8]],
    context: &TimeContext,
) -> Vec<(String, EntryColumnType)> {
    let times = TimeResolver::new(context.clone());
    let mut observed = Observations { times, members: Vec::new(), by_name: HashMap::new() };
    let schema = Arc::new(schema.clone());
    for sample in samples {
        let mut reader = LogFileReader::new(schema.clone(), context.clone());
        reader.push(sample, |entry| observed.observe(entry));
        reader.finish(EndOfInput::Complete, |entry| observed.observe(entry));
    }
    let mut order: Vec<usize> = (0..observed.members.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(observed.members.get(*index).map_or(0, |member| member.entries)));
    order.truncate(MEMBER_COLUMNS_MAX);
    order.sort_unstable();
    order.into_iter().filter_map(|index| observed.members.get(index)).map(ObservedMember::column).collect()
}

struct Observations {
    times: TimeResolver,
    members: Vec<ObservedMember>,
    by_name: HashMap<String, usize>,
}

impl Observations {
    fn observe(&mut self, entry: &ParsedEntry<'_>) {
        if !entry.fits() {
            return;
        }
        for index in 0..entry.fields.members() {
            let Some(member) = entry.fields.member(index) else { break };
            let name = entry.fields.resolve(member.name, entry.text);
            let Some(index) = self.index(name) else { continue };
            let Some(observed) = self.members.get_mut(index) else { continue };
            observed.entries += 1;
            match member.value {
                Slot::Null => {}
                Slot::Boolean(_) => observed.has_boolean = true,
                Slot::Number(piece) => observed.observe_word(entry.fields.resolve(piece, entry.text), &mut self.times),
                Slot::Text(piece) => observed.observe_text(entry.fields.resolve(piece, entry.text), &mut self.times),
                Slot::Json(_) | Slot::Integer(_) | Slot::Float(_) | Slot::Timestamp(_) => observed.has_text = true,
            }
        }
    }

    fn index(&mut self, name: &str) -> Option<usize> {
        if let Some(index) = self.by_name.get(name) {
            return Some(*index);
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX || self.members.len() >= NAMES_MAX {
            return None;
        }
        let is_time = is_time_name(name);
        self.members.push(ObservedMember { name: name.to_owned(), is_time, ..ObservedMember::default() });
        self.by_name.insert(name.to_owned(), self.members.len() - 1);
        Some(self.members.len() - 1)
    }
}

impl ObservedMember {
    /// A number of JSON, or a word of logfmt.
    fn observe_word(&mut self, content: &str, times: &mut TimeResolver) {
        if is_json_number(content) {
            let is_small = content.parse::<f64>().is_ok_and(|number| number < EPOCH_SECONDS_MIN as f64);
            self.has_small_number |= is_small;
            if !is_integer(content) {
                self.has_float = true;
            } else if content.parse::<i64>().is_ok() {
                self.has_integer = true;
            } else {
                // An identifier would lose digits as a floating-point number.
                self.has_text = true;
            }
        } else if matches!(content, "true" | "false") {
            self.has_boolean = true;
        } else {
            self.observe_text(content, times);
        }
    }

    fn observe_text(&mut self, content: &str, times: &mut TimeResolver) {
        let is_time = if self.is_time { times.any_time(content) } else { times.whole_iso_time(content) };
        if is_time.is_some() { self.has_time = true } else { self.has_text = true }
    }

    fn column(&self) -> (String, EntryColumnType) {
        let has_number = self.has_integer || self.has_float;
        let column_type = match (self.has_time, has_number, self.has_boolean) {
            _ if self.has_text => EntryColumnType::Text,
            (true, false, false) => EntryColumnType::Timestamp,
            (_, true, false) if self.is_time && !self.has_small_number => EntryColumnType::Timestamp,
            (false, true, false) if self.has_float => EntryColumnType::Float,
            (false, true, false) => EntryColumnType::Integer,
            (false, false, true) => EntryColumnType::Boolean,
            _ => EntryColumnType::Text,
        };
        (self.name.clone(), column_type)
    }
}
