//! The arguments that all searches of logs share: sources, time, query, selections and conditions.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, Violation, nearest_names};
use tidegate_log_formats::{ENTRY_TEXT, NORMALIZED_SEVERITY};
use tidegate_query::{QueryCondition, QuerySpec, StableHasher};
use tidegate_runtime::Job;
use tidegate_telemetry::logs::{
    FieldSelections, LogScanRequest, QueryNode, SearchColumns, TextQuery, TimeRange, TimeRangeError,
};

use super::LogContext;
use super::list_logs_sources::{CoveredEntries, covered_entries};
use crate::arguments::{now_nanos, time_input};
use crate::log_sources::{ResolvedSource, SourceSet, no_sources_error, unknown_source_message};
use crate::source_columns::floor_microseconds;
use crate::tool_definition::{InputSchemaBuilder, any_of};

/// The maximum number of sources in one call.
const SOURCES_MAX: usize = 16;
/// The maximum number of names in an error.
const CHOICES_MAX: usize = 40;

/// The common arguments of a search.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SearchArguments {
    source: Option<Vec<String>>,
    after: Option<Value>,
    before: Option<Value>,
    query: Option<String>,
    #[serde(default)]
    all_fields: bool,
    #[serde(default)]
    case_sensitive: bool,
    #[serde(default)]
    selections: Map<String, Value>,
    conditions: Option<Value>,
}

impl SearchArguments {
    fn conditions(&self) -> Option<&Value> {
        self.conditions.as_ref().filter(|conditions| !conditions.is_null())
    }
}

/// A search of one call, whose arguments are checked.
pub(crate) struct LogSearch<'a> {
    pub(crate) context: &'a LogContext,
    arguments: &'a SearchArguments,
    pub(crate) job: &'a Arc<Job>,
    pub(crate) set: SourceSet,
    /// The range, the full-text condition and the selections, as a scan that computes nothing yet.
    pub(crate) request: LogScanRequest,
    /// The fields that the full-text condition reads.
    condition_fields: Vec<String>,
    /// The fields in which words are searched, if others may have them.
    word_fields: Vec<String>,
    pub(crate) conditions: Option<QueryCondition>,
    /// The sources that cannot be read, with the reason.
    pub(crate) failures: Vec<(String, Error)>,
}

/// Adds the common arguments to a schema.
pub(crate) fn with_search_arguments(schema: InputSchemaBuilder) -> InputSchemaBuilder {
    schema
        .with("source", json!({"type": "array", "items": {"type": "string"}, "description": "Default: the only one"}))
        .with("after", any_of(&["string", "number"], "-15m, today, RFC 3339, epoch; default: all"))
        .with("before", any_of(&["string", "number"], ""))
        .with(
            "query",
            json!({"type": "string", "description": "Full text: timeout \"a phrase\" | or !not field:value wild*"}),
        )
        .with(
            "all_fields",
            json!({"type": "boolean", "description": "query searches all fields, not the message only"}),
        )
        .with("case_sensitive", json!({"type": "boolean"}))
        .with("selections", json!({"type": "object", "description": "{field: [values]}; - for missing"}))
        .with("conditions", QuerySpec::condition_schema("Like where of query"))
}

/// Fails with all `violations`, if there are any.
pub(crate) fn reject(violations: Vec<Violation>, search: &LogSearch<'_>) -> Result<(), Error> {
    if violations.is_empty() {
        return Ok(());
    }
    let error = Error::invalid_arguments("the arguments do not fit the log sources:", violations);
    let fields = search.set.field_names();
    if fields.is_empty() {
        return Err(error);
    }
    let more = if fields.len() > CHOICES_MAX { ", …" } else { "" };
    let listed: Vec<&str> = fields.into_iter().take(CHOICES_MAX).collect();
    Err(error.with_hint(format!("Fields: {}{more}", listed.join(", "))))
}

pub(crate) fn violation(path: impl Into<String>, message: impl Into<String>) -> Violation {
    Violation { path: path.into(), message: message.into() }
}

impl<'a> LogSearch<'a> {
    /// The fields that its condition and its selections read.
    pub(super) fn filter_fields(&self) -> Vec<String> {
        let selected = self.request.selections.iter().map(|(field, _)| field.to_owned());
        self.condition_fields.iter().cloned().chain(selected).collect()
    }

    /// Where words were searched, if they may be elsewhere.
    pub(super) fn searched_fields_note(&self) -> Option<String> {
        let fields = self.word_fields.join(" and ");
        (!fields.is_empty())
            .then(|| format!("The words of query were searched in {fields} only; with all_fields, in all fields."))
    }

    /// Checks the arguments; what is wrong is added to `violations`.
    ///
    /// # Errors
    /// If no source can be read.
    pub(crate) async fn resolve(
        context: &'a LogContext,
        arguments: &'a SearchArguments,
        job: &'a Arc<Job>,
        violations: &mut Vec<Violation>,
    ) -> Result<Self, Error> {
        let (sources, failures) =
            resolve_sources(context, arguments.source.clone().unwrap_or_default(), job, violations).await?;
        let set = SourceSet::new(sources);
        let range = read_range(context, arguments, &set, job, violations).await?;
        let (time_column, message_column) = (set.time.clone(), set.message.clone());
        let mut search = Self {
            context,
            arguments,
            job,
            set,
            request: LogScanRequest { time_column, message_column, range, ..LogScanRequest::default() },
            condition_fields: Vec::new(),
            word_fields: Vec::new(),
            conditions: None,
            failures,
        };
        search.read_query(violations);
        search.read_selections(violations);
        search.read_conditions(violations).await;
        Ok(search)
    }

    /// Adds a violation if `field` does not exist.
    pub(crate) fn check_field(&self, path: &str, field: &str, violations: &mut Vec<Violation>) {
        let names = self.set.field_names();
        if names.is_empty() || names.contains(&field) {
            return;
        }
        let set = &self.set;
        let with_role = match field {
            "time" => Some(set.time.as_str()),
            "message" => set.message.as_deref(),
            "severity" => set.severity.as_deref(),
            _ => None,
        };
        let is_normalized = field == "severity" && names.contains(&NORMALIZED_SEVERITY);
        let also = if is_normalized { ", and normalized in \"normalized_severity\"" } else { "" };
        let near = nearest_names(field, names);
        let advice = match with_role {
            Some(name) => format!("; the {field} is in the field {name:?}{also}"),
            None if near.is_empty() => String::new(),
            None => format!("; nearest: {}", near.join(", ")),
        };
        violations.push(violation(path, format!("there is no field {field:?}{advice}")));
    }

    /// The identity of the search with `columns` in cursors. The range is no part of it, so that `-15m` may move on.
    pub(crate) fn scope(&self, columns: &[String]) -> u64 {
        let arguments = self.arguments;
        let mut scope = StableHasher::default();
        for source in &self.set.sources {
            scope.add(&source.name);
        }
        scope.add(arguments.query.as_deref().unwrap_or(""));
        scope.add([u8::from(arguments.all_fields), u8::from(arguments.case_sensitive)]);
        scope.add(Value::Object(arguments.selections.clone()).to_string());
        scope.add(arguments.conditions().map(Value::to_string).unwrap_or_default());
        for column in columns {
            scope.add(column);
        }
        scope.finish()
    }

    /// Reads the conditions, and checks them against the columns of each source.
    async fn read_conditions(&mut self, violations: &mut Vec<Violation>) {
        let Some(conditions) = self.arguments.conditions() else { return };
        match QueryCondition::from_json("conditions", conditions) {
            Ok(conditions) => self.conditions = conditions,
            Err(error) => violations.extend(error.violations().iter().cloned()),
        }
        for source in &self.set.sources {
            let Some(filter) = &self.conditions else { return };
            let spec = QuerySpec { filter: Some(filter.clone()), ..QuerySpec::new(&source.table) };
            let checked = spec.render(&*source.database, self.job.principal()).await;
            for found in checked.err().iter().flat_map(conditions_violations) {
                if !violations.contains(&found) {
                    violations.push(found);
                }
            }
        }
    }

    fn read_query(&mut self, violations: &mut Vec<Violation>) {
        let arguments = self.arguments;
        let Some(text) = arguments.query.as_deref().filter(|text| !text.trim().is_empty()) else { return };
        let query = match TextQuery::parse(text) {
            Ok(query) => query,
            Err(error) => return violations.push(violation("query", error.to_string())),
        };
        let names: Vec<String> = self.set.field_names().into_iter().map(str::to_owned).collect();
        for term in query.field_terms() {
            let field = term.field.as_deref().unwrap_or_default();
            self.check_field("query", field, violations);
            self.condition_fields.push(field.to_owned());
        }
        let message: Vec<String> = self.set.message.clone().into_iter().collect();
        // Without a message there is nothing else to search.
        let searches_all = arguments.all_fields || message.is_empty();
        // The message may be a part of the line: the request without the address of the client, for example. It is searched
        // beside the line, which may have escapes.
        let is_searched = |name: &String| (searches_all || name == ENTRY_TEXT) && !message.contains(name);
        let further: Vec<String> = names.into_iter().filter(is_searched).collect();
        if has_text_term(query.root()) {
            let fields: Vec<String> = message.iter().chain(&further).cloned().collect();
            let is_complete = searches_all || self.set.sources.iter().all(|source| self.has_all_in(source, &fields));
            self.word_fields = if is_complete { Vec::new() } else { fields.clone() };
            self.condition_fields.extend(fields);
        }
        let columns = SearchColumns { message, further, is_case_sensitive: arguments.case_sensitive };
        self.request.condition = Some(query.to_condition(&columns)).filter(|condition| !condition.is_always_true());
    }

    /// Whether no field of `source` has words that `fields` have not. The line has what other fields have.
    fn has_all_in(&self, source: &ResolvedSource, fields: &[String]) -> bool {
        let names: Vec<&str> = self.set.fields(source).map(|(name, _)| name).collect();
        names.contains(&ENTRY_TEXT) || names.iter().all(|name| fields.iter().any(|field| field == name))
    }

    fn read_selections(&mut self, violations: &mut Vec<Violation>) {
        let mut fields = Vec::new();
        for (field, values) in &self.arguments.selections {
            let path = format!("selections.{field}");
            self.check_field(&path, field, violations);
            let values: Vec<&Value> = match values {
                Value::Array(values) => values.iter().collect(),
                value => vec![value],
            };
            let text = |value: &&Value| match value {
                Value::Null => Some(None),
                Value::String(text) => Some(Some(text.clone())),
                Value::Number(_) | Value::Bool(_) => Some(Some(value.to_string())),
                _ => None,
            };
            match values.iter().map(text).collect::<Option<Vec<_>>>() {
                Some(values) => fields.push((field.clone(), values)),
                None => {
                    violations.push(violation(path, "expected a list of values: texts, numbers, true, false or null"))
                }
            }
        }
        match FieldSelections::new(fields) {
            Ok(selections) => self.request.selections = selections,
            Err(error) => violations.push(violation("selections", error.to_string())),
        }
    }
}

fn has_text_term(node: &QueryNode) -> bool {
    match node {
        QueryNode::Term(term) => term.field.is_none(),
        QueryNode::Not(inner) => has_text_term(inner),
        QueryNode::And(parts) | QueryNode::Or(parts) => parts.iter().any(has_text_term),
    }
}

/// The violations of an error about `where`, as those of `conditions`.
fn conditions_violations(error: &Error) -> Vec<Violation> {
    if error.violations().is_empty() {
        return vec![violation("conditions", error.message())];
    }
    let rename = |path: &str| path.strip_prefix("where").map_or(path.to_owned(), |rest| format!("conditions{rest}"));
    error.violations().iter().map(|found| violation(rename(&found.path), found.message.clone())).collect()
}

/// The named sources, or the only one.
async fn resolve_sources(
    context: &LogContext,
    mut names: Vec<String>,
    job: &Arc<Job>,
    violations: &mut Vec<Violation>,
) -> Result<(Vec<ResolvedSource>, Vec<(String, Error)>), Error> {
    let (services, principal) = (&context.services, job.principal());
    let visible = context.sources.visible_to(&services.databases, principal);
    match (names.is_empty(), visible.as_slice()) {
        (_, []) => return Err(no_sources_error()),
        (true, [only]) => names.push(only.name.clone()),
        (true, several) => {
            let choices: Vec<&str> = several.iter().take(CHOICES_MAX).map(|source| source.name.as_str()).collect();
            violations.push(violation("source", format!("name one or several of {}", choices.join(", "))));
        }
        _ => {}
    }
    if names.len() > SOURCES_MAX {
        let count = names.len();
        violations.push(violation("source", format!("names {count} sources; the maximum is {SOURCES_MAX}")));
        names.truncate(SOURCES_MAX);
    }
    let (mut sources, mut failures): (Vec<ResolvedSource>, _) = (Vec::new(), Vec::new());
    for name in names {
        let Some(source) = visible.iter().find(|source| source.name == name) else {
            violations.push(violation("source", unknown_source_message(&name, &visible)));
            continue;
        };
        if sources.iter().any(|known| known.name == name) {
            continue;
        }
        match ResolvedSource::resolve(source, &services.databases, principal).await {
            Ok(source) => sources.push(source),
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(error) => failures.push((name, error)),
        }
    }
    match failures.first() {
        Some((name, error)) if sources.is_empty() && violations.is_empty() => {
            let message = format!("the log source {name:?} cannot be read: {}", error.message());
            Err(error.clone().with_message(message))
        }
        _ => Ok((sources, failures)),
    }
}

/// The range of time. If it is wrong, the message has the time that the sources cover.
async fn read_range(
    context: &LogContext,
    arguments: &SearchArguments,
    set: &SourceSet,
    job: &Arc<Job>,
    violations: &mut Vec<Violation>,
) -> Result<TimeRange, Error> {
    let after = time_input("after", &arguments.after, violations);
    let before = time_input("before", &arguments.before, violations);
    // Databases compare microseconds.
    let parse = |covered| TimeRange::parse(after, before, floor_microseconds(now_nanos()), covered);
    let error = match parse(None) {
        Ok(range) => return Ok(range),
        Err(error @ TimeRangeError::Bound { .. }) => error,
        Err(error) => {
            let covered = covered_time_of_all(context, set, job).await?;
            parse(covered).err().unwrap_or(error)
        }
    };
    let path = if matches!(&error, TimeRangeError::Bound { bound: "before", .. }) { "before" } else { "after" };
    violations.push(violation(path, error.to_string()));
    Ok(TimeRange::default())
}

async fn covered_time_of_all(
    context: &LogContext,
    set: &SourceSet,
    job: &Arc<Job>,
) -> Result<Option<(i64, i64)>, Error> {
    let mut all: Option<(i64, i64)> = None;
    for source in &set.sources {
        match covered_entries(&context.services, source, job).await {
            Ok(CoveredEntries { times: Some((first, last)), .. }) => {
                let (start, end) = all.unwrap_or((first, last));
                all = Some((start.min(first), end.max(last)));
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            // The message about the range does without this source.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(all)
}
