//! Builds declarations of tools, resources and prompts from entries of the file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{Access, Acl, ContentRole, Error, Format, IpNetwork, TransportKind, is_scope};
use tidegate_query::{AnswerMode, Delivery};
use tidegate_runtime::{CacheHint, PromptArgument, ToolAnnotations};
use tidegate_sql::{Isolation, Transaction};
use tidegate_tools::declared::{
    DeclaredInput, DeclaredInsert, DeclaredPrompt, DeclaredResource, DeclaredSql, DeclaredTool, FixedOutput,
    HttpDefinition, InputKind, PromptPart, ResourceSource, ScalarType, TemplateError, TextTemplate,
};

use super::LoadedConfig;
use super::limits::{to_call_limits, to_tool_limits};
use super::problem::{ConfigProblem, checked, parse_items};
use super::types::{
    AllowedOriginsConfig, AnnotationsConfig, CacheConfig, HttpRequestConfig, InputConfig, InputType, IsolationConfig,
    MessageConfig, MessageRole, PromptConfig, ResourceConfig, ToolConfig,
};

type Problems = Vec<ConfigProblem>;

pub(super) fn build_sql_tool(entry: &ToolConfig, path: &str) -> Result<DeclaredTool<DeclaredSql>, Problems> {
    let mut problems = Vec::new();
    if entry.sql.is_none() {
        problems.push(ConfigProblem::new(
            path,
            "sql is missing: the statement that the tool runs (or insert_into, or http)",
        ));
    }
    let action = DeclaredSql {
        database: entry.database.clone(),
        sql: entry.sql.clone().unwrap_or_default(),
        transaction: transaction(entry),
    };
    let tool = build_tool(entry, action, path, &mut problems);
    checked(tool, problems)
}

/// The declaration of the tool `entry` at `path` that adds a row to a table.
pub(super) fn build_insert_tool(entry: &ToolConfig, path: &str) -> Result<DeclaredTool<DeclaredInsert>, Problems> {
    let mut problems = Vec::new();
    if entry.sql.is_some() || entry.database.is_some() || entry.http.is_some() {
        problems
            .push(ConfigProblem::new(path, "needs one of sql, insert_into and http; insert_into names the database"));
    }
    if entry.cache.is_some() {
        problems.push(ConfigProblem::new(format!("{path}.cache"), "has no effect on a tool that writes; remove it"));
    }
    let tool = build_tool(entry, DeclaredInsert, path, &mut problems);
    checked(tool, problems)
}

/// The declaration of the http tool `entry` at `path`. Its texts are templates in the current syntax.
pub(super) fn build_http_tool(
    entry: &ToolConfig,
    http: &HttpRequestConfig,
    path: &str,
    loaded: &LoadedConfig,
) -> Result<DeclaredTool<HttpDefinition>, Problems> {
    let mut problems = Vec::new();
    if entry.sql.is_some() || entry.database.is_some() {
        problems.push(ConfigProblem::new(path, "needs either sql or http, not both"));
    }
    let at = |member: &str| format!("{path}.http.{member}");
    let texts = ["url", "query", "headers", "body"].map(at);
    let request = HttpDefinition {
        method: http.method.clone(),
        url: http.url.clone(),
        query: http.query.clone().into_iter().collect(),
        headers: http.headers.clone().into_iter().collect(),
        body: http.body.clone(),
        secrets: texts.iter().flat_map(|path| loaded.document.secret_values_within(path)).map(str::to_owned).collect(),
        rows: http.rows.clone(),
        timeout: http.timeout.map(|time| time.0),
        max_bytes: http.max_bytes.map(|size| usize::try_from(size.0).unwrap_or(usize::MAX)),
    };
    let tool = build_tool(entry, request, path, &mut problems);
    checked(tool, problems)
}

fn build_tool<A>(entry: &ToolConfig, action: A, path: &str, problems: &mut Problems) -> DeclaredTool<A> {
    DeclaredTool {
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        annotations: annotations(entry.annotations),
        action,
        inputs: build_inputs(&entry.input, path, problems),
        output: build_output(entry, path, problems),
        confirm: parse_confirm(entry, path, problems),
        access: parse_access(&entry.access, &entry.scopes, &entry.from, path, problems),
        limits: to_tool_limits(&entry.limits),
        cache: entry.cache.map(cache),
    }
}

fn build_output(entry: &ToolConfig, path: &str, problems: &mut Problems) -> FixedOutput {
    fn parse<T>(
        name: &Option<String>,
        path: String,
        parse: impl Fn(&str) -> Result<T, Error>,
        problems: &mut Problems,
    ) -> Option<T> {
        let parsed = parse(name.as_deref()?).map_err(|error| ConfigProblem::new(path, error.to_string()));
        parsed.map_err(|problem| problems.push(problem)).ok()
    }
    FixedOutput {
        format: parse(&entry.format, format!("{path}.format"), Format::parse_for_model, problems),
        extract: entry.extract.clone(),
        mode: parse(&entry.mode, format!("{path}.mode"), AnswerMode::parse, problems),
        delivery: parse(&entry.delivery, format!("{path}.delivery"), Delivery::parse, problems),
    }
}

fn parse_confirm(entry: &ToolConfig, path: &str, problems: &mut Problems) -> Option<TextTemplate> {
    let question = parse_template(entry.confirm.as_deref()?, format!("{path}.confirm"));
    question.map_err(|problem| problems.push(problem)).ok()
}

fn parse_template(text: &str, path: String) -> Result<TextTemplate, ConfigProblem> {
    TextTemplate::parse(text).map_err(|error| ConfigProblem::new(path, format!("{error}; {}", TemplateError::HINT)))
}

pub(super) fn build_resource(entry: &ResourceConfig, path: &str, folder: &Path) -> Result<DeclaredResource, Problems> {
    let mut problems = Vec::new();
    let inputs = build_inputs(&entry.input, path, &mut problems);
    let access = parse_access(&entry.access, &entry.scopes, &entry.from, path, &mut problems);
    let source = match (&entry.sql, &entry.file) {
        (Some(sql), None) => {
            let format = entry.format.as_deref().map_or(Ok(Format::Mcp), Format::parse_for_model);
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

/// Splits the path before the component with the first variable, so that no variable can leave the folder before it.
fn file_source(
    file: &str,
    path: &str,
    folder: &Path,
    inputs: Vec<DeclaredInput>,
) -> Result<ResourceSource, ConfigProblem> {
    let fixed = file.split("{{").next().unwrap_or_default();
    let (fixed_folder, name) = match fixed.rfind('/') {
        Some(slash) => file.split_at(slash + 1),
        None => ("", file),
    };
    let path = parse_template(name, format!("{path}.file"))?;
    Ok(ResourceSource::File { folder: folder.join(fixed_folder), path, inputs })
}

pub(super) fn build_prompt(entry: &PromptConfig, path: &str) -> Result<DeclaredPrompt, Problems> {
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

fn build_message(entry: &MessageConfig, path: &str) -> Result<(ContentRole, PromptPart), ConfigProblem> {
    let role = match entry.role {
        MessageRole::User => ContentRole::User,
        MessageRole::Assistant => ContentRole::Assistant,
    };
    let parse = |member: &str, text: &str| parse_template(text, format!("{path}.{member}"));
    match (&entry.text, &entry.resource) {
        (Some(text), None) => Ok((role, PromptPart::Text(parse("text", text)?))),
        (None, Some(uri)) => Ok((role, PromptPart::Resource(parse("resource", uri)?))),
        _ => Err(ConfigProblem::new(path, "needs either text or resource, not both")),
    }
}

fn build_inputs(entries: &BTreeMap<String, InputConfig>, path: &str, problems: &mut Problems) -> Vec<DeclaredInput> {
    let mut inputs = Vec::new();
    for (name, entry) in entries {
        let input = build_input(name, entry, &format!("{path}.input.{name}"));
        inputs.extend(input.map_err(|problem| problems.push(problem)));
    }
    inputs
}

fn build_input(name: &str, entry: &InputConfig, path: &str) -> Result<DeclaredInput, ConfigProblem> {
    let reject = |member: &str, message: &str| Err(ConfigProblem::new(format!("{path}{member}"), message));
    let is_name = name.starts_with(|character: char| character.is_ascii_alphabetic() || character == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_name {
        return reject("", "is not a valid name: letters, digits and _, no digit first");
    }
    let kind = match (entry.kind, entry.items) {
        (InputType::List, items) => match scalar(items.unwrap_or_default()) {
            Some(scalar) => InputKind::List(scalar),
            None => return reject(".items", "must be the type of one value"),
        },
        (_, Some(_)) => return reject(".items", "only a list has items"),
        (InputType::Identifier, None) if entry.allow.is_empty() => {
            return reject("", "an identifier needs allow: the columns or tables that it may be");
        }
        (InputType::Identifier, None) => InputKind::Identifier(entry.allow.clone()),
        (kind, None) => InputKind::Scalar(scalar(kind).unwrap_or(ScalarType::String)),
    };
    if !entry.allow.is_empty() && entry.kind != InputType::Identifier {
        return reject(".allow", "only an identifier has allow; for values write enum");
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
        Some(Err(_)) => reject(".default", "does not fit the parameter's type"),
        _ => Ok(input),
    }
}

fn constraints(entry: &InputConfig) -> Map<String, Value> {
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

fn transaction(entry: &ToolConfig) -> Arc<Transaction> {
    let default = Transaction::default();
    // Without a total timeout, the timeout of the call covers its first row.
    let first_row = entry.limits.total_timeout.and(entry.limits.timeout);
    Arc::new(Transaction {
        isolation: match entry.transaction.isolation {
            IsolationConfig::ReadCommitted => Isolation::ReadCommitted,
            IsolationConfig::RepeatableRead => Isolation::RepeatableRead,
            IsolationConfig::Serializable => Isolation::Serializable,
        },
        writes: entry.transaction.writes,
        commit: default.commit,
        deferrable: entry.transaction.deferrable,
        retries_max: entry.transaction.retries.unwrap_or(default.retries_max),
        first_row_timeout: first_row.map(|time| time.0),
        stall_timeout: entry.limits.stall_timeout.map_or(default.stall_timeout, |time| time.0),
    })
}

fn cache(entry: CacheConfig) -> CacheHint {
    CacheHint { time_to_live: entry.ttl.0, public: entry.public }
}

fn annotations(entry: AnnotationsConfig) -> ToolAnnotations {
    ToolAnnotations {
        read_only: entry.read_only,
        destructive: entry.destructive,
        idempotent: entry.idempotent,
        open_world: entry.open_world,
    }
}

fn parse_access(
    names: &[String],
    scopes: &[String],
    from: &AllowedOriginsConfig,
    path: &str,
    problems: &mut Vec<ConfigProblem>,
) -> Access {
    let transports = from.transports.as_ref().map(|names| {
        parse_items(names, &format!("{path}.from.transports"), problems, |name| {
            TransportKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                let known_names = TransportKind::ALL.map(TransportKind::name).join(", ");
                format!("there is no transport {name:?}; there are {known_names}")
            })
        })
    });
    let networks = from.networks.as_ref().map(|networks| {
        parse_items(networks, &format!("{path}.from.networks"), problems, |text| {
            IpNetwork::parse(text)
                .ok_or_else(|| format!("{text:?} is no network; write it as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7"))
        })
    });
    let scopes = parse_items(scopes, &format!("{path}.scopes"), problems, |scope| match is_scope(scope) {
        true => Ok(scope.to_owned()),
        false => Err(format!("{scope:?} is no scope: one is a word without spaces, quotes and backslashes")),
    });
    Access { names: names.to_vec(), scopes, acl: Acl { transports, networks }, ..Access::default() }
}
