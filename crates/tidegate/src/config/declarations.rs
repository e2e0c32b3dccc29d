//! Builds declarations of tools, resources and prompts from entries of the file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{Access, Acl, Budget, ContentRole, Error, Format, IpNetwork, TransportKind, is_scope};
use tidegate_query::{AnswerMode, Delivery};
use tidegate_runtime::{CacheHint, PromptArgument, ToolAnnotations};
use tidegate_sql::{Isolation, Transaction};
use tidegate_tools::declared::{
    CACHE_OF_WRITER, DeclaredInput, DeclaredInsert, DeclaredPreset, DeclaredPrompt, DeclaredResource, DeclaredSql,
    DeclaredTool, FixedOutput, HttpDefinition, InputKind, PromptPart, ResourceContent, ScalarType, TemplateError,
    TextTemplate,
};

use super::LoadedConfig;
use super::limits::{to_call_limits, to_tool_limits};
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{
    AllowedOriginsConfig, AnnotationsConfig, CacheConfig, HttpRequestConfig, InputConfig, InputType, IsolationConfig,
    MessageConfig, MessageRole, PromptConfig, ResourceConfig, ToolConfig, TransactionConfig,
};

/// The declaration of the tool `entry` at `path` that runs a statement. `inline` limits its answers, as those of all tools,
/// where it has no limits of its own.
pub(super) fn build_sql_tool(
    entry: &ToolConfig,
    path: &str,
    inline: Budget,
) -> Result<DeclaredTool<DeclaredSql>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    if entry.sql.is_none() {
        problems.add("", "sql is missing: the statement that the tool runs (or insert_into, http or tool)");
    }
    let action = DeclaredSql {
        database: entry.database.clone(),
        sql: entry.sql.clone().unwrap_or_default(),
        transaction: transaction(entry),
    };
    let tool = build_tool(entry, action, inline, &problems);
    problems.checked(tool)
}

/// The declaration of the tool `entry` at `path` that adds a row to a table.
pub(super) fn build_insert_tool(
    entry: &ToolConfig,
    path: &str,
    inline: Budget,
) -> Result<DeclaredTool<DeclaredInsert>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    if entry.sql.is_some() || entry.database.is_some() || entry.http.is_some() {
        problems.add("", "needs one of sql, insert_into and http; insert_into names the database");
    }
    if entry.cache.is_some() {
        problems.add("cache", CACHE_OF_WRITER);
    }
    let tool = build_tool(entry, DeclaredInsert, inline, &problems);
    problems.checked(tool)
}

/// The declaration of the http tool `entry` at `path`. Its texts are templates in the current syntax.
pub(super) fn build_http_tool(
    entry: &ToolConfig,
    http: &HttpRequestConfig,
    path: &str,
    loaded: &LoadedConfig,
    inline: Budget,
) -> Result<DeclaredTool<HttpDefinition>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    if entry.sql.is_some() || entry.database.is_some() {
        problems.add("", "needs either sql or http, not both");
    }
    let texts = ["http.url", "http.query", "http.headers", "http.body"].map(|key| problems.path_of(key));
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
    let tool = build_tool(entry, request, inline, &problems);
    problems.checked(tool)
}

/// The declaration of the tool `entry` at `path` that calls a built-in one.
pub(super) fn build_preset_tool(
    entry: &ToolConfig,
    path: &str,
    inline: Budget,
) -> Result<DeclaredTool<DeclaredPreset>, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    if entry.sql.is_some() || entry.insert_into.is_some() || entry.http.is_some() {
        problems.add("", "needs one of sql, insert_into, http and tool");
    }
    let without_effect = [
        ("database", entry.database.is_some()),
        ("transaction", entry.transaction != TransactionConfig::default()),
        ("input", !entry.input.is_empty()),
        ("confirm", entry.confirm.is_some()),
        ("format", entry.format.is_some()),
        ("extract", entry.extract.is_some()),
        ("mode", entry.mode.is_some()),
        ("delivery", entry.delivery.is_some()),
    ];
    for (key, _) in without_effect.into_iter().filter(|(_, is_set)| *is_set) {
        problems.add(key, "has no effect with tool; write values of the built-in tool in arguments or defaults");
    }
    let action = DeclaredPreset { arguments: entry.arguments.clone(), defaults: entry.defaults.clone() };
    let tool = build_tool(entry, action, inline, &problems);
    problems.checked(tool)
}

fn build_tool<A>(entry: &ToolConfig, action: A, inline: Budget, problems: &Problems) -> DeclaredTool<A> {
    for (key, values) in [("arguments", &entry.arguments), ("defaults", &entry.defaults)] {
        if entry.tool.is_none() && !values.is_empty() {
            problems.add(key, "needs tool: the built-in tool that has these arguments");
        }
    }
    DeclaredTool {
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        annotations: annotations(entry.annotations),
        action,
        inputs: build_inputs(&entry.input, problems),
        output: build_output(entry, problems),
        confirm: entry.confirm.as_deref().and_then(|text| parse_template(text, "confirm", problems)),
        access: parse_access(&entry.access, &entry.scopes, &entry.from, problems),
        limits: to_tool_limits(&entry.limits, inline),
        cache: entry.cache.map(cache),
    }
}

fn build_output(entry: &ToolConfig, problems: &Problems) -> FixedOutput {
    fn parse<T>(
        name: &Option<String>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, Error>,
        problems: &Problems,
    ) -> Option<T> {
        parse(name.as_deref()?).map_err(|error| problems.add(key, error.to_string())).ok()
    }
    FixedOutput {
        format: parse(&entry.format, "format", Format::parse_for_model, problems),
        extract: entry.extract.clone(),
        mode: parse(&entry.mode, "mode", AnswerMode::parse, problems),
        delivery: parse(&entry.delivery, "delivery", Delivery::parse, problems),
    }
}

fn parse_template(text: &str, key: &str, problems: &Problems) -> Option<TextTemplate> {
    let template = TextTemplate::parse(text);
    template.map_err(|error| problems.add(key, format!("{error}; {}", TemplateError::HINT))).ok()
}

pub(super) fn build_resource(
    entry: &ResourceConfig,
    path: &str,
    folder: &Path,
    inline: Budget,
) -> Result<DeclaredResource, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let inputs = build_inputs(&entry.input, &problems);
    let access = parse_access(&entry.access, &entry.scopes, &entry.from, &problems);
    let source = match (&entry.sql, &entry.file) {
        (Some(sql), None) => {
            let format = entry.format.as_deref().map_or(Ok(Format::Mcp), Format::parse_for_model);
            let format = format.map_err(|error| problems.add("format", error.to_string())).ok();
            let (database, sql) = (entry.database.clone(), sql.clone());
            format.map(|format| ResourceContent::Sql { database, sql, inputs, format })
        }
        (None, Some(file)) => file_source(file, folder, inputs, &problems),
        _ => {
            problems.add("", "needs either sql or file, not both");
            None
        }
    };
    let (Some(source), true) = (source, problems.is_empty()) else { return Err(problems.into_vec()) };
    Ok(DeclaredResource {
        uri: entry.uri.clone(),
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        mime_type: entry.mime_type.clone(),
        source,
        access,
        limits: to_call_limits(entry.limits, inline),
        cache: entry.cache.map(cache),
    })
}

/// Splits the path before the component with the first variable, so that no variable can leave the folder before it.
fn file_source(file: &str, folder: &Path, inputs: Vec<DeclaredInput>, problems: &Problems) -> Option<ResourceContent> {
    let fixed = file.split("{{").next().unwrap_or_default();
    let (fixed_folder, name) = match fixed.rfind('/') {
        Some(slash) => file.split_at(slash + 1),
        None => ("", file),
    };
    let path = parse_template(name, "file", problems)?;
    Some(ResourceContent::File { folder: folder.join(fixed_folder), path, inputs })
}

pub(super) fn build_prompt(entry: &PromptConfig, path: &str) -> Result<DeclaredPrompt, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let mut messages = Vec::new();
    for (index, entry) in entry.messages.iter().enumerate() {
        messages.extend(build_message(entry, &problems.at(format_args!("messages[{index}]"))));
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
        access: parse_access(&entry.access, &entry.scopes, &entry.from, &problems),
    };
    problems.checked(prompt)
}

fn build_message(entry: &MessageConfig, problems: &Problems) -> Option<(ContentRole, PromptPart)> {
    let role = match entry.role {
        MessageRole::User => ContentRole::User,
        MessageRole::Assistant => ContentRole::Assistant,
    };
    let part = match (&entry.text, &entry.resource) {
        (Some(text), None) => PromptPart::Text(parse_template(text, "text", problems)?),
        (None, Some(uri)) => PromptPart::Resource(parse_template(uri, "resource", problems)?),
        _ => {
            problems.add("", "needs either text or resource, not both");
            return None;
        }
    };
    Some((role, part))
}

fn build_inputs(entries: &BTreeMap<String, InputConfig>, problems: &Problems) -> Vec<DeclaredInput> {
    let build =
        |(name, entry): (&String, &InputConfig)| build_input(name, entry, &problems.at(format_args!("input.{name}")));
    entries.iter().filter_map(build).collect()
}

fn build_input(name: &str, entry: &InputConfig, problems: &Problems) -> Option<DeclaredInput> {
    let reject = |key: &str, message: &str| {
        problems.add(key, message);
        None
    };
    let is_name = name.starts_with(|character: char| character.is_ascii_alphabetic() || character == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_name {
        return reject("", "is not a valid name: letters, digits and _, no digit first");
    }
    let kind = match (entry.kind, entry.items) {
        (InputType::List, items) => match scalar(items.unwrap_or_default()) {
            Some(scalar) => InputKind::List(scalar),
            None => return reject("items", "must be the type of one value"),
        },
        (_, Some(_)) => return reject("items", "only a list has items"),
        (InputType::Identifier, None) if entry.allow.is_empty() => {
            return reject("", "an identifier needs allow: the columns or tables that it may be");
        }
        (InputType::Identifier, None) => InputKind::Identifier(entry.allow.clone()),
        (kind, None) => InputKind::Scalar(scalar(kind).unwrap_or(ScalarType::String)),
    };
    if !entry.allow.is_empty() && entry.kind != InputType::Identifier {
        return reject("allow", "only an identifier has allow; for values write enum");
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
    let schema = schema.map_err(|error| problems.add("", error.to_string())).ok()?;
    match entry.default.as_ref().map(|default| schema.check(default)) {
        Some(Err(_)) => reject("default", "does not fit the parameter's type"),
        _ => Some(input),
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

fn parse_access(names: &[String], scopes: &[String], from: &AllowedOriginsConfig, problems: &Problems) -> Access {
    let transports = from.transports.as_ref().map(|names| {
        problems.parse_items("from.transports", names, |name| {
            TransportKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                let known_names = TransportKind::ALL.map(TransportKind::name).join(", ");
                format!("there is no transport {name:?}; there are {known_names}")
            })
        })
    });
    let networks = from.networks.as_ref().map(|networks| {
        problems.parse_items("from.networks", networks, |text| {
            IpNetwork::parse(text)
                .ok_or_else(|| format!("{text:?} is no network; write it as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7"))
        })
    });
    let scopes = problems.parse_items("scopes", scopes, |scope| match is_scope(scope) {
        true => Ok(scope.to_owned()),
        false => Err(format!("{scope:?} is no scope: one is a word without spaces, quotes and backslashes")),
    });
    Access { names: names.to_vec(), scopes, acl: Acl { transports, networks }, ..Access::default() }
}
