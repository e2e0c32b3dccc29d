//! Groups with the name of a time: whether their values are times, and a date that stands beside a time of day.

use std::sync::Arc;

use super::{LinePattern, PatternGroupType, set_roles};
use crate::column::{EntryColumn, EntryColumnRole, EntryColumnType};
use crate::entry::{EntryFields, Slot};
use crate::parse::EntryText;
use crate::time::{EntryTimeFormat, FoundTimeForm, TimeContext, TimeResolver, find_time_form};

/// From how many values the form of a time is found.
const EXAMPLES_MAX: usize = 200;

/// The time of entries that no group has, although one has the name of a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadTime {
    /// The name of the group.
    pub group: String,
    /// One of its values, after the date beside it.
    pub example: String,
    /// The type that reads all values of the sample, as the configuration declares it.
    pub declaration: Option<String>,
}

/// A group `time` beside a group `date`, as columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatedTime {
    pub(super) date: usize,
    pub(super) time: usize,
}

impl DatedTime {
    pub(super) fn find(columns: &[EntryColumn]) -> Option<Self> {
        let named = |name: &str| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let (date, time) = (named("date")?, named("time")?);
        let is_time = columns.get(time).is_some_and(|column| column.column_type == EntryColumnType::Timestamp);
        is_time.then_some(Self { date, time })
    }
}

/// The values of a group in a sample.
struct ObservedGroup {
    column: usize,
    times: usize,
    others: usize,
    /// The first of the values that are no times.
    examples: Vec<String>,
    /// The same after the date beside them, if there is one.
    dated_examples: Vec<String>,
}

impl ObservedGroup {
    fn new(column: usize) -> Self {
        Self { column, times: 0, others: 0, examples: Vec::new(), dated_examples: Vec::new() }
    }

    fn find_form(&self, context: &TimeContext) -> Option<FoundTimeForm> {
        find_time_form(&self.dated_examples, context).or_else(|| find_time_form(&self.examples, context))
    }
}

impl LinePattern {
    /// The group with the name of a time whose values are none in the sample, if the entries therefore have no time.
    #[must_use]
    pub fn unread_time(&self) -> Option<&UnreadTime> {
        self.unread_time.as_ref()
    }

    /// The time that the text of a column is after the date beside it.
    pub(super) fn time_with_date(
        &self,
        column: usize,
        line: &str,
        times: &mut TimeResolver,
        fields: &mut EntryFields,
    ) -> Option<Slot> {
        let dated = self.dated_time.filter(|dated| dated.time == column)?;
        let PatternGroupType::Time(format) = &self.groups.get(column)?.group_type else { return None };
        let date = self.captured(dated.date, line, fields)?.trim();
        let time = self.captured(dated.time, line, fields)?.trim();
        let both = fields.write_scratch(|scratch| scratch.extend([date, " ", time]));
        times.formatted_time(fields.resolve(both, line), format).map(Slot::Timestamp)
    }

    /// The same pattern, in which groups that only have the name of a time have the form of their values in `samples`. If
    /// most of them have no form, or two forms that are as probable, the group is text.
    pub(crate) fn fitted_to(self: &Arc<Self>, samples: &[&[u8]], context: &TimeContext) -> Arc<Self> {
        let observed = self.observe_times(samples, context);
        let unread: Vec<&ObservedGroup> = observed.iter().filter(|group| group.others > group.times).collect();
        if unread.is_empty() {
            return self.clone();
        }
        let mut fitted = Self::clone(self);
        for group in &unread {
            let found = group.find_form(context).filter(|found| found.is_certain);
            let format = found.and_then(|found| EntryTimeFormat::parse(found.form).ok());
            fitted.set_type(group.column, format.map_or(PatternGroupType::Text, PatternGroupType::Time));
        }
        fitted.message_column = set_roles(&mut fitted.columns).message;
        let has_time = fitted.columns.iter().any(|column| column.role == EntryColumnRole::Time);
        let meant = self.columns.iter().position(|column| column.role == EntryColumnRole::Time);
        let group = unread.iter().find(|group| Some(group.column) == meant).or(unread.first());
        fitted.unread_time = group.filter(|_| !has_time).map(|group| UnreadTime {
            group: self.columns.get(group.column).map(|column| column.name.clone()).unwrap_or_default(),
            example: group.dated_examples.first().or(group.examples.first()).cloned().unwrap_or_default(),
            declaration: group.find_form(context).map(|found| format!("time {}", found.form)),
        });
        Arc::new(fitted)
    }

    fn set_type(&mut self, column: usize, group_type: PatternGroupType) {
        if let (Some(group), Some(column)) = (self.groups.get_mut(column), self.columns.get_mut(column)) {
            column.column_type = group_type.column_type();
            group.group_type = group_type;
        }
    }

    fn observe_times(&self, samples: &[&[u8]], context: &TimeContext) -> Vec<ObservedGroup> {
        let guessed = self.groups.iter().enumerate().filter(|(_, group)| group.is_guessed);
        let mut observed: Vec<ObservedGroup> = guessed.map(|(column, _)| ObservedGroup::new(column)).collect();
        if observed.is_empty() {
            return observed;
        }
        let mut times = TimeResolver::new(context.clone());
        let mut fields = EntryFields::default();
        for line in samples.iter().flat_map(|sample| sample.split(|byte| *byte == b'\n')) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end_matches('\r');
            fields.reset(self.columns.len());
            if self.parse(EntryText::new(line), &mut times, &mut fields).is_err() {
                continue;
            }
            for group in &mut observed {
                let text = self.captured(group.column, line, &fields).map(str::trim);
                let Some(text) = text.filter(|text| !matches!(*text, "" | "-")) else { continue };
                if matches!(fields.slot(group.column), Slot::Timestamp(_)) {
                    group.times += 1;
                    continue;
                }
                group.others += 1;
                if group.examples.len() < EXAMPLES_MAX {
                    group.examples.push(text.to_owned());
                    let dated = self.dated_time.filter(|dated| dated.time == group.column);
                    let date = dated.and_then(|dated| self.captured(dated.date, line, &fields));
                    group.dated_examples.extend(date.map(|date| format!("{} {text}", date.trim())));
                }
            }
        }
        observed
    }
}
