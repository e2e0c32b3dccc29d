//! The columns, the time and the filters of a search as SQL that compares as the display forms of values do.
//!
//! Only types whose values the database distinguishes exactly as their display forms are distinguished have such an
//! expression. Floats have none: zero and negative zero are equal in SQL and have two display forms.
//!
//! In SQLite, times are texts or numbers. Texts of the same form are in the order of time. SQL compares the form of
//! most of the first rows; rows with another one are scanned. A table whose times all have one form is checked as a
//! whole, so that this need not be checked for each row again. What was found holds as long as the files of the
//! database do not change.
//!
//! The scan folds case as Unicode does; no database does the same. They agree on texts of ASCII. Rows with other texts
//! are therefore excluded from what a database counts, and scanned.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_query::{BoundExpression, ComparisonOperator, Operand, QueryCondition};
use tidegate_sql::{Parameter, SqlDialect};
use tidegate_telemetry::logs::{
    LogCondition, MISSING, NANOS_PER_SECOND, SelectedValues, TextPattern, TimeRange, format_time,
};

use super::{CountingError, ROWS, count_rows, counts};
use crate::log_sources::{ResolvedSource, SOURCE_FIELD, SourceSet};
use crate::log_tools::scan::{PUSHED_VALUES_MAX, SourceSearch};
use crate::source_columns::{FieldKind, NANOS_PER_MICROSECOND, SourceColumn};

/// An expression without values.
fn plain(text: impl Into<String>) -> QueryCondition {
    QueryCondition::Bound(BoundExpression { text: text.into(), values: Vec::new() })
}

/// A condition that is the same for each row.
pub(super) fn constant(is_true: bool) -> QueryCondition {
    plain(if is_true { "1 = 1" } else { "1 = 0" })
}

/// How the values of a column compare in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnForm {
    /// Text.
    Text,
    /// Integers and truth values: their text in SQL is their display form.
    Castable,
    /// Times. Their text in SQL is another than their display form.
    Moment,
    /// In SQLite, each value has a type of its own.
    Any,
}

/// A column with its expression.
#[derive(Debug, Clone)]
pub(super) struct ColumnSql {
    dialect: SqlDialect,
    /// The quoted name.
    pub(super) name: String,
    pub(super) form: ColumnForm,
}

impl ColumnSql {
    /// `None` if SQL may take different values for the same.
    pub(super) fn new(dialect: SqlDialect, column: &SourceColumn) -> Option<Self> {
        // Its comparisons follow the collation of the column.
        if dialect.is_mysql() {
            return None;
        }
        let form = if dialect.has_typed_columns() { typed_form(&column.type_name)? } else { ColumnForm::Any };
        Some(Self { dialect, name: dialect.quote_identifier(&column.name), form })
    }

    /// The column with the comparison of bytes, whatever the collation of the column is.
    pub(super) fn bytes(&self) -> String {
        match (self.dialect, self.form) {
            (SqlDialect::Postgres, ColumnForm::Text) => format!("{} COLLATE \"C\"", self.name),
            (SqlDialect::Sqlite, _) => format!("{} COLLATE BINARY", self.name),
            (SqlDialect::DataFusion | SqlDialect::Postgres | SqlDialect::MySql, _) => self.name.clone(),
        }
    }

    /// The display form where the value is not null; `None` if SQL cannot write it.
    fn display_text(&self) -> Option<String> {
        match self.form {
            ColumnForm::Text => Some(self.bytes()),
            ColumnForm::Castable => Some(format!("CAST({} AS text)", self.name)),
            ColumnForm::Any => Some(format!("CAST({} AS text) COLLATE BINARY", self.name)),
            ColumnForm::Moment => None,
        }
    }

    /// The further keys that distinguish groups of equal values.
    pub(super) fn type_key(&self) -> Option<String> {
        (self.form == ColumnForm::Any).then(|| format!("typeof({})", self.name))
    }

    /// The rows whose value [`Self::display_text`] writes as its display form.
    fn has_display_text(&self) -> Option<QueryCondition> {
        (self.form == ColumnForm::Any).then(|| plain(format!("typeof({}) IN ('null', 'integer', 'text')", self.name)))
    }

    /// The rows whose value is in the same group as all rows with the same display form.
    pub(super) fn has_own_group(&self) -> Option<QueryCondition> {
        let name = &self.name;
        (self.form == ColumnForm::Any).then(|| plain(format!("typeof({name}) <> 'real' OR {name} <> 0")))
    }

    /// The rows where the value is missing.
    pub(super) fn is_missing(&self) -> QueryCondition {
        let Self { name, form, .. } = self;
        match form {
            ColumnForm::Text => plain(format!("{name} IS NULL OR {} = '{MISSING}'", self.bytes())),
            ColumnForm::Any => {
                let dash = format!("typeof({name}) = 'text' AND {} = '{MISSING}'", self.bytes());
                plain(format!("{name} IS NULL OR ({dash})"))
            }
            ColumnForm::Castable | ColumnForm::Moment => plain(format!("{name} IS NULL")),
        }
    }

    /// The rows with one of `values`; `None` if SQL cannot compare them.
    pub(super) fn is_selected(&self, values: &SelectedValues) -> Option<QueryCondition> {
        let list = values.to_sorted();
        if list.len() > PUSHED_VALUES_MAX || list.iter().any(|value| !is_exact_text(value)) {
            return None;
        }
        let mut sql = BoundExpression::default();
        let placeholders: Vec<String> = list.into_iter().map(|value| sql.bind(value)).collect();
        let placeholders = placeholders.join(", ");
        let text = self.display_text()?;
        // An index of the column has its own collation, and equal bytes are equal in each of them.
        let indexed = match self.form {
            ColumnForm::Text => format!("{} IN ({placeholders}) AND ", self.name),
            _ => String::new(),
        };
        let missing = match values.selects_missing() {
            true => format!(" OR {} IS NULL", self.name),
            false => String::new(),
        };
        sql.text = format!("({indexed}{text} IN ({placeholders})){missing}");
        Some(QueryCondition::Bound(sql))
    }
}

/// Whether a text arrives in the database as it is. U+FFFD may stand for bytes that are no UTF-8.
fn is_exact_text(text: &str) -> bool {
    !text.contains(['\0', '\u{fffd}'])
}

/// The form of a column by the name of its type, which must be exactly known: domains and types of extensions have
/// comparisons of their own.
fn typed_form(type_name: &str) -> Option<ColumnForm> {
    let name = type_name.to_ascii_lowercase();
    let base = name.split('(').next().unwrap_or_default().trim();
    match base {
        "text" | "character varying" | "varchar" => Some(ColumnForm::Text),
        "tinyint" | "smallint" | "integer" | "bigint" | "boolean" => Some(ColumnForm::Castable),
        "tinyint unsigned" | "smallint unsigned" | "integer unsigned" | "bigint unsigned" => Some(ColumnForm::Castable),
        "timestamp" | "date" => Some(ColumnForm::Moment),
        _ => None,
    }
}

const MINUTE: i64 = 60 * NANOS_PER_SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A column with times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeSql {
    column: String,
    dialect: SqlDialect,
    form: TimeForm,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TimeForm {
    /// A timestamp of the database.
    Timestamp { has_zone: bool },
    /// `2026-03-01T12:00:00` with a separator, a number of digits behind the seconds, and an end such as `Z`.
    Text { separator: char, digits: u32, end: String },
    /// Numbers since 1970 in this unit.
    Integer { unit: i64, first: i64, last: i64 },
}

impl TimeSql {
    /// A column of timestamps; `None` if it has none.
    pub(super) fn timestamp(dialect: SqlDialect, column: &str, kind: FieldKind) -> Option<Self> {
        let has_zone = match kind {
            FieldKind::Moment => true,
            FieldKind::LocalTime => false,
            _ => return None,
        };
        Some(Self { column: column.to_owned(), dialect, form: TimeForm::Timestamp { has_zone } })
    }

    /// A column of SQLite that has texts such as `text`; `None` if it has another form of time.
    pub(super) fn text(column: &str, text: &str) -> Option<Self> {
        let (date_time, rest) = text.split_at_checked(19)?;
        let separator = date_time.chars().nth(10).filter(|separator| matches!(separator, 'T' | ' '))?;
        let is_digit_place = |index: usize| !matches!(index, 4 | 7 | 10 | 13 | 16);
        let has_digits =
            date_time.bytes().enumerate().all(|(index, byte)| byte.is_ascii_digit() == is_digit_place(index));
        let fraction = rest.strip_prefix('.');
        let after = fraction.unwrap_or(rest);
        let end = after.trim_start_matches(|character: char| character.is_ascii_digit());
        let digits = u32::try_from(after.len() - end.len()).ok()?;
        let has_fraction = fraction.is_some();
        if !has_digits || has_fraction != (digits > 0) || digits > 9 || !["", "Z", "+00:00"].contains(&end) {
            return None;
        }
        let form = TimeForm::Text { separator, digits, end: end.to_owned() };
        Some(Self { column: column.to_owned(), dialect: SqlDialect::Sqlite, form })
    }

    /// A column of SQLite that has numbers such as `number`.
    pub(super) fn integer(column: &str, number: i64) -> Option<Self> {
        // As `parse_time` takes numbers, without those that are no time.
        let (unit, first, last) = match number {
            0..=99_999_999_999 => (NANOS_PER_SECOND, 0, 9_000_000_000),
            100_000_000_000..=99_999_999_999_999 => (1_000_000, 100_000_000_000, 9_000_000_000_000),
            100_000_000_000_000..=99_999_999_999_999_999 => (1_000, 100_000_000_000_000, 9_000_000_000_000_000),
            100_000_000_000_000_000.. => (1, 100_000_000_000_000_000, i64::MAX - 1),
            _ => return None,
        };
        let form = TimeForm::Integer { unit, first, last };
        Some(Self { column: column.to_owned(), dialect: SqlDialect::Sqlite, form })
    }

    /// The rows whose time, if any, has the form of this column.
    pub(super) fn has_form(&self) -> Option<QueryCondition> {
        let name = self.quoted_name();
        match &self.form {
            TimeForm::Timestamp { .. } => None,
            TimeForm::Integer { first, last, .. } => {
                let number = format!("typeof({name}) = 'integer' AND {name} BETWEEN {first} AND {last}");
                Some(plain(format!("{name} IS NULL OR ({number})")))
            }
            TimeForm::Text { separator, digits, end } => {
                let mut fraction = String::new();
                if *digits > 0 {
                    fraction.push('.');
                    (0..*digits).for_each(|_| fraction.push_str("[0-9]"));
                }
                let length = 19 + if *digits > 0 { digits + 1 } else { 0 } + end.len() as u32;
                let mut sql = BoundExpression::default();
                let format = sql.bind(format!("%Y-%m-%d{separator}%H:%M:%S"));
                let rest = sql.bind(fraction + end);
                let second = format!("substr({name}, 1, 19)");
                let parts = [
                    format!("typeof({name}) = 'text' AND length(CAST({name} AS blob)) = {length}"),
                    // SQLite takes February 30 for March 2, and 24:00 for the next day; the scan takes neither for a time.
                    format!("coalesce(strftime({format}, {second}), '') = {second} COLLATE BINARY"),
                    format!("glob({rest}, substr({name}, 20)) AND substr({name}, 1, 4) BETWEEN '1700' AND '2199'"),
                ];
                sql.text = format!("{name} IS NULL OR ({})", parts.join(" AND "));
                Some(QueryCondition::Bound(sql))
            }
        }
    }

    /// The rows with a time in `range`; `None` if SQL cannot compare its ends exactly.
    pub(super) fn is_in(&self, range: TimeRange) -> Option<QueryCondition> {
        let compare = |operator, operand| QueryCondition::compare(&self.column, operator, operand);
        let mut parts = vec![compare(ComparisonOperator::IsNotNull, Operand::None)];
        for (operator, bound) in
            [(ComparisonOperator::GreaterOrEqual, range.start), (ComparisonOperator::Less, range.end)]
        {
            if let Some(bound) = bound {
                parts.push(compare(operator, Operand::One(self.bound(bound)?)));
            }
        }
        Some(QueryCondition::And(parts))
    }

    pub(super) fn is_null(&self) -> QueryCondition {
        QueryCondition::compare(&self.column, ComparisonOperator::IsNull, Operand::None)
    }

    fn quoted_name(&self) -> String {
        self.dialect.quote_identifier(&self.column)
    }

    /// The first value of the column that is not before `time`.
    fn bound(&self, time: i64) -> Option<Parameter> {
        let ceil = |unit: i64| time.checked_add(unit - 1).map(|time| time.div_euclid(unit));
        match &self.form {
            TimeForm::Timestamp { has_zone } => {
                // The embedded engine may have nanoseconds in the column, and compares microseconds.
                if self.dialect.is_embedded() && time % NANOS_PER_MICROSECOND != 0 {
                    return None;
                }
                let text = format_time(ceil(NANOS_PER_MICROSECOND)?.checked_mul(NANOS_PER_MICROSECOND)?);
                Some(Parameter::Text(if *has_zone { text } else { text.trim_end_matches('Z').to_owned() }))
            }
            TimeForm::Integer { unit, .. } => ceil(*unit).map(Parameter::Integer),
            TimeForm::Text { separator, digits, end } => {
                let unit = 10i64.pow(9u32.checked_sub(*digits)?);
                let time = ceil(unit)?.checked_mul(unit)?;
                let whole = format_time(time);
                let (date, rest) = whole.split_at_checked(10)?;
                if !("1700"..="2199").contains(&date.get(..4)?) {
                    return None;
                }
                let mut text = format!("{date}{separator}{}", rest.get(1..9)?);
                if *digits > 0 {
                    let fraction = format!("{:09}", time.rem_euclid(NANOS_PER_SECOND));
                    text.push('.');
                    text.push_str(fraction.get(..*digits as usize)?);
                }
                text.push_str(end);
                Some(Parameter::Text(text))
            }
        }
    }

    /// An expression that is the same for times in the same unit, and different for times in different ones, where no
    /// time is before 1970.
    pub(super) fn unit_key(&self, unit: i64) -> Option<String> {
        let name = self.quoted_name();
        match (&self.form, self.dialect) {
            (TimeForm::Timestamp { .. }, _) if unit < NANOS_PER_MICROSECOND => None,
            (TimeForm::Timestamp { has_zone }, SqlDialect::DataFusion) => {
                let (kind, zone) = if *has_zone { ("TIMESTAMPTZ", "+00") } else { ("TIMESTAMP", "") };
                let step = format!("INTERVAL '{} microseconds'", unit / NANOS_PER_MICROSECOND);
                Some(format!("date_bin({step}, {name}, {kind} '1970-01-01 00:00:00{zone}')"))
            }
            (TimeForm::Timestamp { .. }, _) => {
                let microseconds = format!("CAST(extract(epoch FROM {name}) * 1000000 AS bigint)");
                Some(format!("{microseconds} / {}", unit / NANOS_PER_MICROSECOND))
            }
            (TimeForm::Integer { unit: own, .. }, _) => Some(match unit / own {
                0 | 1 => name,
                factor => format!("{name} / {factor}"),
            }),
            (TimeForm::Text { digits, .. }, _) => Some(match unit {
                DAY => format!("substr({name}, 1, 10)"),
                HOUR => format!("substr({name}, 1, 13)"),
                MINUTE => format!("substr({name}, 1, 16)"),
                NANOS_PER_SECOND => format!("substr({name}, 1, 19)"),
                // A power of ten below a second.
                unit => match 9u32.checked_sub(unit.checked_ilog10()?)? {
                    kept if kept < *digits => format!("substr({name}, 1, {})", 20 + kept),
                    _ => name,
                },
            }),
        }
    }
}

/// The maximum number of tables that are remembered.
const TABLES_MAX: usize = 256;
/// The time of a file changes at least this often. A table whose check takes less time is checked with each statement:
/// its file could change afterwards without another time.
const FILE_TIME_STEP: Duration = Duration::from_millis(20);

/// The tables that were checked, with their versions.
#[derive(Debug, Default)]
pub(in crate::log_tools) struct UniformTimes(Mutex<HashMap<String, String>>);

impl UniformTimes {
    /// The version in which all times of the table have `form`; `None` if this is not known.
    pub(super) async fn check(
        &self,
        input: &SourceSearch<'_>,
        time: &TimeSql,
        form: &QueryCondition,
    ) -> Result<Option<String>, CountingError> {
        let Some(version) = find_version(input).await else { return Ok(None) };
        let source = input.source;
        let key = format!("{} {} {time:?}", source.database.name(), source.table);
        if self.0.lock().get(&key) == Some(&version) {
            return Ok(Some(version));
        }
        let started = Instant::now();
        let others = QueryCondition::Not(Box::new(form.clone()));
        let batches = input.read(&input.query(vec![others], vec![count_rows()])).await?;
        let others = batches.iter().find_map(|batch| counts(batch, ROWS)?.first().copied());
        if others != Some(0) || started.elapsed() < FILE_TIME_STEP {
            return Ok(None);
        }
        let mut known = self.0.lock();
        if known.len() >= TABLES_MAX {
            known.clear();
        }
        known.insert(key, version.clone());
        Ok(Some(version))
    }
}

/// The version of the table; `None` where it does not show each change, as under row policies.
pub(super) async fn find_version(input: &SourceSearch<'_>) -> Option<String> {
    let (database, principal) = (&input.source.database, input.search.job.principal());
    if database.row_policy_fingerprint(principal) != 0 {
        return None;
    }
    database.version_tag(Some(&input.source.table), principal).await.ok().flatten()
}

/// The maximum length of a pattern in SQLite, as its sessions limit it.
const SQLITE_PATTERN_BYTES_MAX: usize = 100;

/// `condition` as SQL, if there is an exact form for the rows that all of `countable` include, to which it adds. `column`
/// finds the columns of the source: the outer `None` if SQL cannot compare a column, the inner one if there is no such
/// column.
fn text_match(
    condition: &LogCondition,
    dialect: SqlDialect,
    column: &dyn Fn(&str) -> Option<Option<ColumnSql>>,
    countable: &mut Vec<QueryCondition>,
) -> Option<QueryCondition> {
    let mut all = |parts: &[LogCondition]| -> Option<Vec<QueryCondition>> {
        parts.iter().map(|part| text_match(part, dialect, column, countable)).collect()
    };
    Some(match condition {
        LogCondition::And(parts) if parts.is_empty() => constant(true),
        LogCondition::Or(parts) if parts.is_empty() => constant(false),
        LogCondition::And(parts) => QueryCondition::And(all(parts)?),
        LogCondition::Or(parts) => QueryCondition::Or(all(parts)?),
        LogCondition::Not(inner) => QueryCondition::Not(Box::new(text_match(inner, dialect, column, countable)?)),
        LogCondition::Missing { column: name } => match column(name)? {
            Some(column) => column.is_missing(),
            None => constant(true),
        },
        LogCondition::Contains { column: name, pattern, is_case_sensitive }
        | LogCondition::Equals { column: name, pattern, is_case_sensitive } => {
            let is_whole_text = matches!(condition, LogCondition::Equals { .. });
            match column(name)? {
                Some(column) => compare(&column, dialect, pattern, is_whole_text, *is_case_sensitive, countable)?,
                None => constant(false),
            }
        }
    })
}

fn compare(
    column: &ColumnSql,
    dialect: SqlDialect,
    pattern: &TextPattern,
    is_whole_text: bool,
    is_case_sensitive: bool,
    countable: &mut Vec<QueryCondition>,
) -> Option<QueryCondition> {
    let folded = if is_case_sensitive { pattern.clone() } else { pattern.to_folded() };
    if !folded.parts().iter().all(|part| is_exact_text(part)) {
        return None;
    }
    let text = column.display_text()?;
    // In PostgreSQL, the bytes of a text of any characters compare exactly.
    let needs_ascii = match dialect {
        SqlDialect::Postgres => column.form == ColumnForm::Text && !is_case_sensitive,
        SqlDialect::Sqlite => true,
        SqlDialect::DataFusion | SqlDialect::MySql => return None,
    };
    if needs_ascii {
        let is_ascii = is_ascii(column, dialect);
        if !countable.contains(&is_ascii) {
            countable.push(is_ascii);
        }
        if !folded.is_ascii() {
            return Some(constant(false));
        }
    }
    let uses_glob = dialect.has_glob() && is_case_sensitive;
    let pattern = if uses_glob { glob } else { like }(&folded, is_whole_text);
    if dialect.has_glob() && pattern.len() > SQLITE_PATTERN_BYTES_MAX {
        return None;
    }
    let mut sql = BoundExpression::default();
    let pattern = sql.bind(pattern);
    let matches = match dialect {
        SqlDialect::Sqlite if uses_glob => format!("glob({pattern}, {text})"),
        SqlDialect::Sqlite => format!("like({pattern}, {text}, '\\')"),
        SqlDialect::DataFusion | SqlDialect::Postgres | SqlDialect::MySql => {
            format!("{text} {} {pattern}", if is_case_sensitive { "LIKE" } else { "ILIKE" })
        }
    };
    // True or false for every row, so that a negation is right.
    sql.text = format!("{} IS NOT NULL AND {text} <> '{MISSING}' AND {matches}", column.name);
    Some(QueryCondition::Bound(sql))
}

/// The rows where the text of `column` is ASCII, or null.
fn is_ascii(column: &ColumnSql, dialect: SqlDialect) -> QueryCondition {
    let name = &column.name;
    if !dialect.has_typed_columns() {
        // Also a text with a NUL is shorter than its bytes.
        let text = format!("typeof({name}) = 'text' AND length({name}) = length(CAST({name} AS blob))");
        return plain(format!("typeof({name}) IN ('null', 'integer') OR ({text})"));
    }
    // In other encodings, characters that are not ASCII may have one byte.
    let text = format!("octet_length({name}) = char_length({name}) AND getdatabaseencoding() = 'UTF8'");
    plain(format!("{name} IS NULL OR ({text})"))
}

fn like(pattern: &TextPattern, is_whole_text: bool) -> String {
    let like = pattern.to_like();
    if is_whole_text { like } else { format!("%{like}%") }
}

fn glob(pattern: &TextPattern, is_whole_text: bool) -> String {
    let escape = |part: &String| -> String {
        part.chars()
            .map(|character| match character {
                '*' | '?' | '[' => format!("[{character}]"),
                other => other.to_string(),
            })
            .collect()
    };
    let glob = pattern.parts().iter().map(escape).collect::<Vec<_>>().join("*");
    if is_whole_text { glob } else { format!("*{glob}*") }
}

/// A field of a search in one source.
#[derive(Debug, Clone)]
pub(super) enum SourceField {
    Column(ColumnSql),
    /// The same value in all rows: the name of the source, or missing.
    Constant(Option<String>),
}

/// The conditions of a search over one source. Each is exact for rows that all of `countable` include.
pub(super) struct SourceFilters {
    /// What the caller's conditions and the range leave.
    conditions: Vec<QueryCondition>,
    text: Option<QueryCondition>,
    /// For each field with a selection.
    selections: Vec<(String, QueryCondition)>,
    pub(super) countable: Vec<QueryCondition>,
}

impl SourceFilters {
    /// `None` if the database cannot apply the search exactly.
    pub(super) fn new(input: &SourceSearch<'_>) -> Option<Self> {
        let SourceSearch { search, request, source, .. } = *input;
        let mut filters = Self {
            conditions: search.conditions.iter().cloned().collect(),
            text: None,
            selections: Vec::new(),
            countable: Vec::new(),
        };
        if let Some(condition) = &request.condition {
            let column = |name: &str| match source_field(&search.set, source, name)? {
                SourceField::Column(column) => Some(Some(column)),
                SourceField::Constant(None) => Some(None),
                SourceField::Constant(Some(_)) => None,
            };
            filters.text = Some(text_match(condition, source.database.dialect(), &column, &mut filters.countable)?);
        }
        for (field, values) in request.selections.iter() {
            let condition = filters.selection(&search.set, source, field, values)?;
            filters.selections.push((field.to_owned(), condition));
        }
        Some(filters)
    }

    fn selection(
        &mut self,
        set: &SourceSet,
        source: &ResolvedSource,
        field: &str,
        values: &SelectedValues,
    ) -> Option<QueryCondition> {
        match source_field(set, source, field)? {
            SourceField::Column(column) => {
                let condition = column.is_selected(values)?;
                column.has_display_text().into_iter().for_each(|condition| self.require(condition));
                Some(condition)
            }
            SourceField::Constant(value) => Some(constant(match value {
                Some(value) => values.contains(&value),
                None => values.selects_missing(),
            })),
        }
    }

    /// Leaves rows to the scan that `condition` does not include.
    pub(super) fn require(&mut self, condition: QueryCondition) {
        if !self.countable.contains(&condition) {
            self.countable.push(condition);
        }
    }

    /// Whether a full-text query or a selection applies.
    pub(super) fn is_selective(&self) -> bool {
        self.text.is_some() || !self.selections.is_empty()
    }

    /// The selection of `field`.
    pub(super) fn has_selection(&self, field: &str) -> bool {
        self.selections.iter().any(|(selected, _)| selected == field)
    }

    /// The rows that match everything, but for the selection of `excepted`, and have a time among `time`.
    pub(super) fn matching(&self, excepted: Option<&str>, time: Option<QueryCondition>) -> Vec<QueryCondition> {
        let selections = self.selections.iter().filter(|(field, _)| Some(field.as_str()) != excepted);
        let mut all = self.countable_rows(time);
        all.extend(self.text.clone());
        all.extend(selections.map(|(_, condition)| condition.clone()));
        all
    }

    /// The rows that match the caller's conditions and have a time among `time`.
    pub(super) fn countable_rows(&self, time: Option<QueryCondition>) -> Vec<QueryCondition> {
        let mut all = self.conditions.clone();
        all.extend(self.countable.iter().cloned());
        all.extend(time);
        all
    }

    /// The rows that must be scanned.
    pub(super) fn uncountable(&self) -> Option<QueryCondition> {
        (!self.countable.is_empty()).then(|| QueryCondition::Not(Box::new(QueryCondition::And(self.countable.clone()))))
    }
}

/// A field of `set` in `source`; `None` if SQL may compare it in another way.
pub(super) fn source_field(set: &SourceSet, source: &ResolvedSource, field: &str) -> Option<SourceField> {
    if !set.is_single() && field == SOURCE_FIELD {
        return Some(SourceField::Constant(Some(source.name.clone())));
    }
    match set.fields(source).find(|(name, _)| *name == field) {
        Some((_, column)) => ColumnSql::new(source.database.dialect(), column).map(SourceField::Column),
        None => Some(SourceField::Constant(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_comparisons_of_their_own_have_no_form() {
        let form = |name: &str| typed_form(name);
        assert_eq!(form("character varying(20)"), Some(ColumnForm::Text));
        assert_eq!(form("timestamp(3) with time zone"), Some(ColumnForm::Moment));
        assert_eq!(form("BIGINT"), Some(ColumnForm::Castable));
        for name in ["citext", "character(5)", "bpchar", "int4range", "double precision", "numeric(10,2)", "text[]"] {
            assert_eq!(form(name), None, "{name}");
        }
    }

    #[test]
    fn bounds_have_the_form_of_the_column_and_are_never_too_early() {
        let time = 1_772_368_200_500_000_001;
        let bound = |form: &str| format!("{:?}", TimeSql::text("t", form).unwrap().bound(time).as_slice());
        assert_eq!(bound("2026-01-01 00:00:00"), r#"[Text("2026-03-01 12:30:01")]"#);
        assert_eq!(bound("2026-01-01T00:00:00.123Z"), r#"[Text("2026-03-01T12:30:00.501Z")]"#);
        assert_eq!(bound("2026-01-01T00:00:00.123456789+00:00"), r#"[Text("2026-03-01T12:30:00.500000001+00:00")]"#);
    }

    #[test]
    fn other_texts_are_no_form() {
        for text in ["2026-01-01", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.", "12:00", "2026-01-01T00:00:0xZ"]
        {
            assert_eq!(TimeSql::text("t", text), None, "{text}");
        }
    }
}
