//! From entries of the file to declarations of tools, resources and prompts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::ContentRole;
use tidegate_query::OutputFormat;
use tidegate_runtime::{CacheHint, PromptArgument, ToolAnnotations};
use tidegate_sql::{Isolation, Transaction};
use tidegate_tools::declared::{
    DeclaredHttpTool, DeclaredInput, DeclaredPrompt, DeclaredResource, DeclaredSqlTool, HttpDefinition, InputKind,
    PromptPart, ResourceSource, ScalarType, TextTemplate,
};

use super::LoadedConfig;
use super::access::parse_access;
use super::limits::{to_call_limits, to_tool_limits};
use super::problem::{ConfigProblem, checked};
use super::types::{
    AnnotationsEntry, CacheEntry, HttpRequestEntry, InputEntry, InputType, IsolationEntry, MessageEntry, MessageRole,
    PromptEntry, ResourceEntry, ToolEntry,
};

type Problems = Vec<ConfigProblem>;

/// The declared tool that `entry`, which stands at `path`, describes.
pub(super) fn build_sql_tool(entry: &ToolEntry, path: &str) -> Result<DeclaredSqlTool, Problems> {
    let mut problems = Vec::new();
    if entry.sql.is_none() {
        problems.push(ConfigProblem::new(path, "sql is missing: the statement that the tool runs"));
    }
    let tool = DeclaredSqlTool {
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        annotations: annotations(entry.annotations),
        database: entry.database.clone(),
        sql: entry.sql.clone().unwrap_or_default(),
        inputs: build_inputs(&entry.input, path, &mut problems),
        confirm: parse_confirm(entry, path, &mut problems),
        access: parse_access(&entry.access, &entry.scopes, &entry.from, path, &mut problems),
        limits: to_tool_limits(&entry.limits),
        transaction: transaction(entry),
        cache: entry.cache.map(cache),
    };
    checked(tool, problems)
}

/// The request that `entry` of the tool at `path` describes. Braces in what variables hold stand for themselves.
pub(super) fn build_http_tool(
    entry: &ToolEntry,
    http: &HttpRequestEntry,
    path: &str,
    loaded: &LoadedConfig,
) -> Result<DeclaredHttpTool, Problems> {
    let mut problems = Vec::new();
    if entry.sql.is_some() || entry.database.is_some() {
        problems.push(ConfigProblem::new(path, "needs either sql or http, not both"));
    }
    let at = |member: &str| format!("{path}.http.{member}");
    let text = |member: &str, text: &str| loaded.document.template(&at(member)).unwrap_or(text).to_owned();
    let query = http
        .query
        .iter()
        .map(|(name, value)| (name.clone(), substitute_templates(value, &at(&format!("query.{name}")), loaded)));
    let headers = http.headers.iter().map(|(name, value)| (name.clone(), text(&format!("headers.{name}"), value)));
    let held = ["url", "query", "headers", "body"].map(at);
    let request = HttpDefinition {
        method: http.method.clone(),
        url: text("url", &http.url),
        query: query.collect(),
        headers: headers.collect(),
        body: http.body.as_ref().map(|body| substitute_templates(body, &at("body"), loaded)),
        secrets: held.iter().flat_map(|path| loaded.document.secret_values_within(path)).map(str::to_owned).collect(),
        rows: http.rows.clone(),
        timeout: http.timeout.map(|time| time.0),
        max_bytes: http.max_bytes.map(|size| usize::try_from(size.0).unwrap_or(usize::MAX)),
    };
    let tool = DeclaredHttpTool {
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        annotations: annotations(entry.annotations),
        request,
        inputs: build_inputs(&entry.input, path, &mut problems),
        confirm: parse_confirm(entry, path, &mut problems),
        access: parse_access(&entry.access, &entry.scopes, &entry.from, path, &mut problems),
        limits: to_tool_limits(&entry.limits),
        cache: entry.cache.map(cache),
    };
    checked(tool, problems)
}

/// What a person must agree to before the tool at `path` does anything.
fn parse_confirm(entry: &ToolEntry, path: &str, problems: &mut Problems) -> Option<TextTemplate> {
    let question = TextTemplate::parse(entry.confirm.as_deref()?);
    question.map_err(|error| problems.push(ConfigProblem::new(format!("{path}.confirm"), error.to_string()))).ok()
}

/// `value`, which stands at `path`, with the braces that variables hold as what they are.
fn substitute_templates(value: &Value, path: &str, loaded: &LoadedConfig) -> Value {
    match value {
        Value::String(text) => Value::from(loaded.document.template(path).unwrap_or(text)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, item)| substitute_templates(item, &format!("{path}[{index}]"), loaded)).collect()
        }
        Value::Object(members) => {
            let members = members.iter();
            let members = members
                .map(|(name, member)| (name.clone(), substitute_templates(member, &format!("{path}.{name}"), loaded)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The declared resource that `entry` describes; its file is below `folder`.
pub(super) fn build_resource(entry: &ResourceEntry, path: &str, folder: &Path) -> Result<DeclaredResource, Problems> {
    let mut problems = Vec::new();
    let inputs = build_inputs(&entry.input, path, &mut problems);
    let access = parse_access(&entry.access, &entry.scopes, &entry.from, path, &mut problems);
    let source = match (&entry.sql, &entry.file) {
        (Some(sql), None) => {
            let format = entry.format.as_deref().map_or(Ok(OutputFormat::Mcp), OutputFormat::parse);
            let format = format.map_err(|error| ConfigProblem::new(format!("{path}.format"), error.to_string()));
            let (database, sql) = (entry.database.clone(), sql.clone());
            format.map(|format| ResourceSource::Sql { database, sql, inputs, format })
        }
        (None, Some(file)) => file_source(file, path, folder, inputs),
        _ => Err(ConfigProblem::new(path, "needs either sql or file, not both")),
    };
    let source = source.map_err(|problem| problems.push(problem));
    let (Ok(source), true) = (source, problems.is_empty()) else { return Err(problems) };
    Ok(DeclaredResource {
        uri: entry.uri.clone(),
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        mime_type: entry.mime_type.clone(),
        source,
        access,
        limits: to_call_limits(entry.limits),
        cache: entry.cache.map(cache),
    })
}

/// Everything before the first variable's name is fixed; what a variable says stays in that folder.
fn file_source(
    file: &str,
    path: &str,
    folder: &Path,
    inputs: Vec<DeclaredInput>,
) -> Result<ResourceSource, ConfigProblem> {
    let fixed = file.split("{{").next().unwrap_or_default();
    let (below, name) = match fixed.rfind('/') {
        Some(slash) => file.split_at(slash + 1),
        None => ("", file),
    };
    let template = TextTemplate::parse(name);
    let path = template.map_err(|error| ConfigProblem::new(format!("{path}.file"), error.to_string()))?;
    Ok(ResourceSource::File { folder: folder.join(below), path, inputs })
}

/// The declared prompt that `entry` describes.
pub(super) fn build_prompt(entry: &PromptEntry, path: &str) -> Result<DeclaredPrompt, Problems> {
    let mut problems = Vec::new();
    let mut messages = Vec::new();
    for (index, entry) in entry.messages.iter().enumerate() {
        let message = build_message(entry, &format!("{path}.messages[{index}]"));
        messages.extend(message.map_err(|problem| problems.push(problem)));
    }
    let arguments = entry.arguments.iter().map(|argument| PromptArgument {
        name: argument.name.clone(),
        title: argument.title.clone(),
        description: argument.description.clone(),
        required: argument.required,
    });
    let prompt = DeclaredPrompt {
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        arguments: arguments.collect(),
        messages,
        access: parse_access(&entry.access, &entry.scopes, &entry.from, path, &mut problems),
    };
    checked(prompt, problems)
}

fn build_message(entry: &MessageEntry, path: &str) -> Result<(ContentRole, PromptPart), ConfigProblem> {
    let role = match entry.role {
        MessageRole::User => ContentRole::User,
        MessageRole::Assistant => ContentRole::Assistant,
    };
    let parse = |member: &str, text: &str| {
        TextTemplate::parse(text).map_err(|error| ConfigProblem::new(format!("{path}.{member}"), error.to_string()))
    };
    match (&entry.text, &entry.resource) {
        (Some(text), None) => Ok((role, PromptPart::Text(parse("text", text)?))),
        (None, Some(uri)) => Ok((role, PromptPart::Resource(parse("resource", uri)?))),
        _ => Err(ConfigProblem::new(path, "needs either text or resource, not both")),
    }
}

fn build_inputs(entries: &BTreeMap<String, InputEntry>, path: &str, problems: &mut Problems) -> Vec<DeclaredInput> {
    let mut inputs = Vec::new();
    for (name, entry) in entries {
        let input = build_input(name, entry, &format!("{path}.input.{name}"));
        inputs.extend(input.map_err(|problem| problems.push(problem)));
    }
    inputs
}

fn build_input(name: &str, entry: &InputEntry, path: &str) -> Result<DeclaredInput, ConfigProblem> {
    let wrong = |member: &str, message: &str| Err(ConfigProblem::new(format!("{path}{member}"), message));
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_name {
        return wrong("", "is no name of a parameter: letters, digits and _, no digit first");
    }
    let kind = match (entry.kind, entry.items) {
        (InputType::List, items) => match scalar(items.unwrap_or_default()) {
            Some(scalar) => InputKind::List(scalar),
            None => return wrong(".items", "must be the type of one value"),
        },
        (_, Some(_)) => return wrong(".items", "only a list has items"),
        (InputType::Identifier, None) if entry.allow.is_empty() => {
            return wrong("", "an identifier needs allow: the columns or tables that it may be");
        }
        (InputType::Identifier, None) => InputKind::Identifier(entry.allow.clone()),
        (kind, None) => InputKind::Scalar(scalar(kind).unwrap_or(ScalarType::String)),
    };
    if !entry.allow.is_empty() && entry.kind != InputType::Identifier {
        return wrong(".allow", "only an identifier has allow; for values write enum");
    }
    let constraints = constraints(entry);
    let input = DeclaredInput {
        name: name.to_owned(),
        kind,
        description: entry.description.clone(),
        default: entry.default.clone(),
        required: entry.required.unwrap_or(true),
        ask: entry.ask.clone(),
        constraints,
    };
    let schema = tidegate_core::JsonSchema::new(input.schema());
    let schema = schema.map_err(|error| ConfigProblem::new(path, error.to_string()))?;
    match entry.default.as_ref().map(|default| schema.check(default)) {
        Some(Err(_)) => wrong(".default", "does not fit the parameter's type"),
        _ => Ok(input),
    }
}

fn constraints(entry: &InputEntry) -> Map<String, Value> {
    [
        ("enum", entry.choices.as_ref().map(|choices| json!(choices))),
        ("minimum", entry.minimum.as_ref().map(|number| json!(number))),
        ("maximum", entry.maximum.as_ref().map(|number| json!(number))),
        ("minLength", entry.min_length.map(|length| json!(length))),
        ("maxLength", entry.max_length.map(|length| json!(length))),
        ("pattern", entry.pattern.as_ref().map(|pattern| json!(pattern))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

fn scalar(kind: InputType) -> Option<ScalarType> {
    match kind {
        InputType::String => Some(ScalarType::String),
        InputType::Integer => Some(ScalarType::Integer),
        InputType::Number => Some(ScalarType::Number),
        InputType::Boolean => Some(ScalarType::Boolean),
        InputType::Date => Some(ScalarType::Date),
        InputType::Timestamp => Some(ScalarType::Timestamp),
        InputType::List | InputType::Identifier => None,
    }
}

/// How a PostgreSQL database runs the statement of a tool.
fn transaction(entry: &ToolEntry) -> Arc<Transaction> {
    let default = Transaction::default();
    // Without a longer one for the whole, the timeout of the call does for its first row.
    let first_row = entry.limits.total_timeout.and(entry.limits.timeout);
    Arc::new(Transaction {
        isolation: match entry.transaction.isolation {
            IsolationEntry::ReadCommitted => Isolation::ReadCommitted,
            IsolationEntry::RepeatableRead => Isolation::RepeatableRead,
            IsolationEntry::Serializable => Isolation::Serializable,
        },
        writes: entry.transaction.writes,
        deferrable: entry.transaction.deferrable,
        retries_max: entry.transaction.retries.unwrap_or(default.retries_max),
        first_row_timeout: first_row.map(|time| time.0),
        stall_timeout: entry.limits.stall_timeout.map_or(default.stall_timeout, |time| time.0),
    })
}

fn cache(entry: CacheEntry) -> CacheHint {
    CacheHint { time_to_live: entry.ttl.0, public: entry.public }
}

fn annotations(entry: AnnotationsEntry) -> ToolAnnotations {
    ToolAnnotations {
        read_only: entry.read_only,
        destructive: entry.destructive,
        idempotent: entry.idempotent,
        open_world: entry.open_world,
    }
}
