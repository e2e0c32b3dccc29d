//! The check of a request as JSON against the description of its table. All violations are reported at once, so that
//! an agent needs one correction only.

mod conditions;

pub(super) use conditions::operators;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, NaiveTime};
use serde_json::{Map, Value};

use super::nearest::{alternatives, nearest_advice, nearest_names};
use super::request::{FunctionRequest, FunctionSort, LIMIT_DEFAULT, LIMIT_MAX};
use super::violation::{RequestViolation, RequestViolations};
use crate::description::{SystemColumn, SystemColumnType, SystemParameter, SystemTableDescription};
use crate::value::SystemValue;

/// Reported violations at most; further ones are counted.
const VIOLATIONS_MAX: usize = 50;
/// Columns of an answer, parts of the order, and conditions at most.
const ITEMS_MAX: usize = 256;
/// Bytes of a text in a request at most.
const TEXT_BYTES_MAX: usize = 4_096;
/// Characters of a value of the caller in a violation at most.
const QUOTED_CHARACTERS_MAX: usize = 80;

/// The keys of a request.
const KEYS: [&str; 5] = ["columns", "sort", "limit", "conditions", "parameters"];
const SORT_KEYS: [&str; 2] = ["column", "direction"];

impl FunctionRequest {
    /// Checks a request for `table`, with these keys, all optional:
    ///
    /// - `columns`: a list of names. Default: all columns except sensitive ones that are masked.
    /// - `sort`: a list of `{"column": …, "direction": "asc" or "desc"}`, ascending by default. A name alone is ascending.
    /// - `limit`: a number up to [`LIMIT_MAX`]. Default: [`LIMIT_DEFAULT`].
    /// - `conditions`: a list of `[column, operator, value]`. Operators: `=` or `==`, `!=` or `<>`, `<`, `<=`, `>`,
    ///   `>=`, and for text `match` and `not match` with a pattern (`*` for any characters, `|` between alternatives).
    /// - `parameters`: an object with the parameters of the table. Required ones must be present.
    ///
    /// With `grants_sensitive`, sensitive columns can be used; without it, they can only be selected, as masks.
    ///
    /// # Errors
    /// All violations.
    pub fn validate(
        table: &SystemTableDescription,
        request: &Map<String, Value>,
        grants_sensitive: bool,
    ) -> Result<Self, RequestViolations> {
        let mut validator = Validator { table, grants_sensitive, violations: Vec::new(), omitted: 0 };
        for key in request.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let path = quoted_text(key, false);
            validator.add(path, unknown("key", key, &KEYS), nearest(key, KEYS));
        }
        let valid = Self {
            columns: validator.columns(request.get("columns")),
            sort: validator.sort(request.get("sort")),
            limit: validator.limit(request.get("limit")),
            conditions: validator.conditions(request.get("conditions")),
            parameters: validator.parameters(request.get("parameters")),
        };
        match validator.violations.is_empty() {
            true => Ok(valid),
            false => Err(RequestViolations { violations: validator.violations, omitted: validator.omitted }),
        }
    }
}

/// Collects violations.
struct Validator<'a> {
    table: &'a SystemTableDescription,
    grants_sensitive: bool,
    violations: Vec<RequestViolation>,
    omitted: usize,
}

impl<'a> Validator<'a> {
    fn add(&mut self, path: impl Into<String>, message: impl Into<String>, choices: Vec<String>) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(RequestViolation { path: path.into(), message: message.into(), choices });
        } else {
            self.omitted += 1;
        }
    }

    /// The items of a list; none after a violation.
    fn items<'v>(&mut self, path: &str, value: Option<&'v Value>, example: &str) -> &'v [Value] {
        match value {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) if items.len() <= ITEMS_MAX => items,
            Some(Value::Array(items)) => {
                self.add(path, format!("has {} items; at most {ITEMS_MAX} are allowed", items.len()), Vec::new());
                &[]
            }
            Some(other) => {
                self.add(path, format!("must be a list such as {example}, not {}", describe(other)), Vec::new());
                &[]
            }
        }
    }

    fn columns(&mut self, value: Option<&Value>) -> Vec<usize> {
        let items = self.items("columns", value, r#"["name"]"#);
        let mut columns = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Some((position, _)) = self.column(&format!("columns[{index}]"), item)
                && !columns.contains(&position)
            {
                columns.push(position);
            }
        }
        if !items.is_empty() {
            return columns;
        }
        let is_readable = |column: &SystemColumn| self.grants_sensitive || !column.is_sensitive;
        let all = self.table.columns.iter().enumerate();
        all.filter(|(_, column)| is_readable(column)).map(|(position, _)| position).collect()
    }

    /// The column that `value` names.
    fn column(&mut self, path: &str, value: &Value) -> Option<(usize, &'a SystemColumn)> {
        let table = self.table;
        let Value::String(name) = value else {
            self.add(path, format!("must be the name of a column, not {}", describe(value)), Vec::new());
            return None;
        };
        let found = table.column(name);
        if found.is_none() {
            let names: Vec<&str> = table.column_names().collect();
            let message = format!("unknown column {} in table {:?}", quoted_text(name, true), table.name);
            let message = message + &names_advice(name, &names);
            self.add(path, message, nearest(name, names));
        }
        found
    }

    /// The column that `value` names, for a use that would disclose its values.
    fn usable_column(&mut self, path: &str, value: &Value) -> Option<(usize, &'a SystemColumn)> {
        let (position, column) = self.column(path, value)?;
        if column.is_sensitive && !self.grants_sensitive {
            let message = format!("column {:?} is masked for you, so that it can only be selected", column.name);
            self.add(path, message, Vec::new());
            return None;
        }
        Some((position, column))
    }

    fn sort(&mut self, value: Option<&Value>) -> Vec<FunctionSort> {
        let items = self.items("sort", value, r#"[{"column": "name", "direction": "desc"}]"#);
        let mut sort = Vec::new();
        let mut sorted = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("sort[{index}]");
            let Some(part) = self.sort_part(&path, item) else { continue };
            // A column that is already in the order changes nothing.
            if sorted.insert(part.column) {
                sort.push(part);
            }
        }
        sort
    }

    fn sort_part(&mut self, path: &str, item: &Value) -> Option<FunctionSort> {
        let Value::Object(part) = item else {
            if item.is_string() {
                let (column, _) = self.usable_column(path, item)?;
                return Some(FunctionSort { column, is_descending: false });
            }
            let message = format!(r#"must be an object such as {{"column": "name"}}, not {}"#, describe(item));
            self.add(path, message, Vec::new());
            return None;
        };
        for key in part.keys().filter(|key| !SORT_KEYS.contains(&key.as_str())) {
            let key_path = format!("{path}.{}", quoted_text(key, false));
            self.add(key_path, unknown("key", key, &SORT_KEYS), nearest(key, SORT_KEYS));
        }
        let direction = match part.get("direction") {
            None | Some(Value::Null) => Some(false),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("asc") => Some(false),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("desc") => Some(true),
            Some(other) => {
                let message = format!(r#"must be "asc" or "desc", not {}"#, describe(other));
                self.add(format!("{path}.direction"), message, vec!["asc".to_owned(), "desc".to_owned()]);
                None
            }
        };
        let column_path = format!("{path}.column");
        let Some(column) = part.get("column") else {
            self.add(column_path, "is required", Vec::new());
            return None;
        };
        let (column, _) = self.usable_column(&column_path, column)?;
        Some(FunctionSort { column, is_descending: direction? })
    }

    fn limit(&mut self, value: Option<&Value>) -> usize {
        match value {
            None | Some(Value::Null) => LIMIT_DEFAULT,
            Some(value) => match value.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
                Some(limit @ 1..=LIMIT_MAX) => limit,
                _ => {
                    let message = format!("must be a whole number from 1 to {LIMIT_MAX}, not {}", describe(value));
                    self.add("limit", message, Vec::new());
                    LIMIT_DEFAULT
                }
            },
        }
    }

    fn parameters(&mut self, value: Option<&Value>) -> BTreeMap<String, SystemValue> {
        let empty = Map::new();
        let given = match value {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(given)) => given,
            Some(other) => {
                self.add("parameters", format!("must be an object, not {}", describe(other)), Vec::new());
                return BTreeMap::new();
            }
        };
        let table = self.table;
        let names: Vec<&str> = table.parameters.iter().map(|parameter| parameter.name.as_ref()).collect();
        for name in given.keys().filter(|name| table.parameter(name).is_none()) {
            let path = format!("parameters.{}", quoted_text(name, false));
            let message = match names.is_empty() {
                true => format!("table {:?} has no parameters", table.name),
                false => unknown("parameter", name, &names),
            };
            self.add(path, message, nearest(name, names.iter().copied()));
        }
        let mut parameters = BTreeMap::new();
        for parameter in &table.parameters {
            let value = given.get(parameter.name.as_ref()).filter(|value| !value.is_null());
            if let Some(value) = self.parameter(parameter, value) {
                parameters.insert(parameter.name.clone().into_owned(), value);
            }
        }
        parameters
    }

    fn parameter(&mut self, parameter: &SystemParameter, value: Option<&Value>) -> Option<SystemValue> {
        let path = format!("parameters.{}", parameter.name);
        let options: Vec<String> = parameter.options.iter().map(|option| option.clone().into_owned()).collect();
        let rule = match options.is_empty() {
            true => value_rule(parameter.parameter_type).to_owned(),
            false => format!("one of {}", parameter.option_list()),
        };
        let Some(value) = value else {
            if parameter.is_required {
                self.add(path, format!("is required: {rule}. {}", parameter.description), options);
            }
            return None;
        };
        let typed = parse_value(parameter.parameter_type, value).filter(|value| parameter.problem(value).is_none());
        if typed.is_none() {
            self.add(path, format!("must be {rule}, not {}", describe(value)), options);
        }
        typed
    }
}

/// The value of a parameter or a condition.
fn parse_value(column_type: SystemColumnType, value: &Value) -> Option<SystemValue> {
    match column_type {
        SystemColumnType::Text => value.as_str().filter(|text| text.len() <= TEXT_BYTES_MAX).map(SystemValue::from),
        SystemColumnType::Boolean => value.as_bool().map(SystemValue::from),
        SystemColumnType::Integer => value.as_i64().map(SystemValue::from),
        SystemColumnType::Unsigned => value.as_u64().map(SystemValue::from),
        SystemColumnType::Float | SystemColumnType::Duration => value.as_f64().map(SystemValue::from),
        SystemColumnType::Timestamp => parse_time(value.as_str()?).map(SystemValue::Timestamp),
    }
}

/// A time as in RFC 3339, or the start of a day in UTC.
fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    let day = || text.parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros()).or_else(day)
}

/// What a value of this type looks like.
fn value_rule(column_type: SystemColumnType) -> &'static str {
    match column_type {
        SystemColumnType::Text => "text",
        SystemColumnType::Boolean => "true or false",
        SystemColumnType::Integer => "a whole number",
        SystemColumnType::Unsigned => "a whole number that is not negative",
        SystemColumnType::Float => "a number",
        SystemColumnType::Duration => "a number of seconds",
        SystemColumnType::Timestamp => r#"a time such as "2026-01-31T08:00:00Z""#,
    }
}

/// `unknown key "sorted"; did you mean "sort"?`, or all names.
fn unknown(kind: &str, name: &str, names: &[&str]) -> String {
    format!("unknown {kind} {}{}", quoted_text(name, true), names_advice(name, names))
}

fn names_advice(name: &str, names: &[&str]) -> String {
    let advice = nearest_advice(name, names.iter().copied());
    if advice.is_empty() { format!("; valid are {}", alternatives(names)) } else { advice }
}

fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    nearest_names(name, names).into_iter().map(str::to_owned).collect()
}

/// A value of the caller, with its type where that is not obvious.
fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {}", quoted_text(text, true)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => shorten(&value.to_string()),
    }
}

fn quoted_text(text: &str, has_quotes: bool) -> String {
    let text = shorten(text);
    if has_quotes { format!("{text:?}") } else { text }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
