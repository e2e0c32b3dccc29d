//! Patterns: a regular expression whose named groups are the columns, and the types of the groups.
//!
//! Of a group with the name of a time, it is found whether its values are times, and whether a date stands beside a time of
//! day.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};
use thiserror::Error;
use tidegate_core::suggestion;

use crate::column::{EntryColumn, EntryColumnRole, EntryColumnType, RecognizedRoles, is_time_name, recognize_roles};
use crate::entry::{EntryFields, Misfit, Piece, Slot};
use crate::parse::EntryText;
use crate::schema::is_reserved_name;
use crate::time::{EntryTimeFormat, FoundTimeForm, TimeContext, TimeFormatError, TimeResolver, find_time_form};

/// The maximum number of named groups.
const GROUPS_MAX: usize = 200;
/// The maximum size of a compiled pattern, and of the tables that its use builds.
const COMPILED_BYTES_MAX: usize = 4 << 20;
/// How much of a wrong pattern an error quotes.
const EXCERPT_CHARACTERS: usize = 30;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LinePatternError {
    /// The regular expression has a wrong form.
    #[error("the pattern is wrong at character {position}, near \"{excerpt}\": {reason}")]
    Syntax {
        /// The position of the wrong part, counted from 1.
        position: usize,
        /// The part of the pattern that begins there.
        excerpt: String,
        /// What is wrong.
        reason: String,
    },
    /// The regular expression needs too much memory.
    #[error("the pattern is too large when compiled: more than {COMPILED_BYTES_MAX} bytes; use smaller repetitions")]
    TooLarge,
    /// Without named groups there are no columns.
    #[error("the pattern has no named group, such as (?<message>.*)")]
    NoGroups,
    /// There are too many named groups.
    #[error("the pattern has more than {GROUPS_MAX} named groups")]
    TooManyGroups,
    /// Two groups have the same name after their suffixes are removed.
    #[error("two groups of the pattern make the column \"{0}\"")]
    DuplicateName(String),
    /// The name belongs to a column that every file has.
    #[error("a group of the pattern has the name \"{0}\", which every log file has as a column")]
    ReservedName(String),
    /// A type is declared for a group that does not exist.
    #[error("a type is declared for the group \"{name}\", which the pattern does not have{suggestion}")]
    UnknownGroup {
        /// The name as it was declared.
        name: String,
        /// A sentence part with the nearest name, or empty.
        suggestion: String,
    },
}

/// A regular expression with named groups, and their types.
#[derive(Debug, Clone)]
pub struct LinePattern {
    regex: Regex,
    groups: Vec<Group>,
    columns: Vec<EntryColumn>,
    /// Pairs of columns of which the group of the first contains that of the second.
    nested_columns: Vec<(usize, usize)>,
    message_column: Option<usize>,
    dated_time: Option<DatedTime>,
    unread_time: Option<UnreadTime>,
}

#[derive(Debug, Clone)]
struct Group {
    capture: usize,
    group_type: PatternGroupType,
    /// Whether only the name of the group says that it is a time.
    is_guessed: bool,
}

impl LinePattern {
    /// Compiles a pattern. The type of a group is the declared one; else that of the suffix of its name (`__text`,
    /// `__int`, `__float`, `__bool`, `__time`), which is not part of the column's name; else a time in any usual form
    /// if the name is that of a time, such as `time` or `ts`; else text. Beside a group `date`, the text of a group `time`
    /// that is no time by itself follows that of the date.
    ///
    /// The pattern may match anywhere in the first line of an entry: write `^` and `$` to bind it.
    ///
    /// # Errors
    ///
    /// If the pattern cannot be compiled, with the position; if a name is reserved, unknown or occurs twice.
    pub fn new(pattern: &str, declared: &[DeclaredGroup]) -> Result<Self, LinePatternError> {
        let (regex, expression) = compile(pattern)?;
        let mut groups = Vec::new();
        let mut columns: Vec<EntryColumn> = Vec::new();
        for (capture, group_name) in regex.capture_names().enumerate() {
            let Some(group_name) = group_name else { continue };
            let (name, of_suffix) = split_suffix(group_name);
            let of_declaration = declared.iter().find(|group| group.name == name).map(|group| group.group_type.clone());
            let declared_type = of_declaration.or(of_suffix);
            let is_guessed = declared_type.is_none() && is_time_name(name);
            let of_name = || if is_guessed { time_in_any_form() } else { PatternGroupType::Text };
            let group_type = declared_type.unwrap_or_else(of_name);
            if groups.len() >= GROUPS_MAX {
                return Err(LinePatternError::TooManyGroups);
            }
            if columns.iter().any(|column| column.name == name) {
                return Err(LinePatternError::DuplicateName(name.to_owned()));
            }
            if is_reserved_name(name) {
                return Err(LinePatternError::ReservedName(name.to_owned()));
            }
            columns.push(EntryColumn::new(name, group_type.column_type(), EntryColumnRole::Field));
            groups.push(Group { capture, group_type, is_guessed });
        }
        if groups.is_empty() {
            return Err(LinePatternError::NoGroups);
        }
        if let Some(unknown) = declared.iter().find(|group| columns.iter().all(|column| column.name != group.name)) {
            let names = columns.iter().map(|column| column.name.as_str());
            let suggestion = suggestion(&unknown.name, names);
            return Err(LinePatternError::UnknownGroup { name: unknown.name.clone(), suggestion });
        }
        let mut nested = Vec::new();
        collect_nested_groups(&expression, &mut Vec::new(), &mut nested);
        let column_of = |capture: usize| groups.iter().position(|group| group.capture == capture);
        let nested_columns =
            nested.into_iter().filter_map(|(outer, inner)| Some((column_of(outer)?, column_of(inner)?)));
        let dated_time = DatedTime::find(&columns);
        // Its time is that of the date, too.
        let nested_columns = nested_columns.chain(dated_time.map(|dated| (dated.time, dated.date))).collect();
        let message_column = set_roles(&mut columns).message;
        Ok(Self { regex, groups, columns, nested_columns, message_column, dated_time, unread_time: None })
    }

    /// The regular expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    pub(crate) fn columns(&self) -> &[EntryColumn] {
        &self.columns
    }

    /// Pairs of columns of which the first contains the second.
    pub(crate) fn nested_columns(&self) -> &[(usize, usize)] {
        &self.nested_columns
    }

    /// Whether a line begins an entry.
    pub(crate) fn matches(&self, line: &[u8]) -> bool {
        match std::str::from_utf8(line) {
            Ok(line) => self.regex.is_match(line),
            Err(_) => self.regex.is_match(&String::from_utf8_lossy(line)),
        }
    }

    pub(crate) fn parse(
        &self,
        text: EntryText<'_>,
        times: &mut TimeResolver,
        fields: &mut EntryFields,
    ) -> Result<(), Misfit> {
        let line = text.first_line;
        if self.regex.captures_read(fields.captures(&self.regex), line).is_none() {
            return Err(Misfit::NoMatch);
        }
        for (column, group) in self.groups.iter().enumerate() {
            let Some((start, end)) = fields.capture(group.capture) else { continue };
            let mut piece = Piece::of_text(start, end);
            if self.message_column == Some(column) && piece.ends_at(line.len()) {
                piece = piece.extended_to(text.end_of_message());
            }
            let content = line.get(start..end).unwrap_or_default();
            let value = group.group_type.value(piece, content, times);
            match value.or_else(|expected| self.time_with_date(column, line, times, fields).ok_or(expected)) {
                Ok(value) => fields.set(column, value),
                // Only the name says that it is a time, so that the entry keeps its other values.
                Err(_) if group.is_guessed => fields.mark_unread_time(column),
                Err(expected) => return Err(Misfit::ValueType { column, expected }),
            }
        }
        Ok(())
    }

    /// The text of a group where the last match found it.
    fn captured<'t>(&self, column: usize, line: &'t str, fields: &EntryFields) -> Option<&'t str> {
        let (start, end) = fields.capture(self.groups.get(column)?.capture)?;
        line.get(start..end)
    }
}

fn set_roles(columns: &mut [EntryColumn]) -> RecognizedRoles {
    let described: Vec<_> = columns.iter().map(|column| (column.name.as_str(), column.column_type)).collect();
    let roles = recognize_roles(&described);
    columns.iter_mut().for_each(|column| column.role = EntryColumnRole::Field);
    for (index, role) in roles.in_order() {
        // An integer that may be a time has no zone and no unit here, so that only declared times have the role.
        let column = columns.get_mut(index);
        let column =
            column.filter(|column| role != EntryColumnRole::Time || column.column_type == EntryColumnType::Timestamp);
        if let Some(column) = column {
            column.role = role;
        }
    }
    roles
}

fn time_in_any_form() -> PatternGroupType {
    PatternGroupType::Time(EntryTimeFormat::any())
}

fn split_suffix(name: &str) -> (&str, Option<PatternGroupType>) {
    let Some((column, suffix)) = name.rsplit_once("__").filter(|(column, _)| !column.is_empty()) else {
        return (name, None);
    };
    match PatternGroupType::from_name(suffix, None) {
        Ok(group_type) => (column, Some(group_type)),
        Err(_) => (name, None),
    }
}

fn compile(pattern: &str) -> Result<(Regex, Hir), LinePatternError> {
    let expression = regex_syntax::parse(pattern).map_err(|error| syntax_error(pattern, &error))?;
    let regex = RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|_| LinePatternError::TooLarge)?;
    Ok((regex, expression))
}

fn syntax_error(pattern: &str, error: &regex_syntax::Error) -> LinePatternError {
    let (offset, reason) = match error {
        regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
        regex_syntax::Error::Translate(error) => (error.span().start.offset, error.kind().to_string()),
        other => (0, other.to_string()),
    };
    let before = pattern.get(..offset).unwrap_or_default();
    let excerpt = pattern.get(offset..).unwrap_or_default().chars().take(EXCERPT_CHARACTERS).collect();
    LinePatternError::Syntax { position: before.chars().count() + 1, excerpt, reason }
}

/// Adds the pairs of groups in `expression` of which the first contains the second. `outer` are the groups around it.
fn collect_nested_groups(expression: &Hir, outer: &mut Vec<usize>, nested: &mut Vec<(usize, usize)>) {
    let group = match expression.kind() {
        HirKind::Capture(capture) => Some(capture.index as usize),
        _ => None,
    };
    if let Some(inner) = group {
        nested.extend(outer.iter().map(|outer| (*outer, inner)));
        outer.push(inner);
    }
    for part in expression.kind().subs() {
        collect_nested_groups(part, outer, nested);
    }
    if group.is_some() {
        outer.pop();
    }
}

/// The type of a group of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternGroupType {
    /// The text as it is.
    Text,
    /// A signed integer.
    Integer,
    /// A floating-point number.
    Float,
    /// `true` or `false`.
    Boolean,
    /// A time in this form.
    Time(EntryTimeFormat),
}

/// The names of the types of groups, as the configuration writes them.
const GROUP_TYPE_NAMES: [&str; 5] = ["text", "integer", "float", "boolean", "time"];

/// A declared type of a group that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternGroupTypeError {
    /// No type has this name.
    #[error("unknown type \"{name}\"{suggestion}; the types are {}", GROUP_TYPE_NAMES.join(", "))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// A sentence part with the nearest name, or empty.
        suggestion: String,
    },
    /// Only times have a format.
    #[error("the type \"{0}\" has no format; only \"time\" has one")]
    UnexpectedFormat(String),
    /// The format of a time is wrong.
    #[error(transparent)]
    TimeFormat(#[from] TimeFormatError),
}

/// A group of a pattern whose type is declared beside the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredGroup {
    /// The name of the column: the name of the group without its suffix.
    pub name: String,
    /// The type.
    pub group_type: PatternGroupType,
}

impl PatternGroupType {
    /// The type with this name: `text`, `integer` (`int`), `float`, `boolean` (`bool`) or `time`. A time may have a format,
    /// see [`EntryTimeFormat::parse`]; without it, the usual forms are recognised.
    ///
    /// # Errors
    ///
    /// If the name is unknown, with the nearest name; if the format is wrong, with the position.
    pub fn from_name(name: &str, time_format: Option<&str>) -> Result<Self, PatternGroupTypeError> {
        let group_type = match name {
            "text" => Self::Text,
            "int" | "integer" => Self::Integer,
            "float" => Self::Float,
            "bool" | "boolean" => Self::Boolean,
            "time" => Self::Time(time_format.map_or_else(|| Ok(EntryTimeFormat::any()), EntryTimeFormat::parse)?),
            _ => {
                let suggestion = suggestion(name, GROUP_TYPE_NAMES);
                return Err(PatternGroupTypeError::Unknown { name: name.to_owned(), suggestion });
            }
        };
        if time_format.is_some() && !matches!(group_type, Self::Time(_)) {
            return Err(PatternGroupTypeError::UnexpectedFormat(name.to_owned()));
        }
        Ok(group_type)
    }

    fn column_type(&self) -> EntryColumnType {
        match self {
            Self::Text => EntryColumnType::Text,
            Self::Integer => EntryColumnType::Integer,
            Self::Float => EntryColumnType::Float,
            Self::Boolean => EntryColumnType::Boolean,
            Self::Time(_) => EntryColumnType::Timestamp,
        }
    }

    /// The value of `content`. Of a type other than text, nothing and `-` are null.
    fn value(&self, piece: Piece, content: &str, times: &mut TimeResolver) -> Result<Slot, &'static str> {
        if *self == Self::Text {
            return Ok(Slot::Text(piece));
        }
        let content = content.trim();
        if content.is_empty() || content == "-" {
            return Ok(Slot::Null);
        }
        match self {
            Self::Text => Ok(Slot::Text(piece)),
            Self::Integer => content.parse().map(Slot::Integer).map_err(|_| "an integer"),
            Self::Float => content.parse().map(Slot::Float).map_err(|_| "a number"),
            Self::Boolean => content.to_ascii_lowercase().parse().map(Slot::Boolean).map_err(|_| "true or false"),
            Self::Time(format) => {
                times.formatted_time(content, format).map(Slot::Timestamp).ok_or("a time in the declared form")
            }
        }
    }
}

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
struct DatedTime {
    date: usize,
    time: usize,
}

impl DatedTime {
    fn find(columns: &[EntryColumn]) -> Option<Self> {
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
    fn time_with_date(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(pattern: &str, declared: &[DeclaredGroup]) -> String {
        LinePattern::new(pattern, declared).expect_err("an error").to_string()
    }

    #[test]
    fn errors_say_where_and_what() {
        assert_eq!(
            error("^(?<a>x) (?<b>[y", &[]),
            "the pattern is wrong at character 15, near \"[y\": unclosed character class"
        );
        assert_eq!(error("^ab$", &[]), "the pattern has no named group, such as (?<message>.*)");
        assert_eq!(error("(?<a>x)(?<a__int>y)", &[]), "two groups of the pattern make the column \"a\"");
        assert!(error("(?<entry_text>x)", &[]).contains("every log file has"));
        assert!(error("(?<a>(x{1000}){1000})", &[]).contains("too large"));
        let declared = DeclaredGroup { name: "statos".to_owned(), group_type: PatternGroupType::Integer };
        assert_eq!(
            error("(?<status>x)", &[declared]),
            "a type is declared for the group \"statos\", which the pattern does not have; did you mean \"status\"?"
        );
    }

    #[test]
    fn types_come_from_the_declaration_the_suffix_or_the_name() {
        let declared = DeclaredGroup { name: "took".to_owned(), group_type: PatternGroupType::Float };
        let pattern = LinePattern::new(r"(?<ts>\S+) (?<took>\S+) (?<code__int>\d+) (?<msg>.*)", &[declared]);
        let columns = pattern.expect("a pattern").columns().to_vec();
        let described: Vec<_> =
            columns.iter().map(|column| (column.name.as_str(), column.column_type, column.role)).collect();
        use EntryColumnRole::{Field, Message, Time};
        use EntryColumnType::{Float, Integer, Text, Timestamp};
        let expected =
            [("ts", Timestamp, Time), ("took", Float, Field), ("code", Integer, Field), ("msg", Text, Message)];
        assert_eq!(described, expected);
    }

    #[test]
    fn names_of_types() {
        let error = |name, format| PatternGroupType::from_name(name, format).expect_err("an error").to_string();
        assert_eq!(
            error("flaot", None),
            "unknown type \"flaot\"; did you mean \"float\"?; the types are text, integer, float, boolean, time"
        );
        assert_eq!(error("text", Some("%F")), "the type \"text\" has no format; only \"time\" has one");
        assert!(error("time", Some("%F %Q")).contains("at character 4"));
        assert!(matches!(PatternGroupType::from_name("time", Some("%F")), Ok(PatternGroupType::Time(_))));
    }
}
